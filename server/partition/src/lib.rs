//! One partition: an append-only log of messages and everything that is decided by it.
//!
//! [`state`] is the replicated state: it changes only by applying committed prepares, in order, and holds offsets,
//! owners of groups, retry receipts and idempotent producers. [`segments`] is where the batches lie, [`tail`] keeps the
//! newest of them in memory, [`read`] finds what a poll wants in either. [`admission`] is what the primary checks before
//! a request enters the log. [`recovery`] brings all of it back from a directory.
//!
//! Nothing here touches a disk or a clock: steps go out, bytes and times come in.
//!
//! Faults tolerated: an index that is missing or torn is rebuilt from its segment; bytes after the last journaled batch
//! are cut. A damaged batch before that is refused with its file and position, and never skipped.

pub mod admission;
pub mod aside;
pub mod index;
pub mod operation;
pub mod producers;
pub mod read;
pub mod receipts;
pub mod recovery;
pub mod segments;
pub mod state;
pub mod tail;

use iggy_consensus::Durability;

/// Fixed and changeable properties of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Id within its topic; stamped into every batch.
    pub partition_id: u32,
    /// Most bytes of a segment, unless one batch alone is larger. 1 MiB to 1 GiB.
    pub segment_size: u64,
    /// Whether the space of a segment is set aside when it is started.
    pub preallocate: bool,
    /// What the acknowledgement of a send promises.
    pub durability: Durability,
    /// What the acknowledgement of an offset write promises.
    pub consumer_offset_durability: Durability,
    /// Microseconds after which a sealed segment may go; `u64::MAX` never.
    pub message_expiry: u64,
    /// Most bytes of sealed segments in this partition; `u64::MAX` unlimited.
    pub size_max: u64,
}

impl Settings {
    /// Whether some acknowledgement does not wait for stable storage.
    pub fn is_volatile(&self) -> bool {
        self.durability == Durability::Replicated || self.consumer_offset_durability == Durability::Replicated
    }

    /// Whether some acknowledgement does wait for stable storage, so that new files must be findable after a loss of
    /// power before anything in them counts.
    pub fn is_persisted(&self) -> bool {
        self.durability == Durability::Persisted || self.consumer_offset_durability == Durability::Persisted
    }
}
