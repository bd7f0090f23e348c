//! What happens to the client as a whole, for diagnostics.

use tokio::sync::broadcast;

/// Something that happened to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiagnosticEvent {
    /// A node was reached.
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

/// A subscription to diagnostic events.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<DiagnosticEvent>);

impl Events {
    /// Waits for the next event; `None` when the client is gone. A slow subscriber loses the oldest events.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<DiagnosticEvent> {
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
pub struct EventSource(broadcast::Sender<DiagnosticEvent>);

impl EventSource {
    /// A source without subscribers.
    pub fn new() -> Self {
        Self(broadcast::channel(EVENTS_KEPT).0)
    }

    /// Publishes an event; nobody needs to listen.
    pub fn publish(&self, event: DiagnosticEvent) {
        let _ = self.0.send(event);
    }

    /// Subscribes from now on.
    pub fn subscribe(&self) -> Events {
        Events(self.0.subscribe())
    }
}
