//! Collects what a poll returns: pieces of the log, sliced at batch borders, within its limits.
//!
//! A reply is made of pieces that share memory with the log's tail or with what was read from disk: a whole batch is
//! two references, a part of one gets a header of its own.

use crate::tail::StoredBatch;
use bytes::{Bytes, BytesMut};
use iggy_protocol::batch::{BatchError, BatchHeader, BatchView};
use iggy_protocol::batch_slice::slice;
use iggy_protocol::limits::{HEADER_SIZE, MESSAGE_FRAME_SIZE};

/// Bytes of the smallest record: a batch of one empty message.
pub const RECORD_MIN: usize = HEADER_SIZE + MESSAGE_FRAME_SIZE;

/// Limits of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Messages at most.
    pub count: u32,
    /// Bytes of records at most.
    pub max_bytes: usize,
}

/// Messages gathered for a reply.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// Pieces to send, in order.
    pub pieces: Vec<Bytes>,
    /// Messages in them.
    pub messages: u32,
    /// Bytes in them.
    pub bytes: usize,
    /// Offset of the last message.
    pub last_offset: Option<u64>,
    next: u64,
    /// Offset at which the next batch of the log must start, once one was seen on disk.
    follows: Option<u64>,
    /// Whether a first message above the byte limit comes alone.
    oversize: bool,
    limits: Limits,
    full: bool,
}

/// A batch of the log that does not say what the log says.
#[derive(Debug, thiserror::Error)]
#[error("the log is damaged at offset {offset}: {source}")]
pub struct ReadError {
    /// Offset that was being looked for.
    pub offset: u64,
    /// What is wrong.
    pub source: BatchError,
}

/// How far a chunk of a segment went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Bytes of whole batches that were passed.
    pub passed: usize,
    /// Bytes the next batch needs, when the chunk ends inside of it.
    pub needs: Option<u64>,
}

impl Gathered {
    /// Nothing yet; the first message wanted is at or after `from`. With `oversize` the first message may be above the
    /// byte limit and then comes alone.
    pub fn new(from: u64, limits: Limits, oversize: bool) -> Self {
        let full = limits.count == 0;
        Self {
            pieces: Vec::new(),
            messages: 0,
            bytes: 0,
            last_offset: None,
            next: from,
            follows: None,
            oversize,
            limits,
            full,
        }
    }

    /// Offset wanted next.
    pub fn next_offset(&self) -> u64 {
        self.next
    }

    /// Whether no further message can come in.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Room for bytes.
    pub fn bytes_left(&self) -> usize {
        self.limits.max_bytes.saturating_sub(self.bytes)
    }

    /// Takes what fits of a batch in memory. Messages at or after `end` are not yet committed and stay out.
    pub fn take_stored(&mut self, batch: &StoredBatch, end: u64) -> Result<(), ReadError> {
        let whole = self.next <= batch.base_offset && batch.last_offset < end;
        let messages = batch.last_offset - batch.base_offset + 1;
        if whole && messages <= u64::from(self.limits.count - self.messages) && batch.len() <= self.bytes_left() {
            self.pieces.extend([batch.header.clone(), batch.frames.clone()]);
            self.took(messages as u32, batch.len(), batch.last_offset);
            return Ok(());
        }
        let mut joined = BytesMut::with_capacity(batch.len());
        joined.extend_from_slice(&batch.header);
        joined.extend_from_slice(&batch.frames);
        self.take(&joined.freeze(), end)
    }

    /// Takes what fits of one whole batch.
    fn take(&mut self, batch: &Bytes, end: u64) -> Result<(), ReadError> {
        let offset = self.next;
        let damaged = |source| ReadError { offset, source };
        let before_end = u32::try_from(end.saturating_sub(self.next)).unwrap_or(u32::MAX);
        let count = (self.limits.count - self.messages).min(before_end);
        let first = self.messages == 0 && self.oversize;
        let Some(part) = slice(batch, self.next, count, self.bytes_left(), first).map_err(damaged)? else {
            let last = BatchView::split_first_unwalked(batch).map_err(damaged)?.0.last_offset();
            // A batch that has wanted messages but no room for any ends the read; an older one is passed over.
            self.full |= last >= self.next;
            return Ok(());
        };
        let bytes = part.len();
        self.pieces
            .extend([Bytes::copy_from_slice(&part.header), batch.slice(part.body)]);
        self.took(part.message_count, bytes, part.last_offset);
        let all = BatchView::split_first_unwalked(batch).map_err(damaged)?.0.last_offset();
        self.full |= part.last_offset < all;
        Ok(())
    }

    fn took(&mut self, messages: u32, bytes: usize, last_offset: u64) {
        self.messages += messages;
        self.bytes += bytes;
        self.last_offset = Some(last_offset);
        self.next = last_offset + 1;
        self.full |= self.messages >= self.limits.count || self.bytes_left() < RECORD_MIN;
    }

    /// Takes what fits of a chunk read from a segment, which starts at a batch. `from_timestamp` passes over batches
    /// older than it. With `verify` the checksums of every batch that is taken are proved.
    pub fn take_chunk(
        &mut self,
        chunk: &Bytes,
        end: u64,
        from_timestamp: Option<u64>,
        verify: bool,
    ) -> Result<Walked, ReadError> {
        let mut passed = 0;
        while !self.full && self.next < end {
            let rest = &chunk[passed..];
            let Ok(header) = BatchHeader::view(rest) else {
                let needs = (!rest.is_empty()).then_some(HEADER_SIZE as u64);
                return Ok(Walked { passed, needs });
            };
            let offset = self.next;
            let damaged = |source| ReadError { offset, source };
            header.validate().map_err(damaged)?;
            let length = header.batch_length.get();
            if length > rest.len() as u64 {
                return Ok(Walked {
                    passed,
                    needs: Some(length),
                });
            }
            let batch = chunk.slice(passed..passed + length as usize);
            let last = header
                .base_offset
                .get()
                .saturating_add(u64::from(header.message_count.get()) - 1);
            let base = header.base_offset.get();
            // A batch that seems older or newer than it is would be passed over, and its messages with it.
            let skips = from_timestamp.is_none() && base > self.next;
            if skips || self.follows.is_some_and(|follows| follows != base) {
                return Err(damaged(BatchError::OffsetDelta));
            }
            self.follows = last.checked_add(1);
            let wanted = from_timestamp.is_none_or(|from| header.base_timestamp.get() >= from) && last >= self.next;
            passed += length as usize;
            if !wanted {
                continue;
            }
            if verify {
                BatchView::parse(&batch)
                    .and_then(|view| view.verify())
                    .map_err(damaged)?;
            }
            self.next = self.next.max(base);
            self.take(&batch, end)?;
        }
        Ok(Walked { passed, needs: None })
    }
}
