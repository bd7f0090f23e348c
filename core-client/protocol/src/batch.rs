//! The one layout of messages on the wire, on disk and in replies: a 256-byte batch header and message frames (wire 6).
//!
//! [`BatchView`] reads a batch in place. Parsing proves that the frames tile the batch; [`BatchView::verify`] proves the
//! checksums. The server stamps the header with [`stamp`] and cuts replies out of stored batches with
//! [`crate::batch_slice::slice`]: payload bytes are hashed once, by their producer, and once by admission.

use xxhash_rust::xxh3::Xxh3;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error_code::ErrorCode;
use crate::frame::FrameView;
use crate::limits::{
    HEADER_SIZE, MAX_PAYLOAD_BYTES, MAX_PRODUCER_EPOCH, MAX_PRODUCER_ID, MAX_SEQUENCE, MAX_USER_HEADERS_BYTES,
};

/// The header of a batch (wire 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BatchHeader {
    /// The partition; zero until admission.
    pub partition_id: U64,
    /// Offset of the batch; zero until it is appended. A slice keeps it.
    pub base_offset: U64,
    /// Broker time of every message, in microseconds; zero until appended.
    pub base_timestamp: U64,
    /// Smallest producer time of the batch, in microseconds.
    pub origin_timestamp: U64,
    /// Bytes of header and frames.
    pub batch_length: U64,
    /// XXH3-64 over header values and frame checksums.
    pub batch_checksum: U64,
    /// Frames in the batch.
    pub message_count: U32,
    /// 1 when a producer section is present, otherwise 0.
    pub producer_flags: u8,
    /// Zero.
    pub zero_53: [u8; 3],
    /// The producer, or zero.
    pub producer_id: U64,
    /// The producer's epoch, or zero.
    pub epoch: U16,
    /// Zero.
    pub zero_66: [u8; 2],
    /// Sequence of the first message, or zero.
    pub base_sequence: U32,
    /// Zero.
    pub reserved: [u8; 184],
}

const _: () = {
    assert!(size_of::<BatchHeader>() == HEADER_SIZE);
    assert!(std::mem::offset_of!(BatchHeader, batch_length) == 32);
    assert!(std::mem::offset_of!(BatchHeader, message_count) == 48);
    assert!(std::mem::offset_of!(BatchHeader, producer_flags) == 52);
    assert!(std::mem::offset_of!(BatchHeader, producer_id) == 56);
    assert!(std::mem::offset_of!(BatchHeader, epoch) == 64);
    assert!(std::mem::offset_of!(BatchHeader, base_sequence) == 68);
    assert!(std::mem::offset_of!(BatchHeader, reserved) == 72);
};

/// A batch that does not follow the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Fewer bytes than the batch claims.
    #[error("the batch needs {needed} bytes but {available} are here")]
    Short {
        /// Bytes it needs.
        needed: u64,
        /// Bytes that are here.
        available: usize,
    },
    /// Bytes follow the batch where none may.
    #[error("{0} bytes follow the batch")]
    Trailing(usize),
    /// The length is below the header's own.
    #[error("batch_length {0} is below the 256 bytes of its header")]
    LengthBelowHeader(u64),
    /// Reserved bytes of the batch header are not zero.
    #[error("reserved bytes of the batch header must be zero")]
    Reserved,
    /// Reserved bytes of a frame are not zero.
    #[error("reserved bytes of a message frame must be zero")]
    FrameReserved,
    /// The producer section is out of range, or present without its flag.
    #[error(
        "the producer section must be absent (flag 0, all zero) or hold flag 1, id <= 2^63-1, epoch <= 32767, sequence <= 2^31-1"
    )]
    ProducerSection,
    /// The frames do not fill the batch exactly, or are not as many as it says.
    #[error("the frames do not tile the batch, or their number is not message_count")]
    FramesDoNotTile,
    /// Offset deltas do not ascend by one, or leave the offset space.
    #[error("offset deltas must ascend by one")]
    OffsetDelta,
    /// A batch without messages.
    #[error("a batch holds at least one message")]
    Empty,
    /// A message without payload.
    #[error("a payload has 1..=64000000 bytes, this one has none")]
    EmptyPayload,
    /// A payload above the limit.
    #[error("a payload has 1..=64000000 bytes, this one has {0}")]
    PayloadTooLarge(usize),
    /// User headers above the limit.
    #[error("user headers have at most 100000 bytes, these have {0}")]
    UserHeadersTooLarge(usize),
    /// Producer times of one batch lie further apart than a delta can say.
    #[error("message times of one batch lie more than 2^32-1 microseconds apart")]
    TimestampDelta,
    /// More messages than a batch can count.
    #[error("a batch holds at most 2^32-1 messages")]
    TooManyMessages,
    /// A frame does not carry the checksum of its bytes.
    #[error("the checksum of the message with offset delta {0} is wrong")]
    MessageChecksum(u32),
    /// The batch does not carry the checksum of its frames and header.
    #[error("the batch checksum is wrong")]
    BatchChecksum,
}

impl BatchError {
    /// The code a server answers with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Reserved | Self::FrameReserved => ErrorCode::InvalidReservedField,
            Self::FramesDoNotTile | Self::Empty => ErrorCode::InvalidMessagesCount,
            Self::EmptyPayload => ErrorCode::EmptyMessagePayload,
            Self::PayloadTooLarge(_) => ErrorCode::TooBigMessagePayload,
            Self::UserHeadersTooLarge(_) => ErrorCode::TooBigUserHeaders,
            Self::TimestampDelta => ErrorCode::InvalidMessageTimestampDelta,
            Self::TooManyMessages => ErrorCode::TooManyMessages,
            Self::MessageChecksum(_) => ErrorCode::InvalidMessageChecksum,
            Self::BatchChecksum => ErrorCode::InvalidBatchChecksum,
            Self::OffsetDelta => ErrorCode::InvalidOffset,
            Self::Short { .. } | Self::Trailing(_) | Self::LengthBelowHeader(_) | Self::ProducerSection => {
                ErrorCode::InvalidCommand
            }
        }
    }
}

/// Who produced an idempotent batch (wire 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProducerSection {
    /// The producer, at most 2^63-1.
    pub producer_id: u64,
    /// Its epoch, at most 32767.
    pub epoch: u16,
    /// Sequence of the first message, at most 2^31-1.
    pub base_sequence: u32,
}

impl ProducerSection {
    /// Checks the ranges of wire 6.1.
    pub fn validate(&self) -> Result<(), BatchError> {
        let fits = self.producer_id <= MAX_PRODUCER_ID
            && self.epoch <= MAX_PRODUCER_EPOCH
            && self.base_sequence <= MAX_SEQUENCE;
        fits.then_some(()).ok_or(BatchError::ProducerSection)
    }
}

/// The id of the `index`th producer of a session, or `None` when the session or the index is too large (wire 6.4).
pub fn producer_id(session: u64, index: u32) -> Option<u64> {
    (session < 1 << 43 && index < 1 << 20).then(|| session << 20 | u64::from(index))
}

/// The sequence that follows a batch of `count` messages starting at `base`.
pub const fn next_sequence(base: u32, count: u32) -> u32 {
    base.wrapping_add(count) & MAX_SEQUENCE
}

/// The last sequence of a batch of `count` messages (at least one) starting at `base`.
pub const fn last_sequence(base: u32, count: u32) -> u32 {
    base.wrapping_add(count).wrapping_sub(1) & MAX_SEQUENCE
}

impl BatchHeader {
    /// A header with everything zero.
    pub fn zeroed() -> Self {
        Self::new_zeroed()
    }

    /// Views the header `bytes` start with; nothing but its presence is checked.
    pub fn view(bytes: &[u8]) -> Result<&Self, BatchError> {
        let short = BatchError::Short {
            needed: HEADER_SIZE as u64,
            available: bytes.len(),
        };
        Self::ref_from_prefix(bytes)
            .map(|(header, _)| header)
            .map_err(|_| short)
    }

    /// Views the header `bytes` start with, to change it.
    pub fn view_mut(bytes: &mut [u8]) -> Result<&mut Self, BatchError> {
        let short = BatchError::Short {
            needed: HEADER_SIZE as u64,
            available: bytes.len(),
        };
        Self::mut_from_prefix(bytes)
            .map(|(header, _)| header)
            .map_err(|_| short)
    }

    /// The bytes of this header.
    pub fn as_array(&self) -> &[u8; HEADER_SIZE] {
        zerocopy::transmute_ref!(self)
    }

    /// The producer section, when there is one.
    pub fn producer(&self) -> Option<ProducerSection> {
        (self.producer_flags == 1).then(|| ProducerSection {
            producer_id: self.producer_id.get(),
            epoch: self.epoch.get(),
            base_sequence: self.base_sequence.get(),
        })
    }

    /// Puts a producer section into the header, or takes it out.
    pub fn set_producer(&mut self, producer: Option<ProducerSection>) {
        let section = producer.unwrap_or(ProducerSection {
            producer_id: 0,
            epoch: 0,
            base_sequence: 0,
        });
        self.producer_flags = u8::from(producer.is_some());
        self.producer_id = section.producer_id.into();
        self.epoch = section.epoch.into();
        self.base_sequence = section.base_sequence.into();
    }

    /// Checks length, count, reserved bytes and the producer section.
    pub fn validate(&self) -> Result<(), BatchError> {
        let length = self.batch_length.get();
        if length < HEADER_SIZE as u64 {
            return Err(BatchError::LengthBelowHeader(length));
        }
        if self.reserved != [0; 184] {
            return Err(BatchError::Reserved);
        }
        if self.message_count.get() == 0 {
            return Err(BatchError::Empty);
        }
        if self.producer_flags > 1 || self.zero_53 != [0; 3] || self.zero_66 != [0; 2] {
            return Err(BatchError::ProducerSection);
        }
        match self.producer() {
            Some(section) => section.validate(),
            None if self.producer_id.get() == 0 && self.epoch.get() == 0 && self.base_sequence.get() == 0 => Ok(()),
            None => Err(BatchError::ProducerSection),
        }
    }

    /// The checksum this header should carry above frames with these checksums (wire 6.3).
    pub fn computed_checksum(&self, frame_checksums: impl IntoIterator<Item = u64>) -> u64 {
        let mut hash = Xxh3::new();
        let header: &[u8; HEADER_SIZE] = self.as_array();
        hash.update(&header[0..40]);
        hash.update(&header[48..52]);
        if self.producer_flags == 1 {
            hash.update(&[1]);
            hash.update(self.producer_id.as_bytes());
            hash.update(self.epoch.as_bytes());
            hash.update(self.base_sequence.as_bytes());
        }
        for checksum in frame_checksums {
            hash.update(&checksum.to_le_bytes());
        }
        hash.digest()
    }
}

/// A batch in place.
#[derive(Debug, Clone, Copy)]
pub struct BatchView<'a> {
    header: &'a BatchHeader,
    bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Reads a batch that fills `bytes` exactly. Proves that its frames tile it; checksums are left to [`Self::verify`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let (batch, rest) = Self::split_first(bytes)?;
        match rest.len() {
            0 => Ok(batch),
            trailing => Err(BatchError::Trailing(trailing)),
        }
    }

    /// Reads the batch `bytes` start with, as [`Self::parse`] does, and returns what follows it.
    pub fn split_first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BatchError> {
        let (batch, rest) = Self::split_first_unwalked(bytes)?;
        let base = batch.header.base_offset.get();
        let mut body = batch.body();
        let mut frames = 0_u32;
        let mut expected_delta = None;
        while !body.is_empty() {
            let (frame, tail) = FrameView::split_first(body)?;
            if expected_delta.is_some_and(|expected| expected != frame.offset_delta()) {
                return Err(BatchError::OffsetDelta);
            }
            if base.checked_add(u64::from(frame.offset_delta())).is_none() {
                return Err(BatchError::OffsetDelta);
            }
            expected_delta = frame.offset_delta().checked_add(1);
            frames = frames.checked_add(1).ok_or(BatchError::FramesDoNotTile)?;
            if expected_delta.is_none() && !tail.is_empty() {
                return Err(BatchError::OffsetDelta);
            }
            body = tail;
        }
        if frames != batch.header.message_count.get() {
            return Err(BatchError::FramesDoNotTile);
        }
        Ok((batch, rest))
    }

    /// Reads a batch whose frames were checked before, such as one from our own log: only the header is looked at.
    pub fn split_first_unwalked(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BatchError> {
        let header = BatchHeader::view(bytes)?;
        header.validate()?;
        let length = header.batch_length.get();
        match usize::try_from(length).ok().filter(|length| *length <= bytes.len()) {
            Some(length) => {
                let (bytes, rest) = bytes.split_at(length);
                Ok((Self { header, bytes }, rest))
            }
            None => Err(BatchError::Short {
                needed: length,
                available: bytes.len(),
            }),
        }
    }

    /// The batch header.
    pub fn header(&self) -> &'a BatchHeader {
        self.header
    }

    /// Header and frames.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The frames.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_SIZE..]
    }

    /// Messages in the batch.
    pub fn message_count(&self) -> u32 {
        self.header.message_count.get()
    }

    /// The frames, in order.
    pub fn frames(&self) -> Frames<'a> {
        Frames { body: self.body() }
    }

    /// Offset of the first frame; above the base offset when the batch is a slice.
    pub fn first_offset(&self) -> u64 {
        let delta = self.frames().next().map_or(0, |frame| frame.offset_delta());
        self.header.base_offset.get().saturating_add(u64::from(delta))
    }

    /// Offset of the last frame.
    pub fn last_offset(&self) -> u64 {
        self.first_offset()
            .saturating_add(u64::from(self.message_count().saturating_sub(1)))
    }

    /// Proves every frame checksum, then the batch checksum.
    pub fn verify(&self) -> Result<(), BatchError> {
        if let Some(broken) = self.frames().find(|frame| !frame.is_intact()) {
            return Err(BatchError::MessageChecksum(broken.offset_delta()));
        }
        self.verify_header()
    }

    /// Proves the batch checksum alone, taking the frame checksums as they stand.
    pub fn verify_header(&self) -> Result<(), BatchError> {
        let computed = self
            .header
            .computed_checksum(self.frames().map(|frame| frame.checksum()));
        (computed == self.header.batch_checksum.get())
            .then_some(())
            .ok_or(BatchError::BatchChecksum)
    }
}

/// The frames of a batch whose tiling was proven when it was parsed. On other bytes it ends at the first broken frame.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    body: &'a [u8],
}

impl<'a> Frames<'a> {
    /// The frames `body` consists of.
    pub fn new(body: &'a [u8]) -> Self {
        Self { body }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = FrameView<'a>;

    fn next(&mut self) -> Option<FrameView<'a>> {
        if self.body.is_empty() {
            return None;
        }
        let (frame, rest) = FrameView::split_first(self.body).ok()?;
        self.body = rest;
        Some(frame)
    }
}

/// Batches that stand back to back, as in a poll reply. Yields an error once and then ends.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
}

impl<'a> Records<'a> {
    /// The batches `bytes` consist of.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<BatchView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        match BatchView::split_first(self.bytes) {
            Ok((batch, rest)) => {
                self.bytes = rest;
                Some(Ok(batch))
            }
            Err(error) => {
                self.bytes = &[];
                Some(Err(error))
            }
        }
    }
}

/// Stamps an admitted batch: sets partition, offset and broker time and recomputes the batch checksum from the frame
/// checksums. Payload bytes are neither read nor changed. `batch` begins with a batch header; its frames follow.
pub fn stamp(batch: &mut [u8], partition_id: u32, base_offset: u64, base_timestamp: u64) -> Result<(), BatchError> {
    let (header, body) = batch.split_at_mut_checked(HEADER_SIZE).ok_or(BatchError::Short {
        needed: HEADER_SIZE as u64,
        available: 0,
    })?;
    let header = BatchHeader::view_mut(header)?;
    stamp_header(
        header,
        partition_id,
        base_offset,
        base_timestamp,
        Frames::new(body).map(|frame| frame.checksum()),
    );
    Ok(())
}

/// Stamps a header apart from its frames, given their checksums in order.
pub fn stamp_header(
    header: &mut BatchHeader,
    partition_id: u32,
    base_offset: u64,
    base_timestamp: u64,
    frame_checksums: impl IntoIterator<Item = u64>,
) {
    header.partition_id = u64::from(partition_id).into();
    header.base_offset = base_offset.into();
    header.base_timestamp = base_timestamp.into();
    header.batch_checksum = header.computed_checksum(frame_checksums).into();
}

/// Checks the sizes of one message before it becomes a frame.
pub fn check_message(payload: usize, user_headers: usize) -> Result<(), BatchError> {
    match payload {
        0 => return Err(BatchError::EmptyPayload),
        length if length > MAX_PAYLOAD_BYTES => return Err(BatchError::PayloadTooLarge(length)),
        _ => {}
    }
    if user_headers > MAX_USER_HEADERS_BYTES {
        return Err(BatchError::UserHeadersTooLarge(user_headers));
    }
    Ok(())
}
