//! What a replica must remember across restarts besides its log.

use crate::GroupId;

/// The durable part of a replica's position in the protocol. Kept in the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VsrState {
    /// Cluster identity; a replica of another cluster refuses to start.
    pub cluster: u128,
    /// Group.
    pub group: GroupId,
    /// Index of this replica in the group's members.
    pub replica: u8,
    /// Members of the group.
    pub replica_count: u8,
    /// Newest view this replica takes part in.
    pub view: u32,
    /// View of the log: the last one in which it was a normal replica. Never above `view`.
    pub log_view: u32,
    /// Counts the times acknowledged writes may have been lost beyond what the group tolerates.
    pub history: u64,
}

impl VsrState {
    /// The state of a new group.
    pub const fn new(cluster: u128, group: GroupId, replica: u8, replica_count: u8) -> Self {
        Self {
            cluster,
            group,
            replica,
            replica_count,
            view: 0,
            log_view: 0,
            history: 0,
        }
    }
}

/// Where a recovered log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// Newest op of the log; 0 for an empty one.
    pub op: u64,
    /// Its checksum; 0 for an empty log.
    pub checksum: u128,
    /// Its timestamp in microseconds since the epoch.
    pub timestamp: u64,
}
