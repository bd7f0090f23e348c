//! Writes frames, several at once when they wait.

use super::outgoing::{Outgoing, Queued};
use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// A peer that takes nothing for this long is given up.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// Pieces of one write; the kernel takes 1,024 at most.
const PIECES_MAX: usize = 256;

/// Writes what comes until the queue closes, an eviction is written or the socket fails.
pub async fn write<W: AsyncWrite>(sink: W, mut frames: mpsc::Receiver<Outgoing>, queued: &Queued, sent: Counter) {
    let mut sink = Box::pin(sink);
    let mut pieces = VecDeque::new();
    while let Some(frame) = frames.recv().await {
        let mut written = frame.frame_len();
        let mut permits = Vec::new();
        let mut last = matches!(frame, Outgoing::Evict(_));
        add(frame, &mut pieces, &mut permits);
        while pieces.len() < PIECES_MAX && !last {
            let Ok(frame) = frames.try_recv() else { break };
            written += frame.frame_len();
            last = matches!(frame, Outgoing::Evict(_));
            add(frame, &mut pieces, &mut permits);
        }
        if let Err(error) = write_all(&mut sink, &mut pieces).await {
            tracing::debug!(%error, "writing to a client failed");
            return;
        }
        queued.remove(written);
        sent.inc_by(written as u64);
        if last {
            break;
        }
    }
    let _ = tokio::time::timeout(DEADLINE, sink.shutdown()).await;
}

fn add(frame: Outgoing, pieces: &mut VecDeque<Bytes>, permits: &mut Vec<tokio::sync::OwnedSemaphorePermit>) {
    match frame {
        Outgoing::Reply { header, body, permit } => {
            pieces.push_back(Bytes::copy_from_slice(header.as_array()));
            pieces.extend(body.into_iter().filter(|piece| !piece.is_empty()));
            permits.push(permit);
        }
        Outgoing::Evict(header) => pieces.push_back(Bytes::copy_from_slice(header.as_array())),
    }
}

async fn write_all<W: AsyncWrite + Unpin>(sink: &mut W, pieces: &mut VecDeque<Bytes>) -> io::Result<()> {
    while !pieces.is_empty() {
        let slices: Vec<IoSlice<'_>> = pieces
            .iter()
            .take(PIECES_MAX)
            .map(|piece| IoSlice::new(piece))
            .collect();
        let write = tokio::time::timeout(DEADLINE, sink.write_vectored(&slices)).await;
        let mut count = write.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(first) = pieces.front_mut() {
            if count < first.len() {
                bytes::Buf::advance(first, count);
                break;
            }
            count -= first.len();
            pieces.pop_front();
        }
    }
    tokio::time::timeout(DEADLINE, sink.flush())
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
