//! What a fetch knows of the partitions it waits for.
//!
//! A fetch reads many partitions, which may lie on several shards. Each of them counts into one tally what it has, and
//! goes on counting as messages come; the fetch hears of it once, when there is enough for a reply. So a fetch that waits
//! for a thousand partitions costs nothing until one of them gets messages, and then no more than an addition.
//!
//! Faults tolerated: shards count in any order, late, twice, or never. What is counted is never lost: whoever brings the
//! sum over what was asked says so.

use iggy_partition::operation::ConsumerKey;
use iggy_protocol::context::PartitionContext;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::polling_strategy::PollingStrategy;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names a waiting fetch within the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(pub u64);

/// One partition of a fetch, as it reaches the partition.
#[derive(Clone, Debug)]
pub struct Watching {
    /// The fetch.
    pub watch: WatchId,
    /// Place of the partition in the tally.
    pub place: usize,
    /// Where counts go.
    pub tally: Arc<Tally>,
    /// Who reads; a group is resolved to its number.
    pub consumer: ConsumerKey,
    /// Where to start: at an offset, or after the stored one.
    pub strategy: PollingStrategy,
    /// Whether to go on counting while there is not enough.
    pub waits: bool,
    /// Metadata position the request was resolved at; part of the reply's context.
    pub metadata_op: u64,
}

/// What one partition has for a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Offset at which its read starts.
    pub start: u64,
    /// Offset of its newest message.
    pub current_offset: u64,
    /// Messages from `start` on.
    pub messages: u64,
    /// Bytes of their records, or somewhat more when they are not in memory.
    pub bytes: u64,
    /// Context of the reply.
    pub context: PartitionContext,
}

/// The state of one partition of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing is known yet.
    Open,
    /// It has this much.
    Counted(Counted),
    /// It cannot be read.
    Refused(ErrorCode),
}

/// What ends the wait of a fetch.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Messages of all partitions together.
    pub messages: u64,
    /// Bytes of records of all partitions together.
    pub bytes: u64,
    /// Bytes of records of each partition at most, in the order of their places.
    pub bytes_each: Vec<u64>,
}

/// See the module's page.
pub struct Tally {
    wanted: Wanted,
    sums: Mutex<Sums>,
    wake: Box<dyn Fn() + Send + Sync>,
}

struct Sums {
    places: Vec<Place>,
    /// Places that are open.
    open: usize,
    /// Places that are not refused.
    live: usize,
    /// Bytes that all live places may give together.
    room: u64,
    messages: u64,
    bytes: u64,
    /// A shard had no room for the fetch to wait.
    no_room: bool,
    /// A shard goes on counting.
    watched: bool,
    /// There was enough once. It stays so whatever becomes of what was counted: partitions that came later count no longer.
    ready: bool,
    /// The fetch has ended.
    closed: bool,
}

/// What a fetch does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Some partitions have not counted yet.
    Counting,
    /// All have counted; there is not enough yet.
    Short,
    /// There is enough, or nothing to wait for.
    Ready,
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tally")
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

impl Tally {
    /// A tally of as many places as `wanted` has byte limits. `wake` is called, from any thread, after
    /// [`progress`](Self::progress) has changed; it must not call back.
    pub fn new(wanted: Wanted, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let places = wanted.bytes_each.len();
        let room = wanted
            .bytes_each
            .iter()
            .fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        Self {
            wanted,
            sums: Mutex::new(Sums {
                places: vec![Place::Open; places],
                open: places,
                live: places,
                room,
                messages: 0,
                bytes: 0,
                no_room: false,
                watched: false,
                ready: places == 0,
                closed: false,
            }),
            wake: Box::new(wake),
        }
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        // Nothing panics while it is held.
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a partition has, the first time or again. True when the fetch need not wait any longer.
    pub fn count(&self, place: usize, counted: Counted) -> bool {
        self.set(place, Place::Counted(counted))
    }

    /// Takes that a partition cannot be read.
    pub fn refuse(&self, place: usize, code: ErrorCode) {
        self.set(place, Place::Refused(code));
    }

    fn set(&self, place: usize, new: Place) -> bool {
        let mut sums = self.sums();
        let before = self.progress_of(&sums);
        let Some(slot) = sums.places.get_mut(place) else {
            return true;
        };
        let old = std::mem::replace(slot, new);
        let bytes_max = self.wanted.bytes_each[place];
        match old {
            Place::Open => sums.open -= 1,
            Place::Counted(counted) => {
                sums.messages -= counted.messages;
                sums.bytes -= counted.bytes.min(bytes_max);
            }
            Place::Refused(_) => {
                sums.live += 1;
                sums.room = sums.room.saturating_add(bytes_max);
            }
        }
        match new {
            Place::Open => sums.open += 1,
            Place::Counted(counted) => {
                sums.messages += counted.messages;
                sums.bytes += counted.bytes.min(bytes_max);
            }
            Place::Refused(_) => {
                sums.live -= 1;
                sums.room = sums.room.saturating_sub(bytes_max);
            }
        }
        let after = self.progress_of(&sums);
        sums.ready = after == Progress::Ready;
        drop(sums);
        if after != before {
            (self.wake)();
        }
        after == Progress::Ready
    }

    fn progress_of(&self, sums: &Sums) -> Progress {
        let full = sums.bytes > 0 && sums.bytes >= self.wanted.bytes.min(sums.room);
        if sums.ready {
            Progress::Ready
        } else if sums.open > 0 {
            Progress::Counting
        } else if sums.live == 0 || sums.messages >= self.wanted.messages || full {
            Progress::Ready
        } else {
            Progress::Short
        }
    }

    /// What the fetch does next.
    pub fn progress(&self) -> Progress {
        self.progress_of(&self.sums())
    }

    /// Notes that a shard goes on counting. False when the fetch has ended: nobody would ever stop it.
    pub fn note_watched(&self) -> bool {
        let mut sums = self.sums();
        sums.watched |= !sums.closed;
        !sums.closed
    }

    /// Ends the fetch. True when shards go on counting and must be told.
    pub fn close(&self) -> bool {
        let mut sums = self.sums();
        sums.closed = true;
        sums.watched
    }

    /// Notes that a shard has no room for the fetch to wait.
    pub fn note_no_room(&self) {
        self.sums().no_room = true;
    }

    /// Whether some shard has no room for the fetch to wait.
    pub fn has_no_room(&self) -> bool {
        self.sums().no_room
    }

    /// The state of every partition.
    pub fn places(&self) -> Vec<Place> {
        self.sums().places.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn tally(messages: u64, bytes: u64, bytes_each: &[u64]) -> (Tally, Arc<AtomicUsize>) {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let wanted = Wanted {
            messages,
            bytes,
            bytes_each: bytes_each.to_vec(),
        };
        let tally = Tally::new(wanted, move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        (tally, woken)
    }

    fn counted(messages: u64, bytes: u64) -> Counted {
        Counted {
            messages,
            bytes,
            ..Counted::default()
        }
    }

    #[test]
    fn given_counts_when_their_sum_is_enough_should_wake_once_and_not_before() {
        let (tally, woken) = tally(5, 1_000, &[1_000, 1_000, 1_000]);
        assert!(!tally.count(0, counted(2, 10)));
        assert!(!tally.count(1, counted(2, 10)));
        assert_eq!(
            (tally.progress(), woken.load(Ordering::Relaxed)),
            (Progress::Counting, 0)
        );
        assert!(!tally.count(2, counted(0, 0)));
        assert_eq!((tally.progress(), woken.load(Ordering::Relaxed)), (Progress::Short, 1));
        // The same count again adds nothing.
        assert!(!tally.count(0, counted(2, 10)));
        assert!(tally.count(2, counted(1, 5)));
        assert_eq!((tally.progress(), woken.load(Ordering::Relaxed)), (Progress::Ready, 2));
        tally.count(2, counted(2, 9));
        assert_eq!(woken.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn given_bytes_when_the_reply_would_be_full_should_be_ready_though_messages_are_few() {
        let (tally, _) = tally(100, 1_000, &[600, 600]);
        tally.count(0, counted(1, 5_000));
        tally.count(1, counted(1, 100));
        assert_eq!(tally.progress(), Progress::Short, "one partition gives 600 at most");
        assert!(tally.count(1, counted(2, 400)));
    }

    #[test]
    fn given_a_fetch_that_has_ended_when_a_late_partition_counts_should_not_go_on() {
        let (open, _) = tally(5, 1_000, &[1_000]);
        assert!(open.note_watched());
        assert!(open.close(), "the shard must be told");
        let (ended, _) = tally(5, 1_000, &[1_000]);
        assert!(!ended.close());
        assert!(!ended.note_watched());
    }

    #[test]
    fn given_refusals_when_the_others_are_full_should_be_ready() {
        let (tally, _) = tally(100, 1_000, &[600, 600]);
        tally.refuse(0, ErrorCode::HistoryUnavailable);
        assert!(!tally.count(1, counted(1, 599)));
        assert!(tally.count(1, counted(2, 600)), "nobody else can fill the reply");
        tally.refuse(1, ErrorCode::ConsumerGroupPartitionNotOwned);
        assert_eq!(tally.progress(), Progress::Ready, "nothing is left to wait for");
        assert_eq!(
            tally.places(),
            [
                Place::Refused(ErrorCode::HistoryUnavailable),
                Place::Refused(ErrorCode::ConsumerGroupPartitionNotOwned)
            ]
        );
    }

    #[test]
    fn given_enough_once_when_some_of_it_is_refused_later_should_stay_ready() {
        let (tally, _) = tally(2, 1_000, &[600, 600]);
        tally.count(0, counted(2, 10));
        assert!(
            tally.count(1, counted(0, 0)),
            "the second partition need not go on counting"
        );
        tally.refuse(0, ErrorCode::ConsumerGroupPartitionNotOwned);
        assert_eq!(tally.progress(), Progress::Ready);
    }
}
