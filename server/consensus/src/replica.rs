//! One replica of one group.

use crate::message::Message;
use crate::prepare::{Body, Prepare, PrepareHeader};
use crate::quorum::Quorum;
use crate::state::{LogEnd, VsrState};
use crate::{Durability, GroupId};
use iggy_storage::IoToken;
use std::collections::VecDeque;
use zerocopy::little_endian::{U32, U64, U128};

/// The time, as the runner of the replica sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds of a clock that never goes back; for deadlines.
    pub monotonic: u64,
    /// Microseconds since the epoch; for timestamps. May jump.
    pub wall: u64,
}

/// Fixed facts of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// Prepares that may be in flight, 1..=127.
    pub pipeline_max: usize,
}

impl Default for ReplicaConfig {
    fn default() -> Self {
        Self { pipeline_max: 32 }
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
    /// Microseconds since the epoch, from [`Replica::next_timestamp`].
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
    /// An append or persist effect is done; `false` when it failed.
    IoDone(IoToken, bool),
    /// Another replica speaks.
    Message(Box<Message>),
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
    /// Everything up to `op` is committed: apply it in order and answer its clients.
    Commit {
        /// Newest committed position.
        op: u64,
    },
    /// The proposal was not taken; nothing was written.
    Refuse(Refusal),
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
    /// The group has more members than this release can run.
    #[error("the group has {given} replicas; this release runs groups of 1")]
    ReplicaCount {
        /// Members of the group.
        given: u8,
    },
    /// The state contradicts itself.
    #[error("the superblock holds view {view} below log view {log_view}")]
    View {
        /// View.
        view: u32,
        /// Log view.
        log_view: u32,
    },
}

#[derive(Debug)]
struct InFlight {
    op: u64,
    token: IoToken,
    /// Replicas known to hold it.
    held: u8,
}

/// One replica of one group. See the crate's page for its contract.
#[derive(Debug)]
pub struct Replica {
    config: ReplicaConfig,
    state: VsrState,
    quorum: Quorum,
    head: LogEnd,
    commit: u64,
    pipeline: VecDeque<InFlight>,
    next_token: u64,
    fenced: Option<FenceReason>,
    misrouted: u64,
}

impl Replica {
    /// A replica with the log that recovery found. In a group of one the journal is the quorum, so all of that log is
    /// committed.
    pub fn recover(config: ReplicaConfig, state: VsrState, log: LogEnd) -> Result<Self, RecoverError> {
        let quorum = match Quorum::of(state.replica_count) {
            Some(quorum) if state.replica_count == 1 => quorum,
            _ => {
                return Err(RecoverError::ReplicaCount {
                    given: state.replica_count,
                });
            }
        };
        if state.view < state.log_view {
            return Err(RecoverError::View {
                view: state.view,
                log_view: state.log_view,
            });
        }
        Ok(Self {
            config,
            state,
            quorum,
            head: log,
            commit: log.op,
            pipeline: VecDeque::new(),
            next_token: 0,
            fenced: None,
            misrouted: 0,
        })
    }

    /// Group of this replica.
    pub fn group(&self) -> GroupId {
        self.state.group
    }

    /// View this replica is in.
    pub fn view(&self) -> u32 {
        self.state.view
    }

    /// Index of this replica in the group.
    pub fn index(&self) -> u8 {
        self.state.replica
    }

    /// Whether this replica orders the group's writes.
    pub fn is_primary(&self) -> bool {
        self.state.view % u32::from(self.state.replica_count) == u32::from(self.state.replica)
    }

    /// Newest position of the log, committed or not.
    pub fn op(&self) -> u64 {
        self.head.op
    }

    /// Newest committed position.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// Prepares in flight.
    pub fn in_flight(&self) -> usize {
        self.pipeline.len()
    }

    /// Why the group takes no writes, if it is fenced.
    pub fn fenced(&self) -> Option<FenceReason> {
        self.fenced
    }

    /// Messages that were not for this replica.
    pub fn misrouted(&self) -> u64 {
        self.misrouted
    }

    /// When the replica wants to be stepped without an input, in microseconds of [`Now::monotonic`]. A group of one
    /// waits for nothing but its disk.
    pub fn next_deadline(&self) -> Option<u64> {
        None
    }

    /// The timestamp of a write proposed now: the wall clock, but always above the one before.
    pub fn next_timestamp(&self, now: Now) -> u64 {
        now.wall.max(self.head.timestamp + 1)
    }

    /// Whether a proposal made now would be taken.
    pub fn admits(&self) -> Result<(), Refusal> {
        if self.fenced.is_some() {
            return Err(Refusal::Fenced);
        }
        if self.pipeline.len() >= self.config.pipeline_max {
            return Err(Refusal::PipelineFull {
                limit: self.config.pipeline_max,
            });
        }
        Ok(())
    }

    /// Takes one input; what must be done about it is appended to `effects`.
    pub fn step(&mut self, _now: Now, input: Input, effects: &mut Effects) {
        match input {
            Input::Propose(proposal) => match self.admits() {
                Ok(()) => self.prepare(proposal, effects),
                Err(refusal) => effects.push(Effect::Refuse(refusal)),
            },
            Input::IoDone(token, true) => self.journaled(token, effects),
            Input::IoDone(token, false) => self.write_failed(token, effects),
            Input::Message(_) => self.misrouted += 1,
        }
    }

    fn prepare(&mut self, proposal: Proposal, effects: &mut Effects) {
        debug_assert!(proposal.timestamp > self.head.timestamp, "timestamps rise with the log");
        let op = self.head.op + 1;
        let header = PrepareHeader {
            parent: U128::new(self.head.checksum),
            cluster: U128::new(self.state.cluster),
            client: U128::new(proposal.client),
            request_checksum: U128::new(proposal.request_checksum),
            namespace: U64::new(self.state.group.namespace),
            incarnation: U64::new(self.state.group.incarnation),
            op: U64::new(op),
            commit: U64::new(self.commit),
            timestamp: U64::new(proposal.timestamp),
            session: U64::new(proposal.session),
            request: U64::new(proposal.request),
            owner_generation: U64::new(proposal.owner_generation),
            view: U32::new(self.state.view),
            user_id: U32::new(proposal.user_id),
            operation: proposal.operation,
            replica: self.state.replica,
            ..PrepareHeader::zeroed()
        };
        let prepare = Prepare::seal(header, proposal.body);
        self.head = LogEnd {
            op,
            checksum: prepare.header.checksum.get(),
            timestamp: proposal.timestamp,
        };
        self.next_token += 1;
        let token = IoToken(self.next_token);
        self.pipeline.push_back(InFlight { op, token, held: 0 });
        effects.push(Effect::Append {
            token,
            prepare,
            barrier: proposal.barrier,
        });
    }

    fn journaled(&mut self, token: IoToken, effects: &mut Effects) {
        let Some(index) = self.pipeline.iter().position(|in_flight| in_flight.token == token) else {
            return;
        };
        self.emit_ack(index, effects);
    }

    /// The one place where a prepare becomes held. The journal answers only when the barrier of the prepare holds, so
    /// whoever is acknowledged here gets what the group promises.
    fn emit_ack(&mut self, index: usize, effects: &mut Effects) {
        self.pipeline[index].held += 1;
        let before = self.commit;
        while let Some(first) = self.pipeline.front() {
            if first.held < self.quorum.replication || self.fenced.is_some() {
                break;
            }
            self.commit = first.op;
            self.pipeline.pop_front();
        }
        if self.commit > before {
            effects.push(Effect::Commit { op: self.commit });
        }
    }

    fn write_failed(&mut self, token: IoToken, effects: &mut Effects) {
        let failed = self.pipeline.iter().find(|in_flight| in_flight.token == token);
        let Some(op) = failed.map(|in_flight| in_flight.op) else {
            return;
        };
        self.set_fenced(FenceReason::JournalFailed { op }, effects);
    }

    /// Stops taking writes because a checkpoint of the group could not be written.
    pub fn fence(&mut self, effects: &mut Effects) {
        self.set_fenced(FenceReason::CheckpointFailed { op: self.commit }, effects);
    }

    fn set_fenced(&mut self, reason: FenceReason, effects: &mut Effects) {
        if self.fenced.is_none() {
            self.fenced = Some(reason);
            effects.push(Effect::Fence(reason));
        }
    }
}
