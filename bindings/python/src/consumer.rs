//! The consumer: of its own, or a member of a group.

use std::sync::{Arc, OnceLock};

use iggy::{ErrorCode, IggyConsumer, IggyConsumerState, IggyError, PolledMessages, ReceivedMessage};
use iggy_ffi::events::Subscription;
use iggy_ffi::handout::{Handout, Source};
use iggy_ffi::{Failure, Owned};
use pyo3::prelude::*;

use crate::bridge::{nothing, run, run_read};
use crate::events::Events;
use crate::failure::OrRaise;
use crate::message;
use crate::position::{Checkpoint, read_start};

/// What may be read.
#[derive(Clone, Copy)]
enum Ask {
    Message,
    Batch,
}

/// What was read; `End` when the consumer was shut down.
enum Read {
    Message(ReceivedMessage),
    Batch(Arc<PolledMessages>),
    End,
}

struct Messages(IggyConsumer);

impl Source for Messages {
    type Ask = Ask;
    type Item = Read;

    async fn read(&mut self, ask: Ask) -> Result<Read, Failure> {
        let read = match ask {
            Ask::Message => self.0.next().await.map(|next| next.map(Read::Message)),
            Ask::Batch => self
                .0
                .next_batch()
                .await
                .map(|next| next.map(|batch| Read::Batch(Arc::new(batch)))),
        };
        read.transpose()
            .map(|read| read.unwrap_or(Read::End))
            .map_err(Failure::from)
    }

    fn ended() -> Result<Read, Failure> {
        Ok(Read::End)
    }
}

fn object(py: Python<'_>, read: &Read) -> PyResult<Py<PyAny>> {
    Ok(match read {
        Read::Message(message) => Py::new(py, message::ReceivedMessage(message.clone()))?.into_any(),
        Read::Batch(batch) => message::PolledMessages::object(py, batch)?,
        Read::End => py.None(),
    })
}

struct Shared {
    messages: Handout<Messages>,
    /// From `init` on.
    state: OnceLock<IggyConsumerState>,
}

impl Shared {
    fn state(&self) -> Result<&IggyConsumerState, Failure> {
        let missing = || {
            IggyError::new(
                ErrorCode::NotConnected,
                "the consumer was not initialised; call init first",
            )
        };
        self.state.get().ok_or_else(|| missing().into())
    }
}

/// A consumer of the core. Calls that read wait for each other; commits and seeks wait for nobody.
#[pyclass(frozen, module = "iggy._native")]
pub struct Consumer(Owned<Arc<Shared>>);

impl Consumer {
    pub fn new(consumer: IggyConsumer) -> Self {
        Self(Owned::new(Arc::new(Shared {
            messages: Handout::new(Messages(consumer)),
            state: OnceLock::new(),
        })))
    }

    fn shared(&self, py: Python<'_>) -> PyResult<Arc<Shared>> {
        self.0.get().cloned().or_raise(py)
    }

    fn read(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>, ask: Ask) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let read = async move { shared.messages.read(ask).await };
        run_read(py, event_loop, read, object)
    }
}

#[pymethods]
impl Consumer {
    fn init(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let call = async move {
            let init = async |messages: &mut Messages| {
                messages.0.init().await?;
                messages.0.state()
            };
            let state = shared.messages.with(init).await?;
            shared.state.get_or_init(|| state);
            Ok::<_, IggyError>(())
        };
        run(py, event_loop, call, nothing)
    }

    /// The next message, or a batch that nobody took; `None` when the consumer was shut down.
    fn next(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.read(py, event_loop, Ask::Message)
    }

    /// The next batch, or a message that nobody took; `None` when the consumer was shut down.
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
        shared.state().or_raise(py)?.seek(partition_id, start).or_raise(py)
    }

    /// The partitions it reads.
    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let shared = self.shared(py)?;
        Ok(shared
            .state
            .get()
            .map_or_else(Vec::new, |state| state.partitions().collect()))
    }

    /// The partitions that wait for a seek.
    fn stopped(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let shared = self.shared(py)?;
        Ok(shared
            .state
            .get()
            .map_or_else(Vec::new, |state| state.stopped().collect()))
    }

    fn last_consumed_offset(&self, py: Python<'_>, partition_id: u32) -> PyResult<Option<u64>> {
        let shared = self.shared(py)?;
        Ok(shared
            .state
            .get()
            .and_then(|state| state.get_last_consumed_offset(partition_id)))
    }

    fn last_stored_offset(&self, py: Python<'_>, partition_id: u32) -> PyResult<Option<u64>> {
        let shared = self.shared(py)?;
        Ok(shared
            .state
            .get()
            .and_then(|state| state.get_last_stored_offset(partition_id)))
    }

    fn subscribe_events(&self, py: Python<'_>) -> PyResult<Events> {
        let shared = self.shared(py)?;
        let events = shared.state().or_raise(py)?.subscribe_events();
        Ok(Events::new(Subscription::Reader(events)))
    }

    fn shutdown(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let shared = self.shared(py)?;
        let call = async move {
            shared.messages.close();
            shared.messages.with(async |messages| messages.0.shutdown().await).await
        };
        run(py, event_loop, call, nothing)
    }
}
