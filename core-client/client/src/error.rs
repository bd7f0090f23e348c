//! What went wrong, in terms of what a caller would do about it.
//!
//! Every write ends in one of three outcomes a program can read: applied, not applied, unknown.

use std::error::Error as StdError;
use std::fmt;

use iggy_protocol::error_code::RetryClass;
use iggy_protocol::{BatchError, DecodeError, ErrorCode, NameError, OptionError, TypedValueError};

/// What a caller would do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The server cannot be reached, or the link broke: check the address, or wait.
    Connection,
    /// Sign in, or sign in as somebody else.
    Authentication,
    /// The user may not do this.
    Permission,
    /// What was named does not exist.
    NotFound,
    /// What was to be created exists.
    AlreadyExists,
    /// The call itself is wrong: fix its arguments.
    InvalidInput,
    /// A limit was reached: wait, or ask for less.
    LimitReached,
    /// The server did not take the call this time: the same call may succeed later.
    Unavailable,
    /// Nobody can say whether the write was applied: resolve or abandon it.
    Uncertain,
    /// The position, owner or epoch belongs to the past: look it up again.
    Stale,
    /// The server failed.
    Server,
    /// The client or the producer was closed.
    Closed,
}

impl ErrorClass {
    /// The class of an error code.
    pub const fn of(code: ErrorCode) -> Self {
        use ErrorCode as C;
        match code {
            C::Disconnected
            | C::CannotEstablishConnection
            | C::StaleClient
            | C::TcpError
            | C::QuicError
            | C::NotConnected
            | C::ConnectionClosed
            | C::EmptyResponse
            | C::InvalidTlsCertificate
            | C::IncompatibleProtocolVersion
            | C::CannotSendMessagesDueToClientDisconnection => Self::Connection,
            C::Unauthenticated
            | C::InvalidCredentials
            | C::InvalidPersonalAccessToken
            | C::PersonalAccessTokenExpired
            | C::UserInactive
            | C::InvalidSession
            | C::SessionMismatch
            | C::AlreadyAuthenticated => Self::Authentication,
            C::Unauthorized | C::CannotModifyRootUser | C::CannotDeleteUser | C::CannotChangePermissions => {
                Self::Permission
            }
            C::ResourceNotFound
            | C::ClientNotFound
            | C::StreamIdNotFound
            | C::StreamNameNotFound
            | C::TopicIdNotFound
            | C::TopicNameNotFound
            | C::PartitionNotFound
            | C::NoPartitions
            | C::ConsumerOffsetNotFound
            | C::SegmentNotFound
            | C::ConsumerGroupIdNotFound
            | C::ConsumerGroupNameNotFound
            | C::ConsumerGroupMemberNotFound => Self::NotFound,
            C::UserAlreadyExists
            | C::PersonalAccessTokenAlreadyExists
            | C::StreamNameAlreadyExists
            | C::TopicNameAlreadyExists
            | C::ConsumerGroupNameAlreadyExists => Self::AlreadyExists,
            C::UsersLimitReached
            | C::PersonalAccessTokensLimitReached
            | C::TooManyStreams
            | C::TooManyTopics
            | C::TooManyPartitions
            | C::PartitionsLimitReached
            | C::TopicFull
            | C::TooManyConsumerOffsets
            | C::TooManyConsumerGroups
            | C::PartitionIdSpaceExhausted
            | C::ProducerIdsExhausted
            | C::RequestIdExhausted
            | C::BackgroundSendTimeout
            | C::BackgroundSendBufferFull
            | C::BackgroundSendBufferOverflow => Self::LimitReached,
            C::TransientNotAccepted
            | C::LifecycleBusy
            | C::NotPrimary
            | C::DeferredPollCapacityExceeded
            | C::TaskTimeout => Self::Unavailable,
            C::TransientNotCommitted
            | C::RequestTooOld
            | C::OperationUncertain
            | C::LaneBlocked
            | C::OperationNotRetained
            | C::PartitionLaneBlocked
            | C::FetchProgressUncertain => Self::Uncertain,
            C::HistoryUnavailable
            | C::PartitionHistoryChanged
            | C::ConsumerGroupPartitionNotOwned
            | C::ProducerSequenceOutOfOrder
            | C::ProducerEpochFenced
            | C::ProducerUnknown
            | C::RequestAlreadyApplied => Self::Stale,
            C::ClientShutdown | C::ProducerClosed | C::BackgroundWorkerDisconnected => Self::Closed,
            _ => Self::of_range(code),
        }
    }

    /// The remaining codes: those that name something invalid are the caller's, the others the server's.
    const fn of_range(code: ErrorCode) -> Self {
        use ErrorCode as C;
        match code {
            C::Error
            | C::CannotCreateBaseDirectory
            | C::CannotCreateRuntimeDirectory
            | C::CannotRemoveRuntimeDirectory
            | C::CannotCreateStateDirectory
            | C::StateFileNotFound
            | C::StateFileCorrupted
            | C::InvalidStateEntryChecksum
            | C::CannotOpenDatabase
            | C::SnapshotFileCompletionFailed => Self::Server,
            _ => match code.code() {
                1000..=1008 | 1011 | 1015 | 2000..=2009 | 2017 | 2020 | 3000..=3006 | 3010..=3012 | 3020..=3023 => {
                    Self::Server
                }
                4001
                | 4003..=4008
                | 4010..=4016
                | 4020
                | 4021
                | 4026
                | 4102
                | 5007
                | 5008
                | 6000..=7999
                | 10_000..=13_999 => Self::Server,
                _ => Self::InvalidInput,
            },
        }
    }
}

/// Whether a write took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It did.
    Applied,
    /// It did not.
    NotApplied,
    /// Nobody can say.
    Unknown,
}

/// A write whose outcome is unknown, or a read that may have stored an offset. Its number is that of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

impl fmt::Display for OperationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

/// Why a call failed.
#[derive(Debug)]
pub struct IggyError(Box<Details>);

#[derive(Debug)]
struct Details {
    code: ErrorCode,
    /// The class and retryability of the cause, for an error that wraps another.
    cause: Option<(ErrorClass, bool)>,
    outcome: Outcome,
    operation: Option<OperationId>,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl IggyError {
    /// An error of this code. Its outcome is what the code says: see [`IggyError::outcome`].
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let outcome = match code {
            ErrorCode::RequestAlreadyApplied => Outcome::Applied,
            ErrorCode::TransientNotCommitted
            | ErrorCode::RequestTooOld
            | ErrorCode::OperationUncertain
            | ErrorCode::OperationNotRetained
            | ErrorCode::FetchProgressUncertain => Outcome::Unknown,
            _ => Outcome::NotApplied,
        };
        Self(Box::new(Details {
            code,
            cause: None,
            outcome,
            operation: None,
            message: message.into(),
            source: None,
        }))
    }

    /// An error of this code that says no more than its name.
    pub fn of(code: ErrorCode) -> Self {
        Self::new(code, code.name())
    }

    /// The same error with another outcome.
    #[must_use]
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.0.outcome = outcome;
        self
    }

    /// The same error about this operation.
    #[must_use]
    pub fn with_operation(mut self, operation: OperationId) -> Self {
        self.0.operation = Some(operation);
        self
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// An error that wraps another and is treated like it.
    #[must_use]
    pub(crate) fn like(mut self, cause: &Self) -> Self {
        self.0.cause = Some((cause.class(), cause.retryable()));
        self.0.outcome = cause.outcome();
        self.0.operation = cause.operation();
        self
    }

    /// What a caller would do about it.
    pub fn class(&self) -> ErrorClass {
        self.0
            .cause
            .map_or_else(|| ErrorClass::of(self.0.code), |(class, _)| class)
    }

    /// The code (wire 13).
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Whether the same call may succeed later without the caller changing anything. Never so when the outcome is
    /// unknown: repeating such a write could apply it twice.
    pub fn retryable(&self) -> bool {
        if self.0.outcome == Outcome::Unknown {
            return false;
        }
        if let Some((_, retryable)) = self.0.cause {
            return retryable;
        }
        // That something is not there is believed once the metadata primary has said it, and a call asks it before it fails.
        let never = matches!(
            self.0.code.retry_class(),
            RetryClass::Never | RetryClass::UnlessMetadataPrimary
        );
        !never || self.class() == ErrorClass::Unavailable
    }

    /// Whether the write took effect. For reads: whether an offset was stored.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// The operation this error is about, for [`ErrorClass::Uncertain`]: resolve or abandon it.
    pub fn operation(&self) -> Option<OperationId> {
        self.0.operation
    }

    /// A sentence for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for IggyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details {
            code,
            message,
            operation,
            ..
        } = &*self.0;
        if message == code.name() {
            write!(out, "{code}")?;
        } else {
            write!(out, "{message} [{code}]")?;
        }
        match operation {
            Some(operation) => write!(out, ", operation {operation}"),
            None => Ok(()),
        }
    }
}

impl StdError for IggyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<ErrorCode> for IggyError {
    fn from(code: ErrorCode) -> Self {
        Self::of(code)
    }
}

macro_rules! from_protocol {
    ($($type:ident)*) => {
        $(impl From<$type> for IggyError {
            fn from(error: $type) -> Self {
                Self::new(error.code(), error.to_string()).with_source(error)
            }
        })*
    };
}

from_protocol! { DecodeError BatchError OptionError TypedValueError }

impl From<NameError> for IggyError {
    fn from(error: NameError) -> Self {
        Self::new(ErrorCode::InvalidIdentifier, error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_every_code_when_classified_should_be_one_class_and_unknown_never_retryable() {
        for code in ErrorCode::ALL {
            let error = IggyError::of(*code);
            if error.outcome() == Outcome::Unknown {
                assert_eq!(error.class(), ErrorClass::Uncertain, "{code}");
                assert!(!error.retryable(), "{code}");
            }
        }
        assert!(IggyError::of(ErrorCode::TransientNotAccepted).retryable());
        assert_eq!(
            IggyError::of(ErrorCode::InvalidTopicName).class(),
            ErrorClass::InvalidInput
        );
        assert_eq!(IggyError::of(ErrorCode::IoError).class(), ErrorClass::Server);
    }
}
