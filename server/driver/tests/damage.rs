//! Damage at rest, disks that fail, and what is dropped on purpose.

#[path = "support/partition.rs"]
mod partition;

use iggy_driver::PartitionEvent;
use iggy_metadata::PartitionKey;
use iggy_partition::Settings;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_storage::image::Image;
use iggy_storage::memory::MemoryDisk;
use iggy_storage::{IoToken, LaneId, Step, Storage};
use partition::{KEY, Message, Partition, path, settings};
use proptest::prelude::*;

/// A partition of twenty batches in several segments, whose process has just crashed.
fn written() -> (MemoryDisk, Vec<Message>) {
    let disk = MemoryDisk::new();
    let mut partition = Partition::start(&disk, 0);
    for batch in 0..20 {
        assert!(partition.send(&[100 + batch * 7, 200, 30]));
    }
    (disk, partition.log().to_vec())
}

/// All that can be read, or `None` when some read is refused.
fn read_all(partition: &mut Partition) -> Option<Vec<Message>> {
    let mut log: Vec<Message> = Vec::new();
    loop {
        let from = PollingStrategy::Offset(log.len() as u64);
        match partition.try_poll(from, 1_000, 1 << 18) {
            Ok(found) if found.is_empty() => return Some(log),
            Ok(found) => log.extend(found),
            Err(_) => return None,
        }
    }
}

fn refusal(partition: &Partition) -> Option<String> {
    partition.events.iter().find_map(|event| match event {
        PartitionEvent::Refused(_, error) => Some(error.to_string()),
        _ => None,
    })
}

fn files(disk: &MemoryDisk, suffix: &str) -> Vec<(String, u64)> {
    let entries = disk.list(&path("")[..path("").len() - 1]).expect("a memory disk lists");
    let wanted = entries.into_iter().filter(|entry| entry.name.contains(suffix));
    wanted.map(|entry| (path(&entry.name), entry.length)).collect()
}

fn remove(disk: &MemoryDisk, paths: Vec<String>) {
    let mut storage = disk.storage(0);
    storage.submit(LaneId(0), IoToken(0), paths.into_iter().map(Step::Remove).collect());
    while storage.run_one().is_some() {}
}

proptest! {
    #![proptest_config(ProptestConfig { cases: partition::cases(300), ..ProptestConfig::default() })]

    /// Whatever bit turns, nobody reads other bytes than were sent, and nothing that a later write proves goes missing
    /// in silence: the partition is refused with the file named, or a read is.
    /// S20.
    #[test]
    fn given_any_bit_that_turned_when_restarted_should_refuse_or_serve_what_was_sent(
        file in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let (disk, log) = written();
        let files: Vec<_> = files(&disk, "").into_iter().filter(|(_, length)| *length > 0).collect();
        let (file, length) = file.get(&files);
        prop_assert!(disk.flip_bit(file, at.index(*length as usize) as u64, bit));
        let mut partition = Partition::restart(&disk, 0, log.clone());
        if let Some(text) = refusal(&partition) {
            prop_assert!(text.contains(&path("")), "{} does not name a file", text);
            return Ok(());
        }
        if let Some(found) = read_all(&mut partition) {
            let differs = found.iter().zip(&log).find(|(found, sent)| found != sent);
            prop_assert!(differs.is_none() && found.len() <= log.len(), "{:?} of {} messages, after {}", differs, found.len(), file);
            // The last batch alone has no later write that proves it.
            prop_assert!(found.len() + 3 >= log.len(), "{} of {} messages, after {}", found.len(), log.len(), file);
        }
    }
}

#[test]
fn given_a_damaged_batch_that_the_journal_names_when_restarted_should_name_file_and_byte() {
    let (disk, log) = written();
    let (journal, _) = files(&disk, "journal.").pop().expect("a journal");
    assert!(disk.flip_bit(&journal, 70, 1));
    let partition = Partition::restart(&disk, 0, log);
    let text = refusal(&partition).expect("the partition is refused");
    assert!(text.starts_with(&format!("{journal} is damaged at byte 0")), "{text}");
}

#[test]
fn given_a_sealed_segment_with_a_broken_header_and_no_index_when_restarted_should_name_file_and_byte() {
    let (disk, log) = written();
    let (segment, _) = files(&disk, ".log").remove(0);
    let (index, length) = files(&disk, ".index").remove(0);
    assert!((0..length).all(|at| disk.flip_bit(&index, at, 3)));
    // The length of the second batch.
    let second = 256 + 3 * 48 + 330;
    assert!((second..second + 64).all(|at| disk.flip_bit(&segment, at, 5)));
    let partition = Partition::restart(&disk, 0, log);
    let text = refusal(&partition).expect("the partition is refused");
    assert!(
        text.starts_with(&format!("{segment} is damaged at byte {second}")),
        "{text}"
    );
}

#[test]
fn given_a_sealed_segment_that_is_gone_when_restarted_should_name_what_is_missing() {
    for (at, said) in [(0, "is missing"), (1, "ends before offset")] {
        let (disk, log) = written();
        let segments = files(&disk, ".log");
        assert!(segments.len() > 2);
        let log_file = &segments[at].0;
        remove(&disk, vec![log_file.clone(), log_file.replace(".log", ".index")]);
        let text = refusal(&Partition::restart(&disk, 0, log)).expect("the partition is refused");
        assert!(text.starts_with(&format!("{} {said}", segments[0].0)), "{text}");
    }
}

/// D7.
#[test]
fn given_indexes_that_are_damaged_when_restarted_should_be_built_again_from_their_segments() {
    let (disk, log) = written();
    let indexes = files(&disk, ".index");
    assert!(indexes.len() > 2);
    for (index, length) in indexes {
        assert!(disk.flip_bit(&index, length / 2, 0));
    }
    let mut partition = Partition::restart(&disk, 0, log.clone());
    assert_eq!(read_all(&mut partition), Some(log));
}

#[test]
fn given_a_batch_longer_than_its_segment_when_read_should_be_refused_and_not_read_for_ever() {
    let (disk, log) = written();
    let mut partition = Partition::restart(&disk, 0, log);
    let (segment, _) = files(&disk, ".log").remove(0);
    // Turns a high bit of the first batch's length under the running partition.
    let length_at = std::mem::offset_of!(iggy_protocol::batch::BatchHeader, batch_length) as u64;
    assert!(disk.flip_bit(&segment, length_at + 1, 6));
    assert!(partition.try_poll(PollingStrategy::First, 10, 1 << 18).is_err());
}

/// D4.
#[test]
fn given_a_failed_sync_when_written_again_should_take_nothing_more_and_still_serve_reads() {
    let (disk, log) = written();
    let mut partition = Partition::restart(&disk, 0, log.clone());
    disk.fail_next_sync(1);
    assert!(!partition.send(&[10]));
    assert!(!partition.send(&[10]) && !partition.store(1));
    assert_eq!(read_all(&mut partition), Some(log));
    assert!(
        matches!(partition.events.as_slice(), [PartitionEvent::Trouble(_, text)] if text.contains("no more writes"))
    );
}

/// G1.
#[test]
fn given_a_fenced_partition_when_another_is_written_should_go_on() {
    let (disk, log) = written();
    let mut partition = Partition::restart(&disk, 0, log);
    let other = PartitionKey { partition_id: 1, ..KEY };
    partition.open(other, settings());
    disk.fail_next_sync(1);
    assert!(!partition.send(&[10]));
    partition.key = other;
    assert!(partition.send(&[10]) && partition.send(&[20, 30]));
    let read = partition.poll(PollingStrategy::First, 10, 10_000);
    assert_eq!(read.len(), 3);
    partition.key = KEY;
    assert!(!partition.send(&[10]));
}

#[test]
fn given_a_full_disk_when_room_comes_back_should_go_on_after_a_restart() {
    let (disk, log) = written();
    let mut partition = Partition::restart(&disk, 0, log.clone());
    disk.fill_after(Some(100));
    assert!(!partition.send(&[500]));
    disk.fill_after(None);
    let mut partition = Partition::restart(&disk, 0, log.clone());
    // The request that failed keeps its number, as its sender would ask again.
    assert!(partition.send(&[500]) && partition.send(&[20]));
    let found = read_all(&mut partition).expect("all can be read");
    assert_eq!(found.len(), log.len() + 2);
    assert!(found.starts_with(&log));
}

#[test]
fn given_bounds_when_retained_should_drop_sealed_segments_oldest_first_and_never_the_active_one() {
    let (disk, log) = written();
    let bounded = Settings {
        size_max: 6_000,
        ..settings()
    };
    let mut partition = Partition::with(&disk, 0, log.clone(), bounded);
    let before = files(&disk, ".log").len();
    partition.retain(1);
    let start = partition.log_start();
    let left = files(&disk, ".log");
    let sealed: u64 = left.iter().rev().skip(1).map(|(_, length)| length).sum();
    assert!(start > 0 && left.len() < before && sealed <= 6_000);
    let expiring = Settings {
        message_expiry: 1_000,
        ..settings()
    };
    let mut partition = Partition::with(&disk, 0, log.clone(), expiring);
    assert_eq!(partition.log_start(), start);
    partition.retain(1_000_000_000);
    let left = files(&disk, ".log");
    assert_eq!(left.len(), 1, "the active segment stays");
    assert!(left[0].0.ends_with(&format!("{:020}.log", partition.log_start())));
    assert!(partition.send(&[5]));
    let mut partition = Partition::restart(&disk, 0, log);
    let start = partition.log_start();
    assert!(!partition.poll(PollingStrategy::Offset(start), 1, 1_000).is_empty());
    assert!(files(&disk, ".index").len() <= left.len());
}
