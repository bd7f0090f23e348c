//! Replies to sends, route lookups, polls and fetches (wire 7).

use std::collections::HashSet;

use bytes::{BufMut, BytesMut};

use crate::batch::{BatchError, Records};
use crate::codec::{Decode, DecodeError, Encode, Problem, Reader};
use crate::context::PartitionContext;
use crate::error_code::ErrorCode;
use crate::limits::{FETCH_SECTION_BYTES, MAX_PARTITIONS_PER_REQUEST};
use crate::wire_struct::wire_struct;

/// Partition of an empty poll reply when the server fenced a stale group assignment: sync the group.
pub const PARTITION_FENCED: u32 = u32::MAX;
/// Partition of an empty poll reply when the member has no partition at the moment.
pub const PARTITION_UNASSIGNED: u32 = u32::MAX - 1;

wire_struct! {
    /// Where a batch was stored (wire 7.1).
    pub struct SendConfirmation {
        /// The stream.
        stream_id: u32,
        /// The topic.
        topic_id: u32,
        /// The partition.
        partition_id: u32,
        /// Offset of the first message of the batch.
        base_offset: u64,
    }

    /// Confirmations of a send; none means committed without offsets.
    pub struct SendReply {
        /// One per batch.
        confirmations: Vec<SendConfirmation> = counted,
    }

    /// Where a partition is served: exactly 25 bytes (wire 7.2).
    pub struct PartitionRoute {
        /// The metadata position that created the partition.
        incarnation: u64,
        /// The metadata position this answer holds at.
        metadata_op: u64,
        /// The view of the partition's group at the answering replica.
        view: u32,
        /// Partitions of the topic.
        partitions_count: u32,
        /// The replica id that leads the partition.
        primary_replica: u8,
    }

    /// What precedes the records of a poll reply: 40 bytes (wire 7.3).
    pub struct PollHead {
        /// The partition, or [`PARTITION_FENCED`] or [`PARTITION_UNASSIGNED`].
        partition_id: u32,
        /// The newest offset of the partition.
        current_offset: u64,
        /// Messages in the records.
        messages_count: u32,
        /// The history that was read.
        context: PartitionContext,
    }

    /// One partition of a fetch reply: 56 bytes (wire 7.5).
    pub struct FetchSection {
        /// The partition.
        partition_id: u32,
        /// Zero, or the error code of this partition.
        status: u32,
        /// The newest offset of the partition.
        current_offset: u64,
        /// Messages in its records.
        messages_count: u32,
        /// The history that was read.
        context: PartitionContext,
        /// Where the next fetch of this partition starts.
        next_offset: u64,
        /// Bytes of its records.
        records_len: u32,
    }
}

impl PartitionRoute {
    /// The context of requests that follow this route.
    pub const fn context(&self) -> PartitionContext {
        PartitionContext::from_route(self.incarnation, self.metadata_op)
    }
}

/// A poll reply in place: the head and the records as they stand.
#[derive(Debug, Clone, PartialEq)]
pub struct PollReply<'a> {
    /// What was read.
    pub head: PollHead,
    /// Batches back to back.
    pub records: &'a [u8],
}

impl<'a> PollReply<'a> {
    /// Walks the records and checks that they hold as many messages as the head says.
    pub fn validate(&self) -> Result<(), BatchError> {
        check_records(self.records, self.head.messages_count)
    }

    /// The batches.
    pub fn batches(&self) -> Records<'a> {
        Records::new(self.records)
    }
}

/// Checks that `records` are well-formed batches that hold `expected` messages in all.
fn check_records(records: &[u8], expected: u32) -> Result<(), BatchError> {
    let mut messages = 0_u64;
    for batch in Records::new(records) {
        messages += u64::from(batch?.message_count());
    }
    (messages == u64::from(expected))
        .then_some(())
        .ok_or(BatchError::FramesDoNotTile)
}

impl<'a> Decode<'a> for PollReply<'a> {
    /// Reads to the end of the body.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            head: PollHead::decode(reader)?,
            records: reader.rest(),
        })
    }
}

/// A fetch reply in place: the section table and the records as they stand.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchReply<'a> {
    /// Each section with its records.
    pub sections: Vec<(FetchSection, &'a [u8])>,
}

impl FetchReply<'_> {
    /// Walks the records and checks that each section holds as many messages as it says.
    pub fn validate(&self) -> Result<(), BatchError> {
        self.sections
            .iter()
            .try_for_each(|(section, records)| check_records(records, section.messages_count))
    }
}

/// Writes the section table of a fetch reply; the records follow in the order of the sections.
pub fn put_fetch_table(sections: &[FetchSection], out: &mut BytesMut) {
    out.put_u32_le(sections.len() as u32);
    for section in sections {
        section.encode(out);
    }
}

impl<'a> Decode<'a> for FetchReply<'a> {
    /// Reads to the end of the body: the records must fill it exactly.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.u32("sections count")? as usize;
        if count > MAX_PARTITIONS_PER_REQUEST as usize {
            return Err(DecodeError::length("sections", count, "0..=1000"));
        }
        let available = reader.remaining();
        if count * FETCH_SECTION_BYTES > available {
            let needed = count * FETCH_SECTION_BYTES;
            return Err(DecodeError::new("sections", Problem::Truncated { needed, available }));
        }
        let table = (0..count)
            .map(|_| FetchSection::decode(reader))
            .collect::<Result<Vec<_>, _>>()?;
        let mut seen = HashSet::with_capacity(count);
        let mut sections = Vec::with_capacity(count);
        for section in table {
            if !seen.insert(section.partition_id) {
                let problem = Problem::Duplicate(format!("partition {}", section.partition_id));
                return Err(DecodeError::new("sections", problem));
            }
            if section.status != 0 && section.records_len != 0 {
                return Err(DecodeError::rule("section", "a refused partition has no records"));
            }
            if (section.records_len == 0) != (section.messages_count == 0) {
                let error = DecodeError::rule("section", "messages and records come together");
                return Err(error.with_code(ErrorCode::InvalidMessagesCount));
            }
            let records = reader.bytes("section records", section.records_len as usize)?;
            sections.push((section, records));
        }
        reader.finish()?;
        Ok(Self { sections })
    }
}
