//! What happens to a client, a reader or a consumer.

use std::sync::Arc;

use iggy::{DiagnosticEvent, ReaderEvent};
use iggy_ffi::handout::{Handout, Source};
use iggy_ffi::{Failure, Owned};
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::cancel::CancelToken;
use crate::failure::OrThrow;
use crate::promise::run_read;
use crate::value::{Js, shown};

/// A subscription.
pub enum Subscription {
    /// Of a client.
    Client(iggy::Events<DiagnosticEvent>),
    /// Of a reader or consumer.
    Reader(iggy::Events<ReaderEvent>),
}

impl Source for Subscription {
    type Ask = ();
    /// `None` when nothing can happen any more.
    type Item = Option<Value>;

    async fn read(&mut self, (): ()) -> Result<Option<Value>, Failure> {
        Ok(match self {
            Self::Client(events) => events.next().await.map(of_client),
            Self::Reader(events) => events.next().await.map(of_reader),
        })
    }

    fn ended() -> Result<Option<Value>, Failure> {
        Ok(None)
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
#[napi]
pub struct Events(Owned<Arc<Handout<Subscription>>>);

impl Events {
    pub(crate) fn of(subscription: Subscription) -> Self {
        Self(Owned::new(Arc::new(Handout::new(subscription))))
    }
}

#[napi]
impl Events {
    /// The next event; `null` when nothing can happen any more, or it was closed.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        let events = Arc::clone(self.0.get().or_throw()?);
        let next = async move { events.read(()).await };
        run_read(env, cancel, next, |event| {
            event.map_or(Js::Null, |event| shown("event", event))
        })
    }

    /// Ends the wait for the next event, and all later ones.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn close(&self) -> napi::Result<()> {
        self.0.get().or_throw()?.close();
        Ok(())
    }
}
