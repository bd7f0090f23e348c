//! The task of an intake: spawns what is planned, takes in what comes of it, and closes in order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use iggy_protocol::reply::message::PartitionRoute;
use iggy_protocol::{Consumer, ErrorCode, PartitionContext};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Settings;
use super::cursor::Lookup;
use super::handle::Shared;
use super::membership::{self, MembershipJob};
use super::plan::Job;
use super::read_error::ReadError;
use super::state::{FetchKey, Phase, Ready, State};
use crate::error::{ErrorClass, IggyError, Outcome};
use crate::events::ReaderEvent;
use crate::memberships::Membership;
use crate::poll::Checkpoint;

/// What work came to.
#[derive(Debug)]
enum Done {
    Routed((u32, u64), Result<PartitionRoute, IggyError>),
    Stored((u32, u64), Lookup, Result<Option<u64>, IggyError>),
    Fetched(FetchKey, u64, Result<Bytes, IggyError>),
    Polled(u32, u64, Result<Bytes, IggyError>),
    /// Positions were stored, or not.
    Committed(Vec<(Checkpoint, Result<(), IggyError>)>, bool),
    Membership(Result<(), IggyError>),
    /// It was given up.
    Nothing,
}

/// Runs an intake until it is closed, or its handle is gone.
pub async fn run(shared: Arc<Shared>, mut memberships: Option<watch::Receiver<Membership>>, gone: CancellationToken) {
    let mut tasks = JoinSet::new();
    loop {
        let (jobs, wake_at, closing) = {
            let mut state = shared.state();
            let jobs = state.plan(&shared.settings, Instant::now());
            (jobs, state.next_due(), state.phase == Phase::Closing)
        };
        if closing {
            break;
        }
        for job in jobs {
            spawn(&mut tasks, &shared, job);
        }
        let later = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let news = async {
            match &mut memberships {
                Some(news) => match news.changed().await {
                    Ok(()) => news.borrow_and_update().clone(),
                    Err(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = gone.cancelled() => return,
            Some(done) = tasks.join_next(), if !tasks.is_empty() => {
                if let Ok(done) = done {
                    take_in(&shared, done);
                }
            }
            news = news => shared.state().take_news(&shared.settings, &news),
            () = shared.wanted.notified() => {}
            () = later => {}
        }
    }
    let outcome = close(&shared, tasks).await;
    shared.closed(outcome);
}

fn spawn(tasks: &mut JoinSet<Done>, shared: &Arc<Shared>, job: Job) {
    let shared = shared.clone();
    match job {
        Job::Route {
            partition_id,
            generation,
        } => tasks.spawn(async move {
            let core = shared.settings.client.core();
            let route = core
                .find_route(&shared.settings.partition(partition_id), core.default_deadline())
                .await;
            Done::Routed((partition_id, generation), route)
        }),
        Job::Stored {
            partition_id,
            generation,
            lookup,
        } => tasks.spawn(async move {
            let Settings {
                client,
                consumer,
                stream,
                topic,
                ..
            } = &shared.settings;
            let stored = client.get_consumer_offset(consumer, stream, topic, partition_id).await;
            let stored = stored.map(|stored| stored.map(|stored| stored.stored_offset));
            Done::Stored((partition_id, generation), lookup, stored)
        }),
        Job::Fetch {
            key,
            number,
            fetch,
            cancel,
        } => tasks.spawn(async move {
            let client = &shared.settings.client;
            let read = client.fetch_partitions(key.0, &fetch, cancel.clone());
            match until_cancelled(read, &cancel, key.1).await {
                Some(body) => Done::Fetched(key, number, abandoned(&shared.settings, body)),
                None => Done::Nothing,
            }
        }),
        Job::Poll {
            partition_id,
            number,
            start,
            options,
            cancel,
        } => tasks.spawn(async move {
            let settings = &shared.settings;
            let partition = settings.partition(partition_id);
            let read = settings
                .client
                .poll_body(&partition, &settings.consumer, &start, options, cancel.clone());
            match until_cancelled(read, &cancel, settings.commits_on_read()).await {
                Some(body) => Done::Polled(partition_id, number, abandoned(settings, body)),
                None => Done::Nothing,
            }
        }),
        Job::Store { positions, last } => tasks.spawn(store_due(shared, positions, last)),
        Job::Membership(job) => tasks.spawn(async move { Done::Membership(keep_up(&shared, job).await) }),
    };
}

/// Stores positions that are due; those of partitions that were taken away within the drain timeout.
async fn store_due(shared: Arc<Shared>, positions: Vec<Checkpoint>, last: bool) -> Done {
    let limit = shared.settings.drain_timeout;
    let store = store_all(&shared, positions.clone());
    let results = if last {
        let stored = tokio::time::timeout(limit, store).await;
        stored.unwrap_or_else(|_| too_late(positions))
    } else {
        store.await
    };
    Done::Committed(results, last)
}

async fn keep_up(shared: &Shared, job: MembershipJob) -> Result<(), IggyError> {
    membership::keep_up(&shared.settings, job).await
}

/// A read that stores nothing is dropped when it is cancelled; the answer of one that does is awaited.
async fn until_cancelled<T>(read: impl Future<Output = T>, cancel: &CancellationToken, commits: bool) -> Option<T> {
    if commits {
        return Some(read.await);
    }
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        body = read => Some(body),
    }
}

/// A read of our own whose effect is unknown is given up: what it stored is looked up instead.
fn abandoned(settings: &Settings, body: Result<Bytes, IggyError>) -> Result<Bytes, IggyError> {
    if let Err(error) = &body
        && error.outcome() == Outcome::Unknown
        && let Some(operation) = error.operation()
    {
        let _ = settings.client.abandon_operation(operation);
    }
    body
}

fn too_late(positions: Vec<Checkpoint>) -> Vec<(Checkpoint, Result<(), IggyError>)> {
    let late = || IggyError::new(ErrorCode::TaskTimeout, "the last positions were not stored in time");
    positions.into_iter().map(|position| (position, Err(late()))).collect()
}

/// Stores positions in order, each to its end.
async fn store_all(shared: &Shared, positions: Vec<Checkpoint>) -> Vec<(Checkpoint, Result<(), IggyError>)> {
    let mut results = Vec::with_capacity(positions.len());
    for position in positions {
        let _turn = shared.storing.lock().await;
        let mut stored = shared.store(&position).await;
        if let Err(error) = &stored
            && matches!(error.code(), ErrorCode::OperationUncertain)
        {
            membership::settle(&shared.settings.client, error).await;
            stored = shared.store(&position).await;
        }
        results.push((position, stored));
    }
    results
}

fn take_in(shared: &Shared, done: Done) {
    let now = Instant::now();
    let settings = &shared.settings;
    let mut state = shared.state();
    match done {
        Done::Routed(which, route) => state.take_route(settings, which, route, now),
        Done::Stored(which, lookup, stored) => state.take_stored(settings, which, lookup, stored, now),
        Done::Fetched(key, number, body) => state.take_fetch(settings, key, number, body, now),
        Done::Polled(partition_id, number, body) => state.take_poll(settings, partition_id, number, body, now),
        Done::Membership(done) => state.take_membership(done, now),
        Done::Committed(results, last) => {
            state.storing = false;
            for (position, result) in results {
                state.committed(position, result, last);
            }
        }
        Done::Nothing => {}
    }
}

impl State {
    /// A position that was due was stored, or not.
    fn committed(&mut self, position: Checkpoint, result: Result<(), IggyError>, last: bool) {
        let error = match result {
            Ok(()) => return self.commits.stored(position),
            Err(error) => error,
        };
        let (code, partition_id) = (error.code(), position.partition_id);
        self.events.publish(ReaderEvent::CommitFailed { partition_id, code });
        // A position of the past can never be stored; another is tried again when the next one is due.
        if error.class() != ErrorClass::Stale && !last {
            self.commits.not_stored(position);
            self.push(Ready::Refusal(ReadError::of(partition_id, error)));
        }
    }
}

/// Ends the reads, stores what is owed, and leaves the group.
async fn close(shared: &Arc<Shared>, mut tasks: JoinSet<Done>) -> Result<(), IggyError> {
    let settings = &shared.settings;
    let deadline = Instant::now() + settings.drain_timeout;
    // The reads that store offsets say what they stored, and positions under way come to their end.
    while !shared.reads_are_over() || shared.state().storing {
        match tokio::time::timeout_at(deadline, tasks.join_next()).await {
            Ok(Some(Ok(done))) => take_in(shared, done),
            Ok(Some(Err(_))) => {}
            Ok(None) | Err(_) => break,
        }
    }
    tasks.abort_all();
    let owed = {
        let mut state = shared.state();
        let mut owed = std::mem::take(&mut state.drained);
        owed.extend(state.commits.take_due(true));
        owed
    };
    let flushed = tokio::time::timeout_at(deadline, async {
        let mut outcome = Ok(());
        for (position, result) in store_all(shared, owed).await {
            let stale = result.as_ref().is_err_and(|error| error.class() == ErrorClass::Stale);
            match result {
                Ok(()) => shared.state().commits.stored(position),
                // Another member goes on from what was stored before.
                Err(_) if stale && settings.is_group() => {}
                Err(error) => outcome = Err(error),
            }
        }
        take_back(shared).await.and(outcome)
    });
    let late = || IggyError::new(ErrorCode::TaskTimeout, "the last positions were not stored in time");
    let flushed = flushed.await.unwrap_or_else(|_| Err(late()));
    if !settings.is_group() {
        return flushed;
    }
    let left = settings
        .client
        .leave_consumer_group(&settings.stream, &settings.topic, &settings.consumer.id)
        .await;
    let left = match left {
        // It is no member any more, which is what was wanted.
        Err(error) if error.code() == ErrorCode::ConsumerGroupMemberNotFound => Ok(()),
        left => left,
    };
    flushed.and(left)
}

/// Moves stored offsets back to the last message the application was given.
async fn take_back(shared: &Shared) -> Result<(), IggyError> {
    let overshoots = shared.state().overshoots();
    let Settings {
        client,
        consumer,
        stream,
        topic,
        ..
    } = &shared.settings;
    for (partition_id, given, context) in overshoots {
        let position = |offset| Checkpoint::new(partition_id, offset, context.unwrap_or(PartitionContext::ZERO));
        let consumer: &Consumer = consumer;
        let moved = match (given, context) {
            (Some(offset), Some(_)) => {
                client
                    .store_consumer_position(consumer, stream, topic, &position(offset))
                    .await
            }
            (Some(offset), None) => {
                client
                    .store_consumer_offset(consumer, stream, topic, partition_id, offset)
                    .await
            }
            (None, Some(_)) => {
                client
                    .delete_consumer_position(consumer, stream, topic, &position(0))
                    .await
            }
            (None, None) => {
                client
                    .delete_consumer_offset(consumer, stream, topic, partition_id)
                    .await
            }
        };
        match moved {
            // Nothing was stored after all.
            Err(error) if error.code() == ErrorCode::ConsumerOffsetNotFound => {}
            // Another member owns the partition by now.
            Err(error) if error.code() == ErrorCode::ConsumerGroupPartitionNotOwned => {}
            moved => moved?,
        }
    }
    Ok(())
}

/// How long a close takes at most beyond the flush: leaving a group is a call of its own.
pub fn close_limit(settings: &Settings) -> Duration {
    settings
        .drain_timeout
        .saturating_add(settings.client.core().config.request_timeout)
}
