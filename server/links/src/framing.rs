//! Frames on a link.
//!
//! ```text
//! length u32 | class u8 (1 message, 2 heartbeats) | zero [3] | length bytes
//! ```
//!
//! Small frames are read many at a time. Memory follows what arrived, not what was announced.

use bytes::{Bytes, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes before each frame.
pub const PREFIX_LEN: usize = 8;
/// First and largest step in which the buffer of a large frame grows.
const GROWTH: usize = 64 << 10;
const GROWTH_MAX: usize = 4 << 20;
/// Frames up to this size are copied out of the shared buffer, so that a few bytes do not keep all of it alive.
const COPIED_MAX: usize = 8 << 10;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A message of one group.
    Message = 1,
    /// Heartbeats of many.
    Beats = 2,
}

/// Why no further frame comes.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer was silent for too long.
    #[error("the peer said nothing for {0:?}")]
    Silent(Duration),
    /// A length beyond the bound.
    #[error("a frame of {found} bytes is too large, at most {limit} are allowed (message_bus.max_message_size)")]
    TooLarge {
        /// Its length.
        found: u32,
        /// The bound.
        limit: u32,
    },
    /// The bytes before it are none.
    #[error("what comes is not a frame")]
    Prefix,
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The bytes before a frame.
pub fn prefix(class: Class, length: usize) -> [u8; PREFIX_LEN] {
    // Senders refuse what is larger than a frame may be.
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    [a, b, c, d, class as u8, 0, 0, 0]
}

/// Reads the bytes before a frame: what it is, and its length.
pub fn read_prefix(bytes: [u8; PREFIX_LEN], limit: u32) -> Result<(Class, usize), FrameError> {
    let [a, b, c, d, class, 0, 0, 0] = bytes else {
        return Err(FrameError::Prefix);
    };
    let class = match class {
        1 => Class::Message,
        2 => Class::Beats,
        _ => return Err(FrameError::Prefix),
    };
    let found = u32::from_le_bytes([a, b, c, d]);
    if found > limit {
        return Err(FrameError::TooLarge { found, limit });
    }
    Ok((class, found as usize))
}

/// Reads frames.
pub struct FrameReader<R> {
    source: R,
    buffer: BytesMut,
    ahead: usize,
    limit: u32,
    silence_max: Duration,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Frames of at most `limit` bytes from `source`; an error once nothing came for `silence_max`.
    pub fn new(source: R, ahead: usize, limit: u32, silence_max: Duration) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
            ahead,
            limit,
            silence_max,
        }
    }

    /// The next frame, `None` at the end of the stream.
    ///
    /// Cancel safety: what was read stays in the buffer.
    pub async fn next(&mut self) -> Result<Option<(Class, Bytes)>, FrameError> {
        loop {
            let mut missing = PREFIX_LEN.saturating_sub(self.buffer.len());
            if let Some(bytes) = self.buffer.first_chunk::<PREFIX_LEN>() {
                let (class, length) = read_prefix(*bytes, self.limit)?;
                missing = (PREFIX_LEN + length).saturating_sub(self.buffer.len());
                if missing == 0 {
                    let frame = self.buffer.split_to(PREFIX_LEN + length);
                    let frame = if length <= COPIED_MAX {
                        Bytes::copy_from_slice(&frame[PREFIX_LEN..])
                    } else {
                        frame.freeze().slice(PREFIX_LEN..)
                    };
                    return Ok(Some((class, frame)));
                }
            }
            let step = self.buffer.len().clamp(GROWTH, GROWTH_MAX);
            self.buffer.reserve(missing.min(step).max(self.ahead));
            let read = tokio::time::timeout(self.silence_max, self.source.read_buf(&mut self.buffer));
            let read = read.await.map_err(|_| FrameError::Silent(self.silence_max))?;
            if read? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    const FOREVER: Duration = Duration::from_hours(1);

    fn frame(class: Class, content: &[u8]) -> Vec<u8> {
        [&prefix(class, content.len()), content].concat()
    }

    #[tokio::test]
    async fn given_frames_in_pieces_of_every_size_when_read_should_be_whole_and_in_order() {
        let large = vec![7; 3 * GROWTH];
        let stream = [
            frame(Class::Message, b"one"),
            frame(Class::Beats, b""),
            frame(Class::Message, &large),
        ]
        .concat();
        for size in [1, 7, 4096, stream.len()] {
            let (mut writer, source) = tokio::io::duplex(1 << 16);
            let pieces: Vec<Vec<u8>> = stream.chunks(size).map(<[u8]>::to_vec).collect();
            let sending = tokio::spawn(async move {
                for piece in pieces {
                    writer.write_all(&piece).await.unwrap();
                }
            });
            let mut reader = FrameReader::new(source, 64, 1 << 20, FOREVER);
            assert_eq!(
                reader.next().await.unwrap().unwrap(),
                (Class::Message, Bytes::from_static(b"one"))
            );
            assert_eq!(reader.next().await.unwrap().unwrap(), (Class::Beats, Bytes::new()));
            assert_eq!(reader.next().await.unwrap().unwrap().1, large);
            assert!(reader.next().await.unwrap().is_none());
            sending.await.unwrap();
        }
    }

    #[tokio::test]
    async fn given_a_length_beyond_the_bound_when_read_should_refuse_it_before_it_comes() {
        let bytes = prefix(Class::Message, 101);
        let mut reader = FrameReader::new(&bytes[..], 64, 100, FOREVER);
        let error = reader.next().await.unwrap_err();
        assert!(
            matches!(error, FrameError::TooLarge { found: 101, limit: 100 }),
            "{error}"
        );
        assert!(reader.buffer.capacity() < 1 << 20);
    }

    #[tokio::test]
    async fn given_a_large_frame_that_is_announced_and_does_not_come_should_cost_little() {
        let bytes = prefix(Class::Message, 1 << 30);
        let mut reader = FrameReader::new(&bytes[..], 64, 1 << 30, FOREVER);
        assert!(reader.next().await.is_err());
        assert!(reader.buffer.capacity() <= 2 * GROWTH, "{}", reader.buffer.capacity());
    }

    #[tokio::test]
    async fn given_a_peer_that_falls_silent_when_read_should_say_so() {
        let (_writer, source) = tokio::io::duplex(64);
        let mut reader = FrameReader::new(source, 64, 100, Duration::from_millis(1));
        assert!(matches!(reader.next().await, Err(FrameError::Silent(_))));
    }

    #[test]
    fn given_bytes_that_are_no_prefix_when_read_should_be_refused() {
        for bytes in [[0; 8], [1, 0, 0, 0, 3, 0, 0, 0], [1, 0, 0, 0, 1, 0, 0, 1]] {
            assert!(matches!(read_prefix(bytes, 100), Err(FrameError::Prefix)));
        }
    }
}
