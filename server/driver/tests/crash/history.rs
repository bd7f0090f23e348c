//! One seeded history of a partition: clients, orders, deaths and recoveries, each drawn from the seed.

use crate::node::Node;
use crate::oracle::{Batch, Broken, Kind, Oracle, Request, Status};
use bytes::Bytes;
use iggy_consensus::{Durability, Now};
use iggy_driver::request::{Answer, Origin, PartitionRequest, Poll, Reply, Ticket};
use iggy_driver::{Order, Output, PartitionEvent};
use iggy_metadata::PartitionKey;
use iggy_metadata::model::topic::History as PartitionHistory;
use iggy_partition::Settings;
use iggy_partition::operation::{ConsumerKey, Member};
use iggy_protocol::batch::{ProducerSection, Records, next_sequence};
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::header::RequestHeader;
use iggy_protocol::identifier::Identifier;
use iggy_protocol::limits::POLL_HEAD_BYTES;
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_storage::memory::MemoryDisk;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

pub const KEY: PartitionKey = PartitionKey {
    stream_id: 1,
    topic_id: 2,
    partition_id: 0,
    incarnation: 5,
};
const CLIENTS: usize = 3;
/// The client whose batches carry a producer section.
const IDEMPOTENT: usize = 2;
/// The consumer group; consumers below it are plain.
const GROUP: u32 = 3;
const SESSION: u64 = 11;

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    Crash,
    Power,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Request(usize),
    Read,
    /// A read that stores its offset.
    CommittingRead,
}

pub struct History {
    pub disk: MemoryDisk,
    pub oracle: Oracle,
    pub random: StdRng,
    settings: Settings,
    boot: u128,
    now: Now,
    node: Option<Node>,
    known: PartitionHistory,
    next_ticket: u64,
    asked: BTreeMap<u64, Asked>,
    last_read: Option<Reply>,
    numbers: [u64; CLIENTS],
    producer: (u16, u32),
    /// Losses known when the producer took its epoch.
    producer_losses: u64,
    /// Whether a disk fault was injected in this life: the partition may then refuse to go on.
    faulty: bool,
    /// What was applied when the partition fenced itself; nothing after it may be acknowledged in this life.
    fenced_at: Option<u64>,
    /// Whether the last life ended in order: then even the power may go without a loss.
    stopped: bool,
    /// Everything that came out, for comparison with another run of the seed.
    pub trace: u64,
}

impl History {
    pub fn new(seed: u64, messages: Durability, offsets: Durability) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let settings = Settings {
            partition_id: 0,
            segment_size: random.random_range(600..2_500),
            preallocate: random.random(),
            durability: messages,
            consumer_offset_durability: offsets,
            message_expiry: u64::MAX,
            size_max: if random.random() { u64::MAX } else { 4_000 },
        };
        Self {
            disk: MemoryDisk::new(),
            oracle: Oracle::default(),
            random,
            settings,
            boot: 100,
            now: Now {
                monotonic: 1_000,
                wall: 1_700_000_000_000_000,
            },
            node: None,
            known: PartitionHistory {
                losses: 0,
                incarnation: KEY.incarnation,
            },
            next_ticket: 0,
            asked: BTreeMap::new(),
            last_read: None,
            numbers: [0; CLIENTS],
            producer: (0, 0),
            producer_losses: 0,
            faulty: false,
            fenced_at: None,
            stopped: false,
            trace: 0,
        }
    }

    fn node(&mut self) -> &mut Node {
        self.node.as_mut().expect("a node runs")
    }

    fn advance(&mut self) {
        let micros = self.random.random_range(1..500);
        self.now.monotonic += micros;
        self.now.wall += micros;
        // The wall clock may step back; order must not depend on it.
        if self.random.random_ratio(1, 50) {
            self.now.wall -= 10_000;
        }
    }

    fn ticket(&mut self, asked: Asked) -> Ticket {
        self.next_ticket += 1;
        self.asked.insert(self.next_ticket, asked);
        Ticket(self.next_ticket)
    }

    /// Starts a node on the disk as it lies, and gives it what the metadata would.
    pub fn start(&mut self) -> Result<(), Broken> {
        self.node = Some(Node::start(&self.disk, self.random.random(), self.boot));
        let order = Order::Open {
            key: KEY,
            members: iggy_driver::Members::all(1),
            settings: self.settings,
            history: self.known,
            created: true,
            counters: std::sync::Arc::default(),
        };
        self.order(order)?;
        self.stopped = false;
        let Some((end, next_offset, log_start)) = self.state(|state| (state.op, state.next_offset, state.log_start))
        else {
            return Err("the partition was not opened".into());
        };
        let (messages, offsets) = (self.settings.durability, self.settings.consumer_offset_durability);
        self.oracle
            .recovered(end, self.known.losses, next_offset, messages, offsets)?;
        if log_start > self.oracle.may_start_at {
            return Err(format!("the log starts at {log_start} and was never cut so far"));
        }
        if self.oracle.truncated_before > 0 {
            // As at every start, from metadata that is always persisted.
            let before = self.oracle.truncated_before;
            self.order(Order::Truncate { key: KEY, before })?;
        }
        Ok(())
    }

    fn state<T>(&mut self, read: impl FnOnce(&iggy_partition::state::PartitionState) -> T) -> Option<T> {
        self.node().shard.partitions().next().map(|group| read(group.state()))
    }

    fn order(&mut self, order: Order) -> Result<(), Broken> {
        let (now, disk) = (self.now, self.disk.clone());
        self.node().shard.order(now, order, &disk);
        self.take_outputs()
    }

    pub fn complete(&mut self, jobs: usize) -> Result<(), Broken> {
        let now = self.now;
        self.node().complete(now, jobs);
        self.take_outputs()
    }

    /// Runs the disk until it has nothing left to do.
    pub fn settle(&mut self) -> Result<(), Broken> {
        for _ in 0..10_000 {
            if self.node().is_idle() || self.disk.is_dead() {
                return Ok(());
            }
            self.complete(4)?;
        }
        Err("the node never rests".into())
    }

    fn take_outputs(&mut self) -> Result<(), Broken> {
        let mut outputs = Vec::new();
        self.node().shard.outputs(&mut outputs);
        for output in outputs {
            self.trace = xxh3_64(format!("{} {output:?}", self.trace).as_bytes());
            match output {
                Output::Reply(reply) => self.replied(reply)?,
                Output::HistoryLost { losses, .. } => {
                    if self.stopped {
                        return Err(format!("{losses} losses after a stop in order"));
                    }
                    self.known = PartitionHistory {
                        losses,
                        incarnation: KEY.incarnation + losses,
                    };
                    let order = Order::BeginHistory {
                        key: KEY,
                        history: self.known,
                    };
                    let (now, disk) = (self.now, self.disk.clone());
                    self.node().shard.order(now, order, &disk);
                }
                Output::Event(PartitionEvent::Refused(_, error)) => return Err(format!("recovery refused: {error}")),
                Output::Event(PartitionEvent::Trouble(_, text)) => {
                    if !self.faulty {
                        return Err(format!("trouble without a fault: {text}"));
                    }
                    if text.starts_with("takes no more writes") {
                        self.fenced_at = self.state(|state| state.op);
                    }
                }
                Output::Stopped => self.stopped = !self.is_impaired(),
                _ => {}
            }
        }
        Ok(())
    }

    fn replied(&mut self, reply: Reply) -> Result<(), Broken> {
        match self.asked.remove(&reply.ticket.0) {
            Some(Asked::Request(index)) => {
                let after_fence = |at: u64| reply.header.committed == 1 && reply.header.op.get() > at;
                if self.fenced_at.is_some_and(after_fence) {
                    return Err(format!("request {index} was acknowledged by a fenced partition"));
                }
                self.oracle.answered(index, &reply, self.known.losses)
            }
            Some(Asked::Read) => {
                self.saw(&reply)?;
                self.last_read = Some(reply);
                Ok(())
            }
            Some(Asked::CommittingRead) => {
                self.saw(&reply)?;
                let last = messages(&reply)?.last().map(|(offset, ..)| *offset);
                let refused = reply.header.status.get() != 0;
                self.oracle.read_committed(last, refused);
                Ok(())
            }
            None => Err(format!("ticket {} was answered twice", reply.ticket.0)),
        }
    }

    fn saw(&mut self, reply: &Reply) -> Result<(), Broken> {
        let losses = self.known.losses;
        for (offset, id, _) in messages(reply)? {
            let (seen, _) = *self.oracle.seen.entry(offset).or_insert((id, losses));
            if seen != id {
                return Err(format!("offset {offset} held {seen:x} and now {id:x}"));
            }
        }
        Ok(())
    }

    /// Ends this life. With the power go the unsynced bytes and the boot.
    pub fn die(&mut self, death: Death) {
        self.node = None;
        self.faulty = false;
        self.fenced_at = None;
        self.disk.fail_next_sync(0);
        self.disk.fill_after(None);
        let reading = self.asked.values().any(|asked| *asked == Asked::CommittingRead);
        self.asked.clear();
        self.oracle.died(reading);
        match death {
            Death::Crash => self.disk.crash(),
            Death::Power => {
                self.disk.lose_power(self.random.random());
                self.boot += 1;
            }
        }
    }

    /// Stops the node in order, as far as the disk lives.
    pub fn stop(&mut self) -> Result<(), Broken> {
        self.node().shard.stop();
        self.take_outputs()?;
        self.settle()?;
        if self.stopped || self.is_impaired() {
            Ok(())
        } else {
            Err("the node did not stop".into())
        }
    }

    /// Ends this life in one of the two ways.
    pub fn die_either_way(&mut self) {
        let crash = self.random.random();
        self.die(if crash { Death::Crash } else { Death::Power });
    }

    /// Lets a sync fail, or the disk run full.
    pub fn hurt(&mut self) {
        self.faulty = true;
        if self.random.random() {
            self.disk.fail_next_sync(1);
        } else {
            self.disk.fill_after(Some(self.random.random_range(0..3_000)));
        }
    }

    /// Whether the disk died or was hurt, so that not everything can be asked of the node.
    pub fn is_impaired(&self) -> bool {
        self.faulty || self.disk.is_dead()
    }

    /// Reads the whole log and all offsets and holds them against what clients were told.
    pub fn inspect(&mut self) -> Result<(), Broken> {
        self.settle()?;
        let Some((log_start, end)) = self.state(|state| (state.log_start, state.next_offset)) else {
            return Err("no partition".into());
        };
        let mut log = Vec::new();
        while log_start + (log.len() as u64) < end {
            let reply = self.read(PollingStrategy::Offset(log_start + log.len() as u64), 1_000)?;
            let read = messages(&reply)?;
            if read.is_empty() {
                return Err(format!(
                    "nothing can be read at {} of {log_start}..{end}: {:?}",
                    log_start + log.len() as u64,
                    reply.header.status
                ));
            }
            log.extend(read);
        }
        let losses = self.known.losses;
        self.oracle.check_log(&log, log_start, losses)?;
        for consumer in 0..=GROUP {
            let stored = self
                .state(|state| state.offsets.get(&key_of(consumer)).copied())
                .flatten();
            self.oracle.check_offset(consumer, stored, end)?;
        }
        let stored = self.state(|state| state.offsets.get(&reader()).copied()).flatten();
        self.oracle.check_read(stored, end)
    }

    /// As [`inspect`](Self::inspect), unless the disk dies meanwhile.
    pub fn inspect_unless_dead(&mut self) -> Result<(), Broken> {
        let result = self.inspect();
        if self.is_impaired() { Ok(()) } else { result }
    }

    fn read(&mut self, strategy: PollingStrategy, count: u32) -> Result<Reply, Broken> {
        self.last_read = None;
        self.poll(strategy, count, false)?;
        self.settle()?;
        self.last_read.take().ok_or_else(|| "a poll was never answered".into())
    }

    fn poll(&mut self, strategy: PollingStrategy, count: u32, commit: bool) -> Result<(), Broken> {
        let ticket = self.ticket(if commit { Asked::CommittingRead } else { Asked::Read });
        let origin = origin(ticket, Operation::NonReplicated, 0, 0, self.known.incarnation);
        let poll = Poll {
            consumer: reader(),
            strategy,
            count,
            min_count: 1,
            max_bytes: 1 << 20,
            commit,
            wait: 0,
            answer: Answer::Messages,
            metadata_op: 9,
        };
        self.give(origin, PartitionRequest::Poll(poll))
    }

    fn give(&mut self, origin: Origin, request: PartitionRequest) -> Result<(), Broken> {
        let now = self.now;
        self.node().shard.request(now, KEY, origin, request);
        self.take_outputs()
    }

    /// Does one thing a client, the metadata or the disk might do now.
    pub fn act(&mut self) -> Result<(), Broken> {
        self.advance();
        match self.random.random_range(0..100) {
            0..35 => self.send(),
            35..47 => self.store(),
            47..51 => self.delete(),
            51..58 => self.resend(),
            58..62 => self.install_owner(),
            62..64 => self.truncate(),
            64..66 => {
                let now = self.now;
                self.note_retention();
                self.node().shard.retain(now);
                self.take_outputs()
            }
            66..72 => {
                let offset = self.state(|state| state.next_offset).unwrap_or(0);
                let from = self.random.random_range(0..=offset);
                let commit = self.random.random();
                self.poll(PollingStrategy::Offset(from), 5, commit)
            }
            _ => {
                let jobs = self.random.random_range(1..4);
                self.complete(jobs)
            }
        }
    }

    fn send(&mut self) -> Result<(), Broken> {
        let client = self.random.random_range(0..CLIENTS);
        if client == IDEMPOTENT {
            return self.send_idempotent();
        }
        let batch = self.new_batch(client, None);
        self.ask(client, Kind::Send(batch))
    }

    /// The producer's next batch, or its last one again until that is confirmed.
    fn send_idempotent(&mut self) -> Result<(), Broken> {
        if self.producer_losses != self.known.losses {
            // What it was told may be gone: it begins anew.
            self.producer_losses = self.known.losses;
            self.producer = (self.producer.0 + 1, 0);
        }
        let newest = self
            .oracle
            .requests
            .iter()
            .rposition(|request| request.client == IDEMPOTENT && matches!(request.kind, Kind::Send(_)));
        let settled = newest.is_none_or(|index| matches!(self.oracle.requests[index].status, Status::Acked(_)));
        match newest {
            // Now and then one that was confirmed comes again as well, from a client that does not remember.
            Some(index) if self.producer.1 > 0 && (!settled || self.random.random_ratio(1, 4)) => {
                if self.oracle.requests[index].status == Status::InFlight {
                    return Ok(());
                }
                // The same batch under a new number is what a producer sends whose session ended.
                let kind = self.oracle.requests[index].kind;
                self.ask(IDEMPOTENT, kind)
            }
            _ => {
                let (epoch, sequence) = self.producer;
                let batch = self.new_batch(IDEMPOTENT, Some((epoch, sequence)));
                let count = self.oracle.batches[batch].ids.len() as u32;
                self.producer.1 = next_sequence(sequence, count);
                self.ask(IDEMPOTENT, Kind::Send(batch))
            }
        }
    }

    fn new_batch(&mut self, client: usize, producer: Option<(u16, u32)>) -> usize {
        let number = self.oracle.batches.len();
        let count = self.random.random_range(1..4);
        let mut builder = BatchBuilder::new();
        let (mut ids, mut payloads) = (Vec::new(), Vec::new());
        for place in 0..count {
            let id = (number as u128 + 1) << 16 | place;
            let length = self.random.random_range(1..250);
            let payload: Vec<u8> = (0..length).map(|_| self.random.random()).collect();
            builder
                .push(id, &payload, &[], self.now.wall)
                .expect("a message within the limits");
            ids.push(id);
            payloads.push(payload);
        }
        let section = producer.map(|(epoch, base_sequence)| ProducerSection {
            producer_id: client as u64,
            epoch,
            base_sequence,
        });
        let bytes = builder.finish(section).expect("a batch within the limits").freeze();
        self.oracle.batches.push(Batch {
            bytes,
            ids,
            payloads,
            producer: producer.map(|(epoch, sequence)| (client as u64, epoch, sequence)),
        });
        number
    }

    fn store(&mut self) -> Result<(), Broken> {
        let consumer = self.random.random_range(0..=GROUP);
        let end = self.state(|state| state.next_offset).unwrap_or(0);
        let offset = self.random.random_range(0..=end);
        self.ask(consumer as usize % CLIENTS, Kind::Store { consumer, offset })
    }

    fn delete(&mut self) -> Result<(), Broken> {
        let consumer = self.random.random_range(0..=GROUP);
        self.ask(consumer as usize % CLIENTS, Kind::Delete { consumer })
    }

    fn ask(&mut self, client: usize, kind: Kind) -> Result<(), Broken> {
        self.numbers[client] += 1;
        self.oracle.requests.push(Request {
            client,
            number: self.numbers[client],
            kind,
            status: Status::Unknown,
            open: 0,
            never_written: true,
        });
        self.give_request(self.oracle.requests.len() - 1)
    }

    /// Asks again for one of the newest requests, whatever was answered.
    pub fn resend(&mut self) -> Result<(), Broken> {
        let count = self.oracle.requests.len();
        if count == 0 {
            return Ok(());
        }
        let index = self.random.random_range(count.saturating_sub(20)..count);
        self.give_request(index)
    }

    pub fn give_request(&mut self, index: usize) -> Result<(), Broken> {
        let request = &mut self.oracle.requests[index];
        request.open += 1;
        let (client, number, kind) = (request.client, request.number, request.kind);
        if matches!(request.status, Status::Unknown | Status::Refused) {
            request.status = Status::InFlight;
        }
        let ticket = self.ticket(Asked::Request(index));
        let (operation, wanted) = match kind {
            Kind::Send(batch) => {
                let batch = self.oracle.batches[batch].bytes.clone();
                (Operation::SendMessages, PartitionRequest::Send { batch })
            }
            Kind::Store { consumer, offset } => {
                let consumer = key_of(consumer);
                let request = PartitionRequest::StoreOffset { consumer, offset };
                (Operation::StoreConsumerOffset, request)
            }
            Kind::Delete { consumer } => {
                let consumer = key_of(consumer);
                (
                    Operation::DeleteConsumerOffset,
                    PartitionRequest::DeleteOffset { consumer },
                )
            }
        };
        let incarnation = self.known.incarnation;
        self.give(
            origin(ticket, operation, client as u128 + 1, number, incarnation),
            wanted,
        )
    }

    fn install_owner(&mut self) -> Result<(), Broken> {
        self.oracle.generation += 1;
        let member = self.random.random_ratio(3, 4).then_some(Member {
            client: u128::from(GROUP) % CLIENTS as u128 + 1,
            session: SESSION,
        });
        let generation = self.oracle.generation;
        self.order(Order::InstallOwner {
            key: KEY,
            group: GROUP,
            generation,
            member,
        })
    }

    fn truncate(&mut self) -> Result<(), Broken> {
        let (start, end) = self
            .state(|state| (state.log_start, state.next_offset))
            .unwrap_or_default();
        let whole: bool = self.random.random();
        let before = if whole {
            end
        } else {
            self.random.random_range(start..=end)
        };
        self.oracle.truncated_before = self.oracle.truncated_before.max(before);
        self.oracle.may_start_at = self.oracle.may_start_at.max(before);
        self.order(Order::Truncate { key: KEY, before })
    }

    /// Retention may cut anything that is committed, when the partition has a bound.
    fn note_retention(&mut self) {
        if self.settings.size_max != u64::MAX {
            let end = self.state(|state| state.next_offset).unwrap_or(0);
            self.oracle.may_start_at = self.oracle.may_start_at.max(end);
        }
    }

    /// Asks again for everything that is in doubt, until nothing is.
    pub fn resolve(&mut self) -> Result<(), Broken> {
        self.settle()?;
        for index in 0..self.oracle.requests.len() {
            if self.oracle.requests[index].status == Status::Unknown {
                self.give_request(index)?;
                self.settle()?;
            }
        }
        match self.asked.len() {
            0 => Ok(()),
            open => Err(format!("{open} requests were never answered")),
        }
    }
}

/// The consumer that only reads.
fn reader() -> ConsumerKey {
    ConsumerKey::Consumer(Identifier::numeric(99))
}

fn key_of(consumer: u32) -> ConsumerKey {
    if consumer == GROUP {
        ConsumerKey::Group(GROUP)
    } else {
        ConsumerKey::Consumer(Identifier::numeric(consumer))
    }
}

fn origin(ticket: Ticket, operation: Operation, client: u128, number: u64, incarnation: u64) -> Origin {
    let mut header = RequestHeader::new(operation, 0);
    header.client = client.into();
    header.session = SESSION.into();
    header.request = number.into();
    header.request_checksum = (client << 64 | u128::from(number)).into();
    header.partition_incarnation = incarnation.into();
    Origin {
        ticket,
        header: Box::new(header),
        user_id: 1,
        connection: 1,
    }
}

/// Messages of a poll's reply: offset, id, payload. Every checksum of it is proved.
pub fn messages(reply: &Reply) -> Result<Vec<(u64, u128, Vec<u8>)>, Broken> {
    let body = Bytes::from(reply.body.concat());
    let mut found = Vec::new();
    let Some(records) = body.get(POLL_HEAD_BYTES..) else {
        return Ok(found);
    };
    for batch in Records::new(records) {
        let batch = batch.map_err(|error| format!("a reply holds a broken batch: {error}"))?;
        batch
            .verify()
            .map_err(|error| format!("a reply holds a damaged batch: {error}"))?;
        let base = batch.header().base_offset.get();
        for frame in batch.frames() {
            let offset = base + u64::from(frame.offset_delta());
            found.push((offset, frame.id(), frame.payload().to_vec()));
        }
    }
    Ok(found)
}
