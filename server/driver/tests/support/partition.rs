//! One partition of one node, driven step by step: every call returns when its answer is there.

#![allow(dead_code)] // Each test binary uses the part it needs.

#[path = "../crash/node.rs"]
mod node;

use bytes::Bytes;
use iggy_consensus::{Durability, Now};
use iggy_driver::partition_group::directory;
use iggy_driver::request::{Answer, Origin, PartitionRequest, Poll, Reply, Ticket};
use iggy_driver::{Order, Output, PartitionEvent, Shard};
use iggy_metadata::PartitionKey;
use iggy_metadata::model::topic::History;
use iggy_partition::Settings;
use iggy_partition::operation::ConsumerKey;
use iggy_protocol::batch::{BatchHeader, Records};
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::header::RequestHeader;
use iggy_protocol::identifier::Identifier;
use iggy_protocol::limits::POLL_HEAD_BYTES;
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_storage::memory::{MemoryDisk, MemoryStorage};

pub const KEY: PartitionKey = PartitionKey {
    stream_id: 1,
    topic_id: 1,
    partition_id: 0,
    incarnation: 3,
};

/// A message as the log holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    pub offset: u64,
    pub id: u128,
    pub payload: Vec<u8>,
    /// Bytes of its frame.
    pub length: usize,
    /// Base offset and broker time of its batch.
    pub batch: u64,
    pub timestamp: u64,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes in batch {})", self.offset, self.length, self.batch)
    }
}

pub struct Partition {
    pub shard: Shard<MemoryStorage>,
    /// Partition that requests go to.
    pub key: PartitionKey,
    /// History that requests name.
    pub incarnation: u64,
    disk: MemoryDisk,
    now: Now,
    next: u64,
    log: Vec<Message>,
    pub events: Vec<PartitionEvent>,
}

pub fn cases(few: u32) -> u32 {
    let asked = std::env::var("IGGY_TEST_SEEDS").ok();
    asked.and_then(|value| value.parse().ok()).unwrap_or(few)
}

pub fn path(name: &str) -> String {
    format!("{}/{name}", directory(&KEY))
}

pub fn settings() -> Settings {
    Settings {
        partition_id: 0,
        segment_size: 3_000,
        preallocate: false,
        durability: Durability::Persisted,
        consumer_offset_durability: Durability::Persisted,
        message_expiry: u64::MAX,
        size_max: u64::MAX,
    }
}

impl Partition {
    pub fn start(disk: &MemoryDisk, tail_bytes_max: usize) -> Self {
        Self::restart(disk, tail_bytes_max, Vec::new())
    }

    /// A new process on the same disk; `log` is what the one before wrote.
    pub fn restart(disk: &MemoryDisk, tail_bytes_max: usize, log: Vec<Message>) -> Self {
        Self::with(disk, tail_bytes_max, log, settings())
    }

    pub fn with(disk: &MemoryDisk, tail_bytes_max: usize, log: Vec<Message>, settings: Settings) -> Self {
        let mut config = node::config(1);
        config.partition.tail_bytes_max = tail_bytes_max;
        config.tails_bytes_max = tail_bytes_max;
        let wall = log.last().map_or(1_000_000, |message| message.timestamp);
        let mut partition = Self {
            shard: Shard::new(config, disk.storage(1)),
            key: KEY,
            incarnation: KEY.incarnation,
            disk: disk.clone(),
            now: Now { monotonic: 1, wall },
            next: log.len() as u64,
            log,
            events: Vec::new(),
        };
        partition.open(KEY, settings);
        partition
    }

    pub fn open(&mut self, key: PartitionKey, settings: Settings) {
        self.order(Order::Open {
            key,
            members: iggy_driver::Members::all(1),
            settings,
            history: History {
                losses: 0,
                incarnation: key.incarnation,
            },
            created: true,
            counters: std::sync::Arc::default(),
        });
    }

    pub fn log(&self) -> &[Message] {
        &self.log
    }

    pub fn log_start(&self) -> u64 {
        self.shard
            .partitions()
            .next()
            .map_or(0, |group| group.state().log_start)
    }

    pub fn order(&mut self, order: Order) {
        let disk = self.disk.clone();
        self.shard.order(self.now, order, &disk);
        self.settle();
    }

    /// Runs the disk until nothing is left; the replies.
    pub fn settle(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        for _ in 0..20 {
            self.shard.complete(self.now);
            let mut outputs = Vec::new();
            self.shard.outputs(&mut outputs);
            for output in outputs {
                match output {
                    Output::Reply(reply) => replies.push(reply),
                    Output::Event(event) => self.events.push(event),
                    _ => {}
                }
            }
        }
        replies
    }

    fn ask(&mut self, operation: Operation, request: PartitionRequest) -> Reply {
        self.next += 1;
        self.now.wall += 3;
        let mut header = RequestHeader::new(operation, 0);
        header.client = 1.into();
        header.session = 1.into();
        header.request = self.next.into();
        header.partition_incarnation = self.incarnation.into();
        let origin = Origin {
            ticket: Ticket(self.next),
            header: Box::new(header),
            user_id: 0,
            connection: 0,
        };
        self.shard.request(self.now, self.key, origin, request);
        let mut replies = self.settle();
        assert_eq!(replies.len(), 1, "one answer to one request");
        replies.remove(0)
    }

    /// Sends one batch with payloads of these lengths; true when it was acknowledged.
    pub fn send(&mut self, lengths: &[usize]) -> bool {
        let mut builder = BatchBuilder::new();
        let base = self.log.len() as u64;
        let payload = |place: usize, length: usize| vec![(base as u8).wrapping_add(place as u8); length];
        for (place, length) in lengths.iter().enumerate() {
            let id = u128::from(base) + place as u128 + 1;
            builder.push(id, &payload(place, *length), &[], 5).expect("a message");
        }
        let batch: Bytes = builder.finish(None).expect("a batch").freeze();
        let reply = self.ask(Operation::SendMessages, PartitionRequest::Send { batch: batch.clone() });
        if reply.header.committed == 0 {
            return false;
        }
        let header = BatchHeader::view(&batch).expect("a header");
        assert_eq!(header.message_count.get() as usize, lengths.len());
        let timestamp = reply.header.timestamp.get();
        for (place, length) in lengths.iter().enumerate() {
            self.log.push(Message {
                offset: base + place as u64,
                id: u128::from(base) + place as u128 + 1,
                payload: payload(place, *length),
                length: iggy_protocol::limits::MESSAGE_FRAME_SIZE + length,
                batch: base,
                timestamp,
            });
        }
        true
    }

    pub fn store(&mut self, offset: u64) -> bool {
        let consumer = consumer();
        let request = PartitionRequest::StoreOffset { consumer, offset };
        self.ask(Operation::StoreConsumerOffset, request).header.committed == 1
    }

    pub fn cut(&mut self, before: u64) {
        self.order(Order::Truncate { key: KEY, before });
    }

    pub fn retain(&mut self, micros: u64) {
        self.now.wall += micros;
        self.shard.retain(self.now);
        self.settle();
    }

    pub fn poll(&mut self, strategy: PollingStrategy, count: u32, max_bytes: usize) -> Vec<Message> {
        self.try_poll(strategy, count, max_bytes).expect("the poll is served")
    }

    /// The messages of a poll, or the status it was refused with.
    pub fn try_poll(&mut self, strategy: PollingStrategy, count: u32, max_bytes: usize) -> Result<Vec<Message>, u32> {
        let poll = Poll {
            consumer: consumer(),
            strategy,
            count,
            min_count: 1,
            max_bytes: (max_bytes + POLL_HEAD_BYTES) as u32,
            commit: false,
            wait: 0,
            answer: Answer::Messages,
            metadata_op: 1,
        };
        let reply = self.ask(Operation::NonReplicated, PartitionRequest::Poll(poll));
        let body = reply.body.concat();
        let mut found = Vec::new();
        let Some(records) = body.get(POLL_HEAD_BYTES..) else {
            return Err(reply.header.status.get());
        };
        for batch in Records::new(records) {
            let batch = batch.expect("a well-formed batch");
            batch.verify().expect("intact checksums");
            let base = batch.header().base_offset.get();
            found.extend(batch.frames().map(|frame| Message {
                offset: base + u64::from(frame.offset_delta()),
                id: frame.id(),
                payload: frame.payload().to_vec(),
                length: frame.bytes().len(),
                batch: base,
                timestamp: batch.header().base_timestamp.get(),
            }));
        }
        assert!(records.len() <= max_bytes || found.len() == 1, "the byte limit holds");
        Ok(found)
    }
}

fn consumer() -> ConsumerKey {
    ConsumerKey::Consumer(Identifier::numeric(1))
}
