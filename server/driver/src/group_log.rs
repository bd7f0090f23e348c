//! The log of one group on this node: a replica, its journal, and the jobs between them.
//!
//! Every acknowledgement waits here for what its group promises. A prepare without a barrier counts once it is written.
//! Prepares with one share syncs: while a sync runs, all that is written meanwhile waits for the next one, which covers
//! them together.
//!
//! A checkpoint starts a new journal generation, waits until everything before it is applied, syncs what it stands for
//! and then replaces the old generation. Any failed write or sync fences the group.

use bytes::Bytes;
use iggy_consensus::{
    Barrier, Body, Effect, Effects, FenceReason, Input, LogEnd, Now, Prepare, PrepareHeader, Proposal, Refusal, Replica,
};
use iggy_journal::planted::{self, Bug};
use iggy_journal::{BodyLocation, BootId, Checkpoint, FileNumbers, Journal};
use iggy_storage::{Completion, FileId, IoToken, Job, LaneId, Storage, StorageError};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a journal generation after which a checkpoint is due. A generation of a partition holds headers, so this is
/// some tens of thousands of requests.
const GENERATION_LEN_DUE: u64 = 8 << 20;
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
    bodies_due: u64,
    /// A checkpoint is wanted, however little was written.
    wanted: bool,
    effects: Effects,
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
            bodies_due,
            wanted: false,
            effects: Effects::new(),
        };
        log.submit(storage, Lane::Append, Intent::Open, open);
        log
    }

    /// The replica.
    pub fn replica(&self) -> &Replica {
        &self.replica
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

    /// Orders a write. `place` finds room for a batch; other bodies go into the journal. Returns the prepare's header.
    pub fn propose(
        &mut self,
        now: Now,
        proposal: Proposal,
        storage: &mut dyn Storage,
        place: &mut dyn FnMut(&mut FileNumbers, &Body) -> Option<Placed>,
    ) -> Result<Box<PrepareHeader>, Refusal> {
        self.replica.step(now, Input::Propose(proposal), &mut self.effects);
        match self.effects.pop() {
            Some(Effect::Append {
                token,
                prepare,
                barrier,
            }) => {
                let placed = place(&mut self.numbers, &prepare.body);
                self.append(token, &prepare, barrier, placed, storage);
                Ok(prepare.header)
            }
            Some(Effect::Refuse(refusal)) => Err(refusal),
            other => unreachable!("a proposal is appended or refused, not {other:?}"),
        }
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
    pub fn completed(&mut self, now: Now, completion: Completion, storage: &mut dyn Storage) -> Vec<LogEvent> {
        let Some(intent) = self.intents.remove(&(completion.token.0 as u32)) else {
            return Vec::new();
        };
        match (intent, completion.result) {
            (Intent::Open, Err(error)) => {
                // Whatever is proposed all the same must not commit, nor become part of a checkpoint.
                self.replica.fence(&mut self.effects);
                self.effects.clear();
                vec![LogEvent::OpenFailed(error)]
            }
            (Intent::Append { token, barrier, files }, Ok(_)) => self.written(now, token, barrier, files, storage),
            (Intent::Append { token, .. }, Err(error)) => self.failed(now, &[token], &error),
            (Intent::Sync { tokens, .. }, Ok(_)) => self.synced(now, &tokens, storage),
            (Intent::Sync { tokens, .. }, Err(_)) if planted::has(Bug::IgnoreFailedSync) => {
                self.synced(now, &tokens, storage)
            }
            (Intent::Sync { tokens, .. }, Err(error)) => self.failed(now, &tokens, &error),
            (Intent::Checkpoint { op, files }, Ok(_)) => {
                self.checkpointing = false;
                self.forget_synced(op, &files);
                self.close_retired(op, storage);
                self.rotate_when_due(storage);
                vec![LogEvent::Checkpointed(op)]
            }
            // The journal that the checkpoint would have replaced is still whole, but its disk is not to be trusted.
            (Intent::Checkpoint { .. } | Intent::Rotate | Intent::Finish, Err(error)) => {
                self.checkpointing = false;
                self.failed(now, &[], &error)
            }
            (Intent::Read(id), result) => vec![LogEvent::Read { id, result }],
            (Intent::Open, Ok(_)) => vec![LogEvent::Opened],
            (Intent::Rotate | Intent::Background, Ok(_)) => Vec::new(),
            (Intent::Background, Err(error)) => vec![LogEvent::BackgroundFailed(error)],
            (Intent::Finish, Ok(_)) => vec![LogEvent::Finished],
        }
    }

    fn written(
        &mut self,
        now: Now,
        token: IoToken,
        barrier: Barrier,
        files: Vec<FileId>,
        storage: &mut dyn Storage,
    ) -> Vec<LogEvent> {
        self.dirty.extend(files);
        match barrier {
            Barrier::Sync if planted::has(Bug::AckBeforeSync) => self.held(now, &[token]),
            Barrier::None => self.held(now, &[token]),
            Barrier::Sync => {
                self.unsynced.push(token);
                self.sync(storage);
                Vec::new()
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

    fn synced(&mut self, now: Now, tokens: &[IoToken], storage: &mut dyn Storage) -> Vec<LogEvent> {
        self.syncing = false;
        let events = self.held(now, tokens);
        self.sync(storage);
        self.close_retired(self.journal.superblock().checkpoint.op, storage);
        events
    }

    fn held(&mut self, now: Now, tokens: &[IoToken]) -> Vec<LogEvent> {
        for token in tokens {
            self.replica.step(now, Input::IoDone(*token, true), &mut self.effects);
        }
        // One commit event is enough: the newest covers those before it.
        let newest = self.effects.drain(..).rev().find_map(|effect| match effect {
            Effect::Commit { op } => Some(op),
            _ => None,
        });
        newest.map(LogEvent::Committed).into_iter().collect()
    }

    fn failed(&mut self, now: Now, tokens: &[IoToken], cause: &StorageError) -> Vec<LogEvent> {
        for token in tokens {
            self.replica.step(now, Input::IoDone(*token, false), &mut self.effects);
        }
        self.replica.fence(&mut self.effects);
        let fenced = self.effects.drain(..).find_map(|effect| match effect {
            Effect::Fence(reason) => Some(LogEvent::Fenced {
                reason,
                cause: cause.clone(),
            }),
            _ => None,
        });
        fenced.into_iter().collect()
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
        self.bodies_since_checkpoint = 0;
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
            if let Intent::Sync { files, .. } | Intent::Checkpoint { files, .. } | Intent::Append { files, .. } = intent
            {
                named.extend(files);
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
        self.replica.in_flight() == 0 && !self.checkpointing && !self.syncing
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
