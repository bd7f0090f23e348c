//! The way from a shard to a socket.

use super::unread::{NodeUnread, Unread};
use bytes::Bytes;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::{EvictionHeader, ReplyHeader};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

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

    /// Makes a reply a refusal.
    fn refuse(&mut self, code: ErrorCode) {
        if let Self::Reply { header, body, .. } = self {
            header.status = code.code().into();
            **header = header.with_body_len(0);
            body.clear();
        }
    }
}

/// Bytes of replies that wait for the socket, and of those that room is kept for.
pub struct Queued {
    bytes: AtomicUsize,
    /// Those that wait, without room that is only kept.
    unread: Unread,
    less: Notify,
}

impl Queued {
    /// An empty queue of a connection of this node.
    pub fn new(node: Arc<NodeUnread>) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            unread: Unread::new(node),
            less: Notify::new(),
        }
    }

    fn keep_room(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_room_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.less.notify_waiters();
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.unread.add(bytes);
    }

    /// Notes that bytes were written.
    pub fn remove(&self, bytes: usize) {
        self.unread.remove(bytes);
        self.give_room_back(bytes);
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

/// Unread bytes above which a large reply is no longer added to a queue.
const UNREAD_MAX: usize = 64 << 20;

/// A read whose reply may be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    /// No room was kept for its reply.
    waits: bool,
    /// It may have stored an offset.
    commits: bool,
}

/// Room kept in a queue for a reply to come.
struct Room {
    queued: Arc<Queued>,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.queued.give_room_back(self.bytes);
        }
    }
}

/// Sends the one reply of a request. Dropping it sends none and frees the request's place.
pub struct ReplySender {
    frames: mpsc::Sender<Outgoing>,
    room: Room,
    /// What it answers, when that is a read; anything else is small and always passes.
    read: Option<Read>,
    close: CancellationToken,
    permit: OwnedSemaphorePermit,
}

impl ReplySender {
    pub(super) fn new(
        frames: mpsc::Sender<Outgoing>,
        queued: Arc<Queued>,
        close: CancellationToken,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            frames,
            room: Room { queued, bytes: 0 },
            read: None,
            close,
            permit,
        }
    }

    /// Prepares for the reply of a read of up to `bytes`. One that answers at once has its room kept, which slows the
    /// client that asks faster than it reads; one that may wait has none, lest it hold up what comes after it. Where the
    /// connection or the node has too much unread, a read is refused and may be asked again; one that `commits` may have
    /// stored an offset, so the connection ends, and its outcome is unknown as that of any lost reply.
    pub fn expect_read(&mut self, bytes: usize, waits: bool, commits: bool) {
        self.read = Some(Read { waits, commits });
        if !waits {
            self.room.queued.keep_room(bytes);
            self.room.bytes += bytes;
        }
    }

    /// Queues the reply. The queue has room for every request that may be in flight, so this never waits.
    pub fn send(self, header: Box<ReplyHeader>, body: Vec<Bytes>) {
        let Self {
            frames,
            room,
            read,
            close,
            permit,
        } = self;
        let queued = Arc::clone(&room.queued);
        drop(room);
        let mut frame = Outgoing::Reply { header, body, permit };
        let bytes = frame.frame_len();
        let too_much = |read: &Read| {
            let own = queued.bytes.load(Ordering::Relaxed) + bytes;
            (read.waits && own > UNREAD_MAX) || !queued.unread.admits(bytes)
        };
        match read.filter(too_much) {
            None => {}
            Some(Read { commits: false, .. }) => frame.refuse(ErrorCode::TransientNotAccepted),
            Some(Read { commits: true, .. }) => return close.cancel(),
        }
        queued.add(frame.frame_len());
        // A closed queue means a closed connection; the client asks again on its next one.
        let _ = frames.try_send(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iggy_protocol::header::RequestHeader;
    use iggy_protocol::operation::Operation;
    use tokio::sync::Semaphore;

    struct Peer {
        node: Arc<NodeUnread>,
        queued: Arc<Queued>,
        close: CancellationToken,
        frames: mpsc::Sender<Outgoing>,
        received: mpsc::Receiver<Outgoing>,
    }

    impl Peer {
        fn new() -> Self {
            let (frames, received) = mpsc::channel(8);
            let node = Arc::new(NodeUnread::new(4 << 30));
            Self {
                queued: Arc::new(Queued::new(Arc::clone(&node))),
                node,
                close: CancellationToken::new(),
                frames,
                received,
            }
        }

        fn sender(&self) -> ReplySender {
            let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
            ReplySender::new(
                self.frames.clone(),
                Arc::clone(&self.queued),
                self.close.clone(),
                permit,
            )
        }

        fn unread(&self) -> usize {
            self.queued.bytes.load(Ordering::Relaxed)
        }
    }

    fn header() -> Box<ReplyHeader> {
        Box::new(ReplyHeader::uncommitted(&RequestHeader::new(Operation::NonReplicated, 0), 0).with_body_len(1000))
    }

    fn body() -> Vec<Bytes> {
        vec![Bytes::from(vec![7; 1000])]
    }

    #[test]
    fn given_a_read_that_answers_at_once_should_keep_its_room_until_the_reply_is_queued() {
        let peer = Peer::new();
        let mut sender = peer.sender();
        sender.expect_read(16 << 20, false, false);
        assert_eq!(peer.unread(), 16 << 20);
        sender.send(header(), body());
        assert_eq!(peer.unread(), 1256);
        let mut dropped = peer.sender();
        dropped.expect_read(16 << 20, false, false);
        drop(dropped);
        assert_eq!(peer.unread(), 1256);
    }

    #[test]
    fn given_too_much_unread_when_a_waiting_read_answers_should_refuse_it() {
        let mut peer = Peer::new();
        peer.queued.add(UNREAD_MAX);
        let mut sender = peer.sender();
        sender.expect_read(16 << 20, true, false);
        sender.send(header(), body());
        let Ok(Outgoing::Reply { header, body, .. }) = peer.received.try_recv() else {
            panic!("no reply");
        };
        assert_eq!(header.status.get(), ErrorCode::TransientNotAccepted.code());
        assert_eq!((header.prefix.size.get(), body.len()), (256, 0));
        assert!(!peer.close.is_cancelled());
    }

    #[test]
    fn given_too_much_unread_when_a_waiting_read_that_stored_answers_should_end_the_connection() {
        let mut peer = Peer::new();
        peer.queued.add(UNREAD_MAX);
        let mut sender = peer.sender();
        sender.expect_read(16 << 20, true, true);
        sender.send(header(), body());
        assert!(peer.close.is_cancelled());
        assert!(peer.received.try_recv().is_err());
    }

    #[test]
    fn given_little_unread_when_a_waiting_read_answers_should_send_it() {
        let mut peer = Peer::new();
        let mut sender = peer.sender();
        sender.expect_read(16 << 20, true, true);
        sender.send(header(), body());
        assert!(matches!(peer.received.try_recv(), Ok(Outgoing::Reply { body, .. }) if body.len() == 1));
        assert!(!peer.close.is_cancelled());
    }

    #[test]
    fn given_a_node_with_too_much_unread_when_a_read_answers_should_refuse_it_and_let_others_pass() {
        let mut peer = Peer::new();
        let slow = Unread::new(Arc::clone(&peer.node));
        slow.add(8 << 30);
        let mut sender = peer.sender();
        sender.expect_read(16 << 20, false, false);
        sender.send(header(), body());
        let refused = ErrorCode::TransientNotAccepted.code();
        assert!(
            matches!(peer.received.try_recv(), Ok(Outgoing::Reply { header, .. }) if header.status.get() == refused)
        );
        peer.sender().send(header(), body());
        assert!(matches!(peer.received.try_recv(), Ok(Outgoing::Reply { header, .. }) if header.status.get() == 0));
        let mut sender = peer.sender();
        sender.expect_read(16 << 20, false, true);
        sender.send(header(), body());
        assert!(peer.close.is_cancelled());
    }
}
