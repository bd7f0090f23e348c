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

/// Readers whose turns are remembered; the turns of others begin anew.
const READERS_MAX: usize = 256;

/// Whose turn it is to be first: the next partition after the one that was read last.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    last: HashMap<Vec<u8>, u32>,
}

impl Turns {
    /// Puts the partitions of a reader, sorted, into the order of their turns.
    pub(super) fn order(&self, reader: &[u8], partitions: &mut [u32]) {
        partitions.sort_unstable();
        let last = self.last.get(reader).copied();
        let first = last.map_or(0, |last| partitions.partition_point(|partition| *partition <= last));
        partitions.rotate_left(first % partitions.len().max(1));
    }

    /// Notes the partition of a reader that was read last in its turn.
    pub(super) fn note(&mut self, reader: &[u8], partition: u32) {
        if self.last.len() >= READERS_MAX && !self.last.contains_key(reader) {
            self.last.clear();
        }
        self.last.insert(reader.to_vec(), partition);
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
    fn given_many_readers_when_their_turns_are_kept_should_stay_within_a_bound() {
        let mut turns = Turns::default();
        for reader in 0..10 * READERS_MAX {
            turns.note(&reader.to_le_bytes(), 1);
        }
        assert!(turns.last.len() <= READERS_MAX);
    }
}
