//! One record of a journal generation: where a prepare's body is, its header, and an inline body.
//!
//! The record header is local to a node; the prepare header inside is the one that every replica holds.

use bytes::Bytes;
use iggy_consensus::prepare::{HEADER_LEN, Prepare, PrepareHeader};
use iggy_consensus::{self as consensus, LogEnd};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const REWIND: u8 = 2;
const MAGIC: [u8; 4] = *b"PREP";
/// Records start at multiples of this, so that a search after damage finds them.
pub const ALIGNMENT: usize = 8;
pub const RECORD_HEADER_LEN: usize = 64;
/// Most bytes of an inline body. Client bodies are bounded by the frame limit, this bounds what recovery allocates.
const INLINE_LEN_MAX: usize = 128 << 20;

/// Where the batch of a prepare lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLocation {
    /// First offset of the segment, which names its file.
    pub segment: u64,
    /// First byte within the segment.
    pub position: u64,
    /// Bytes, batch header included.
    pub length: u32,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RecordHeader {
    /// XXH3-128 of the rest of this header and the prepare header.
    checksum: U128,
    magic: [u8; 4],
    /// 0 inline, 1 in a segment, 2 a rewind.
    kind: u8,
    reserved: [u8; 3],
    generation: U64,
    segment: U64,
    position: U64,
    length: U32,
    tail: [u8; 12],
}

const _: () = assert!(size_of::<RecordHeader>() == RECORD_HEADER_LEN);

/// The bytes of a record that says: the log ends at `to`, whatever came after it before.
pub fn encode_rewind(to: LogEnd, generation: u64) -> Bytes {
    let mut prepare = PrepareHeader::zeroed();
    prepare.op = U64::new(to.op);
    prepare.parent = U128::new(to.checksum);
    prepare.timestamp = U64::new(to.timestamp);
    prepare.checksum = U128::new(prepare.compute_checksum());
    let header = RecordHeader {
        checksum: U128::new(0),
        magic: MAGIC,
        kind: REWIND,
        reserved: [0; 3],
        generation: U64::new(generation),
        segment: U64::new(0),
        position: U64::new(0),
        length: U32::new(0),
        tail: [0; 12],
    };
    seal(header, &prepare)
}

/// Record header and prepare header, with the checksum of both.
fn seal(mut header: RecordHeader, prepare: &PrepareHeader) -> Bytes {
    let mut head = Vec::with_capacity(RECORD_HEADER_LEN + HEADER_LEN);
    head.extend_from_slice(header.as_bytes());
    head.extend_from_slice(prepare.as_bytes());
    header.checksum = U128::new(xxh3_128(&head[16..]));
    head[..16].copy_from_slice(header.checksum.as_bytes());
    Bytes::from(head)
}

/// The bytes of a record, as pieces to write one after the other.
pub fn encode(prepare: &Prepare, location: Option<BodyLocation>, generation: u64) -> Vec<Bytes> {
    let header = RecordHeader {
        checksum: U128::new(0),
        magic: MAGIC,
        kind: u8::from(location.is_some()),
        reserved: [0; 3],
        generation: U64::new(generation),
        segment: U64::new(location.map_or(0, |location| location.segment)),
        position: U64::new(location.map_or(0, |location| location.position)),
        length: prepare.header.body_len,
        tail: [0; 12],
    };
    let mut pieces = vec![seal(header, &prepare.header)];
    if location.is_none()
        && let consensus::Body::Inline(body) = &prepare.body
    {
        let padding = padded(body.len()) - body.len();
        if !body.is_empty() {
            pieces.push(body.clone());
        }
        if padding > 0 {
            pieces.push(Bytes::from_static(&[0; ALIGNMENT]).slice(..padding));
        }
    }
    pieces
}

const fn padded(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}

/// What lies at one place of a generation.
#[derive(Debug)]
pub enum Decoded {
    /// An intact record; `length` bytes in the file.
    Intact {
        header: Arc<PrepareHeader>,
        body: super::recover::Body,
        length: usize,
    },
    /// Everything after this position is void; `length` bytes in the file.
    Rewind { to: LogEnd, length: usize },
    /// Not an intact record.
    Broken,
}

/// Reads the record at the start of `bytes`.
pub fn decode(bytes: &[u8], generation: u64) -> Decoded {
    let Some((record, prepare)) = headers(bytes, generation) else {
        return Decoded::Broken;
    };
    let length = record.length.get();
    if record.kind == REWIND {
        let to = LogEnd {
            op: prepare.op.get(),
            checksum: prepare.parent.get(),
            timestamp: prepare.timestamp.get(),
        };
        return Decoded::Rewind {
            to,
            length: RECORD_HEADER_LEN + HEADER_LEN,
        };
    }
    if record.kind == 1 {
        let location = BodyLocation {
            segment: record.segment.get(),
            position: record.position.get(),
            length,
        };
        return Decoded::Intact {
            header: Arc::new(prepare),
            body: super::recover::Body::InSegment(location),
            length: RECORD_HEADER_LEN + HEADER_LEN,
        };
    }
    let start = RECORD_HEADER_LEN + HEADER_LEN;
    let end = start + length as usize;
    let Some(body) = bytes.get(start..end) else {
        return Decoded::Broken;
    };
    if xxh3_128(body) != prepare.body_checksum.get() {
        return Decoded::Broken;
    }
    Decoded::Intact {
        header: Arc::new(prepare),
        body: super::recover::Body::Inline(Bytes::copy_from_slice(body)),
        length: start + padded(length as usize),
    }
}

fn headers(bytes: &[u8], generation: u64) -> Option<(RecordHeader, PrepareHeader)> {
    let head = bytes.get(..RECORD_HEADER_LEN + HEADER_LEN)?;
    let record = RecordHeader::read_from_bytes(&head[..RECORD_HEADER_LEN]).ok()?;
    let prepare = PrepareHeader::read_from_bytes(&head[RECORD_HEADER_LEN..]).ok()?;
    let intact = record.magic == MAGIC
        && record.generation.get() == generation
        && record.kind <= REWIND
        && record.checksum.get() == xxh3_128(&head[16..])
        && prepare.is_intact()
        && record.length == prepare.body_len
        && (record.kind == 1) == (prepare.batch == 1)
        && (record.kind != 0 || record.length.get() as usize <= INLINE_LEN_MAX);
    intact.then_some((record, prepare))
}

/// Where the next record might start at or after `from`, by its magic.
pub fn find(bytes: &[u8], from: usize) -> Option<usize> {
    let magic_at = size_of::<U128>();
    (from.next_multiple_of(ALIGNMENT)..bytes.len())
        .step_by(ALIGNMENT)
        .find(|at| bytes.get(at + magic_at..at + magic_at + MAGIC.len()) == Some(&MAGIC))
}
