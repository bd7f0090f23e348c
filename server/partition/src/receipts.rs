//! Retry receipts: what a partition answered to the newest requests of each session (wire 4.9).
//!
//! A request that comes again with the same number gets its first result and is not applied again (C2). Where the result
//! is no longer kept, what is left is a fence: the number up to which the session was answered.

use crate::operation::Member;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Receipts kept of one session.
pub const RECEIPTS_PER_SESSION: usize = 16;
/// Sessions whose receipts are kept. Beyond it the session that has been silent longest keeps only its fence.
pub const SESSIONS_MAX: usize = 4096;
/// Sessions of which only the fence is kept: as many as a cluster can have at once. Those that end are forgotten.
pub const FENCES_MAX: usize = 65_536;

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
    /// Session and newest request of clients whose receipts had to go.
    #[serde(default)]
    fences: BTreeMap<u128, (u64, u64)>,
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
            let fence = self.fences.get(&member.client);
            let fenced = fence.is_some_and(|(session, newest)| *session == member.session && request <= *newest);
            return if fenced { Known::TooOld } else { Known::New };
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
        // Numbers ascend: what comes now is above the fence.
        self.fences.remove(&member.client);
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
        self.sessions.is_empty() && self.fences.is_empty()
    }

    /// Whether receipts of this session are kept.
    pub fn knows(&self, member: Member) -> bool {
        let session = self.sessions.get(&member.client).map(|kept| kept.session);
        let session = session.or_else(|| self.fences.get(&member.client).map(|(session, _)| *session));
        session == Some(member.session)
    }

    /// Forgets a session that has ended.
    pub fn retire(&mut self, member: Member) {
        if self.knows(member) {
            self.sessions.remove(&member.client);
            self.fences.remove(&member.client);
        }
    }

    fn forget_quietest(&mut self) {
        let last_op = |kept: &SessionReceipts| kept.newest.back().map_or(0, |receipt| receipt.op);
        let quietest = self
            .sessions
            .iter()
            .min_by_key(|(_, kept)| last_op(kept))
            .map(|(client, _)| *client);
        let Some((client, kept)) = quietest.and_then(|client| self.sessions.remove_entry(&client)) else {
            return;
        };
        let newest = kept.newest.back().map_or(0, |receipt| receipt.request);
        self.fences.insert(client, (kept.session, newest));
        if self.fences.len() > FENCES_MAX {
            let oldest = self.fences.iter().min_by_key(|(_, (session, _))| *session);
            if let Some(client) = oldest.map(|(client, _)| *client) {
                self.fences.remove(&client);
            }
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
    fn given_too_many_sessions_when_another_comes_should_keep_the_fence_of_the_quietest_alone() {
        let receipts = crowded();
        assert_eq!(
            receipts.find(QUIETEST, 1),
            Known::TooOld,
            "it must not be applied again"
        );
        assert_eq!(receipts.find(QUIETEST, 2), Known::New);
        assert_eq!(receipts.find(Member { session: 2, ..QUIETEST }, 1), Known::New);
        assert_eq!(
            receipts.find(Member { client: 1, session: 1 }, 2),
            Known::Answered(receipt(2))
        );
    }

    #[test]
    fn given_a_request_in_flight_when_the_receipts_of_its_session_had_to_go_should_raise_the_fence() {
        let mut receipts = crowded();
        let newest = Receipt {
            op: SESSIONS_MAX as u64 + 2,
            ..receipt(2)
        };
        receipts.record(QUIETEST, newest);
        assert_eq!(receipts.find(QUIETEST, 1), Known::TooOld);
        assert_eq!(receipts.find(QUIETEST, 2), Known::Answered(newest));
        assert_eq!(receipts.fences.len(), 1, "another one had to go for it");
    }

    #[test]
    fn given_a_fenced_session_when_it_ends_should_be_forgotten() {
        let mut receipts = crowded();
        assert!(receipts.knows(QUIETEST));
        receipts.retire(QUIETEST);
        assert!(!receipts.knows(QUIETEST));
        assert_eq!(receipts.find(QUIETEST, 1), Known::New);
    }

    const QUIETEST: Member = Member { client: 0, session: 1 };

    /// One session more than there is room for.
    fn crowded() -> Receipts {
        let mut receipts = Receipts::default();
        for client in 0..=SESSIONS_MAX as u64 {
            let member = Member {
                client: u128::from(client),
                session: 1,
            };
            receipts.record(member, receipt(client + 1));
        }
        receipts
    }
}
