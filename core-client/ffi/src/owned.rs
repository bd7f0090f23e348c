//! Objects that remember the process they were made in.

use std::fmt;

use crate::{Failure, runtime};

/// An object of the core, for the process that made it. In a forked child it can only be dropped, which then does nothing:
/// its tasks, sockets and locks are the parent's.
pub struct Owned<T> {
    process: u32,
    value: Option<T>,
}

impl<T> Owned<T> {
    /// Takes the object.
    pub fn new(value: T) -> Self {
        Self {
            process: std::process::id(),
            value: Some(value),
        }
    }

    /// The object.
    ///
    /// # Errors
    /// [`crate::Class::Inherited`] in another process than that which made it.
    pub fn get(&self) -> Result<&T, Failure> {
        let own = self.process == std::process::id();
        self.value.as_ref().filter(|_| own).ok_or_else(Failure::inherited)
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        if self.process != std::process::id() {
            return std::mem::forget(value);
        }
        // A static object, dropped when this thread has ended what a runtime keeps in it: the process is ending.
        let current = tokio::runtime::Handle::try_current();
        if current.is_err_and(|error| error.is_thread_local_destroyed()) {
            return std::mem::forget(value);
        }
        // What is dropped may want to spawn its own end.
        let runtime = runtime::handle().ok();
        let _guard = runtime.as_ref().map(tokio::runtime::Handle::enter);
        drop(value);
    }
}

impl<T> fmt::Debug for Owned<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Owned")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}
