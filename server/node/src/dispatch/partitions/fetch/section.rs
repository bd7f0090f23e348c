//! One partition of a fetch: what was asked, and its section of the reply.

use super::super::Permitted;
use bytes::Bytes;
use iggy_driver::request::Reply;
use iggy_driver::tally::{Counted, Place};
use iggy_metadata::PartitionKey;
use iggy_protocol::codec::{Decode, Reader};
use iggy_protocol::context::PartitionContext;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_protocol::reply::message::{FetchSection, PollHead};
use iggy_protocol::request::message::FetchTarget;

/// How the read of a partition ended.
#[derive(Debug)]
pub(super) enum ReadEnd {
    /// With an answer.
    Answered(Reply),
    /// It was never begun: its shard had no room.
    NotBegun,
    /// Its shard stopped with the read in hand, or did not answer in time.
    Lost,
}

/// See the module's page.
pub(super) struct Target {
    pub asked: FetchTarget,
    /// The partition, unless it was refused at once.
    pub key: Option<PartitionKey>,
    /// What it has, once counted.
    pub counted: Option<Counted>,
    section: FetchSection,
    records: Vec<Bytes>,
}

impl Target {
    pub(super) fn resolve(asked: &FetchTarget, allowed: &Permitted<'_>) -> Self {
        let found = allowed.partition(asked.partition_id).and_then(|located| {
            let current = located.incarnation == asked.incarnation;
            current.then_some(located.key).ok_or(ErrorCode::HistoryUnavailable)
        });
        Self::new(asked, found)
    }

    fn new(asked: &FetchTarget, found: Result<PartitionKey, ErrorCode>) -> Self {
        let start = match asked.strategy {
            PollingStrategy::Offset(offset) => offset,
            _ => 0,
        };
        Self {
            asked: asked.clone(),
            key: found.ok(),
            counted: None,
            section: FetchSection {
                partition_id: asked.partition_id,
                status: found.err().map_or(0, ErrorCode::code),
                current_offset: 0,
                messages_count: 0,
                context: PartitionContext::default(),
                next_offset: start,
                records_len: 0,
            },
            records: Vec::new(),
        }
    }

    /// Context of the requests to the partition.
    pub(super) fn context(&self) -> PartitionContext {
        PartitionContext {
            incarnation: self.asked.incarnation,
            owner_generation: self.asked.owner_generation,
            metadata_op: 0,
        }
    }

    /// Takes what was counted.
    pub(super) fn take_count(&mut self, place: Place) {
        match place {
            Place::Open => {}
            Place::Refused(code) => self.section.status = code.code(),
            Place::Counted(counted) => {
                self.section.current_offset = counted.current_offset;
                self.section.context = counted.context;
                self.section.next_offset = counted.start;
                self.counted = Some(counted);
            }
        }
    }

    /// Takes what was read. A read that may have stored an offset and was lost leaves that unknown; anything else that was
    /// lost may be asked for again.
    pub(super) fn take_read(&mut self, end: ReadEnd, commits: bool) {
        let reply = match end {
            ReadEnd::Answered(reply) => reply,
            ReadEnd::Lost if commits => return self.refuse(ErrorCode::TransientNotCommitted),
            ReadEnd::NotBegun | ReadEnd::Lost => return self.refuse(ErrorCode::TransientNotAccepted),
        };
        self.section.status = reply.header.status.get();
        let head = reply
            .body
            .first()
            .and_then(|body| PollHead::decode(&mut Reader::new(body)).ok());
        let Some(head) = head.filter(|_| self.section.status == 0) else {
            return;
        };
        self.section.current_offset = head.current_offset;
        self.section.context = head.context;
        self.section.next_offset = reply.next_offset.unwrap_or(self.section.next_offset);
        self.section.messages_count = head.messages_count;
        self.records = reply.body.into_iter().skip(1).collect();
        self.section.records_len = self.records.iter().map(|piece| piece.len() as u32).sum();
    }

    fn refuse(&mut self, code: ErrorCode) {
        self.section.status = code.code();
    }

    /// Messages and bytes that were read.
    pub(super) fn read(&self) -> (u32, u32) {
        (self.section.messages_count, self.section.records_len)
    }

    /// Its section and records; nothing for one that was never counted, which keeps its position.
    pub(super) fn into_section(self) -> Option<(FetchSection, Vec<Bytes>)> {
        let known = self.section.status != 0 || self.counted.is_some();
        known.then_some((self.section, self.records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iggy_driver::request::{Origin, Ticket};
    use iggy_protocol::header::RequestHeader;
    use iggy_protocol::operation::Operation;

    fn target() -> Target {
        let asked = FetchTarget {
            partition_id: 3,
            strategy: PollingStrategy::Offset(10),
            max_bytes: 1_000,
            incarnation: 5,
            owner_generation: 0,
        };
        let key = PartitionKey {
            stream_id: 1,
            topic_id: 1,
            partition_id: 3,
            incarnation: 5,
        };
        let mut target = Target::new(&asked, Ok(key));
        target.take_count(Place::Counted(Counted {
            start: 10,
            messages: 4,
            ..Counted::default()
        }));
        target
    }

    fn status_after(end: ReadEnd, commits: bool) -> u32 {
        let mut target = target();
        target.take_read(end, commits);
        let (section, records) = target.into_section().expect("a section");
        assert_eq!((section.messages_count, records.len()), (0, 0));
        section.status
    }

    #[test]
    fn given_a_committing_read_when_its_shard_stops_should_leave_its_outcome_unknown() {
        assert_eq!(
            status_after(ReadEnd::Lost, true),
            ErrorCode::TransientNotCommitted.code()
        );
    }

    #[test]
    fn given_a_read_that_stored_nothing_when_lost_should_be_retryable() {
        let retryable = ErrorCode::TransientNotAccepted.code();
        assert_eq!(status_after(ReadEnd::Lost, false), retryable);
        assert_eq!(status_after(ReadEnd::NotBegun, false), retryable);
        assert_eq!(status_after(ReadEnd::NotBegun, true), retryable);
    }

    #[test]
    fn given_a_refused_read_when_taken_should_name_its_code_and_keep_the_position() {
        let origin = Origin {
            ticket: Ticket(1),
            header: Box::new(RequestHeader::new(Operation::NonReplicated, 0)),
            user_id: 0,
            connection: 0,
        };
        let mut target = target();
        let refusal = Reply::refused(&origin, ErrorCode::ConsumerGroupPartitionNotOwned);
        target.take_read(ReadEnd::Answered(refusal), true);
        let (section, _) = target.into_section().expect("a section");
        assert_eq!(section.status, ErrorCode::ConsumerGroupPartitionNotOwned.code());
        assert_eq!(section.next_offset, 10);
    }

    #[test]
    fn given_a_partition_that_was_never_counted_when_answered_should_have_no_section() {
        let mut target = target();
        target.counted = None;
        assert!(target.into_section().is_none());
    }
}
