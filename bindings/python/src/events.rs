//! What happens to a client, a reader or a consumer.

use std::sync::Arc;

use iggy_ffi::Owned;
use iggy_ffi::events::Subscription;
use iggy_ffi::handout::Source as _;
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::bridge::run;
use crate::failure::OrRaise;

/// A subscription to events.
#[pyclass(frozen, module = "iggy._native")]
pub struct Events(Owned<Arc<Mutex<Subscription>>>);

impl Events {
    pub fn new(source: Subscription) -> Self {
        Self(Owned::new(Arc::new(Mutex::new(source))))
    }
}

#[pymethods]
impl Events {
    /// The next event as JSON; `None` when nothing can happen any more.
    fn next(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let source = Arc::clone(self.0.get().or_raise(py)?);
        let next = async move { source.lock().await.read(()).await };
        run(py, event_loop, next, |py, event| {
            Ok(event.map(|event| event.to_string()).into_pyobject(py)?.unbind())
        })
    }
}
