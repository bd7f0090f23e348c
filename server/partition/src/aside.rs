//! Segments that no longer count, and whose batches may still be those of the other members.
//!
//! A member whose directory is damaged, or whose history has ended, takes the state of another one in place of its own.
//! Its segments are put aside under another name: what of them is the same there need not travel.

use bytes::Bytes;
use iggy_journal::FileNumbers;
use iggy_protocol::batch::{BatchError, BatchView};
use iggy_protocol::limits::HEADER_SIZE;
use iggy_storage::{Job, Step};
use xxhash_rust::xxh3::xxh3_128;

/// A segment that was put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aside {
    /// First offset of its batches, if it holds what it held once.
    pub base_offset: u64,
    /// Bytes of its file.
    pub length: u64,
}

pub(crate) fn aside_path(directory: &str, base_offset: u64) -> String {
    format!("{directory}/{base_offset:020}.aside")
}

/// The segment whose file has this name, if it is one that was put aside.
pub(crate) fn named(name: &str) -> Option<u64> {
    name.strip_suffix(".aside")?.parse().ok()
}

impl Aside {
    /// Steps that read `length` bytes from `position` on, or as many as there are.
    pub fn read(&self, directory: &str, position: u64, length: u64, numbers: &mut FileNumbers) -> Job {
        let file = numbers.take();
        let length = length.min(self.length.saturating_sub(position));
        vec![
            Step::Open {
                file,
                path: aside_path(directory, self.base_offset),
                create: false,
            },
            Step::Read {
                file,
                offset: position,
                length: u32::try_from(length).unwrap_or(u32::MAX),
            },
            Step::Close(file),
        ]
    }

    /// Steps that forget it.
    pub fn remove(&self, directory: &str) -> Job {
        vec![Step::Remove(aside_path(directory, self.base_offset))]
    }
}

/// What a batch is known by: the checksum of its header, which covers its frames through their checksum.
pub fn checksum(batch: &[u8]) -> u128 {
    xxh3_128(&batch[..batch.len().min(HEADER_SIZE)])
}

/// The undamaged batches at the start of some bytes of a segment.
#[derive(Debug, Default)]
pub struct Undamaged {
    /// Each with its header, in their order.
    pub batches: Vec<Bytes>,
    /// Bytes looked at: what follows them is the start of a batch.
    pub looked_at: u64,
    /// Bytes from there on that the next batch needs; `None` when what follows is no batch.
    pub needed: Option<u64>,
}

/// Looks for the batches in bytes that begin with one. Those whose content is damaged are left out.
pub fn undamaged(bytes: &Bytes) -> Undamaged {
    let mut found = Undamaged::default();
    let mut position = 0;
    loop {
        match BatchView::split_first_unwalked(&bytes[position..]) {
            Ok((batch, _)) => {
                let length = batch.bytes().len();
                if BatchView::parse(batch.bytes()).and_then(|batch| batch.verify()).is_ok() {
                    found.batches.push(bytes.slice(position..position + length));
                }
                position += length;
            }
            Err(BatchError::Short { needed, .. }) => {
                found.needed = Some(needed);
                break;
            }
            Err(_) => break,
        }
    }
    found.looked_at = position as u64;
    found
}
