//! What a poll returns does not depend on where the messages lie: in memory, on disk, or on disk after a restart. And it
//! is what the log holds: nothing else, nothing twice, within the limits of the poll.

#[path = "support/partition.rs"]
mod partition;

use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_storage::memory::MemoryDisk;
use partition::{Message, Partition};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum From {
    Offset(u64),
    /// The broker time of this message, and microseconds more.
    Timestamp(prop::sample::Index, u64),
    First,
    Last,
    Next,
}

fn from() -> impl Strategy<Value = From> {
    prop_oneof![
        (0..120_u64).prop_map(From::Offset),
        (any::<prop::sample::Index>(), 0..2_u64).prop_map(|(of, more)| From::Timestamp(of, more)),
        Just(From::First),
        Just(From::Last),
        Just(From::Next),
    ]
}

fn batches() -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::vec(1..400_usize, 1..6), 1..30)
}

/// The messages a poll may return at most, by the log alone, and whether the last limit met was one of bytes.
fn expected(log: &[Message], from: From, count: u32, max_bytes: usize, stored: u64, log_start: u64) -> Vec<Message> {
    let end = log.len() as u64;
    let start = match from {
        From::Offset(offset) => offset,
        From::Timestamp(of, more) => {
            let time = of.get(log).timestamp + more;
            log.iter()
                .find(|message| message.timestamp >= time)
                .map_or(end, |message| message.offset)
        }
        From::First => 0,
        From::Last => end.saturating_sub(u64::from(count)),
        From::Next => stored + 1,
    };
    let start = start.max(log_start).min(end) as usize;
    let mut taken: Vec<Message> = Vec::new();
    let mut bytes = 0;
    for message in &log[start..] {
        let begins = taken.last().is_none_or(|last| last.batch != message.batch);
        let more = message.length + if begins { 256 } else { 0 };
        if taken.len() == count as usize || (bytes + more > max_bytes && !taken.is_empty()) {
            break;
        }
        bytes += more;
        taken.push(message.clone());
    }
    taken
}

proptest! {
    #![proptest_config(ProptestConfig { cases: partition::cases(150), ..ProptestConfig::default() })]

    #[test]
    fn given_any_log_when_polled_from_memory_disk_and_after_a_restart_should_return_the_same_messages(
        batches in batches(),
        polls in prop::collection::vec((from(), 1..40_u32, 300..6_000_usize), 1..20),
        stored in any::<prop::sample::Index>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let disks = [MemoryDisk::new(), MemoryDisk::new()];
        let mut memory = Partition::start(&disks[0], 1 << 20);
        let mut disk = Partition::start(&disks[1], 0);
        for partition in [&mut memory, &mut disk] {
            for lengths in &batches {
                partition.send(lengths);
            }
            let end = partition.log().len();
            partition.store(stored.index(end) as u64);
            if let Some(cut) = &cut {
                partition.cut(cut.index(end) as u64);
            }
        }
        let log = memory.log().to_vec();
        let stored = stored.index(log.len()) as u64;
        let mut restarted = Partition::restart(&disks[1], 0, disk.log().to_vec());
        for (from, count, max_bytes) in polls {
            let log_start = memory.log_start();
            let strategy = match from {
                From::Offset(offset) => PollingStrategy::Offset(offset),
                From::Timestamp(of, more) => PollingStrategy::Timestamp(of.get(&log).timestamp + more),
                From::First => PollingStrategy::First,
                From::Last => PollingStrategy::Last,
                From::Next => PollingStrategy::Next,
            };
            let wanted = expected(&log, from, count, max_bytes, stored, log_start);
            let found = memory.poll(strategy, count, max_bytes);
            // A time before the first batch in memory is looked for on disk.
            if !matches!(from, From::Timestamp(..)) {
                prop_assert_eq!(&found, &wanted, "from memory, {:?}", from);
            }
            let places = [
                ("memory", &mut memory),
                ("disk", &mut disk),
                ("disk after a restart", &mut restarted),
            ];
            for (place, partition) in places {
                let found = partition.poll(strategy, count, max_bytes);
                // A reply from disk may end with a segment; the next poll goes on there.
                prop_assert!(wanted.starts_with(&found), "from {}, {:?}: {:?} instead of {:?}", place, from, found, wanted);
                prop_assert!(wanted.is_empty() || !found.is_empty(), "from {}, {:?}: nothing", place, from);
            }
        }
    }
}

#[test]
fn given_a_message_above_the_byte_limit_when_it_is_the_first_should_come_alone() {
    let disk = MemoryDisk::new();
    let mut partition = Partition::start(&disk, 1 << 20);
    partition.send(&[5_000, 10, 10]);
    assert_eq!(partition.poll(PollingStrategy::First, 10, 400).len(), 1);
    assert_eq!(partition.poll(PollingStrategy::Offset(1), 10, 600).len(), 2);
}
