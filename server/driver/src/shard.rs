//! A shard: the groups one thread hosts, their timers, and the disk they share.
//!
//! Requests, orders and the end of disk jobs come in; replies and news go out through [`Shard::outputs`]. Nothing here
//! knows threads, sockets or a clock: whoever runs the shard brings the time.

mod replicas;
mod searches;
mod waits;

pub use waits::{SessionWaits, Watch, WatchTarget};

use crate::controller::Order;
use crate::heard::NodesHeard;
use crate::members::Members;
use crate::metadata_group::{MetadataConfig, MetadataError, MetadataGroup, MetadataNotice};
use crate::partition_group::{Notice, PartitionConfig, PartitionGroup, directory};
use crate::request::{Origin, PartitionRequest, Reply, Ticket};
use iggy_consensus::message::Message;
use iggy_consensus::{GroupId, Now};
use iggy_journal::Loss;
use iggy_journal::planted::{self, Bug};
use iggy_metadata::model::topic::History;
use iggy_metadata::{Change, PartitionKey, RequestKey};
use iggy_partition::recovery::RecoverError;
use iggy_protocol::error_code::ErrorCode;
use iggy_storage::image::Image;
use iggy_storage::{Completion, IoToken, Job, LaneId, Step, Storage};
use searches::Searches;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;
use waits::{Wait, Waits};

/// Jobs of the shard itself, which nobody waits for.
const SHARD_SLOT: u64 = u32::MAX as u64;

/// Limits of a shard.
#[derive(Clone, Copy, Debug)]
pub struct ShardConfig {
    /// Facts of its partitions.
    pub partition: PartitionConfig,
    /// Bytes of the newest batches that all partitions together keep in memory.
    pub tails_bytes_max: usize,
    /// Bytes of committed prepares that all partitions together keep in memory for members that miss them; what goes
    /// beyond is forgotten, and whoever misses it gets a whole state. 0 keeps none.
    pub repair_bytes_max: u64,
    /// Bytes that reads from disk may take at once; further reads wait.
    pub read_bytes_max: u64,
    /// Polls parked at once.
    pub parked_max: usize,
    /// Polls parked at once by one session, on all shards that share their [`SessionWaits`].
    pub parked_per_session_max: usize,
    /// Microseconds a poll is parked at most; longer waits are shortened.
    pub parked_wait_max: u64,
}

/// What a shard has to say.
#[derive(Debug)]
pub enum Output {
    /// A reply for whoever holds its ticket.
    Reply(Reply),
    /// News of the metadata group.
    Metadata(MetadataNotice),
    /// The end of the oldest sealed segments, as asked.
    SegmentsEnd {
        /// Who asked.
        ticket: Ticket,
        /// First offset to keep.
        before: Result<u64, ErrorCode>,
    },
    /// The metadata must begin a new history of a partition before it serves anything.
    HistoryLost {
        /// Partition.
        key: PartitionKey,
        /// Times this has happened to it.
        losses: u64,
    },
    /// A message for another node.
    Send {
        /// Node.
        to: u8,
        /// Message.
        message: Message,
    },
    /// A partition is led here from now on, or no longer.
    Role {
        /// Partition.
        key: PartitionKey,
        /// Whether it is.
        leads: bool,
        /// View of its group.
        view: u32,
    },
    /// Something an operator should see.
    Event(PartitionEvent),
    /// Every group has stopped.
    Stopped,
}

/// Something of a partition that an operator should see.
#[derive(Debug)]
pub enum PartitionEvent {
    /// The partition cannot be used; its directory is left as it is.
    Refused(PartitionKey, RecoverError),
    /// Writes may be lost, within what the partition promised.
    Lost(PartitionKey, Loss),
    /// Anything else.
    Trouble(PartitionKey, String),
}

/// See the module's page.
pub struct Shard<S> {
    config: ShardConfig,
    storage: S,
    metadata: Option<MetadataGroup>,
    partitions: BTreeMap<u32, PartitionGroup>,
    slots: BTreeMap<PartitionKey, u32>,
    groups: BTreeMap<GroupId, u32>,
    /// Partitions that are not here: they could not be opened, or other nodes hold them.
    refused: BTreeMap<PartitionKey, ErrorCode>,
    next_slot: u32,
    waits: Waits,
    /// Partitions with requests that wait for a write in flight or for bytes from disk.
    holding: BTreeSet<u32>,
    /// When replicas want to be stepped; slot 0 is the metadata.
    replica_deadlines: BinaryHeap<Reverse<(u64, u32)>>,
    searches: Searches,
    heard: Arc<NodesHeard>,
    /// Partitions with reads that wait for room, in the order in which they came.
    waiting_reads: VecDeque<u32>,
    read_bytes: u64,
    tails_bytes: usize,
    retained_bytes: u64,
    /// Partition whose retained prepares were forgotten last for room.
    retained_hand: u32,
    /// Partition whose tail was looked at last for room.
    tail_hand: u32,
    /// Orders that found the log of their partition full.
    orders: VecDeque<Order>,
    outputs: Vec<Output>,
    completions: Vec<Completion>,
    stopping: bool,
    stopped_groups: usize,
}

impl<S: Storage> Shard<S> {
    /// A shard without groups.
    pub fn new(config: ShardConfig, storage: S) -> Self {
        Self {
            config,
            storage,
            metadata: None,
            partitions: BTreeMap::new(),
            slots: BTreeMap::new(),
            groups: BTreeMap::new(),
            replica_deadlines: BinaryHeap::new(),
            searches: Searches::default(),
            heard: Arc::default(),
            refused: BTreeMap::new(),
            next_slot: 0,
            waits: Waits::default(),
            holding: BTreeSet::new(),
            waiting_reads: VecDeque::new(),
            read_bytes: 0,
            tails_bytes: 0,
            retained_bytes: 0,
            retained_hand: 0,
            tail_hand: 0,
            orders: VecDeque::new(),
            outputs: Vec::new(),
            completions: Vec::new(),
            stopping: false,
            stopped_groups: 0,
        }
    }

    /// Counts the waits of sessions together with the other shards of the node.
    #[must_use]
    pub fn sharing_session_waits(mut self, sessions: Arc<SessionWaits>) -> Self {
        self.waits.sessions = sessions;
        self
    }

    /// Lets so many partitions begin to search for a view at once, at least one; further ones wait.
    #[must_use]
    pub fn searching_at_most(mut self, searches: usize) -> Self {
        self.searches = Searches::new(searches);
        self
    }

    /// Learns from whoever runs the node when other nodes were heard.
    #[must_use]
    pub fn hearing(mut self, heard: Arc<NodesHeard>) -> Self {
        self.heard = heard;
        self
    }

    /// Hosts the metadata group here. `created` says that the cluster is being created now, not joined again.
    pub fn open_metadata(
        &mut self,
        pipeline_max: usize,
        created: bool,
        image: &dyn Image,
    ) -> Result<(), MetadataError> {
        let partition = self.config.partition;
        let config = MetadataConfig {
            cluster: partition.cluster,
            boot: partition.boot,
            replica: partition.replica,
            replica_count: partition.replica_count,
            created,
            consensus: iggy_consensus::ReplicaConfig {
                pipeline_max,
                ..partition.consensus
            },
        };
        let group = MetadataGroup::open(config, image, &mut self.storage)?;
        self.metadata = Some(group);
        Ok(())
    }

    /// The storage, for whoever runs it.
    pub fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// The metadata group, where it is hosted.
    pub fn metadata(&self) -> Option<&MetadataGroup> {
        self.metadata.as_ref()
    }

    /// Partitions hosted here.
    pub fn partitions(&self) -> impl Iterator<Item = &PartitionGroup> {
        self.partitions.values()
    }

    /// Bytes that reads from disk take now.
    pub fn reading(&self) -> u64 {
        self.read_bytes
    }

    /// Moves what the shard has to say to the end of `out`.
    pub fn outputs(&mut self, out: &mut Vec<Output>) {
        out.append(&mut self.outputs);
    }

    /// Proposes a metadata change.
    #[allow(clippy::needless_pass_by_value)] // A change belongs to whoever orders it.
    pub fn change(&mut self, now: Now, ticket: Ticket, request: RequestKey, change: Change) {
        if let Some(metadata) = &mut self.metadata {
            metadata.propose(now, ticket, request, &change, &mut self.storage);
        }
        self.collect_metadata();
    }

    /// Takes a request for a partition.
    pub fn request(&mut self, now: Now, key: PartitionKey, origin: Origin, mut request: PartitionRequest) {
        let Some(slot) = self.slots.get(&key).copied() else {
            return self.refuse_absent(&key, &origin);
        };
        if let PartitionRequest::Poll(poll) = &mut request {
            poll.wait = poll.wait.min(self.config.parked_wait_max);
        }
        if let Some(group) = self.partitions.get_mut(&slot) {
            group.request(now, origin, request, &mut self.storage);
        }
        self.collect(slot);
    }

    /// Asks where the oldest sealed segments of a partition end.
    pub fn segments_end(&mut self, ticket: Ticket, key: &PartitionKey, count: u32) {
        let group = self.slots.get(key).and_then(|slot| self.partitions.get(slot));
        let before = group
            .map(|group| group.offset_after_segments(count))
            .ok_or(ErrorCode::PartitionHistoryChanged);
        self.outputs.push(Output::SegmentsEnd { ticket, before });
    }

    /// Drops expired messages and those beyond their partition's share.
    pub fn retain(&mut self, now: Now) {
        for group in self.partitions.values_mut() {
            group.retain(now, &mut self.storage);
        }
        self.collect_all();
    }

    /// Takes an order that follows from the metadata. `image` is the directory the storage writes to.
    pub fn order(&mut self, now: Now, order: Order, image: &dyn Image) {
        match order {
            Order::Open {
                key,
                members,
                settings,
                history,
                created,
                counters,
            } => self.open(key, members, settings, history, created, counters, image),
            Order::Delete { key } => self.delete(&key),
            Order::BeginHistory { key, history } => {
                if let Some(group) = self.group_mut(&key) {
                    group.begin_history(history);
                }
                if let Some(slot) = self.slots.get(&key).copied() {
                    self.collect(slot);
                }
            }
            Order::Configure { key, settings } => {
                if let Some(group) = self.group_mut(&key) {
                    group.set_settings(settings);
                }
            }
            other => {
                let slot = other.key().and_then(|key| self.slots.get(&key).copied());
                if !self.give(now, &other) {
                    self.orders.push_back(other);
                }
                match slot {
                    Some(slot) => self.collect(slot),
                    None => self.collect_all(),
                }
            }
        }
    }

    fn group_mut(&mut self, key: &PartitionKey) -> Option<&mut PartitionGroup> {
        self.slots.get(key).and_then(|slot| self.partitions.get_mut(slot))
    }

    #[allow(clippy::too_many_arguments)] // The parts of an order.
    fn open(
        &mut self,
        key: PartitionKey,
        members: Members,
        settings: iggy_partition::Settings,
        history: History,
        created: bool,
        counters: std::sync::Arc<crate::counters::PartitionCounters>,
        image: &dyn Image,
    ) {
        if self.slots.contains_key(&key) {
            return;
        }
        let config = self.config.partition;
        let Some(index) = members.index_of(config.replica) else {
            // Whoever asks here is sent on.
            self.refused.insert(key, ErrorCode::NotPrimary);
            return;
        };
        self.next_slot += 1;
        let slot = self.next_slot;
        let opened = PartitionGroup::open(
            key,
            slot,
            members,
            index,
            settings,
            history,
            created,
            config,
            image,
            counters,
            &mut self.storage,
        );
        match opened {
            Ok((group, loss)) => {
                if let Some(losses) = group.unknown_losses() {
                    self.outputs.push(Output::HistoryLost { key, losses });
                }
                self.partitions.insert(slot, group);
                self.slots.insert(key, slot);
                self.start(slot);
                if let Some(loss) = loss {
                    self.outputs.push(Output::Event(PartitionEvent::Lost(key, loss)));
                }
            }
            Err(error) => {
                self.refused.insert(key, ErrorCode::CannotOpenPartitionLogFile);
                self.outputs.push(Output::Event(PartitionEvent::Refused(key, error)));
            }
        }
    }

    fn delete(&mut self, key: &PartitionKey) {
        if self.refused.remove(key) == Some(ErrorCode::NotPrimary) {
            return;
        }
        let mut job = Job::new();
        let mut lane = LaneId(SHARD_SLOT << 8);
        if let Some(slot) = self.slots.remove(key)
            && let Some(mut group) = self.partitions.remove(&slot)
        {
            group.abandon();
            self.groups.remove(&group.replica().group());
            self.searches.end(slot);
            self.tails_bytes -= group.count_tail().0;
            self.retained_bytes -= group.count_retained().0;
            let mut notices = Vec::new();
            group.take_notices(&mut notices);
            job = group.close();
            // The append lane of the partition runs what it still holds first: nothing comes back after the removal.
            lane = LaneId(u64::from(slot) << 8);
            self.holding.remove(&slot);
            for notice in notices {
                self.notice(slot, *key, notice);
            }
        }
        job.push(Step::RemoveDirectory(directory(key)));
        self.storage.submit(lane, IoToken(SHARD_SLOT << 32), job);
    }

    /// Gives orders to their partitions until one has no room.
    fn give_orders(&mut self, now: Now) {
        for _ in 0..self.orders.len() {
            let Some(order) = self.orders.pop_front() else { break };
            if !self.give(now, &order) {
                self.orders.push_back(order);
            }
        }
        self.collect_all();
    }

    /// True when the order is done, or has nobody to go to.
    fn give(&mut self, now: Now, order: &Order) -> bool {
        let Self {
            slots,
            partitions,
            storage,
            ..
        } = self;
        if let Order::RetireSession(member) = order {
            return partitions.values_mut().all(|group| {
                group.fenced().is_some() || !group.leads() || group.retire_session(now, *member, storage)
            });
        }
        let group = order.key().and_then(|key| partitions.get_mut(slots.get(&key)?));
        // Whoever leads the partition next is given what follows from the metadata anew.
        let takes = |group: &&mut PartitionGroup| group.fenced().is_none() && group.leads();
        let Some(group) = group.filter(takes) else {
            return true;
        };
        match order {
            Order::InstallOwner {
                group: id,
                generation,
                member,
                ..
            } => group.install_owner(now, *id, *generation, *member, storage),
            Order::RetireGroup {
                group: id, generation, ..
            } => group.retire_group(now, *id, *generation, storage),
            Order::Truncate { before, .. } => {
                let done = if planted::has(Bug::CutAgain) {
                    group.state().log_start
                } else {
                    group.state().truncated_before
                };
                done >= *before || group.truncate(now, *before, storage)
            }
            Order::Open { .. }
            | Order::BeginHistory { .. }
            | Order::Delete { .. }
            | Order::Configure { .. }
            | Order::RetireSession(_) => true,
        }
    }

    /// Takes every disk job that has ended.
    pub fn complete(&mut self, now: Now) {
        let mut completions = std::mem::take(&mut self.completions);
        self.storage.completions(&mut completions);
        for completion in completions.drain(..) {
            let slot = completion.token.0 >> 32;
            if slot == 0 {
                if let Some(metadata) = &mut self.metadata {
                    metadata.completed(now, completion, &mut self.storage);
                }
                self.collect_metadata();
            } else if let Some(group) = self.partitions.get_mut(&(slot as u32)) {
                group.completed(now, completion, &mut self.storage);
                self.collect(slot as u32);
            }
        }
        self.completions = completions;
        self.begin_searches(now);
        if !self.orders.is_empty() {
            self.give_orders(now);
        }
    }

    /// Stops every group in order; [`Output::Stopped`] says when all have.
    pub fn stop(&mut self) {
        self.stopping = true;
        if let Some(metadata) = &mut self.metadata {
            metadata.stop(&mut self.storage);
        }
        for group in self.partitions.values_mut() {
            group.stop(&mut self.storage);
        }
        self.collect_metadata();
        self.collect_all();
        self.say_when_stopped();
    }

    fn say_when_stopped(&mut self) {
        let groups = self.partitions.len() + usize::from(self.metadata.is_some());
        if self.stopping && self.stopped_groups == groups {
            self.stopping = false;
            self.outputs.push(Output::Stopped);
        }
    }

    fn collect_all(&mut self) {
        let slots: Vec<u32> = self.partitions.keys().copied().collect();
        for slot in slots {
            self.collect(slot);
        }
    }

    fn collect(&mut self, slot: u32) {
        let mut notices = Vec::new();
        // What is done about a notice may bring further ones.
        while let Some(group) = self.partitions.get_mut(&slot) {
            let key = group.key();
            group.take_notices(&mut notices);
            if notices.is_empty() {
                if group.holds_requests() {
                    self.holding.insert(slot);
                } else {
                    self.holding.remove(&slot);
                }
                if !group.replica().is_unsettled() {
                    self.searches.end(slot);
                }
                let (before, now) = group.count_tail();
                self.tails_bytes = self.tails_bytes - before + now;
                let (before, now) = group.count_retained();
                self.retained_bytes = self.retained_bytes - before + now;
                break;
            }
            for notice in notices.drain(..) {
                self.notice(slot, key, notice);
            }
        }
        self.forget_tails();
        self.forget_retained();
    }

    /// Bytes of committed prepares that the partitions keep in memory for members that miss them.
    pub fn retained_bytes(&self) -> u64 {
        let partitions = self.partitions.values();
        partitions.map(|group| group.replica().retained_bytes()).sum()
    }

    /// Keeps the memory for members that lag within its bound: goes round the partitions, so that a busy one does not
    /// take it all from the others every time.
    fn forget_retained(&mut self) {
        let mut looks = self.partitions.len() + 1;
        while self.retained_bytes > self.config.repair_bytes_max && looks > 0 {
            looks -= 1;
            let next = self.partitions.range_mut(self.retained_hand + 1..).next();
            let Some((slot, group)) = next else {
                self.retained_hand = 0;
                continue;
            };
            self.retained_hand = *slot;
            group.forget_retained();
            let (before, now) = group.count_retained();
            self.retained_bytes = self.retained_bytes - before + now;
        }
    }

    /// Makes room for the newest batches: goes round the partitions and forgets the tails that nobody has used since the
    /// last time round.
    fn forget_tails(&mut self) {
        // Twice round is enough: the first time every mark of use is taken away.
        let mut looks = 2 * self.partitions.len() + 2;
        while self.tails_bytes > self.config.tails_bytes_max && looks > 0 {
            looks -= 1;
            let next = self.partitions.range_mut(self.tail_hand + 1..).next();
            let Some((slot, group)) = next else {
                self.tail_hand = 0;
                continue;
            };
            self.tail_hand = *slot;
            if group.forget_idle_tail() {
                let (before, now) = group.count_tail();
                self.tails_bytes = self.tails_bytes - before + now;
            }
        }
    }

    fn notice(&mut self, slot: u32, key: PartitionKey, notice: Notice) {
        let trouble = |text| Output::Event(PartitionEvent::Trouble(key, text));
        let output = match notice {
            Notice::Reply(reply) => Output::Reply(reply),
            Notice::Parked {
                member,
                request,
                connection,
                deadline,
                expiry,
            } => {
                let wait = Wait {
                    member,
                    request,
                    connection,
                    deadline,
                };
                return self.parked_at((slot, expiry), wait);
            }
            Notice::Unparked(expiry) => {
                self.waits.remove((slot, expiry));
                return;
            }
            Notice::Watched(watch, expiry) => return self.watched(watch, (slot, expiry)),
            Notice::ReadWanted => {
                self.waiting_reads.push_back(slot);
                return self.start_reads();
            }
            Notice::ReadEnded { bytes } => {
                self.read_bytes -= bytes;
                return self.start_reads();
            }
            Notice::Fenced { reason, cause } => trouble(format!("takes no more writes: {reason}: {cause}")),
            Notice::OpenFailed(error) => trouble(format!("cannot be opened: {error}")),
            Notice::BackgroundFailed(error) => trouble(error.to_string()),
            Notice::Damaged(text) => trouble(text),
            Notice::Stopped => {
                self.stopped_groups += 1;
                return self.say_when_stopped();
            }
            Notice::Send { to, message } => Output::Send { to, message },
            Notice::Role { leads, view } => Output::Role { key, leads, view },
            Notice::HistoryLost(losses) => Output::HistoryLost { key, losses },
            Notice::Deadline(deadline) => return self.replica_deadlines.push(Reverse((deadline, slot))),
        };
        self.outputs.push(output);
    }

    /// Starts reads that wait, as far as there is room. One read may always run, whatever its size.
    fn start_reads(&mut self) {
        while let Some(slot) = self.waiting_reads.front() {
            let Some(group) = self.partitions.get_mut(slot) else {
                self.waiting_reads.pop_front();
                continue;
            };
            let bytes = group.next_read();
            if self.read_bytes > 0 && self.read_bytes + bytes > self.config.read_bytes_max {
                return;
            }
            self.read_bytes += bytes;
            group.start_read(&mut self.storage);
            self.waiting_reads.pop_front();
        }
    }

    fn collect_metadata(&mut self) {
        let mut notices = Vec::new();
        if let Some(metadata) = &mut self.metadata {
            metadata.take_notices(&mut notices);
        }
        for notice in notices {
            match notice {
                MetadataNotice::Stopped => {
                    self.stopped_groups += 1;
                    self.say_when_stopped();
                }
                MetadataNotice::Send { to, message } => self.outputs.push(Output::Send { to, message }),
                MetadataNotice::Deadline(deadline) => self.replica_deadlines.push(Reverse((deadline, 0))),
                other => self.outputs.push(Output::Metadata(other)),
            }
        }
    }
}
