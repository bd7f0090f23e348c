//! What a partition tells the rest of the node about itself, without locks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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
    /// A bit for each node that is in sync, as far as this node leads the partition.
    in_sync: AtomicU32,
}

impl PartitionCounters {
    pub(crate) fn count_appended(&self, messages: u32) {
        self.appended.fetch_add(messages.into(), Ordering::Relaxed);
    }

    pub(crate) fn count_polled(&self, messages: u32) {
        self.polled.fetch_add(messages.into(), Ordering::Relaxed);
    }

    /// Nodes in sync, ascending; empty where another node leads the partition.
    pub fn in_sync(&self) -> Vec<u8> {
        let nodes = self.in_sync.load(Ordering::Relaxed);
        (0..32).filter(|node| nodes & (1 << node) != 0).collect()
    }

    pub(crate) fn set_in_sync(&self, nodes: impl Iterator<Item = u8>) {
        let bits = nodes.filter_map(|node| 1_u32.checked_shl(node.into()));
        self.in_sync
            .store(bits.fold(0, |all, bit| all | bit), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, segments: u64, current_offset: u64, size_bytes: u64, messages: u64) {
        // Each number stands for itself; readers show them to people.
        self.segments.store(segments, Ordering::Relaxed);
        self.current_offset.store(current_offset, Ordering::Relaxed);
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
    }
}
