//! Replays the golden vectors, and seeded mutations of them, through every fuzz target.

use std::path::{Path, PathBuf};

use super::TARGETS;

/// A small generator, so that a failure is reproduced by its seed alone.
struct Mix(u64);

impl Mix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn mutate(bytes: &[u8], mix: &mut Mix) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=mix.below(3) {
        let at = mix.below(bytes.len());
        match mix.below(6) {
            0 => bytes.truncate(at),
            1 if !bytes.is_empty() => bytes[at] ^= 1 << mix.below(8),
            2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][mix.below(5)],
            3 if bytes.len() >= 4 => {
                let at = mix.below(bytes.len() - 3);
                let length = [u32::MAX, 0x7fff_ffff, bytes.len() as u32 + 1, 0][mix.below(4)];
                bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            }
            4 => bytes.push(mix.next() as u8),
            _ => {
                let tail = bytes[at..].to_vec();
                bytes.extend_from_slice(&tail);
            }
        }
    }
    bytes
}

fn hex_fields(value: &serde_json::Value, found: &mut Vec<Vec<u8>>) {
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|item| hex_fields(item, found)),
        serde_json::Value::Object(fields) => {
            if let Some(serde_json::Value::String(hex)) = fields.get("hex") {
                let bytes =
                    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hexadecimal"));
                found.push(bytes.collect());
            }
        }
        _ => {}
    }
}

fn json_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the vectors") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            json_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bdd/vectors");
    let mut files = Vec::new();
    json_files(&folder, &mut files);
    files.sort();
    let mut corpus = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a vector file");
        hex_fields(&serde_json::from_str(&text).expect("JSON"), &mut corpus);
    }
    let bodies: Vec<_> = corpus
        .iter()
        .filter(|bytes| bytes.len() > 256)
        .map(|bytes| bytes[256..].to_vec())
        .collect();
    corpus.extend(bodies);
    assert!(corpus.len() > 500, "the corpus was found");
    corpus
}

#[test]
fn given_golden_and_mutated_bytes_when_decoded_should_never_panic() {
    let corpus = corpus();
    for seed in 0..12_u64 {
        for (index, bytes) in corpus.iter().enumerate() {
            let input = if seed == 0 {
                bytes.clone()
            } else {
                mutate(bytes, &mut Mix(seed << 32 | index as u64))
            };
            for (name, target) in TARGETS {
                let outcome = std::panic::catch_unwind(|| target(&input));
                assert!(
                    outcome.is_ok(),
                    "target {name} panicked: seed {seed}, corpus entry {index}, {} bytes",
                    input.len()
                );
            }
        }
    }
}

/// A small generator must produce what the mutations promise, or the test above would prove nothing.
#[test]
fn given_the_mutations_when_applied_should_change_most_inputs() {
    let bytes: Vec<u8> = (0..200).collect();
    let changed = (0..100).filter(|seed| mutate(&bytes, &mut Mix(*seed)) != bytes).count();
    assert!(changed > 95, "{changed} of 100 inputs were changed");
}
