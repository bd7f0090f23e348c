//! One partition on its shard: requests in, replies out, a log in between.
//!
//! Writes are admitted here, ordered by the group's log and applied when they commit. A request that depends on a write
//! still in flight waits for it: a group's request for its owner to be installed, a read that commits for its offset.

mod commit;
mod parked;
mod polling;
mod retention;
mod writes;

pub use parked::Expiry;

use crate::counters::PartitionCounters;
use crate::group_log::{GroupLog, LogEvent};
use crate::request::{Origin, PartitionRequest, Reply};
use crate::tally::WatchId;
use iggy_consensus::{FenceReason, GroupId, LogEnd, Now, Replica, ReplicaConfig, VsrState};
use iggy_journal::planted::{self, Bug};
use iggy_journal::{BootId, FileNumbers, Loss, Policy};
use iggy_metadata::PartitionKey;
use iggy_metadata::model::topic::History;
use iggy_partition::Settings;
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
    /// Prepares in flight, 1..=127.
    pub pipeline_max: usize,
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
    settings: Settings,
    history: History,
    config: PartitionConfig,
    log: GroupLog,
    state: PartitionState,
    segments: Segments,
    tail: Tail,
    /// Bytes of the tail when the shard counted them last.
    counted_tail: usize,
    /// Whether the tail was read or appended to since the shard last looked.
    tail_used: bool,
    pending: VecDeque<writes::Pending>,
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
    /// Opens a partition, new or recovered.
    #[allow(clippy::too_many_arguments)] // What a partition is, where it lies and what it runs on: nothing repeats.
    pub fn open(
        key: PartitionKey,
        slot: u32,
        settings: Settings,
        history: History,
        config: PartitionConfig,
        image: &dyn Image,
        counters: Arc<PartitionCounters>,
        storage: &mut dyn Storage,
    ) -> Result<(Self, Option<Loss>), RecoverError> {
        let directory = directory(&key);
        let group = GroupId::partition(key.stream_id, key.topic_id, key.partition_id, key.incarnation);
        let fresh = VsrState::new(config.cluster, group, 0, 1);
        let policy = Policy {
            boot: config.boot,
            volatile: settings.is_volatile(),
        };
        let mut numbers = FileNumbers::new(slot);
        let found = recover(image, &directory, fresh, policy, &settings, &mut numbers)?;
        let mut open = found.log.open;
        open.extend(found.open);
        let replica_config = ReplicaConfig {
            pipeline_max: config.pipeline_max,
        };
        let superblock = *found.log.journal.superblock();
        let replica = Replica::recover(replica_config, superblock.state, found.log.end)
            .expect("a group of one starts from any state its superblock can hold");
        let due = (config.wal_bytes_max / 2).max(1);
        let log = GroupLog::new(slot, replica, found.log.journal, numbers, due, open, storage);
        let applied_end = found
            .segments
            .end()
            .map(|(segment, size)| LogPosition { segment, size });
        let group = Self {
            key,
            settings,
            history,
            config,
            log,
            state: found.state,
            segments: found.segments,
            tail: Tail::new(config.tail_bytes_max),
            counted_tail: 0,
            tail_used: false,
            pending: VecDeque::new(),
            waiting: VecDeque::new(),
            parked: parked::Parked::default(),
            reads: BTreeMap::new(),
            wanted_reads: VecDeque::new(),
            next_number: 0,
            applied: found.log.end,
            applied_end,
            counters,
            dropped: (found.log.end.op, found.dropped),
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

    /// Takes the end of a job of this partition.
    pub fn completed(&mut self, now: Now, completion: Completion, storage: &mut dyn Storage) {
        for event in self.log.completed(now, completion, storage) {
            match event {
                LogEvent::Committed(op) => self.committed(now, op, storage),
                LogEvent::Fenced { reason, cause } => {
                    self.refuse_everything();
                    self.notices.push(Notice::Fenced { reason, cause });
                }
                LogEvent::Read { id, result } => self.read_done(now, id, result, storage),
                LogEvent::OpenFailed(error) => {
                    self.unusable = true;
                    self.refuse_everything();
                    self.notices.push(Notice::OpenFailed(error));
                }
                LogEvent::Opened => {
                    self.opened = true;
                    if !self.dropped.1.is_empty() {
                        self.log.want_checkpoint(storage);
                        self.checkpoint_when_due(storage);
                    }
                    self.resume_waiting(now, storage);
                }
                LogEvent::Checkpointed(op) => self.checkpointed(op, storage),
                LogEvent::BackgroundFailed(error) => self.notices.push(Notice::BackgroundFailed(error)),
                LogEvent::Finished => self.notices.push(Notice::Stopped),
            }
        }
        self.finish_when_quiet(storage);
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
