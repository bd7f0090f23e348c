//! Failures as exceptions: `Iggy\IggyException`, and below it one class for each thing a caller would do about it.
//!
//! They are plain classes of PHP with properties of PHP, so that applications may extend, clone and serialise them.

use std::sync::atomic::{AtomicPtr, Ordering};

use ext_php_rs::builders::{ClassBuilder, ClassProperty};
use ext_php_rs::convert::IntoZval;
use ext_php_rs::exception::PhpException;
use ext_php_rs::flags::PropertyFlags;
use ext_php_rs::prelude::PhpResult;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::{ClassEntry, ce};
use iggy::IggyError;
use iggy_ffi::{Class, Failure};

/// Registered at the start of the process; null before.
static BASE: AtomicPtr<ClassEntry> = AtomicPtr::new(std::ptr::null_mut());

fn base() -> &'static ClassEntry {
    // SAFETY: null or a class of the engine, which lives as long as the process.
    unsafe { BASE.load(Ordering::Relaxed).as_ref() }.unwrap_or_else(|| ce::exception())
}

/// The name of the exception of a class.
pub fn class_name(class: Class) -> String {
    let mut name = "Iggy\\".to_owned();
    for word in class.name().split('_') {
        let (first, rest) = word.split_at(1);
        name.push_str(&first.to_uppercase());
        name.push_str(rest);
    }
    name + "Exception"
}

fn property(name: &str) -> ClassProperty {
    ClassProperty {
        name: name.to_owned(),
        flags: PropertyFlags::Public,
        default: None,
        docs: &[],
        ty: None,
        nullable: true,
        readonly: false,
        default_stub: None,
    }
}

/// Registers the classes. At the start of the process only.
pub fn register() -> ext_php_rs::error::Result<()> {
    let mut made = ClassBuilder::new("Iggy\\IggyException").extends((ce::exception, "\\Exception"));
    for name in ["name", "retryable", "outcome", "operation", "partitionId"] {
        made = made.property(property(name));
    }
    made.registration(|class, tables| {
        std::mem::forget(tables);
        BASE.store(std::ptr::from_mut(class), Ordering::Relaxed);
    })
    .register()?;
    for class in Class::ALL {
        ClassBuilder::new(class_name(*class))
            .extends((base, "Iggy\\IggyException"))
            .registration(|_, tables| std::mem::forget(tables))
            .register()?;
    }
    Ok(())
}

fn object(failure: &Failure) -> ext_php_rs::error::Result<Zval> {
    let class = ClassEntry::try_find(&class_name(failure.class)).unwrap_or_else(base);
    let mut made = class.new();
    let code = i64::from(failure.code);
    made.try_call_method("__construct", vec![&failure.message, &code])?;
    made.set_property("name", failure.name)?;
    made.set_property("retryable", failure.retryable)?;
    made.set_property("outcome", failure.outcome_name())?;
    made.set_property("operation", failure.operation.map(u64::cast_signed))?;
    made.set_property("partitionId", failure.partition_id.map(i64::from))?;
    made.into_zval(false)
}

/// The exception of a failure, as a value.
pub fn value(failure: &Failure) -> PhpResult<Zval> {
    Ok(object(failure)?)
}

/// The exception of a failure.
pub fn exception(failure: &Failure) -> PhpException {
    match object(failure) {
        Ok(object) => PhpException::from_message(failure.message.clone()).with_object(object),
        Err(_) => PhpException::new(failure.message.replace('\0', "?"), 0, base()),
    }
}

/// An argument that cannot be used.
pub fn invalid(message: impl Into<String>) -> PhpException {
    exception(&Failure::invalid(message))
}

/// Turns failures into exceptions.
pub trait OrThrow<T> {
    /// The value, or the exception.
    fn or_throw(self) -> PhpResult<T>;
}

impl<T> OrThrow<T> for Result<T, Failure> {
    fn or_throw(self) -> PhpResult<T> {
        self.map_err(|failure| exception(&failure))
    }
}

impl<T> OrThrow<T> for Result<T, IggyError> {
    fn or_throw(self) -> PhpResult<T> {
        self.map_err(|error| exception(&error.into()))
    }
}
