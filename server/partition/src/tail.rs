//! The newest committed batches, in memory: what most consumers read.

use bytes::Bytes;
use iggy_protocol::batch::Frames;
use iggy_protocol::limits::HEADER_SIZE;
use std::collections::VecDeque;

/// A committed batch.
#[derive(Clone, Debug)]
pub struct StoredBatch {
    /// Offset of its first message.
    pub base_offset: u64,
    /// Offset of its last message.
    pub last_offset: u64,
    /// Broker time in microseconds since the epoch.
    pub timestamp: u64,
    /// Stamped batch header.
    pub header: Bytes,
    /// Frames.
    pub frames: Bytes,
}

impl StoredBatch {
    /// Bytes of header and frames.
    pub fn len(&self) -> usize {
        self.header.len() + self.frames.len()
    }

    /// Never true: a batch has a header.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a record that holds the messages from `offset` on.
    fn len_from(&self, offset: u64) -> usize {
        if offset <= self.base_offset {
            return self.len();
        }
        let wanted =
            Frames::new(&self.frames).filter(|frame| self.base_offset + u64::from(frame.offset_delta()) >= offset);
        HEADER_SIZE + wanted.map(|frame| frame.bytes().len()).sum::<usize>()
    }
}

/// A bounded run of the newest batches, without holes.
#[derive(Debug)]
pub struct Tail {
    batches: VecDeque<StoredBatch>,
    /// What [`pushed`](Self::pushed) was before each batch.
    before: VecDeque<u64>,
    pushed: u64,
    bytes: usize,
    bytes_max: usize,
}

impl Tail {
    /// Keeps at most `bytes_max` bytes, but always the newest batch.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            batches: VecDeque::new(),
            before: VecDeque::new(),
            pushed: 0,
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds the next committed batch.
    pub fn push(&mut self, batch: StoredBatch) {
        self.bytes += batch.len();
        self.before.push_back(self.pushed);
        self.pushed += batch.len() as u64;
        self.batches.push_back(batch);
        while self.bytes > self.bytes_max && self.batches.len() > 1 {
            if let Some(oldest) = self.batches.pop_front() {
                self.before.pop_front();
                self.bytes -= oldest.len();
            }
        }
    }

    /// Bytes of every batch that was ever added: a clock that runs with the log.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Bytes of the records from `offset` on; `None` when they are no longer all in memory.
    pub fn bytes_from(&self, offset: u64) -> Option<u64> {
        let at = self.at(offset)?;
        let Some(first) = self.batches.get(at) else {
            return Some(0);
        };
        let after = self.pushed - self.before[at] - first.len() as u64;
        Some(after + first.len_from(offset) as u64)
    }

    /// Broker time of the newest batch in memory.
    pub fn last_timestamp(&self) -> Option<u64> {
        self.batches.back().map(|batch| batch.timestamp)
    }

    /// First offset at or after `timestamp` among the batches from the one that holds `offset` on; `None` when those are
    /// no longer all in memory, or none is that new.
    pub fn offset_at_from(&self, timestamp: u64, offset: u64) -> Option<u64> {
        let mut batches = self.from(offset)?;
        batches
            .find(|batch| batch.timestamp >= timestamp)
            .map(|batch| batch.base_offset.max(offset))
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets everything; reads then come from disk.
    pub fn clear(&mut self) {
        self.batches.clear();
        self.before.clear();
        self.bytes = 0;
    }

    /// First offset in memory, if there is one.
    pub fn start(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.base_offset)
    }

    /// Broker time of the first batch in memory.
    pub fn start_timestamp(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.timestamp)
    }

    /// Batches from the one that holds `offset` on; `None` when that is no longer in memory.
    pub fn from(&self, offset: u64) -> Option<impl Iterator<Item = &StoredBatch>> {
        self.at(offset).map(|at| self.batches.range(at..))
    }

    fn at(&self, offset: u64) -> Option<usize> {
        self.start().filter(|start| *start <= offset)?;
        Some(self.batches.partition_point(|batch| batch.last_offset < offset))
    }

    /// First offset at or after `timestamp`; `None` when older batches may hold one.
    pub fn offset_at(&self, timestamp: u64) -> Option<u64> {
        self.start_timestamp().filter(|start| *start < timestamp)?;
        let at = self.batches.partition_point(|batch| batch.timestamp < timestamp);
        let end = self.batches.back().map(|batch| batch.last_offset + 1);
        self.batches.get(at).map(|batch| batch.base_offset).or(end)
    }
}
