//! Writes frames, several at once when they wait.

use super::outgoing::{Outgoing, Queued};
use super::sink::{PIECES_MAX, Sink};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Mutex, mpsc};

/// Writes what comes until the queue closes, an eviction is written or the socket fails.
pub async fn write(sink: &Mutex<Sink>, mut frames: mpsc::Receiver<Outgoing>, queued: &Queued, sent: Counter) {
    while let Some(frame) = frames.recv().await {
        let mut sink = sink.lock().await;
        let mut written = frame.frame_len();
        let mut permits = Vec::new();
        let mut last = matches!(frame, Outgoing::Evict(_));
        permits.extend(frame.lay_down(&mut sink.pieces));
        while sink.pieces.len() < PIECES_MAX && !last {
            let Ok(frame) = frames.try_recv() else { break };
            written += frame.frame_len();
            last = matches!(frame, Outgoing::Evict(_));
            permits.extend(frame.lay_down(&mut sink.pieces));
        }
        if let Err(error) = sink.write().await {
            tracing::debug!(%error, "writing to a client failed");
            return;
        }
        queued.remove(written);
        sent.inc_by(written as u64);
        if last {
            break;
        }
    }
    sink.lock().await.shutdown().await;
}
