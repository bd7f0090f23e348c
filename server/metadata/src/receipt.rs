//! Results of metadata writes, kept per session so that a resend gets the first answer (wire 4.9).
//!
//! A request that was applied is never applied again: not when its resend is admitted after the commit (the primary asks
//! here first), and not when both copies are in the log at once (applying asks here too). What may be lost is the
//! answer's payload, never the knowledge that the request was applied, as long as its number is inside the window.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use iggy_protocol::result_section::{put_success, rejection};
use iggy_protocol::{Committed, ErrorCode};
use serde::{Deserialize, Serialize};

use crate::limits::{RECEIPT_BYTES_PER_SESSION_MAX, RECEIPTS_PER_SESSION_MAX};
use crate::position::{Position, RequestKey};

/// What came of a committed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Applied. The typed payload of the reply, without the result section (wire 3.3).
    Done(Bytes),
    /// Refused by a rule at its place in the log; final, and the request number is spent.
    Refused(#[serde(with = "error_code_number")] ErrorCode),
    /// A session was registered under the position of the entry. The node adds its own version to the reply (wire 4.3).
    Registered {
        /// The user the session acts for.
        user_id: u32,
    },
    /// A personal access token was created. The log never sees the token: the node that made it appends it to the reply.
    TokenCreated,
}

impl Outcome {
    /// Shorthand for an applied request without a payload.
    pub const EMPTY: Self = Self::Done(Bytes::new());

    fn payload_len(&self) -> usize {
        match self {
            Self::Done(payload) => payload.len(),
            Self::Refused(_) | Self::Registered { .. } | Self::TokenCreated => 0,
        }
    }
}

/// A committed answer with everything its reply header repeats (wire 2.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Request it answers, its original identity included.
    pub request: RequestKey,
    /// Where the request was committed.
    pub at: Position,
    /// What came of it.
    pub outcome: Outcome,
}

impl Receipt {
    /// The receipt as a resend sees it: a created token cannot be shown twice, so its replay is a refusal (wire 3.3).
    #[must_use]
    pub fn replayed(&self) -> Self {
        let mut receipt = self.clone();
        if receipt.outcome == Outcome::TokenCreated {
            receipt.outcome = Outcome::Refused(ErrorCode::PersonalAccessTokenAlreadyExists);
        }
        receipt
    }

    /// What the header of the committed reply repeats (wire 2.3).
    pub fn committed(&self, cluster: u128) -> Committed {
        Committed {
            cluster,
            view: self.at.view,
            replica: self.at.replica,
            request_checksum: self.request.request_checksum,
            client: self.request.client,
            op: self.at.op,
            timestamp: self.at.timestamp,
            request: self.request.request,
            operation: self.request.operation,
            partition_incarnation: 0,
        }
    }

    /// Body of the committed reply: result section and payload (wire 3.3).
    ///
    /// `completion` is what the node adds to a registration (the login reply, wire 4.3) or a created token (the token as
    /// a name), and is ignored otherwise. An operation without a result section cannot carry a refusal: that is
    /// returned as `Err` and answered as a status.
    pub fn body(&self, completion: &[u8]) -> Result<Bytes, ErrorCode> {
        let is_framed = self.request.operation.is_result_framed();
        let payload = match &self.outcome {
            Outcome::Refused(code) if is_framed => return Ok(Bytes::copy_from_slice(&rejection(*code))),
            Outcome::Refused(code) => return Err(*code),
            Outcome::Done(payload) => payload.as_ref(),
            Outcome::Registered { .. } | Outcome::TokenCreated => completion,
        };
        let mut body = BytesMut::with_capacity(payload.len() + 4);
        if is_framed {
            put_success(&mut body);
        }
        body.extend_from_slice(payload);
        Ok(body.freeze())
    }
}

/// What the window knows about a request number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognition {
    /// Above everything seen: a new request.
    New,
    /// Applied before; this is its answer.
    Replay(Receipt),
    /// Applied before, but its payload gave way: answered with `RequestAlreadyApplied` (59).
    Applied,
    /// Below the window or skipped by it: answered with `RequestTooOld` (85).
    TooOld,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    receipt: Receipt,
    /// The payload gave way to the bound on bytes.
    is_dropped: bool,
}

/// The receipts of one session, by ascending request number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptWindow {
    kept: VecDeque<Kept>,
    newest: u64,
}

impl ReceiptWindow {
    /// Says whether a request number is new to the session.
    ///
    /// Numbers are shared by all planes, so gaps are normal; but metadata writes of one session ascend (wire 14.4), so a
    /// number below the newest that is not here is a straggler of an abandoned request and must not be applied late.
    pub fn recognise(&self, request: u64) -> Recognition {
        if request > self.newest {
            return Recognition::New;
        }
        match self.kept.iter().find(|kept| kept.receipt.request.request == request) {
            Some(kept) if kept.is_dropped => Recognition::Applied,
            Some(kept) => Recognition::Replay(kept.receipt.replayed()),
            None => Recognition::TooOld,
        }
    }

    /// Keeps the answer of a request that [`recognise`](Self::recognise) called new.
    pub fn keep(&mut self, receipt: Receipt) {
        debug_assert!(
            receipt.request.request > self.newest,
            "receipts ascend within a session"
        );
        self.newest = receipt.request.request;
        self.kept.push_back(Kept {
            receipt,
            is_dropped: false,
        });
        while self.kept.len() > RECEIPTS_PER_SESSION_MAX {
            self.kept.pop_front();
        }
        let mut bytes: usize = self.kept.iter().map(|kept| kept.receipt.outcome.payload_len()).sum();
        for kept in &mut self.kept {
            if bytes <= RECEIPT_BYTES_PER_SESSION_MAX {
                break;
            }
            let freed = kept.receipt.outcome.payload_len();
            if freed > 0 {
                kept.receipt.outcome = Outcome::EMPTY;
                kept.is_dropped = true;
                bytes -= freed;
            }
        }
    }

    /// Number of receipts kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether no receipt is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// Error codes travel and rest as their number.
mod error_code_number {
    use iggy_protocol::ErrorCode;
    use serde::{Deserialize, Deserializer, Serializer};

    // The signature is serde's.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn serialize<S: Serializer>(code: &ErrorCode, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(*code as u32)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ErrorCode, D::Error> {
        u32::deserialize(deserializer).map(ErrorCode::from_u32)
    }
}

#[cfg(test)]
mod tests {
    use iggy_protocol::Operation;

    use super::*;

    fn receipt(request: u64, outcome: Outcome) -> Receipt {
        Receipt {
            request: RequestKey {
                client: 1,
                session: 1,
                request,
                ..RequestKey::INTERNAL
            },
            at: Position {
                op: request,
                ..Position::default()
            },
            outcome,
        }
    }

    #[test]
    fn given_a_kept_request_when_resent_should_return_its_first_answer() {
        let mut window = ReceiptWindow::default();
        let first = receipt(5, Outcome::Done(Bytes::from_static(b"answer")));
        window.keep(first.clone());
        assert_eq!(window.recognise(5), Recognition::Replay(first));
        assert_eq!(window.recognise(6), Recognition::New);
    }

    #[test]
    fn given_a_number_skipped_by_later_ones_when_it_arrives_should_be_too_old() {
        let mut window = ReceiptWindow::default();
        window.keep(receipt(5, Outcome::EMPTY));
        window.keep(receipt(9, Outcome::EMPTY));
        assert_eq!(window.recognise(7), Recognition::TooOld);
    }

    #[test]
    fn given_more_requests_than_the_window_when_the_first_is_resent_should_be_too_old() {
        let mut window = ReceiptWindow::default();
        for request in 1..=RECEIPTS_PER_SESSION_MAX as u64 + 1 {
            window.keep(receipt(request, Outcome::EMPTY));
        }
        assert_eq!(window.recognise(1), Recognition::TooOld);
        assert!(matches!(window.recognise(2), Recognition::Replay(_)));
    }

    #[test]
    fn given_payloads_above_the_bound_when_resent_should_say_applied_without_the_answer() {
        let mut window = ReceiptWindow::default();
        let half = Bytes::from(vec![0u8; RECEIPT_BYTES_PER_SESSION_MAX / 2 + 1]);
        window.keep(receipt(1, Outcome::Done(half.clone())));
        window.keep(receipt(2, Outcome::Refused(ErrorCode::Unauthorized)));
        window.keep(receipt(3, Outcome::Done(half)));
        assert_eq!(window.recognise(1), Recognition::Applied);
        assert!(matches!(window.recognise(2), Recognition::Replay(_)));
        assert!(matches!(window.recognise(3), Recognition::Replay(_)));
    }

    #[test]
    fn given_an_outcome_when_answered_should_have_the_result_section_of_its_operation() {
        let answer = |operation, outcome| {
            let mut receipt = receipt(1, outcome);
            receipt.request.operation = operation;
            receipt.body(b"completion")
        };
        let body = |bytes: &'static [u8]| Ok(Bytes::from_static(bytes));
        let done = Outcome::Done(Bytes::from_static(b"payload"));
        assert_eq!(answer(Operation::CreateStream, done), body(b"\0\0\0\0payload"));
        assert_eq!(answer(Operation::Logout, Outcome::EMPTY), body(b""));
        assert_eq!(
            answer(Operation::Register, Outcome::Registered { user_id: 1 }),
            body(b"\0\0\0\0completion")
        );
        assert_eq!(
            answer(Operation::CreatePersonalAccessToken, Outcome::TokenCreated),
            body(b"\0\0\0\0completion")
        );
        let refused = Outcome::Refused(ErrorCode::StreamNameAlreadyExists);
        assert_eq!(
            answer(Operation::CreateStream, refused),
            body(b"\x01\0\0\0\0\0\0\0\xf4\x03\0\0")
        );
        let refused = Outcome::Refused(ErrorCode::Unauthenticated);
        assert_eq!(answer(Operation::Logout, refused), Err(ErrorCode::Unauthenticated));
    }

    #[test]
    fn given_a_created_token_when_resent_should_be_refused_as_existing() {
        let mut window = ReceiptWindow::default();
        window.keep(receipt(1, Outcome::TokenCreated));
        let Recognition::Replay(replay) = window.recognise(1) else {
            panic!("a kept receipt is replayed")
        };
        assert_eq!(
            replay.outcome,
            Outcome::Refused(ErrorCode::PersonalAccessTokenAlreadyExists)
        );
    }
}
