//! The writing side of a connection, held by whoever writes.
//!
//! A reply to the only request under way is written by whoever has it, on whatever thread, without waking the writer;
//! replies to many requests are gathered by the writer.

use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// A peer that takes nothing for this long is given up.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// Pieces of one write; the kernel takes 1,024 at most.
pub const PIECES_MAX: usize = 256;

/// See the module's page.
pub struct Sink {
    stream: Pin<Box<dyn AsyncWrite + Send>>,
    /// What waits to be written.
    pub pieces: VecDeque<Bytes>,
}

impl Sink {
    /// The writing half of a stream.
    pub fn new(stream: impl AsyncWrite + Send + 'static) -> Self {
        Self {
            stream: Box::pin(stream),
            pieces: VecDeque::new(),
        }
    }

    fn poll_pieces(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pieces.is_empty() {
            let slices: Vec<IoSlice<'_>> = self
                .pieces
                .iter()
                .take(PIECES_MAX)
                .map(|piece| IoSlice::new(piece))
                .collect();
            let written = std::task::ready!(self.stream.as_mut().poll_write_vectored(context, &slices))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        self.stream.as_mut().poll_flush(context)
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(first) = self.pieces.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.pieces.pop_front();
        }
    }

    /// Writes what waits as far as the stream takes it now. False when the writer has to go on.
    pub fn write_at_once(&mut self) -> io::Result<bool> {
        // Nobody is to be woken: the writer asks again itself.
        match self.poll_pieces(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Writes all that waits.
    pub async fn write(&mut self) -> io::Result<()> {
        // The deadline begins anew with whatever the peer takes.
        loop {
            let left = self.pieces.iter().map(Bytes::len).sum::<usize>();
            let write = std::future::poll_fn(|context| match self.poll_pieces(context) {
                Poll::Pending if self.pieces.iter().map(Bytes::len).sum::<usize>() < left => Poll::Ready(Ok(false)),
                other => other.map_ok(|()| true),
            });
            let written = tokio::time::timeout(DEADLINE, write).await;
            if written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
                return Ok(());
            }
        }
    }

    /// Ends the stream.
    pub async fn shutdown(&mut self) {
        let _ = tokio::time::timeout(DEADLINE, self.stream.shutdown()).await;
    }
}
