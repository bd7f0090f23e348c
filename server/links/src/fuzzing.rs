//! What the fuzz target runs, so that a test can replay bytes through the same code.

use crate::framing::{self, FrameReader};
use crate::handshake::{CHALLENGE_LEN, Challenge, FINISH_LEN, HELLO_LEN, Hello, PROOF_LEN, decode_finish, finish};
use crate::preamble::Preamble;
use std::time::Duration;

/// Most bytes of a frame.
const LIMIT: u32 = 1 << 16;

/// Reads bytes as everything a stranger may send to a node. What is taken must be said in the same bytes again.
///
/// # Panics
///
/// When something that was taken is not what it is written as.
pub fn bytes(bytes: &[u8]) {
    if let Some(chunk) = bytes.first_chunk()
        && let Ok(preamble) = Preamble::decode(*chunk)
    {
        assert_eq!(preamble.encode(), *chunk);
    }
    if let Some(chunk) = bytes.first_chunk::<{ HELLO_LEN - PROOF_LEN }>()
        && let Ok(hello) = Hello::decode(chunk)
    {
        assert_eq!(hello.encode(), *chunk);
    }
    if let Some(chunk) = bytes.first_chunk::<{ CHALLENGE_LEN - PROOF_LEN }>()
        && let Ok(challenge) = Challenge::decode(chunk)
    {
        assert_eq!(challenge.encode(), *chunk);
    }
    if let Some(chunk) = bytes.first_chunk::<{ FINISH_LEN - PROOF_LEN }>()
        && decode_finish(chunk).is_ok()
    {
        assert_eq!(finish(), *chunk);
    }
    frames(bytes);
}

fn frames(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    // Without threads and sockets nothing of it can fail.
    let Ok(runtime) = runtime else { return };
    let said = runtime.block_on(async {
        let mut reader = FrameReader::new(bytes, 512, LIMIT, Duration::from_secs(1));
        let mut said = Vec::new();
        while let Ok(Some((class, frame))) = reader.next().await {
            said.extend_from_slice(&framing::prefix(class, frame.len()));
            said.extend_from_slice(&frame);
        }
        said
    });
    assert!(bytes.starts_with(&said), "frames are what was sent, in order");
}

#[cfg(test)]
mod tests {
    use super::bytes;
    use crate::framing::{Class, prefix};
    use crate::handshake::{Hello, Release, finish};
    use crate::preamble::Preamble;

    /// A small generator, so that a failure is reproduced by its seed alone.
    fn next(state: &mut u64, limit: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 33) as usize % limit.max(1)
    }

    #[test]
    fn given_changed_bytes_of_every_kind_when_read_should_refuse_or_repeat_them() {
        let hello = Hello {
            dialer: 0,
            listener: 1,
            link: 0,
            links: 1,
            nodes: 3,
            proven: false,
            cluster: 7,
            incarnation: 1,
            release: Release::of("0.1.0"),
            nonce: [9; 32],
        };
        let frames = [&prefix(Class::Message, 3)[..], b"abc", &prefix(Class::Beats, 0)].concat();
        let corpus: [&[u8]; 4] = [
            &Preamble { dialer: 0, link: 1 }.encode(),
            &hello.encode(),
            &finish(),
            &frames,
        ];
        let mut state = 1;
        for seed in corpus {
            for _ in 0..500 {
                let mut changed = seed.to_vec();
                for _ in 0..=next(&mut state, 3) {
                    let place = next(&mut state, changed.len());
                    changed[place] ^= 1 << next(&mut state, 8);
                }
                changed.truncate(next(&mut state, changed.len() + 1));
                bytes(&changed);
            }
            bytes(seed);
        }
    }
}
