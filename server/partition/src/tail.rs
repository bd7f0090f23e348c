//! The newest committed batches, in memory: what most consumers read.

use bytes::Bytes;
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
}

/// A bounded run of the newest batches, without holes.
#[derive(Debug)]
pub struct Tail {
    batches: VecDeque<StoredBatch>,
    bytes: usize,
    bytes_max: usize,
}

impl Tail {
    /// Keeps at most `bytes_max` bytes, but always the newest batch.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            batches: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds the next committed batch.
    pub fn push(&mut self, batch: StoredBatch) {
        self.bytes += batch.len();
        self.batches.push_back(batch);
        while self.bytes > self.bytes_max && self.batches.len() > 1 {
            if let Some(oldest) = self.batches.pop_front() {
                self.bytes -= oldest.len();
            }
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets everything; reads then come from disk.
    pub fn clear(&mut self) {
        self.batches.clear();
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
        self.start().filter(|start| *start <= offset)?;
        let at = self.batches.partition_point(|batch| batch.last_offset < offset);
        Some(self.batches.range(at..))
    }

    /// First offset at or after `timestamp`; `None` when older batches may hold one.
    pub fn offset_at(&self, timestamp: u64) -> Option<u64> {
        self.start_timestamp().filter(|start| *start < timestamp)?;
        let at = self.batches.partition_point(|batch| batch.timestamp < timestamp);
        let end = self.batches.back().map(|batch| batch.last_offset + 1);
        self.batches.get(at).map(|batch| batch.base_offset).or(end)
    }
}
