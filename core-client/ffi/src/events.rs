//! What happens to a client, a reader or a consumer, as JSON.

use iggy::{DiagnosticEvent, ReaderEvent};
use serde_json::{Value, json};

use crate::Failure;
use crate::handout::Source;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_events_when_shown_should_name_themselves_and_what_they_concern() {
        assert_eq!(of_client(DiagnosticEvent::SignedIn), json!({ "event": "signed_in" }));
        let code = iggy::ErrorCode::HistoryUnavailable;
        let stopped = of_reader(ReaderEvent::Stopped { partition_id: 3, code });
        let wanted = json!({ "event": "stopped", "partition_id": 3, "code": 87, "name": "history_unavailable" });
        assert_eq!(stopped, wanted);
    }
}
