//! What a member on its way to the state of another one has of it already.
//!
//! The segments that were put aside are read from their start to their end. Each batch that is undamaged is offered by the
//! checksum of its header, which covers the rest of it; what the other member has not got as well is not taken.

use bytes::Bytes;
use iggy_consensus::codec::HELD_MAX;
use iggy_partition::aside::{Aside, checksum, undamaged};
use iggy_protocol::batch::BatchView;
use std::collections::VecDeque;

/// Bytes read at once, unless one batch alone is larger.
const READ_BYTES: u64 = 1 << 20;
/// Bytes of the largest batch that is read: what a frame limit lets in.
const BATCH_BYTES_MAX: u64 = 1 << 30;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Salvage {
    segments: VecDeque<Aside>,
    /// Bytes of the first segment that were looked at.
    position: u64,
    /// Bytes to read next.
    wanted: u64,
    /// Undamaged batches, in their order.
    in_hand: VecDeque<Bytes>,
    /// Number of the read under way.
    reading: Option<u64>,
}

/// A part of a segment to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub segment: Aside,
    pub position: u64,
    pub length: u64,
}

impl Salvage {
    pub fn of(segments: &[Aside]) -> Self {
        Self {
            segments: segments.iter().copied().collect(),
            wanted: READ_BYTES,
            ..Self::default()
        }
    }

    /// What must be read before it is known what there is from `next` on; `None` when nothing is.
    pub fn wanted(&mut self, next: u64) -> Option<Wanted> {
        while self.in_hand.front().is_some_and(|batch| first_offset(batch) < next) {
            self.in_hand.pop_front();
        }
        if !self.in_hand.is_empty() {
            return None;
        }
        // A segment ends where the next one begins.
        while self.segments.get(1).is_some_and(|second| second.base_offset <= next) {
            self.leave_segment();
        }
        let segment = *self.segments.front()?;
        Some(Wanted {
            segment,
            position: self.position,
            length: self.wanted,
        })
    }

    pub fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    pub fn begin_reading(&mut self, number: u64) {
        self.reading = Some(number);
    }

    /// Takes the bytes of a read; `None` when it failed. False when it is not the one that was begun last.
    pub fn read(&mut self, number: u64, bytes: Option<&Bytes>) -> bool {
        if self.reading != Some(number) {
            return false;
        }
        self.reading = None;
        let Some(bytes) = bytes else {
            self.leave_segment();
            return true;
        };
        let found = undamaged(bytes);
        self.in_hand.extend(found.batches);
        self.position += found.looked_at;
        self.wanted = READ_BYTES;
        let left = self
            .segments
            .front()
            .map_or(0, |segment| segment.length.saturating_sub(self.position));
        match found.needed {
            Some(needed) if needed <= left.min(BATCH_BYTES_MAX) => self.wanted = needed.max(READ_BYTES),
            _ => self.leave_segment(),
        }
        true
    }

    fn leave_segment(&mut self) {
        self.segments.pop_front();
        self.position = 0;
        self.wanted = READ_BYTES;
    }

    /// First offset that need not be sent, and the checksums of the batches that are here from `next` on.
    pub fn offer(&self, next: u64) -> (u64, Vec<u128>) {
        let Some(first) = self.in_hand.front().map(first_offset) else {
            return (u64::MAX, Vec::new());
        };
        if first != next {
            return (first, Vec::new());
        }
        let mut until = next;
        let mut held = Vec::new();
        for batch in self.in_hand.iter().take(HELD_MAX) {
            if first_offset(batch) != until {
                break;
            }
            held.push(checksum(batch));
            until = last_offset(batch) + 1;
        }
        (until, held)
    }

    /// The next batch, when it begins at `next` and is the one with this checksum.
    pub fn take(&mut self, next: u64, known_by: u128) -> Option<Bytes> {
        let is_it = |batch: &&mut Bytes| first_offset(batch) == next && checksum(batch) == known_by;
        self.in_hand.front_mut().filter(is_it)?;
        self.in_hand.pop_front()
    }
}

fn first_offset(batch: &Bytes) -> u64 {
    BatchView::split_first_unwalked(batch).map_or(0, |(batch, _)| batch.header().base_offset.get())
}

fn last_offset(batch: &Bytes) -> u64 {
    BatchView::split_first_unwalked(batch).map_or(0, |(batch, _)| batch.last_offset())
}

/// How many of the batches that another member holds are the first ones here, where the next one begins, and where those
/// end that it wants. `bytes` begin with the first batch at or after the offset asked for, and hold whole batches.
pub(super) fn compare(bytes: &[u8], held: &[u128], until: u64) -> (usize, usize, usize) {
    let mut same = 0;
    let (mut start, mut end) = (0, 0);
    while let Ok((batch, rest)) = BatchView::split_first_unwalked(&bytes[end..]) {
        if batch.header().base_offset.get() >= until {
            break;
        }
        let is_same = start == end && held.get(same) == Some(&checksum(batch.bytes()));
        end = bytes.len() - rest.len();
        if is_same {
            same += 1;
            start = end;
        }
    }
    (same, start, end)
}
