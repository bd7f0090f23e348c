//! One message inside a batch: a 48-byte frame header, the payload, then the user headers (wire 6.2).

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::batch::BatchError;
use crate::limits::{MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES, MESSAGE_FRAME_SIZE};

/// The header of a message frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct FrameHeader {
    /// XXH3-64 over everything of the frame that follows this field.
    pub checksum: U64,
    /// The message id.
    pub id: U128,
    /// Distance from the batch's base offset.
    pub offset_delta: U32,
    /// Microseconds after the batch's origin time.
    pub timestamp_delta: U32,
    /// Bytes of user headers.
    pub user_headers_length: U32,
    /// Bytes of payload.
    pub payload_length: U32,
    /// Zero.
    pub reserved: U64,
}

const _: () = {
    assert!(size_of::<FrameHeader>() == MESSAGE_FRAME_SIZE);
    assert!(std::mem::offset_of!(FrameHeader, id) == 8);
    assert!(std::mem::offset_of!(FrameHeader, offset_delta) == 24);
    assert!(std::mem::offset_of!(FrameHeader, timestamp_delta) == 28);
    assert!(std::mem::offset_of!(FrameHeader, user_headers_length) == 32);
    assert!(std::mem::offset_of!(FrameHeader, payload_length) == 36);
    assert!(std::mem::offset_of!(FrameHeader, reserved) == 40);
};

/// A message frame in place.
#[derive(Debug, Clone, Copy)]
pub struct FrameView<'a> {
    header: &'a FrameHeader,
    bytes: &'a [u8],
}

impl<'a> FrameView<'a> {
    /// Reads the frame `body` starts with and checks its lengths and reserved bytes; returns it and what follows.
    pub fn split_first(body: &'a [u8]) -> Result<(Self, &'a [u8]), BatchError> {
        let Ok((header, _)) = FrameHeader::ref_from_prefix(body) else {
            return Err(BatchError::FramesDoNotTile);
        };
        if header.reserved.get() != 0 {
            return Err(BatchError::FrameReserved);
        }
        let payload = header.payload_length.get() as usize;
        let user_headers = header.user_headers_length.get() as usize;
        if payload == 0 {
            return Err(BatchError::EmptyPayload);
        }
        if payload > MAX_PAYLOAD_BYTES {
            return Err(BatchError::PayloadTooLarge(payload));
        }
        if user_headers > MAX_USER_HEADERS_BYTES {
            return Err(BatchError::UserHeadersTooLarge(user_headers));
        }
        let size = MESSAGE_FRAME_SIZE + payload + user_headers;
        if size > body.len() {
            return Err(BatchError::FramesDoNotTile);
        }
        let (bytes, rest) = body.split_at(size);
        Ok((Self { header, bytes }, rest))
    }

    /// The frame header.
    pub fn header(&self) -> &'a FrameHeader {
        self.header
    }

    /// The whole frame.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The message id.
    pub fn id(&self) -> u128 {
        self.header.id.get()
    }

    /// Distance from the batch's base offset.
    pub fn offset_delta(&self) -> u32 {
        self.header.offset_delta.get()
    }

    /// Microseconds after the batch's origin time.
    pub fn timestamp_delta(&self) -> u32 {
        self.header.timestamp_delta.get()
    }

    /// The checksum the frame carries.
    pub fn checksum(&self) -> u64 {
        self.header.checksum.get()
    }

    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[MESSAGE_FRAME_SIZE..MESSAGE_FRAME_SIZE + self.payload_len()]
    }

    /// The user header block, possibly empty.
    pub fn user_headers(&self) -> &'a [u8] {
        &self.bytes[MESSAGE_FRAME_SIZE + self.payload_len()..]
    }

    fn payload_len(&self) -> usize {
        self.header.payload_length.get() as usize
    }

    /// The checksum the frame should carry.
    pub fn computed_checksum(&self) -> u64 {
        frame_checksum(self.bytes)
    }

    /// Whether the frame carries the checksum of its bytes.
    pub fn is_intact(&self) -> bool {
        self.checksum() == self.computed_checksum()
    }
}

/// XXH3-64 over a whole frame except its checksum field (wire 6.3).
pub fn frame_checksum(frame: &[u8]) -> u64 {
    xxh3_64(&frame[8..])
}
