//! The partition reader.

use std::sync::Arc;

use iggy::PartitionReader;
use iggy_ffi::Owned;
use iggy_ffi::reading::SharedReader;
use pyo3::prelude::*;

use crate::bridge::{nothing, run, run_read};
use crate::events::Events;
use crate::failure::OrRaise;
use crate::message::PolledMessages;
use crate::position::{Checkpoint, read_start};

/// A reader of the core. Reads wait for each other; everything else waits for nobody.
#[pyclass(frozen, module = "iggy._native")]
pub struct Reader(Owned<Arc<SharedReader>>);

impl Reader {
    pub fn new(reader: PartitionReader) -> Self {
        Self(Owned::new(Arc::new(SharedReader::new(reader))))
    }

    fn shared(&self, py: Python<'_>) -> PyResult<Arc<SharedReader>> {
        self.0.get().cloned().or_raise(py)
    }
}

#[pymethods]
impl Reader {
    fn next(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let read = async move { shared.read().await };
        run_read(py, event_loop, read, PolledMessages::object)
    }

    fn commit(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>, checkpoint: &Checkpoint) -> PyResult<Py<PyAny>> {
        let (shared, checkpoint) = (self.shared(py)?, checkpoint.0);
        run(
            py,
            event_loop,
            async move { shared.state().commit(checkpoint).await },
            nothing,
        )
    }

    fn mark(&self, py: Python<'_>, checkpoint: &Checkpoint) -> PyResult<()> {
        self.shared(py)?.state().mark(checkpoint.0).or_raise(py)
    }

    fn seek(&self, py: Python<'_>, partition_id: u32, start: &Bound<'_, PyAny>) -> PyResult<()> {
        let start = read_start(start)?;
        self.shared(py)?.seek(partition_id, start).or_raise(py)
    }

    /// The partitions it reads.
    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.shared(py)?.state().partitions().collect())
    }

    /// The partitions that wait for a seek.
    fn stopped(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.shared(py)?.state().stopped().collect())
    }

    fn subscribe_events(&self, py: Python<'_>) -> PyResult<Events> {
        Ok(Events::new(self.shared(py)?.subscribe_events()))
    }

    fn close(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        run(py, event_loop, async move { shared.close().await }, nothing)
    }
}
