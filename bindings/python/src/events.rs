//! What happens to a client, a reader or a consumer.

use std::sync::Arc;

use iggy::{DiagnosticEvent, ReaderEvent};
use iggy_ffi::{Failure, Owned};
use pyo3::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::bridge::run;
use crate::failure::OrRaise;

/// A subscription.
pub enum Source {
    /// Of a client.
    Client(iggy::Events<DiagnosticEvent>),
    /// Of a reader or consumer.
    Reader(iggy::Events<ReaderEvent>),
}

impl Source {
    async fn next(&mut self) -> Option<Value> {
        match self {
            Self::Client(events) => events.next().await.map(of_client),
            Self::Reader(events) => events.next().await.map(of_reader),
        }
    }
}

fn of_client(event: DiagnosticEvent) -> Value {
    let name = match event {
        DiagnosticEvent::Connected => "connected",
        DiagnosticEvent::Disconnected => "disconnected",
        DiagnosticEvent::SignedIn => "signed_in",
        DiagnosticEvent::SignedOut => "signed_out",
        DiagnosticEvent::Shutdown => "shutdown",
    };
    json!({ "event": name })
}

fn of_reader(event: ReaderEvent) -> Value {
    match event {
        ReaderEvent::Assigned { generation, partitions } => {
            json!({ "event": "assigned", "generation": generation, "partitions": partitions })
        }
        ReaderEvent::Revoked { partitions } => json!({ "event": "revoked", "partitions": partitions }),
        ReaderEvent::MembershipLost => json!({ "event": "membership_lost" }),
        ReaderEvent::Stopped { partition_id, code } => {
            json!({ "event": "stopped", "partition_id": partition_id, "code": code.code(), "name": code.name() })
        }
        ReaderEvent::Sought { partition_id } => json!({ "event": "sought", "partition_id": partition_id }),
        ReaderEvent::ReadUncertain { partition_id } => {
            json!({ "event": "read_uncertain", "partition_id": partition_id })
        }
        ReaderEvent::CommitFailed { partition_id, code } => {
            json!({ "event": "commit_failed", "partition_id": partition_id, "code": code.code(), "name": code.name() })
        }
        ReaderEvent::Closed => json!({ "event": "closed" }),
        other => json!({ "event": format!("{other:?}") }),
    }
}

/// A subscription to events.
#[pyclass(frozen, module = "iggy._native")]
pub struct Events(Owned<Arc<Mutex<Source>>>);

impl Events {
    pub fn new(source: Source) -> Self {
        Self(Owned::new(Arc::new(Mutex::new(source))))
    }
}

#[pymethods]
impl Events {
    /// The next event as JSON; `None` when nothing can happen any more.
    fn next(&self, py: Python<'_>, event_loop: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let source = Arc::clone(self.0.get().or_raise(py)?);
        let next = async move { Ok::<_, Failure>(source.lock().await.next().await) };
        run(py, event_loop, next, |py, event| {
            Ok(event.map(|event| event.to_string()).into_pyobject(py)?.unbind())
        })
    }
}
