//! What happens when writes commit: they are applied in order, and their clients answered.

use super::writes::{Pending, Waiter, batch_header};
use super::{Notice, PartitionGroup};
use crate::request::{Origin, PartitionRequest, Reply, operation_of, rejection};
use bytes::{Bytes, BytesMut};
use iggy_consensus::{Body, LogEnd, Now};
use iggy_partition::operation::PartitionOperation;
use iggy_partition::receipts::{Outcome, Receipt};
use iggy_partition::tail::StoredBatch;
use iggy_protocol::codec::Encode;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::Committed;
use iggy_protocol::reply::message::{SendConfirmation, SendReply};
use iggy_protocol::result_section;
use iggy_storage::Storage;

/// Waiting readers that are answered before the producers whose messages they get; the others come after, lest a producer
/// wait for a crowd. A reader waits for the message itself, its producer only for a word about it.
const READERS_FIRST: usize = 16;

impl PartitionGroup {
    pub(super) fn committed(&mut self, now: Now, op: u64, storage: &mut dyn Storage) {
        let mut appended = false;
        let before = self.notices.len();
        let log_start = self.state.log_start;
        while self
            .pending
            .front()
            .is_some_and(|pending| pending.header.op.get() <= op)
        {
            let Some(pending) = self.pending.pop_front() else { break };
            appended |= matches!(pending.body, Body::Batch { .. });
            self.apply(pending);
        }
        let answers = self.notices.split_off(before);
        if appended || self.state.log_start > log_start {
            self.remove_dropped(storage);
        }
        self.publish_counters();
        self.checkpoint_when_due(storage);
        self.resume_waiting(now, storage);
        let woken = self.notices.len();
        if appended {
            self.wake_parked(now, storage);
        }
        let mut readers = self.notices[woken..]
            .iter()
            .enumerate()
            .filter(|(_, notice)| matches!(notice, Notice::Reply(_)));
        let after = readers
            .nth(READERS_FIRST - 1)
            .map_or(self.notices.len(), |(last, _)| woken + last + 1);
        self.notices.splice(after..after, answers);
        self.finish_when_quiet(storage);
    }

    pub(super) fn checkpoint_when_due(&mut self, storage: &mut dyn Storage) {
        if self.log.wants_checkpoint(self.applied.op) {
            let state = self.state.snapshot(self.applied_end);
            self.log.checkpoint(self.applied, state, storage);
        }
    }

    fn apply(&mut self, pending: Pending) {
        let header = &pending.header;
        self.applied = LogEnd {
            op: header.op.get(),
            checksum: header.checksum.get(),
            timestamp: header.timestamp.get(),
        };
        self.applied_end = pending.end;
        let outcome = match (&pending.body, batch_header(&pending.body)) {
            (Body::Batch { header: bytes, frames }, Some(batch)) => {
                let base_offset = batch.base_offset.get();
                self.counters.count_appended(batch.message_count.get());
                self.tail_used = true;
                self.tail.push(StoredBatch {
                    base_offset,
                    last_offset: base_offset + u64::from(batch.message_count.get()) - 1,
                    timestamp: batch.base_timestamp.get(),
                    header: bytes.clone(),
                    frames: frames.clone(),
                });
                self.state.apply_batch(header, batch)
            }
            (Body::Inline(bytes), _) => match PartitionOperation::decode(bytes) {
                Ok(operation) => {
                    let group = operation.owned_group();
                    let outcome = self.state.apply(header, operation);
                    if let Some(group) = group {
                        self.fence_parked(group);
                    }
                    outcome
                }
                // It passed the checksums of whoever made it: a newer release leads the group.
                Err(error) => {
                    self.notices.push(Notice::Damaged(format!("op {}: {error}", header.op)));
                    self.unusable = true;
                    return;
                }
            },
            (Body::Batch { .. }, None) => unreachable!("a batch in flight has its header"),
        };
        match pending.waiter {
            Waiter::Nobody => {}
            Waiter::Client(origin) => {
                let receipt = Receipt {
                    request: header.request.get(),
                    op: header.op.get(),
                    timestamp: header.timestamp.get(),
                    view: header.view.get(),
                    replica: header.replica,
                    operation: header.operation,
                    request_checksum: header.request_checksum.get(),
                    outcome,
                };
                let reply = self.replay(&origin, &receipt);
                self.reply(reply);
            }
            Waiter::Read(reply) => match outcome {
                // The owner changed between the read and its commit: nothing was stored, so nothing was read.
                Outcome::Rejected(code) => self.reply(reply.into_refusal(ErrorCode::from_u32(code))),
                Outcome::Sent { .. } | Outcome::Done => self.reply(*reply),
            },
        }
    }

    /// The answer a receipt stands for; the same bytes every time.
    pub(super) fn replay(&self, origin: &Origin, receipt: &Receipt) -> Reply {
        let entry = Committed {
            cluster: self.config.cluster,
            view: receipt.view,
            replica: receipt.replica,
            request_checksum: receipt.request_checksum,
            client: origin.header.client.get(),
            op: receipt.op,
            timestamp: receipt.timestamp,
            request: receipt.request,
            operation: operation_of(receipt.operation),
            partition_incarnation: self.history.incarnation,
        };
        let body = match receipt.outcome {
            Outcome::Sent { base_offset } => self.confirmation(base_offset),
            Outcome::Done => {
                let mut body = BytesMut::new();
                result_section::put_success(&mut body);
                vec![body.freeze()]
            }
            Outcome::Rejected(code) => rejection(ErrorCode::from_u32(code)),
        };
        Reply::committed(origin.ticket, &entry, body)
    }

    fn confirmation(&self, base_offset: u64) -> Vec<Bytes> {
        let confirmation = SendConfirmation {
            stream_id: self.key.stream_id,
            topic_id: self.key.topic_id,
            partition_id: self.key.partition_id,
            base_offset,
        };
        let mut body = BytesMut::new();
        SendReply {
            confirmations: vec![confirmation],
        }
        .encode(&mut body);
        vec![body.freeze()]
    }

    pub(super) fn resume_waiting(&mut self, now: Now, storage: &mut dyn Storage) {
        while self
            .waiting
            .front()
            .is_some_and(|waiting| waiting.op <= self.applied.op)
        {
            let Some(mut waiting) = self.waiting.pop_front() else {
                break;
            };
            if let PartitionRequest::Poll(poll) = &mut waiting.request {
                // The client's patience began when the request came.
                poll.wait = poll.wait.saturating_sub(now.monotonic - waiting.since);
            }
            self.request(now, waiting.origin, waiting.request, storage);
        }
    }

    /// Answers every request that only waits: nothing of theirs was written.
    pub(super) fn refuse_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.refuse(&waiting.origin, &waiting.request, ErrorCode::TransientNotAccepted);
        }
        self.refuse_parked(ErrorCode::TransientNotAccepted);
    }

    /// Answers every request when the log takes no more: what is in flight may or may not be on disk.
    pub(super) fn refuse_everything(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            self.leave_unanswered(pending.waiter);
        }
        self.refuse_waiting();
    }

    /// Nobody here learns what became of the writes in flight: another replica leads the group, or will.
    pub(super) fn give_up_leading(&mut self) {
        let waiters: Vec<Waiter> = self
            .pending
            .iter_mut()
            .map(|pending| std::mem::replace(&mut pending.waiter, Waiter::Nobody))
            .collect();
        for waiter in waiters {
            self.leave_unanswered(waiter);
        }
        self.refuse_waiting();
    }

    /// The write may or may not be applied; the client finds out by asking again.
    pub(super) fn leave_unanswered(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Nobody => {}
            Waiter::Client(origin) => self.reply(Reply::refused(&origin, ErrorCode::TransientNotCommitted)),
            Waiter::Read(reply) => self.reply(reply.into_refusal(ErrorCode::TransientNotCommitted)),
        }
    }
}
