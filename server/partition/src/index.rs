//! The sparse index of a segment: derived, never evidence.
//!
//! In memory it says where to start reading for an offset or a time. A sealed segment's index is also kept beside it, so
//! that a restart need not walk the segment; when the file is missing, torn or does not fit the segment, it is rebuilt.

use xxhash_rust::xxh3::xxh3_128;
use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Log bytes between two entries, at least.
pub const GRANULARITY: u64 = 64 * 1024;
const MAGIC: [u8; 8] = *b"SEGINDEX";

/// A batch that can be found without walking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// Its first offset.
    pub offset: U64,
    /// Its broker time in microseconds since the epoch.
    pub timestamp: U64,
    /// Its first byte in the segment.
    pub position: U64,
}

/// What is known of the batches of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    entries: Vec<Entry>,
    /// Bytes covered.
    pub size: u64,
    /// Offset after the last message; the segment's base offset when there is none.
    pub end_offset: u64,
    /// Broker time of the last batch, 0 when there is none.
    pub last_timestamp: u64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    checksum: U128,
    magic: [u8; 8],
    base_offset: U64,
    end_offset: U64,
    last_timestamp: U64,
    size: U64,
    entries: U32,
    reserved: U32,
}

impl Index {
    /// The index of an empty segment.
    pub fn new(base_offset: u64) -> Self {
        Self {
            end_offset: base_offset,
            ..Self::default()
        }
    }

    /// Notes a batch appended at the end.
    pub fn push(&mut self, offset: u64, timestamp: u64, messages: u32, length: u64) {
        let due = self
            .entries
            .last()
            .is_none_or(|last| self.size - last.position.get() >= GRANULARITY);
        if due {
            self.entries.push(Entry {
                offset: U64::new(offset),
                timestamp: U64::new(timestamp),
                position: U64::new(self.size),
            });
        }
        self.size += length;
        self.end_offset = offset + u64::from(messages);
        self.last_timestamp = timestamp;
    }

    /// Takes back what was noted after a position that the index once ended at.
    pub fn cut(&mut self, size: u64, end_offset: u64, last_timestamp: u64) {
        let kept = self.entries.partition_point(|entry| entry.position.get() < size);
        self.entries.truncate(kept);
        self.size = size;
        self.end_offset = end_offset;
        self.last_timestamp = last_timestamp;
    }

    /// Where to start reading for `offset`.
    pub fn position_of(&self, offset: u64) -> u64 {
        self.before(|entry| entry.offset.get() <= offset)
    }

    /// Where to start reading for the first batch at or after `timestamp`.
    pub fn position_at(&self, timestamp: u64) -> u64 {
        // Entries are sparse: the wanted batch may lie between an earlier entry and this one.
        self.before(|entry| entry.timestamp.get() < timestamp)
    }

    fn before(&self, holds: impl FnMut(&Entry) -> bool) -> u64 {
        let after = self.entries.partition_point(holds);
        after.checked_sub(1).map_or(0, |at| self.entries[at].position.get())
    }

    /// The bytes of an index file.
    pub fn encode(&self, base_offset: u64) -> Vec<u8> {
        let mut head = Head {
            checksum: U128::new(0),
            magic: MAGIC,
            base_offset: U64::new(base_offset),
            end_offset: U64::new(self.end_offset),
            last_timestamp: U64::new(self.last_timestamp),
            size: U64::new(self.size),
            entries: U32::new(self.entries.len() as u32),
            reserved: U32::new(0),
        };
        let mut bytes = Vec::with_capacity(size_of::<Head>() + self.entries.len() * size_of::<Entry>());
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(self.entries.as_slice().as_bytes());
        head.checksum = U128::new(xxh3_128(&bytes[16..]));
        bytes[..16].copy_from_slice(head.checksum.as_bytes());
        bytes
    }

    /// Reads an index file of any segment; for [`Bug::TrustIndex`](iggy_journal::planted::Bug::TrustIndex) alone.
    pub(crate) fn decode_any(bytes: &[u8]) -> Option<Self> {
        let (head, _) = Head::read_from_prefix(bytes).ok()?;
        Self::decode(bytes, head.base_offset.get(), head.size.get())
    }

    /// Reads an index file; `None` unless it is whole and fits a segment of `size` bytes from `base_offset`.
    pub fn decode(bytes: &[u8], base_offset: u64, size: u64) -> Option<Self> {
        let (head, rest) = Head::read_from_prefix(bytes).ok()?;
        let fits = head.magic == MAGIC
            && head.base_offset.get() == base_offset
            && head.size.get() == size
            && head.entries.get() as usize * size_of::<Entry>() == rest.len()
            && head.checksum.get() == xxh3_128(&bytes[16..]);
        let entries = <[Entry]>::ref_from_bytes(rest).ok()?;
        fits.then(|| Self {
            entries: entries.to_vec(),
            size,
            end_offset: head.end_offset.get(),
            last_timestamp: head.last_timestamp.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        let mut index = Index::new(100);
        for batch in 0..10 {
            index.push(100 + batch * 5, 1000 + batch, 5, GRANULARITY / 2);
        }
        index
    }

    #[test]
    fn given_offsets_and_times_when_looked_up_should_start_at_or_before_them() {
        let index = index();
        assert_eq!(index.end_offset, 150);
        assert_eq!(index.position_of(100), 0);
        assert_eq!(index.position_of(112), GRANULARITY);
        assert_eq!(index.position_of(9999), 4 * GRANULARITY);
        assert_eq!(index.position_at(0), 0);
        assert_eq!(index.position_at(1003), GRANULARITY);
    }

    #[test]
    fn given_an_encoded_index_when_read_should_be_the_same_and_refuse_any_damage() {
        let index = index();
        let bytes = index.encode(100);
        assert_eq!(Index::decode(&bytes, 100, index.size).as_ref(), Some(&index));
        assert_eq!(Index::decode(&bytes, 100, index.size + 1), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Index::decode(&damaged, 100, index.size), None, "byte {at}");
            assert_eq!(Index::decode(&bytes[..at], 100, index.size), None, "cut at {at}");
        }
    }
}
