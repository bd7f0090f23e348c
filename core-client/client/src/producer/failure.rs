//! What is left of a send that failed.

use iggy_protocol::reply::message::SendConfirmation;
use iggy_protocol::{ErrorCode, Identifier};

use crate::error::{IggyError, Outcome};
use crate::message::IggyMessage;

/// A send that failed part of the way: the source of an error with [`ErrorCode::ProducerSendFailed`].
#[derive(Debug, thiserror::Error)]
#[error("sending to {topic} of {stream} failed with {} messages left, {uncertain} of which may be stored: {cause}", failed.len())]
pub struct SendFailed {
    /// Why.
    pub cause: IggyError,
    /// The messages that are not confirmed, in order; encrypted, if the producer encrypts.
    pub failed: Vec<IggyMessage>,
    /// How many of the first of them may be stored all the same.
    pub uncertain: usize,
    /// Where the messages before them were stored.
    pub committed: Vec<SendConfirmation>,
    /// The stream.
    pub stream: Identifier,
    /// The topic.
    pub topic: Identifier,
}

impl SendFailed {
    /// The error, with this as its source. It is treated like its cause.
    pub(crate) fn into_error(self) -> IggyError {
        let error = IggyError::new(ErrorCode::ProducerSendFailed, self.to_string()).like(&self.cause);
        error.with_source(self)
    }

    /// How many of the first messages of a failed chunk may be stored.
    pub(crate) fn uncertain_of(cause: &IggyError, chunk: usize) -> usize {
        if cause.outcome() == Outcome::Unknown { chunk } else { 0 }
    }
}

impl IggyError {
    /// What is left of a send that failed, for [`ErrorCode::ProducerSendFailed`].
    pub fn send_failed(&self) -> Option<&SendFailed> {
        std::error::Error::source(self).and_then(|source| source.downcast_ref())
    }
}
