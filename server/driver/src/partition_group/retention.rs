//! What a partition may forget: expired messages, messages beyond its share of the topic's size, segments a user drops.
//!
//! Only sealed segments go, oldest first, and only by an operation in the log, so that every replica forgets the same.

use super::PartitionGroup;
use iggy_consensus::Now;
use iggy_journal::planted::{self, Bug};
use iggy_partition::operation::{Member, PartitionOperation, TRUNCATE_PREFIX};
use iggy_protocol::operation::Operation;
use iggy_storage::Storage;

impl PartitionGroup {
    /// Drops what has expired or is too much. True when it wrote something.
    pub fn retain(&mut self, now: Now, storage: &mut dyn Storage) -> bool {
        let settings = &self.settings;
        let sealed = self.segments.sealed();
        let mut excess = sealed
            .iter()
            .map(|segment| segment.index.size)
            .sum::<u64>()
            .saturating_sub(settings.size_max);
        let mut before = None;
        for segment in sealed {
            let index = &segment.index;
            let expired = index.last_timestamp.saturating_add(settings.message_expiry) < now.wall;
            if (!expired && excess == 0) || index.end_offset > self.state.next_offset {
                break;
            }
            excess = excess.saturating_sub(index.size);
            before = Some(index.end_offset);
        }
        before.is_some_and(|before| self.truncate(now, before, storage))
    }

    /// First offset to keep after dropping the `count` oldest sealed segments.
    pub fn offset_after_segments(&self, count: u32) -> u64 {
        let committed = self
            .segments
            .sealed()
            .iter()
            .filter(|segment| segment.index.end_offset <= self.state.next_offset);
        committed
            .take(count as usize)
            .last()
            .map_or(self.state.log_start, |segment| segment.index.end_offset)
    }

    /// Drops messages before an offset. False when there is nothing to drop, or no room in the log now.
    pub fn truncate(&mut self, now: Now, before: u64, storage: &mut dyn Storage) -> bool {
        let body = PartitionOperation::TruncatePrefix { before };
        before > self.state.log_start && self.propose_internal(now, TRUNCATE_PREFIX, &body, storage)
    }

    /// Forgets the segments that the state has dropped. Their files go after the next checkpoint: until then the journal
    /// names batches in them, and without them a restart could not tell a dropped batch from a lost one.
    pub(super) fn remove_dropped(&mut self, storage: &mut dyn Storage) {
        // The segment in which the applied log ends stays, though a batch in flight may have sealed it: should that batch
        // be lost, the log ends there again.
        let end = self.applied_end.map_or(0, |end| end.segment);
        let job = self.segments.remove_before(self.state.log_start.min(end));
        if planted::has(Bug::RemoveNamedSegments) {
            self.log.in_background(job, storage);
        } else if !job.is_empty() {
            self.dropped.0 = self.applied.op;
            self.dropped.1.extend(job);
            self.log.want_checkpoint(storage);
        }
    }

    /// A checkpoint at `op` counts: nothing names what was dropped before it.
    pub(super) fn checkpointed(&mut self, op: u64, storage: &mut dyn Storage) {
        if op >= self.dropped.0 {
            let job = std::mem::take(&mut self.dropped.1);
            self.log.in_background(job, storage);
        }
        self.checkpoint_when_due(storage);
    }

    /// Gives the partition to a member of a group, or to nobody. True when it is or will be so.
    pub fn install_owner(
        &mut self,
        now: Now,
        group: u32,
        generation: u64,
        member: Option<Member>,
        storage: &mut dyn Storage,
    ) -> bool {
        if self
            .state
            .owners
            .get(&group)
            .is_some_and(|owner| owner.generation >= generation)
        {
            return true;
        }
        let body = PartitionOperation::InstallOwner {
            group,
            generation,
            member,
        };
        self.propose_internal(now, Operation::InstallConsumerGroupOwner.code(), &body, storage)
    }

    /// Forgets a deleted group. True when it is or will be so.
    pub fn retire_group(&mut self, now: Now, group: u32, generation: u64, storage: &mut dyn Storage) -> bool {
        let body = PartitionOperation::RetireGroup { group, generation };
        self.propose_internal(now, Operation::RetireConsumerGroupOwners.code(), &body, storage)
    }

    /// Forgets the receipts of an ended session. True when it is or will be so.
    pub fn retire_session(&mut self, now: Now, member: Member, storage: &mut dyn Storage) -> bool {
        if !self.state.receipts.knows(member) {
            return true;
        }
        let body = PartitionOperation::RetireSession(member);
        self.propose_internal(now, Operation::RetireSession.code(), &body, storage)
    }
}
