//! What replicas of one group say to each other.
//!
//! A group of one has nobody to talk to: [`Replica::step`](crate::Replica::step) counts and drops whatever arrives.

use crate::{GroupId, Prepare, PrepareHeader};

/// A message with the facts every receiver checks first: cluster, group (with its history) and view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Cluster of the sender.
    pub cluster: u128,
    /// Group the message belongs to.
    pub group: GroupId,
    /// Replica that sent it.
    pub from: u8,
    /// Start of the sender's process, so that an answer of an earlier life is not counted.
    pub incarnation: u64,
    /// View of the sender.
    pub view: u32,
    /// What it says.
    pub kind: Kind,
}

/// The kinds of messages (command numbers of wire 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 6: the primary asks a backup to journal a prepare.
    Prepare(Prepare),
    /// 7: a backup holds a prepare, as the group's durability demands.
    PrepareOk {
        /// Position held.
        op: u64,
        /// Checksum of the prepare held.
        checksum: u128,
    },
    /// 9: the primary is alive and has committed this far.
    Commit {
        /// Newest committed position.
        commit: u64,
        /// Checksum of the prepare there.
        checksum: u128,
    },
    /// 10: the sender wants the view to change.
    StartViewChange,
    /// 11: the sender's vote for the view, with the end of its log.
    DoViewChange {
        /// View of the sender's log.
        log_view: u32,
        /// Newest position the sender knows to be committed.
        commit: u64,
        /// The uncommitted end of the sender's log.
        suffix: Vec<LogSlot>,
    },
    /// 12: the view has started with this log.
    StartView {
        /// Newest committed position.
        commit: u64,
        /// The uncommitted end of the primary's log.
        suffix: Vec<PrepareHeader>,
    },
    /// 17: the sender asks for the current view.
    RequestStartView,
    /// 18: the sender misses these prepares.
    RequestPrepares {
        /// First position wanted.
        from_op: u64,
        /// Last position wanted.
        to_op: u64,
    },
    /// 19: an answer to it.
    RepairPrepare(Prepare),
    /// 20: every prepare asked for and still held has been sent.
    RepairDone,
    /// 21: the log no longer holds what was asked for; only a state transfer helps.
    RangeEvicted {
        /// Oldest position still held.
        oldest_op: u64,
    },
    /// 22: the sender needs a whole state.
    RequestStateTransfer,
}

/// What a replica knows of one position of its log. A position it may once have acknowledged and can no longer prove is
/// a fault, never a blank: a blank counts towards dropping a write, a fault never does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogSlot {
    /// It holds this prepare.
    Held(Box<PrepareHeader>),
    /// It never held a prepare here.
    Blank,
    /// It may have held one, and cannot read it.
    Fault,
}
