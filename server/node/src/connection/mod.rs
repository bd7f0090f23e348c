//! A client connection: frames in, requests to whoever serves them, replies out.
//!
//! Faults tolerated: frames that lie about their length, floods, silence, half-open sockets, a reader that does not read.
//! Each costs its own connection at most, and bounded memory.

pub mod frames;
pub mod listener;
pub mod outgoing;
pub mod registry;
mod sink;
pub mod unread;
mod writer;

use crate::dispatch::{Turns, dispatch};
use crate::node::Node;
use crate::shard::ShardMessage;
use bytes::Bytes;
use frames::{FrameError, FrameReader};
use iggy_metadata::SessionKey;
use iggy_protocol::command::Command;
use iggy_protocol::header::{EvictionHeader, EvictionReason, RequestHeader};
use iggy_protocol::operation::Operation;
use outgoing::{IN_FLIGHT_MAX, Outgoing, Outlet, Queued, ReplySender};
use sink::Sink;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Reply bytes that may wait for a socket, or are being read for it, before its requests are no longer taken.
const QUEUED_BYTES_MAX: usize = 16 << 20;
/// Largest frame of a peer that never signed in: logins and binds with room to spare. Whoever has shown no password must
/// not fill the memory with halves of large frames.
const STRANGER_FRAME_MAX: u32 = 64 << 10;

/// Cancels of one connection whose refusals may be unread. A cancel that is taken is not answered.
const CANCELS_MAX: usize = 8;

/// Who a connection acts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Session.
    pub session: SessionKey,
    /// Its user.
    pub user_id: u32,
}

/// A connection, as its requests see it.
pub struct Connection {
    /// The node.
    pub node: Arc<Node>,
    /// Number on this node.
    pub client_id: u32,
    /// Address of the client.
    pub address: SocketAddr,
    bound: Cell<Option<Bound>>,
    /// Whether it ever acted for a session.
    known: Cell<bool>,
    /// Whether a request of it may be waiting at a shard.
    waits: Cell<bool>,
    /// Cancelled when nothing more is read from the client.
    gone: CancellationToken,
    /// Fetches that wait, by request number.
    fetches: RefCell<HashMap<u64, CancellationToken>>,
    /// Whose turn it is in the fetches of each reader.
    pub(crate) fetch_turns: RefCell<Turns>,
    outlet: Outlet,
}

impl Connection {
    /// Who it acts for, once signed in.
    pub fn bound(&self) -> Option<Bound> {
        self.bound.get()
    }

    /// Makes it act for a session, or for none.
    pub fn bind(&self, bound: Option<Bound>) {
        self.bound.set(bound);
        self.known.set(self.known.get() || bound.is_some());
        self.node
            .connections
            .bind(self.client_id, bound.map(|bound| (bound.session, bound.user_id)));
    }

    /// Notes that a request may wait at a shard, which must then hear when the connection is gone.
    pub fn note_wait(&self) {
        self.waits.set(true);
    }

    /// Notes a fetch that may wait; its token is cancelled when the client no longer wants it.
    pub fn start_fetch(&self, request: u64) -> CancellationToken {
        let token = self.gone.child_token();
        self.fetches.borrow_mut().insert(request, token.clone());
        token
    }

    /// Forgets a fetch that is answered.
    pub fn end_fetch(&self, request: u64) {
        self.fetches.borrow_mut().remove(&request);
    }

    /// Ends the wait of a fetch. Unknown ones are ignored.
    pub fn cancel_fetch(&self, request: u64) {
        if let Some(token) = self.fetches.borrow().get(&request) {
            token.cancel();
        }
    }

    /// The way back for the reply of one request.
    pub fn reply_sender(&self, permit: OwnedSemaphorePermit) -> ReplySender {
        ReplySender::new(self.outlet.clone(), permit)
    }

    /// Tells the client why, and ends the connection.
    pub fn evict(&self, header: EvictionHeader) {
        let reason = header.reason().map_or("unknown", EvictionReason::name);
        self.node.metrics.evictions(reason).inc();
        tracing::debug!(client_id = self.client_id, reason, "evicting a client");
        let _ = self.outlet.frames.try_send(Outgoing::Evict(Box::new(header)));
    }
}

/// Serves one connection until it ends.
pub async fn serve<S>(node: Arc<Node>, stream: S, address: SocketAddr)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let close = CancellationToken::new();
    let client_id = node.connections.open(address, close.clone());
    // One place for each request and each cancel, and some for evictions.
    let (frames, outgoing) = mpsc::channel(IN_FLIGHT_MAX + CANCELS_MAX + 8);
    let queued = Arc::new(Queued::new(Arc::clone(&node.unread)));
    let (source, stream) = tokio::io::split(stream);
    let sink = Arc::new(Mutex::new(Sink::new(stream)));
    let sent = node.metrics.sent_bytes.clone();
    let connection = Rc::new(Connection {
        node: Arc::clone(&node),
        client_id,
        address,
        bound: Cell::new(None),
        known: Cell::new(false),
        waits: Cell::new(false),
        gone: close.child_token(),
        fetches: RefCell::default(),
        fetch_turns: RefCell::default(),
        outlet: Outlet {
            sink: Arc::clone(&sink),
            frames,
            queued: Arc::clone(&queued),
            sent: sent.clone(),
            close: close.clone(),
        },
    });
    let writer = tokio::task::spawn_local(async move {
        writer::write(&sink, outgoing, &queued, sent).await;
        close.cancel();
    });
    tokio::select! {
        () = connection.outlet.close.cancelled() => {}
        result = read(&connection, source) => match result {
            Ok(()) => {}
            Err(FrameError::Silent) => {
                let client = connection.bound().map_or(1, |bound| bound.session.client);
                connection.evict(EvictionHeader::new(client, EvictionReason::StaleClient));
            }
            Err(error) => tracing::debug!(client_id, %address, %error, "a connection ended"),
        }
    }
    node.connections.close(client_id);
    // Nobody waits for its fetches any more; what they would store, nobody would have read.
    connection.gone.cancel();
    if connection.waits.get() {
        for shard in &node.shards {
            shard.send_waiting(ShardMessage::Disconnected(client_id)).await;
        }
    }
    // Replies in flight keep the queue open; the writer ends when the last of them is dropped or the socket fails.
    drop(connection);
    let _ = tokio::time::timeout(sink::DEADLINE, writer).await;
}

async fn read<R: AsyncRead>(connection: &Rc<Connection>, source: R) -> Result<(), FrameError> {
    let config = &connection.node.config;
    // A client pings every interval; it is given a fifth more.
    let silence_max: Option<Duration> = config.heartbeat.enabled.then(|| config.heartbeat.interval.mul_f64(1.2));
    let source = Box::pin(source);
    let mut frames = FrameReader::new(source, silence_max);
    let largest = config.message_bus.max_message_size;
    let frame_max = || {
        if connection.known.get() {
            largest
        } else {
            largest.min(STRANGER_FRAME_MAX)
        }
    };
    let in_flight = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    // A cancel frees a place, so it must not wait for one. It keeps its own for as long as a refusal of it is unread.
    let cancels = Arc::new(Semaphore::new(CANCELS_MAX));
    while let Some(frame) = frames.next(frame_max).await? {
        connection.node.metrics.received_bytes.inc_by(frame.len() as u64);
        let header = *RequestHeader::view(&frame)?;
        let places = if is_cancel(&header) {
            &cancels
        } else {
            connection.outlet.queued.at_most(QUEUED_BYTES_MAX).await;
            &in_flight
        };
        let Ok(permit) = Arc::clone(places).acquire_owned().await else {
            return Ok(());
        };
        let body: Bytes = frame.slice(iggy_protocol::limits::HEADER_SIZE..);
        dispatch(connection, header, body, permit)?;
    }
    Ok(())
}

fn is_cancel(header: &RequestHeader) -> bool {
    header.operation() == Some(Operation::NonReplicated) && header.code.get() == Command::CancelDeferred.code()
}
