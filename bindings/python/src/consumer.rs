//! The consumer: of its own, or a member of a group.

use std::sync::Arc;

use iggy::IggyConsumer;
use iggy_ffi::reading::{Ask, Read, SharedConsumer};
use iggy_ffi::{Failure, Owned};
use pyo3::prelude::*;

use crate::bridge::{nothing, run, run_read};
use crate::events::Events;
use crate::failure::OrRaise;
use crate::message;
use crate::position::{Checkpoint, read_start};

fn object(py: Python<'_>, read: &Read) -> PyResult<Py<PyAny>> {
    Ok(match read {
        Read::Message(message) => Py::new(py, message::ReceivedMessage(message.clone()))?.into_any(),
        Read::Batch(batch) => message::PolledMessages::object(py, batch)?,
        Read::End => py.None(),
    })
}

/// A consumer of the core. Calls that read wait for each other; commits and seeks wait for nobody.
#[pyclass(frozen, module = "iggy._native")]
pub struct Consumer(Owned<Arc<SharedConsumer>>);

impl Consumer {
    pub fn new(consumer: IggyConsumer) -> Self {
        Self(Owned::new(Arc::new(SharedConsumer::new(consumer))))
    }

    fn shared(&self, py: Python<'_>) -> PyResult<Arc<SharedConsumer>> {
        self.0.get().cloned().or_raise(py)
    }

    fn read(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>, ask: Ask) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let read = async move { shared.read(ask).await };
        run_read(py, event_loop, read, object)
    }
}

#[pymethods]
impl Consumer {
    fn init(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        run(py, event_loop, async move { shared.init().await }, nothing)
    }

    /// The next message; `None` when the consumer was shut down.
    fn next(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.read(py, event_loop, Ask::Message)
    }

    /// The next batch; `None` when the consumer was shut down.
    fn next_batch(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.read(py, event_loop, Ask::Batch)
    }

    fn commit(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>, checkpoint: &Checkpoint) -> PyResult<Py<PyAny>> {
        let (shared, checkpoint) = (self.shared(py)?, checkpoint.0);
        let call = async move { Ok::<_, Failure>(shared.state()?.commit(checkpoint).await?) };
        run(py, event_loop, call, nothing)
    }

    fn mark(&self, py: Python<'_>, checkpoint: &Checkpoint) -> PyResult<()> {
        let shared = self.shared(py)?;
        shared.state().or_raise(py)?.mark(checkpoint.0).or_raise(py)
    }

    fn store_offset(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        partition_id: u32,
        offset: u64,
    ) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let call = async move { Ok::<_, Failure>(shared.state()?.store_offset(partition_id, offset).await?) };
        run(py, event_loop, call, nothing)
    }

    fn delete_offset(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>, partition_id: u32) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let call = async move { Ok::<_, Failure>(shared.state()?.delete_offset(partition_id).await?) };
        run(py, event_loop, call, nothing)
    }

    fn seek(&self, py: Python<'_>, partition_id: u32, start: &Bound<'_, PyAny>) -> PyResult<()> {
        let shared = self.shared(py)?;
        let start = read_start(start)?;
        shared.seek(partition_id, start).or_raise(py)
    }

    /// The partitions it reads.
    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let shared = self.shared(py)?;
        Ok(shared
            .state_if_initialised()
            .map_or_else(Vec::new, |state| state.partitions().collect()))
    }

    /// The partitions that wait for a seek.
    fn stopped(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let shared = self.shared(py)?;
        Ok(shared
            .state_if_initialised()
            .map_or_else(Vec::new, |state| state.stopped().collect()))
    }

    fn last_consumed_offset(&self, py: Python<'_>, partition_id: u32) -> PyResult<Option<u64>> {
        let shared = self.shared(py)?;
        Ok(shared
            .state_if_initialised()
            .and_then(|state| state.get_last_consumed_offset(partition_id)))
    }

    fn last_stored_offset(&self, py: Python<'_>, partition_id: u32) -> PyResult<Option<u64>> {
        let shared = self.shared(py)?;
        Ok(shared
            .state_if_initialised()
            .and_then(|state| state.get_last_stored_offset(partition_id)))
    }

    fn subscribe_events(&self, py: Python<'_>) -> PyResult<Events> {
        let shared = self.shared(py)?;
        Ok(Events::new(shared.subscribe_events().or_raise(py)?))
    }

    fn shutdown(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        run(py, event_loop, async move { shared.shutdown().await }, nothing)
    }
}
