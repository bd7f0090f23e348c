//! What goes into a replica and what comes out.

use crate::message::Message;
use crate::{Body, Durability, LogEnd, Prepare, VsrState};
use iggy_storage::IoToken;

/// The time, as the runner of the replica sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds of a clock that never goes back; for deadlines.
    pub monotonic: u64,
    /// Microseconds since the epoch; for timestamps. May jump.
    pub wall: u64,
}

/// Periods of the protocol in microseconds (behaviour 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between two heartbeats of a primary.
    pub heartbeat: u64,
    /// Silence after which a backup wants another view, and a primary no longer believes to be one.
    pub heartbeat_timeout: u64,
    /// Until a prepare that nobody acknowledged is sent again.
    pub prepare_retransmit: u64,
    /// Between two votes for the same view.
    pub view_change_retransmit: u64,
    /// Until a view that does not start is given up for the next.
    pub view_change_status: u64,
    /// Between two questions of a restarted replica for the current view.
    pub request_start_view: u64,
    /// Between two questions for the same prepares, or the same state.
    pub repair_retry: u64,
    /// For a primary that hands over to finish what it has in flight.
    pub drain: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat: 500_000,
            heartbeat_timeout: 5_000_000,
            prepare_retransmit: 250_000,
            view_change_retransmit: 500_000,
            view_change_status: 5_000_000,
            request_start_view: 1_000_000,
            repair_retry: 1_000_000,
            drain: 1_000_000,
        }
    }
}

/// Fixed facts of a replica. `pipeline_max` must be the same on every member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// Prepares that may be in flight, 1..=127.
    pub pipeline_max: usize,
    /// Bytes sent to a backup and not yet acknowledged by it.
    pub credit_bytes: u64,
    /// Bytes of committed prepares kept in memory for replicas that miss them.
    pub retain_bytes: u64,
    /// Prepares sent for one repair request, 1..=1024.
    pub repair_chunk: u64,
    /// Start of this process; rises with every start.
    pub incarnation: u64,
    /// Times a restarted replica asks for the current view before it votes for another.
    pub view_probes: u32,
    /// Microseconds between two heartbeats of a group in which nothing happens and everybody has everything, while
    /// whoever runs the replicas says that their nodes live ([`Replica::vouch`](super::Replica::vouch)). 0: as always.
    pub resting_heartbeat: u64,
    /// Periods.
    pub timing: Timing,
}

impl Default for ReplicaConfig {
    fn default() -> Self {
        Self {
            pipeline_max: 32,
            credit_bytes: 32 << 20,
            retain_bytes: 8 << 20,
            repair_chunk: 128,
            incarnation: 1,
            view_probes: 2,
            resting_heartbeat: 0,
            timing: Timing::default(),
        }
    }
}

/// What must have happened to a prepare before it counts as held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Written: the operating system has it.
    None,
    /// Written and synced, with everything journaled before it.
    Sync,
}

impl From<Durability> for Barrier {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Replicated => Self::None,
            Durability::Persisted => Self::Sync,
        }
    }
}

/// A write for the group to order.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Client identity, 0 for the node's own writes.
    pub client: u128,
    /// Request identity (wire 4.6).
    pub request_checksum: u128,
    /// Session, 0 for the node's own writes.
    pub session: u64,
    /// Request number.
    pub request: u64,
    /// User on whose behalf.
    pub user_id: u32,
    /// Ownership generation the request is bound to.
    pub owner_generation: u64,
    /// Operation byte.
    pub operation: u8,
    /// Microseconds since the epoch, from [`Replica::next_timestamp`](super::Replica::next_timestamp).
    pub timestamp: u64,
    /// Content.
    pub body: Body,
    /// Promise of its acknowledgement.
    pub barrier: Barrier,
}

/// What a replica is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Order this write.
    Propose(Proposal),
    /// An append, truncate or persist effect is done; `false` when it failed.
    IoDone(IoToken, bool),
    /// Another replica speaks.
    Message(Message),
    /// The time of [`Replica::next_deadline`](super::Replica::next_deadline) has come.
    Tick,
    /// Lead no longer: finish what is in flight, then let this member lead. Refused by any but a primary.
    HandOver {
        /// Member to lead.
        to: u8,
    },
    /// An operator accepts that acknowledged writes may be lost; the group goes on with what its reachable members have.
    AcceptLoss,
    /// The state that [`Effect::FetchState`] asked for is applied and on disk.
    StateInstalled {
        /// Position it was applied up to.
        at: LogEnd,
    },
    /// The state being fetched has another write where the log here has `op`.
    StateDiffers {
        /// Oldest position of the own log that is not in the state.
        op: u64,
    },
    /// The state to be fetched is one that the log here reaches: nothing has to be fetched.
    StateHeld {
        /// Position of that state.
        at: LogEnd,
    },
    /// The state could not be had; another member may have it.
    StateFailed,
}

/// What a replica wants done, in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Journal a prepare; answer with [`Input::IoDone`] once the barrier holds.
    Append {
        /// Names the write.
        token: IoToken,
        /// The prepare.
        prepare: Prepare,
        /// What must hold before the answer.
        barrier: Barrier,
    },
    /// Everything journaled after `op` is void; answer with [`Input::IoDone`] once a restart would know it.
    Truncate {
        /// Names the write.
        token: IoToken,
        /// Newest position that stays.
        op: u64,
    },
    /// Keep the state of the replica; answer with [`Input::IoDone`] once it is synced.
    PersistState {
        /// Names the write.
        token: IoToken,
        /// The state.
        state: VsrState,
    },
    /// Everything up to `op` is committed: apply it in order and answer its clients.
    Commit {
        /// Newest committed position.
        op: u64,
    },
    /// Tell another member. May be lost.
    Send {
        /// Member.
        to: u8,
        /// What.
        message: Message,
    },
    /// Replace the applied state by that of another member; answer with [`Input::StateInstalled`] or
    /// [`Input::StateFailed`]. A new one replaces one that is under way.
    FetchState {
        /// Member to ask.
        from: u8,
        /// Whether nothing of the own state counts any more.
        from_scratch: bool,
    },
    /// The proposal was not taken; nothing was written.
    Refuse(Refusal),
    /// The role of the replica changed: [`Replica::status`](super::Replica::status) says to what.
    Role,
    /// The group lost acknowledged writes beyond what it promised, and begins this history. Every member says so once.
    HistoryLost {
        /// Times it has happened.
        history: u64,
    },
    /// The group takes no more writes.
    Fence(FenceReason),
}

/// Effects of one step, in order.
pub type Effects = Vec<Effect>;

/// Why a proposal was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Too many prepares are in flight.
    #[error("the group already has {limit} prepares in flight")]
    PipelineFull {
        /// Most prepares in flight.
        limit: usize,
    },
    /// Another member leads the group, or none does now.
    #[error("this replica does not lead the group; member {primary} may")]
    NotPrimary {
        /// Who leads it in the newest view known here.
        primary: u8,
    },
    /// The group is fenced.
    #[error("the group is fenced")]
    Fenced,
}

/// Why a group takes no more writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FenceReason {
    /// A write or a sync of the journal failed.
    #[error("writing op {op} to the journal failed")]
    JournalFailed {
        /// The op that could not be written.
        op: u64,
    },
    /// The state of the replica could not be written.
    #[error("writing the state of the replica for view {view} failed")]
    StateFailed {
        /// View that was to be entered.
        view: u32,
    },
    /// The applied state could not be written.
    #[error("writing the checkpoint at op {op} failed")]
    CheckpointFailed {
        /// Newest committed op.
        op: u64,
    },
}

/// Why a replica cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// The group has a number of members that no group can have.
    #[error("the group has {given} members and this replica is member {replica}; 1 to 32 members are allowed")]
    ReplicaCount {
        /// Members of the group.
        given: u8,
        /// Index of this replica.
        replica: u8,
    },
    /// The state contradicts itself.
    #[error("the superblock holds view {view} below log view {log_view}")]
    View {
        /// View.
        view: u32,
        /// Log view.
        log_view: u32,
    },
    /// The log contradicts itself.
    #[error("op {op} of the recovered log does not follow the one before it")]
    Chain {
        /// Position.
        op: u64,
    },
}

/// What a replica does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It takes part in a started view.
    Normal,
    /// It waits for a view to start, or starts it.
    ViewChange,
    /// A view has started, and its log is being completed here.
    Adopting,
    /// It was restarted, or fell too far behind, and asks for the current view.
    Recovering,
}
