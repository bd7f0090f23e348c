//! What a replica must remember across restarts besides its log, and what a restart found of the log.

use crate::{GroupId, Prepare};

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
    /// What may have followed the end of the log. It outlives restarts until the log holds again what a view started
    /// with: what was forgotten once must not look later as if it had never been.
    pub ending: Ending,
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
            ending: Ending::Blank,
        }
    }
}

/// What a replica can say about the positions after the end of its log. Only [`Ending::Blank`] is a promise; everything
/// else says that a prepare may have been acknowledged there and is gone (simulator S6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// It never acknowledged anything there.
    #[default]
    Blank,
    /// Bytes that are no prepare: a write that a loss of power cut short, or damage to the newest write of all.
    Torn,
    /// What was promised to be in memory alone may be gone with the power.
    Volatile,
    /// Prepares were there and cannot be read, or are being replaced by a state transfer.
    Damaged,
    /// The directory is new although the group is not: not even the view can be believed.
    Amnesia,
}

impl Ending {
    /// The byte it is stored and sent as.
    pub const fn code(self) -> u8 {
        match self {
            Self::Blank => 0,
            Self::Torn => 1,
            Self::Volatile => 2,
            Self::Damaged => 3,
            Self::Amnesia => 4,
        }
    }

    /// The ending with this byte.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Blank,
            1 => Self::Torn,
            2 => Self::Volatile,
            3 => Self::Damaged,
            4 => Self::Amnesia,
            _ => return None,
        })
    }
}

/// Where a log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// Newest op of the log; 0 for an empty one.
    pub op: u64,
    /// Its checksum; 0 for an empty log.
    pub checksum: u128,
    /// Its timestamp in microseconds since the epoch.
    pub timestamp: u64,
}

/// The log that recovery found.
#[derive(Clone, Debug, Default)]
pub struct RecoveredLog {
    /// Newest position that is applied: the checkpoint, and in a group of one everything after it.
    pub applied: LogEnd,
    /// Position before the first of `entries`; at or before `applied`.
    pub base: LogEnd,
    /// The prepares after `base` without a gap, each chained to the one before. Those up to `applied` are kept for
    /// replicas that miss them.
    pub entries: Vec<Prepare>,
    /// Newest position known to be committed.
    pub committed: u64,
    /// Whether the group is being created now. A directory that is missing for any other reason was lost.
    pub created: bool,
}

impl From<LogEnd> for RecoveredLog {
    /// A log of which everything is applied.
    fn from(end: LogEnd) -> Self {
        Self {
            applied: end,
            base: end,
            entries: Vec::new(),
            committed: end.op,
            created: false,
        }
    }
}
