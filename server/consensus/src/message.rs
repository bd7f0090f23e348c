//! What replicas of one group say to each other.
//!
//! Every message names its cluster, group (with its history), sender, the sender's incarnation and view. A receiver
//! drops what does not fit and counts it. [`codec`](crate::codec) gives the bytes.

use crate::vote::Vote;
use crate::{GroupId, LogEnd, Prepare, PrepareHeader};
use bytes::Bytes;

/// A message with the facts every receiver checks first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Cluster of the sender.
    pub cluster: u128,
    /// Group the message belongs to.
    pub group: GroupId,
    /// Replica that sent it.
    pub from: u8,
    /// Start of the sender's process, so that an answer of an earlier life is not counted. Rises with every start.
    pub incarnation: u64,
    /// View of the sender.
    pub view: u32,
    /// What it says.
    pub kind: Kind,
}

/// The kinds of messages (command numbers of wire 2.1 where it has one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 6: the primary asks a backup to journal a prepare.
    Prepare(Prepare),
    /// 7: a backup holds a prepare and all before it, as their durability demands.
    PrepareOk {
        /// Position held.
        op: u64,
        /// Checksum of the prepare held.
        checksum: u128,
    },
    /// 9: the primary is alive and has committed this far. Travels with those of other groups ([`Beat`]).
    Commit {
        /// Newest committed position.
        commit: u64,
        /// There is nothing else: when the backup says that it has all of it, the primary rests.
        last: bool,
    },
    /// The sender has heard of the primary, or tells a primary of the past that its view is over. Travels as a [`Beat`].
    Heard {
        /// The sender has everything up to this position, all of it committed, and rests too.
        rests_at: Option<u64>,
    },
    /// 10: the sender wants a view to start.
    StartViewChange {
        /// View it wants.
        proposed: u32,
        /// The primary itself hands over; its backups follow.
        hand_over: bool,
    },
    /// 11: the sender's vote for its view.
    DoViewChange(Box<Vote>),
    /// 12: the view has started with this log.
    StartView(Box<ViewLog>),
    /// 17: the sender asks for the current view.
    RequestStartView {
        /// Comes back in the answer, so that an old one is recognised.
        nonce: u128,
    },
    /// 18: the sender misses these prepares.
    RequestPrepares {
        /// First position wanted.
        from_op: u64,
        /// Last position wanted.
        to_op: u64,
    },
    /// 19: an answer to it.
    RepairPrepare {
        /// The prepare.
        prepare: Prepare,
        /// Whether the sender knows it to be committed.
        committed: bool,
    },
    /// 21: the log no longer holds what was asked for; only a state transfer helps.
    RangeEvicted {
        /// Oldest position still held.
        oldest_op: u64,
    },
    /// 22: the host of the sender needs the state of the group.
    RequestState,
    /// The applied state of the sender.
    State(Box<StateManifest>),
    /// The host of the sender needs batches from this message offset on.
    RequestBatches {
        /// First offset wanted.
        offset: u64,
        /// First offset that is not wanted; `u64::MAX` where everything is.
        until: u64,
        /// Checksums of the headers of the batches from `offset` on that lie at the sender, and that nobody has
        /// confirmed.
        held: Vec<u128>,
    },
    /// Whole batches, one after the other.
    Batches {
        /// The offset asked for. Where none is left out, the first batch may begin below it.
        offset: u64,
        /// Those of the checksums given, from the first on, whose batches are left out: they are the same at both.
        same: Vec<u128>,
        /// The batches after those. Nothing at all is there when the sender no longer has them.
        bytes: Bytes,
    },
}

/// The log a view starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewLog {
    /// From the request that is answered, 0 when nobody asked.
    pub nonce: u128,
    /// Times the group has lost acknowledged writes.
    pub history: u64,
    /// Newest position known to be committed. `suffix` begins after it.
    pub committed: LogEnd,
    /// The rest of the log.
    pub suffix: Vec<PrepareHeader>,
}

impl ViewLog {
    /// Newest position of the log.
    pub fn head(&self) -> u64 {
        self.committed.op + self.suffix.len() as u64
    }

    /// Checksum of the prepare at `op`, where this log tells it.
    pub fn checksum(&self, op: u64) -> Option<u128> {
        if op == self.committed.op {
            return Some(self.committed.checksum);
        }
        let at = op.checked_sub(self.committed.op + 1)?;
        self.suffix.get(at as usize).map(|header| header.checksum.get())
    }
}

/// A whole applied state, without the batches it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateManifest {
    /// Position it was applied up to.
    pub at: LogEnd,
    /// Times the group has lost acknowledged writes.
    pub history: u64,
    /// First message offset it has batches for.
    pub first_offset: u64,
    /// Offset after its last message.
    pub next_offset: u64,
    /// The state as a checkpoint holds it.
    pub state: Bytes,
}

/// A heartbeat or its answer, as it travels with those of other groups in one frame per peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Group.
    pub group: GroupId,
    /// View of the sender.
    pub view: u32,
    /// What it says.
    pub word: Word,
}

/// What a heartbeat or its answer says; see [`Kind::Commit`] and [`Kind::Heard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The primary is alive and has committed this far.
    Commit(u64),
    /// The same, and nothing else is under way.
    Last(u64),
    /// The primary was heard.
    Heard,
    /// The same, and its last word is known here: both rest.
    Rests(u64),
}

impl Kind {
    /// A short name, for traces and counters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Prepare(_) => "prepare",
            Self::PrepareOk { .. } => "prepare-ok",
            Self::Commit { .. } => "commit",
            Self::Heard { .. } => "heard",
            Self::StartViewChange { .. } => "start-view-change",
            Self::DoViewChange(_) => "do-view-change",
            Self::StartView(_) => "start-view",
            Self::RequestStartView { .. } => "request-start-view",
            Self::RequestPrepares { .. } => "request-prepares",
            Self::RepairPrepare { .. } => "repair-prepare",
            Self::RangeEvicted { .. } => "range-evicted",
            Self::RequestState => "request-state",
            Self::State(_) => "state",
            Self::RequestBatches { .. } => "request-batches",
            Self::Batches { .. } => "batches",
        }
    }
}
