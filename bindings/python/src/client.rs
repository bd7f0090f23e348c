//! The client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use iggy::producer::ErrorCallback;
use iggy::{Consumer as ConsumerId, Identifier, IggyClient, IggyMessage, Partitioner, ProducerSection};
use iggy_ffi::events::Subscription;
use iggy_ffi::settings::{self, ProducerHooks};
use iggy_ffi::{Owned, call, operations};
use iggy_view::resources::confirmation;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::bridge::{nothing, run};
use crate::consumer::Consumer;
use crate::events::Events;
use crate::failure::{OrRaise, exception};
use crate::gate;
use crate::message::{Message, PolledMessages};
use crate::partitioner::PythonPartitioner;
use crate::position::{Checkpoint, read_start};
use crate::producer::Producer;
use crate::reader::Reader;

/// Reads JSON that the Python code wrote.
pub fn json(text: &str) -> PyResult<Value> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A stream, topic or consumer: an `int` is its number, a `str` its name.
#[derive(FromPyObject)]
pub enum Id {
    Number(u32),
    Name(String),
}

impl Id {
    pub fn identifier(&self, py: Python<'_>) -> PyResult<Identifier> {
        match self {
            Self::Number(number) => Ok(Identifier::numeric(*number)),
            Self::Name(name) => Identifier::named(name).map_err(|error| {
                let error = iggy::IggyError::from(error);
                exception(py, &error.into())
            }),
        }
    }

    /// As the builders of the core take it.
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}

/// Who reads: its kind and its name.
fn consumer_id(py: Python<'_>, kind: &str, id: &Id) -> PyResult<ConsumerId> {
    let id = id.identifier(py)?;
    match kind {
        "consumer" => Ok(ConsumerId::new(id)),
        "group" => Ok(ConsumerId::group(id)),
        "external" => Ok(ConsumerId::external(id)),
        other => Err(PyValueError::new_err(format!("'{other}' is no kind of consumer"))),
    }
}

pub fn messages_of(given: &[PyRef<'_, Message>]) -> Vec<IggyMessage> {
    given.iter().map(|message| message.0.clone()).collect()
}

/// Confirmations as JSON.
pub fn confirmations(py: Python<'_>, found: Vec<iggy::SendConfirmation>) -> PyResult<Py<PyAny>> {
    let shown: Value = found.iter().map(confirmation).collect();
    Ok(shown.to_string().into_pyobject(py)?.into_any().unbind())
}

fn bytes(py: Python<'_>, answer: Bytes) -> PyResult<Py<PyAny>> {
    let copied = PyBytes::new(py, &answer).into_any().unbind();
    drop(answer);
    Ok(copied)
}

/// A client of the core.
#[pyclass(frozen, module = "iggy._native")]
pub struct Client(Owned<IggyClient>);

impl Client {
    fn core(&self, py: Python<'_>) -> PyResult<IggyClient> {
        self.0.get().cloned().or_raise(py)
    }
}

#[pymethods]
impl Client {
    #[new]
    fn new(py: Python<'_>, settings: &str, partitioner: Option<Py<PyAny>>) -> PyResult<Self> {
        let partitioner = partitioner.map(|function| Arc::new(PythonPartitioner(function)) as Arc<dyn Partitioner>);
        let settings = json(settings)?;
        let client = call::enter(|| settings::client(settings, partitioner)).or_raise(py)?;
        Ok(Self(Owned::new(client)))
    }

    /// An operation by its name; arguments and result are JSON.
    fn invoke(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        operation: String,
        arguments: String,
    ) -> PyResult<Py<PyAny>> {
        let client = self.core(py)?;
        let call = async move { operations::invoke_text(&client, &operation, &arguments).await };
        run(py, event_loop, call, |py, result| {
            Ok(result.into_pyobject(py)?.into_any().unbind())
        })
    }

    fn send_messages(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        stream: Id,
        topic: Id,
        partitioning: &str,
        messages: Vec<PyRef<'_, Message>>,
    ) -> PyResult<Py<PyAny>> {
        let client = self.core(py)?;
        let (stream, topic) = (stream.identifier(py)?, topic.identifier(py)?);
        let partitioning = settings::partitioning(json(partitioning)?).or_raise(py)?;
        let messages = messages_of(&messages);
        let call = async move { client.send_messages(&stream, &topic, &partitioning, &messages).await };
        run(py, event_loop, call, confirmations)
    }

    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    fn send_producer_messages(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        stream: Id,
        topic: Id,
        partition_id: u32,
        producer: (u64, u16, u32),
        messages: Vec<PyRef<'_, Message>>,
    ) -> PyResult<Py<PyAny>> {
        let client = self.core(py)?;
        let (stream, topic) = (stream.identifier(py)?, topic.identifier(py)?);
        let section = ProducerSection {
            producer_id: producer.0,
            epoch: producer.1,
            base_sequence: producer.2,
        };
        let messages = messages_of(&messages);
        let call = async move {
            client
                .send_producer_messages(&stream, &topic, partition_id, section, &messages)
                .await
        };
        run(py, event_loop, call, confirmations)
    }

    #[allow(clippy::too_many_arguments, reason = "as the core has it")]
    fn poll_messages(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        stream: Id,
        topic: Id,
        partition_id: u32,
        consumer: (String, Id),
        start: &Bound<'_, PyAny>,
        options: &str,
    ) -> PyResult<Py<PyAny>> {
        let client = self.core(py)?;
        let (stream, topic) = (stream.identifier(py)?, topic.identifier(py)?);
        let consumer = consumer_id(py, &consumer.0, &consumer.1)?;
        let start = read_start(start)?;
        let options = settings::poll_options(json(options)?).or_raise(py)?;
        let call = async move {
            client
                .poll_messages(&stream, &topic, partition_id, &consumer, start, options)
                .await
        };
        run(py, event_loop, call, |py, polled| {
            Ok(Py::new(py, PolledMessages::new(polled))?.into_any())
        })
    }

    fn store_consumer_position(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        consumer: (String, Id),
        stream: Id,
        topic: Id,
        checkpoint: &Checkpoint,
    ) -> PyResult<Py<PyAny>> {
        let client = self.core(py)?;
        let (stream, topic) = (stream.identifier(py)?, topic.identifier(py)?);
        let (consumer, checkpoint) = (consumer_id(py, &consumer.0, &consumer.1)?, checkpoint.0);
        let call = async move {
            client
                .store_consumer_position(&consumer, &stream, &topic, &checkpoint)
                .await
        };
        run(py, event_loop, call, nothing)
    }

    fn delete_consumer_position(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        consumer: (String, Id),
        stream: Id,
        topic: Id,
        checkpoint: &Checkpoint,
    ) -> PyResult<Py<PyAny>> {
        let client = self.core(py)?;
        let (stream, topic) = (stream.identifier(py)?, topic.identifier(py)?);
        let (consumer, checkpoint) = (consumer_id(py, &consumer.0, &consumer.1)?, checkpoint.0);
        let call = async move {
            client
                .delete_consumer_position(&consumer, &stream, &topic, &checkpoint)
                .await
        };
        run(py, event_loop, call, nothing)
    }

    /// A raw request: to whoever must answer it, or to one node; with a deadline in microseconds or the client's own.
    fn send_binary_request(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        code: u32,
        payload: Vec<u8>,
        replica_id: Option<u8>,
        deadline: Option<u64>,
    ) -> PyResult<Py<PyAny>> {
        let client = self.core(py)?;
        let deadline = deadline.map(Duration::from_micros);
        let call = async move {
            match (replica_id, deadline) {
                (None, None) => client.send_binary_request(code, &payload).await,
                (None, Some(limit)) => client.send_binary_request_with_deadline(code, &payload, limit).await,
                (Some(id), None) => client.send_binary_request_to_replica(code, &payload, id).await,
                (Some(id), Some(limit)) => {
                    client
                        .send_binary_request_to_replica_with_deadline(code, &payload, id, limit)
                        .await
                }
            }
        };
        run(py, event_loop, call, bytes)
    }

    fn subscribe_events(&self, py: Python<'_>) -> PyResult<Events> {
        Ok(Events::new(Subscription::Client(self.core(py)?.subscribe_events())))
    }

    fn producer(
        &self,
        py: Python<'_>,
        stream: Id,
        topic: Id,
        settings: &str,
        partitioner: Option<Py<PyAny>>,
        on_error: Option<Py<PyAny>>,
    ) -> PyResult<Producer> {
        let client = self.core(py)?;
        let settings = json(settings)?;
        let hooks = ProducerHooks {
            partitioner: partitioner.map(|function| Arc::new(PythonPartitioner(function)) as Arc<dyn Partitioner>),
            error_callback: on_error.map(error_callback),
        };
        let (stream, topic) = (stream.text(), topic.text());
        let producer = call::enter(|| settings::producer(&client, &stream, &topic, settings, hooks)).or_raise(py)?;
        Ok(Producer::new(producer))
    }

    fn consumer(
        &self,
        py: Python<'_>,
        name: Id,
        stream: Id,
        topic: Id,
        is_group: bool,
        settings: &str,
    ) -> PyResult<Consumer> {
        let client = self.core(py)?;
        let settings = json(settings)?;
        let (name, stream, topic) = (name.text(), stream.text(), topic.text());
        let made = call::enter(|| settings::consumer(&client, &name, &stream, &topic, is_group, settings));
        Ok(Consumer::new(made.or_raise(py)?))
    }

    fn reader(
        &self,
        py: Python<'_>,
        event_loop: Option<Py<PyAny>>,
        stream: Id,
        topic: Id,
        consumer: (String, Id),
        settings: &str,
    ) -> PyResult<Py<PyAny>> {
        let client = self.core(py)?;
        let (stream, topic) = (stream.identifier(py)?, topic.identifier(py)?);
        let consumer = consumer_id(py, &consumer.0, &consumer.1)?;
        let settings = json(settings)?;
        let builder = settings::reader(&client, &stream, &topic, &consumer, settings).or_raise(py)?;
        run(py, event_loop, builder.build(), |py, reader| {
            Ok(Py::new(py, Reader::new(reader))?.into_any())
        })
    }
}

/// Calls a function of Python with the exception of a background send that failed.
fn error_callback(function: Py<PyAny>) -> ErrorCallback {
    Arc::new(move |error| {
        gate::attach(|py| {
            let error = exception(py, &error.into());
            if let Err(raised) = function.call1(py, (error.value(py),)) {
                raised.write_unraisable(py, Some(function.bind(py)));
            }
        });
    })
}
