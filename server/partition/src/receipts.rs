//! Retry receipts: what a partition answered to the newest requests of each session (wire 4.9).
//!
//! A request that comes again with the same number gets its first result and is not applied again.

use crate::operation::Member;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Receipts kept of one session.
pub const RECEIPTS_PER_SESSION: usize = 16;
/// Sessions whose receipts are kept. Beyond it the session that has been silent longest is forgotten.
pub const SESSIONS_MAX: usize = 4096;

/// What a committed request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Messages are in the log from this offset on.
    Sent {
        /// Offset of the first message.
        base_offset: u64,
    },
    /// Done; there is nothing to say about it.
    Done,
    /// Refused by the log itself, with this error code.
    Rejected(u32),
}

/// One answered request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Request number.
    pub request: u64,
    /// Position in the partition's log.
    pub op: u64,
    /// Time of the commit in microseconds since the epoch.
    pub timestamp: u64,
    /// View in which it was prepared.
    pub view: u32,
    /// Primary that prepared it.
    pub replica: u8,
    /// Operation byte.
    pub operation: u8,
    /// Identity of the request (wire 4.6).
    pub request_checksum: u128,
    /// What it did.
    pub outcome: Outcome,
}

/// What is known of a request number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Not seen: a new request.
    New,
    /// Answered before.
    Answered(Receipt),
    /// Below what is kept: whether it was applied can no longer be said.
    TooOld,
}

/// The receipts of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    sessions: BTreeMap<u128, SessionReceipts>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SessionReceipts {
    session: u64,
    newest: VecDeque<Receipt>,
}

impl Receipts {
    /// Looks a request up.
    pub fn find(&self, member: Member, request: u64) -> Known {
        let Some(kept) = self
            .sessions
            .get(&member.client)
            .filter(|kept| kept.session == member.session)
        else {
            return Known::New;
        };
        if let Some(receipt) = kept.newest.iter().find(|receipt| receipt.request == request) {
            return Known::Answered(*receipt);
        }
        // New numbers of one session and partition ascend: a lower one was answered and its receipt is gone.
        match kept.newest.back() {
            Some(last) if request <= last.request => Known::TooOld,
            _ => Known::New,
        }
    }

    /// Remembers an answer.
    pub fn record(&mut self, member: Member, receipt: Receipt) {
        let kept = self.sessions.entry(member.client);
        let kept = kept.or_insert_with(|| SessionReceipts {
            session: member.session,
            newest: VecDeque::new(),
        });
        if kept.session != member.session {
            *kept = SessionReceipts {
                session: member.session,
                newest: VecDeque::new(),
            };
        }
        if kept.newest.len() == RECEIPTS_PER_SESSION {
            kept.newest.pop_front();
        }
        kept.newest.push_back(receipt);
        if self.sessions.len() > SESSIONS_MAX {
            self.forget_quietest();
        }
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether receipts of this session are kept.
    pub fn knows(&self, member: Member) -> bool {
        self.sessions
            .get(&member.client)
            .is_some_and(|kept| kept.session == member.session)
    }

    /// Forgets a session that has ended.
    pub fn retire(&mut self, member: Member) {
        if self
            .sessions
            .get(&member.client)
            .is_some_and(|kept| kept.session == member.session)
        {
            self.sessions.remove(&member.client);
        }
    }

    fn forget_quietest(&mut self) {
        let last_op = |kept: &SessionReceipts| kept.newest.back().map_or(0, |receipt| receipt.op);
        let quietest = self
            .sessions
            .iter()
            .min_by_key(|(_, kept)| last_op(kept))
            .map(|(client, _)| *client);
        if let Some(client) = quietest {
            self.sessions.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(request: u64) -> Receipt {
        Receipt {
            request,
            op: request,
            timestamp: 1,
            view: 0,
            replica: 0,
            operation: 160,
            request_checksum: 0,
            outcome: Outcome::Sent { base_offset: request },
        }
    }

    const MEMBER: Member = Member { client: 5, session: 9 };

    #[test]
    fn given_answered_requests_when_asked_again_should_give_the_first_answer() {
        let mut receipts = Receipts::default();
        receipts.record(MEMBER, receipt(3));
        assert_eq!(receipts.find(MEMBER, 3), Known::Answered(receipt(3)));
        assert_eq!(receipts.find(MEMBER, 4), Known::New);
        assert_eq!(receipts.find(Member { session: 10, ..MEMBER }, 3), Known::New);
    }

    #[test]
    fn given_more_requests_than_are_kept_when_an_old_one_comes_again_should_say_too_old() {
        let mut receipts = Receipts::default();
        for request in 1..=20 {
            receipts.record(MEMBER, receipt(request));
        }
        assert_eq!(receipts.find(MEMBER, 4), Known::TooOld);
        assert_eq!(receipts.find(MEMBER, 5), Known::Answered(receipt(5)));
    }

    #[test]
    fn given_too_many_sessions_when_another_comes_should_forget_the_quietest() {
        let mut receipts = Receipts::default();
        for client in 0..=SESSIONS_MAX as u64 {
            receipts.record(
                Member {
                    client: u128::from(client),
                    session: 1,
                },
                receipt(client + 1),
            );
        }
        assert_eq!(receipts.find(Member { client: 0, session: 1 }, 1), Known::New);
        assert_eq!(
            receipts.find(Member { client: 1, session: 1 }, 2),
            Known::Answered(receipt(2))
        );
    }
}
