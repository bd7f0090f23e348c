//! A read that brought no messages but a reason.

use std::fmt;

use bytes::Bytes;

use crate::error::IggyError;
use crate::poll::Continuation;

/// A read that brought no messages but a reason. The reader or consumer stays usable.
#[derive(Debug)]
pub struct ReadError {
    /// The partition; `None` when it concerns all of them.
    pub partition_id: Option<u32>,
    /// The reason.
    pub error: IggyError,
    /// Where to seek to in order to read on after an unreadable message.
    pub skip: Option<Continuation>,
    /// Offset of an unreadable message.
    pub offset: Option<u64>,
    /// What cannot be read, as it came: the payload of a message that cannot be decrypted, or a record that is no batch.
    pub record: Option<Bytes>,
}

impl ReadError {
    pub(crate) fn of(partition_id: impl Into<Option<u32>>, error: IggyError) -> Self {
        Self {
            partition_id: partition_id.into(),
            error,
            skip: None,
            offset: None,
            record: None,
        }
    }

    /// Whether asking again will most likely be refused again. Six such in a row stop the partition.
    pub fn is_lasting_refusal(&self) -> bool {
        !self.error.retryable()
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partition_id {
            Some(id) => write!(out, "partition {id}: {}", self.error),
            None => self.error.fmt(out),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<ReadError> for IggyError {
    /// The same reason; its source is the [`ReadError`].
    fn from(error: ReadError) -> Self {
        Self::new(error.error.code(), error.to_string())
            .like(&error.error)
            .with_source(error)
    }
}
