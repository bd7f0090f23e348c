//! The way from a shard to a socket.

use bytes::Bytes;
use iggy_protocol::header::{EvictionHeader, ReplyHeader};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};

/// A frame to write.
pub enum Outgoing {
    /// A reply.
    Reply {
        /// Its header.
        header: Box<ReplyHeader>,
        /// Its body.
        body: Vec<Bytes>,
        /// Keeps the request counted until the reply is written.
        permit: OwnedSemaphorePermit,
    },
    /// An eviction; the connection ends after it.
    Evict(Box<EvictionHeader>),
}

impl Outgoing {
    /// Bytes of the frame.
    pub fn frame_len(&self) -> usize {
        match self {
            Self::Reply { body, .. } => size_of::<ReplyHeader>() + body.iter().map(Bytes::len).sum::<usize>(),
            Self::Evict(_) => size_of::<EvictionHeader>(),
        }
    }
}

/// Bytes of replies that wait for the socket.
#[derive(Default)]
pub struct Queued {
    bytes: AtomicUsize,
    less: Notify,
}

impl Queued {
    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that bytes were written.
    pub fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.less.notify_waiters();
    }

    /// Waits until at most `limit` bytes wait.
    pub async fn at_most(&self, limit: usize) {
        loop {
            let less = self.less.notified();
            tokio::pin!(less);
            less.as_mut().enable();
            if self.bytes.load(Ordering::Relaxed) <= limit {
                return;
            }
            less.await;
        }
    }
}

/// Sends the one reply of a request. Dropping it sends none and frees the request's place.
pub struct ReplySender {
    pub(super) frames: mpsc::Sender<Outgoing>,
    pub(super) queued: Arc<Queued>,
    pub(super) permit: OwnedSemaphorePermit,
}

impl ReplySender {
    /// Queues the reply. The queue has room for every request that may be in flight, so this never waits.
    pub fn send(self, header: Box<ReplyHeader>, body: Vec<Bytes>) {
        let frame = Outgoing::Reply {
            header,
            body,
            permit: self.permit,
        };
        self.queued.add(frame.frame_len());
        // A closed queue means a closed connection; the client asks again on its next one.
        let _ = self.frames.try_send(frame);
    }
}
