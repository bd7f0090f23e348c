//! One connection: a writer task, a reader task, and a table that matches replies to requests by number.
//!
//! A frame that goes out while nothing else is unanswered is written by its caller, without waking the writer; frames of
//! many callers are gathered by the writer.
//!
//! At most 256 requests are unanswered at once. A caller that goes away leaves its entry behind until the reply comes, so
//! that the server never sees more than that. Everything ends when the stream breaks, a frame cannot be understood, or the
//! server evicts: then every waiting request learns whether its frame had been written.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use iggy_protocol::header::{COMMAND_EVICTION, COMMAND_REPLY, command_of, frame_size};
use iggy_protocol::limits::{DEFAULT_MAX_FRAME_BYTES, HEADER_SIZE, MAX_IN_FLIGHT, MAX_RECORD_BYTES};
use iggy_protocol::{EvictionHeader, ReplyHeader, RequestHeader};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::transport::ByteStream;

/// Largest reply body a client ever reads: the largest fetch, or whatever a server may send in one frame.
pub const MAX_REPLY_BYTES: usize = {
    let fetch = 4 + 56 * 1000 + MAX_RECORD_BYTES;
    if fetch > DEFAULT_MAX_FRAME_BYTES as usize {
        fetch
    } else {
        DEFAULT_MAX_FRAME_BYTES as usize
    }
};

/// Frames up to this size are gathered into one write.
const GATHER_BYTES: usize = 16 * 1024;
/// How long the end of a connection waits for the peer to take what was written.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Gathered bytes that are written without waiting for more.
const GATHER_LIMIT: usize = 64 * 1024;

/// A reply as it came.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its header.
    pub header: ReplyHeader,
    /// Its body.
    pub body: Bytes,
}

/// Why a connection ended.
#[derive(Debug, Clone)]
pub enum CloseReason {
    /// The stream broke, or held something that is no frame.
    Lost(String),
    /// The server ended it.
    Evicted(Box<EvictionHeader>),
    /// We ended it.
    Closed(&'static str),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(reason) => out.write_str(reason),
            Self::Evicted(header) => match header.reason() {
                Some(reason) => write!(out, "the server ended the session: {}", reason.name()),
                None => write!(out, "the server ended the session: reason {}", header.reason),
            },
            Self::Closed(reason) => out.write_str(reason),
        }
    }
}

/// A request without a reply.
#[derive(Debug, Clone)]
pub enum ExchangeError {
    /// The frame was never written.
    NotSent(CloseReason),
    /// The frame may have reached the server.
    Lost(CloseReason),
    /// No reply within the deadline. The frame was written if `sent`.
    Deadline {
        /// Whether the frame was written.
        sent: bool,
    },
}

struct Waiting {
    /// `None` when the caller went away.
    answer: Option<oneshot::Sender<Result<Reply, ExchangeError>>>,
    written: Arc<AtomicBool>,
    reply_limit: usize,
    _slot: OwnedSemaphorePermit,
}

struct Shared {
    waiting: Mutex<HashMap<u64, Waiting>>,
    reason: OnceLock<CloseReason>,
    closed: CancellationToken,
    /// Grows with whatever comes from the peer, and with every part of a large frame that goes to it.
    moved: AtomicU64,
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reason(&self) -> CloseReason {
        self.reason
            .get()
            .cloned()
            .unwrap_or(CloseReason::Closed("the connection is closed"))
    }

    fn close(&self, reason: CloseReason) {
        let _ = self.reason.set(reason);
        self.closed.cancel();
        let reason = self.reason();
        for (_, waiting) in self.table().drain() {
            let lost = if waiting.written.load(Ordering::Acquire) {
                ExchangeError::Lost
            } else {
                ExchangeError::NotSent
            };
            if let Some(answer) = waiting.answer {
                let _ = answer.send(Err(lost(reason.clone())));
            }
        }
    }
}

struct Outgoing {
    frame: Bytes,
    written: Arc<AtomicBool>,
}

/// The writing side of the stream, held by whoever writes.
struct Writing {
    half: WriteHalf<Box<dyn ByteStream>>,
    /// What a caller could not write at once; it goes before everything else.
    rest: Bytes,
}

impl Writing {
    /// Writes what the stream takes without waiting. False when the writer has to go on: with `rest`, or with a flush.
    fn write_at_once(&mut self, frame: &Bytes) -> io::Result<bool> {
        // Nobody is to be woken: the writer asks again itself.
        let mut nobody = Context::from_waker(Waker::noop());
        let mut stream = Pin::new(&mut self.half);
        let taken = match stream.as_mut().poll_write(&mut nobody, frame) {
            Poll::Ready(taken) => taken?,
            Poll::Pending => 0,
        };
        self.rest = frame.slice(taken..);
        let flushed = self.rest.is_empty() && stream.poll_flush(&mut nobody)?.is_ready();
        Ok(flushed)
    }
}

/// An open connection. Dropping it closes it.
pub struct Connection {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Outgoing>,
    writing: Arc<tokio::sync::Mutex<Writing>>,
    slots: Arc<Semaphore>,
    /// Requests before login all carry number 0, so only one may be under way.
    unbound: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Connection(closed: {})", self.is_closed())
    }
}

impl Connection {
    /// Starts the tasks of a dialled stream.
    pub fn start(stream: Box<dyn ByteStream>) -> Arc<Self> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            reason: OnceLock::new(),
            closed: CancellationToken::new(),
            moved: AtomicU64::new(0),
        });
        let (outgoing, frames) = mpsc::channel(MAX_IN_FLIGHT);
        let (reader, half) = tokio::io::split(stream);
        let rest = Bytes::new();
        let writing = Arc::new(tokio::sync::Mutex::new(Writing { half, rest }));
        tokio::spawn(write_frames(writing.clone(), frames, shared.clone()));
        tokio::spawn(read_replies(reader, shared.clone()));
        let slots = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
        Arc::new(Self {
            shared,
            outgoing,
            writing,
            slots,
            unbound: tokio::sync::Mutex::default(),
        })
    }

    /// Whether it ended.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// Why it ended.
    pub fn close_reason(&self) -> CloseReason {
        self.shared.reason()
    }

    /// Rises while the peer shows that it lives. A small frame that the system took shows nothing.
    pub fn moved(&self) -> u64 {
        self.shared.moved.load(Ordering::Relaxed)
    }

    /// Ends it: every waiting request is told.
    pub fn close(&self, reason: &'static str) {
        self.shared.close(CloseReason::Closed(reason));
    }

    /// Sends a frame and waits for its reply until `deadline`. A body above `reply_limit` ends the connection.
    ///
    /// Cancel safe: a dropped call leaves its slot taken until the reply comes and is discarded.
    pub async fn exchange(&self, frame: Bytes, reply_limit: usize, deadline: Instant) -> Result<Reply, ExchangeError> {
        let Ok(header) = RequestHeader::view(&frame) else {
            return Err(ExchangeError::NotSent(CloseReason::Closed("a frame without a header")));
        };
        let number = header.request.get();
        let _alone = match number {
            0 => Some(self.within(deadline, self.unbound.lock()).await?),
            _ => None,
        };
        let slot = self.within(deadline, self.slots.clone().acquire_owned()).await?;
        let slot = slot.map_err(|_| ExchangeError::NotSent(self.close_reason()))?;
        let written = Arc::new(AtomicBool::new(false));
        let permit = self.within(deadline, self.outgoing.reserve()).await?;
        let permit = permit.map_err(|_| ExchangeError::NotSent(self.close_reason()))?;
        let (answer, reply) = oneshot::channel();
        let waiting = Waiting {
            answer: Some(answer),
            written: written.clone(),
            reply_limit,
            _slot: slot,
        };
        let alone = {
            let mut table = self.shared.table();
            table.insert(number, waiting);
            table.len() == 1
        };
        // The close may have drained the table before our entry went in: look again, or nobody would ever answer.
        if self.is_closed() {
            self.shared.table().remove(&number);
            return Err(ExchangeError::NotSent(self.close_reason()));
        }
        if !(alone && self.written_at_once(&frame, &written)) {
            permit.send(Outgoing {
                frame: if written.load(Ordering::Acquire) {
                    Bytes::new()
                } else {
                    frame
                },
                written: written.clone(),
            });
        }
        match tokio::time::timeout_at(deadline, reply).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(lost_or_unsent(&written, self.close_reason())),
            Err(_) => {
                self.forsake(number);
                Err(ExchangeError::Deadline {
                    sent: written.load(Ordering::Acquire),
                })
            }
        }
    }

    /// Writes a frame from here if nobody else writes. False when the writer is needed: for all of the frame, or, once
    /// it is `written`, for what the stream did not take.
    fn written_at_once(&self, frame: &Bytes, written: &AtomicBool) -> bool {
        let Ok(mut writing) = self.writing.try_lock() else {
            return false;
        };
        if !writing.rest.is_empty() {
            return false;
        }
        written.store(true, Ordering::Release);
        match writing.write_at_once(frame) {
            Ok(all) => all,
            Err(error) => {
                self.shared.close(CloseReason::Lost(format!("writing failed: {error}")));
                true
            }
        }
    }

    async fn within<T>(&self, deadline: Instant, wait: impl Future<Output = T>) -> Result<T, ExchangeError> {
        tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => Err(ExchangeError::NotSent(self.close_reason())),
            outcome = tokio::time::timeout_at(deadline, wait) => outcome.map_err(|_| ExchangeError::Deadline { sent: false }),
        }
    }

    /// Keeps the slot of a request nobody waits for any more.
    fn forsake(&self, number: u64) {
        if let Some(waiting) = self.shared.table().get_mut(&number) {
            waiting.answer = None;
        }
    }

    /// Sends a frame that has no reply of its own, such as a cancel, if there is room for it at once.
    pub fn send_unanswered(&self, frame: Bytes) -> bool {
        self.outgoing
            .try_send(Outgoing {
                frame,
                written: Arc::default(),
            })
            .is_ok()
    }

    /// Frees the slot of a request that will have no reply.
    pub fn forget(&self, number: u64) {
        self.shared.table().remove(&number);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.close(CloseReason::Closed("the connection was dropped"));
    }
}

fn lost_or_unsent(written: &AtomicBool, reason: CloseReason) -> ExchangeError {
    if written.load(Ordering::Acquire) {
        ExchangeError::Lost(reason)
    } else {
        ExchangeError::NotSent(reason)
    }
}

async fn write_frames(
    writing: Arc<tokio::sync::Mutex<Writing>>,
    mut frames: mpsc::Receiver<Outgoing>,
    shared: Arc<Shared>,
) {
    let outcome = tokio::select! {
        biased;
        () = shared.closed.cancelled() => Ok(()),
        outcome = write_until_end(&writing, &mut frames, &shared) => outcome,
    };
    if let Err(error) = outcome {
        shared.close(CloseReason::Lost(format!("writing failed: {error}")));
    }
    // A peer that takes nothing any more must not keep the socket.
    let _ = tokio::time::timeout(CLOSE_LIMIT, async { writing.lock().await.half.shutdown().await }).await;
}

/// Gathers small frames that wait together into one write; large ones are written where they lie.
async fn write_until_end(
    writing: &tokio::sync::Mutex<Writing>,
    frames: &mut mpsc::Receiver<Outgoing>,
    shared: &Shared,
) -> io::Result<()> {
    let mut gathered = BytesMut::with_capacity(GATHER_LIMIT);
    while let Some(first) = frames.recv().await {
        let mut writing = writing.lock().await;
        let Writing { half, rest } = &mut *writing;
        write_large(half, rest, shared).await?;
        let mut next = Some(first);
        while let Some(Outgoing { frame, written }) = next {
            // From here on the frame may reach the server, even if the write fails.
            written.store(true, Ordering::Release);
            if frame.len() <= GATHER_BYTES {
                gathered.extend_from_slice(&frame);
            } else {
                half.write_all(&gathered).await?;
                gathered.clear();
                write_large(half, &mut frame.clone(), shared).await?;
            }
            next = if gathered.len() < GATHER_LIMIT {
                frames.try_recv().ok()
            } else {
                None
            };
        }
        half.write_all(&gathered).await?;
        gathered.clear();
        half.flush().await?;
    }
    Ok(())
}

/// Writes part by part, and notes that the peer takes them.
async fn write_large(writer: &mut (impl AsyncWrite + Unpin), frame: &mut Bytes, shared: &Shared) -> io::Result<()> {
    while !frame.is_empty() {
        if writer.write_buf(frame).await? == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        shared.moved.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

async fn read_replies(reader: ReadHalf<Box<dyn ByteStream>>, shared: Arc<Shared>) {
    let mut reader = BufReader::with_capacity(GATHER_LIMIT, reader);
    let reason = tokio::select! {
        biased;
        () = shared.closed.cancelled() => return,
        reason = read_until_end(&mut reader, &shared) => reason,
    };
    shared.close(reason);
}

async fn read_until_end(reader: &mut (impl AsyncRead + Unpin), shared: &Shared) -> CloseReason {
    loop {
        let mut header = [0; HEADER_SIZE];
        if let Err(error) = reader.read_exact(&mut header).await {
            let reason = match error.kind() {
                io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
                _ => format!("reading failed: {error}"),
            };
            return CloseReason::Lost(reason);
        }
        shared.moved.fetch_add(1, Ordering::Relaxed);
        let size = match frame_size(&header, (HEADER_SIZE + MAX_REPLY_BYTES) as u32) {
            Ok(size) => size as usize - HEADER_SIZE,
            Err(error) => return CloseReason::Lost(error.to_string()),
        };
        match command_of(&header) {
            COMMAND_REPLY => {}
            COMMAND_EVICTION => return eviction(&header),
            other => {
                return CloseReason::Lost(format!(
                    "the server sent command {other}, expected 8 (reply) or 13 (eviction)"
                ));
            }
        }
        let Ok(reply_header) = ReplyHeader::view(&header).copied() else {
            return CloseReason::Lost("a reply without a header".to_owned());
        };
        let number = reply_header.request.get();
        let limit = shared
            .table()
            .get(&number)
            .map_or(MAX_REPLY_BYTES, |waiting| waiting.reply_limit);
        if size > limit {
            return CloseReason::Lost(format!(
                "a reply of {size} bytes is above the {limit} that were asked for"
            ));
        }
        let body = match read_body(reader, size, shared).await {
            Ok(body) => body,
            Err(error) => return CloseReason::Lost(format!("reading failed: {error}")),
        };
        let waiting = shared.table().remove(&number);
        if let Some(answer) = waiting.and_then(|waiting| waiting.answer) {
            let _ = answer.send(Ok(Reply {
                header: reply_header,
                body,
            }));
        }
    }
}

fn eviction(header: &[u8; HEADER_SIZE]) -> CloseReason {
    match EvictionHeader::view(header).and_then(|header| header.validate().map(|()| header)) {
        Ok(header) => CloseReason::Evicted(Box::new(*header)),
        Err(error) => CloseReason::Lost(error.to_string()),
    }
}

async fn read_body(reader: &mut (impl AsyncRead + Unpin), size: usize, shared: &Shared) -> io::Result<Bytes> {
    let mut body = BytesMut::with_capacity(size);
    let mut rest = reader.take(size as u64);
    while body.len() < size {
        if rest.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        shared.moved.fetch_add(1, Ordering::Relaxed);
    }
    Ok(body.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iggy_protocol::{Command, Operation};
    use tokio::io::DuplexStream;

    fn frame(number: u64, body: usize) -> Bytes {
        let mut header = RequestHeader::new(Operation::NonReplicated, body);
        header.code = Command::Ping.code().into();
        header.request = number.into();
        let mut frame = BytesMut::from(&header.as_array()[..]);
        frame.resize(HEADER_SIZE + body, 0);
        frame.freeze()
    }

    async fn take(peer: &mut DuplexStream, bytes: usize) {
        let mut taken = vec![0; bytes];
        peer.read_exact(&mut taken).await.unwrap();
    }

    #[tokio::test]
    async fn given_a_large_frame_when_the_peer_takes_it_bit_by_bit_should_show_that_the_peer_lives() {
        let (stream, mut peer) = tokio::io::duplex(1000);
        let connection = Connection::start(Box::new(stream));
        let sending = connection.clone();
        let deadline = Instant::now() + Duration::from_secs(30);
        tokio::spawn(async move { sending.exchange(frame(1, 100_000), MAX_REPLY_BYTES, deadline).await });
        take(&mut peer, 2000).await;
        for _ in 0..20 {
            let moved = connection.moved();
            take(&mut peer, 4000).await;
            assert!(connection.moved() > moved);
        }
    }

    #[tokio::test]
    async fn given_a_small_frame_when_only_the_system_took_it_should_show_nothing() {
        let (stream, mut peer) = tokio::io::duplex(10_000);
        let connection = Connection::start(Box::new(stream));
        let deadline = Instant::now() + Duration::from_secs(30);
        let exchange = connection.exchange(frame(1, 10), MAX_REPLY_BYTES, deadline);
        tokio::select! {
            _ = exchange => panic!("nobody answered"),
            () = take(&mut peer, HEADER_SIZE + 10) => {}
        }
        assert_eq!(connection.moved(), 0);
    }

    /// Takes writes and never flushes or closes, as TLS does over a peer that takes nothing.
    struct Stuck;

    impl AsyncRead for Stuck {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Stuck {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn given_a_peer_that_takes_nothing_when_closed_should_let_the_socket_go() {
        let connection = Connection::start(Box::new(Stuck));
        let writing = Arc::downgrade(&connection.writing);
        connection.close("the client was shut down");
        drop(connection);
        tokio::time::sleep(CLOSE_LIMIT * 2).await;
        assert_eq!(writing.strong_count(), 0);
    }
}
