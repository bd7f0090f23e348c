//! The way from a shard to a socket.

use super::sink::Sink;
use super::unread::{NodeUnread, Unread};
use bytes::Bytes;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::{EvictionHeader, ReplyHeader};
use prometheus_client::metrics::counter::Counter;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, mpsc};
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
    /// The end of a reply that the socket did not take whole; it waits in the sink.
    Rest {
        /// Bytes of the whole reply.
        bytes: usize,
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
            Self::Rest { bytes, .. } => *bytes,
            Self::Evict(_) => size_of::<EvictionHeader>(),
        }
    }

    /// Lays its bytes down for the socket. The permit is to be kept until they are written.
    pub fn lay_down(self, pieces: &mut VecDeque<Bytes>) -> Option<OwnedSemaphorePermit> {
        match self {
            Self::Reply { header, body, permit } => {
                pieces.push_back(Bytes::copy_from_slice(header.as_array()));
                pieces.extend(body.into_iter().filter(|piece| !piece.is_empty()));
                Some(permit)
            }
            Self::Rest { permit, .. } => Some(permit),
            Self::Evict(header) => {
                pieces.push_back(Bytes::copy_from_slice(header.as_array()));
                None
            }
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

/// Requests of one connection that may be unanswered (wire 1).
pub const IN_FLIGHT_MAX: usize = iggy_protocol::limits::MAX_IN_FLIGHT;
/// Largest reply that is written by whoever has it: a shard must not copy large ones.
const AT_ONCE_MAX: usize = 64 << 10;

/// Where the replies of a connection go.
#[derive(Clone)]
pub struct Outlet {
    /// The socket.
    pub sink: Arc<Mutex<Sink>>,
    /// To its writer.
    pub frames: mpsc::Sender<Outgoing>,
    /// What waits for it.
    pub queued: Arc<Queued>,
    /// Bytes sent by the node.
    pub sent: Counter,
    /// Ends the connection.
    pub close: CancellationToken,
}

impl Outlet {
    /// Writes a reply from here if nobody else writes. Returns what is left to the writer, if anything is.
    fn write_at_once(&self, frame: Outgoing) -> Option<Outgoing> {
        let bytes = frame.frame_len();
        let free = self.sink.try_lock().ok().filter(|sink| sink.pieces.is_empty());
        let (Some(mut sink), true) = (free, bytes <= AT_ONCE_MAX) else {
            return Some(frame);
        };
        let permit = frame.lay_down(&mut sink.pieces)?;
        match sink.write_at_once() {
            Ok(true) => {
                self.sent.inc_by(bytes as u64);
                None
            }
            Ok(false) => Some(Outgoing::Rest { bytes, permit }),
            Err(error) => {
                tracing::debug!(%error, "writing to a client failed");
                self.close.cancel();
                None
            }
        }
    }
}

/// Sends the one reply of a request. Dropping it sends none and frees the request's place.
pub struct ReplySender {
    outlet: Outlet,
    room: Room,
    /// What it answers, when that is a read; anything else is small and always passes.
    read: Option<Read>,
    permit: OwnedSemaphorePermit,
}

impl ReplySender {
    pub(super) fn new(outlet: Outlet, permit: OwnedSemaphorePermit) -> Self {
        let queued = Arc::clone(&outlet.queued);
        Self {
            outlet,
            room: Room { queued, bytes: 0 },
            read: None,
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

    /// Writes the reply when its request is the only one under way, and queues it otherwise. The queue has room for every
    /// request that may be in flight, so this never waits.
    pub fn send(self, header: Box<ReplyHeader>, body: Vec<Bytes>) {
        let Self {
            outlet,
            room,
            read,
            permit,
        } = self;
        drop(room);
        let queued = &outlet.queued;
        let alone = permit.semaphore().available_permits() == IN_FLIGHT_MAX - 1;
        let mut frame = Outgoing::Reply { header, body, permit };
        let bytes = frame.frame_len();
        let too_much = |read: &Read| {
            let own = queued.bytes.load(Ordering::Relaxed) + bytes;
            (read.waits && own > UNREAD_MAX) || !queued.unread.admits(bytes)
        };
        match read.filter(too_much) {
            None => {}
            Some(Read { commits: false, .. }) => frame.refuse(ErrorCode::TransientNotAccepted),
            Some(Read { commits: true, .. }) => return outlet.close.cancel(),
        }
        let rest = if alone {
            outlet.write_at_once(frame)
        } else {
            Some(frame)
        };
        if let Some(frame) = rest {
            queued.add(frame.frame_len());
            // A closed queue means a closed connection; the client asks again on its next one.
            let _ = outlet.frames.try_send(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iggy_protocol::header::RequestHeader;
    use iggy_protocol::operation::Operation;
    use tokio::io::AsyncReadExt;
    use tokio::sync::Semaphore;

    struct Peer {
        node: Arc<NodeUnread>,
        queued: Arc<Queued>,
        close: CancellationToken,
        outlet: Outlet,
        received: mpsc::Receiver<Outgoing>,
        socket: tokio::io::DuplexStream,
    }

    impl Peer {
        fn new() -> Self {
            let (frames, received) = mpsc::channel(8);
            let node = Arc::new(NodeUnread::new(4 << 30));
            let queued = Arc::new(Queued::new(Arc::clone(&node)));
            let close = CancellationToken::new();
            let (socket, stream) = tokio::io::duplex(1000);
            let outlet = Outlet {
                sink: Arc::new(Mutex::new(Sink::new(stream))),
                frames,
                queued: Arc::clone(&queued),
                sent: Counter::default(),
                close: close.clone(),
            };
            Self {
                node,
                queued,
                close,
                outlet,
                received,
                socket,
            }
        }

        /// Of a request among others.
        fn sender(&self) -> ReplySender {
            let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
            ReplySender::new(self.outlet.clone(), permit)
        }

        /// Of the only request under way.
        fn lone_sender(&self) -> ReplySender {
            let permit = Arc::new(Semaphore::new(IN_FLIGHT_MAX)).try_acquire_owned().unwrap();
            ReplySender::new(self.outlet.clone(), permit)
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

    #[tokio::test]
    async fn given_the_only_request_when_answered_should_be_written_at_once() {
        let mut peer = Peer::new();
        peer.lone_sender().send(header(), vec![Bytes::from_static(b"body")]);
        assert!(peer.received.try_recv().is_err(), "the writer sleeps on");
        let mut written = [0; 260];
        peer.socket.read_exact(&mut written).await.unwrap();
        assert_eq!((&written[256..], peer.unread()), (&b"body"[..], 0));
        assert_eq!(peer.outlet.sent.get(), 260);
    }

    #[tokio::test]
    async fn given_a_reply_that_the_socket_does_not_take_whole_should_leave_the_rest_to_the_writer_in_order() {
        let peer = Peer::new();
        peer.lone_sender().send(header(), body());
        peer.lone_sender().send(header(), vec![Bytes::from_static(b"next")]);
        assert_eq!(peer.unread(), 1256 + 260, "both wait for the writer");
        let Peer {
            outlet,
            received,
            mut socket,
            queued,
            ..
        } = peer;
        let sink = Arc::clone(&outlet.sink);
        let sent = outlet.sent.clone();
        drop(outlet);
        let writer = crate::connection::writer::write(&sink, received, &queued, sent);
        let mut written = Vec::new();
        let ((), read) = tokio::join!(writer, socket.read_to_end(&mut written));
        assert_eq!(read.unwrap(), 1256 + 260);
        assert_eq!(written[256..1256], [7; 1000]);
        assert_eq!(&written[1256 + 256..], b"next");
        assert_eq!(queued.bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn given_a_socket_that_is_gone_when_written_at_once_should_end_the_connection() {
        let mut peer = Peer::new();
        peer.socket = tokio::io::duplex(1).0;
        peer.lone_sender().send(header(), body());
        assert!(peer.close.is_cancelled());
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
