//! The partition reader.

use std::sync::Arc;

use iggy::{ErrorCode, IggyConsumerState, IggyError, PartitionReader, PolledMessages as Batch};
use iggy_ffi::events::Subscription;
use iggy_ffi::handout::{Handout, Source};
use iggy_ffi::{Failure, Owned};
use pyo3::prelude::*;

use crate::bridge::{nothing, run, run_read};
use crate::events::Events;
use crate::failure::OrRaise;
use crate::message::PolledMessages;
use crate::position::{Checkpoint, read_start};

struct Batches(PartitionReader);

impl Source for Batches {
    type Ask = ();
    type Item = Arc<Batch>;

    async fn read(&mut self, (): ()) -> Result<Arc<Batch>, Failure> {
        self.0.next().await.map(Arc::new).map_err(Failure::from)
    }

    fn ended() -> Result<Arc<Batch>, Failure> {
        Err(IggyError::new(ErrorCode::ClientShutdown, "the reader is closed").into())
    }
}

struct Shared {
    batches: Handout<Batches>,
    state: IggyConsumerState,
}

/// A reader of the core. Reads wait for each other; everything else waits for nobody.
#[pyclass(frozen, module = "iggy._native")]
pub struct Reader(Owned<Arc<Shared>>);

impl Reader {
    pub fn new(reader: PartitionReader) -> Self {
        Self(Owned::new(Arc::new(Shared {
            state: reader.state(),
            batches: Handout::new(Batches(reader)),
        })))
    }

    fn shared(&self, py: Python<'_>) -> PyResult<Arc<Shared>> {
        self.0.get().cloned().or_raise(py)
    }
}

#[pymethods]
impl Reader {
    fn next(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let read = async move { shared.batches.read(()).await };
        run_read(py, event_loop, read, PolledMessages::object)
    }

    fn commit(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>, checkpoint: &Checkpoint) -> PyResult<Py<PyAny>> {
        let (shared, checkpoint) = (self.shared(py)?, checkpoint.0);
        run(
            py,
            event_loop,
            async move { shared.state.commit(checkpoint).await },
            nothing,
        )
    }

    fn mark(&self, py: Python<'_>, checkpoint: &Checkpoint) -> PyResult<()> {
        self.shared(py)?.state.mark(checkpoint.0).or_raise(py)
    }

    fn seek(&self, py: Python<'_>, partition_id: u32, start: &Bound<'_, PyAny>) -> PyResult<()> {
        let start = read_start(start)?;
        self.shared(py)?.state.seek(partition_id, start).or_raise(py)
    }

    /// The partitions it reads.
    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.shared(py)?.state.partitions().collect())
    }

    /// The partitions that wait for a seek.
    fn stopped(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.shared(py)?.state.stopped().collect())
    }

    fn subscribe_events(&self, py: Python<'_>) -> PyResult<Events> {
        let shared = self.shared(py)?;
        Ok(Events::new(Subscription::Reader(shared.state.subscribe_events())))
    }

    fn close(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let call = async move {
            shared.batches.close();
            shared.batches.with(async |batches| batches.0.close().await).await
        };
        run(py, event_loop, call, nothing)
    }
}
