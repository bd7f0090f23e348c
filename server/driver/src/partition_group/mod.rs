//! One partition on its shard: requests in, replies out, a log in between.
//!
//! Writes are admitted here, ordered by the group's log and applied when they commit. A request that depends on a write
//! still in flight waits for it: a group's request for its owner to be installed, a read that commits for its offset.
//!
//! This is where nodes become members: messages come in and go out with the ids of nodes, and everything inside the group
//! has the places of [`Members`].

mod commit;
mod parked;
mod polling;
mod retention;
mod salvage;
mod transfer;
mod writes;

pub use parked::Expiry;

use crate::counters::PartitionCounters;
use crate::group_log::{GroupLog, LogEvent};
use crate::heard::NodesHeard;
use crate::members::Members;
use crate::request::{Origin, PartitionRequest, Reply};
use crate::tally::WatchId;
use iggy_consensus::message::{Kind, Message};
use iggy_consensus::{
    Ending, FenceReason, GroupId, Input, LogEnd, Now, RecoveredLog, Replica, ReplicaConfig, Status, VsrState,
};
use iggy_journal::planted::{self, Bug};
use iggy_journal::{BootId, FileNumbers, Loss, Policy};
use iggy_metadata::PartitionKey;
use iggy_metadata::model::topic::History;
use iggy_partition::Settings;
use iggy_partition::aside::Aside;
use iggy_partition::operation::Member;
use iggy_partition::recovery::{RecoverError, recover};
use iggy_partition::segments::Segments;
use iggy_partition::state::{LogPosition, PartitionState};
use iggy_partition::tail::Tail;
use iggy_protocol::error_code::ErrorCode;
use iggy_storage::image::Image;
use iggy_storage::{Completion, Job, Step, Storage, StorageError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Fixed facts of every partition of a shard.
#[derive(Clone, Copy, Debug)]
pub struct PartitionConfig {
    /// Cluster identity.
    pub cluster: u128,
    /// This boot of the machine.
    pub boot: BootId,
    /// Id of this node, which is its index in the metadata group.
    pub replica: u8,
    /// Nodes of the cluster, which are the members of the metadata group.
    pub replica_count: u8,
    /// Facts of the replicas: prepares in flight, credit, periods.
    pub consensus: ReplicaConfig,
    /// Bytes of batches that a restart may have to verify; a checkpoint is taken at half of it.
    pub wal_bytes_max: u64,
    /// Bytes of the newest batches kept in memory.
    pub tail_bytes_max: usize,
    /// Bytes of one read from disk, which is also the largest ordinary reply.
    pub read_bytes_max: u32,
    /// Whether batches read from disk are verified before they are sent.
    pub verify_reads: bool,
    /// Requests that may wait for a write in flight.
    pub waiting_max: usize,
}

/// What a partition does besides answering.
#[derive(Debug)]
pub enum Notice {
    /// A reply is ready.
    Reply(Reply),
    /// A poll was parked.
    Parked {
        /// Session it counts for.
        member: Member,
        /// Its request number.
        request: u64,
        /// Connection it came on.
        connection: u32,
        /// Microsecond of the monotonic clock at which its wait ends.
        deadline: u64,
        /// Names the poll for [`PartitionGroup::expire`].
        expiry: Expiry,
    },
    /// A parked poll was answered.
    Unparked(Expiry),
    /// A fetch counts here.
    Watched(WatchId, Expiry),
    /// A read from disk waits for [`PartitionGroup::start_read`].
    ReadWanted,
    /// A read from disk ended.
    ReadEnded {
        /// Bytes it was given.
        bytes: u64,
    },
    /// The partition takes no more writes.
    Fenced {
        /// Why.
        reason: FenceReason,
        /// What the disk said.
        cause: StorageError,
    },
    /// The directory could not be opened.
    OpenFailed(StorageError),
    /// Something in the background failed.
    BackgroundFailed(StorageError),
    /// The log holds something it must not.
    Damaged(String),
    /// [`PartitionGroup::stop`] is done.
    Stopped,
    /// Another member is to be told something.
    Send {
        /// Its node.
        to: u8,
        /// What.
        message: Message,
    },
    /// The replica leads the partition, or no longer does.
    Role {
        /// Whether it leads.
        leads: bool,
        /// View.
        view: u32,
    },
    /// Acknowledged writes are lost beyond what was promised, for so many times now.
    HistoryLost(u64),
    /// [`PartitionGroup::tick`] is wanted at this microsecond of the monotonic clock.
    Deadline(u64),
}

/// A request that waits until a position is applied.
#[derive(Debug)]
struct Waiting {
    op: u64,
    /// When it came, in microseconds of the monotonic clock.
    since: u64,
    origin: Origin,
    request: PartitionRequest,
}

/// See the module's page.
#[derive(Debug)]
pub struct PartitionGroup {
    key: PartitionKey,
    members: Members,
    settings: Settings,
    history: History,
    config: PartitionConfig,
    log: GroupLog,
    state: PartitionState,
    segments: Segments,
    tail: Tail,
    /// Bytes of the tail when the shard counted them last.
    counted_tail: usize,
    /// Bytes of retained prepares when the shard counted them last.
    counted_retained: u64,
    /// Whether the tail was read or appended to since the shard last looked.
    tail_used: bool,
    pending: VecDeque<writes::Pending>,
    /// Who waited for writes that left the log again.
    truncated_waiters: Vec<writes::Waiter>,
    /// The state of another member on its way here.
    incoming: Option<transfer::Incoming>,
    /// Where the segments ended before a transfer placed anything: what is kept of the own log.
    kept: Option<transfer::Kept>,
    /// Segments that no longer count; the other members may have some of what is in them.
    aside: Vec<Aside>,
    /// Reads for members that lack batches.
    serving: BTreeMap<u64, transfer::Serving>,
    /// The deadline that was announced last.
    announced: Option<u64>,
    /// Requests that wait until a position is applied.
    waiting: VecDeque<Waiting>,
    parked: parked::Parked,
    reads: BTreeMap<u64, polling::DiskRead>,
    wanted_reads: VecDeque<polling::DiskRead>,
    next_number: u64,
    applied: LogEnd,
    applied_end: Option<LogPosition>,
    counters: Arc<PartitionCounters>,
    /// Steps that remove segments the state has dropped, once a checkpoint is at or after the position they belong to.
    dropped: (u64, Job),
    /// What recovery found is on disk: only then may anybody be told of it.
    opened: bool,
    stopping: bool,
    finishing: bool,
    unusable: bool,
    notices: Vec<Notice>,
}

/// Directory of a partition below the storage root.
pub fn directory(key: &PartitionKey) -> String {
    format!(
        "streams/{}/topics/{}/partitions/{}-{}",
        key.stream_id, key.topic_id, key.partition_id, key.incarnation
    )
}

impl PartitionGroup {
    /// Opens a partition, new or recovered, as the member at `index`.
    #[allow(clippy::too_many_arguments)] // What a partition is, where it lies and what it runs on: nothing repeats.
    pub fn open(
        key: PartitionKey,
        slot: u32,
        members: Members,
        index: u8,
        settings: Settings,
        history: History,
        created: bool,
        config: PartitionConfig,
        image: &dyn Image,
        counters: Arc<PartitionCounters>,
        storage: &mut dyn Storage,
    ) -> Result<(Self, Option<Loss>), RecoverError> {
        let directory = directory(&key);
        let group = GroupId::partition(key.stream_id, key.topic_id, key.partition_id, key.incarnation);
        let mut fresh = VsrState::new(config.cluster, group, index, members.count());
        if !created && members.count() > 1 {
            // The group exists, and what this node knew of it is gone.
            fresh.ending = Ending::Amnesia;
        } else if !created && config.replica_count > 1 {
            // The other nodes kept the metadata, and nobody kept the partition.
            fresh.history = history.losses + 1;
        }
        let policy = Policy {
            boot: config.boot,
            volatile: settings.is_volatile(),
            discard: false,
        };
        let mut numbers = FileNumbers::new(slot);
        let retain = config.consensus.retain_bytes;
        let found = recover(image, &directory, fresh, policy, &settings, retain, &mut numbers)?;
        let mut open = found.log.open;
        open.extend(found.open);
        let superblock = *found.log.journal.superblock();
        let log = RecoveredLog {
            applied: found.applied,
            base: found.base,
            entries: found.entries,
            committed: found.applied.op,
            created: created && found.log.fresh,
        };
        let replica = Replica::recover(config.consensus, superblock.state, log)
            .expect("recovery checked the chain, and a superblock that contradicts itself is never written");
        let due = (config.wal_bytes_max / 2).max(1);
        let log = GroupLog::new(slot, replica, found.log.journal, numbers, due, open, storage);
        let pending: VecDeque<writes::Pending> =
            found.uncommitted.into_iter().map(writes::Pending::recovered).collect();
        let group = Self {
            key,
            members,
            settings,
            history,
            config,
            log,
            state: found.state,
            segments: found.segments,
            tail: Tail::new(config.tail_bytes_max),
            counted_tail: 0,
            counted_retained: 0,
            tail_used: false,
            pending,
            truncated_waiters: Vec::new(),
            incoming: None,
            kept: None,
            aside: found.aside,
            serving: BTreeMap::new(),
            announced: None,
            waiting: VecDeque::new(),
            parked: parked::Parked::default(),
            reads: BTreeMap::new(),
            wanted_reads: VecDeque::new(),
            next_number: 0,
            applied: found.applied,
            applied_end: found.applied_end,
            counters,
            dropped: (found.applied.op, found.dropped),
            opened: planted::has(Bug::AnswerBeforeOpen),
            stopping: false,
            finishing: false,
            unusable: false,
            notices: Vec::new(),
        };
        group.publish_counters();
        Ok((group, found.log.loss))
    }

    /// Bytes of the tail at the last count, and now.
    pub fn count_tail(&mut self) -> (usize, usize) {
        let before = std::mem::replace(&mut self.counted_tail, self.tail.bytes());
        (before, self.counted_tail)
    }

    /// Bytes of committed prepares kept for members that miss them, at the last count and now.
    pub fn count_retained(&mut self) -> (u64, u64) {
        let now = self.log.replica().retained_bytes();
        (std::mem::replace(&mut self.counted_retained, now), now)
    }

    /// Forgets those prepares: a member that misses them gets a whole state instead.
    pub fn forget_retained(&mut self) {
        self.log.forget_retained();
    }

    /// Forgets the tail unless it was used since the last call. True when it is gone.
    pub fn forget_idle_tail(&mut self) -> bool {
        let idle = !std::mem::take(&mut self.tail_used);
        if idle {
            self.tail.clear();
        }
        idle
    }

    /// Its key.
    pub fn key(&self) -> PartitionKey {
        self.key
    }

    /// Nodes that hold it.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Its replicated state.
    pub fn state(&self) -> &PartitionState {
        &self.state
    }

    /// Why it takes no writes, if it is fenced.
    pub fn fenced(&self) -> Option<FenceReason> {
        self.log.replica().fenced()
    }

    /// Losses the metadata does not know of yet. Until it does, the partition serves nothing: positions of the history
    /// that ended would be taken for positions of this one.
    pub fn unknown_losses(&self) -> Option<u64> {
        Some(self.log.history()).filter(|losses| *losses > self.history.losses)
    }

    /// Takes the history the metadata has begun.
    pub fn begin_history(&mut self, history: History) {
        if history.incarnation != self.history.incarnation {
            self.refuse_parked(ErrorCode::HistoryUnavailable);
        }
        self.history = history;
    }

    /// Changes what may change of a partition.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Moves what happened since the last call to the end of `out`.
    pub fn take_notices(&mut self, out: &mut Vec<Notice>) {
        out.append(&mut self.notices);
    }

    fn reply(&mut self, reply: Reply) {
        self.notices.push(Notice::Reply(reply));
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn publish_counters(&self) {
        let state = &self.state;
        self.counters.set(
            // A partition that has written nothing shows the segment it will write to.
            self.segments.count().max(1) as u64,
            state.current_offset(),
            self.segments.size(),
            state.messages(),
        );
    }

    fn publish_in_sync(&self, now: Now) {
        let alone = (self.members.count() == 1).then_some(0);
        let others = self.log.replica().in_sync(now).filter(|_| alone.is_none());
        let members = alone.into_iter().chain(others);
        self.counters
            .set_in_sync(members.filter_map(|index| self.members.node(index)));
    }

    /// Takes the end of a job of this partition.
    pub fn completed(&mut self, now: Now, completion: Completion, storage: &mut dyn Storage) {
        let mut held = writes::Held {
            segments: &mut self.segments,
            pending: &mut self.pending,
            dropped: &mut self.truncated_waiters,
        };
        let events = self.log.completed(now, completion, storage, &mut held);
        self.take_events(now, events, storage);
        self.finish_when_quiet(storage);
    }

    /// Starts the clocks of the replica, once what recovery found is on disk: before that it vouches for nothing.
    fn start(&mut self, now: Now, storage: &mut dyn Storage) {
        let mut held = writes::Held {
            segments: &mut self.segments,
            pending: &mut self.pending,
            dropped: &mut self.truncated_waiters,
        };
        let events = self.log.start(now, storage, &mut held);
        self.take_events(now, events, storage);
        self.publish_in_sync(now);
    }

    /// Tells the replica something.
    pub fn step(&mut self, now: Now, input: Input, storage: &mut dyn Storage) {
        let mut held = writes::Held {
            segments: &mut self.segments,
            pending: &mut self.pending,
            dropped: &mut self.truncated_waiters,
        };
        let events = self.log.step(now, input, storage, &mut held);
        self.take_events(now, events, storage);
        self.publish_in_sync(now);
        self.finish_when_quiet(storage);
    }

    /// The replica's deadline has come, or an earlier one that no longer matters.
    pub fn tick(&mut self, now: Now, storage: &mut dyn Storage) {
        self.announced = None;
        self.step(now, Input::Tick, storage);
    }

    /// Takes the life of the other nodes for that of its members, where the group rests.
    pub fn vouch(&mut self, heard: &NodesHeard) {
        self.log.vouch(&self.members, heard);
    }

    /// Takes what another node says; one that is no member has nothing to say.
    pub fn receive(&mut self, now: Now, mut message: Message, storage: &mut dyn Storage) {
        if self.unusable || !self.opened {
            return;
        }
        let Some(from) = self.members.index_of(message.from) else {
            return;
        };
        message.from = from;
        match message.kind {
            Kind::RequestState | Kind::State(_) | Kind::RequestBatches { .. } | Kind::Batches { .. } => {
                self.transfer_message(now, message, storage);
            }
            _ => self.step(now, Input::Message(message), storage),
        }
    }

    /// Lets the member on a node lead, if this one does and that one is a member.
    pub fn hand_over(&mut self, now: Now, node: u8, storage: &mut dyn Storage) {
        if let Some(to) = self.members.index_of(node) {
            self.step(now, Input::HandOver { to }, storage);
        }
    }

    /// Has something sent to a member.
    fn send(&mut self, to: u8, mut message: Message) {
        if let Some(to) = self.members.node(to) {
            message.from = self.config.replica;
            self.notices.push(Notice::Send { to, message });
        }
    }

    /// The replica.
    pub fn replica(&self) -> &Replica {
        self.log.replica()
    }

    /// What of the replica's state is on disk or on its way there.
    pub fn durable_state(&self) -> &VsrState {
        self.log.durable_state()
    }

    /// Position up to which the state is applied.
    pub fn applied(&self) -> LogEnd {
        self.applied
    }

    pub(super) fn take_events(&mut self, now: Now, events: Vec<LogEvent>, storage: &mut dyn Storage) {
        for event in events {
            self.take_event(now, event, storage);
        }
        for waiter in std::mem::take(&mut self.truncated_waiters) {
            self.leave_unanswered(waiter);
        }
        // A deadline that has passed comes next, but never within this one.
        let next = self.log.replica().next_deadline();
        let next = next.map(|next| next.max(now.monotonic + 1));
        if let Some(next) = next.filter(|next| self.announced.is_none_or(|announced| *next < announced)) {
            self.announced = Some(next);
            self.notices.push(Notice::Deadline(next));
        }
    }

    fn take_event(&mut self, now: Now, event: LogEvent, storage: &mut dyn Storage) {
        match event {
            LogEvent::Committed(op) => self.committed(now, op, storage),
            LogEvent::Fenced { reason, cause } => {
                self.refuse_everything();
                self.notices.push(Notice::Fenced { reason, cause });
            }
            LogEvent::Read { id, result } => match self.serving.remove(&id) {
                Some(serving) => self.batches_read(serving, result, storage),
                None if self.aside_read(id, &result, storage) => {}
                None => self.read_done(now, id, result, storage),
            },
            LogEvent::OpenFailed(error) => {
                self.unusable = true;
                self.refuse_everything();
                self.notices.push(Notice::OpenFailed(error));
            }
            LogEvent::Opened => {
                self.opened = true;
                self.start(now, storage);
                if !self.dropped.1.is_empty() {
                    self.log.want_checkpoint(storage);
                    self.checkpoint_when_due(storage);
                }
                self.resume_waiting(now, storage);
            }
            LogEvent::Checkpointed(op) => self.checkpointed(op, storage),
            LogEvent::BackgroundFailed(error) => self.notices.push(Notice::BackgroundFailed(error)),
            LogEvent::Finished => self.notices.push(Notice::Stopped),
            LogEvent::Send { to, message } => self.send(to, message),
            LogEvent::Role => {
                let replica = self.log.replica();
                let (leads, view) = (replica.is_primary(), replica.view());
                if !leads {
                    self.give_up_leading();
                }
                self.notices.push(Notice::Role { leads, view });
            }
            LogEvent::HistoryLost(history) => self.notices.push(Notice::HistoryLost(history)),
            LogEvent::FetchState { from, from_scratch } => self.fetch_state(now, from, from_scratch, storage),
            LogEvent::Written => self.batches_written(storage),
            LogEvent::Installed(at) => self.state_installed(now, at, storage),
        }
    }

    /// Whether requests are answered here: by the replica that leads, or the only one there is.
    pub fn leads(&self) -> bool {
        self.members.count() == 1 || self.log.replica().is_primary()
    }

    /// Whether what recovery found is on disk.
    pub fn is_open(&self) -> bool {
        self.opened
    }

    /// Whether the replica takes part in a started view.
    pub fn is_normal(&self) -> bool {
        self.log.replica().status() == Status::Normal
    }

    /// Stops in order: refuses new requests, answers those that wait, and leaves everything on disk.
    pub fn stop(&mut self, storage: &mut dyn Storage) {
        self.stopping = true;
        self.refuse_waiting();
        self.finish_when_quiet(storage);
    }

    /// Answers every request because the partition is being deleted.
    pub fn abandon(&mut self) {
        self.unusable = true;
        // Nothing of a read is written, and asking again would find another partition.
        self.refuse_parked(ErrorCode::HistoryUnavailable);
        self.refuse_reads();
        self.refuse_everything();
    }

    /// Steps that close its files.
    pub fn close(&self) -> Job {
        let mut job = self.log.close();
        job.extend(self.segments.active_file().map(Step::Close));
        job
    }

    fn finish_when_quiet(&mut self, storage: &mut dyn Storage) {
        if !self.stopping || self.finishing {
            return;
        }
        if self.fenced().is_some() || self.unusable {
            self.finishing = true;
            // What a failed disk holds is left as it is, and not marked clean.
            self.notices.push(Notice::Stopped);
        } else if self.log.is_quiet() {
            self.finishing = true;
            let state = self.state.snapshot(self.applied_end);
            self.log.finish(self.applied, state, self.config.boot, storage);
        }
    }
}
