//! What an intake begins next: a pure step from its state to the work that is to be spawned.

use std::collections::BTreeMap;

use iggy_protocol::PollingStrategy;
use iggy_protocol::limits::MAX_PARTITIONS_PER_REQUEST;
use iggy_protocol::request::message::{FetchMessages, FetchTarget};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::Settings;
use super::cursor::{Activity, Lookup};
use super::membership::MembershipJob;
use super::state::{FetchKey, InFlight, Phase, State};
use crate::poll::{Checkpoint, CommitPolicy, PollOptions, ReadStart};

/// How long reads wait for lookups of other partitions at most.
const GATHERING: Duration = Duration::from_millis(20);

/// Work that waits for the server.
#[derive(Debug)]
pub enum Job {
    /// Looks up where a partition is served.
    Route { partition_id: u32, generation: u64 },
    /// Reads the stored offset of the consumer.
    Stored {
        partition_id: u32,
        generation: u64,
        lookup: Lookup,
    },
    /// Reads partitions of one primary.
    Fetch {
        key: FetchKey,
        number: u64,
        fetch: Box<FetchMessages>,
        cancel: CancellationToken,
    },
    /// Reads one partition.
    Poll {
        partition_id: u32,
        number: u64,
        start: ReadStart,
        options: PollOptions,
        cancel: CancellationToken,
    },
    /// Stores positions. Those of partitions that were taken away have one try.
    Store { positions: Vec<Checkpoint>, last: bool },
    /// Keeps the membership.
    Membership(MembershipJob),
}

impl State {
    /// What is to be begun now.
    pub fn plan(&mut self, settings: &Settings, now: Instant) -> Vec<Job> {
        let mut jobs = Vec::new();
        if self.phase != Phase::Open {
            return jobs;
        }
        self.plan_stores(&mut jobs);
        if let Some(member) = &mut self.member {
            jobs.extend(member.plan(now).map(Job::Membership));
        }
        let on_read = settings.commits_on_read();
        if on_read && !(self.waiting && self.is_drained()) {
            let storing: Vec<FetchKey> = self.fetches.keys().copied().filter(|(_, commits)| *commits).collect();
            for key in storing {
                self.cancel_fetch(key);
            }
            self.polls.values().for_each(|poll| poll.cancel.cancel());
            return jobs;
        }
        let room = self.held_messages < settings.prefetch_messages && self.held_bytes < settings.prefetch_bytes;
        if self.asked && (room || self.ready.is_empty()) {
            self.plan_reads(settings, now, &mut jobs);
        }
        jobs
    }

    /// When something can be begun that cannot be begun now.
    pub fn next_due(&self) -> Option<Instant> {
        let idle = self.cursors.values().filter(|cursor| cursor.activity == Activity::Idle);
        let stores = self.commits.due_at().filter(|_| !self.storing);
        let member = self.member.as_ref().and_then(super::membership::Member::next_due);
        let resumes = idle.filter_map(|cursor| cursor.resume_at);
        resumes.chain(stores).chain(member).chain(self.gather_until).min()
    }

    fn plan_stores(&mut self, jobs: &mut Vec<Job>) {
        if self.storing {
            return;
        }
        let drained = std::mem::take(&mut self.drained);
        let last = !drained.is_empty();
        let positions = if last { drained } else { self.commits.take_due(false) };
        if !positions.is_empty() {
            self.storing = true;
            jobs.push(Job::Store { positions, last });
        }
    }

    fn plan_reads(&mut self, settings: &Settings, now: Instant, jobs: &mut Vec<Job>) {
        let mut by_key: BTreeMap<FetchKey, Vec<u32>> = BTreeMap::new();
        let mut polled = Vec::new();
        for (id, cursor) in self.cursors.iter_mut().filter(|(_, cursor)| cursor.is_due(now)) {
            let (partition_id, generation) = (*id, cursor.generation);
            cursor.resume_at = None;
            if let Some(lookup) = cursor.lookup {
                cursor.activity = Activity::Busy;
                jobs.push(Job::Stored {
                    partition_id,
                    generation,
                    lookup,
                });
                continue;
            }
            let commits = settings.commits_on_read() && cursor.progress.skipped_to.is_none();
            match &cursor.route {
                _ if cursor.needs_poll() => polled.push((partition_id, cursor.start, commits)),
                None => {
                    cursor.activity = Activity::Busy;
                    jobs.push(Job::Route {
                        partition_id,
                        generation,
                    });
                }
                Some(route) => by_key
                    .entry((route.primary_replica, commits))
                    .or_default()
                    .push(partition_id),
            }
        }
        for (id, start, commits) in polled {
            jobs.extend(self.plan_poll(settings, id, start, commits));
        }
        if !self.gathers(jobs, now) {
            for (key, ids) in by_key {
                jobs.extend(self.plan_fetch(settings, key, ids));
            }
        }
    }

    /// Partitions that are looked up at the same time are read together, unless one takes long to be found.
    fn gathers(&mut self, jobs: &[Job], now: Instant) -> bool {
        let asked = |job: &&Job| matches!(job, Job::Route { .. } | Job::Stored { .. });
        let lookups = jobs.iter().filter(asked).count();
        if self.lookups == 0 && lookups > 0 {
            self.gather_until = Some(now + GATHERING);
        }
        self.lookups += lookups;
        self.gather_until.take_if(|until| self.lookups == 0 || *until <= now);
        self.gather_until.is_some()
    }

    fn plan_poll(&mut self, settings: &Settings, partition_id: u32, start: ReadStart, commits: bool) -> Option<Job> {
        // The answer of one that was cancelled is still awaited.
        if self.polls.contains_key(&partition_id) {
            return None;
        }
        let number = self.number();
        let cursor = self.cursors.get_mut(&partition_id)?;
        cursor.activity = Activity::Busy;
        let cancel = CancellationToken::new();
        let read = InFlight {
            number,
            partitions: vec![(partition_id, cursor.generation)],
            cancel: cancel.clone(),
        };
        self.polls.insert(partition_id, read);
        let commit = if commits {
            CommitPolicy::OnRead
        } else {
            CommitPolicy::Manual
        };
        let options = PollOptions {
            commit,
            ..settings.options
        };
        Some(Job::Poll {
            partition_id,
            number,
            start,
            options,
            cancel,
        })
    }

    /// Asks a primary for these partitions, together with those a fetch is waiting for there.
    fn plan_fetch(&mut self, settings: &Settings, key: FetchKey, mut ids: Vec<u32>) -> Option<Job> {
        let most = MAX_PARTITIONS_PER_REQUEST as usize;
        let (_, commits) = key;
        if let Some(waiting) = self.fetches.get(&key) {
            if waiting.partitions.len() >= most {
                return None;
            }
            let waiting: Vec<u32> = waiting.partitions.iter().map(|(id, _)| *id).collect();
            self.cancel_fetch(key);
            if commits {
                return None;
            }
            ids.extend(waiting.into_iter().filter(|id| {
                let cursor = self.cursors.get(id);
                cursor.is_some_and(|cursor| cursor.activity == Activity::Idle && cursor.route.is_some())
            }));
            ids.sort_unstable();
            ids.dedup();
        }
        // Those that have waited longest go first when not all fit.
        ids.sort_by_key(|id| self.cursors.get(id).map(|cursor| (cursor.turn, *id)));
        ids.truncate(most);
        let number = self.number();
        let (targets, partitions) = self.targets(settings, number, &ids);
        let fetch = FetchMessages {
            consumer: settings.consumer.clone(),
            stream: settings.stream.clone(),
            topic: settings.topic.clone(),
            wait_us: settings.options.max_wait.as_micros(),
            request_timeout_us: settings.options.request_timeout().as_micros(),
            min_count: settings.options.min_count,
            count: settings.options.count,
            max_bytes: settings.options.max_bytes,
            auto_commit: commits,
            targets,
        };
        let cancel = CancellationToken::new();
        self.fetches.insert(
            key,
            InFlight {
                number,
                partitions,
                cancel: cancel.clone(),
            },
        );
        Some(Job::Fetch {
            key,
            number,
            fetch: Box::new(fetch),
            cancel,
        })
    }

    /// What a fetch asks of each partition; they are busy from here on.
    fn targets(&mut self, settings: &Settings, number: u64, ids: &[u32]) -> (Vec<FetchTarget>, Vec<(u32, u64)>) {
        let mut targets = Vec::with_capacity(ids.len());
        let mut partitions = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(cursor) = self.cursors.get_mut(id) else {
                continue;
            };
            let Some(context) = cursor.context() else { continue };
            cursor.activity = Activity::Busy;
            cursor.turn = number;
            partitions.push((*id, cursor.generation));
            targets.push(FetchTarget {
                partition_id: *id,
                strategy: match cursor.start.strategy() {
                    PollingStrategy::First => PollingStrategy::Offset(0),
                    strategy => strategy,
                },
                max_bytes: settings.options.max_bytes,
                incarnation: context.incarnation,
                owner_generation: context.owner_generation,
            });
        }
        (targets, partitions)
    }
}
