//! What an intake makes of what its work came to.

use bytes::Bytes;
use iggy_protocol::batch::Records;
use iggy_protocol::codec::Decode;
use iggy_protocol::reply::message::{
    FetchReply, FetchSection, PARTITION_FENCED, PARTITION_UNASSIGNED, PartitionRoute, PollReply,
};
use iggy_protocol::{ErrorCode, PartitionContext, PollingStrategy};
use tokio::time::Instant;

use super::Settings;
use super::cursor::{Activity, Lookup, Moved};
use super::read_error::ReadError;
use super::state::{FetchKey, InFlight, Ready, State};
use crate::encryption;
use crate::error::{ErrorClass, IggyError, Outcome};
use crate::events::ReaderEvent;
use crate::message::{IggyMessage, messages_of};
use crate::poll::{Checkpoint, Continuation, PolledMessages, ReadStart};

/// Statuses of a section that prove that a read which stores offsets stored none (wire 7.5).
const STORED_NOTHING: &[ErrorCode] = &[
    ErrorCode::TransientNotAccepted,
    ErrorCode::InvalidSizeBytes,
    ErrorCode::HistoryUnavailable,
    ErrorCode::NotPrimary,
    ErrorCode::ConsumerGroupPartitionNotOwned,
    ErrorCode::PartitionNotFound,
    ErrorCode::TooManyConsumerOffsets,
];

/// What a read of one partition brought.
struct Brought<'a> {
    partition_id: u32,
    current_offset: u64,
    context: PartitionContext,
    records: &'a [u8],
    next: Continuation,
    commits: bool,
}

impl State {
    fn is_current(&self, partition_id: u32, generation: u64) -> bool {
        self.cursors
            .get(&partition_id)
            .is_some_and(|cursor| cursor.generation == generation)
    }

    /// A route was looked up.
    pub fn take_route(
        &mut self,
        settings: &Settings,
        (partition_id, generation): (u32, u64),
        route: Result<PartitionRoute, IggyError>,
        now: Instant,
    ) {
        self.lookups = self.lookups.saturating_sub(1);
        if !self.is_current(partition_id, generation) {
            return;
        }
        match (route, self.cursors.get_mut(&partition_id)) {
            (Ok(route), Some(cursor)) => {
                cursor.route = Some(route);
                cursor.activity = Activity::Idle;
            }
            (Err(error), _) => self.trouble(settings, &[partition_id], error, now),
            (Ok(_), None) => {}
        }
    }

    /// The stored offset of the consumer was read.
    pub fn take_stored(
        &mut self,
        settings: &Settings,
        (partition_id, generation): (u32, u64),
        lookup: Lookup,
        stored: Result<Option<u64>, IggyError>,
        now: Instant,
    ) {
        self.lookups = self.lookups.saturating_sub(1);
        if !self.is_current(partition_id, generation) {
            return;
        }
        let stored = match stored {
            Ok(stored) => stored,
            Err(error) => return self.refused(settings, partition_id, error, now),
        };
        let Some(cursor) = self.cursors.get_mut(&partition_id) else {
            return;
        };
        cursor.lookup = None;
        cursor.activity = Activity::Idle;
        match (lookup, cursor.start.strategy()) {
            (Lookup::Begin, strategy) => {
                cursor.progress.origin = stored;
                match (strategy, stored) {
                    (PollingStrategy::Next, Some(stored)) => {
                        cursor.start = PollingStrategy::Offset(stored.saturating_add(1)).into();
                    }
                    // A partition that was gained and has nothing stored starts as the application said.
                    (PollingStrategy::Next, None) if settings.start.strategy() != PollingStrategy::Next => {
                        cursor.start = settings.start;
                    }
                    (PollingStrategy::Next, None) => cursor.start = PollingStrategy::First.into(),
                    _ => {}
                }
            }
            (Lookup::Recover, PollingStrategy::Offset(next)) => {
                cursor.progress.skipped_to = stored.filter(|stored| *stored >= next);
                if let (Some(stored), Some(context)) = (stored, cursor.context()) {
                    cursor.progress.moved = Moved::To(stored, context);
                }
            }
            (Lookup::Recover, _) => {}
        }
    }

    /// A primary answered a fetch.
    pub fn take_fetch(
        &mut self,
        settings: &Settings,
        key: FetchKey,
        number: u64,
        body: Result<Bytes, IggyError>,
        now: Instant,
    ) {
        let Some(fetch) = self.fetches.get(&key).filter(|fetch| fetch.number == number) else {
            return;
        };
        let cancelled = fetch.cancel.is_cancelled();
        let Some(fetch) = self.fetches.remove(&key) else { return };
        // One that was cancelled before it was sent stored nothing, and is begun again when it is wanted.
        let body = match body {
            Err(error) if cancelled && error.code() == ErrorCode::TransientNotAccepted => {
                return self.idle(&fetch);
            }
            Err(error) if error.outcome() == Outcome::Unknown && key.1 => {
                return self.unknown(settings, &fetch, &error);
            }
            Err(error) => {
                let ids = self.current_of(&fetch);
                return self.trouble(settings, &ids, error, now);
            }
            Ok(body) => body,
        };
        self.unanswered_since = None;
        let reply = match FetchReply::from_bytes(&body).map_err(IggyError::from) {
            Ok(reply) => reply,
            Err(error) => {
                let ids = self.current_of(&fetch);
                return self.trouble(settings, &ids, error, now);
            }
        };
        // A partition without a section keeps its position.
        self.idle(&fetch);
        for (section, records) in reply.sections {
            let Some((_, generation)) = fetch.partitions.iter().find(|(id, _)| *id == section.partition_id) else {
                continue;
            };
            self.take_section(settings, &section, *generation, (records, &body), key.1, now);
        }
    }

    fn take_section(
        &mut self,
        settings: &Settings,
        section: &FetchSection,
        generation: u64,
        (records, body): (&[u8], &Bytes),
        commits: bool,
        now: Instant,
    ) {
        let id = section.partition_id;
        if section.status != 0 {
            let code = ErrorCode::from_u32(section.status);
            if commits && !STORED_NOTHING.contains(&code) {
                self.recover(id, generation);
            }
            if self.is_current(id, generation) {
                let error = IggyError::new(code, format!("the read of partition {id} was refused"));
                self.refused(settings, id, error, now);
            }
            return;
        }
        let own = self.cursors.get(&id).is_some_and(|cursor| generation >= cursor.since);
        if commits && own && section.messages_count > 0 {
            self.moved(id, section.next_offset.saturating_sub(1), section.context);
        }
        let taken_away = commits && self.cursors.get(&id).is_none_or(|cursor| generation < cursor.since);
        if !taken_away && !self.is_current(id, generation) {
            return;
        }
        let brought = Brought {
            partition_id: id,
            current_offset: section.current_offset,
            context: section.context,
            records,
            next: Continuation {
                partition_id: id,
                strategy: PollingStrategy::Offset(section.next_offset),
                context: Some(section.context),
            },
            commits,
        };
        if taken_away {
            // The partition was taken away, and its next owner goes on after these: nobody else gets them.
            let (messages, _) = read_records(&brought, body);
            let start = at(&brought, section.next_offset.saturating_sub(messages.len() as u64)).into();
            return self.bring(&brought, messages, start);
        }
        self.take_records(settings, &brought, body);
    }

    /// A partition was polled by itself.
    pub fn take_poll(
        &mut self,
        settings: &Settings,
        partition_id: u32,
        number: u64,
        body: Result<Bytes, IggyError>,
        now: Instant,
    ) {
        if self.polls.get(&partition_id).is_none_or(|poll| poll.number != number) {
            return;
        }
        let Some(poll) = self.polls.remove(&partition_id) else {
            return;
        };
        let commits = settings.commits_on_read();
        let cancelled = poll.cancel.is_cancelled();
        let current = poll
            .partitions
            .iter()
            .all(|(id, generation)| self.is_current(*id, *generation));
        let body = match body {
            Err(error) if cancelled && error.code() == ErrorCode::TransientNotAccepted => return self.idle(&poll),
            Err(error) if error.outcome() == Outcome::Unknown && commits => {
                return self.unknown(settings, &poll, &error);
            }
            Err(error) if current => return self.refused(settings, partition_id, error, now),
            Err(_) => return,
            Ok(body) => body,
        };
        self.unanswered_since = None;
        let reply = match PollReply::from_bytes(&body).map_err(IggyError::from) {
            Ok(reply) => reply,
            Err(error) if current => return self.refused(settings, partition_id, error, now),
            Err(_) => return,
        };
        let head = &reply.head;
        if matches!(head.partition_id, PARTITION_FENCED | PARTITION_UNASSIGNED) {
            let error = IggyError::of(ErrorCode::ConsumerGroupPartitionNotOwned);
            return self.refused(settings, partition_id, error, now);
        }
        let last = Records::new(reply.records).filter_map(Result::ok).last();
        let next = last.map(|batch| batch.last_offset().saturating_add(1));
        if let (true, Some(next)) = (commits, next) {
            self.moved(partition_id, next - 1, head.context);
        }
        if !current {
            return;
        }
        let Some(cursor) = self.cursors.get(&partition_id) else {
            return;
        };
        let strategy = next.map_or(cursor.start.strategy(), PollingStrategy::Offset);
        let context = if head.context.is_zero() {
            cursor.start.context()
        } else {
            Some(head.context)
        };
        let brought = Brought {
            partition_id,
            current_offset: head.current_offset,
            context: head.context,
            records: reply.records,
            next: Continuation {
                partition_id,
                strategy,
                context,
            },
            commits,
        };
        self.take_records(settings, &brought, &body);
    }

    fn moved(&mut self, partition_id: u32, offset: u64, context: PartitionContext) {
        if let Some(cursor) = self.cursors.get_mut(&partition_id) {
            cursor.progress.moved = Moved::To(offset, context);
            let ordering = self.ordering(partition_id);
            self.commits.stored(Checkpoint {
                ordering,
                ..Checkpoint::new(partition_id, offset, context)
            });
        }
    }

    fn current_of(&self, read: &InFlight) -> Vec<u32> {
        let current = |(id, generation): &&(u32, u64)| self.is_current(*id, *generation);
        read.partitions.iter().filter(current).map(|(id, _)| *id).collect()
    }

    fn idle(&mut self, read: &InFlight) {
        for id in self.current_of(read) {
            if let Some(cursor) = self.cursors.get_mut(&id)
                && cursor.activity == Activity::Busy
            {
                cursor.activity = Activity::Idle;
            }
        }
    }

    /// Whether a read stored offsets is not known. It was abandoned; what was stored is looked up before the next read.
    fn unknown(&mut self, settings: &Settings, read: &InFlight, error: &IggyError) {
        self.idle(read);
        for (id, generation) in &read.partitions {
            self.recover(*id, *generation);
        }
        for id in self.current_of(read) {
            let Some(cursor) = self.cursors.get_mut(&id) else {
                continue;
            };
            if cursor.lookup.is_some() {
                self.events.publish(ReaderEvent::ReadUncertain { partition_id: id });
                continue;
            }
            // Without a position there is nothing to go back to.
            let message = format!("what a read of partition {id} skipped is unknown: {error}");
            let mut told = IggyError::new(error.code(), message).with_outcome(Outcome::Unknown);
            if let Some(operation) = error.operation() {
                told = told.with_operation(operation);
            }
            self.stop(id, error.code());
            self.push(Ready::Refusal(ReadError::of(id, told)));
        }
        debug_assert!(settings.commits_on_read());
    }

    fn recover(&mut self, partition_id: u32, generation: u64) {
        if let Some(cursor) = self.cursors.get_mut(&partition_id) {
            cursor.progress.moved = Moved::Unknown;
            if cursor.generation != generation {
                return;
            }
            let strategy = match cursor.start.strategy() {
                PollingStrategy::First => PollingStrategy::Offset(0),
                strategy => strategy,
            };
            if let PollingStrategy::Offset(_) = strategy {
                if cursor.start.strategy() == PollingStrategy::First {
                    cursor.start = strategy.into();
                }
                cursor.lookup.get_or_insert(Lookup::Recover);
            }
        }
    }

    /// Something kept these partitions from being read at all.
    fn trouble(&mut self, settings: &Settings, ids: &[u32], error: IggyError, now: Instant) {
        let passing = error.retryable()
            || matches!(error.class(), ErrorClass::Connection)
            || matches!(
                error.code(),
                ErrorCode::TransientNotCommitted | ErrorCode::TransientNotAccepted
            );
        let one = (ids.len() == 1).then(|| ids[0]);
        let routes = &settings.client.core().routes;
        for id in ids {
            if let Some(cursor) = self.cursors.get_mut(id) {
                let key = settings.partition(*id);
                match cursor.route.take() {
                    Some(route) if error.code() == ErrorCode::NotPrimary => routes.refused_by_primary(&key, route.view),
                    _ => routes.drop_route(&key),
                }
                if passing {
                    cursor.pause(now);
                }
            }
        }
        if passing {
            // A short outage is nobody's business; one that outlasts a call is told, again and again.
            let since = *self.unanswered_since.get_or_insert(now);
            if now.duration_since(since) >= settings.client.core().config.request_timeout {
                self.unanswered_since = Some(now);
                self.push(Ready::Refusal(ReadError::of(one, error)));
            }
            return;
        }
        let code = error.code();
        for id in ids {
            self.refuse_for_good(*id, code, error.class(), now);
        }
        self.push(Ready::Refusal(ReadError::of(one, error)));
    }

    fn refuse_for_good(&mut self, id: u32, code: ErrorCode, class: ErrorClass, now: Instant) {
        let Some(cursor) = self.cursors.get_mut(&id) else {
            return;
        };
        // A position of a history that ended, an unknown outcome and a closed client need a decision of the application.
        let decided = matches!(class, ErrorClass::Stale | ErrorClass::Uncertain | ErrorClass::Closed);
        cursor.route = None;
        if cursor.refused(now) || decided {
            self.stop(id, code);
        }
    }

    /// One partition was refused.
    fn refused(&mut self, settings: &Settings, id: u32, error: IggyError, now: Instant) {
        let code = error.code();
        let Some(cursor) = self.cursors.get_mut(&id) else {
            return;
        };
        let routes = &settings.client.core().routes;
        let key = settings.partition(id);
        match code {
            ErrorCode::NotPrimary => {
                match &cursor.route {
                    Some(route) => routes.refused_by_primary(&key, route.view),
                    None => routes.drop_route(&key),
                }
                cursor.reroute(now);
            }
            // A position the application chose may meet a newer history; one of an earlier read may not go on in it.
            ErrorCode::HistoryUnavailable if cursor.chosen && cursor.start.context().is_none() => {
                routes.drop_route(&key);
                cursor.reroute(now);
            }
            ErrorCode::ConsumerGroupPartitionNotOwned if settings.is_group() => {
                routes.drop_route(&key);
                cursor.route = None;
                cursor.activity = Activity::Fenced;
                if let Some(member) = &mut self.member {
                    member.sync_is_needed(now);
                }
            }
            ErrorCode::TransientNotAccepted => {
                if cursor.pause(now) {
                    self.push(Ready::Refusal(ReadError::of(id, error)));
                }
            }
            _ => self.trouble(settings, &[id], error, now),
        }
    }

    /// Messages came.
    fn take_records(&mut self, settings: &Settings, brought: &Brought<'_>, body: &Bytes) {
        let id = brought.partition_id;
        let (mut messages, broken) = read_records(brought, body);
        let Some(cursor) = self.cursors.get_mut(&id) else {
            return;
        };
        let start = cursor.start;
        cursor.served(brought.next);
        let skipped_to = (!brought.commits).then_some(cursor.progress.skipped_to).flatten();
        if let Some(last) = skipped_to {
            // Beyond what the lost reply stored, reads store again.
            messages.retain(|message| message.header.offset <= last);
            cursor.start = at(brought, last.saturating_add(1).min(next_of(brought))).into();
            cursor.progress.skipped_to = None;
        }
        if !settings.allow_replay {
            let incarnation = brought.context.incarnation;
            messages.retain(|message| !self.was_yielded(id, incarnation, message.header.offset));
        }
        let mut unreadable = broken;
        if let Some(encryptor) = &settings.encryptor {
            for index in 0..messages.len() {
                match encryption::open(&**encryptor, &messages[index]) {
                    Ok(opened) => messages[index] = opened,
                    Err(error) => {
                        let offset = messages[index].header.offset;
                        unreadable = Some(ReadError {
                            partition_id: Some(id),
                            error,
                            skip: Some(at(brought, offset.saturating_add(1))),
                            offset: Some(offset),
                            record: Some(messages[index].payload.clone()),
                        });
                        messages.truncate(index);
                        break;
                    }
                }
            }
        }
        self.bring(brought, messages, start);
        if let Some(error) = unreadable {
            // It is read again until the application skips it.
            if let (Some(cursor), Some(offset)) = (self.cursors.get_mut(&id), error.offset) {
                cursor.start = ReadStart::from(at(brought, offset));
            }
            self.stop(id, error.error.code());
            self.push(Ready::Refusal(error));
        }
    }
}

impl State {
    /// Messages for the application, if there are any.
    fn bring(&mut self, brought: &Brought<'_>, messages: Vec<IggyMessage>, start: ReadStart) {
        if messages.is_empty() {
            return;
        }
        let bytes = messages.iter().map(IggyMessage::size).sum();
        let polled = PolledMessages {
            partition_id: brought.partition_id,
            current_offset: brought.current_offset,
            count: messages.len() as u32,
            messages,
            context: brought.context,
            start,
            ordering: self.ordering(brought.partition_id),
        };
        self.push(Ready::Batch(polled, bytes));
    }
}

fn at(brought: &Brought<'_>, offset: u64) -> Continuation {
    Continuation {
        partition_id: brought.partition_id,
        strategy: PollingStrategy::Offset(offset),
        context: Some(brought.context),
    }
}

fn next_of(brought: &Brought<'_>) -> u64 {
    match brought.next.strategy {
        PollingStrategy::Offset(next) => next,
        _ => u64::MAX,
    }
}

/// Views the messages of a read, up to a record that is no batch.
fn read_records(brought: &Brought<'_>, body: &Bytes) -> (Vec<IggyMessage>, Option<ReadError>) {
    let mut messages = Vec::new();
    let mut read = 0;
    for batch in Records::new(brought.records) {
        match batch {
            Ok(batch) => {
                read += batch.bytes().len();
                messages_of(body, &batch, &mut messages);
            }
            Err(error) => {
                let offset = messages.last().map(|message| message.header.offset.saturating_add(1));
                let error = ReadError {
                    partition_id: Some(brought.partition_id),
                    error: IggyError::new(error.code(), format!("a record cannot be read: {error}")),
                    skip: Some(brought.next),
                    offset,
                    record: Some(body.slice_ref(&brought.records[read.min(brought.records.len())..])),
                };
                return (messages, Some(error));
            }
        }
    }
    (messages, None)
}
