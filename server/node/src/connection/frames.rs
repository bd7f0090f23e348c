//! Cuts a byte stream into frames.
//!
//! Memory follows what arrived, not what was announced: a peer that claims a large frame and sends nothing costs its
//! header.

use bytes::{Bytes, BytesMut};
use iggy_protocol::header::{HeaderError, frame_size};
use iggy_protocol::limits::HEADER_SIZE;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// First and largest step in which the buffer of a frame grows.
const GROWTH: usize = 64 * 1024;
const GROWTH_MAX: usize = 4 * 1024 * 1024;
/// Read ahead of a peer that sends frames.
const AHEAD: usize = 16 * 1024;
/// Frames up to this size are copied out of the shared buffer, so that a few bytes do not keep all of it alive.
const COPIED_MAX: usize = 8 * 1024;

/// Why no further frame comes.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer was silent for too long.
    #[error("the peer was silent for too long")]
    Silent,
    /// The header is not one.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads frames.
pub struct FrameReader<R> {
    source: R,
    buffer: BytesMut,
    silence_max: Option<Duration>,
    /// Bytes to read ahead: nothing until the peer has sent a whole frame, so that idle sockets cost next to nothing.
    ahead: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Frames from `source`; an error once nothing came for `silence_max`.
    pub fn new(source: R, silence_max: Option<Duration>) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
            silence_max,
            ahead: 0,
        }
    }

    /// The next frame, `None` at the end of the stream. `frame_max`, in bytes, is asked anew whenever something came,
    /// because it may rise while a frame is waited for.
    ///
    /// Cancel safety: what was read stays in the buffer.
    pub async fn next(&mut self, frame_max: impl Fn() -> u32) -> Result<Option<Bytes>, FrameError> {
        loop {
            let size = match self.buffer.first_chunk::<HEADER_SIZE>() {
                Some(header) => frame_size(header, frame_max())? as usize,
                None => HEADER_SIZE,
            };
            if self.buffer.len() >= size && self.buffer.len() >= HEADER_SIZE {
                let frame = self.buffer.split_to(size);
                self.ahead = AHEAD;
                let small = size <= COPIED_MAX;
                return Ok(Some(if small {
                    Bytes::copy_from_slice(&frame)
                } else {
                    frame.freeze()
                }));
            }
            let missing = size - self.buffer.len();
            let step = self.buffer.len().clamp(GROWTH, GROWTH_MAX);
            self.buffer.reserve(missing.min(step).max(self.ahead));
            if self.read().await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
                };
            }
        }
    }

    async fn read(&mut self) -> Result<usize, FrameError> {
        let read = self.source.read_buf(&mut self.buffer);
        match self.silence_max {
            None => Ok(read.await?),
            Some(silence_max) => tokio::time::timeout(silence_max, read)
                .await
                .map_err(|_| FrameError::Silent)?
                .map_err(Into::into),
        }
    }
}
