//! The metadata group: changes in, receipts and events out.

use crate::group_log::{GroupLog, Host, LogEvent, Placed};
use crate::heard::NodesHeard;
use crate::members::Members;
use bytes::Bytes;
use iggy_consensus::message::{Kind, Message, StateManifest};
use iggy_consensus::{
    Barrier, Body, Ending, FenceReason, GroupId, Input, LogEnd, Now, Prepare, PrepareHeader, Proposal, RecoveredLog,
    Refusal, Replica, ReplicaConfig, VsrState,
};
use iggy_journal::{Body as JournalBody, BootId, FileNumbers, Policy, Recovered};
use iggy_metadata::{Applied, Change, ChangeError, Metadata, Position, RequestKey, SnapshotError};
use iggy_protocol::operation::Operation;
use iggy_storage::image::Image;
use iggy_storage::{Completion, FileId, Job, Storage, StorageError};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::request::{Ticket, operation_of};

/// Directory of the group below the storage root.
pub const DIRECTORY: &str = "metadata";
/// Bytes of bodies that never come due: metadata has no batches, its journal's own length decides.
const BODIES_DUE: u64 = u64::MAX;

/// Operation byte of changes the node itself makes.
const INTERNAL_OPERATION: Operation = Operation::CompleteLifecycle;

/// Why the metadata of a node cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The journal's part.
    #[error(transparent)]
    Journal(#[from] iggy_journal::RecoverError),
    /// The checkpoint.
    #[error("the metadata checkpoint cannot be used: {0}")]
    Snapshot(#[from] SnapshotError),
    /// A change in the journal.
    #[error("op {op} of the metadata journal cannot be used: {source}")]
    Change {
        /// Its position.
        op: u64,
        /// Cause.
        source: ChangeError,
    },
    /// A prepare that is not a metadata change.
    #[error("op {op} of the metadata journal is a batch of messages")]
    Batch {
        /// Its position.
        op: u64,
    },
}

/// What the group does.
#[derive(Debug)]
pub enum MetadataNotice {
    /// A change was applied; the state is already new.
    Applied {
        /// Who proposed it here, if anybody.
        ticket: Option<Ticket>,
        /// Answer and consequences.
        applied: Applied,
    },
    /// A change was not taken; nothing was written.
    Refused {
        /// Who proposed it.
        ticket: Ticket,
        /// Why.
        refusal: Refusal,
    },
    /// A change may or may not have been written; the group takes no more.
    Uncertain {
        /// Who proposed it.
        ticket: Ticket,
    },
    /// The group takes no more writes.
    Fenced {
        /// Why.
        reason: FenceReason,
        /// What the disk said.
        cause: StorageError,
    },
    /// The directory could not be opened.
    OpenFailed(StorageError),
    /// Something that nobody waits for failed.
    Trouble(StorageError),
    /// [`MetadataGroup::stop`] is done.
    Stopped,
    /// Another member is to be told something.
    Send {
        /// Member.
        to: u8,
        /// What.
        message: Message,
    },
    /// The replica leads the metadata, or no longer does.
    Role {
        /// Whether it leads.
        leads: bool,
        /// View.
        view: u32,
    },
    /// The whole state was replaced by that of another member: everything that follows from it must be looked at again.
    Replaced,
    /// Acknowledged changes are lost beyond what was promised, for so many times now.
    HistoryLost(u64),
    /// [`MetadataGroup::tick`] is wanted at this microsecond of the monotonic clock.
    Deadline(u64),
    /// The log holds a change that this release cannot apply.
    Unreadable(ChangeError),
}

/// A change in the log that is not applied. Changes from other members, and those that recovery found, have no ticket.
#[derive(Debug)]
struct Pending {
    header: Arc<PrepareHeader>,
    body: Bytes,
    ticket: Option<Ticket>,
}

/// The changes in flight, for the log.
struct Held<'a> {
    pending: &'a mut VecDeque<Pending>,
    dropped: &'a mut Vec<Ticket>,
}

impl Host for Held<'_> {
    fn appended(&mut self, prepare: &Prepare, _: &mut FileNumbers) -> Option<Placed> {
        self.pending.push_back(Pending::new(prepare));
        None
    }

    fn truncated(&mut self, op: u64, _: &mut FileNumbers) -> (Job, Option<FileId>) {
        let kept = self.pending.partition_point(|pending| pending.header.op.get() <= op);
        self.dropped
            .extend(self.pending.drain(kept..).filter_map(|pending| pending.ticket));
        (Job::new(), None)
    }
}

impl Pending {
    fn new(prepare: &Prepare) -> Self {
        let body = match &prepare.body {
            Body::Inline(bytes) => bytes.clone(),
            Body::Batch { .. } => Bytes::new(),
        };
        Self {
            header: prepare.header.clone(),
            body,
            ticket: None,
        }
    }
}

/// The state of another member on its way here.
#[derive(Debug)]
struct Incoming {
    from: u8,
    from_scratch: bool,
    state: Option<Bytes>,
    reminders: u32,
}

/// Reminders without an answer after which another member is asked.
const REMINDERS_MAX: u32 = 3;

/// Who the metadata group of a node is.
#[derive(Clone, Copy, Debug)]
pub struct MetadataConfig {
    /// Cluster identity.
    pub cluster: u128,
    /// This boot of the machine.
    pub boot: BootId,
    /// Index of this node among the members.
    pub replica: u8,
    /// Members.
    pub replica_count: u8,
    /// Whether the cluster is being created now. A node that joins one later, or lost its disk, says no.
    pub created: bool,
    /// Facts of the replica.
    pub consensus: ReplicaConfig,
}

/// See the module's page.
#[derive(Debug)]
pub struct MetadataGroup {
    log: GroupLog,
    state: Metadata,
    pending: VecDeque<Pending>,
    dropped: Vec<Ticket>,
    incoming: Option<Incoming>,
    announced: Option<u64>,
    applied: LogEnd,
    config: MetadataConfig,
    opened: bool,
    stopping: bool,
    finishing: bool,
    notices: Vec<MetadataNotice>,
}

fn position_of(header: &PrepareHeader) -> Position {
    Position {
        op: header.op.get(),
        timestamp: header.timestamp.get(),
        checksum: header.checksum.get(),
        view: header.view.get(),
        replica: header.replica,
    }
}

fn request_of(header: &PrepareHeader) -> RequestKey {
    RequestKey {
        client: header.client.get(),
        session: header.session.get(),
        request: header.request.get(),
        request_checksum: header.request_checksum.get(),
        operation: operation_of(header.operation),
        user_id: header.user_id.get(),
    }
}

impl MetadataGroup {
    /// Opens the group, new or recovered. Metadata is always persisted. A member whose directory is damaged starts with
    /// nothing, and knows that it may have held more.
    pub fn open(config: MetadataConfig, image: &dyn Image, storage: &mut dyn Storage) -> Result<Self, MetadataError> {
        let mut fresh = VsrState::new(config.cluster, GroupId::METADATA, config.replica, config.replica_count);
        if !config.created && config.replica_count > 1 {
            fresh.ending = Ending::Amnesia;
        }
        let mut policy = Policy {
            boot: config.boot,
            volatile: false,
            discard: false,
        };
        let mut numbers = FileNumbers::new(0);
        let recover = |policy, numbers: &mut FileNumbers| {
            iggy_journal::recover(image, DIRECTORY, fresh, policy, numbers, &mut |_, _| Ok(false))
        };
        let mut found = recover(policy, &mut numbers)?;
        let replayed = match Self::replay(&found, config.replica_count) {
            Err(_) if config.replica_count > 1 => {
                policy.discard = true;
                found = recover(policy, &mut numbers)?;
                Self::replay(&found, config.replica_count)?
            }
            replayed => replayed?,
        };
        let (state, log) = replayed;
        let applied = log.applied;
        let created = config.created && found.fresh;
        let log = RecoveredLog { created, ..log };
        let uncommitted = log
            .entries
            .iter()
            .filter(|prepare| prepare.header.op.get() > applied.op);
        let pending: VecDeque<Pending> = uncommitted.map(Pending::new).collect();
        let replica = Replica::recover(config.consensus, found.journal.superblock().state, log)
            .expect("recovery checked the chain, and a superblock that contradicts itself is never written");
        let log = GroupLog::new(0, replica, found.journal, numbers, BODIES_DUE, found.open, storage);
        Ok(Self {
            log,
            state,
            pending,
            dropped: Vec::new(),
            incoming: None,
            announced: None,
            applied,
            config,
            opened: false,
            stopping: false,
            finishing: false,
            notices: Vec::new(),
        })
    }

    /// The state at the newest position known to be committed, and the log that follows it.
    fn replay(found: &Recovered, members: u8) -> Result<(Metadata, RecoveredLog), MetadataError> {
        let mut state = match &found.checkpoint {
            Some(bytes) => Metadata::restore(bytes)?,
            None => Metadata::new(),
        };
        let checkpoint = found.journal.superblock().checkpoint;
        let base = LogEnd {
            op: checkpoint.op,
            checksum: checkpoint.prepare_checksum,
            timestamp: checkpoint.timestamp,
        };
        let known = found.records.iter().map(|record| record.header.commit.get()).max();
        let committed = match members {
            1 => found.end.op,
            _ => known.unwrap_or(0).clamp(base.op, found.end.op),
        };
        let mut log = RecoveredLog {
            applied: base,
            base,
            entries: Vec::new(),
            committed,
            created: false,
        };
        for record in &found.records {
            let op = record.header.op.get();
            let JournalBody::Inline(body) = &record.body else {
                return Err(MetadataError::Batch { op });
            };
            let change = Change::decode(body).map_err(|source| MetadataError::Change { op, source })?;
            if op <= committed {
                state.apply(position_of(&record.header), request_of(&record.header), &change);
                log.applied = record.header.end();
            }
            if members > 1 {
                log.entries.push(Prepare {
                    header: record.header.clone(),
                    body: Body::Inline(body.clone()),
                });
            }
        }
        if members == 1 {
            log.base = log.applied;
        }
        Ok((state, log))
    }

    /// Whether what recovery found is on disk. Until then nothing that follows from it may be undone or removed: a loss
    /// of power could still bring an older state back.
    pub fn is_open(&self) -> bool {
        self.opened
    }

    /// The applied state.
    pub fn state(&self) -> &Metadata {
        &self.state
    }

    /// Moves what happened since the last call to the end of `out`.
    pub fn take_notices(&mut self, out: &mut Vec<MetadataNotice>) {
        out.append(&mut self.notices);
    }

    /// Orders a change. Its receipt comes as a notice.
    pub fn propose(
        &mut self,
        now: Now,
        ticket: Ticket,
        mut request: RequestKey,
        change: &Change,
        storage: &mut dyn Storage,
    ) {
        if request.client == 0 {
            request.operation = INTERNAL_OPERATION;
        }
        let admits = if self.stopping {
            Err(Refusal::Fenced)
        } else {
            self.log.admits()
        };
        if let Err(refusal) = admits {
            return self.notices.push(MetadataNotice::Refused { ticket, refusal });
        }
        let proposal = Proposal {
            client: request.client,
            request_checksum: request.request_checksum,
            session: request.session,
            request: request.request,
            user_id: request.user_id,
            owner_generation: 0,
            operation: request.operation.code(),
            timestamp: self.log.replica().next_timestamp(now),
            body: Body::Inline(change.encode()),
            barrier: Barrier::Sync,
        };
        let mut held = Held {
            pending: &mut self.pending,
            dropped: &mut self.dropped,
        };
        match self.log.propose(now, proposal, storage, &mut held) {
            Ok(events) => {
                if let Some(newest) = self.pending.back_mut() {
                    newest.ticket = Some(ticket);
                }
                self.take_events(now, events, storage);
            }
            Err(refusal) => self.notices.push(MetadataNotice::Refused { ticket, refusal }),
        }
    }

    /// Takes the end of a job of this group.
    pub fn completed(&mut self, now: Now, completion: Completion, storage: &mut dyn Storage) {
        let mut held = Held {
            pending: &mut self.pending,
            dropped: &mut self.dropped,
        };
        let events = self.log.completed(now, completion, storage, &mut held);
        self.take_events(now, events, storage);
        self.finish_when_quiet(storage);
    }

    /// Starts the clocks of the replica, once what recovery found is on disk: before that it vouches for nothing.
    fn start(&mut self, now: Now, storage: &mut dyn Storage) {
        let mut held = Held {
            pending: &mut self.pending,
            dropped: &mut self.dropped,
        };
        let events = self.log.start(now, storage, &mut held);
        self.take_events(now, events, storage);
    }

    /// Tells the replica something.
    pub fn step(&mut self, now: Now, input: Input, storage: &mut dyn Storage) {
        let mut held = Held {
            pending: &mut self.pending,
            dropped: &mut self.dropped,
        };
        let events = self.log.step(now, input, storage, &mut held);
        self.take_events(now, events, storage);
        self.finish_when_quiet(storage);
    }

    /// The replica's deadline has come, or an earlier one that no longer matters.
    pub fn tick(&mut self, now: Now, storage: &mut dyn Storage) {
        self.announced = None;
        self.step(now, Input::Tick, storage);
    }

    /// Takes the life of the other nodes for that of its members, where the group rests.
    pub fn vouch(&mut self, heard: &NodesHeard) {
        self.log.vouch(&Members::all(self.config.replica_count), heard);
    }

    /// The replica.
    pub fn replica(&self) -> &Replica {
        self.log.replica()
    }

    /// What of the replica's state is on disk or on its way there.
    pub fn durable_state(&self) -> &VsrState {
        self.log.durable_state()
    }

    /// Whether changes are ordered here, and everything that earlier views acknowledged is applied.
    pub fn leads(&self) -> bool {
        let replica = self.log.replica();
        self.config.replica_count == 1 || (replica.is_primary() && replica.view_start() <= self.applied.op)
    }

    /// Takes what another member says.
    pub fn receive(&mut self, now: Now, message: Message, storage: &mut dyn Storage) {
        if !self.opened {
            return;
        }
        let ours = message.cluster == self.config.cluster && message.group == GroupId::METADATA;
        let from = message.from;
        match message.kind {
            Kind::RequestState if ours => self.give_state(from),
            Kind::State(manifest) if ours => self.take_state(now, from, &manifest, storage),
            _ => self.step(now, Input::Message(message), storage),
        }
    }

    fn tell(&mut self, to: u8, kind: Kind) {
        let message = self.log.replica().message(kind);
        self.notices.push(MetadataNotice::Send { to, message });
    }

    fn give_state(&mut self, to: u8) {
        let known = to < self.config.replica_count && to != self.config.replica;
        if !known || self.incoming.is_some() || !self.opened || self.log.replica().fenced().is_some() {
            return;
        }
        let manifest = StateManifest {
            at: self.applied,
            history: self.log.history(),
            first_offset: 0,
            next_offset: 0,
            state: Bytes::from(self.state.snapshot()),
        };
        self.tell(to, Kind::State(Box::new(manifest)));
    }

    fn fetch_state(&mut self, now: Now, from: u8, from_scratch: bool, storage: &mut dyn Storage) {
        match &mut self.incoming {
            Some(incoming) if incoming.state.is_some() => return,
            Some(incoming) if incoming.from == from && incoming.from_scratch == from_scratch => {
                incoming.reminders += 1;
                if incoming.reminders > REMINDERS_MAX {
                    self.incoming = None;
                    return self.step(now, Input::StateFailed, storage);
                }
            }
            _ => {
                self.incoming = Some(Incoming {
                    from,
                    from_scratch,
                    state: None,
                    reminders: 0,
                });
            }
        }
        self.tell(from, Kind::RequestState);
    }

    fn take_state(&mut self, now: Now, from: u8, manifest: &StateManifest, storage: &mut dyn Storage) {
        let applied = self.applied.op;
        let Some(incoming) = &mut self.incoming else { return };
        if incoming.from != from || incoming.state.is_some() {
            return;
        }
        let at = manifest.at;
        let held = at.op <= applied || self.pending.iter().any(|pending| pending.header.end() == at);
        if held && !incoming.from_scratch {
            self.incoming = None;
            return self.step(now, Input::StateHeld { at }, storage);
        }
        if Metadata::restore(&manifest.state).is_err() {
            self.incoming = None;
            return self.step(now, Input::StateFailed, storage);
        }
        incoming.state = Some(manifest.state.clone());
        self.log.install(at, manifest.state.to_vec(), storage);
    }

    fn state_installed(&mut self, now: Now, at: LogEnd, storage: &mut dyn Storage) {
        let state = self.incoming.take().and_then(|incoming| incoming.state);
        if let Some(Ok(state)) = state.map(|state| Metadata::restore(&state)) {
            self.state = state;
            self.applied = at;
            // What was in flight is in the state, or never was committed.
            let tickets = self.pending.drain(..).filter_map(|pending| pending.ticket);
            self.dropped.extend(tickets);
            self.notices.push(MetadataNotice::Replaced);
        }
        self.step(now, Input::StateInstalled { at }, storage);
    }

    fn take_events(&mut self, now: Now, events: Vec<LogEvent>, storage: &mut dyn Storage) {
        for event in events {
            self.take_event(now, event, storage);
        }
        for ticket in std::mem::take(&mut self.dropped) {
            self.notices.push(MetadataNotice::Uncertain { ticket });
        }
        // A deadline that has passed comes next, but never within this one.
        let next = self.log.replica().next_deadline();
        let next = next.map(|next| next.max(now.monotonic + 1));
        if let Some(next) = next.filter(|next| self.announced.is_none_or(|announced| *next < announced)) {
            self.announced = Some(next);
            self.notices.push(MetadataNotice::Deadline(next));
        }
    }

    fn take_event(&mut self, now: Now, event: LogEvent, storage: &mut dyn Storage) {
        match event {
            LogEvent::Committed(op) => self.committed(op, storage),
            LogEvent::Fenced { reason, cause } => {
                self.give_up();
                self.notices.push(MetadataNotice::Fenced { reason, cause });
            }
            // Old files that stay behind change nothing of what the log promises.
            LogEvent::BackgroundFailed(error) => self.notices.push(MetadataNotice::Trouble(error)),
            LogEvent::OpenFailed(error) => {
                self.give_up();
                self.notices.push(MetadataNotice::OpenFailed(error));
            }
            LogEvent::Finished => self.notices.push(MetadataNotice::Stopped),
            LogEvent::Opened => {
                self.opened = true;
                self.start(now, storage);
            }
            LogEvent::Send { to, message } => self.notices.push(MetadataNotice::Send { to, message }),
            LogEvent::Role => {
                let replica = self.log.replica();
                let (leads, view) = (replica.is_primary(), replica.view());
                if !leads {
                    self.give_up();
                }
                self.notices.push(MetadataNotice::Role { leads, view });
            }
            LogEvent::HistoryLost(history) => self.notices.push(MetadataNotice::HistoryLost(history)),
            LogEvent::FetchState { from, from_scratch } => self.fetch_state(now, from, from_scratch, storage),
            LogEvent::Installed(at) => self.state_installed(now, at, storage),
            LogEvent::Checkpointed(_) | LogEvent::Read { .. } | LogEvent::Written => {}
        }
    }

    /// What is in flight may or may not be applied; nobody here learns it.
    fn give_up(&mut self) {
        let tickets = self.pending.iter_mut().filter_map(|pending| pending.ticket.take());
        self.notices
            .extend(tickets.map(|ticket| MetadataNotice::Uncertain { ticket }));
    }

    fn committed(&mut self, op: u64, storage: &mut dyn Storage) {
        while self
            .pending
            .front()
            .is_some_and(|pending| pending.header.op.get() <= op)
        {
            let Some(pending) = self.pending.pop_front() else { break };
            let change = match Change::decode(&pending.body) {
                Ok(change) => change,
                Err(error) => {
                    self.stopping = true;
                    return self.notices.push(MetadataNotice::Unreadable(error));
                }
            };
            let at = position_of(&pending.header);
            self.applied = pending.header.end();
            let applied = self.state.apply(at, request_of(&pending.header), &change);
            self.notices.push(MetadataNotice::Applied {
                ticket: pending.ticket,
                applied,
            });
        }
        if self.log.wants_checkpoint(self.applied.op) {
            self.log.checkpoint(self.applied, self.state.snapshot(), storage);
        }
    }

    /// Stops in order: takes no more changes and leaves everything on disk.
    pub fn stop(&mut self, storage: &mut dyn Storage) {
        self.stopping = true;
        self.finish_when_quiet(storage);
    }

    fn finish_when_quiet(&mut self, storage: &mut dyn Storage) {
        if !self.stopping || self.finishing {
            return;
        }
        if self.log.replica().fenced().is_some() {
            self.finishing = true;
            self.notices.push(MetadataNotice::Stopped);
        } else if self.log.is_quiet() {
            self.finishing = true;
            self.log
                .finish(self.applied, self.state.snapshot(), self.config.boot, storage);
        }
    }
}
