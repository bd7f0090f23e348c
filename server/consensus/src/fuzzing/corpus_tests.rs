//! Replays seeded mutations of every kind of frame through the fuzz target.

use super::{CHECKSUM_LEN, messages};
use crate::codec::{DecodeError, decode, decode_beats, encode, encode_beats};
use crate::message::{Beat, Kind, Message, StateManifest, ViewLog, Word};
use crate::vote::Vote;
use crate::{Body, Ending, GroupId, LogEnd, Prepare, PrepareHeader};
use bytes::Bytes;
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::little_endian::{U64, U128};

/// Mutations of each frame.
const MUTATIONS: u64 = 4_000;

/// A small generator, so that a failure is reproduced by its seed alone.
struct Mix(u64);

impl Mix {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

fn prepare(op: u64, parent: LogEnd) -> Prepare {
    let header = PrepareHeader {
        parent: U128::new(parent.checksum),
        op: U64::new(op),
        timestamp: U64::new(op),
        operation: 160,
        ..PrepareHeader::zeroed()
    };
    Prepare::seal(header, Body::Inline(Bytes::from_static(b"a body")))
}

fn corpus() -> Vec<Bytes> {
    let first = prepare(1, LogEnd::default());
    let second = prepare(2, first.end());
    let suffix = vec![*first.header, *second.header];
    let vote = Vote {
        log_view: 3,
        history: 1,
        committed: LogEnd::default(),
        commit_max: 9,
        suffix: suffix.clone(),
        ending: Ending::Torn,
    };
    let log = ViewLog {
        nonce: 5,
        history: 2,
        committed: LogEnd::default(),
        suffix,
    };
    let manifest = StateManifest {
        at: second.end(),
        history: 1,
        first_offset: 2,
        next_offset: 3,
        state: Bytes::from_static(b"state"),
    };
    let kinds = [
        Kind::Prepare(first),
        Kind::PrepareOk { op: 1, checksum: 2 },
        Kind::Commit { commit: 7, last: true },
        Kind::Heard { rests_at: Some(7) },
        Kind::StartViewChange {
            proposed: 4,
            hand_over: true,
        },
        Kind::DoViewChange(Box::new(vote)),
        Kind::StartView(Box::new(log)),
        Kind::RequestStartView { nonce: 1 << 100 },
        Kind::RequestPrepares { from_op: 1, to_op: 9 },
        Kind::RepairPrepare {
            prepare: second,
            committed: true,
        },
        Kind::RangeEvicted { oldest_op: 3 },
        Kind::RequestState,
        Kind::State(Box::new(manifest)),
        Kind::RequestBatches {
            offset: 8,
            until: 90,
            held: vec![1, 2],
        },
        Kind::Batches {
            offset: 8,
            same: vec![3, 4],
            bytes: Bytes::from_static(b"batches"),
        },
    ];
    let message = |kind| Message {
        cluster: 7,
        group: GroupId::METADATA,
        from: 1,
        incarnation: 2,
        view: 3,
        kind,
    };
    let beats: Vec<Beat> = (0..5)
        .map(|view| Beat {
            group: GroupId::METADATA,
            view,
            word: [Word::Heard, Word::Commit(9), Word::Rests(9), Word::Last(9)][view as usize % 4],
        })
        .collect();
    let frames = kinds
        .into_iter()
        .map(|kind| Bytes::from(encode(&message(kind)).concat()));
    frames.chain([encode_beats(7, 1, 2, &beats)]).collect()
}

fn mutate(bytes: &[u8], mix: &mut Mix) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=mix.below(3) {
        let at = CHECKSUM_LEN + mix.below(bytes.len().saturating_sub(CHECKSUM_LEN));
        match mix.below(5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << mix.below(8),
            2 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][mix.below(5)],
            3 if at + 4 <= bytes.len() => {
                let length = [u32::MAX, 0x7fff_ffff, bytes.len() as u32 + 1, 0][mix.below(4)];
                bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            }
            _ => bytes.push(mix.below(256) as u8),
        }
    }
    bytes
}

/// What became of the frame once its checksum fits.
fn verdict(bytes: &[u8]) -> Option<DecodeError> {
    let mut sealed = bytes.to_vec();
    if let Some(content) = bytes.get(CHECKSUM_LEN..) {
        sealed[..CHECKSUM_LEN].copy_from_slice(&xxh3_128(content).to_le_bytes());
    }
    let sealed = Bytes::from(sealed);
    decode(sealed.clone()).err().and(decode_beats(sealed).err())
}

#[test]
fn given_mutated_frames_of_every_kind_when_read_should_be_refused_or_said_again_in_the_same_bytes() {
    let mut refusals = BTreeSet::new();
    let mut taken = 0;
    for (index, frame) in corpus().iter().enumerate() {
        messages(frame);
        assert_eq!(verdict(frame), None, "frame {index} is one that is taken");
        for seed in 0..MUTATIONS {
            let mutated = mutate(frame, &mut Mix(seed << 8 | index as u64));
            messages(&mutated);
            match verdict(&mutated) {
                Some(error) => _ = refusals.insert(error.to_string()),
                None => taken += 1,
            }
        }
    }
    assert!(taken > 100, "some mutations are messages as well: {taken}");
    assert!(refusals.len() >= 4, "mutations reach every check: {refusals:?}");
}
