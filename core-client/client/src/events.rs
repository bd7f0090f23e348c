//! What happens to the client as a whole, for diagnostics.

use iggy_protocol::ErrorCode;
use tokio::sync::broadcast;

/// Something that happened to a reader or consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReaderEvent {
    /// A group member reads these partitions from now on, all of them ascending.
    Assigned {
        /// The rebalance that decided it.
        generation: u64,
        /// The partitions.
        partitions: Vec<u32>,
    },
    /// These partitions belong to another member now; what was read ahead of them is dropped.
    Revoked {
        /// The partitions.
        partitions: Vec<u32>,
    },
    /// The session ended, or the group removed this member. It joins again.
    MembershipLost,
    /// A partition is not read any more until the application seeks.
    Stopped {
        /// The partition.
        partition_id: u32,
        /// Why.
        code: ErrorCode,
    },
    /// The application sought in a partition.
    Sought {
        /// The partition.
        partition_id: u32,
    },
    /// The reply of a read that stores offsets was lost. What it skipped is read again, without storing offsets.
    ReadUncertain {
        /// The partition.
        partition_id: u32,
    },
    /// A position could not be stored.
    CommitFailed {
        /// The partition.
        partition_id: u32,
        /// Why.
        code: ErrorCode,
    },
    /// It was closed.
    Closed,
}

/// Something that happened to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiagnosticEvent {
    /// A node was reached and serves this client; whoever is configured has signed in before.
    Connected,
    /// The link was lost or closed.
    Disconnected,
    /// A session began.
    SignedIn,
    /// The session ended.
    SignedOut,
    /// The client was shut down for good.
    Shutdown,
}

/// Events a slow subscriber may fall behind before it loses the oldest.
const EVENTS_KEPT: usize = 64;

/// A subscription to events: of a client, or of a reader or consumer.
#[derive(Debug)]
pub struct Events<T = DiagnosticEvent>(broadcast::Receiver<T>);

impl<T: Clone> Events<T> {
    /// Waits for the next event; `None` when nothing can happen any more. A subscriber that falls 64 events behind loses
    /// the oldest.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<T> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// Where events are published.
#[derive(Debug)]
pub struct EventSource<T = DiagnosticEvent>(broadcast::Sender<T>);

impl<T: Clone> EventSource<T> {
    /// A source without subscribers.
    pub fn new() -> Self {
        Self(broadcast::channel(EVENTS_KEPT).0)
    }

    /// Publishes an event; nobody needs to listen.
    pub fn publish(&self, event: T) {
        let _ = self.0.send(event);
    }

    /// Subscribes from now on.
    pub fn subscribe(&self) -> Events<T> {
        Events(self.0.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn given_a_slow_subscriber_when_many_events_come_should_lose_the_oldest_and_then_end() {
        let source = EventSource::new();
        let mut events = source.subscribe();
        for partition_id in 0..100 {
            source.publish(ReaderEvent::Sought { partition_id });
        }
        drop(source);
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            seen.push(event);
        }
        let sought = |partition_id| ReaderEvent::Sought { partition_id };
        assert_eq!(
            (seen.len(), seen.first(), seen.last()),
            (64, Some(&sought(36)), Some(&sought(99)))
        );
    }
}
