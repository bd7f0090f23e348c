//! Polls that wait for messages.

use super::polling::{Served, Start};
use super::{Notice, PartitionGroup};
use crate::request::{Answer, Origin, PartitionRequest, Reply};
use iggy_consensus::Now;
use iggy_protocol::error_code::ErrorCode;
use iggy_storage::Storage;

/// A parked poll, for its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expiry(pub(super) u64);

#[derive(Debug)]
pub(super) struct ParkedPoll {
    pub origin: Origin,
    pub served: Served,
    pub start: Start,
    /// Log bytes when it was parked: a reply can be full before it has `min_count` messages.
    pub log_bytes: u64,
}

impl PartitionGroup {
    /// Polls that wait here.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    pub(super) fn park(&mut self, now: Now, origin: Origin, served: Served, start: Start) {
        let number = self.number();
        let deadline = now.monotonic.saturating_add(served.poll.wait);
        let log_bytes = self.segments.size();
        let counted = (served.poll.answer != Answer::Count).then(|| origin.member());
        self.parked.insert(
            number,
            ParkedPoll {
                origin,
                served,
                start,
                log_bytes,
            },
        );
        self.notices.push(Notice::Parked {
            counted,
            deadline,
            expiry: Expiry(number),
        });
    }

    fn unpark(&mut self, number: u64) -> Option<ParkedPoll> {
        let parked = self.parked.remove(&number)?;
        if parked.served.poll.answer != Answer::Count {
            self.notices.push(Notice::Unparked(parked.origin.member()));
        }
        Some(parked)
    }

    /// Refuses every poll that waits here: nothing of theirs was written.
    pub(super) fn refuse_parked(&mut self) {
        let numbers: Vec<u64> = self.parked.keys().copied().collect();
        for parked in numbers
            .into_iter()
            .filter_map(|number| self.unpark(number))
            .collect::<Vec<_>>()
        {
            self.reply(Reply::refused(&parked.origin, ErrorCode::TransientNotAccepted));
        }
    }

    /// Serves the polls that have enough since messages were appended.
    pub(super) fn wake_parked(&mut self, now: Now, storage: &mut dyn Storage) {
        if self.parked.is_empty() {
            return;
        }
        let log_bytes = self.segments.size();
        let enough = |parked: &ParkedPoll| {
            let readable = self.readable(parked.start);
            let arrived = log_bytes.saturating_sub(parked.log_bytes);
            readable >= u64::from(parked.served.poll.min_count)
                || (readable > 0 && arrived >= u64::from(parked.served.poll.max_bytes))
        };
        let ready: Vec<u64> = self
            .parked
            .iter()
            .filter(|(_, parked)| enough(parked))
            .map(|(number, _)| *number)
            .collect();
        for number in ready {
            self.expire(now, Expiry(number), storage);
        }
    }

    /// Ends the wait of a poll: it is answered with what there is. Does nothing for one that was answered before.
    pub fn expire(&mut self, now: Now, expiry: Expiry, storage: &mut dyn Storage) {
        if let Some(parked) = self.unpark(expiry.0) {
            self.serve(now, parked.origin, parked.served, parked.start, storage);
        }
    }

    /// Ends the wait of the poll a client no longer wants (wire 7.6). It is answered without messages, so that a client
    /// which asked to store the offset learns that nothing was stored. False when no such poll waits here.
    pub fn cancel(&mut self, client: u128, session: u64, request: u64) -> bool {
        self.cancel_where(|origin| {
            let header = &origin.header;
            header.client.get() == client && header.session.get() == session && header.request.get() == request
        })
    }

    /// Ends the waits of a connection that is gone.
    pub fn cancel_connection(&mut self, connection: u32) {
        self.cancel_where(|origin| origin.connection == connection);
    }

    fn cancel_where(&mut self, unwanted: impl Fn(&Origin) -> bool) -> bool {
        let before = self.waiting.len();
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.request {
                // It has not even been bound to an owner.
                PartitionRequest::Poll(poll) if unwanted(&waiting.origin) => {
                    self.answer_empty(&waiting.origin, &Served { poll, generation: 0 });
                }
                _ => self.waiting.push_back(waiting),
            }
        }
        let found: Vec<u64> = self
            .parked
            .iter()
            .filter(|(_, parked)| unwanted(&parked.origin))
            .map(|(number, _)| *number)
            .collect();
        for parked in found
            .iter()
            .filter_map(|number| self.unpark(*number))
            .collect::<Vec<_>>()
        {
            self.answer_empty(&parked.origin, &parked.served);
        }
        !found.is_empty() || self.waiting.len() < before
    }
}
