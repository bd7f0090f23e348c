//! Where memory of C is read and written. Every proof here rests on the header: a pointer with a length is that long,
//! an object is alive, a place to write to is one.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use iggy::{Consumer, Identifier, IggyError};
use iggy_ffi::Failure;
use serde_json::Value;

use crate::failure::IggyFailure;

/// The kind of a consumer of its own.
pub const IGGY_CONSUMER_ALONE: u8 = 0;
/// The kind of a consumer group.
pub const IGGY_CONSUMER_GROUP: u8 = 1;
/// The kind of a consumer whose offsets something else keeps.
pub const IGGY_CONSUMER_EXTERNAL: u8 = 2;

/// UTF-8 without an end mark.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyText {
    /// May be NULL when the length is 0.
    data: *const c_char,
    /// In bytes.
    length: usize,
}

/// Bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyBytes {
    /// May be NULL when the length is 0.
    data: *const u8,
    /// How many.
    length: usize,
}

/// A stream, topic, group or user: a name when the name has data, else a number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyId {
    /// Of 1 to 255 bytes.
    name: IggyText,
    /// Counts when there is no name.
    number: u32,
}

/// Who reads.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IggyConsumerId {
    /// `IGGY_CONSUMER_ALONE`, `IGGY_CONSUMER_GROUP` or `IGGY_CONSUMER_EXTERNAL`.
    kind: u8,
    /// Its name or number.
    id: IggyId,
}

impl IggyText {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        data: std::ptr::null(),
        length: 0,
    };

    /// Text of ours, which must outlive its use in C.
    pub fn of(text: &str) -> Self {
        Self {
            data: text.as_ptr().cast(),
            length: text.len(),
        }
    }

    /// The text.
    pub fn read(&self) -> Result<&str, Failure> {
        let bytes = IggyBytes {
            data: self.data.cast(),
            length: self.length,
        };
        // SAFETY: as for `IggyBytes::read`, whose memory is the same; it lives as long as `self` is borrowed, because
        // both are arguments of one call.
        let bytes: &[u8] = unsafe { slice_of(bytes) };
        std::str::from_utf8(bytes).map_err(|error| Failure::invalid(format!("text is UTF-8: {error}")))
    }

    /// JSON in it; null when there is nothing.
    pub fn json(&self) -> Result<Value, Failure> {
        match self.read()? {
            "" => Ok(Value::Null),
            text => serde_json::from_str(text).map_err(|error| Failure::invalid(format!("this is no JSON: {error}"))),
        }
    }

    /// Settings in it; none when there is nothing.
    pub fn settings(&self) -> Result<Value, Failure> {
        let read = self.json()?;
        Ok(if read.is_null() {
            Value::Object(serde_json::Map::new())
        } else {
            read
        })
    }
}

/// # Safety
/// `bytes` has so many readable bytes, or its length is 0.
unsafe fn slice_of<'a>(bytes: IggyBytes) -> &'a [u8] {
    if bytes.length == 0 || bytes.data.is_null() {
        return &[];
    }
    // SAFETY: as promised, and not null.
    unsafe { slice::from_raw_parts(bytes.data, bytes.length) }
}

impl IggyBytes {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        data: std::ptr::null(),
        length: 0,
    };

    /// Bytes of ours, which must outlive their use in C.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr(),
            length: bytes.len(),
        }
    }

    /// The bytes.
    pub fn read(&self) -> &[u8] {
        // SAFETY: only C makes these from outside, and the header demands that many readable bytes for as long as the
        // call lasts that they are an argument of.
        unsafe { slice_of(*self) }
    }
}

impl IggyId {
    /// The name or number.
    pub fn identifier(&self) -> Result<Identifier, Failure> {
        if self.name.data.is_null() {
            return Ok(Identifier::numeric(self.number));
        }
        Identifier::named(self.name.read()?).map_err(|error| IggyError::from(error).into())
    }

    /// As the builders of the core take it.
    pub fn text(&self) -> Result<String, Failure> {
        if self.name.data.is_null() {
            return Ok(self.number.to_string());
        }
        self.name.read().map(str::to_owned)
    }
}

impl IggyConsumerId {
    /// Who reads.
    pub fn consumer(&self) -> Result<Consumer, Failure> {
        let id = self.id.identifier()?;
        match self.kind {
            IGGY_CONSUMER_ALONE => Ok(Consumer::new(id)),
            IGGY_CONSUMER_GROUP => Ok(Consumer::group(id)),
            IGGY_CONSUMER_EXTERNAL => Ok(Consumer::external(id)),
            other => Err(Failure::invalid(format!(
                "{other} is no kind of consumer; known are 0, 1 and 2"
            ))),
        }
    }
}

/// What C passes by pointer to be written to; NULL for what is not wanted.
#[derive(Clone, Copy)]
pub struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Where C said.
    pub fn at(place: *mut T) -> Self {
        Self(place)
    }

    /// Writes, if it is wanted.
    pub fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the header demands a place of that type, which need not hold anything yet.
            unsafe { self.0.write(value) };
        }
    }

    /// Writes as many as there is room for and returns how many there are.
    pub fn list(self, values: impl Iterator<Item = T>, room: usize) -> usize {
        let mut count = 0;
        for value in values {
            if count < room && !self.0.is_null() {
                // SAFETY: the header demands room for so many, and this one is within it.
                unsafe { self.0.add(count).write(value) };
            }
            count += 1;
        }
        count
    }
}

impl Place<*mut IggyFailure> {
    /// Writes a failure, or that there is none.
    pub fn settle<T>(self, ended: Result<T, Failure>) -> Option<T> {
        match ended {
            Ok(value) => {
                self.put(std::ptr::null_mut());
                Some(value)
            }
            Err(failure) => {
                if !self.0.is_null() {
                    self.put(Box::into_raw(Box::new(IggyFailure::of(failure))));
                }
                None
            }
        }
    }
}

/// Runs `body`; a panic in it is a failure.
pub fn guarded<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Failure::internal(&*panic)))
}

/// An object that was passed.
pub fn given<T>(what: &str, object: Option<T>) -> Result<T, Failure> {
    object.ok_or_else(|| Failure::invalid(format!("{what} is NULL")))
}

/// The `user` of a callback: the caller says that any thread may have it.
#[derive(Clone, Copy)]
pub struct User(pub *mut c_void);

// SAFETY: it is never looked into here, only handed back, and the header says that callbacks come on other threads.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}
