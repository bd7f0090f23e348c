//! How many groups of a shard search for a view at once.
//!
//! When a node dies or comes back, every group it is a member of has to find its view, and thousands of them at once would
//! keep everybody from the few that could be done. So only some begin by themselves; the others wait until one of those
//! has settled. A group that hears another member search goes along at once, so that two nodes never wait for each
//! other's choice. A search that does not end, since too few members live, stands in nobody's way for long.

use std::collections::{BTreeMap, BTreeSet};

/// Searches under way at once unless somebody says otherwise.
const SEARCHES_MAX: usize = 64;

/// The searches of a shard, by slot.
#[derive(Debug)]
pub(super) struct Searches {
    max: usize,
    /// Those that were begun here and have not settled, and when they began.
    begun: BTreeMap<u32, u64>,
    waiting: BTreeSet<u32>,
}

impl Default for Searches {
    fn default() -> Self {
        Self::new(SEARCHES_MAX)
    }
}

impl Searches {
    /// At most so many at once, and one in any case.
    pub fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            begun: BTreeMap::new(),
            waiting: BTreeSet::new(),
        }
    }

    /// Whether a group may begin now; otherwise it waits for [`next`](Self::next). A search counts for `patience`
    /// microseconds at most.
    pub fn begin(&mut self, slot: u32, now: u64, patience: u64) -> bool {
        if self.begun.contains_key(&slot) || self.has_room(now, patience) {
            self.waiting.remove(&slot);
            self.begun.entry(slot).or_insert(now);
            return true;
        }
        self.waiting.insert(slot);
        false
    }

    fn has_room(&mut self, now: u64, patience: u64) -> bool {
        if self.begun.len() >= self.max {
            self.begun.retain(|_, begun| now < begun.saturating_add(patience));
        }
        self.begun.len() < self.max
    }

    /// A group is settled, or gone.
    pub fn end(&mut self, slot: u32) {
        self.begun.remove(&slot);
        self.waiting.remove(&slot);
    }

    /// The next group that waits, once there is room for it.
    pub fn next(&mut self, now: u64, patience: u64) -> Option<u32> {
        if self.waiting.is_empty() || !self.has_room(now, patience) {
            return None;
        }
        self.waiting.pop_first()
    }

    /// Searches that count.
    pub fn count(&self) -> usize {
        self.begun.len()
    }
}
