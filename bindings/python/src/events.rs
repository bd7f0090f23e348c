//! What happens to a client, a reader or a consumer.

use std::sync::Arc;

use iggy_ffi::Owned;
use iggy_ffi::events::Subscription;
use iggy_ffi::handout::Handout;
use pyo3::prelude::*;

use crate::bridge::run_read;
use crate::failure::OrRaise;

/// A subscription to events.
#[pyclass(frozen, module = "iggy._native")]
pub struct Events(Owned<Arc<Handout<Subscription>>>);

impl Events {
    pub fn new(source: Subscription) -> Self {
        Self(Owned::new(Arc::new(Handout::new(source))))
    }
}

#[pymethods]
impl Events {
    /// The next event as JSON; `None` when nothing can happen any more.
    fn next(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let events = Arc::clone(self.0.get().or_raise(py)?);
        let next = async move { events.read(()).await };
        run_read(py, event_loop, next, |py, event| {
            let text = event.as_ref().map(ToString::to_string);
            Ok(text.into_pyobject(py)?.unbind())
        })
    }
}
