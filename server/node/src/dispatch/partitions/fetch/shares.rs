//! How the partitions of a fetch share its limits.
//!
//! Every partition is given an even share of the messages and of the bytes; what one does not need goes to the others. So
//! a busy partition gets what the quiet ones leave, and never what they need. Where the shares are too small for a
//! message, only the first in turn is sure to be read; turns go round from fetch to fetch, by partition, and each comes
//! first in time.

use iggy_partition::read::RECORD_MIN;
use std::collections::HashMap;

/// What a partition has, and afterwards what it may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Messages.
    pub count: u64,
    /// Bytes of records.
    pub bytes: u64,
}

/// Shares `total` among those who want so much, evenly: whoever wants less than an even part leaves the rest to others.
fn share_evenly(total: u64, wants: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|at| wants[*at]);
    let mut shares = vec![0; wants.len()];
    let mut left = total;
    for (done, at) in order.iter().enumerate() {
        let sharers = (wants.len() - done) as u64;
        shares[*at] = wants[*at].min(left / sharers);
        left -= shares[*at];
    }
    shares
}

/// What each partition, in turn, may give of `total`. The first may always give a message, while there is one to give.
pub(super) fn shares(total: Share, wants: &[Share]) -> Vec<Share> {
    let mut counts: Vec<u64> = wants.iter().map(|want| want.count).collect();
    let bytes: Vec<u64> = wants.iter().map(|want| want.bytes).collect();
    let sure = total.count.min(1);
    if let Some(first) = counts.first_mut() {
        *first = first.saturating_sub(sure);
    }
    let mut counts = share_evenly(total.count - sure, &counts);
    if let Some(first) = counts.first_mut() {
        *first += sure;
    }
    let bytes = share_evenly(total.bytes, &bytes);
    counts
        .into_iter()
        .zip(bytes)
        .map(|(count, bytes)| Share { count, bytes })
        .collect()
}

/// Whether a share can hold a message at all.
pub(super) fn holds_a_message(share: Share) -> bool {
    share.count > 0 && share.bytes >= RECORD_MIN as u64
}

/// Turns that are remembered on a connection; beyond them, all begin anew.
const TURNS_MAX: usize = 4096;

/// Whose turn it is to be first: the partition that was first longest ago. A reader may ask for some of its partitions now
/// and for others then; each of them has its turn.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Counts the fetches.
    now: u64,
    /// When each partition of each reader was first.
    first: HashMap<Vec<u8>, HashMap<u32, u64>>,
    kept: usize,
}

impl Turns {
    /// Puts the partitions of a reader into the order of their turns.
    pub(super) fn order(&self, reader: &[u8], partitions: &mut [u32]) {
        let turns = self.first.get(reader);
        partitions
            .sort_unstable_by_key(|partition| (turns.and_then(|turns| turns.get(partition).copied()), *partition));
    }

    /// Notes the partition of a reader that was first.
    pub(super) fn note(&mut self, reader: &[u8], partition: u32) {
        if self.kept >= TURNS_MAX {
            self.first.clear();
            self.kept = 0;
        }
        self.now += 1;
        let turns = match self.first.get_mut(reader) {
            Some(turns) => turns,
            None => self.first.entry(reader.to_vec()).or_default(),
        };
        self.kept += usize::from(turns.insert(partition, self.now).is_none());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(count: u64, bytes: u64) -> Share {
        Share { count, bytes }
    }

    #[test]
    fn given_a_busy_partition_when_shared_should_leave_the_quiet_ones_what_they_need() {
        let wants = [share(1_000_000, 1 << 30), share(3, 900), share(1, 400)];
        let shared = shares(share(100, 100_000), &wants);
        assert_eq!(shared, [share(96, 98_700), share(3, 900), share(1, 400)]);
    }

    #[test]
    fn given_busy_partitions_alone_when_shared_should_be_even_and_spend_everything() {
        let wants = [share(500, 50_000); 3];
        let shared = shares(share(100, 10_000), &wants);
        assert_eq!(shared, [share(34, 3_333), share(33, 3_333), share(33, 3_334)]);
    }

    #[test]
    fn given_fewer_messages_than_partitions_when_shared_should_give_the_first_in_turn_one_and_no_more_than_there_are() {
        let wants = [share(500, 50_000), share(2, 700), share(3, 900)];
        for total in 1..6 {
            let shared = shares(share(total, 10_000), &wants);
            assert!(shared[0].count >= 1);
            assert_eq!(shared.iter().map(|share| share.count).sum::<u64>(), total);
        }
    }

    #[test]
    fn given_one_partition_when_shared_should_get_everything_it_wants() {
        assert_eq!(shares(share(10, 10_000), &[share(500, 50_000)]), [share(10, 10_000)]);
        assert_eq!(shares(share(10, 10_000), &[share(2, 700)]), [share(2, 700)]);
        assert!(shares(share(10, 10_000), &[]).is_empty());
    }

    /// Fetches whose limits allow one message each: with any sets of partitions that have something, each partition that
    /// has something long enough is read.
    #[test]
    fn given_shares_too_small_for_two_when_fetched_again_and_again_should_read_every_partition_in_turn() {
        let mut turns = Turns::default();
        let mut read = Vec::new();
        for _ in 0..6 {
            let mut ready = [7, 2, 900];
            turns.order(b"reader", &mut ready);
            // Another reader's turns are its own.
            turns.note(b"another", 2);
            turns.note(b"reader", ready[0]);
            read.push(ready[0]);
        }
        assert_eq!(read, [2, 7, 900, 2, 7, 900]);
    }

    #[test]
    fn given_fetches_of_some_partitions_and_of_others_in_turn_should_read_each_of_them() {
        let mut turns = Turns::default();
        let mut read = [0; 4];
        for _ in 0..10 {
            for mut ready in [[0, 1], [2, 3]] {
                turns.order(b"reader", &mut ready);
                turns.note(b"reader", ready[0]);
                read[ready[0] as usize] += 1;
            }
        }
        assert_eq!(read, [5; 4]);
    }

    #[test]
    fn given_many_readers_when_their_turns_are_kept_should_stay_within_a_bound() {
        let mut turns = Turns::default();
        for reader in 0..3 * TURNS_MAX {
            turns.note(&reader.to_le_bytes(), 1);
            turns.note(b"one", reader as u32);
        }
        let kept: usize = turns.first.values().map(HashMap::len).sum();
        assert!(kept <= TURNS_MAX + 1);
    }
}
