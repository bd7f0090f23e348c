//! Sending, routing, polling and fetching (wire 7).

use std::collections::HashSet;
use std::ops::Range;

use bytes::{BufMut, BytesMut};

use crate::batch::{BatchError, BatchView};
use crate::codec::{Decode, DecodeError, Encode, Problem, Reader};
use crate::consumer::Consumer;
use crate::error_code::ErrorCode;
use crate::identifier::Identifier;
use crate::limits::{
    FETCH_SECTION_BYTES, MAX_DEFERRED_TIMEOUT_MICROS, MAX_DEFERRED_WAIT_MICROS, MAX_PARTITIONS_PER_REQUEST,
    MAX_RECORD_BYTES, MIN_REPLY_BYTES, MIN_REPLY_MARGIN_MICROS, POLL_HEAD_BYTES,
};
use crate::partitioning::Partitioning;
use crate::polling_strategy::PollingStrategy;
use crate::wire_struct::wire_struct;

/// What precedes the batch in a send body (101, wire 7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendTarget {
    /// The stream.
    pub stream: Identifier,
    /// The topic.
    pub topic: Identifier,
    /// The partition.
    pub partitioning: Partitioning,
    /// Messages in the batch; at least one.
    pub messages_count: u32,
}

impl Encode for SendTarget {
    fn encode(&self, out: &mut BytesMut) {
        let at = out.len();
        out.put_u32_le(0);
        self.stream.encode(out);
        self.topic.encode(out);
        self.partitioning.encode(out);
        out.put_u32_le(self.messages_count);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// A send body in place (101, wire 7.1): the batch is not copied and, until [`SendMessages::batch`], not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendMessages<'a> {
    /// Where to and how many.
    pub target: SendTarget,
    /// Where the batch stands in the body.
    pub batch_range: Range<usize>,
    /// The batch.
    pub batch_bytes: &'a [u8],
}

impl<'a> SendMessages<'a> {
    /// Reads the batch: its frames must tile it and be as many as the body says.
    pub fn batch(&self) -> Result<BatchView<'a>, BatchError> {
        let batch = BatchView::parse(self.batch_bytes)?;
        if batch.message_count() == self.target.messages_count {
            Ok(batch)
        } else {
            Err(BatchError::FramesDoNotTile)
        }
    }
}

impl<'a> Decode<'a> for SendMessages<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let length = reader.u32("metadata length")? as usize;
        let mut metadata = Reader::new(reader.bytes("metadata", length)?);
        let target = SendTarget {
            stream: Identifier::decode(&mut metadata)?,
            topic: Identifier::decode(&mut metadata)?,
            partitioning: Partitioning::decode(&mut metadata)?,
            messages_count: metadata.u32("messages count")?,
        };
        metadata.finish()?;
        if target.messages_count == 0 {
            let error = DecodeError::value("messages count", 0_u32, "at least 1");
            return Err(error.with_code(ErrorCode::InvalidMessagesCount));
        }
        let start = reader.position();
        let batch_bytes = reader.rest();
        Ok(Self {
            target,
            batch_range: start..start + batch_bytes.len(),
            batch_bytes,
        })
    }
}

wire_struct! {
    /// Asks where a partition is served (105, wire 7.2).
    pub struct GetPartitionRoute {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The partition.
        partition_id: u32,
    }

    /// Reads messages at once (100, wire 7.3), and the first part of a deferred poll.
    pub struct PollMessages {
        /// Who reads.
        consumer: Consumer,
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The partition, or the one assigned to the group member.
        partition_id: Option<u32> = optional_partition,
        /// Where to start.
        strategy: PollingStrategy,
        /// Most messages to return.
        count: u32,
        /// Whether the offset of the last returned message is stored as part of the read.
        auto_commit: bool,
    }

    /// One partition of a grouped fetch (wire 7.5).
    pub struct FetchTarget {
        /// The partition.
        partition_id: u32,
        /// Where to start: an offset or `next`.
        strategy: PollingStrategy,
        /// Most bytes from this partition: 344 up to the limit of the request.
        max_bytes: u32,
        /// The history of the partition.
        incarnation: u64,
        /// The group ownership, or zero.
        owner_generation: u64,
    }
}

/// Reads messages and waits for them (106, wire 7.4).
#[derive(Debug, Clone, PartialEq)]
pub struct DeferredPoll {
    /// What to read.
    pub poll: PollMessages,
    /// How long to wait for `min_count` messages, in microseconds: 0..=600000000.
    pub wait_us: u64,
    /// Messages that end the wait: 1 up to the count.
    pub min_count: u32,
    /// Most bytes of the reply body: at least 344.
    pub max_bytes: u32,
    /// When the client stops listening, in microseconds: at least a second after the wait, at most 630000000.
    pub request_timeout_us: u64,
}

impl DeferredPoll {
    /// Checks the limits of wire 7.4.
    pub fn validate(&self) -> Result<(), DecodeError> {
        check_wait(self.wait_us)?;
        check_counts(self.min_count, self.poll.count)?;
        check_reply_bytes("max_bytes", self.max_bytes)?;
        check_timeout(self.wait_us, self.request_timeout_us, self.wait_us > 0)
    }

    /// Bytes the largest possible reply body has: one oversize first message may come alone.
    pub fn reply_limit(&self) -> usize {
        (self.max_bytes as usize).max(POLL_HEAD_BYTES + MAX_RECORD_BYTES)
    }
}

impl Encode for DeferredPoll {
    fn encode(&self, out: &mut BytesMut) {
        self.poll.encode(out);
        out.put_u64_le(self.wait_us);
        out.put_u32_le(self.min_count);
        out.put_u32_le(self.max_bytes);
        out.put_u64_le(self.request_timeout_us);
    }
}

impl<'a> Decode<'a> for DeferredPoll {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let poll = Self {
            poll: PollMessages::decode(reader)?,
            wait_us: reader.u64("wait_us")?,
            min_count: reader.u32("min_count")?,
            max_bytes: reader.u32("max_bytes")?,
            request_timeout_us: reader.u64("request_timeout_us")?,
        };
        poll.validate()?;
        Ok(poll)
    }
}

fn check_wait(wait_us: u64) -> Result<(), DecodeError> {
    if wait_us > MAX_DEFERRED_WAIT_MICROS {
        return Err(DecodeError::value("wait_us", wait_us, "0..=600000000"));
    }
    Ok(())
}

fn check_counts(min_count: u32, count: u32) -> Result<(), DecodeError> {
    if min_count == 0 || min_count > count {
        let error = DecodeError::value("min_count", min_count, "1 up to the count of the request");
        return Err(error.with_code(ErrorCode::InvalidMessagesCount));
    }
    Ok(())
}

fn check_reply_bytes(field: &'static str, max_bytes: u32) -> Result<(), DecodeError> {
    if max_bytes < MIN_REPLY_BYTES {
        return Err(DecodeError::value(field, max_bytes, "at least 344").with_code(ErrorCode::InvalidSizeBytes));
    }
    Ok(())
}

fn check_timeout(wait_us: u64, timeout_us: u64, margin: bool) -> Result<(), DecodeError> {
    let least = if margin { wait_us + MIN_REPLY_MARGIN_MICROS } else { 1 };
    if timeout_us < least || timeout_us > MAX_DEFERRED_TIMEOUT_MICROS {
        let allowed = "from the wait plus 1000000 (or 1 without wait or targets) up to 630000000";
        return Err(DecodeError::value("request_timeout_us", timeout_us, allowed));
    }
    Ok(())
}

/// Reads several partitions of one topic that share a primary (109, wire 7.5).
#[derive(Debug, Clone, PartialEq)]
pub struct FetchMessages {
    /// Who reads.
    pub consumer: Consumer,
    /// The stream.
    pub stream: Identifier,
    /// The topic.
    pub topic: Identifier,
    /// How long to wait for `min_count` messages, in microseconds.
    pub wait_us: u64,
    /// When the client stops listening, in microseconds: at least a second after the wait.
    pub request_timeout_us: u64,
    /// Messages of all targets together that end the wait.
    pub min_count: u32,
    /// Most messages of all targets together.
    pub count: u32,
    /// Most bytes of all targets together: at least 344.
    pub max_bytes: u32,
    /// Whether the offsets of the last returned messages are stored as part of the read.
    pub auto_commit: bool,
    /// 1..=1000 partitions, each once.
    pub targets: Vec<FetchTarget>,
}

const FETCH_TARGET_BYTES: usize = 33;

impl FetchMessages {
    /// Checks the limits of wire 7.5.
    pub fn validate(&self) -> Result<(), DecodeError> {
        check_wait(self.wait_us)?;
        check_counts(self.min_count, self.count)?;
        check_reply_bytes("max_bytes", self.max_bytes)?;
        check_timeout(self.wait_us, self.request_timeout_us, true)?;
        if self.targets.is_empty() || self.targets.len() > MAX_PARTITIONS_PER_REQUEST as usize {
            return Err(DecodeError::length("targets", self.targets.len(), "1..=1000"));
        }
        let mut seen = HashSet::with_capacity(self.targets.len());
        for target in &self.targets {
            if !seen.insert(target.partition_id) {
                return Err(DecodeError::new(
                    "targets",
                    Problem::Duplicate(format!("partition {}", target.partition_id)),
                ));
            }
            if !matches!(target.strategy, PollingStrategy::Offset(_) | PollingStrategy::Next) {
                return Err(DecodeError::value(
                    "target strategy",
                    target.strategy.kind(),
                    "1 (offset) or 5 (next)",
                ));
            }
            check_reply_bytes("target max_bytes", target.max_bytes)?;
            if target.max_bytes > self.max_bytes {
                let error = DecodeError::value(
                    "target max_bytes",
                    target.max_bytes,
                    "at most the max_bytes of the request",
                );
                return Err(error.with_code(ErrorCode::InvalidSizeBytes));
            }
        }
        Ok(())
    }

    /// Bytes a reply body has unless one oversize first message comes alone.
    pub fn ordinary_reply_limit(&self) -> usize {
        4 + FETCH_SECTION_BYTES * self.targets.len() + self.max_bytes as usize
    }

    /// Bytes the largest possible reply body has.
    pub fn reply_limit(&self) -> usize {
        4 + FETCH_SECTION_BYTES * self.targets.len() + (self.max_bytes as usize).max(MAX_RECORD_BYTES)
    }
}

impl Encode for FetchMessages {
    fn encode(&self, out: &mut BytesMut) {
        self.consumer.encode(out);
        self.stream.encode(out);
        self.topic.encode(out);
        out.put_u64_le(self.wait_us);
        out.put_u64_le(self.request_timeout_us);
        out.put_u32_le(self.min_count);
        out.put_u32_le(self.count);
        out.put_u32_le(self.max_bytes);
        out.put_u8(u8::from(self.auto_commit));
        out.put_u32_le(self.targets.len() as u32);
        for target in &self.targets {
            target.encode(out);
        }
    }
}

impl<'a> Decode<'a> for FetchMessages {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let consumer = Consumer::decode(reader)?;
        let stream = Identifier::decode(reader)?;
        let topic = Identifier::decode(reader)?;
        let wait_us = reader.u64("wait_us")?;
        let request_timeout_us = reader.u64("request_timeout_us")?;
        let min_count = reader.u32("min_count")?;
        let count = reader.u32("count")?;
        let max_bytes = reader.u32("max_bytes")?;
        let auto_commit = reader.u8("auto_commit")? != 0;
        let targets_count = reader.count("targets count", FETCH_TARGET_BYTES)?;
        if targets_count > MAX_PARTITIONS_PER_REQUEST as usize {
            return Err(DecodeError::length("targets", targets_count, "1..=1000"));
        }
        let targets = (0..targets_count)
            .map(|_| FetchTarget::decode(reader))
            .collect::<Result<_, _>>()?;
        let fetch = Self {
            consumer,
            stream,
            topic,
            wait_us,
            request_timeout_us,
            min_count,
            count,
            max_bytes,
            auto_commit,
            targets,
        };
        fetch.validate()?;
        Ok(fetch)
    }
}
