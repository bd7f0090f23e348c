//! The log of one group on this node: a replica, its journal, and the jobs between them.
//!
//! Every acknowledgement waits here for what its group promises. A prepare without a barrier counts once it is written.
//! Prepares with one share syncs: while a sync runs, all that is written meanwhile waits for the next one, which covers
//! them together.
//!
//! A checkpoint starts a new journal generation, waits until everything before it is applied, syncs what it stands for
//! and then replaces the old generation. Any failed write or sync fences the group.

use crate::heard::NodesHeard;
use crate::members::Members;
use bytes::Bytes;
use iggy_consensus::message::Message;
use iggy_consensus::{
    Barrier, Effect, Effects, FenceReason, Input, LogEnd, Now, Prepare, Proposal, Refusal, Replica, VsrState,
};
use iggy_journal::planted::{self, Bug};
use iggy_journal::{BodyLocation, BootId, Checkpoint, FileNumbers, Journal};
use iggy_storage::{Completion, FileId, IoToken, Job, LaneId, Storage, StorageError};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a journal generation after which a checkpoint is due. A generation of a partition holds headers, so this is
/// some tens of thousands of requests.
const GENERATION_LEN_DUE: u64 = 8 << 20;
/// Bytes of batches that are always taken before a checkpoint must come.
const WAL_BYTES_MIN: u64 = 4 << 20;
/// Lanes of a group: appends, syncs, background work, and reads side by side.
const READ_LANES: u64 = 8;

#[derive(Clone, Copy)]
enum Lane {
    Append,
    Sync,
    Background,
    Read(u64),
}

/// What a finished job means to the group.
#[derive(Debug)]
pub enum LogEvent {
    /// Everything up to this position is committed.
    Committed(u64),
    /// The group takes no more writes.
    Fenced {
        /// Why the replica stopped.
        reason: FenceReason,
        /// What the disk said.
        cause: StorageError,
    },
    /// A read ended.
    Read {
        /// Number the reader chose.
        id: u64,
        /// Its bytes.
        result: Result<Vec<Bytes>, StorageError>,
    },
    /// The directory is open, and all that recovery found in it is on disk.
    Opened,
    /// A checkpoint at this position has replaced what was before it.
    Checkpointed(u64),
    /// Opening the directory failed; the group cannot be used.
    OpenFailed(StorageError),
    /// Work that nobody waits for failed; it will be tried again or is not needed.
    BackgroundFailed(StorageError),
    /// [`GroupLog::finish`] is done: everything is on disk and marked so.
    Finished,
    /// Another member is to be told something.
    Send {
        /// Member.
        to: u8,
        /// What.
        message: Message,
    },
    /// The replica leads, or no longer does.
    Role,
    /// Acknowledged writes are lost beyond what was promised.
    HistoryLost(u64),
    /// The state of another member is wanted.
    FetchState {
        /// Member.
        from: u8,
        /// Whether nothing of the own state counts.
        from_scratch: bool,
    },
    /// Batches of [`GroupLog::write`] are written.
    Written,
    /// The state given to [`GroupLog::install`] is the checkpoint.
    Installed(LogEnd),
}

/// What a group keeps beside its log: the writes that are not committed, and where their batches lie.
pub trait Host {
    /// A prepare enters the log: finds room for its batch, if it has one.
    fn appended(&mut self, prepare: &Prepare, numbers: &mut FileNumbers) -> Option<Placed>;

    /// Every prepare after `op` leaves the log: the steps that take back what was placed for them, and the file that takes
    /// no more writes.
    fn truncated(&mut self, op: u64, numbers: &mut FileNumbers) -> (Job, Option<FileId>);
}

#[derive(Debug)]
enum Intent {
    Open,
    Rotate,
    Append {
        token: IoToken,
        barrier: Barrier,
        files: Vec<FileId>,
    },
    Sync {
        tokens: Vec<IoToken>,
        files: Vec<FileId>,
    },
    Checkpoint {
        op: u64,
        files: Vec<FileId>,
    },
    Read(u64),
    Background,
    Finish,
    Truncate {
        token: IoToken,
        file: FileId,
    },
    Persist(IoToken),
    Write(Vec<FileId>),
    RotateForInstall {
        at: LogEnd,
        state: Vec<u8>,
    },
    Install {
        at: LogEnd,
        files: Vec<FileId>,
    },
}

/// Where a batch was placed: its location, its file, and the steps that write it.
#[derive(Debug)]
pub struct Placed {
    /// Place named in the journal.
    pub location: BodyLocation,
    /// File written to.
    pub file: FileId,
    /// Steps before the journal's own.
    pub steps: Job,
    /// A file that takes no more writes because the batch did not fit, and what to do about it when there is time.
    pub sealed: Option<(FileId, Job)>,
}

/// See the module's page.
#[derive(Debug)]
pub struct GroupLog {
    slot: u32,
    replica: Replica,
    journal: Journal,
    /// Numbers for the group's files.
    pub numbers: FileNumbers,
    next_job: u32,
    intents: BTreeMap<u32, Intent>,
    /// Files with written bytes that no sync of the sync lane has covered yet.
    dirty: BTreeSet<FileId>,
    /// Prepares that are written and wait for the next sync.
    unsynced: Vec<IoToken>,
    syncing: bool,
    /// A checkpoint is due once this position is applied.
    rotated_at: Option<u64>,
    checkpointing: bool,
    /// Files that take no more writes, with the position after their last one.
    retired: Vec<(u64, FileId)>,
    bodies_since_checkpoint: u64,
    /// Those before the rotation that a pending checkpoint began with.
    bodies_before_rotation: u64,
    bodies_due: u64,
    /// A checkpoint is wanted, however little was written.
    wanted: bool,
    effects: Effects,
    opened: bool,
    /// A state of the replica that waits for the directory to be open.
    unpersisted: Option<(IoToken, VsrState)>,
    persisting: usize,
    /// Bytes of batches and journal that the next checkpoint will cover; beyond `wal_bytes_max` no write is taken.
    wal_bytes_max: u64,
}

impl GroupLog {
    /// The log of a recovered group in `slot` of its shard. `open` runs first on its lane. A checkpoint is due after
    /// `bodies_due` bytes of batches.
    pub fn new(
        slot: u32,
        replica: Replica,
        journal: Journal,
        numbers: FileNumbers,
        bodies_due: u64,
        open: Job,
        storage: &mut dyn Storage,
    ) -> Self {
        let mut log = Self {
            slot,
            replica,
            journal,
            numbers,
            next_job: 0,
            intents: BTreeMap::new(),
            dirty: BTreeSet::new(),
            unsynced: Vec::new(),
            syncing: false,
            rotated_at: None,
            checkpointing: false,
            retired: Vec::new(),
            bodies_since_checkpoint: 0,
            bodies_before_rotation: 0,
            bodies_due,
            wanted: false,
            effects: Effects::new(),
            opened: false,
            unpersisted: None,
            persisting: 0,
            wal_bytes_max: bodies_due.saturating_mul(2).max(WAL_BYTES_MIN),
        };
        log.submit(storage, Lane::Append, Intent::Open, open);
        log
    }

    /// Whether a write proposed now would be taken.
    pub fn admits(&self) -> Result<(), Refusal> {
        self.replica.admits()?;
        // A checkpoint is on its way; until it is taken there is no room for more.
        if self.wal_bytes() > self.wal_bytes_max {
            return Err(Refusal::PipelineFull {
                limit: self.replica.in_flight(),
            });
        }
        Ok(())
    }

    /// Bytes of batches that the journal names and no checkpoint covers.
    fn wal_bytes(&self) -> u64 {
        self.bodies_since_checkpoint.saturating_add(self.bodies_before_rotation)
    }

    /// The replica.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Tells the replica when the nodes of its members were heard.
    pub fn vouch(&mut self, members: &Members, heard: &NodesHeard) {
        for (index, node) in (0..).zip(members.nodes()) {
            if let Some((incarnation, at)) = heard.last(*node) {
                self.replica.vouch(index, incarnation, at);
            }
        }
    }

    /// Forgets the committed prepares that the replica keeps in memory.
    pub fn forget_retained(&mut self) {
        self.replica.forget_retained();
    }

    /// Times the group lost acknowledged writes beyond what it tolerates.
    pub fn history(&self) -> u64 {
        self.journal.superblock().state.history
    }

    fn submit(&mut self, storage: &mut dyn Storage, lane: Lane, intent: Intent, job: Job) {
        self.next_job = self.next_job.wrapping_add(1);
        self.intents.insert(self.next_job, intent);
        let token = IoToken(u64::from(self.slot) << 32 | u64::from(self.next_job));
        let number = match lane {
            Lane::Append => 0,
            Lane::Sync => 1,
            Lane::Background => 2,
            Lane::Read(id) => 8 + id % READ_LANES,
        };
        storage.submit(LaneId(u64::from(self.slot) << 8 | number), token, job);
    }

    /// Orders a write. The host learns of its prepare before this returns.
    pub fn propose(
        &mut self,
        now: Now,
        proposal: Proposal,
        storage: &mut dyn Storage,
        host: &mut dyn Host,
    ) -> Result<Vec<LogEvent>, Refusal> {
        self.admits()?;
        Ok(self.step(now, Input::Propose(proposal), storage, host))
    }

    /// Starts the replica's clocks.
    pub fn start(&mut self, now: Now, storage: &mut dyn Storage, host: &mut dyn Host) -> Vec<LogEvent> {
        self.replica.start(now, &mut self.effects);
        self.run_effects(storage, host, None)
    }

    /// Tells the replica something.
    pub fn step(&mut self, now: Now, input: Input, storage: &mut dyn Storage, host: &mut dyn Host) -> Vec<LogEvent> {
        self.replica.step(now, input, &mut self.effects);
        self.run_effects(storage, host, None)
    }

    /// Does what the replica wants; what concerns others comes back as events.
    fn run_effects(
        &mut self,
        storage: &mut dyn Storage,
        host: &mut dyn Host,
        cause: Option<&StorageError>,
    ) -> Vec<LogEvent> {
        let mut effects = std::mem::take(&mut self.effects);
        let mut events = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Append {
                    token,
                    prepare,
                    barrier,
                } => {
                    let placed = host.appended(&prepare, &mut self.numbers);
                    self.append(token, &prepare, barrier, placed, storage);
                }
                Effect::Truncate { token, op } => self.truncate(token, op, storage, host),
                Effect::PersistState { token, state } => self.persist(token, state, storage),
                Effect::Commit { op } => events.push(LogEvent::Committed(op)),
                Effect::Send { to, message } => events.push(LogEvent::Send { to, message }),
                Effect::FetchState { from, from_scratch } => events.push(LogEvent::FetchState { from, from_scratch }),
                Effect::Role => events.push(LogEvent::Role),
                Effect::HistoryLost { history } => events.push(LogEvent::HistoryLost(history)),
                Effect::Refuse(_) => {}
                Effect::Fence(reason) => events.push(LogEvent::Fenced {
                    reason,
                    cause: cause
                        .cloned()
                        .unwrap_or(StorageError::NotOpen(self.journal.files().active)),
                }),
            }
        }
        self.effects = effects;
        events
    }

    /// The log ends at `op` from now on. A restart knows that before the batches after it are overwritten.
    fn truncate(&mut self, token: IoToken, op: u64, storage: &mut dyn Storage, host: &mut dyn Host) {
        let file = self.journal.files().active;
        let mut job = vec![
            self.journal.rewind(self.replica.end_at(op)),
            iggy_storage::Step::Sync(vec![file]),
        ];
        let (steps, left) = host.truncated(op, &mut self.numbers);
        job.extend(steps);
        self.retired.extend(left.map(|file| (op, file)));
        self.submit(storage, Lane::Append, Intent::Truncate { token, file }, job);
    }

    fn persist(&mut self, token: IoToken, state: VsrState, storage: &mut dyn Storage) {
        if !self.opened {
            self.unpersisted = Some((token, state));
            return;
        }
        self.persisting += 1;
        let job = self.journal.persist_state(state);
        // On the lane of the checkpoints: superblocks reach the disk in the order of their numbers.
        self.submit(storage, Lane::Background, Intent::Persist(token), job);
    }

    /// Writes batches that come with the state of another member; [`LogEvent::Written`] says when they are.
    pub fn write(&mut self, steps: Job, files: Vec<FileId>, storage: &mut dyn Storage) {
        self.submit(storage, Lane::Append, Intent::Write(files), steps);
    }

    /// Writes given to [`write`](Self::write) that are not done.
    pub fn writes(&self) -> usize {
        let writes = self
            .intents
            .values()
            .filter(|intent| matches!(intent, Intent::Write(_)));
        writes.count()
    }

    /// Takes the state of another member as the checkpoint at `at`, in place of everything before.
    /// [`LogEvent::Installed`] says when it is.
    pub fn install(&mut self, at: LogEnd, state: Vec<u8>, storage: &mut dyn Storage) {
        self.rotated_at = None;
        self.bodies_since_checkpoint = 0;
        let left = self.journal.files().active;
        self.retired.push((at.op, left));
        let job = self.journal.rotate(&mut self.numbers);
        self.submit(storage, Lane::Append, Intent::RotateForInstall { at, state }, job);
    }

    fn append(
        &mut self,
        token: IoToken,
        prepare: &Prepare,
        barrier: Barrier,
        placed: Option<Placed>,
        storage: &mut dyn Storage,
    ) {
        let mut files = vec![self.journal.files().active];
        let mut job = Job::new();
        let mut location = None;
        if let Some(placed) = placed {
            self.bodies_since_checkpoint += u64::from(placed.location.length);
            files.push(placed.file);
            job = placed.steps;
            location = Some(placed.location);
            if let Some((file, after)) = placed.sealed {
                self.retired.push((prepare.header.op.get(), file));
                self.in_background(after, storage);
            }
        }
        job.push(self.journal.append(prepare, location));
        self.submit(storage, Lane::Append, Intent::Append { token, barrier, files }, job);
        self.rotate_when_due(storage);
    }

    /// A file that takes no more writes. It is closed once a checkpoint has covered it.
    pub fn retire(&mut self, file: FileId) {
        self.retired.push((self.replica.op(), file));
    }

    /// Reads something; [`LogEvent::Read`] brings it.
    pub fn read(&mut self, id: u64, job: Job, storage: &mut dyn Storage) {
        self.submit(storage, Lane::Read(id), Intent::Read(id), job);
    }

    /// Does something that nothing waits for.
    pub fn in_background(&mut self, job: Job, storage: &mut dyn Storage) {
        if !job.is_empty() {
            self.submit(storage, Lane::Background, Intent::Background, job);
        }
    }

    /// Takes the end of a job this log submitted.
    pub fn completed(
        &mut self,
        now: Now,
        completion: Completion,
        storage: &mut dyn Storage,
        host: &mut dyn Host,
    ) -> Vec<LogEvent> {
        let Some(intent) = self.intents.remove(&(completion.token.0 as u32)) else {
            return Vec::new();
        };
        let done = match completion.result {
            Ok(chunks) => self.succeeded(now, intent, chunks, storage),
            Err(error) => return self.failed(now, intent, error, storage, host),
        };
        let mut events = self.run_effects(storage, host, None);
        events.extend(done);
        events
    }

    fn succeeded(
        &mut self,
        now: Now,
        intent: Intent,
        chunks: Vec<Bytes>,
        storage: &mut dyn Storage,
    ) -> Option<LogEvent> {
        match intent {
            Intent::Open => {
                self.opened = true;
                if let Some((token, state)) = self.unpersisted.take() {
                    self.persist(token, state, storage);
                }
                return Some(LogEvent::Opened);
            }
            Intent::Append { token, barrier, files } => self.written(now, token, barrier, files, storage),
            Intent::Sync { tokens, .. } => self.synced(now, &tokens, storage),
            Intent::Truncate { token, file } => {
                self.dirty.insert(file);
                self.held(now, &[token]);
            }
            Intent::Persist(token) => {
                self.persisting -= 1;
                self.held(now, &[token]);
            }
            Intent::Checkpoint { op, files } => {
                self.checkpointing = false;
                self.bodies_before_rotation = 0;
                self.forget_synced(op, &files);
                self.close_retired(op, storage);
                self.rotate_when_due(storage);
                return Some(LogEvent::Checkpointed(op));
            }
            Intent::Read(id) => {
                return Some(LogEvent::Read { id, result: Ok(chunks) });
            }
            Intent::Rotate | Intent::Background => {}
            Intent::Finish => return Some(LogEvent::Finished),
            Intent::Write(files) => {
                self.dirty.extend(files);
                return Some(LogEvent::Written);
            }
            Intent::RotateForInstall { at, state } => self.checkpoint_installed(at, state, storage),
            Intent::Install { at, files } => {
                self.bodies_before_rotation = 0;
                self.forget_synced(at.op, &files);
                self.close_retired(at.op, storage);
                return Some(LogEvent::Installed(at));
            }
        }
        None
    }

    fn checkpoint_installed(&mut self, at: LogEnd, state: Vec<u8>, storage: &mut dyn Storage) {
        if self.replica.fenced().is_some() {
            // A batch of the own log that is a part of the state was not written.
            return;
        }
        let files = self.unsynced_files();
        let mut job = vec![iggy_storage::Step::Sync(files.clone())];
        job.extend(
            self.journal
                .checkpoint(checkpoint_at(at), Bytes::from(state), &mut self.numbers),
        );
        self.submit(storage, Lane::Background, Intent::Install { at, files }, job);
    }

    fn failed(
        &mut self,
        now: Now,
        intent: Intent,
        error: StorageError,
        storage: &mut dyn Storage,
        host: &mut dyn Host,
    ) -> Vec<LogEvent> {
        match intent {
            Intent::Open => {
                // Whatever is proposed all the same must not commit, nor become part of a checkpoint.
                self.replica.fence(&mut self.effects);
                self.effects.clear();
                return vec![LogEvent::OpenFailed(error)];
            }
            Intent::Read(id) => return vec![LogEvent::Read { id, result: Err(error) }],
            Intent::Background => return vec![LogEvent::BackgroundFailed(error)],
            Intent::Sync { tokens, .. } if planted::has(Bug::IgnoreFailedSync) => {
                self.synced(now, &tokens, storage);
                return self.run_effects(storage, host, None);
            }
            Intent::Append { token, .. } | Intent::Truncate { token, .. } | Intent::Persist(token) => {
                self.replica.step(now, Input::IoDone(token, false), &mut self.effects);
            }
            Intent::Sync { tokens, .. } => {
                for token in tokens {
                    self.replica.step(now, Input::IoDone(token, false), &mut self.effects);
                }
            }
            // The journal that the checkpoint would have replaced is still whole, but its disk is not to be trusted.
            Intent::Checkpoint { .. }
            | Intent::Rotate
            | Intent::Finish
            | Intent::Write(_)
            | Intent::RotateForInstall { .. }
            | Intent::Install { .. } => self.checkpointing = false,
        }
        self.replica.fence(&mut self.effects);
        self.run_effects(storage, host, Some(&error))
    }

    fn written(&mut self, now: Now, token: IoToken, barrier: Barrier, files: Vec<FileId>, storage: &mut dyn Storage) {
        self.dirty.extend(files);
        match barrier {
            Barrier::Sync if planted::has(Bug::AckBeforeSync) => self.held(now, &[token]),
            Barrier::None => self.held(now, &[token]),
            Barrier::Sync => {
                self.unsynced.push(token);
                self.sync(storage);
            }
        }
    }

    /// Starts a sync for everything that waits for one, unless one runs already.
    fn sync(&mut self, storage: &mut dyn Storage) {
        if self.syncing || self.unsynced.is_empty() {
            return;
        }
        self.syncing = true;
        let tokens = std::mem::take(&mut self.unsynced);
        let files: Vec<FileId> = std::mem::take(&mut self.dirty).into_iter().collect();
        let job = vec![iggy_storage::Step::Sync(files.clone())];
        self.submit(storage, Lane::Sync, Intent::Sync { tokens, files }, job);
    }

    fn synced(&mut self, now: Now, tokens: &[IoToken], storage: &mut dyn Storage) {
        self.syncing = false;
        self.held(now, tokens);
        self.sync(storage);
        self.close_retired(self.journal.superblock().checkpoint.op, storage);
    }

    fn held(&mut self, now: Now, tokens: &[IoToken]) {
        for token in tokens {
            self.replica.step(now, Input::IoDone(*token, true), &mut self.effects);
        }
    }

    /// Asks for a checkpoint that covers everything applied now.
    pub fn want_checkpoint(&mut self, storage: &mut dyn Storage) {
        // One that was begun and not taken will cover it.
        if self.rotated_at.is_none() {
            self.wanted = true;
            self.rotate_when_due(storage);
        }
    }

    fn rotate_when_due(&mut self, storage: &mut dyn Storage) {
        let due = self.wanted
            || self.journal.length() >= GENERATION_LEN_DUE
            || self.bodies_since_checkpoint >= self.bodies_due;
        if !due || self.rotated_at.is_some() || self.checkpointing || self.replica.fenced().is_some() {
            return;
        }
        self.bodies_before_rotation = std::mem::take(&mut self.bodies_since_checkpoint);
        self.wanted = false;
        let left = self.journal.files().active;
        self.retire(left);
        let job = self.journal.rotate(&mut self.numbers);
        self.rotated_at = Some(self.replica.op());
        self.submit(storage, Lane::Append, Intent::Rotate, job);
    }

    /// Whether a checkpoint should be taken now that everything up to `applied` is applied.
    pub fn wants_checkpoint(&self, applied: u64) -> bool {
        self.rotated_at.is_some_and(|rotated_at| applied >= rotated_at) && !self.checkpointing
    }

    /// Takes `state`, applied up to `at`, as the checkpoint.
    pub fn checkpoint(&mut self, at: LogEnd, state: Vec<u8>, storage: &mut dyn Storage) {
        self.rotated_at = None;
        self.checkpointing = true;
        let files = self.unsynced_files();
        if planted::has(Bug::CheckpointTakesFiles) {
            self.dirty.clear();
        }
        let mut job = vec![iggy_storage::Step::Sync(files.clone())];
        if planted::has(Bug::CheckpointBeforeSync) {
            job.clear();
        }
        job.extend(
            self.journal
                .checkpoint(checkpoint_at(at), Bytes::from(state), &mut self.numbers),
        );
        self.submit(storage, Lane::Background, Intent::Checkpoint { op: at.op, files }, job);
    }

    /// Every file with bytes that may not be on disk: those no sync covers, and those a running sync may not have
    /// reached. They stay dirty: a prepare that asks for a sync while a checkpoint runs must not be acknowledged before
    /// what was journaled before it is stored, and the checkpoint may come later than its own sync.
    fn unsynced_files(&self) -> Vec<FileId> {
        let mut files = self.dirty.clone();
        for intent in self.intents.values() {
            if let Intent::Sync { files: syncing, .. } = intent {
                files.extend(syncing);
            }
        }
        files.into_iter().collect()
    }

    /// Takes files that a checkpoint at `op` has synced after their last write off the dirty ones.
    fn forget_synced(&mut self, op: u64, files: &[FileId]) {
        for (_, file) in self
            .retired
            .iter()
            .filter(|(at, file)| *at <= op && files.contains(file))
        {
            self.dirty.remove(file);
        }
    }

    /// Closes files whose last write a checkpoint at `op` covers and that no running job names.
    fn close_retired(&mut self, op: u64, storage: &mut dyn Storage) {
        let mut named = self.dirty.clone();
        for intent in self.intents.values() {
            if let Intent::Sync { files, .. }
            | Intent::Checkpoint { files, .. }
            | Intent::Append { files, .. }
            | Intent::Write(files)
            | Intent::Install { files, .. } = intent
            {
                named.extend(files);
            }
            if let Intent::Truncate { file, .. } = intent {
                named.insert(*file);
            }
        }
        let (closed, kept) = self
            .retired
            .drain(..)
            .partition(|(at, file)| *at <= op && !named.contains(file));
        self.retired = kept;
        let closed: Vec<(u64, FileId)> = closed;
        let job = closed
            .into_iter()
            .map(|(_, file)| iggy_storage::Step::Close(file))
            .collect();
        self.in_background(job, storage);
    }

    /// Whether nothing is in flight that [`finish`](Self::finish) would have to wait for.
    pub fn is_quiet(&self) -> bool {
        self.replica.in_flight() == 0 && !self.checkpointing && !self.syncing && self.persisting == 0
    }

    /// Ends the log in order: syncs everything, takes `state` as the checkpoint and marks the directory clean. Call it
    /// when [`is_quiet`](Self::is_quiet), and write nothing after.
    pub fn finish(&mut self, at: LogEnd, state: Vec<u8>, boot: BootId, storage: &mut dyn Storage) {
        debug_assert!(self.is_quiet(), "a log is finished when nothing is in flight");
        let mut job = vec![iggy_storage::Step::Sync(self.unsynced_files())];
        if at.op != self.journal.superblock().checkpoint.op {
            job.extend(
                self.journal
                    .checkpoint(checkpoint_at(at), Bytes::from(state), &mut self.numbers),
            );
        }
        job.extend(self.journal.mark(boot, true));
        // Behind everything on the append lane, a rotation included.
        self.submit(storage, Lane::Append, Intent::Finish, job);
    }

    /// Durable state of the replica, as last submitted.
    pub fn durable_state(&self) -> &VsrState {
        &self.journal.superblock().state
    }

    /// Steps that close the journal's files.
    pub fn close(&self) -> Job {
        self.journal.close()
    }
}

fn checkpoint_at(at: LogEnd) -> Checkpoint {
    Checkpoint {
        op: at.op,
        prepare_checksum: at.checksum,
        timestamp: at.timestamp,
        ..Checkpoint::default()
    }
}
