//! Collecting a reply from chunks of a segment: wherever a chunk ends, the same messages come out.

use bytes::Bytes;
use iggy_partition::read::{Gathered, Limits};
use iggy_partition::tail::{StoredBatch, Tail};
use iggy_protocol::batch::{Records, stamp};
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::limits::HEADER_SIZE;
use proptest::prelude::*;

const TIME: u64 = 1_000;
const PLENTY: Limits = Limits {
    count: 1_000,
    max_bytes: 1 << 20,
};

/// A segment from offset `first` on, with batches of these payload lengths a microsecond apart, and the batches alone.
fn segment(first: u64, batches: &[Vec<usize>]) -> (Bytes, Vec<StoredBatch>) {
    let mut bytes = Vec::new();
    let mut stored = Vec::new();
    let mut offset = first;
    for (number, lengths) in batches.iter().enumerate() {
        let mut builder = BatchBuilder::new();
        for (place, length) in lengths.iter().enumerate() {
            let id = u128::from(offset) + place as u128 + 1;
            builder.push(id, &vec![7; *length], &[], 5).expect("a message");
        }
        let mut batch = builder.finish(None).expect("a batch");
        let timestamp = TIME + number as u64;
        stamp(&mut batch, 0, offset, timestamp).expect("a batch of our own");
        let batch = batch.freeze();
        stored.push(StoredBatch {
            base_offset: offset,
            last_offset: offset + lengths.len() as u64 - 1,
            timestamp,
            header: batch.slice(..HEADER_SIZE),
            frames: batch.slice(HEADER_SIZE..),
        });
        offset += lengths.len() as u64;
        bytes.extend_from_slice(&batch);
    }
    (bytes.into(), stored)
}

/// Offsets in the pieces of a reply, every checksum proved.
fn offsets(gathered: &Gathered) -> Vec<u64> {
    let reply = gathered.pieces.concat();
    assert_eq!(reply.len(), gathered.bytes);
    let mut found = Vec::new();
    for batch in Records::new(&reply) {
        let batch = batch.expect("a well-formed batch");
        batch.verify().expect("intact checksums");
        found.extend(batch.first_offset()..=batch.last_offset());
    }
    assert_eq!(found.len(), gathered.messages as usize);
    found
}

proptest! {
    #[test]
    fn given_any_cut_into_chunks_when_gathered_should_give_what_memory_gives(
        first in 0..1_000_u64,
        batches in prop::collection::vec(prop::collection::vec(1..300_usize, 1..5), 1..12),
        skip in 0..20_u64,
        count in 1..30_u32,
        max_bytes in 0..4_000_usize,
        oversize in any::<bool>(),
        uncommitted in 0..4_u64,
        chunk in 1..2_000_usize,
    ) {
        let (bytes, stored) = segment(first, &batches);
        let written = stored.last().map_or(first, |batch| batch.last_offset + 1);
        let end = written.saturating_sub(uncommitted).max(first);
        let limits = Limits { count, max_bytes };
        let mut memory = Gathered::new(first + skip, limits, oversize);
        for batch in stored.iter().filter(|batch| batch.last_offset >= first + skip) {
            if memory.is_full() || memory.next_offset() >= end {
                break;
            }
            memory.take_stored(batch, end).unwrap();
        }
        let mut disk = Gathered::new(first + skip, limits, oversize);
        let (mut at, mut length) = (0, chunk);
        while at < bytes.len() && !disk.is_full() && disk.next_offset() < end {
            let piece = bytes.slice(at..(at + length).min(bytes.len()));
            let walked = disk.take_chunk(&piece, end, None, true).unwrap();
            prop_assert!(walked.passed > 0 || walked.needs.is_some() || disk.is_full());
            at += walked.passed;
            length = walked.needs.map_or(chunk, |needs| needs as usize).max(chunk);
        }
        let found = offsets(&disk);
        prop_assert_eq!(&found, &offsets(&memory));
        prop_assert!(found.iter().all(|offset| (first + skip..end).contains(offset)));
        prop_assert!(found.len() <= count as usize);
        prop_assert!(disk.bytes <= max_bytes || (oversize && found.len() == 1));
        prop_assert!(found.is_empty() || found[0] == first + skip);
        prop_assert!(!oversize || !found.is_empty() || first + skip >= end);
    }

    #[test]
    fn given_a_time_when_gathered_should_start_at_the_first_batch_of_it_or_later(
        batches in prop::collection::vec(prop::collection::vec(1..50_usize, 1..4), 1..10),
        time in 0..12_u64,
    ) {
        let (bytes, stored) = segment(0, &batches);
        let end = stored.last().unwrap().last_offset + 1;
        let mut gathered = Gathered::new(0, PLENTY, true);
        gathered.take_chunk(&bytes, end, Some(TIME + time), true).unwrap();
        let wanted = stored.iter().find(|batch| batch.timestamp >= TIME + time).map(|batch| batch.base_offset);
        prop_assert_eq!(offsets(&gathered).first().copied(), wanted);
    }

    #[test]
    fn given_a_tail_when_asked_should_hold_the_newest_batches_without_holes(
        batches in prop::collection::vec(prop::collection::vec(1..300_usize, 1..4), 1..20),
        bytes_max in 0..4_000_usize,
    ) {
        let (_, stored) = segment(10, &batches);
        let mut tail = Tail::new(bytes_max);
        for batch in &stored {
            tail.push(batch.clone());
        }
        let start = tail.start().unwrap();
        let kept: Vec<u64> = tail.from(start).unwrap().map(|batch| batch.base_offset).collect();
        let newest: Vec<u64> = stored.iter().map(|batch| batch.base_offset).filter(|base| *base >= start).collect();
        prop_assert_eq!(kept, newest);
        prop_assert!(start == 10 || tail.from(start - 1).is_none());
        for batch in stored.iter().filter(|batch| batch.base_offset > start) {
            prop_assert_eq!(tail.offset_at(batch.timestamp), Some(batch.base_offset));
        }
    }
}

#[test]
fn given_a_batch_out_of_place_when_gathered_should_be_damage_and_not_a_gap() {
    let (bytes, stored) = segment(0, &[vec![10, 10], vec![10], vec![10]]);
    let end = stored.last().unwrap().last_offset + 1;
    // The offset of the second batch turned: it looks older, and would be passed over.
    let offset_at = stored[0].len() + std::mem::offset_of!(iggy_protocol::batch::BatchHeader, base_offset);
    let mut turned = bytes.to_vec();
    turned[offset_at] = 0;
    let turned = Bytes::from(turned);
    for from_timestamp in [None, Some(0)] {
        let mut gathered = Gathered::new(0, PLENTY, true);
        assert!(gathered.take_chunk(&turned, end, from_timestamp, false).is_err());
    }
}
