//! The bytes of messages.

use crate::harness::{Cluster, GROUP, message};
use bytes::Bytes;
use iggy_consensus::codec::{BEAT_LEN, DecodeError, beats_sender, decode, decode_beats, encode, encode_beats};
use iggy_consensus::message::{Beat, Kind, Message, StateManifest, ViewLog, Word};
use iggy_consensus::vote::Vote;
use iggy_consensus::{Ending, LogEnd};

fn all() -> Vec<Message> {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a body");
    cluster.write(b"");
    let prepare = |op| cluster.replica(0).prepare(op).unwrap().clone();
    let suffix = vec![*prepare(1).header, *prepare(2).header];
    let end = LogEnd::default();
    let vote = Vote {
        log_view: 3,
        history: 1,
        committed: end,
        commit_max: 9,
        suffix: suffix.clone(),
        ending: Ending::Torn,
    };
    let log = ViewLog {
        nonce: 5,
        history: 2,
        committed: end,
        suffix,
    };
    let manifest = StateManifest {
        at: prepare(2).end(),
        history: 1,
        first_offset: 2,
        next_offset: 3,
        state: Bytes::from_static(b"state"),
    };
    let kinds = [
        Kind::Prepare(prepare(1)),
        Kind::Prepare(prepare(2)),
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
            prepare: prepare(1),
            committed: true,
        },
        Kind::RangeEvicted { oldest_op: 3 },
        Kind::RequestState,
        Kind::State(Box::new(manifest)),
        Kind::RequestBatches {
            offset: 8,
            until: u64::MAX,
            held: vec![1, 2],
        },
        Kind::Batches {
            offset: 8,
            same: vec![3, 4],
            bytes: Bytes::from_static(b"batches"),
        },
    ];
    kinds.into_iter().map(|kind| message(1, 3, kind)).collect()
}

fn bytes(message: &Message) -> Bytes {
    Bytes::from(encode(message).concat())
}

#[test]
fn given_every_kind_of_message_when_encoded_and_decoded_should_be_the_same() {
    for message in all() {
        assert_eq!(decode(bytes(&message)), Ok(message));
    }
}

/// S13.
#[test]
fn given_any_flipped_bit_when_decoded_should_be_refused() {
    for message in all() {
        let whole = bytes(&message);
        for place in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[place] ^= 1 << (place % 8);
            assert!(
                decode(Bytes::from(damaged)).is_err(),
                "{} byte {place}",
                message.kind.name()
            );
        }
    }
}

#[test]
fn given_any_cut_when_decoded_should_be_refused() {
    for message in all() {
        let whole = bytes(&message);
        for length in 0..whole.len() {
            assert!(
                decode(whole.slice(..length)).is_err(),
                "{} at {length}",
                message.kind.name()
            );
        }
    }
}

/// G4.
#[test]
fn given_heartbeats_of_many_groups_when_sent_to_one_peer_should_need_at_most_40_bytes_each() {
    let beats: Vec<Beat> = (0..1000)
        .map(|number| Beat {
            group: GROUP,
            view: number,
            word: match number % 4 {
                0 => Word::Heard,
                1 => Word::Commit(u64::from(number)),
                2 => Word::Rests(u64::from(number)),
                _ => Word::Last(u64::from(number)),
            },
        })
        .collect();
    let one = encode_beats(1, 2, 3, &beats[..1]).len();
    let all = encode_beats(1, 2, 3, &beats);
    assert!((all.len() - one) / 999 <= 40 && BEAT_LEN <= 40);
    let messages = decode_beats(all).unwrap();
    let again: Vec<Beat> = messages.iter().map(|message| message.as_beat().unwrap()).collect();
    assert_eq!(again, beats);
    assert!(
        messages
            .iter()
            .all(|message| (message.cluster, message.from, message.incarnation) == (1, 2, 3))
    );
}

#[test]
fn given_a_count_of_heartbeats_that_is_not_there_when_decoded_should_be_refused() {
    let beat = Beat {
        group: GROUP,
        view: 1,
        word: Word::Heard,
    };
    let frame = encode_beats(1, 2, 3, &[beat]);
    assert_eq!(beats_sender(&frame), Some((2, 3)));
    assert_eq!(beats_sender(&encode_beats(1, 4, 5, &[])), Some((4, 5)));
    assert!(decode_beats(frame.slice(..frame.len() - 1)).is_err());
    assert_eq!(
        decode_beats(Bytes::new()),
        Err(DecodeError::Short { needed: 16, found: 0 })
    );
}
