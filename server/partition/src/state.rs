//! The replicated state of a partition. The same log gives the same state on every replica.

use crate::operation::{ConsumerKey, Member, PartitionOperation};
use crate::producers::Producers;
use crate::receipts::{Outcome, Receipt, Receipts};
use iggy_consensus::PrepareHeader;
use iggy_journal::planted::{self, Bug};
use iggy_protocol::batch::BatchHeader;
use iggy_protocol::error_code::ErrorCode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const FORMAT: u32 = 1;

/// Who may read and commit a partition for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Metadata position that decided it; rises with every change.
    pub generation: u64,
    /// The member, or nobody.
    pub member: Option<Member>,
}

/// Everything a partition knows besides its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionState {
    /// Position of the newest prepare applied.
    pub op: u64,
    /// Oldest offset that can be read.
    pub log_start: u64,
    /// Highest offset before which messages were to be dropped. It lies beyond the log after a loss: what is written
    /// there later is not meant.
    pub truncated_before: u64,
    /// Offset of the next message.
    pub next_offset: u64,
    /// Stored offsets.
    pub offsets: BTreeMap<ConsumerKey, u64>,
    /// Owners by group.
    pub owners: BTreeMap<u32, Owner>,
    /// Answers to recent requests.
    pub receipts: Receipts,
    /// Recent batches of idempotent producers.
    pub producers: Producers,
}

/// A checkpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Not what a checkpoint of a partition looks like.
    #[error("the checkpoint of the partition is malformed: {0}")]
    Malformed(#[from] rmp_serde::decode::Error),
    /// Written by a release with another format.
    #[error("the checkpoint of the partition has format {found}; this release reads format {FORMAT}")]
    Format {
        /// Its format.
        found: u32,
    },
}

/// Where the newest segment and its last batch end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// First offset of the segment.
    pub segment: u64,
    /// Bytes of it.
    pub size: u64,
}

impl PartitionState {
    /// The bytes of a checkpoint; `end` is where the log ends at the same position.
    pub fn snapshot(&self, end: Option<LogPosition>) -> Vec<u8> {
        if planted::has(Bug::ForgetReceipts) && !self.receipts.is_empty() {
            let receipts = Receipts::default();
            return Self {
                receipts,
                ..self.clone()
            }
            .snapshot(end);
        }
        if planted::has(Bug::ForgetProducers) && !self.producers.is_empty() {
            let producers = Producers::default();
            return Self {
                producers,
                ..self.clone()
            }
            .snapshot(end);
        }
        if planted::has(Bug::ResurrectDropped) && self.log_start > 0 {
            let log_start = 0;
            return Self {
                log_start,
                ..self.clone()
            }
            .snapshot(end);
        }
        rmp_serde::to_vec(&(FORMAT, end, self)).expect("plain data always encodes")
    }

    /// Reads what [`snapshot`](Self::snapshot) wrote.
    pub fn restore(bytes: &[u8]) -> Result<(Self, Option<LogPosition>), SnapshotError> {
        // The format comes first and is looked at alone: the rest may have any shape in another one.
        let found = match bytes {
            [0x93, format @ 0..=0x7f, ..] => u32::from(*format),
            _ => return Err(SnapshotError::Format { found: 0 }),
        };
        if found != FORMAT {
            return Err(SnapshotError::Format { found });
        }
        let (_, end, state): (u32, Option<LogPosition>, Self) = rmp_serde::from_slice(bytes)?;
        Ok((state, end))
    }

    /// Messages that can be read.
    pub fn messages(&self) -> u64 {
        self.next_offset - self.log_start
    }

    /// Offset of the newest message; 0 when there is none (wire 9 has no other way to say it).
    pub fn current_offset(&self) -> u64 {
        self.next_offset.saturating_sub(1)
    }

    /// Applies a committed batch.
    pub fn apply_batch(&mut self, header: &PrepareHeader, batch: &BatchHeader) -> Outcome {
        let base_offset = batch.base_offset.get();
        let count = batch.message_count.get();
        debug_assert_eq!(base_offset, self.next_offset, "offsets follow the log");
        self.next_offset = base_offset + u64::from(count);
        if let Some(section) = batch.producer() {
            self.producers
                .record(section, count, base_offset, header.timestamp.get());
        }
        self.finish(header, Outcome::Sent { base_offset })
    }

    /// Applies a committed operation.
    pub fn apply(&mut self, header: &PrepareHeader, operation: PartitionOperation) -> Outcome {
        let outcome = match operation {
            PartitionOperation::DuplicateBatch { base_offset } => Outcome::Sent { base_offset },
            PartitionOperation::StoreOffset { consumer, offset } => self.store(header, consumer, offset),
            PartitionOperation::DeleteOffset { consumer } => self.delete(header, &consumer),
            PartitionOperation::InstallOwner {
                group,
                generation,
                member,
            } => {
                let owner = self.owners.entry(group).or_insert(Owner {
                    generation: 0,
                    member: None,
                });
                if generation > owner.generation {
                    *owner = Owner { generation, member };
                }
                Outcome::Done
            }
            PartitionOperation::RetireGroup { group, generation } => {
                if self
                    .owners
                    .get(&group)
                    .is_none_or(|owner| owner.generation <= generation)
                {
                    self.owners.remove(&group);
                    self.offsets.remove(&ConsumerKey::Group(group));
                }
                Outcome::Done
            }
            PartitionOperation::RetireSession(member) => {
                self.receipts.retire(member);
                Outcome::Done
            }
            PartitionOperation::TruncatePrefix { before } => {
                self.truncated_before = self.truncated_before.max(before);
                self.log_start = self.log_start.max(before.min(self.next_offset));
                Outcome::Done
            }
        };
        self.finish(header, outcome)
    }

    fn store(&mut self, header: &PrepareHeader, consumer: ConsumerKey, offset: u64) -> Outcome {
        if let Err(code) = self.check_owner(&consumer, header.owner_generation.get()) {
            return Outcome::Rejected(code.code());
        }
        self.offsets.insert(consumer, offset);
        Outcome::Done
    }

    fn delete(&mut self, header: &PrepareHeader, consumer: &ConsumerKey) -> Outcome {
        if let Err(code) = self.check_owner(consumer, header.owner_generation.get()) {
            return Outcome::Rejected(code.code());
        }
        match self.offsets.remove(consumer) {
            Some(_) => Outcome::Done,
            None => Outcome::Rejected(ErrorCode::ConsumerOffsetNotFound.code()),
        }
    }

    /// A group's offset may only be written under the generation that owns the partition now: an owner installed between
    /// admission and commit fences the one before.
    fn check_owner(&self, consumer: &ConsumerKey, generation: u64) -> Result<(), ErrorCode> {
        let ConsumerKey::Group(group) = consumer else {
            return Ok(());
        };
        let owned = self
            .owners
            .get(group)
            .is_some_and(|owner| owner.generation == generation);
        owned.then_some(()).ok_or(ErrorCode::ConsumerGroupPartitionNotOwned)
    }

    fn finish(&mut self, header: &PrepareHeader, outcome: Outcome) -> Outcome {
        self.op = header.op.get();
        let member = Member {
            client: header.client.get(),
            session: header.session.get(),
        };
        // The node's own writes have no session and are never retried by number.
        if header.request.get() != 0 {
            let receipt = Receipt {
                request: header.request.get(),
                op: self.op,
                timestamp: header.timestamp.get(),
                view: header.view.get(),
                replica: header.replica,
                operation: header.operation,
                request_checksum: header.request_checksum.get(),
                outcome,
            };
            self.receipts.record(member, receipt);
        }
        outcome
    }
}
