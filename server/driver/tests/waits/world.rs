//! A shard with two partitions, those who read from them, and what is known of each read.

use super::node::Node;
use bytes::Bytes;
use iggy_consensus::{Durability, Now};
use iggy_driver::partition_group::PartitionGroup;
use iggy_driver::request::{Answer, Origin, PartitionRequest, Poll, Reply, Ticket};
use iggy_driver::shard::{Watch, WatchTarget};
use iggy_driver::tally::{Place, Progress, Tally, Wanted as WantedSum, WatchId, Watching};
use iggy_driver::{Order, Output};
use iggy_metadata::PartitionKey;
use iggy_metadata::model::topic::History;
use iggy_partition::Settings;
use iggy_partition::operation::{ConsumerKey, Member};
use iggy_partition::read::RECORD_MIN;
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::codec::{Decode, Reader};
use iggy_protocol::context::PartitionContext;
use iggy_protocol::header::RequestHeader;
use iggy_protocol::identifier::Identifier;
use iggy_protocol::limits::POLL_HEAD_BYTES;
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_protocol::reply::message::PollHead;
use iggy_storage::memory::MemoryDisk;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const KEY: PartitionKey = PartitionKey {
    stream_id: 1,
    topic_id: 1,
    partition_id: 0,
    incarnation: 3,
};
/// A second partition, for fetches; only messages come to it.
const OTHER: PartitionKey = PartitionKey {
    partition_id: 1,
    incarnation: 4,
    ..KEY
};
const GROUP: u32 = 4;
const PAYLOAD: &[u8] = b"some payload";
/// Bytes of a message.
const FRAME: u64 = (iggy_protocol::limits::MESSAGE_FRAME_SIZE + PAYLOAD.len()) as u64;
/// Bytes before its messages in a record.
const HEADER: u64 = iggy_protocol::limits::HEADER_SIZE as u64;

/// Where a poll starts.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// So many messages after the end.
    Ahead(u64),
    /// So many messages before the end.
    Behind(u64),
    /// So many microseconds ago.
    TimeBehind(u64),
    /// In so many microseconds.
    TimeAhead(u64),
}

#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub session: u64,
    pub start: Start,
    pub min_count: u32,
    pub max_bytes: u32,
    pub wait: u64,
    pub commit: bool,
    pub group: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Action {
    Send { messages: u8 },
    SendToOther { messages: u8 },
    Complete { jobs: usize },
    Poll(Wanted),
    Fetch { messages: u64, ahead: u64, group: bool },
    EndFetch { which: prop::sample::Index },
    Cancel { which: prop::sample::Index },
    Tick { micros: u64 },
    Truncate { keep: u64 },
    InstallOwner { session: u64 },
    FailSync,
    Delete,
    Disconnect { connection: u32 },
    Stop,
}

/// A poll that was not answered yet.
#[derive(Debug)]
struct OpenPoll {
    request: u64,
    wanted: Wanted,
    strategy: PollingStrategy,
    deadline: u64,
    connection: u32,
    /// Its client has gone or wants it no more.
    given_up: bool,
}

struct OpenFetch {
    tally: Arc<Tally>,
    starts: [u64; 2],
    messages: u64,
    deadline: u64,
}

pub struct World {
    node: Node,
    disk: MemoryDisk,
    now: Now,
    next: u64,
    polls: BTreeMap<u64, OpenPoll>,
    fetches: BTreeMap<WatchId, OpenFetch>,
    sends: BTreeSet<u64>,
    /// Broker time of acknowledged batches, and the offset of their first message.
    times: BTreeMap<u64, u64>,
    /// Whether every read that can be served must be: not once the disk failed or the partition is gone.
    healthy: bool,
    stopping: bool,
    generation: u64,
}

impl World {
    pub fn new(durability: Durability) -> Self {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, 1, 1);
        let now = Now {
            monotonic: 1,
            wall: 1_000_000,
        };
        let mut world = Self {
            node,
            disk,
            now,
            next: 0,
            polls: BTreeMap::new(),
            fetches: BTreeMap::new(),
            sends: BTreeSet::new(),
            times: BTreeMap::new(),
            healthy: true,
            stopping: false,
            generation: 0,
        };
        for key in [KEY, OTHER] {
            let settings = Settings {
                partition_id: key.partition_id,
                segment_size: 1_000,
                preallocate: false,
                durability,
                consumer_offset_durability: durability,
                message_expiry: u64::MAX,
                size_max: u64::MAX,
            };
            let history = History {
                losses: 0,
                incarnation: key.incarnation,
            };
            world.order(Order::Open {
                key,
                members: iggy_driver::Members::all(1),
                settings,
                history,
                created: true,
                counters: Arc::default(),
            });
        }
        while !world.node.is_idle() {
            world.node.complete(now, 1);
        }
        world
    }

    /// First and last offset of a partition, the last excluded; `None` once it is gone.
    fn range(&self, key: PartitionKey) -> Option<(u64, u64)> {
        let mut groups = self.node.shard.partitions();
        let state = groups.find(|group| group.key() == key)?.state();
        Some((state.log_start, state.next_offset))
    }

    fn origin(&mut self, operation: Operation, session: u64) -> Origin {
        self.next += 1;
        let mut header = RequestHeader::new(operation, 0);
        header.client = u128::from(session).into();
        header.session = session.into();
        header.request = self.next.into();
        header.request_checksum = u128::from(self.next).into();
        header.partition_incarnation = KEY.incarnation.into();
        Origin {
            ticket: Ticket(self.next),
            header: Box::new(header),
            user_id: 0,
            // Sessions 1 and 2 share a connection.
            connection: u32::from(session == 3),
        }
    }

    pub fn act(&mut self, action: Action) {
        // The broker stamps different times on different batches.
        self.now.wall += 1;
        match action {
            Action::Send { messages } => self.send(KEY, messages),
            Action::SendToOther { messages } => self.send(OTHER, messages),
            Action::Complete { jobs } => self.node.complete(self.now, jobs),
            Action::Poll(wanted) => self.poll(wanted),
            Action::Fetch { messages, ahead, group } => self.fetch(messages, ahead, group),
            Action::EndFetch { which } => {
                if !self.fetches.is_empty() {
                    let at = which.index(self.fetches.len());
                    let id = *self.fetches.keys().nth(at).expect("one of them");
                    self.end_fetch(id);
                }
            }
            Action::Cancel { which } => {
                if !self.polls.is_empty() {
                    let at = which.index(self.polls.len());
                    let poll = self.polls.values_mut().nth(at).expect("one of them");
                    poll.given_up = true;
                    let (session, request) = (poll.wanted.session, poll.request);
                    self.node.shard.cancel(u128::from(session), session, request);
                }
            }
            Action::Tick { micros } => {
                self.now.monotonic += micros;
                self.now.wall += micros;
                self.node.shard.tick(self.now);
            }
            Action::Truncate { keep } => {
                let before = self.range(KEY).map_or(0, |(_, end)| end.saturating_sub(keep));
                self.order(Order::Truncate { key: KEY, before });
            }
            Action::InstallOwner { session } => self.install(session),
            Action::FailSync => {
                self.healthy = false;
                self.disk.fail_next_sync(1);
            }
            Action::Delete => {
                self.healthy = false;
                self.order(Order::Delete { key: KEY });
            }
            Action::Disconnect { connection } => {
                for poll in self.polls.values_mut() {
                    poll.given_up |= poll.connection == connection;
                }
                self.node.shard.disconnected(connection);
            }
            Action::Stop => {
                self.healthy = false;
                self.stopping = true;
                self.node.shard.stop();
            }
        }
    }

    fn install(&mut self, session: u64) {
        self.generation += 1;
        let client = u128::from(session);
        for key in [KEY, OTHER] {
            self.order(Order::InstallOwner {
                key,
                group: GROUP,
                generation: self.generation,
                member: Some(Member { client, session }),
            });
        }
    }

    fn order(&mut self, order: Order) {
        self.node.shard.order(self.now, order, &self.disk);
    }

    fn send(&mut self, key: PartitionKey, messages: u8) {
        let mut builder = BatchBuilder::new();
        for id in 0..messages {
            builder.push(u128::from(id) + 1, PAYLOAD, &[], 5).expect("a message");
        }
        let batch: Bytes = builder.finish(None).expect("a batch").freeze();
        let mut origin = self.origin(Operation::SendMessages, if key == KEY { 9 } else { 8 });
        origin.header.partition_incarnation = key.incarnation.into();
        self.sends.insert(origin.ticket.0);
        self.node
            .shard
            .request(self.now, key, origin, PartitionRequest::Send { batch });
    }

    fn consumer(group: bool) -> ConsumerKey {
        if group {
            ConsumerKey::Group(GROUP)
        } else {
            ConsumerKey::Consumer(Identifier::numeric(1))
        }
    }

    fn poll(&mut self, wanted: Wanted) {
        let end = self.range(KEY).map_or(0, |(_, end)| end);
        let strategy = match wanted.start {
            Start::Ahead(messages) => PollingStrategy::Offset(end + messages),
            Start::Behind(messages) => PollingStrategy::Offset(end.saturating_sub(messages)),
            Start::TimeBehind(micros) => PollingStrategy::Timestamp(self.now.wall - micros),
            Start::TimeAhead(micros) => PollingStrategy::Timestamp(self.now.wall + micros),
        };
        let origin = self.origin(Operation::NonReplicated, wanted.session);
        let open = OpenPoll {
            request: self.next,
            wanted,
            strategy,
            deadline: self.now.monotonic + wanted.wait,
            connection: origin.connection,
            given_up: false,
        };
        self.polls.insert(origin.ticket.0, open);
        let poll = Poll {
            consumer: Self::consumer(wanted.group),
            strategy,
            count: 12,
            min_count: wanted.min_count,
            max_bytes: wanted.max_bytes,
            commit: wanted.commit,
            wait: wanted.wait,
            answer: Answer::Messages,
            metadata_op: 1,
        };
        self.node
            .shard
            .request(self.now, KEY, origin, PartitionRequest::Poll(poll));
    }

    fn fetch(&mut self, messages: u64, ahead: u64, group: bool) {
        let origin = self.origin(Operation::NonReplicated, 1);
        let id = WatchId(self.next);
        let starts = [KEY, OTHER].map(|key| self.range(key).map_or(0, |(_, end)| end));
        let starts = [starts[0] + ahead, starts[1]];
        let wanted = WantedSum {
            messages,
            bytes: 1 << 20,
            bytes_each: vec![1 << 20; 2],
        };
        let tally = Arc::new(Tally::new(wanted, || {}));
        let target = |(place, key): (usize, PartitionKey)| WatchTarget {
            key,
            context: PartitionContext {
                incarnation: key.incarnation,
                ..PartitionContext::default()
            },
            watching: Watching {
                watch: id,
                place,
                tally: Arc::clone(&tally),
                consumer: Self::consumer(group),
                strategy: PollingStrategy::Offset(starts[place]),
                waits: true,
                metadata_op: 1,
            },
        };
        let wait = 1_500;
        let watch = Watch {
            id,
            origin,
            targets: [KEY, OTHER].into_iter().enumerate().map(target).collect(),
            tally: Arc::clone(&tally),
            wait,
        };
        self.node.shard.watch(self.now, watch);
        let fetch = OpenFetch {
            tally,
            starts,
            messages,
            deadline: self.now.monotonic + wait,
        };
        self.fetches.insert(id, fetch);
    }

    fn end_fetch(&mut self, id: WatchId) {
        if let Some(fetch) = self.fetches.remove(&id)
            && fetch.tally.close()
        {
            self.node.shard.unwatch(id);
        }
    }

    pub fn take(&mut self) -> Result<(), TestCaseError> {
        let mut outputs = Vec::new();
        self.node.shard.outputs(&mut outputs);
        for output in outputs {
            let Output::Reply(reply) = output else { continue };
            let ticket = reply.ticket.0;
            if self.sends.remove(&ticket) {
                self.note_time(&reply);
                continue;
            }
            let poll = self.polls.remove(&ticket);
            prop_assert!(poll.is_some(), "ticket {} was answered twice, or never asked", ticket);
            self.not_too_early(&poll.expect("it is there"), &reply)?;
        }
        Ok(())
    }

    fn note_time(&mut self, reply: &Reply) {
        let body = reply.body.concat();
        // The second partition's are of no interest: polls read the first.
        let of_first = body.get(12..16) == Some(&KEY.partition_id.to_le_bytes());
        if reply.header.committed == 1 && of_first {
            let base = u64::from_le_bytes(body[16..24].try_into().expect("an offset"));
            self.times.insert(reply.header.timestamp.get(), base);
        }
    }

    /// An answer with less than was asked for needs a reason.
    fn not_too_early(&self, poll: &OpenPoll, reply: &Reply) -> Result<(), TestCaseError> {
        if reply.header.status.get() != 0 {
            return Ok(());
        }
        let body = reply.body.concat();
        let head = PollHead::decode(&mut Reader::new(&body)).expect("a head");
        let wanted = poll.wanted;
        // No further message would have fitted.
        let full = body.len() as u64 + HEADER + FRAME > u64::from(wanted.max_bytes);
        let late = self.now.monotonic >= poll.deadline;
        prop_assert!(
            head.messages_count >= wanted.min_count || full || late || poll.given_up || self.stopping,
            "{:?} was answered with {} messages at {}",
            poll,
            head.messages_count,
            self.now.monotonic
        );
        let fits = body.len() <= wanted.max_bytes as usize || head.messages_count == 1;
        prop_assert!(fits, "{} bytes, and {} are allowed", body.len(), wanted.max_bytes);
        Ok(())
    }

    pub fn settle(&mut self) -> Result<(), TestCaseError> {
        while !self.node.is_idle() {
            self.node.complete(self.now, 2);
            self.take()?;
        }
        Ok(())
    }

    /// Messages a poll could read now, at least.
    fn readable(&self, poll: &OpenPoll) -> u64 {
        let (log_start, end) = self.range(KEY).unwrap_or_default();
        let start = match poll.strategy {
            PollingStrategy::Offset(offset) => Some(offset),
            PollingStrategy::Timestamp(time) => self.times.range(time..).next().map(|(_, base)| *base),
            _ => None,
        };
        start.map_or(0, |start| end.saturating_sub(start.max(log_start)))
    }

    /// With nothing left to do, no read may still wait for what is there or for a time that is over.
    pub fn nobody_oversleeps(&mut self) -> Result<(), TestCaseError> {
        self.node.shard.tick(self.now);
        self.take()?;
        self.settle()?;
        for (ticket, poll) in &self.polls {
            let readable = self.readable(poll);
            // A batch holds three messages at most, so there are at least as many headers as this.
            let bytes = readable * FRAME + readable.div_ceil(3) * HEADER;
            let room = u64::from(poll.wanted.max_bytes) - POLL_HEAD_BYTES as u64;
            let full = readable > 0 && bytes + RECORD_MIN as u64 > room;
            prop_assert!(
                !self.healthy || (readable < u64::from(poll.wanted.min_count) && !full),
                "poll {} {:?} waits, and {} messages are there",
                ticket,
                poll,
                readable
            );
            prop_assert!(!poll.given_up, "poll {} waits though nobody wants it", ticket);
            prop_assert!(
                poll.deadline > self.now.monotonic,
                "poll {} waits beyond its deadline",
                ticket
            );
        }
        self.no_fetch_oversleeps()
    }

    fn no_fetch_oversleeps(&self) -> Result<(), TestCaseError> {
        for (id, fetch) in self
            .fetches
            .iter()
            .filter(|(_, fetch)| fetch.deadline > self.now.monotonic)
        {
            let mut readable = 0;
            for ((key, place), start) in [KEY, OTHER].into_iter().zip(fetch.tally.places()).zip(fetch.starts) {
                prop_assert_ne!(place, Place::Open, "{:?}: a partition was never counted", id);
                if matches!(place, Place::Counted(_)) {
                    let (log_start, end) = self.range(key).unwrap_or_default();
                    readable += end.saturating_sub(start.max(log_start));
                }
            }
            let told = fetch.tally.progress() == Progress::Ready || fetch.tally.has_no_room();
            prop_assert!(
                told || !self.healthy || readable < fetch.messages,
                "{:?} waits for {} messages from {:?} on and {} are there: {:?}",
                id,
                fetch.messages,
                fetch.starts,
                readable,
                fetch.tally.places()
            );
        }
        Ok(())
    }

    /// After every deadline nothing is left.
    pub fn end(&mut self) -> Result<(), TestCaseError> {
        self.now.monotonic += 10_000_000;
        self.nobody_oversleeps()?;
        let polls = self.polls.len();
        prop_assert!(
            polls == 0 && self.sends.is_empty(),
            "{} polls were never answered",
            polls
        );
        prop_assert_eq!(self.node.shard.parked(), 0);
        prop_assert_eq!(self.node.shard.next_deadline(), None);
        let watchers: usize = self.node.shard.partitions().map(PartitionGroup::watchers).sum();
        prop_assert_eq!(watchers, 0, "fetches are still counted for");
        Ok(())
    }
}
