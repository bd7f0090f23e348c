//! Messages to send, and messages that came. A batch crosses once; its payloads are copied when they are asked for.

use std::sync::Arc;

use bytes::Bytes;
use iggy::{IggyMessage, UserHeaders};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::failure::OrRaise;
use crate::headers;
use crate::position::{Checkpoint, Continuation};

/// A message.
#[pyclass(frozen, module = "iggy")]
#[derive(Clone)]
pub struct Message(pub IggyMessage);

#[pymethods]
impl Message {
    #[new]
    #[pyo3(signature = (payload, *, id = 0, headers = None, origin_timestamp = None))]
    fn new(
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        id: u128,
        headers: Option<&Bound<'_, PyDict>>,
        origin_timestamp: Option<u64>,
    ) -> PyResult<Self> {
        let headers = headers.map_or_else(|| Ok(UserHeaders::new()), headers::from_dict)?;
        // Copied here, so that no worker holds an object of Python.
        let payload = match payload.cast::<PyString>() {
            Ok(text) => Bytes::copy_from_slice(text.to_cow()?.as_bytes()),
            Err(_) => Bytes::copy_from_slice(&payload.extract::<PyBackedBytes>()?),
        };
        let mut builder = IggyMessage::builder().id(id).payload(payload).user_headers(headers);
        if let Some(timestamp) = origin_timestamp {
            builder = builder.origin_timestamp(timestamp);
        }
        builder.build().or_raise(py).map(Self)
    }

    #[getter]
    fn id(&self) -> u128 {
        self.0.header.id
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.0.header.offset
    }

    #[getter]
    fn timestamp(&self) -> u64 {
        self.0.header.timestamp
    }

    #[getter]
    fn origin_timestamp(&self) -> u64 {
        self.0.header.origin_timestamp
    }

    #[getter]
    fn checksum(&self) -> u64 {
        self.0.header.checksum
    }

    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.payload)
    }

    /// The payload as text.
    fn text(&self) -> PyResult<&str> {
        std::str::from_utf8(&self.0.payload)
            .map_err(|error| PyValueError::new_err(format!("the payload is no UTF-8: {error}")))
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let read = self.0.user_headers_map().or_raise(py)?;
        headers::to_dict(py, &read.unwrap_or_default())
    }

    fn __len__(&self) -> usize {
        self.0.payload.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "Message(offset={}, {} bytes)",
            self.0.header.offset,
            self.0.payload.len()
        )
    }
}

/// What one read returned. It is a sequence of messages.
#[pyclass(frozen, sequence, module = "iggy")]
pub struct PolledMessages(pub Arc<iggy::PolledMessages>);

impl PolledMessages {
    pub fn new(polled: iggy::PolledMessages) -> Self {
        Self(Arc::new(polled))
    }

    /// As an object of Python.
    pub fn object(py: Python<'_>, polled: &Arc<iggy::PolledMessages>) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Self(Arc::clone(polled)))?.into_any())
    }
}

#[pymethods]
impl PolledMessages {
    #[getter]
    fn partition_id(&self) -> u32 {
        self.0.partition_id
    }

    #[getter]
    fn current_offset(&self) -> u64 {
        self.0.current_offset
    }

    /// All messages.
    #[getter]
    fn messages(&self) -> Vec<Message> {
        self.0.messages.iter().cloned().map(Message).collect()
    }

    fn continuation(&self) -> Continuation {
        Continuation(self.0.continuation())
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        self.0.checkpoint().map(Checkpoint)
    }

    fn checkpoint_at(&self, index: usize) -> Option<Checkpoint> {
        self.0.checkpoint_at(index).map(Checkpoint)
    }

    fn __len__(&self) -> usize {
        self.0.messages.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<Message> {
        let count = self.0.messages.len();
        let from_end = index.checked_add_unsigned(count).filter(|_| index < 0);
        let place = usize::try_from(from_end.unwrap_or(index)).ok();
        let found = place.and_then(|place| self.0.messages.get(place));
        found
            .cloned()
            .map(Message)
            .ok_or_else(|| PyIndexError::new_err(format!("there is no message {index} of {count}")))
    }

    fn __repr__(&self) -> String {
        format!(
            "PolledMessages(partition_id={}, {} messages)",
            self.0.partition_id,
            self.0.messages.len()
        )
    }
}

/// A message as a consumer hands it out.
#[pyclass(frozen, module = "iggy")]
pub struct ReceivedMessage(pub iggy::ReceivedMessage);

#[pymethods]
impl ReceivedMessage {
    #[getter]
    fn message(&self) -> Message {
        Message(self.0.message.clone())
    }

    #[getter]
    fn partition_id(&self) -> u32 {
        self.0.partition_id
    }

    #[getter]
    fn current_offset(&self) -> u64 {
        self.0.current_offset
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.0.checkpoint())
    }

    fn __repr__(&self) -> String {
        format!(
            "ReceivedMessage(partition_id={}, offset={})",
            self.0.partition_id, self.0.message.header.offset
        )
    }
}
