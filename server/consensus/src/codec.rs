//! The bytes of messages between replicas.
//!
//! ```text
//! frame   checksum u128 | cluster u128 | namespace u64 | incarnation u64 | sender's incarnation u64 | view u32 |
//!         length u32 | kind u8 | from u8 | zero [14] | payload
//! beats   checksum u128 | cluster u128 | sender's incarnation u64 | count u32 | kind u8 | from u8 | zero [2] |
//!         count times: namespace u64 | incarnation u64 | view u32 | word u32 | commit u64
//! ```
//!
//! All numbers are little-endian. The checksum is XXH3-128 of everything after it. Every length is checked against what
//! arrived before anything is allocated, and against [`FRAME_LEN_MAX`].

use crate::message::{Beat, Kind, Message, StateManifest, ViewLog, Word};
use crate::prepare::{HEADER_LEN, Prepare, PrepareHeader};
use crate::vote::Vote;
use crate::{Body, Ending, GroupId, LogEnd};
use bytes::{BufMut, Bytes, BytesMut};
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes before the payload.
pub const FRAME_HEADER_LEN: usize = 80;
/// Most bytes of a frame: the largest batch, and room for its headers.
pub const FRAME_LEN_MAX: usize = (1 << 30) + 4096;
/// Bytes of one group in a frame of heartbeats.
pub const BEAT_LEN: usize = 32;
/// Groups in one frame of heartbeats.
pub const BEATS_MAX: usize = 16_384;
/// Bytes before the heartbeats.
const BEATS_HEADER_LEN: usize = 48;
/// Batches that a member says it holds, in one request.
pub const HELD_MAX: usize = 4096;
/// Headers in a vote or in the log of a view.
pub const SUFFIX_MAX: usize = 2048;
const BATCH_HEADER_LEN: usize = 256;

const KIND_BEATS: u8 = 40;
const _: () = assert!(BEAT_LEN <= 40);

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Too few bytes for what they claim to be.
    #[error("a replica message needs {needed} bytes and has {found}")]
    Short {
        /// Bytes needed.
        needed: usize,
        /// Bytes there are.
        found: usize,
    },
    /// A length beyond its bound.
    #[error("{what} of {found} is too large, at most {limit} is allowed")]
    TooLarge {
        /// What has that length.
        what: &'static str,
        /// Its length.
        found: usize,
        /// Its bound.
        limit: usize,
    },
    /// The bytes are not the ones that were sent.
    #[error("the checksum of a replica message does not fit")]
    Checksum,
    /// No message has this number.
    #[error("{0} is no kind of replica message")]
    Kind(u8),
    /// A field has a value it cannot have.
    #[error("{0} of a replica message has a value it cannot have")]
    Field(&'static str),
}

/// The bytes of a message, in pieces to write one after the other. Bodies are not copied.
pub fn encode(message: &Message) -> Vec<Bytes> {
    let mut head = BytesMut::with_capacity(FRAME_HEADER_LEN + HEADER_LEN);
    head.put_bytes(0, FRAME_HEADER_LEN);
    let mut bodies = Vec::new();
    let kind = put_kind(&message.kind, &mut head, &mut bodies);
    let length = head.len() - FRAME_HEADER_LEN + bodies.iter().map(Bytes::len).sum::<usize>();
    let mut fixed = &mut head[16..FRAME_HEADER_LEN];
    fixed.put_u128_le(message.cluster);
    fixed.put_u64_le(message.group.namespace);
    fixed.put_u64_le(message.group.incarnation);
    fixed.put_u64_le(message.incarnation);
    fixed.put_u32_le(message.view);
    fixed.put_u32_le(length as u32);
    fixed.put_u8(kind);
    fixed.put_u8(message.from);
    let mut hash = Xxh3::new();
    hash.update(&head[16..]);
    for body in &bodies {
        hash.update(body);
    }
    let checksum = hash.digest128();
    head[..16].copy_from_slice(&checksum.to_le_bytes());
    let mut pieces = vec![head.freeze()];
    pieces.extend(bodies);
    pieces
}

fn put_prepare(prepare: &Prepare, head: &mut BytesMut, bodies: &mut Vec<Bytes>) {
    head.put_slice(prepare.header.as_bytes());
    match &prepare.body {
        Body::Inline(bytes) => bodies.push(bytes.clone()),
        Body::Batch { header, frames } => bodies.extend([header.clone(), frames.clone()]),
    }
}

fn put_end(end: LogEnd, head: &mut BytesMut) {
    head.put_u64_le(end.op);
    head.put_u128_le(end.checksum);
    head.put_u64_le(end.timestamp);
}

fn put_checksums(checksums: &[u128], head: &mut BytesMut) {
    head.put_u32_le(checksums.len() as u32);
    for checksum in checksums {
        head.put_u128_le(*checksum);
    }
}

fn put_headers(headers: &[PrepareHeader], head: &mut BytesMut) {
    head.put_u32_le(headers.len() as u32);
    head.put_slice(headers.as_bytes());
}

fn put_kind(kind: &Kind, head: &mut BytesMut, bodies: &mut Vec<Bytes>) -> u8 {
    match kind {
        Kind::Prepare(prepare) => {
            put_prepare(prepare, head, bodies);
            6
        }
        Kind::PrepareOk { op, checksum } => {
            head.put_u64_le(*op);
            head.put_u128_le(*checksum);
            7
        }
        Kind::Commit { commit, last } => {
            head.put_u64_le(*commit);
            head.put_u8(u8::from(*last));
            9
        }
        Kind::Heard { rests_at } => {
            head.put_u8(u8::from(rests_at.is_some()));
            head.put_u64_le(rests_at.unwrap_or(0));
            8
        }
        Kind::StartViewChange { proposed, hand_over } => {
            head.put_u32_le(*proposed);
            head.put_u8(u8::from(*hand_over));
            10
        }
        Kind::DoViewChange(vote) => {
            head.put_u32_le(vote.log_view);
            head.put_u8(vote.ending.code());
            head.put_u64_le(vote.history);
            put_end(vote.committed, head);
            head.put_u64_le(vote.commit_max);
            put_headers(&vote.suffix, head);
            11
        }
        Kind::StartView(log) => {
            head.put_u128_le(log.nonce);
            head.put_u64_le(log.history);
            put_end(log.committed, head);
            put_headers(&log.suffix, head);
            12
        }
        Kind::RequestStartView { nonce } => {
            head.put_u128_le(*nonce);
            17
        }
        Kind::RequestPrepares { from_op, to_op } => {
            head.put_u64_le(*from_op);
            head.put_u64_le(*to_op);
            18
        }
        Kind::RepairPrepare { prepare, committed } => {
            head.put_u8(u8::from(*committed));
            put_prepare(prepare, head, bodies);
            19
        }
        Kind::RangeEvicted { oldest_op } => {
            head.put_u64_le(*oldest_op);
            21
        }
        Kind::RequestState => 22,
        Kind::State(manifest) => {
            put_end(manifest.at, head);
            head.put_u64_le(manifest.history);
            head.put_u64_le(manifest.first_offset);
            head.put_u64_le(manifest.next_offset);
            bodies.push(manifest.state.clone());
            23
        }
        Kind::RequestBatches { offset, until, held } => {
            head.put_u64_le(*offset);
            head.put_u64_le(*until);
            put_checksums(held, head);
            24
        }
        Kind::Batches { offset, same, bytes } => {
            head.put_u64_le(*offset);
            put_checksums(same, head);
            bodies.push(bytes.clone());
            25
        }
    }
}

/// What is left of a frame, read from the front.
struct Reader {
    bytes: Bytes,
}

impl Reader {
    fn take(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        if self.bytes.len() < length {
            return Err(DecodeError::Short {
                needed: length,
                found: self.bytes.len(),
            });
        }
        Ok(self.bytes.split_to(length))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(&self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self, name: &'static str) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Field(name)),
        }
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Result<u128, DecodeError> {
        self.array().map(u128::from_le_bytes)
    }

    fn end(&mut self) -> Result<LogEnd, DecodeError> {
        Ok(LogEnd {
            op: self.u64()?,
            checksum: self.u128()?,
            timestamp: self.u64()?,
        })
    }

    fn header(&mut self) -> Result<PrepareHeader, DecodeError> {
        let bytes = self.take(HEADER_LEN)?;
        let header = PrepareHeader::read_from_bytes(&bytes).map_err(|_| DecodeError::Field("a prepare header"))?;
        if !header.is_intact() {
            return Err(DecodeError::Checksum);
        }
        if header.batch > 1 || header.persisted > 1 || header.op.get() == 0 {
            return Err(DecodeError::Field("a prepare header"));
        }
        Ok(header)
    }

    fn checksums(&mut self) -> Result<Vec<u128>, DecodeError> {
        let count = self.u32()? as usize;
        if count > HELD_MAX {
            return Err(DecodeError::TooLarge {
                what: "a list of batches",
                found: count,
                limit: HELD_MAX,
            });
        }
        if self.bytes.len() < count * size_of::<u128>() {
            return Err(DecodeError::Short {
                needed: count * size_of::<u128>(),
                found: self.bytes.len(),
            });
        }
        (0..count).map(|_| self.u128()).collect()
    }

    fn headers(&mut self, committed: LogEnd) -> Result<Vec<PrepareHeader>, DecodeError> {
        let count = self.u32()? as usize;
        if count > SUFFIX_MAX {
            return Err(DecodeError::TooLarge {
                what: "a log suffix",
                found: count,
                limit: SUFFIX_MAX,
            });
        }
        if self.bytes.len() < count * HEADER_LEN {
            return Err(DecodeError::Short {
                needed: count * HEADER_LEN,
                found: self.bytes.len(),
            });
        }
        let mut headers = Vec::with_capacity(count);
        let mut end = committed;
        for _ in 0..count {
            let header = self.header()?;
            if end.op.checked_add(1) != Some(header.op.get()) || header.parent.get() != end.checksum {
                return Err(DecodeError::Field("a log suffix"));
            }
            end = header.end();
            headers.push(header);
        }
        Ok(headers)
    }

    fn prepare(&mut self) -> Result<Prepare, DecodeError> {
        let header = self.header()?;
        let length = header.body_len.get() as usize;
        if length != self.bytes.len() {
            return Err(DecodeError::Field("the length of a prepare"));
        }
        let body = if header.batch == 1 {
            Body::Batch {
                header: self.take(BATCH_HEADER_LEN)?,
                frames: self.take(length - BATCH_HEADER_LEN)?,
            }
        } else {
            Body::Inline(self.take(length)?)
        };
        let prepare = Prepare {
            header: Arc::new(header),
            body,
        };
        if !prepare.is_intact() {
            return Err(DecodeError::Checksum);
        }
        Ok(prepare)
    }

    fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes)
    }
}

/// Reads a whole frame.
pub fn decode(frame: Bytes) -> Result<Message, DecodeError> {
    let found = frame.len();
    if found < FRAME_HEADER_LEN {
        return Err(DecodeError::Short {
            needed: FRAME_HEADER_LEN,
            found,
        });
    }
    if found > FRAME_LEN_MAX {
        return Err(DecodeError::TooLarge {
            what: "a replica message",
            found,
            limit: FRAME_LEN_MAX,
        });
    }
    let mut reader = Reader { bytes: frame };
    let checksum = reader.u128()?;
    if xxh3_128(&reader.bytes) != checksum {
        return Err(DecodeError::Checksum);
    }
    let cluster = reader.u128()?;
    let group = GroupId {
        namespace: reader.u64()?,
        incarnation: reader.u64()?,
    };
    let incarnation = reader.u64()?;
    let view = reader.u32()?;
    let length = reader.u32()? as usize;
    let kind = reader.u8()?;
    let from = reader.u8()?;
    if reader.array::<14>()? != [0; 14] {
        return Err(DecodeError::Field("the reserved bytes"));
    }
    if length != reader.bytes.len() {
        return Err(DecodeError::Field("the length"));
    }
    let kind = take_kind(kind, &mut reader)?;
    if !reader.bytes.is_empty() {
        return Err(DecodeError::Field("the length"));
    }
    Ok(Message {
        cluster,
        group,
        from,
        incarnation,
        view,
        kind,
    })
}

fn take_kind(kind: u8, reader: &mut Reader) -> Result<Kind, DecodeError> {
    Ok(match kind {
        6 => Kind::Prepare(reader.prepare()?),
        7 => Kind::PrepareOk {
            op: reader.u64()?,
            checksum: reader.u128()?,
        },
        8 => {
            let rests = reader.flag("whether a backup rests")?;
            let at = reader.u64()?;
            if !rests && at != 0 {
                return Err(DecodeError::Field("where a backup rests"));
            }
            Kind::Heard {
                rests_at: rests.then_some(at),
            }
        }
        9 => Kind::Commit {
            commit: reader.u64()?,
            last: reader.flag("whether a commit is the last word")?,
        },
        10 => Kind::StartViewChange {
            proposed: reader.u32()?,
            hand_over: reader.flag("the hand-over")?,
        },
        11 => {
            let log_view = reader.u32()?;
            let ending = Ending::from_code(reader.u8()?).ok_or(DecodeError::Field("the ending"))?;
            let history = reader.u64()?;
            let committed = reader.end()?;
            Kind::DoViewChange(Box::new(Vote {
                log_view,
                history,
                committed,
                commit_max: reader.u64()?,
                suffix: reader.headers(committed)?,
                ending,
            }))
        }
        12 => {
            let nonce = reader.u128()?;
            let history = reader.u64()?;
            let committed = reader.end()?;
            Kind::StartView(Box::new(ViewLog {
                nonce,
                history,
                committed,
                suffix: reader.headers(committed)?,
            }))
        }
        17 => Kind::RequestStartView { nonce: reader.u128()? },
        18 => Kind::RequestPrepares {
            from_op: reader.u64()?,
            to_op: reader.u64()?,
        },
        19 => Kind::RepairPrepare {
            committed: reader.flag("the commit of a repair")?,
            prepare: reader.prepare()?,
        },
        21 => Kind::RangeEvicted {
            oldest_op: reader.u64()?,
        },
        22 => Kind::RequestState,
        23 => Kind::State(Box::new(StateManifest {
            at: reader.end()?,
            history: reader.u64()?,
            first_offset: reader.u64()?,
            next_offset: reader.u64()?,
            state: reader.rest(),
        })),
        24 => Kind::RequestBatches {
            offset: reader.u64()?,
            until: reader.u64()?,
            held: reader.checksums()?,
        },
        25 => Kind::Batches {
            offset: reader.u64()?,
            same: reader.checksums()?,
            bytes: reader.rest(),
        },
        other => return Err(DecodeError::Kind(other)),
    })
}

/// The heartbeats of many groups to one peer, in one frame. Without any it says that the sender lives.
pub fn encode_beats(cluster: u128, from: u8, incarnation: u64, beats: &[Beat]) -> Bytes {
    let beats = &beats[..beats.len().min(BEATS_MAX)];
    let mut bytes = BytesMut::with_capacity(BEATS_HEADER_LEN + beats.len() * BEAT_LEN);
    bytes.put_u128_le(0);
    bytes.put_u128_le(cluster);
    bytes.put_u64_le(incarnation);
    bytes.put_u32_le(beats.len() as u32);
    bytes.put_u8(KIND_BEATS);
    bytes.put_u8(from);
    bytes.put_u16_le(0);
    for beat in beats {
        bytes.put_u64_le(beat.group.namespace);
        bytes.put_u64_le(beat.group.incarnation);
        bytes.put_u32_le(beat.view);
        let (word, commit) = match beat.word {
            Word::Heard => (0, 0),
            Word::Commit(commit) => (1, commit),
            Word::Rests(commit) => (2, commit),
            Word::Last(commit) => (3, commit),
        };
        bytes.put_u32_le(word);
        bytes.put_u64_le(commit);
    }
    let checksum = xxh3_128(&bytes[16..]);
    bytes[..16].copy_from_slice(&checksum.to_le_bytes());
    bytes.freeze()
}

/// Who sent a frame of heartbeats that [`decode_beats`] took: its index, and the incarnation of its process.
pub fn beats_sender(frame: &[u8]) -> Option<(u8, u64)> {
    let incarnation = frame.get(32..40)?.try_into().ok()?;
    let from = *frame.get(45)?;
    Some((from, u64::from_le_bytes(incarnation)))
}

/// Reads a frame of heartbeats, as the messages they stand for.
pub fn decode_beats(frame: Bytes) -> Result<Vec<Message>, DecodeError> {
    let mut reader = Reader { bytes: frame };
    let checksum = reader.u128()?;
    if xxh3_128(&reader.bytes) != checksum {
        return Err(DecodeError::Checksum);
    }
    let cluster = reader.u128()?;
    let incarnation = reader.u64()?;
    let count = reader.u32()? as usize;
    let kind = reader.u8()?;
    if kind != KIND_BEATS {
        return Err(DecodeError::Kind(kind));
    }
    let from = reader.u8()?;
    if reader.array::<2>()? != [0; 2] {
        return Err(DecodeError::Field("the reserved bytes"));
    }
    if count > BEATS_MAX || count * BEAT_LEN != reader.bytes.len() {
        return Err(DecodeError::Field("the number of heartbeats"));
    }
    let mut messages = Vec::with_capacity(count);
    for _ in 0..count {
        let group = GroupId {
            namespace: reader.u64()?,
            incarnation: reader.u64()?,
        };
        let view = reader.u32()?;
        let word = reader.u32()?;
        let commit = reader.u64()?;
        let kind = match word {
            0 => Kind::Heard { rests_at: None },
            1 => Kind::Commit { commit, last: false },
            2 => Kind::Heard { rests_at: Some(commit) },
            3 => Kind::Commit { commit, last: true },
            _ => return Err(DecodeError::Field("the word of a heartbeat")),
        };
        messages.push(Message {
            cluster,
            group,
            from,
            incarnation,
            view,
            kind,
        });
    }
    Ok(messages)
}

impl Message {
    /// What of it may travel with others of its kind in one frame of heartbeats.
    pub fn as_beat(&self) -> Option<Beat> {
        let word = match self.kind {
            Kind::Commit { commit, last: false } => Word::Commit(commit),
            Kind::Commit { commit, last: true } => Word::Last(commit),
            Kind::Heard { rests_at: None } => Word::Heard,
            Kind::Heard { rests_at: Some(at) } => Word::Rests(at),
            _ => return None,
        };
        Some(Beat {
            group: self.group,
            view: self.view,
            word,
        })
    }
}
