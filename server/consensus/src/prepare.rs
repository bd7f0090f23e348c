//! A prepare: one ordered write, as it is journaled and replicated.
//!
//! Each prepare names its parent by checksum, so a prefix of the log is known by the checksum of its last entry. The
//! checksum covers the header and the body's own checksum. For a batch of messages that is the checksum of the batch
//! header, which covers every frame through the frames' checksums: the payload is not hashed a second time.

use crate::{Barrier, LogEnd};
use bytes::Bytes;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a [`PrepareHeader`].
pub const HEADER_LEN: usize = 256;

/// The fixed part of a prepare. All numbers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PrepareHeader {
    /// XXH3-128 of the bytes after it.
    pub checksum: U128,
    /// XXH3-128 of an inline body, or of the header of a batch.
    pub body_checksum: U128,
    /// Checksum of the prepare before it; 0 for the first.
    pub parent: U128,
    /// Cluster the group belongs to.
    pub cluster: U128,
    /// Identity the client chose for its session; 0 for writes the node itself makes.
    pub client: U128,
    /// Identity the client gave the request (wire 4.6).
    pub request_checksum: U128,
    /// [`GroupId::namespace`](crate::GroupId::namespace).
    pub namespace: U64,
    /// [`GroupId::incarnation`](crate::GroupId::incarnation).
    pub incarnation: U64,
    /// Position in the group's log, from 1.
    pub op: U64,
    /// Newest position the primary knew to be committed. What it names was acknowledged, or may have been.
    pub commit: U64,
    /// Microseconds since the epoch; rises strictly with `op`.
    pub timestamp: U64,
    /// Session of the client; 0 for writes the node itself makes.
    pub session: U64,
    /// Number of the request within the session's client.
    pub request: U64,
    /// Ownership generation the request was bound to, 0 for none.
    pub owner_generation: U64,
    /// View in which it was prepared.
    pub view: U32,
    /// Body bytes.
    pub body_len: U32,
    /// User on whose behalf it is written.
    pub user_id: U32,
    /// What to do (wire 3.1, and internal operations of the group's state machine).
    pub operation: u8,
    /// Replica that was primary.
    pub replica: u8,
    /// 1 when the body is a batch of messages.
    pub batch: u8,
    /// 1 when its acknowledgement waits for stable storage.
    pub persisted: u8,
    /// Zero.
    pub reserved: [u8; 80],
}

const _: () = assert!(size_of::<PrepareHeader>() == HEADER_LEN);
const _: () = assert!(align_of::<PrepareHeader>() == 1);

impl PrepareHeader {
    /// A header of zeros, to be filled.
    pub fn zeroed() -> Self {
        Self::new_zeroed()
    }

    /// The checksum this header should carry.
    pub fn compute_checksum(&self) -> u128 {
        xxh3_128(&self.as_bytes()[16..])
    }

    /// The position it makes the end of its log.
    pub fn end(&self) -> LogEnd {
        LogEnd {
            op: self.op.get(),
            checksum: self.checksum.get(),
            timestamp: self.timestamp.get(),
        }
    }

    /// Whether the header is the one that was sealed.
    pub fn is_intact(&self) -> bool {
        self.checksum.get() == self.compute_checksum()
    }
}

/// What a prepare carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Bytes that only the state machine understands.
    Inline(Bytes),
    /// A stamped batch: its 256-byte header, and its frames as the client sent them.
    Batch {
        /// Stamped batch header.
        header: Bytes,
        /// Frames.
        frames: Bytes,
    },
}

impl Body {
    /// Bytes in all.
    pub fn len(&self) -> usize {
        match self {
            Self::Inline(bytes) => bytes.len(),
            Self::Batch { header, frames } => header.len() + frames.len(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What [`PrepareHeader::body_checksum`] holds for it.
    pub fn checksum(&self) -> u128 {
        match self {
            Self::Inline(bytes) => xxh3_128(bytes),
            Self::Batch { header, .. } => xxh3_128(header),
        }
    }
}

/// One ordered write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// Fixed part, sealed.
    pub header: Arc<PrepareHeader>,
    /// The rest.
    pub body: Body,
}

impl Prepare {
    /// Completes `header` for `body`: lengths and checksums.
    pub fn seal(mut header: PrepareHeader, body: Body) -> Self {
        header.body_len = U32::new(u32::try_from(body.len()).expect("bodies are bounded by the frame limit"));
        header.body_checksum = U128::new(body.checksum());
        header.batch = u8::from(matches!(body, Body::Batch { .. }));
        header.checksum = U128::new(header.compute_checksum());
        Self {
            header: Arc::new(header),
            body,
        }
    }

    /// What must have happened to it before it counts as held.
    pub fn barrier(&self) -> Barrier {
        if self.header.persisted == 1 {
            Barrier::Sync
        } else {
            Barrier::None
        }
    }

    /// Bytes of header and body.
    pub fn size(&self) -> u64 {
        (HEADER_LEN + self.body.len()) as u64
    }

    /// The position it makes the end of its log.
    pub fn end(&self) -> LogEnd {
        self.header.end()
    }

    /// Whether header and body are the ones that were sealed. The frames of a batch are covered by their own checksums.
    pub fn is_intact(&self) -> bool {
        self.header.is_intact()
            && self.header.body_len.get() as usize == self.body.len()
            && self.header.body_checksum.get() == self.body.checksum()
    }
}
