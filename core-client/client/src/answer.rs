//! What a call does about an answer: the table of wire 14.2 as one function, apart from everything that carries it out.

use iggy_protocol::ErrorCode;

/// What kind of work a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A write: applied at most once.
    Mutation,
    /// A read: may be asked again.
    Read,
    /// A read that stores an offset as part of it.
    CommittingRead,
}

/// What came back, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Success. `proven` when the reply proves that exactly this request was committed.
    Success {
        /// Whether it proves the commit.
        proven: bool,
    },
    /// A refusal. `proven` when it is the committed, final answer.
    Refused {
        /// The code.
        code: ErrorCode,
        /// Whether it proves the commit.
        proven: bool,
    },
    /// The link broke before the frame was written.
    LostBeforeSend,
    /// The link broke after the frame was written.
    LostAfterSend,
}

/// What the call knows besides the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// An earlier attempt may have been applied.
    pub uncertain: bool,
    /// The answering node is the metadata primary.
    pub from_metadata_primary: bool,
    /// The attempt before this one was refused with the same [`ErrorCode::NotPrimary`].
    pub refused_as_primary_before: bool,
    /// The caller brought the partition context along.
    pub caller_context: bool,
    /// The call was already begun anew under a fresh route.
    pub restarted: bool,
    /// It is a send.
    pub is_send: bool,
    /// It reads the `next` messages without committing: what a lost reply moved is unknown.
    pub is_next_poll: bool,
    /// It is a grouped fetch, which its caller regroups.
    pub is_fetch: bool,
}

/// What to look up before the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// Nothing.
    Nothing,
    /// The route of the partition, or the roster for other calls.
    Route,
}

/// What a call does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The answer is the result.
    Accept,
    /// The refusal is the result; if an earlier attempt is uncertain, the whole call is.
    Fail,
    /// As [`Action::Fail`], and the route is known to be wrong.
    FailAndDropRoute,
    /// The refusal settles even an uncertain call.
    FailFinally,
    /// Whether an offset was stored is unknown.
    FailProgressUncertain,
    /// A read whose effect on the reading position is unknown fails as not committed.
    FailNotCommitted,
    /// The identical frame is sent again.
    Resend {
        /// Whether to pause first.
        pause: bool,
        /// What to look up first.
        refresh: Refresh,
        /// Whether this attempt may have been applied.
        uncertain: bool,
        /// Whether the link must be closed and bound anew first.
        rebind: bool,
    },
    /// The call begins anew under a new number, after a doubling pause.
    Renumber,
    /// The route is dropped and the call begins anew under a fresh one.
    Restart,
}

/// Codes of a whole request that prove that a committing read stored nothing.
const STORED_NOTHING: &[ErrorCode] = &[
    ErrorCode::FeatureUnavailable,
    ErrorCode::InvalidIdentifier,
    ErrorCode::TransientNotAccepted,
    ErrorCode::HistoryUnavailable,
    ErrorCode::NotPrimary,
    ErrorCode::DeferredPollCapacityExceeded,
    ErrorCode::InvalidSizeBytes,
    ErrorCode::StreamIdNotFound,
    ErrorCode::StreamNameNotFound,
    ErrorCode::TopicIdNotFound,
    ErrorCode::TopicNameNotFound,
    ErrorCode::PartitionNotFound,
    ErrorCode::InvalidOffset,
    ErrorCode::ConsumerGroupPartitionNotOwned,
    ErrorCode::TooManyConsumerOffsets,
];

const fn resend(refresh: Refresh) -> Action {
    Action::Resend {
        pause: true,
        refresh,
        uncertain: false,
        rebind: false,
    }
}

/// The table of wire 14.2.
pub fn decide(kind: CallKind, answer: Answer, facts: Facts) -> Action {
    match answer {
        // A success without proof says nothing about an attempt whose outcome is unknown.
        Answer::Success { proven: false } if kind == CallKind::Mutation && facts.uncertain => Action::Resend {
            pause: true,
            refresh: Refresh::Route,
            uncertain: true,
            rebind: false,
        },
        Answer::Success { .. } => Action::Accept,
        Answer::LostBeforeSend => resend(Refresh::Route),
        Answer::LostAfterSend => lost_after_send(kind, facts),
        Answer::Refused { code, proven } => refused(kind, code, proven, facts),
    }
}

fn lost_after_send(kind: CallKind, facts: Facts) -> Action {
    match kind {
        CallKind::Mutation => Action::Resend {
            pause: true,
            refresh: Refresh::Route,
            uncertain: true,
            rebind: false,
        },
        CallKind::Read if facts.is_next_poll => Action::FailNotCommitted,
        CallKind::Read => resend(Refresh::Route),
        CallKind::CommittingRead => Action::FailProgressUncertain,
    }
}

fn refused(kind: CallKind, code: ErrorCode, proven: bool, facts: Facts) -> Action {
    use ErrorCode as C;
    match code {
        C::TransientNotCommitted if kind == CallKind::CommittingRead => Action::FailProgressUncertain,
        C::TransientNotCommitted => Action::Resend {
            pause: true,
            refresh: Refresh::Route,
            uncertain: kind == CallKind::Mutation,
            rebind: false,
        },
        C::TransientNotAccepted => resend(Refresh::Route),
        C::NotPrimary if facts.is_fetch => Action::FailAndDropRoute,
        C::NotPrimary => Action::Resend {
            pause: facts.refused_as_primary_before,
            refresh: Refresh::Route,
            uncertain: false,
            rebind: false,
        },
        C::DeferredPollCapacityExceeded => resend(Refresh::Nothing),
        C::LifecycleBusy if kind == CallKind::Mutation && !facts.uncertain => Action::Renumber,
        C::HistoryUnavailable => {
            // Without a position of the caller's own there is nothing that belongs to the old history.
            let bound_to_history = facts.caller_context || !(facts.is_send || kind == CallKind::Read);
            if bound_to_history || facts.restarted || facts.uncertain {
                Action::FailAndDropRoute
            } else {
                Action::Restart
            }
        }
        C::ConsumerGroupPartitionNotOwned => Action::FailAndDropRoute,
        C::StreamIdNotFound
        | C::StreamNameNotFound
        | C::TopicIdNotFound
        | C::TopicNameNotFound
        | C::PartitionNotFound
            if !facts.from_metadata_primary && !proven =>
        {
            resend(Refresh::Route)
        }
        C::Unauthenticated | C::StaleClient => match kind {
            CallKind::CommittingRead => Action::FailProgressUncertain,
            CallKind::Mutation | CallKind::Read => Action::Resend {
                pause: true,
                refresh: Refresh::Route,
                uncertain: false,
                rebind: true,
            },
        },
        C::RequestAlreadyApplied | C::RequestTooOld => Action::FailFinally,
        _ if proven => Action::FailFinally,
        code if kind == CallKind::CommittingRead && !STORED_NOTHING.contains(&code) => Action::FailProgressUncertain,
        _ => Action::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CallKind::{CommittingRead, Mutation, Read};
    use ErrorCode as C;

    fn refusal(code: ErrorCode) -> Answer {
        Answer::Refused { code, proven: false }
    }

    fn resending(action: Action) -> bool {
        matches!(action, Action::Resend { .. })
    }

    #[test]
    fn given_the_rows_of_the_protocol_when_decided_should_follow_them() {
        let none = Facts::default();
        let uncertain = Facts {
            uncertain: true,
            ..none
        };
        let primary = Facts {
            from_metadata_primary: true,
            ..none
        };
        let unsure_resend = Action::Resend {
            pause: true,
            refresh: Refresh::Route,
            uncertain: true,
            rebind: false,
        };
        let rows = [
            (Mutation, refusal(C::TransientNotCommitted), none, unsure_resend),
            (Read, refusal(C::TransientNotCommitted), none, resend(Refresh::Route)),
            (
                CommittingRead,
                refusal(C::TransientNotCommitted),
                none,
                Action::FailProgressUncertain,
            ),
            (Mutation, refusal(C::TransientNotAccepted), none, resend(Refresh::Route)),
            (
                CommittingRead,
                refusal(C::TransientNotAccepted),
                none,
                resend(Refresh::Route),
            ),
            (
                Read,
                refusal(C::DeferredPollCapacityExceeded),
                none,
                resend(Refresh::Nothing),
            ),
            (Mutation, refusal(C::LifecycleBusy), none, Action::Renumber),
            (Mutation, Answer::LostBeforeSend, none, resend(Refresh::Route)),
            (Mutation, Answer::LostAfterSend, none, unsure_resend),
            (Read, Answer::LostAfterSend, none, resend(Refresh::Route)),
            (
                CommittingRead,
                Answer::LostAfterSend,
                none,
                Action::FailProgressUncertain,
            ),
            (
                Read,
                Answer::LostAfterSend,
                Facts {
                    is_next_poll: true,
                    ..none
                },
                Action::FailNotCommitted,
            ),
            (
                Mutation,
                refusal(C::HistoryUnavailable),
                Facts { is_send: true, ..none },
                Action::Restart,
            ),
            (
                Mutation,
                refusal(C::HistoryUnavailable),
                Facts {
                    is_send: true,
                    restarted: true,
                    ..none
                },
                Action::FailAndDropRoute,
            ),
            (
                Mutation,
                refusal(C::HistoryUnavailable),
                Facts {
                    is_send: true,
                    caller_context: true,
                    ..none
                },
                Action::FailAndDropRoute,
            ),
            (
                Read,
                refusal(C::ConsumerGroupPartitionNotOwned),
                none,
                Action::FailAndDropRoute,
            ),
            (Read, refusal(C::TopicIdNotFound), none, resend(Refresh::Route)),
            (Read, refusal(C::TopicIdNotFound), primary, Action::Fail),
            (Mutation, refusal(C::InvalidTopicName), none, Action::Fail),
            (
                CommittingRead,
                refusal(C::Unauthorized),
                none,
                Action::FailProgressUncertain,
            ),
            (CommittingRead, refusal(C::InvalidOffset), none, Action::Fail),
            (
                Mutation,
                refusal(C::RequestAlreadyApplied),
                uncertain,
                Action::FailFinally,
            ),
            (Mutation, Answer::Success { proven: false }, uncertain, unsure_resend),
            (Mutation, Answer::Success { proven: false }, none, Action::Accept),
            (Mutation, Answer::Success { proven: true }, uncertain, Action::Accept),
            (
                Mutation,
                Answer::Refused {
                    code: C::StreamNameAlreadyExists,
                    proven: true,
                },
                uncertain,
                Action::FailFinally,
            ),
        ];
        for (kind, answer, facts, expected) in rows {
            assert_eq!(decide(kind, answer, facts), expected, "{kind:?} {answer:?} {facts:?}");
        }
    }

    #[test]
    fn given_a_moved_primary_when_refused_twice_should_pause_before_the_second_resend() {
        let again = Facts {
            refused_as_primary_before: true,
            ..Facts::default()
        };
        let pauses = |facts| match decide(Mutation, refusal(C::NotPrimary), facts) {
            Action::Resend {
                pause,
                refresh: Refresh::Route,
                uncertain: false,
                ..
            } => pause,
            other => panic!("{other:?}"),
        };
        assert!(!pauses(Facts::default()));
        assert!(pauses(again));
        let fetch = Facts {
            is_fetch: true,
            ..Facts::default()
        };
        assert_eq!(
            decide(CommittingRead, refusal(C::NotPrimary), fetch),
            Action::FailAndDropRoute
        );
    }

    #[test]
    fn given_any_answer_when_a_write_is_uncertain_should_never_end_as_not_applied_without_proof() {
        let facts = Facts {
            uncertain: true,
            from_metadata_primary: true,
            is_send: true,
            ..Facts::default()
        };
        for code in C::ALL {
            let action = decide(Mutation, refusal(*code), facts);
            let settles = matches!(
                action,
                Action::FailFinally | Action::Accept | Action::Renumber | Action::Restart
            );
            let names_its_outcome = matches!(code, C::RequestAlreadyApplied | C::RequestTooOld);
            assert!(
                !settles || names_its_outcome,
                "{code} settled an uncertain write by {action:?}"
            );
            assert!(resending(action) || !settles || names_its_outcome);
        }
    }
}
