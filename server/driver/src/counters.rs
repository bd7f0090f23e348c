//! What a partition tells the rest of the node about itself, without locks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of one partition, written by its shard after each change.
#[derive(Debug, Default)]
pub struct PartitionCounters {
    /// Segments.
    pub segments: AtomicU64,
    /// Offset of the newest message.
    pub current_offset: AtomicU64,
    /// Bytes of all segments.
    pub size_bytes: AtomicU64,
    /// Messages that can be read.
    pub messages: AtomicU64,
    /// Messages appended since the process started.
    pub appended: AtomicU64,
    /// Messages sent to consumers since the process started.
    pub polled: AtomicU64,
}

impl PartitionCounters {
    pub(crate) fn count_appended(&self, messages: u32) {
        self.appended.fetch_add(messages.into(), Ordering::Relaxed);
    }

    pub(crate) fn count_polled(&self, messages: u32) {
        self.polled.fetch_add(messages.into(), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, segments: u64, current_offset: u64, size_bytes: u64, messages: u64) {
        // Each number stands for itself; readers show them to people.
        self.segments.store(segments, Ordering::Relaxed);
        self.current_offset.store(current_offset, Ordering::Relaxed);
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
    }
}
