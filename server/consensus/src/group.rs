//! Which group a replica belongs to, and what its acknowledgements promise.

/// Names one consensus group for ever: a partition that is deleted and created again is another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId {
    /// 0 for the metadata group; for a partition, bit 63 and its stream (20 bits), topic (12 bits) and id (20 bits).
    pub namespace: u64,
    /// Metadata position that created the group; 0 for the metadata group.
    pub incarnation: u64,
}

impl GroupId {
    /// The group that orders streams, topics, users and sessions.
    pub const METADATA: Self = Self {
        namespace: 0,
        incarnation: 0,
    };

    /// The group of one history of a partition. Ids beyond their space (wire 16) never reach the log, so the parts
    /// cannot overlap.
    pub const fn partition(stream: u32, topic: u32, partition: u32, incarnation: u64) -> Self {
        let namespace = 1 << 63 | (stream as u64) << 32 | (topic as u64 & 0xfff) << 20 | (partition as u64 & 0xf_ffff);
        Self { namespace, incarnation }
    }
}

/// What an acknowledgement of a group promises (wire 5.8, options `durability` and `consumer_offset_durability`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// With a quorum of replicas; on one node, handed to the operating system. Survives the crash of the process.
    #[default]
    Replicated,
    /// On stable storage at a quorum of replicas. Survives the loss of power.
    Persisted,
}
