//! One replica of one group.
//!
//! `normal` orders writes in a started view, `view_change` finds the next view, `adoption` makes the own log the one a view
//! starts with, and `repair` gets what is missing from others.

mod adoption;
mod interface;
mod normal;
mod repair;
mod view_change;

pub use interface::{
    Barrier, Effect, Effects, FenceReason, Input, Now, Proposal, RecoverError, Refusal, ReplicaConfig, Status, Timing,
};

use crate::log::Log;
use crate::message::{Kind, Message};
use crate::planted::{self, Bug};
use crate::prepare::Prepare;
use crate::quorum::Quorum;
use crate::state::{RecoveredLog, VsrState};
use crate::vote::{Missing, Vote};
use crate::{Ending, GroupId, LogEnd};
use adoption::Adoption;
use iggy_storage::IoToken;
use normal::Peer;
use repair::{Stash, Transfer};
use xxhash_rust::xxh3::xxh3_64;

/// What a replica has seen that should not be; for metrics and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages for another cluster, group, history or member.
    pub misrouted: u64,
    /// Messages of an earlier life of their sender.
    pub outdated: u64,
    /// Prepares that were not what their header says.
    pub damaged: u64,
    /// Times this replica entered a view change.
    pub view_changes: u64,
    /// Times this replica asked for a whole state.
    pub state_transfers: u64,
    /// Prepares sent for repair.
    pub repaired: u64,
    /// Times this replica gave up being primary because it heard too few others.
    pub steps_down: u64,
}

/// When something is due, in microseconds of [`Now::monotonic`].
#[derive(Clone, Copy, Debug, Default)]
struct Timers {
    /// The last sign of life of the primary.
    primary_heard: u64,
    retransmit: u64,
    /// When the present status began.
    since: u64,
    repair: u64,
    probe: u64,
}

#[derive(Clone, Copy, Debug)]
struct HandOver {
    to: u8,
    deadline: u64,
}

/// A vote for a view by [`Kind::StartViewChange`].
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    view: u32,
    at: u64,
}

/// One replica of one group. See the crate's page for its contract.
#[derive(Debug)]
pub struct Replica {
    config: ReplicaConfig,
    quorum: Quorum,
    state: VsrState,
    /// What of `state` is on disk.
    persisted: VsrState,
    persisting: Option<(IoToken, VsrState)>,
    status: Status,
    log: Log,
    /// Newest position of the own log that is known to be committed.
    committed: u64,
    /// Newest position handed out as committed: everything up to it is held here too.
    commit: u64,
    /// Newest position known to be committed, in the own log or not.
    commit_max: u64,
    /// End of the log when the present view started here.
    view_start: u64,
    /// The history that whoever runs the replica knows of.
    told_history: u64,
    /// Newest timestamp seen; never goes back.
    timestamp: u64,
    peers: Vec<Peer>,
    stash: Stash,
    adoption: Option<Adoption>,
    truncating: Option<IoToken>,
    transfer: Option<Transfer>,
    hand_over: Option<HandOver>,
    /// The view this replica wants, 0 for none.
    wish: u32,
    /// As primary: too few others were heard. It says nothing more in this view.
    abdicated: bool,
    /// As backup: until then the primary may rest, and its node's life is taken for its own.
    rests_until: u64,
    votes: Vec<Option<Vote>>,
    missing: Option<Missing>,
    stalled: bool,
    accept_loss: bool,
    probes: u32,
    repair_attempts: u32,
    nonce: u128,
    /// Answers to questions before this one are too old.
    nonce_floor: u128,
    timers: Timers,
    next_token: u64,
    fenced: Option<FenceReason>,
    counters: Counters,
}

impl Replica {
    /// A replica with the log that recovery found. In a group of one the journal is the quorum, so all of that log is
    /// committed; in a larger one the replica first asks for the current view, unless the group is only now created.
    pub fn recover(
        mut config: ReplicaConfig,
        state: VsrState,
        log: impl Into<RecoveredLog>,
    ) -> Result<Self, RecoverError> {
        if planted::has(Bug::ReuseIncarnation) {
            config.incarnation = 1;
        }
        let found: RecoveredLog = log.into();
        if state.replica_count == 1 {
            // Nobody will ever ask for them.
            config.retain_bytes = 0;
        }
        let quorum = Quorum::of(state.replica_count).filter(|_| state.replica < state.replica_count);
        let quorum = quorum.ok_or(RecoverError::ReplicaCount {
            given: state.replica_count,
            replica: state.replica,
        })?;
        if state.view < state.log_view {
            return Err(RecoverError::View {
                view: state.view,
                log_view: state.log_view,
            });
        }
        check_chain(&found)?;
        let count = usize::from(state.replica_count);
        let log = Log::recovered(found.base, found.entries);
        let mut committed = found.committed.min(log.head().op).max(found.applied.op);
        if count == 1 {
            committed = log.head().op;
        }
        let status = if count == 1 || found.created {
            Status::Normal
        } else {
            Status::Recovering
        };
        let timestamp = log.head().timestamp;
        let mut replica = Self {
            config,
            quorum,
            state,
            persisted: state,
            persisting: None,
            status,
            committed,
            commit: found.applied.op,
            commit_max: committed,
            view_start: committed,
            told_history: state.history,
            timestamp,
            peers: vec![Peer::default(); count],
            stash: Stash::default(),
            adoption: None,
            truncating: None,
            transfer: None,
            hand_over: None,
            wish: 0,
            abdicated: false,
            rests_until: 0,
            votes: vec![None; count],
            missing: None,
            stalled: false,
            accept_loss: false,
            probes: 0,
            repair_attempts: 0,
            nonce: u128::from(config.incarnation) << 64,
            nonce_floor: u128::from(config.incarnation) << 64,
            timers: Timers::default(),
            next_token: 0,
            fenced: None,
            counters: Counters::default(),
            log,
        };
        if status == Status::Normal {
            replica.start_peers();
        }
        Ok(replica)
    }

    /// Starts the clocks of a replica. Call it once, before anything else; a group of one does not need it. A restarted
    /// one begins its search for the current view with the first tick.
    pub fn start(&mut self, now: Now, effects: &mut Effects) {
        self.timers = Timers {
            primary_heard: now.monotonic,
            retransmit: now.monotonic,
            since: now.monotonic,
            repair: now.monotonic,
            probe: now.monotonic,
        };
        for peer in &mut self.peers {
            peer.heard = now.monotonic;
            peer.beat = now.monotonic;
        }
        if self.state.replica_count > 1 && self.state.ending != Ending::Amnesia {
            // What was taken over from a newer view than the log's own, in an adoption that did not end, is no part of
            // the log that is voted with. Where the views are forgotten, it may be all there is of one of them.
            let newer = |op: &u64| {
                let header = self.log.header(*op);
                header.is_some_and(|header| header.view.get() > self.state.log_view)
            };
            if let Some(op) = (self.committed + 1..=self.op()).find(newer) {
                self.truncate(op - 1, effects);
            }
        }
        self.apply_commit(effects);
    }

    /// Group of this replica.
    pub fn group(&self) -> GroupId {
        self.state.group
    }

    /// View this replica is in.
    pub fn view(&self) -> u32 {
        self.state.view
    }

    /// Durable state as the replica wants it; what is on disk may be older.
    pub fn state(&self) -> &VsrState {
        &self.state
    }

    /// Index of this replica in the group.
    pub fn index(&self) -> u8 {
        self.state.replica
    }

    /// What the replica does now.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Member that leads a view.
    pub fn primary_of(&self, view: u32) -> u8 {
        (view % u32::from(self.state.replica_count)) as u8
    }

    /// Whether this replica orders the group's writes.
    pub fn is_primary(&self) -> bool {
        self.primary_of(self.state.view) == self.state.replica && self.status == Status::Normal && !self.abdicated
    }

    /// Newest position of the log, committed or not.
    pub fn op(&self) -> u64 {
        self.log.head().op
    }

    /// Newest committed position that is held here.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// End of the log with which the present view started here: until it is committed, what earlier views acknowledged may
    /// be missing from the applied state.
    pub fn view_start(&self) -> u64 {
        self.view_start
    }

    /// Whether it takes part in no started view, or wants another.
    pub fn is_unsettled(&self) -> bool {
        self.state.replica_count > 1 && (self.status != Status::Normal || self.wish != 0)
    }

    /// Whether the next tick begins a search for another view, or after a restart for the present one. Whoever runs many
    /// replicas may put that tick off, so that not all of them search at once.
    pub fn is_about_to_search(&self, now: Now) -> bool {
        if self.state.replica_count == 1 || self.fenced.is_some() {
            return false;
        }
        match self.status {
            Status::Recovering => self.probes == 0 && self.wish == 0,
            _ => self.misses_primary(now),
        }
    }

    /// Prepares in flight.
    pub fn in_flight(&self) -> usize {
        (self.log.head().op - self.commit) as usize
    }

    /// Position, checksum and timestamp of the prepare at `op`; of the oldest one in memory when it is older.
    pub fn end_at(&self, op: u64) -> LogEnd {
        self.log.end_at(op).unwrap_or_else(|| self.log.base())
    }

    /// Bytes of committed prepares kept in memory for replicas that miss them.
    pub fn retained_bytes(&self) -> u64 {
        self.log.through(self.commit) - self.log.through(self.log.base().op)
    }

    /// Forgets the committed prepares: a replica that misses them gets a whole state instead.
    pub fn forget_retained(&mut self) {
        self.log.evict(self.commit, 0);
    }

    /// The prepare at `op`, while it is in memory.
    pub fn prepare(&self, op: u64) -> Option<&Prepare> {
        self.log.get(op)
    }

    /// Why the group takes no writes, if it is fenced.
    pub fn fenced(&self) -> Option<FenceReason> {
        self.fenced
    }

    /// Why no view can start although every member has voted; an operator must decide.
    pub fn stalled(&self) -> Option<Missing> {
        self.missing.filter(|_| self.stalled)
    }

    /// What was seen so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Messages that were not for this replica.
    pub fn misrouted(&self) -> u64 {
        self.counters.misrouted
    }

    /// The timestamp of a write proposed now: the wall clock, but always above the one before.
    pub fn next_timestamp(&self, now: Now) -> u64 {
        now.wall.max(self.log.head().timestamp.max(self.timestamp) + 1)
    }

    /// Whether a proposal made now would be taken.
    pub fn admits(&self) -> Result<(), Refusal> {
        if self.fenced.is_some() {
            return Err(Refusal::Fenced);
        }
        if !self.is_primary() || self.hand_over.is_some() {
            return Err(Refusal::NotPrimary {
                primary: self.primary_of(self.state.view),
            });
        }
        if self.in_flight() >= self.config.pipeline_max {
            return Err(Refusal::PipelineFull {
                limit: self.config.pipeline_max,
            });
        }
        Ok(())
    }

    /// Takes one input; what must be done about it is appended to `effects`.
    pub fn step(&mut self, now: Now, input: Input, effects: &mut Effects) {
        match input {
            Input::Propose(proposal) => match self.admits() {
                Ok(()) => self.propose(now, proposal, effects),
                Err(refusal) => effects.push(Effect::Refuse(refusal)),
            },
            Input::IoDone(token, true) => self.io_done(now, token, effects),
            Input::IoDone(token, false) => self.io_failed(token, effects),
            _ if self.fenced.is_some() => {}
            Input::Message(message) => self.receive(now, message, effects),
            Input::Tick => self.tick(now, effects),
            Input::HandOver { to } => self.begin_hand_over(now, to, effects),
            Input::AcceptLoss => {
                self.accept_loss = true;
                self.judge(now, effects);
            }
            Input::StateInstalled { at } => self.state_installed(now, at, effects),
            Input::StateDiffers { op } => self.state_differs(op, effects),
            Input::StateHeld { at } => self.state_held(now, at, effects),
            Input::StateFailed => self.state_failed(now),
        }
    }

    fn receive(&mut self, now: Now, message: Message, effects: &mut Effects) {
        let Message {
            cluster,
            group,
            from,
            incarnation,
            view,
            kind,
        } = message;
        let fits = cluster == self.state.cluster && group == self.state.group;
        if !fits || from >= self.state.replica_count || from == self.state.replica {
            self.counters.misrouted += 1;
            return;
        }
        let peer = &mut self.peers[usize::from(from)];
        if incarnation < peer.incarnation {
            self.counters.outdated += 1;
            return;
        }
        if incarnation > peer.incarnation {
            // Whatever an earlier life acknowledged or wanted counts no more: it may have forgotten it.
            peer.restarted(incarnation);
            self.votes[usize::from(from)] = None;
        }
        peer.heard = now.monotonic;
        match kind {
            Kind::Prepare(prepare) => self.on_prepare(now, from, view, prepare, effects),
            Kind::PrepareOk { op, checksum } => self.on_prepare_ok(now, from, view, op, checksum, effects),
            Kind::Commit { commit, last } => self.on_commit(now, from, view, commit, last, effects),
            Kind::Heard { rests_at } => self.on_heard(now, from, view, rests_at, effects),
            Kind::StartViewChange { proposed, hand_over } => {
                self.on_start_view_change(now, from, view, proposed, hand_over, effects);
            }
            Kind::DoViewChange(vote) => self.on_do_view_change(now, from, view, *vote, effects),
            Kind::StartView(log) => self.on_start_view(now, from, view, *log, effects),
            Kind::RequestStartView { nonce } => self.on_request_start_view(now, from, nonce, effects),
            Kind::RequestPrepares { from_op, to_op } => self.on_request_prepares(from, from_op, to_op, effects),
            Kind::RepairPrepare { prepare, committed } => {
                self.on_repair_prepare(now, from, view, prepare, committed, effects);
            }
            Kind::RangeEvicted { oldest_op } => self.on_range_evicted(now, from, oldest_op, effects),
            // The host of the replica answers and takes these.
            Kind::RequestState | Kind::State(_) | Kind::RequestBatches { .. } | Kind::Batches { .. } => {}
        }
    }

    /// A message of this replica, in its present view.
    pub fn message(&self, kind: Kind) -> Message {
        Message {
            cluster: self.state.cluster,
            group: self.state.group,
            from: self.state.replica,
            incarnation: self.config.incarnation,
            view: self.state.view,
            kind,
        }
    }

    fn send(&self, to: u8, kind: Kind, effects: &mut Effects) {
        let message = self.message(kind);
        effects.push(Effect::Send { to, message });
    }

    fn broadcast(&self, kind: &Kind, effects: &mut Effects) {
        for to in self.others() {
            self.send(to, kind.clone(), effects);
        }
    }

    fn others(&self) -> impl Iterator<Item = u8> + use<> {
        let me = self.state.replica;
        (0..self.state.replica_count).filter(move |index| *index != me)
    }

    fn token(&mut self) -> IoToken {
        self.next_token += 1;
        IoToken(self.next_token)
    }

    /// Whether this view may be spoken of: it is on disk, so it will not be forgotten.
    fn view_is_durable(&self) -> bool {
        self.persisted.view >= self.state.view || planted::has(Bug::SkipViewPersist)
    }

    /// Writes the state down, one write at a time.
    fn persist(&mut self, effects: &mut Effects) {
        if self.persisting.is_some() || self.persisted == self.state {
            return;
        }
        let token = self.token();
        self.persisting = Some((token, self.state));
        effects.push(Effect::PersistState {
            token,
            state: self.state,
        });
    }

    fn io_done(&mut self, now: Now, token: IoToken, effects: &mut Effects) {
        if self.fenced.is_some() {
            return;
        }
        if let Some((_, state)) = self.persisting.filter(|(persisting, _)| *persisting == token) {
            self.persisted = state;
            self.persisting = None;
            self.persist(effects);
            return self.state_persisted(now, effects);
        }
        if self.truncating == Some(token) {
            self.truncating = None;
        } else if self.log.mark_held(token).is_none() {
            return;
        }
        self.apply_commit(effects);
        self.continue_adoption(now, effects);
        self.emit_ack(now, effects);
    }

    fn io_failed(&mut self, token: IoToken, effects: &mut Effects) {
        let reason = match self.persisting {
            Some((persisting, state)) if persisting == token => FenceReason::StateFailed { view: state.view },
            _ if self.truncating == Some(token) => FenceReason::JournalFailed { op: self.op() },
            _ => match self.log.op_of(token) {
                Some(op) => FenceReason::JournalFailed { op },
                None => return,
            },
        };
        self.set_fenced(reason, effects);
    }

    /// Stops taking writes because a checkpoint of the group could not be written.
    pub fn fence(&mut self, effects: &mut Effects) {
        self.set_fenced(FenceReason::CheckpointFailed { op: self.commit }, effects);
    }

    fn set_fenced(&mut self, reason: FenceReason, effects: &mut Effects) {
        if self.fenced.is_some() {
            return;
        }
        if self.is_primary() && self.state.replica_count > 1 {
            // Its last word: somebody else must lead.
            let proposed = self.state.view + 1;
            let hand_over = true;
            self.broadcast(&Kind::StartViewChange { proposed, hand_over }, effects);
        }
        self.fenced = Some(reason);
        effects.push(Effect::Fence(reason));
    }

    fn set_status(&mut self, now: Now, status: Status, effects: &mut Effects) {
        if self.status != status {
            self.status = status;
            effects.push(Effect::Role);
        }
        self.timers.since = now.monotonic;
    }

    /// A deterministic part of `period`, different for each replica, group and view, so that not all of them act at once.
    fn jitter(&self, period: u64) -> u64 {
        let mut seed = [0; 21];
        seed[..8].copy_from_slice(&self.state.group.namespace.to_le_bytes());
        seed[8..16].copy_from_slice(&self.state.group.incarnation.to_le_bytes());
        seed[16..20].copy_from_slice(&self.state.view.to_le_bytes());
        seed[20] = self.state.replica;
        xxh3_64(&seed) % (period / 2).max(1)
    }

    /// Whether the log is what this view started with and what followed, so that acknowledgements mean something.
    fn is_whole(&self) -> bool {
        let whole = self.status == Status::Normal
            && self.adoption.is_none()
            && self.transfer.is_none()
            && self.persisted.log_view == self.state.view
            && self.state.ending == Ending::Blank
            && self.persisted.ending == Ending::Blank;
        whole || planted::has(Bug::AckWhileAdopting)
    }
}

fn check_chain(found: &RecoveredLog) -> Result<(), RecoverError> {
    let mut end: LogEnd = found.base;
    for prepare in &found.entries {
        let op = prepare.header.op.get();
        if op != end.op + 1 || prepare.header.parent.get() != end.checksum {
            return Err(RecoverError::Chain { op });
        }
        end = prepare.end();
    }
    if found.applied.op < found.base.op || found.applied.op > end.op {
        return Err(RecoverError::Chain { op: found.applied.op });
    }
    Ok(())
}
