//! Heartbeats of all groups for one peer, until the next frame takes them along.

use iggy_consensus::GroupId;
use iggy_consensus::codec::BEATS_MAX;
use iggy_consensus::message::Beat;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What waits. A group that speaks again before its word was sent replaces it: the newer one says all of the older one.
#[derive(Default)]
pub struct Beats {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    beats: BTreeMap<GroupId, Beat>,
    /// A frame is due even if it is empty.
    pulse: bool,
}

impl Beats {
    /// Adds a group's word. False when there is no room for another group.
    pub fn add(&self, beat: Beat) -> bool {
        let mut waiting = self.lock();
        let room = waiting.beats.len() < BEATS_MAX || waiting.beats.contains_key(&beat.group);
        if room {
            waiting.beats.insert(beat.group, beat);
        }
        room
    }

    /// Has a frame sent soon, whatever waits.
    pub fn pulse(&self) {
        self.lock().pulse = true;
    }

    /// Takes what waits; `None` when nothing is due.
    pub fn take(&self) -> Option<Vec<Beat>> {
        let taken = std::mem::take(&mut *self.lock());
        (taken.pulse || !taken.beats.is_empty()).then(|| taken.beats.into_values().collect())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iggy_consensus::message::Word;

    fn beat(namespace: u64, commit: u64) -> Beat {
        let group = GroupId {
            namespace,
            incarnation: 1,
        };
        Beat {
            group,
            view: 0,
            word: Word::Commit(commit),
        }
    }

    #[test]
    fn given_a_group_that_speaks_twice_when_taken_should_say_the_newer_word() {
        let beats = Beats::default();
        for (namespace, commit) in [(1, 5), (2, 6), (1, 7)] {
            assert!(beats.add(beat(namespace, commit)));
        }
        assert_eq!(beats.take(), Some(vec![beat(1, 7), beat(2, 6)]));
        assert_eq!(beats.take(), None);
    }

    #[test]
    fn given_no_word_when_a_sign_of_life_is_due_should_take_an_empty_frame() {
        let beats = Beats::default();
        beats.pulse();
        assert_eq!(beats.take(), Some(Vec::new()));
        assert_eq!(beats.take(), None);
    }

    #[test]
    fn given_as_many_groups_as_a_frame_takes_when_another_speaks_should_refuse_it_alone() {
        let beats = Beats::default();
        for namespace in 0..BEATS_MAX as u64 {
            assert!(beats.add(beat(namespace, 1)));
        }
        assert!(!beats.add(beat(BEATS_MAX as u64, 1)));
        assert!(beats.add(beat(0, 2)));
        assert_eq!(beats.take().map(|beats| beats.len()), Some(BEATS_MAX));
    }
}
