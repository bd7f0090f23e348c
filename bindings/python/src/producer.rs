//! The producer.

use iggy::IggyProducer;
use iggy_ffi::{Owned, settings};
use pyo3::prelude::*;

use crate::bridge::{nothing, run};
use crate::client::{Id, confirmations, json, messages_of};
use crate::failure::OrRaise;
use crate::message::Message;

/// A producer of the core.
#[pyclass(frozen, module = "iggy._native")]
pub struct Producer(Owned<IggyProducer>);

impl Producer {
    pub fn new(producer: IggyProducer) -> Self {
        Self(Owned::new(producer))
    }

    fn core(&self, py: Python<'_>) -> PyResult<IggyProducer> {
        self.0.get().cloned().or_raise(py)
    }
}

#[pymethods]
impl Producer {
    fn init(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let producer = self.core(py)?;
        run(py, event_loop, async move { producer.init().await }, nothing)
    }

    /// Sends; where to is the producer's own choice unless `target` or `partitioning` say otherwise.
    fn send(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        messages: Vec<PyRef<'_, Message>>,
        partitioning: Option<&str>,
        target: Option<(Id, Id)>,
    ) -> PyResult<Py<PyAny>> {
        let producer = self.core(py)?;
        let messages = messages_of(&messages);
        let partitioning = match partitioning {
            Some(text) => Some(settings::partitioning(json(text)?).or_raise(py)?),
            None => None,
        };
        let target = match target {
            Some((stream, topic)) => Some((stream.identifier(py)?, topic.identifier(py)?)),
            None => None,
        };
        let call = async move {
            match (target, partitioning) {
                (None, None) => producer.send(messages).await,
                (None, Some(partitioning)) => producer.send_with_partitioning(messages, partitioning).await,
                (Some((stream, topic)), partitioning) => producer.send_to(stream, topic, messages, partitioning).await,
            }
        };
        run(py, event_loop, call, confirmations)
    }

    fn shutdown(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let producer = self.core(py)?;
        run(py, event_loop, async move { producer.shutdown().await }, nothing)
    }
}
