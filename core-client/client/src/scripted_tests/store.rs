//! Partitions and stored offsets of a scripted peer, as much of them as reads and commits can tell apart.

use std::collections::{HashMap, VecDeque};

use bytes::BytesMut;
use iggy_protocol::codec::Encode;
use iggy_protocol::reply::message::{FetchSection, PollHead, put_fetch_table};
use iggy_protocol::reply::offset::ConsumerOffset;
use iggy_protocol::request::message::{DeferredPoll, FetchMessages};
use iggy_protocol::{BatchBuilder, ErrorCode, PartitionContext, PollingStrategy, batch};

#[derive(Debug, Default, Clone)]
struct Log {
    payloads: Vec<String>,
    stored: Option<u64>,
    /// How sections of the next fetches are refused.
    refusals: VecDeque<ErrorCode>,
}

/// What the peer stores.
#[derive(Debug, Default)]
pub struct Store {
    logs: HashMap<u32, Log>,
    /// The owner generation replies name; zero for standalone consumers.
    pub owner_generation: u64,
    /// Whether the records of replies are garbage from this offset on.
    pub broken_from: Option<u64>,
}

impl Store {
    /// Appends a message.
    pub fn append(&mut self, partition: u32, payload: &str) {
        self.logs
            .entry(partition)
            .or_default()
            .payloads
            .push(payload.to_owned());
    }

    /// The stored offset.
    pub fn stored(&self, partition: u32) -> Option<u64> {
        self.logs.get(&partition)?.stored
    }

    /// Stores an offset, or forgets it.
    pub fn store(&mut self, partition: u32, offset: Option<u64>) {
        self.logs.entry(partition).or_default().stored = offset;
    }

    /// Refuses the next reads of a partition.
    pub fn refuse(&mut self, partition: u32, codes: impl IntoIterator<Item = ErrorCode>) {
        self.logs.entry(partition).or_default().refusals.extend(codes);
    }

    fn context(&self) -> PartitionContext {
        PartitionContext {
            incarnation: 7,
            owner_generation: self.owner_generation,
            metadata_op: 80,
        }
    }

    fn start(&self, partition: u32, strategy: PollingStrategy, count: u32) -> u64 {
        let log = self.logs.get(&partition).cloned().unwrap_or_default();
        match strategy {
            PollingStrategy::Offset(offset) => offset,
            PollingStrategy::Next => log.stored.map_or(0, |stored| stored + 1),
            PollingStrategy::Last => (log.payloads.len() as u64).saturating_sub(u64::from(count)),
            PollingStrategy::First | PollingStrategy::Timestamp(_) => 0,
        }
    }

    /// The records from an offset on, and how many messages they hold.
    fn records(&self, partition: u32, from: u64, count: u32) -> (Vec<u8>, u32) {
        let payloads = self.logs.get(&partition).map_or(&[][..], |log| &log.payloads);
        let wanted: Vec<&String> = payloads.iter().skip(from as usize).take(count as usize).collect();
        if wanted.is_empty() {
            return (Vec::new(), 0);
        }
        let mut records = Vec::new();
        for (index, payload) in wanted.iter().enumerate() {
            let offset = from + index as u64;
            let mut builder = BatchBuilder::new();
            builder.push(1, payload.as_bytes(), &[], 1).unwrap();
            let mut record = builder.finish(None).unwrap().to_vec();
            batch::stamp(&mut record, partition, offset, 1).unwrap();
            if self.broken_from.is_some_and(|broken| offset >= broken) {
                record.fill(0xa5);
            }
            records.extend(record);
        }
        (records, wanted.len() as u32)
    }

    /// Answers a fetch; `None` while it waits for messages.
    pub fn fetch(&mut self, fetch: &FetchMessages, over: bool) -> Option<Vec<u8>> {
        let refused = fetch.targets.iter().any(|target| {
            let log = self.logs.get(&target.partition_id);
            log.is_some_and(|log| !log.refusals.is_empty())
        });
        let mut left = fetch.count;
        let (mut sections, mut all) = (Vec::new(), Vec::new());
        for target in &fetch.targets {
            let id = target.partition_id;
            let refusal = self.logs.entry(id).or_default().refusals.pop_front();
            let from = self.start(id, target.strategy, fetch.count);
            let (records, count) = match refusal {
                None => self.records(id, from, left),
                Some(_) => (Vec::new(), 0),
            };
            left -= count;
            sections.push(FetchSection {
                partition_id: id,
                status: refusal.map_or(0, ErrorCode::code),
                current_offset: 0,
                messages_count: count,
                context: self.context(),
                next_offset: from + u64::from(count),
                records_len: records.len() as u32,
            });
            all.extend(records);
        }
        if fetch.wait_us > 0 && all.is_empty() && !refused && !over {
            return None;
        }
        for section in &sections {
            if fetch.auto_commit && section.messages_count > 0 {
                self.store(section.partition_id, Some(section.next_offset - 1));
            }
        }
        let mut body = BytesMut::new();
        put_fetch_table(&sections, &mut body);
        body.extend_from_slice(&all);
        Some(body.to_vec())
    }

    /// Answers a poll; `None` while it waits for messages.
    pub fn poll(&mut self, poll: &DeferredPoll, over: bool) -> Option<Vec<u8>> {
        let asked = &poll.poll;
        let id = asked.partition_id.unwrap();
        let from = self.start(id, asked.strategy, asked.count);
        let (records, count) = self.records(id, from, asked.count);
        if poll.wait_us > 0 && count == 0 && !over {
            return None;
        }
        if asked.auto_commit && count > 0 {
            self.store(id, Some(from + u64::from(count) - 1));
        }
        let mut body = BytesMut::new();
        PollHead {
            partition_id: id,
            current_offset: 0,
            messages_count: count,
            context: self.context(),
        }
        .encode(&mut body);
        body.extend_from_slice(&records);
        Some(body.to_vec())
    }

    /// Answers a read of a stored offset.
    pub fn get(&self, partition: u32) -> Vec<u8> {
        let mut body = BytesMut::new();
        if let Some(stored_offset) = self.stored(partition) {
            ConsumerOffset {
                partition_id: partition,
                current_offset: 0,
                stored_offset,
            }
            .encode(&mut body);
        }
        body.to_vec()
    }
}
