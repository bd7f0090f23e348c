//! Builds a batch in one buffer, on the producer's side (wire 6).

use bytes::{BufMut, BytesMut};
use zerocopy::{FromBytes, IntoBytes};

use crate::batch::{BatchError, BatchHeader, Frames, ProducerSection, check_message};
use crate::frame::{FrameHeader, frame_checksum};
use crate::limits::{HEADER_SIZE, MESSAGE_FRAME_SIZE};

/// Collects messages and becomes a batch. Payloads are copied once, into the final buffer, and hashed once, by
/// [`BatchBuilder::finish`].
#[derive(Debug)]
pub struct BatchBuilder {
    buffer: BytesMut,
    start: usize,
    origins: Vec<u64>,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::after(BytesMut::new())
    }
}

impl BatchBuilder {
    /// A builder of a batch that stands alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder that writes its batch behind what `prefix` already holds, so that a whole request shares one buffer.
    pub fn after(prefix: BytesMut) -> Self {
        let start = prefix.len();
        let mut buffer = prefix;
        buffer.put_bytes(0, HEADER_SIZE);
        Self {
            buffer,
            start,
            origins: Vec::new(),
        }
    }

    /// Makes room for `messages` frames of `bytes` payload and user header bytes in all.
    pub fn reserve(&mut self, messages: usize, bytes: usize) {
        self.buffer
            .reserve(messages.saturating_mul(MESSAGE_FRAME_SIZE).saturating_add(bytes));
        self.origins.reserve(messages);
    }

    /// Messages so far.
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    /// Whether there is no message yet.
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// Bytes of the batch so far, header included.
    pub fn batch_len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Appends a message. `id` is written as it is: the caller replaces zero by a random one. `origin_timestamp` is in
    /// microseconds since the Unix epoch; `user_headers` is an encoded block, possibly empty.
    pub fn push(
        &mut self,
        id: u128,
        payload: &[u8],
        user_headers: &[u8],
        origin_timestamp: u64,
    ) -> Result<(), BatchError> {
        check_message(payload.len(), user_headers.len())?;
        let index = u32::try_from(self.origins.len()).map_err(|_| BatchError::TooManyMessages)?;
        let header = FrameHeader {
            checksum: 0.into(),
            id: id.into(),
            offset_delta: index.into(),
            timestamp_delta: 0.into(),
            user_headers_length: (user_headers.len() as u32).into(),
            payload_length: (payload.len() as u32).into(),
            reserved: 0.into(),
        };
        self.buffer
            .reserve(MESSAGE_FRAME_SIZE + payload.len() + user_headers.len());
        self.buffer.put_slice(header.as_bytes());
        self.buffer.put_slice(payload);
        self.buffer.put_slice(user_headers);
        self.origins.push(origin_timestamp);
        Ok(())
    }

    /// Completes the batch: times, checksums and header. Returns the buffer, prefix included.
    pub fn finish(mut self, producer: Option<ProducerSection>) -> Result<BytesMut, BatchError> {
        let origin = self.origins.iter().copied().min().ok_or(BatchError::Empty)?;
        let message_count = u32::try_from(self.origins.len()).map_err(|_| BatchError::TooManyMessages)?;
        if let Some(section) = producer {
            section.validate()?;
        }
        let batch_length = self.batch_len() as u64;
        let mut rest = &mut self.buffer[self.start + HEADER_SIZE..];
        for time in &self.origins {
            let delta = u32::try_from(time - origin).map_err(|_| BatchError::TimestampDelta)?;
            let (header, _) = FrameHeader::mut_from_prefix(rest).map_err(|_| BatchError::FramesDoNotTile)?;
            header.timestamp_delta = delta.into();
            let size = MESSAGE_FRAME_SIZE + (header.payload_length.get() + header.user_headers_length.get()) as usize;
            let (frame, tail) = rest.split_at_mut(size);
            let checksum = frame_checksum(frame);
            frame[..8].copy_from_slice(&checksum.to_le_bytes());
            rest = tail;
        }
        let body = &self.buffer[self.start + HEADER_SIZE..];
        let mut header = BatchHeader::zeroed();
        header.origin_timestamp = origin.into();
        header.batch_length = batch_length.into();
        header.message_count = message_count.into();
        header.set_producer(producer);
        header.batch_checksum = header
            .computed_checksum(Frames::new(body).map(|frame| frame.checksum()))
            .into();
        self.buffer[self.start..self.start + HEADER_SIZE].copy_from_slice(header.as_array());
        Ok(self.buffer)
    }
}
