//! Admission of writes, and the writes in flight.

use super::{PartitionGroup, Waiting};
use crate::group_log::{Host, Placed};
use crate::request::{Origin, PartitionRequest, Reply};
use bytes::Bytes;
use iggy_consensus::{Barrier, Body, Now, Prepare, PrepareHeader, Proposal, Refusal};
use iggy_journal::FileNumbers;
use iggy_partition::operation::{ConsumerKey, PartitionOperation};
use iggy_partition::producers::Verdict;
use iggy_partition::receipts::Known;
use iggy_partition::recovery::Uncommitted;
use iggy_partition::segments::{Mark, Segments};
use iggy_partition::state::LogPosition;
use iggy_protocol::batch::{BatchHeader, Frames, stamp_header};
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::limits::HEADER_SIZE;
use iggy_protocol::operation::Operation;
use iggy_storage::{FileId, Job, Storage};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

/// A write in flight.
#[derive(Debug)]
pub(super) struct Pending {
    pub header: Arc<PrepareHeader>,
    pub body: Body,
    /// Where the segments ended before it.
    pub before: Option<Mark>,
    /// Where the log ends with it.
    pub end: Option<LogPosition>,
    /// Who is answered when it commits.
    pub waiter: Waiter,
}

impl Pending {
    /// A write that recovery found and that may or may not be committed.
    pub fn recovered(found: Uncommitted) -> Self {
        Self {
            header: found.prepare.header,
            body: found.prepare.body,
            before: found.before,
            end: found.end,
            waiter: Waiter::Nobody,
        }
    }

    /// The header of its batch, which stands for all of it; `None` when it has none.
    pub fn batch_bytes(&self) -> Option<&Bytes> {
        match &self.body {
            Body::Batch { header, .. } => Some(header),
            Body::Inline(_) => None,
        }
    }

    /// The offset after its batch; 0 when it has none.
    pub fn end_offset(&self) -> u64 {
        batch_header(&self.body).map_or(0, |batch| {
            batch.base_offset.get() + u64::from(batch.message_count.get())
        })
    }
}

#[derive(Debug)]
pub(super) enum Waiter {
    /// The node itself.
    Nobody,
    /// A client that wrote.
    Client(Origin),
    /// A read that stores its offset; the reply is ready and leaves when the offset is committed.
    Read(Box<Reply>),
}

/// The facts of a proposal that depend on who makes it.
#[derive(Clone, Copy)]
struct Identity {
    client: u128,
    request_checksum: u128,
    session: u64,
    request: u64,
    user_id: u32,
}

impl Identity {
    const NODE: Self = Self {
        client: 0,
        request_checksum: 0,
        session: 0,
        request: 0,
        user_id: 0,
    };

    fn of(origin: &Origin) -> Self {
        Self {
            client: origin.header.client.get(),
            request_checksum: origin.header.request_checksum.get(),
            session: origin.header.session.get(),
            request: origin.header.request.get(),
            user_id: origin.user_id,
        }
    }
}

impl PartitionGroup {
    /// Takes a request. Its answer comes as a notice, now or later.
    pub fn request(&mut self, now: Now, origin: Origin, request: PartitionRequest, storage: &mut dyn Storage) {
        // Nothing was written: the client may try again, here or at whoever leads the partition then.
        if self.stopping || self.unusable || self.unknown_losses().is_some() {
            return self.refuse(&origin, &request, ErrorCode::TransientNotAccepted);
        }
        if let Err(code) = self.check_history(&origin) {
            return self.refuse(&origin, &request, code);
        }
        if !self.leads() {
            return self.refuse(&origin, &request, ErrorCode::NotPrimary);
        }
        let awaited = if self.opened {
            self.owner_in_flight(&request).or_else(|| self.earlier_views())
        } else {
            Some(0)
        };
        if let Some(op) = awaited {
            if self.waiting.len() >= self.config.waiting_max {
                return self.refuse(&origin, &request, ErrorCode::TransientNotAccepted);
            }
            let since = now.monotonic;
            return self.waiting.push_back(Waiting {
                op,
                since,
                origin,
                request,
            });
        }
        match request {
            PartitionRequest::Poll(poll) => self.poll(now, origin, poll, storage),
            PartitionRequest::GetOffset { consumer } => self.get_offset(&origin, &consumer),
            PartitionRequest::Watch(watching) => self.watch(&origin, watching),
            write => self.write(now, origin, write, storage),
        }
    }

    /// Whether the request was made for the history this partition has. The metadata a request was resolved with may be
    /// older or newer than the orders that came here: what was resolved before a new history must not act on it.
    fn check_history(&self, origin: &Origin) -> Result<(), ErrorCode> {
        match origin.header.partition_incarnation.get().cmp(&self.history.incarnation) {
            Ordering::Less => Err(ErrorCode::HistoryUnavailable),
            Ordering::Equal => Ok(()),
            // The order that begins it is on its way.
            Ordering::Greater => Err(ErrorCode::TransientNotAccepted),
        }
    }

    /// Refuses a request, on the way its answer goes.
    pub(super) fn refuse(&mut self, origin: &Origin, request: &PartitionRequest, code: ErrorCode) {
        match request {
            PartitionRequest::Watch(watching) => watching.tally.refuse(watching.place, code),
            _ => self.reply(Reply::refused(origin, code)),
        }
    }

    /// The end of what earlier views may have acknowledged, until it is applied: a read before that could miss it.
    fn earlier_views(&self) -> Option<u64> {
        Some(self.log.replica().view_start()).filter(|start| *start > self.applied.op)
    }

    /// Position of an owner change of the request's group that is not applied yet.
    fn owner_in_flight(&self, request: &PartitionRequest) -> Option<u64> {
        let consumer = match request {
            PartitionRequest::Send { .. } => return None,
            PartitionRequest::StoreOffset { consumer, .. }
            | PartitionRequest::DeleteOffset { consumer }
            | PartitionRequest::GetOffset { consumer } => consumer,
            PartitionRequest::Poll(poll) => &poll.consumer,
            PartitionRequest::Watch(watching) => &watching.consumer,
        };
        let ConsumerKey::Group(group) = consumer else {
            return None;
        };
        let installs = |pending: &&Pending| match &pending.body {
            Body::Inline(bytes) if pending.header.operation == Operation::InstallConsumerGroupOwner.code() => {
                matches!(PartitionOperation::decode(bytes),
                    Ok(PartitionOperation::InstallOwner { group: changed, .. }) if changed == *group)
            }
            _ => false,
        };
        self.pending
            .iter()
            .rev()
            .find(installs)
            .map(|pending| pending.header.op.get())
    }

    fn write(&mut self, now: Now, origin: Origin, request: PartitionRequest, storage: &mut dyn Storage) {
        if let Err(reply) = self.recognise(&origin) {
            return self.reply(*reply);
        }
        let admitted = match request {
            PartitionRequest::Send { batch } => self.admit_send(now, &origin, &batch),
            PartitionRequest::StoreOffset { consumer, offset } => self.admit_store(&origin, consumer, offset),
            PartitionRequest::DeleteOffset { consumer } => self.admit_delete(&origin, consumer),
            PartitionRequest::GetOffset { .. } | PartitionRequest::Poll(_) | PartitionRequest::Watch(_) => {
                unreachable!("reads are not written")
            }
        };
        match admitted {
            Ok((body, owner_generation, barrier)) => {
                let operation = origin.header.operation;
                let identity = Identity::of(&origin);
                let refused = Reply::refused(&origin, ErrorCode::TransientNotAccepted);
                let other = Reply::refused(&origin, ErrorCode::NotPrimary);
                let waiter = Waiter::Client(origin);
                let proposed = self.propose(
                    now,
                    identity,
                    operation,
                    owner_generation,
                    body,
                    barrier,
                    waiter,
                    storage,
                );
                match proposed {
                    Ok(()) => {}
                    Err(Refusal::NotPrimary { .. }) => self.reply(other),
                    Err(Refusal::PipelineFull { .. } | Refusal::Fenced) => self.reply(refused),
                }
            }
            Err(code) => self.reply(Reply::refused(&origin, code)),
        }
    }

    /// Answers a request that was seen before. `Err` holds the answer.
    fn recognise(&self, origin: &Origin) -> Result<(), Box<Reply>> {
        let member = origin.member();
        let request = origin.header.request.get();
        let same = |pending: &Pending| {
            pending.header.client.get() == member.client
                && pending.header.session.get() == member.session
                && pending.header.request.get() == request
        };
        // It will be known when the first one commits.
        if self.pending.iter().any(same) {
            return Err(Box::new(Reply::refused(origin, ErrorCode::TransientNotCommitted)));
        }
        match self.state.receipts.find(member, request) {
            Known::New => Ok(()),
            Known::TooOld => Err(Box::new(Reply::refused(origin, ErrorCode::RequestTooOld))),
            // The number belongs to another request: its receipt would say nothing about this one.
            Known::Answered(receipt) if receipt.operation != origin.header.operation => {
                Err(Box::new(Reply::refused(origin, ErrorCode::InvalidCommand)))
            }
            Known::Answered(receipt) => Err(Box::new(self.replay(origin, &receipt))),
        }
    }

    fn admit_send(&self, now: Now, origin: &Origin, batch: &Bytes) -> Result<(Body, u64, Barrier), ErrorCode> {
        let mut header = *BatchHeader::view(batch).map_err(|error| error.code())?;
        let count = header.message_count.get();
        let timestamp = self.log.replica().next_timestamp(now);
        let barrier = Barrier::from(self.settings.durability);
        if origin.header.owner_generation.get() != 0 {
            return Err(ErrorCode::ConsumerGroupPartitionNotOwned);
        }
        if let Some(section) = header.producer() {
            let mut in_flight = self
                .pending
                .iter()
                .filter_map(|pending| batch_header(&pending.body)?.producer());
            if in_flight.any(|other| other.producer_id == section.producer_id) {
                return Err(ErrorCode::TransientNotCommitted);
            }
            if let Verdict::Duplicate { base_offset } = self.state.admit_batch(Some(section), count, timestamp)? {
                let operation = PartitionOperation::DuplicateBatch { base_offset };
                return Ok((Body::Inline(operation.encode().into()), 0, barrier));
            }
        }
        let frames = batch.slice(HEADER_SIZE..);
        let checksums = Frames::new(&frames).map(|frame| frame.checksum());
        stamp_header(
            &mut header,
            self.settings.partition_id,
            self.proposed_offset(),
            timestamp,
            checksums,
        );
        Ok((
            Body::Batch {
                header: Bytes::copy_from_slice(header.as_array()),
                frames,
            },
            0,
            barrier,
        ))
    }

    /// Offset of the next message, counting batches in flight.
    fn proposed_offset(&self) -> u64 {
        let newest = self
            .pending
            .iter()
            .rev()
            .find_map(|pending| batch_header(&pending.body));
        newest.map_or(self.state.next_offset, |header| {
            header.base_offset.get() + u64::from(header.message_count.get())
        })
    }

    fn admit_store(
        &self,
        origin: &Origin,
        consumer: ConsumerKey,
        offset: u64,
    ) -> Result<(Body, u64, Barrier), ErrorCode> {
        let captured = origin.header.owner_generation.get();
        let generation = self.state.bind_owner(&consumer, origin.member(), captured)?;
        self.state.admit_store(&consumer, offset)?;
        let operation = PartitionOperation::StoreOffset { consumer, offset };
        Ok((
            Body::Inline(operation.encode().into()),
            generation,
            self.offset_barrier(),
        ))
    }

    fn admit_delete(&self, origin: &Origin, consumer: ConsumerKey) -> Result<(Body, u64, Barrier), ErrorCode> {
        let captured = origin.header.owner_generation.get();
        let generation = self.state.bind_owner(&consumer, origin.member(), captured)?;
        self.state.admit_delete(&consumer)?;
        let operation = PartitionOperation::DeleteOffset { consumer };
        Ok((
            Body::Inline(operation.encode().into()),
            generation,
            self.offset_barrier(),
        ))
    }

    fn offset_barrier(&self) -> Barrier {
        Barrier::from(self.settings.consumer_offset_durability)
    }

    /// Stores the offset of a read whose reply is ready.
    #[allow(clippy::too_many_arguments)] // As for `propose`, to which they go.
    pub(super) fn propose_read_offset(
        &mut self,
        now: Now,
        origin: &Origin,
        consumer: ConsumerKey,
        offset: u64,
        generation: u64,
        reply: Reply,
        storage: &mut dyn Storage,
    ) {
        let body = Body::Inline(PartitionOperation::StoreOffset { consumer, offset }.encode().into());
        let refused = Reply::refused(origin, ErrorCode::TransientNotAccepted);
        let barrier = self.offset_barrier();
        // The read is not a numbered write: it has no receipt, and asking again reads on.
        let identity = Identity {
            user_id: origin.user_id,
            ..Identity::NODE
        };
        let waiter = Waiter::Read(Box::new(reply));
        let operation = Operation::StoreConsumerOffset.code();
        if self
            .propose(now, identity, operation, generation, body, barrier, waiter, storage)
            .is_err()
        {
            self.reply(refused);
        }
    }

    /// Writes an operation of the node's own. False when the log has no room for it now.
    pub fn propose_internal(
        &mut self,
        now: Now,
        operation: u8,
        body: &PartitionOperation,
        storage: &mut dyn Storage,
    ) -> bool {
        let body = Body::Inline(body.encode().into());
        let barrier = self.offset_barrier();
        let waiter = Waiter::Nobody;
        self.propose(now, Identity::NODE, operation, 0, body, barrier, waiter, storage)
            .is_ok()
    }

    #[allow(clippy::too_many_arguments)] // The facts of one proposal, from three different callers.
    fn propose(
        &mut self,
        now: Now,
        identity: Identity,
        operation: u8,
        owner_generation: u64,
        body: Body,
        barrier: Barrier,
        waiter: Waiter,
        storage: &mut dyn Storage,
    ) -> Result<(), Refusal> {
        let proposal = Proposal {
            client: identity.client,
            request_checksum: identity.request_checksum,
            session: identity.session,
            request: identity.request,
            user_id: identity.user_id,
            owner_generation,
            operation,
            timestamp: self.log.replica().next_timestamp(now),
            body,
            barrier,
        };
        let mut held = Held {
            segments: &mut self.segments,
            pending: &mut self.pending,
            dropped: &mut self.truncated_waiters,
        };
        let events = self.log.propose(now, proposal, storage, &mut held)?;
        if let Some(newest) = self.pending.back_mut() {
            newest.waiter = waiter;
        }
        self.take_events(now, events, storage);
        Ok(())
    }
}

/// The writes in flight and their places, for the log.
pub(super) struct Held<'a> {
    pub segments: &'a mut Segments,
    pub pending: &'a mut VecDeque<Pending>,
    /// Who waited for writes that are no longer in the log.
    pub dropped: &'a mut Vec<Waiter>,
}

impl Host for Held<'_> {
    fn appended(&mut self, prepare: &Prepare, numbers: &mut FileNumbers) -> Option<Placed> {
        let before = self.segments.mark();
        let placed = place(self.segments, numbers, &prepare.body);
        let end = self.segments.end().map(|(segment, size)| LogPosition { segment, size });
        self.pending.push_back(Pending {
            header: prepare.header.clone(),
            body: prepare.body.clone(),
            before,
            end,
            waiter: Waiter::Nobody,
        });
        placed
    }

    fn truncated(&mut self, op: u64, numbers: &mut FileNumbers) -> (Job, Option<FileId>) {
        let kept = self.pending.partition_point(|pending| pending.header.op.get() <= op);
        let Some(first) = self.pending.get(kept) else {
            return (Job::new(), None);
        };
        let mark = first.before;
        self.dropped
            .extend(self.pending.drain(kept..).map(|pending| pending.waiter));
        self.segments.cut(mark, numbers)
    }
}

/// The stamped header of a batch in flight.
pub(super) fn batch_header(body: &Body) -> Option<&BatchHeader> {
    match body {
        Body::Batch { header, .. } => BatchHeader::view(header).ok(),
        Body::Inline(_) => None,
    }
}

fn place(segments: &mut Segments, numbers: &mut FileNumbers, body: &Body) -> Option<Placed> {
    let Body::Batch { header, frames } = body else {
        return None;
    };
    let stamped = batch_header(body)?;
    let placement = segments.place(stamped, header.clone(), frames.clone(), numbers);
    let sealed = placement
        .sealed
        .map(|sealed| (sealed.file, segments.write_index(sealed, numbers)));
    Some(Placed {
        location: placement.location,
        file: placement.file,
        steps: placement.steps,
        sealed,
    })
}
