//! Polls that wait for messages, and fetches that count them.
//!
//! Parked polls lie in the order of what ends their wait: the offset at which they have enough messages, the bytes of the
//! log at which their reply is full, or the broker time they wait for. So an append looks at those it can serve and at no
//! other. It tells a waiting fetch of each append to one of its partitions, because only their sum ends its wait.

use super::polling::{Served, Start};
use super::{Notice, PartitionGroup};
use crate::request::{Origin, PartitionRequest, Reply};
use crate::tally::Watching;
use iggy_consensus::Now;
use iggy_partition::operation::ConsumerKey;
use iggy_protocol::error_code::ErrorCode;
use iggy_storage::Storage;
use std::collections::{BTreeMap, BTreeSet};

/// A parked poll or a watch, for its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expiry(pub(crate) u64);

/// A poll that waits.
#[derive(Debug)]
pub(super) struct ParkedPoll {
    pub origin: Origin,
    pub served: Served,
    pub start: Start,
    pub until: Until,
}

/// What ends the wait of a poll, whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Until {
    /// The log ends at this offset or later.
    pub offset: Option<u64>,
    /// This many bytes were appended.
    pub bytes: Option<u64>,
    /// A batch has this broker time or a later one.
    pub timestamp: Option<u64>,
}

/// A fetch that counts here.
#[derive(Debug)]
pub(super) struct Watcher {
    watching: Watching,
    start: u64,
    generation: u64,
    /// Bytes from `start` on, and what was appended until then; `None` while the log ends before `start`.
    bytes: Option<(u64, u64)>,
}

/// Everything that waits at one partition.
#[derive(Debug, Default)]
pub(super) struct Parked {
    polls: BTreeMap<u64, ParkedPoll>,
    by_offset: BTreeSet<(u64, u64)>,
    by_bytes: BTreeSet<(u64, u64)>,
    by_timestamp: BTreeSet<(u64, u64)>,
    watchers: BTreeMap<u64, Watcher>,
    /// Polls and fetches that appends have looked at.
    visits: u64,
}

/// Takes a number whose turn has come.
fn due(order: &BTreeSet<(u64, u64)>, now: u64) -> Option<u64> {
    order.first().filter(|(at, _)| *at <= now).map(|(_, number)| *number)
}

impl Parked {
    fn insert(&mut self, number: u64, poll: ParkedPoll) {
        let until = poll.until;
        self.by_offset.extend(until.offset.map(|at| (at, number)));
        self.by_bytes.extend(until.bytes.map(|at| (at, number)));
        self.by_timestamp.extend(until.timestamp.map(|at| (at, number)));
        self.polls.insert(number, poll);
    }

    fn remove(&mut self, number: u64) -> Option<ParkedPoll> {
        let poll = self.polls.remove(&number)?;
        let until = poll.until;
        for (order, at) in [
            (&mut self.by_offset, until.offset),
            (&mut self.by_bytes, until.bytes),
            (&mut self.by_timestamp, until.timestamp),
        ] {
            if let Some(at) = at {
                order.remove(&(at, number));
            }
        }
        Some(poll)
    }

    /// Takes a poll whose wait may be over.
    fn take_due(&mut self, end: u64, bytes: u64, timestamp: u64) -> Option<(u64, ParkedPoll)> {
        let number = due(&self.by_offset, end)
            .or_else(|| due(&self.by_bytes, bytes))
            .or_else(|| due(&self.by_timestamp, timestamp))?;
        self.visits += 1;
        self.remove(number).map(|poll| (number, poll))
    }
}

impl PartitionGroup {
    /// Polls that wait here.
    pub fn parked(&self) -> usize {
        self.parked.polls.len()
    }

    /// Fetches that count here.
    pub fn watchers(&self) -> usize {
        self.parked.watchers.len()
    }

    /// Polls and fetches that appends have looked at since the partition was opened.
    pub fn visits(&self) -> u64 {
        self.parked.visits
    }

    /// Whether requests wait for a write in flight or for bytes from disk.
    pub fn holds_requests(&self) -> bool {
        !(self.waiting.is_empty() && self.reads.is_empty() && self.wanted_reads.is_empty())
    }

    pub(super) fn park(&mut self, origin: Origin, served: Served, start: Start, until: Until) {
        let number = self.number();
        self.notices.push(Notice::Parked {
            member: origin.member(),
            request: origin.header.request.get(),
            connection: origin.connection,
            deadline: served.deadline,
            expiry: Expiry(number),
        });
        let poll = ParkedPoll {
            origin,
            served,
            start,
            until,
        };
        self.parked.insert(number, poll);
    }

    fn unpark(&mut self, number: u64) -> Option<ParkedPoll> {
        let parked = self.parked.remove(number)?;
        self.notices.push(Notice::Unparked(Expiry(number)));
        Some(parked)
    }

    /// Answers a poll for which there is no room to wait.
    pub fn refuse_to_park(&mut self, expiry: Expiry) {
        if let Some(parked) = self.parked.remove(expiry.0) {
            self.reply(Reply::refused(&parked.origin, ErrorCode::DeferredPollCapacityExceeded));
        }
    }

    /// Refuses every poll and fetch that waits here: nothing of theirs was written.
    pub(super) fn refuse_parked(&mut self, code: ErrorCode) {
        let numbers: Vec<u64> = self.parked.polls.keys().copied().collect();
        for number in numbers {
            if let Some(parked) = self.unpark(number) {
                self.reply(Reply::refused(&parked.origin, code));
            }
        }
        for watcher in std::mem::take(&mut self.parked.watchers).into_values() {
            let Watching { tally, place, .. } = watcher.watching;
            tally.refuse(place, code);
        }
    }

    /// Ends the waits of a group's members that no longer own the partition.
    pub(super) fn fence_parked(&mut self, group: u32) {
        let current = self.state.owners.get(&group).map(|owner| owner.generation);
        let fenced = |consumer: &ConsumerKey, generation: u64| {
            *consumer == ConsumerKey::Group(group) && Some(generation) != current
        };
        let polls = self.parked.polls.iter();
        let numbers: Vec<u64> = polls
            .filter(|(_, parked)| fenced(&parked.served.poll.consumer, parked.served.generation))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if let Some(parked) = self.unpark(number) {
                self.reply(Reply::refused(
                    &parked.origin,
                    ErrorCode::ConsumerGroupPartitionNotOwned,
                ));
            }
        }
        self.parked.watchers.retain(|_, watcher| {
            let Watching {
                consumer, tally, place, ..
            } = &watcher.watching;
            let fenced = fenced(consumer, watcher.generation);
            if fenced {
                tally.refuse(*place, ErrorCode::ConsumerGroupPartitionNotOwned);
            }
            !fenced
        });
    }

    /// Serves the polls that have enough since messages were appended, and tells the fetches.
    pub(super) fn wake_parked(&mut self, now: Now, storage: &mut dyn Storage) {
        let end = self.state.next_offset;
        let bytes = self.tail.pushed();
        let timestamp = self.tail.last_timestamp().unwrap_or(0);
        // Each is looked at once, whatever comes of it.
        let mut wait_on = Vec::new();
        while let Some((number, mut parked)) = self.parked.take_due(end, bytes, timestamp) {
            match self.judge(&parked.served.poll, parked.start) {
                // The log was cut since the poll came, or reached its start only now: it waits on in its new place.
                Verdict::Wait(start, until) => {
                    (parked.start, parked.until) = (start, until);
                    wait_on.push((number, parked));
                }
                Verdict::Serve(start) => {
                    self.notices.push(Notice::Unparked(Expiry(number)));
                    self.serve(now, parked.origin, parked.served, start, storage);
                }
            }
        }
        for (number, parked) in wait_on {
            self.parked.insert(number, parked);
        }
        self.tell_watchers();
    }

    fn tell_watchers(&mut self) {
        let mut watchers = std::mem::take(&mut self.parked.watchers);
        self.parked.visits += watchers.len() as u64;
        for watcher in watchers.values_mut() {
            self.tell(watcher);
        }
        self.parked.watchers = watchers;
    }

    /// Counts for a fetch. True when it need not wait any longer.
    fn tell(&self, watcher: &mut Watcher) -> bool {
        let (counted, bytes) = self.count(watcher.start, watcher.generation, watcher.bytes, &watcher.watching);
        watcher.bytes = bytes;
        watcher.watching.tally.count(watcher.watching.place, counted)
    }

    pub(super) fn watch(&mut self, origin: &Origin, watching: Watching) {
        let captured = origin.header.owner_generation.get();
        let bound = self.state.bind_owner(&watching.consumer, origin.member(), captured);
        let generation = match bound {
            Ok(generation) => generation,
            Err(code) => return watching.tally.refuse(watching.place, code),
        };
        let start = match self.start_at(watching.strategy, &watching.consumer, 0) {
            Start::Offset(offset) => offset,
            Start::Timestamp(_) => return watching.tally.refuse(watching.place, ErrorCode::InvalidCommand),
        };
        let waits = watching.waits;
        let watch = watching.watch;
        let mut watcher = Watcher {
            watching,
            start,
            generation,
            bytes: None,
        };
        if !self.tell(&mut watcher) && waits && watcher.watching.tally.note_watched() {
            let number = self.number();
            self.parked.watchers.insert(number, watcher);
            self.notices.push(Notice::Watched(watch, Expiry(number)));
        }
    }

    /// Counts for a fetch no longer.
    pub fn unwatch(&mut self, expiry: Expiry) {
        self.parked.watchers.remove(&expiry.0);
    }

    /// Ends the wait of a poll: it is answered with what there is. Does nothing for one that was answered before.
    pub fn expire(&mut self, now: Now, expiry: Expiry, storage: &mut dyn Storage) {
        if let Some(mut parked) = self.unpark(expiry.0) {
            // A clock that was read before the deadline must not send it back.
            parked.served.deadline = 0;
            self.serve(now, parked.origin, parked.served, parked.start, storage);
        }
    }

    /// Ends the wait of a poll that nobody wants any more (wire 7.6). It is answered without messages, so that a client
    /// which asked to store the offset learns that nothing was stored.
    pub fn cancel(&mut self, expiry: Expiry) {
        if let Some(parked) = self.unpark(expiry.0) {
            self.answer_empty(&parked.origin, &parked.served);
        }
    }

    /// As [`cancel`](Self::cancel), for the polls that are not parked: those that wait for a write in flight are
    /// answered, and those whose bytes are being read will be, with what there is.
    pub fn cancel_held(&mut self, unwanted: impl Fn(&Origin) -> bool) {
        self.end_waits_of_reads(&unwanted);
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.request {
                // It has not even been bound to an owner.
                PartitionRequest::Poll(poll) if unwanted(&waiting.origin) => {
                    let deadline = 0;
                    self.answer_empty(
                        &waiting.origin,
                        &Served {
                            poll,
                            generation: 0,
                            deadline,
                        },
                    );
                }
                _ => self.waiting.push_back(waiting),
            }
        }
    }
}

/// What becomes of a read that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has enough, or only the disk can tell.
    Serve(Start),
    /// It waits.
    Wait(Start, Until),
}
