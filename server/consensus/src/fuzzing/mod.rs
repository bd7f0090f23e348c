//! What the fuzz target runs, so that a test can replay seeded mutations through the same code.
//!
//! A frame that a fuzzer has changed never has the right checksum, and would be refused before anything of it is read. So
//! the bytes are tried as they are, and sealed again.

#[cfg(test)]
mod corpus_tests;

use crate::codec::{decode, decode_beats, encode, encode_beats};
use crate::message::Message;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

/// Bytes of the checksum at the start of every frame.
const CHECKSUM_LEN: usize = 16;

/// Reads bytes as every kind of frame. What is taken must be said in the same bytes again.
///
/// # Panics
///
/// When a frame that was taken is not the one that its message is written as.
pub fn messages(bytes: &[u8]) {
    read(Bytes::copy_from_slice(bytes));
    if let Some(content) = bytes.get(CHECKSUM_LEN..) {
        let mut sealed = xxh3_128(content).to_le_bytes().to_vec();
        sealed.extend_from_slice(content);
        read(Bytes::from(sealed));
    }
}

fn read(frame: Bytes) {
    if let Ok(message) = decode(frame.clone()) {
        let again = Bytes::from(encode(&message).concat());
        assert_eq!(frame, again, "a message is written in one way alone");
    }
    let Ok(beats) = decode_beats(frame) else { return };
    let Some(first) = beats.first() else { return };
    let said: Vec<_> = beats.iter().filter_map(Message::as_beat).collect();
    assert_eq!(said.len(), beats.len(), "only what is a heartbeat travels as one");
    let again = decode_beats(encode_beats(first.cluster, first.from, first.incarnation, &said));
    assert_eq!(again, Ok(beats), "heartbeats are what they were");
}
