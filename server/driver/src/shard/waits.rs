//! The waits of a shard: their deadlines, their bounds, and how they are found again.
//!
//! A wait is a parked poll or a fetch that counts here. Each is found by its deadline, its request and its connection,
//! and leaves nothing behind when it ends; one that is not concerned is not looked at.

use super::{Output, Shard, ShardConfig};
use crate::partition_group::Expiry;
use crate::request::{Origin, PartitionRequest};
use crate::tally::{Progress, Tally, WatchId, Watching};
use iggy_consensus::Now;
use iggy_metadata::PartitionKey;
use iggy_partition::operation::Member;
use iggy_protocol::context::PartitionContext;
use iggy_protocol::error_code::ErrorCode;
use iggy_storage::Storage;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a wait is: its partition's slot and its name there.
pub(super) type Site = (u32, Expiry);

/// The slot under which fetches are kept; it is the metadata group's, which parks nothing.
const FETCHES: u32 = 0;

/// Who waits, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub member: Member,
    pub request: u64,
    pub connection: u32,
    /// Microseconds of the monotonic clock.
    pub deadline: u64,
}

/// How many waits each session has on all shards of a node. A fetch counts once on each shard at which it waits.
#[derive(Debug, Default)]
pub struct SessionWaits {
    counts: Mutex<HashMap<Member, usize>>,
}

impl SessionWaits {
    fn counts(&self) -> MutexGuard<'_, HashMap<Member, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits of all sessions.
    pub fn total(&self) -> usize {
        self.counts().values().sum()
    }

    /// Counts one more, unless the session has `max`.
    fn enter(&self, member: Member, max: usize) -> bool {
        let mut counts = self.counts();
        let count = counts.get(&member).copied().unwrap_or(0);
        if count >= max {
            return false;
        }
        counts.insert(member, count + 1);
        true
    }

    fn leave(&self, member: Member) {
        if let Entry::Occupied(mut count) = self.counts().entry(member) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Every wait of a shard.
#[derive(Debug, Default)]
pub(super) struct Waits {
    all: BTreeMap<Site, Wait>,
    deadlines: BTreeSet<(u64, Site)>,
    requests: BTreeSet<(Member, u64, Site)>,
    connections: BTreeSet<(u32, Site)>,
    pub(super) sessions: Arc<SessionWaits>,
    /// The partitions where a fetch counts.
    watched: BTreeMap<WatchId, Vec<Site>>,
}

impl Waits {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes a wait, unless the shard or its session has as many as `config` allows.
    pub(super) fn insert(&mut self, config: &ShardConfig, site: Site, wait: Wait) -> bool {
        let room = self.all.len() < config.parked_max;
        if !(room && self.sessions.enter(wait.member, config.parked_per_session_max)) {
            return false;
        }
        self.deadlines.insert((wait.deadline, site));
        self.requests.insert((wait.member, wait.request, site));
        self.connections.insert((wait.connection, site));
        self.all.insert(site, wait);
        true
    }

    pub(super) fn remove(&mut self, site: Site) -> bool {
        let Some(wait) = self.all.remove(&site) else {
            return false;
        };
        self.deadlines.remove(&(wait.deadline, site));
        self.requests.remove(&(wait.member, wait.request, site));
        self.connections.remove(&(wait.connection, site));
        self.sessions.leave(wait.member);
        true
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Takes a wait whose deadline has come.
    fn due(&self, now: u64) -> Option<Site> {
        let (deadline, site) = self.deadlines.first()?;
        (*deadline <= now).then_some(*site)
    }

    fn of_request(&self, member: Member, request: u64) -> Vec<Site> {
        let first = (member, request, (0, Expiry(0)));
        let found = self.requests.range((Bound::Included(first), Bound::Unbounded));
        found
            .take_while(|(found, number, _)| (*found, *number) == (member, request))
            .map(|(_, _, site)| *site)
            .collect()
    }

    fn of_connection(&self, connection: u32) -> Vec<Site> {
        let found = self.connections.range((connection, (0, Expiry(0)))..);
        found
            .take_while(|(found, _)| *found == connection)
            .map(|(_, site)| *site)
            .collect()
    }
}

/// The partitions of this shard that a fetch reads.
#[derive(Debug)]
pub struct Watch {
    /// The fetch.
    pub id: WatchId,
    /// Its request; the context in the header is set for each partition.
    pub origin: Origin,
    /// Partitions of this shard.
    pub targets: Vec<WatchTarget>,
    /// Where counts go.
    pub tally: Arc<Tally>,
    /// Microseconds that the fetch waits at most; 0 counts once.
    pub wait: u64,
}

impl Watch {
    /// Takes that none of its partitions can be read: their shard does not take it.
    pub fn refuse(&self, code: ErrorCode) {
        for target in &self.targets {
            self.tally.refuse(target.watching.place, code);
        }
    }
}

/// A partition of a fetch.
#[derive(Debug)]
pub struct WatchTarget {
    /// Partition.
    pub key: PartitionKey,
    /// Incarnation and owner generation that the client has captured.
    pub context: PartitionContext,
    /// What is counted.
    pub watching: Watching,
}

impl<S: Storage> Shard<S> {
    /// Waits here: parked polls, and fetches that count.
    pub fn parked(&self) -> usize {
        self.waits.len()
    }

    /// When [`tick`](Self::tick) is wanted next, in microseconds of the monotonic clock.
    pub fn next_deadline(&self) -> Option<u64> {
        let replicas = self.replica_deadlines.peek().map(|Reverse((deadline, _))| *deadline);
        self.waits.next_deadline().into_iter().chain(replicas).min()
    }

    /// Steps the replicas and ends the waits whose deadline has come.
    pub fn tick(&mut self, now: Now) {
        self.tick_replicas(now);
        while let Some(site) = self.waits.due(now.monotonic) {
            if site.0 == FETCHES {
                // A fetch watches its own deadline; this one only bounds what it leaves behind.
                self.unwatch(WatchId(site.1.0));
                continue;
            }
            self.end_wait(site, |shard, (slot, expiry)| {
                if let Some(group) = shard.partitions.get_mut(&slot) {
                    group.expire(now, expiry, &mut shard.storage);
                }
            });
        }
    }

    /// Ends a wait in its own way, and forgets it whatever becomes of it.
    fn end_wait(&mut self, site: Site, end: impl FnOnce(&mut Self, Site)) {
        let slot = site.0;
        end(self, site);
        self.collect(slot);
        self.waits.remove(site);
    }

    /// Ends the waits of a request that its client no longer wants (wire 7.6). Unknown requests are ignored.
    pub fn cancel(&mut self, client: u128, session: u64, request: u64) {
        let member = Member { client, session };
        self.cancel_held(|origin| origin.member() == member && origin.header.request.get() == request);
        self.cancel_sites(self.waits.of_request(member, request));
    }

    /// Ends the waits of a connection that is gone.
    pub fn disconnected(&mut self, connection: u32) {
        self.cancel_held(|origin| origin.connection == connection);
        self.cancel_sites(self.waits.of_connection(connection));
    }

    fn cancel_sites(&mut self, sites: Vec<Site>) {
        // A fetch hears of its client itself, and then ends its watch.
        for site in sites.into_iter().filter(|(slot, _)| *slot != FETCHES) {
            self.end_wait(site, |shard, (slot, expiry)| {
                if let Some(group) = shard.partitions.get_mut(&slot) {
                    group.cancel(expiry);
                }
            });
        }
    }

    fn cancel_held(&mut self, unwanted: impl Fn(&Origin) -> bool) {
        for slot in self.holding.iter().copied().collect::<Vec<_>>() {
            if let Some(group) = self.partitions.get_mut(&slot) {
                group.cancel_held(&unwanted);
            }
            self.collect(slot);
        }
    }

    /// Counts for a fetch, and goes on counting while it waits, until [`unwatch`](Self::unwatch) or its deadline.
    pub fn watch(&mut self, now: Now, watch: Watch) {
        let Watch {
            id,
            origin,
            targets,
            tally,
            wait,
        } = watch;
        let wait = wait.min(self.config.parked_wait_max);
        let site = (FETCHES, Expiry(id.0));
        let entry = Wait {
            member: origin.member(),
            request: origin.header.request.get(),
            connection: origin.connection,
            deadline: now.monotonic.saturating_add(wait),
        };
        let waits = wait > 0 && self.waits.insert(&self.config, site, entry);
        if wait > 0 && !waits {
            tally.note_no_room();
        }
        for WatchTarget {
            key,
            context,
            mut watching,
        } in targets
        {
            watching.waits &= waits;
            let Some(slot) = self.slots.get(&key).copied() else {
                let code = self.refused.get(&key).copied();
                tally.refuse(watching.place, code.unwrap_or(ErrorCode::HistoryUnavailable));
                continue;
            };
            let mut origin = origin.clone();
            origin.header.set_partition_context(context);
            if let Some(group) = self.partitions.get_mut(&slot) {
                group.request(now, origin, PartitionRequest::Watch(watching), &mut self.storage);
            }
            self.collect(slot);
        }
        let goes_on = waits && tally.progress() != Progress::Ready && tally.note_watched();
        if waits && !goes_on {
            self.waits.remove(site);
        }
    }

    /// Takes that a partition counts for a fetch, or stops it when the fetch is over here.
    pub(super) fn watched(&mut self, id: WatchId, site: Site) {
        if self.waits.all.contains_key(&(FETCHES, Expiry(id.0))) {
            self.waits.watched.entry(id).or_default().push(site);
        } else if let Some(group) = self.partitions.get_mut(&site.0) {
            group.unwatch(site.1);
        }
    }

    /// Counts for a fetch no longer.
    pub fn unwatch(&mut self, id: WatchId) {
        self.waits.remove((FETCHES, Expiry(id.0)));
        for (slot, expiry) in self.waits.watched.remove(&id).unwrap_or_default() {
            if let Some(group) = self.partitions.get_mut(&slot) {
                group.unwatch(expiry);
            }
        }
    }

    /// Takes a poll that was parked, or has it refused when too many are.
    pub(super) fn parked_at(&mut self, site: Site, wait: Wait) {
        if self.waits.insert(&self.config, site, wait) {
            return;
        }
        let (slot, expiry) = site;
        if let Some(group) = self.partitions.get_mut(&slot) {
            group.refuse_to_park(expiry);
        }
    }

    /// Refuses a request to a partition that is not here.
    pub(super) fn refuse_absent(&mut self, key: &PartitionKey, origin: &Origin) {
        let code = self.refused.get(key).copied().unwrap_or(ErrorCode::HistoryUnavailable);
        self.outputs
            .push(Output::Reply(crate::request::Reply::refused(origin, code)));
    }
}
