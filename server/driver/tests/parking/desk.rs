//! A shard whose replies are kept by ticket, for tests that look at one wait at a time.

use bytes::Bytes;
use iggy_consensus::{Durability, Now};
use iggy_driver::request::{Answer, Origin, PartitionRequest, Poll, Reply, Ticket};
use iggy_driver::shard::SessionWaits;
use iggy_driver::{Order, Output, Shard, ShardConfig};
use iggy_metadata::PartitionKey;
use iggy_metadata::model::topic::History;
use iggy_partition::Settings;
use iggy_partition::operation::{ConsumerKey, Member};
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::codec::{Decode, Reader};
use iggy_protocol::header::RequestHeader;
use iggy_protocol::identifier::Identifier;
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_protocol::reply::message::PollHead;
use iggy_storage::memory::{MemoryDisk, MemoryStorage};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const GROUP: u32 = 4;

pub fn key(partition_id: u32) -> PartitionKey {
    PartitionKey {
        stream_id: 1,
        topic_id: 1,
        partition_id,
        incarnation: 3,
    }
}

pub fn alone() -> ConsumerKey {
    ConsumerKey::Consumer(Identifier::numeric(1))
}

/// A poll from `offset` on that waits a second for one message.
pub fn poll_from(offset: u64) -> Poll {
    Poll {
        consumer: alone(),
        strategy: PollingStrategy::Offset(offset),
        count: 1_000,
        min_count: 1,
        max_bytes: 1 << 20,
        commit: false,
        wait: 1_000_000,
        answer: Answer::Messages,
        metadata_op: 1,
    }
}

pub struct Desk {
    pub shard: Shard<MemoryStorage>,
    pub disk: MemoryDisk,
    pub now: Now,
    pub replies: BTreeMap<u64, Reply>,
    /// Tickets in the order in which they were answered.
    pub order: Vec<u64>,
    next: u64,
}

impl Desk {
    /// A shard with so many partitions.
    pub fn new(config: ShardConfig, partitions: u32) -> Self {
        Self::sharing(config, partitions, Arc::default())
    }

    /// A shard of a node with others.
    pub fn sharing(config: ShardConfig, partitions: u32, sessions: Arc<SessionWaits>) -> Self {
        let disk = MemoryDisk::new();
        let mut desk = Self {
            shard: Shard::new(config, disk.storage(1)).sharing_session_waits(sessions),
            disk,
            now: Now {
                monotonic: 1,
                wall: 1_000_000,
            },
            replies: BTreeMap::new(),
            order: Vec::new(),
            next: 0,
        };
        for partition_id in 0..partitions {
            desk.open(key(partition_id));
        }
        desk.settle();
        desk
    }

    pub fn open(&mut self, key: PartitionKey) {
        let settings = Settings {
            partition_id: key.partition_id,
            segment_size: 1 << 20,
            preallocate: false,
            durability: Durability::Replicated,
            consumer_offset_durability: Durability::Replicated,
            message_expiry: u64::MAX,
            size_max: u64::MAX,
        };
        let history = History {
            losses: 0,
            incarnation: key.incarnation,
        };
        self.order(Order::Open {
            key,
            members: iggy_driver::Members::all(1),
            settings,
            history,
            created: true,
            counters: Arc::default(),
        });
    }

    pub fn order(&mut self, order: Order) {
        self.shard.order(self.now, order, &self.disk);
    }

    /// Takes the replies that are there.
    pub fn take(&mut self) {
        let mut outputs = Vec::new();
        self.shard.outputs(&mut outputs);
        for output in outputs {
            if let Output::Reply(reply) = output {
                self.order.push(reply.ticket.0);
                assert!(
                    self.replies.insert(reply.ticket.0, reply).is_none(),
                    "a request was answered twice"
                );
            }
        }
    }

    /// Runs the disk until nothing is left.
    pub fn settle(&mut self) {
        for _ in 0..20 {
            self.shard.complete(self.now);
        }
        self.take();
    }

    pub fn tick(&mut self, micros: u64) {
        self.now.monotonic += micros;
        self.now.wall += micros;
        self.shard.tick(self.now);
        self.settle();
    }

    pub fn origin(&mut self, key: PartitionKey, operation: Operation, session: u64) -> Origin {
        self.next += 1;
        let mut header = RequestHeader::new(operation, 0);
        header.client = u128::from(session).into();
        header.session = session.into();
        header.request = self.next.into();
        header.request_checksum = u128::from(self.next).into();
        header.partition_incarnation = key.incarnation.into();
        Origin {
            ticket: Ticket(self.next),
            header: Box::new(header),
            user_id: 0,
            connection: session as u32,
        }
    }

    /// Asks without running the disk; the ticket.
    pub fn ask(&mut self, key: PartitionKey, session: u64, request: PartitionRequest) -> u64 {
        let operation = match &request {
            PartitionRequest::Send { .. } => Operation::SendMessages,
            PartitionRequest::StoreOffset { .. } => Operation::StoreConsumerOffset,
            PartitionRequest::DeleteOffset { .. } => Operation::DeleteConsumerOffset,
            _ => Operation::NonReplicated,
        };
        let origin = self.origin(key, operation, session);
        let ticket = origin.ticket.0;
        self.shard.request(self.now, key, origin, request);
        self.take();
        ticket
    }

    pub fn poll(&mut self, key: PartitionKey, session: u64, poll: Poll) -> u64 {
        self.ask(key, session, PartitionRequest::Poll(poll))
    }

    /// Sends one batch of so many messages of `length` bytes, and runs the disk.
    /// Sends messages, and returns the ticket of their acknowledgement.
    pub fn send(&mut self, key: PartitionKey, messages: u32, length: usize) -> u64 {
        let mut builder = BatchBuilder::new();
        for id in 0..messages {
            builder
                .push(u128::from(id) + 1, &vec![7; length], &[], 5)
                .expect("a message");
        }
        let batch: Bytes = builder.finish(None).expect("a batch").freeze();
        self.now.wall += 10;
        let ticket = self.ask(key, 99, PartitionRequest::Send { batch });
        self.settle();
        assert_eq!(self.replies[&ticket].header.committed, 1, "the batch is acknowledged");
        ticket
    }

    pub fn status(&self, ticket: u64) -> Option<u32> {
        self.replies.get(&ticket).map(|reply| reply.header.status.get())
    }

    /// Messages in the answer to a poll; `None` while there is none.
    pub fn polled(&self, ticket: u64) -> Option<u32> {
        self.head(ticket).map(|head| head.messages_count)
    }

    pub fn head(&self, ticket: u64) -> Option<PollHead> {
        let reply = self.replies.get(&ticket)?;
        assert_eq!(reply.header.status.get(), 0, "the poll was served");
        let body = reply.body.concat();
        Some(PollHead::decode(&mut Reader::new(&body)).expect("a head"))
    }

    /// Polls and fetches that appends to a partition have looked at.
    pub fn visits(&self, key: PartitionKey) -> u64 {
        let mut groups = self.shard.partitions();
        groups.find(|group| group.key() == key).expect("it is open").visits()
    }

    pub fn stored(&self, key: PartitionKey, consumer: &ConsumerKey) -> Option<u64> {
        let mut groups = self.shard.partitions();
        let group = groups.find(|group| group.key() == key).expect("it is open");
        group.state().offsets.get(consumer).copied()
    }

    pub fn install_owner(&mut self, key: PartitionKey, generation: u64, session: u64) {
        self.order(Order::InstallOwner {
            key,
            group: GROUP,
            generation,
            member: Some(Member {
                client: session.into(),
                session,
            }),
        });
        self.settle();
    }
}
