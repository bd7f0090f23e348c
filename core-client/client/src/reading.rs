//! Reads what came back: status, committed byte, result section, or the reason a link was lost (wire 3.3).

use bytes::Bytes;
use iggy_protocol::{ErrorCode, EvictionReason, Operation, RequestHeader, ResultSection};

use crate::answer::Answer;
use crate::connection::{CloseReason, Reply};
use crate::core::Link;
use crate::error::IggyError;

/// What a link that was lost after the frame was written says about it.
pub fn lost_answer(reason: &CloseReason) -> Answer {
    match reason {
        CloseReason::Evicted(header) => match header.reason() {
            // The session or the link is over; the next bind decides which.
            None
            | Some(
                EvictionReason::NoSession
                | EvictionReason::SessionTooLow
                | EvictionReason::SessionReleaseMismatch
                | EvictionReason::UserInactive
                | EvictionReason::SessionError
                | EvictionReason::StaleClient,
            ) => Answer::LostAfterSend,
            Some(_) => Answer::Refused {
                code: header.error(),
                proven: false,
            },
        },
        CloseReason::Lost(_) | CloseReason::Closed(_) => Answer::LostAfterSend,
    }
}

/// The error an answer becomes when it ends the call.
pub fn answer_error(answer: Answer, link: &Link) -> IggyError {
    match answer {
        Answer::Refused { code, .. } => IggyError::new(code, format!("{} refused the call", link.endpoint)),
        Answer::LostBeforeSend | Answer::LostAfterSend => IggyError::new(
            ErrorCode::Disconnected,
            format!("the link to {} was lost", link.endpoint),
        ),
        Answer::Success { .. } => IggyError::new(
            ErrorCode::TransientNotCommitted,
            "the server's success carries no proof",
        ),
    }
}

/// Reads status, committed byte and result section (wire 3.3).
pub fn classify(request: &RequestHeader, reply: &Reply) -> (Answer, Option<Bytes>) {
    let refused = |code: u32, proven| {
        let code = ErrorCode::from_u32(code);
        // These are never the committed answer, whatever the byte says.
        let transient = matches!(
            code,
            ErrorCode::TransientNotCommitted
                | ErrorCode::TransientNotAccepted
                | ErrorCode::NotPrimary
                | ErrorCode::DeferredPollCapacityExceeded
        );
        (
            Answer::Refused {
                code,
                proven: proven && !transient,
            },
            None,
        )
    };
    let malformed = (
        Answer::Refused {
            code: ErrorCode::InvalidCommand,
            proven: false,
        },
        None,
    );
    match reply.header.status.get() {
        0 => {}
        code => return refused(code, false),
    }
    let proven = reply.header.proves_commit_of(request);
    if reply.header.committed == 1 && !proven {
        return malformed;
    }
    let framed = reply.header.operation().is_some_and(Operation::is_result_framed);
    if !framed {
        return (Answer::Success { proven }, Some(reply.body.clone()));
    }
    match ResultSection::decode(&reply.body) {
        Ok(ResultSection::Success(payload)) => (Answer::Success { proven }, Some(reply.body.slice_ref(payload))),
        Ok(ResultSection::Rejected(code)) => refused(code, proven),
        Err(_) => malformed,
    }
}
