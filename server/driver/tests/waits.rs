//! Polls that wait, against everything that can end a wait, in any order: messages, deadlines, cancels, cuts, a failed
//! disk, the deletion of the partition, and the end of the node. Each poll is answered exactly once, none sleeps through
//! the messages it waits for, and no place in the bounds is lost.

#[path = "crash/node.rs"]
mod node;

use bytes::Bytes;
use iggy_consensus::{Durability, Now};
use iggy_driver::request::{Answer, Origin, PartitionRequest, Poll, Ticket};
use iggy_driver::{Order, Output};
use iggy_metadata::PartitionKey;
use iggy_metadata::model::topic::History;
use iggy_partition::Settings;
use iggy_partition::operation::{ConsumerKey, Member};
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::header::RequestHeader;
use iggy_protocol::identifier::Identifier;
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_storage::memory::MemoryDisk;
use node::Node;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const KEY: PartitionKey = PartitionKey {
    stream_id: 1,
    topic_id: 1,
    partition_id: 0,
    incarnation: 3,
};
const GROUP: u32 = 4;

#[derive(Clone, Copy, Debug)]
enum Action {
    Send { messages: u8 },
    Complete { jobs: usize },
    Poll(Wanted),
    Cancel { which: prop::sample::Index },
    Tick { micros: u64 },
    Truncate,
    InstallOwner { session: u64 },
    FailSync,
    Delete,
    Disconnect { connection: u32 },
    Stop,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    session: u64,
    ahead: u64,
    min_count: u32,
    wait: u64,
    commit: bool,
    group: bool,
    count_only: bool,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (
        1..4_u64,
        0..6_u64,
        1..5_u32,
        0..2_000_u64,
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(session, ahead, min_count, wait, commit, group, count_only)| Wanted {
            session,
            ahead,
            min_count,
            wait,
            commit,
            group,
            count_only,
        })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        20 => (1..4_u8).prop_map(|messages| Action::Send { messages }),
        30 => (1..4_usize).prop_map(|jobs| Action::Complete { jobs }),
        30 => wanted().prop_map(Action::Poll),
        8 => any::<prop::sample::Index>().prop_map(|which| Action::Cancel { which }),
        12 => (0..900_u64).prop_map(|micros| Action::Tick { micros }),
        3 => Just(Action::Truncate),
        4 => (1..4_u64).prop_map(|session| Action::InstallOwner { session }),
        3 => (0..2_u32).prop_map(|connection| Action::Disconnect { connection }),
        1 => Just(Action::FailSync),
        1 => Just(Action::Delete),
        1 => Just(Action::Stop),
    ]
}

struct OpenPoll {
    request: u64,
    session: u64,
    start: u64,
    min_count: u32,
    deadline: u64,
}

struct World {
    node: Node,
    disk: MemoryDisk,
    now: Now,
    next: u64,
    polls: BTreeMap<u64, OpenPoll>,
    sends: BTreeSet<u64>,
    /// Whether every poll that can be served must be: not once the disk failed or the partition is gone.
    healthy: bool,
    generation: u64,
}

impl World {
    fn new(durability: Durability) -> Self {
        let disk = MemoryDisk::new();
        let mut node = Node::start(&disk, 1, 1);
        let now = Now {
            monotonic: 1,
            wall: 1_000_000,
        };
        let settings = Settings {
            partition_id: 0,
            segment_size: 1_000,
            preallocate: false,
            durability,
            consumer_offset_durability: durability,
            message_expiry: u64::MAX,
            size_max: u64::MAX,
        };
        let order = Order::Open {
            key: KEY,
            settings,
            history: History {
                losses: 0,
                incarnation: KEY.incarnation,
            },
            counters: std::sync::Arc::default(),
        };
        node.shard.order(now, order, &disk);
        while !node.is_idle() {
            node.complete(now, 1);
        }
        Self {
            node,
            disk,
            now,
            next: 0,
            polls: BTreeMap::new(),
            sends: BTreeSet::new(),
            healthy: true,
            generation: 0,
        }
    }

    fn end(&self) -> Option<u64> {
        let group = self.node.shard.partitions().next()?;
        Some(group.state().next_offset)
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

    fn act(&mut self, action: Action) {
        match action {
            Action::Send { messages } => self.send(messages),
            Action::Complete { jobs } => self.node.complete(self.now, jobs),
            Action::Poll(wanted) => self.poll(wanted),
            Action::Cancel { which } => {
                if !self.polls.is_empty() {
                    let poll = self
                        .polls
                        .values()
                        .nth(which.index(self.polls.len()))
                        .expect("one of them");
                    let (session, request) = (poll.session, poll.request);
                    self.node.shard.cancel(u128::from(session), session, request);
                }
            }
            Action::Tick { micros } => {
                self.now.monotonic += micros;
                self.now.wall += micros;
                self.node.shard.tick(self.now);
            }
            Action::Truncate => {
                let before = self.end().unwrap_or(0);
                self.order(Order::Truncate { key: KEY, before });
            }
            Action::InstallOwner { session } => {
                self.generation += 1;
                let client = u128::from(session);
                self.order(Order::InstallOwner {
                    key: KEY,
                    group: GROUP,
                    generation: self.generation,
                    member: Some(Member { client, session }),
                });
            }
            Action::FailSync => {
                self.healthy = false;
                self.disk.fail_next_sync(1);
            }
            Action::Delete => {
                self.healthy = false;
                self.order(Order::Delete { key: KEY });
            }
            Action::Disconnect { connection } => self.node.shard.disconnected(connection),
            Action::Stop => {
                self.healthy = false;
                self.node.shard.stop();
            }
        }
    }

    fn order(&mut self, order: Order) {
        self.node.shard.order(self.now, order, &self.disk);
    }

    fn send(&mut self, messages: u8) {
        let mut builder = BatchBuilder::new();
        for id in 0..messages {
            builder
                .push(u128::from(id) + 1, b"some payload", &[], 5)
                .expect("a message");
        }
        let batch: Bytes = builder.finish(None).expect("a batch").freeze();
        let origin = self.origin(Operation::SendMessages, 9);
        self.sends.insert(origin.ticket.0);
        self.node
            .shard
            .request(self.now, KEY, origin, PartitionRequest::Send { batch });
    }

    fn poll(&mut self, wanted: Wanted) {
        let start = self.end().unwrap_or(0) + wanted.ahead;
        let origin = self.origin(Operation::NonReplicated, wanted.session);
        let open = OpenPoll {
            request: self.next,
            session: wanted.session,
            start,
            min_count: wanted.min_count,
            deadline: self.now.monotonic + wanted.wait,
        };
        self.polls.insert(origin.ticket.0, open);
        let consumer = if wanted.group {
            ConsumerKey::Group(GROUP)
        } else {
            ConsumerKey::Consumer(Identifier::numeric(1))
        };
        let poll = Poll {
            consumer,
            strategy: PollingStrategy::Offset(start),
            count: 10,
            min_count: wanted.min_count,
            max_bytes: 1 << 20,
            commit: wanted.commit && !wanted.count_only,
            wait: wanted.wait,
            answer: if wanted.count_only {
                Answer::Count
            } else {
                Answer::Messages
            },
            may_park: false,
            metadata_op: 1,
        };
        self.node
            .shard
            .request(self.now, KEY, origin, PartitionRequest::Poll(poll));
    }

    fn take(&mut self) -> Result<(), TestCaseError> {
        let mut outputs = Vec::new();
        self.node.shard.outputs(&mut outputs);
        for output in outputs {
            if let Output::Reply(reply) = output {
                let ticket = reply.ticket.0;
                let known = self.polls.remove(&ticket).is_some() || self.sends.remove(&ticket);
                prop_assert!(known, "ticket {} was answered twice, or never asked", ticket);
            }
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), TestCaseError> {
        while !self.node.is_idle() {
            self.node.complete(self.now, 2);
            self.take()?;
        }
        Ok(())
    }

    /// With nothing left to do, no poll may still wait for what is there or for a time that is over.
    fn nobody_oversleeps(&mut self) -> Result<(), TestCaseError> {
        self.node.shard.tick(self.now);
        self.take()?;
        self.settle()?;
        let end = self.end().unwrap_or(0);
        for (ticket, poll) in &self.polls {
            let readable = end.saturating_sub(poll.start);
            prop_assert!(
                !self.healthy || readable < u64::from(poll.min_count),
                "poll {} waits for {} messages and {} are there",
                ticket,
                poll.min_count,
                readable
            );
            prop_assert!(
                poll.deadline > self.now.monotonic,
                "poll {} waits beyond its deadline",
                ticket
            );
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn given_waiting_polls_when_anything_happens_in_any_order_should_answer_each_exactly_once(
        actions in prop::collection::vec(action(), 1..120),
        persisted in any::<bool>(),
        settle_every in 1..30_usize,
    ) {
        let durability = if persisted { Durability::Persisted } else { Durability::Replicated };
        let mut world = World::new(durability);
        for (count, action) in actions.into_iter().enumerate() {
            world.act(action);
            world.take()?;
            if count % settle_every == 0 {
                world.settle()?;
                world.nobody_oversleeps()?;
            }
        }
        world.settle()?;
        world.now.monotonic += 10_000_000;
        world.nobody_oversleeps()?;
        prop_assert!(world.polls.is_empty() && world.sends.is_empty(), "{} polls were never answered", world.polls.len());
        prop_assert_eq!(world.node.shard.parked(), 0);
        prop_assert_eq!(world.node.shard.next_deadline(), None);
    }
}

fn cases() -> u32 {
    let asked = std::env::var("IGGY_TEST_SEEDS")
        .ok()
        .and_then(|value| value.parse().ok());
    asked.unwrap_or(400)
}
