//! The reads of a reader: who is asked for what, and what comes of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use iggy_protocol::batch::Records;
use iggy_protocol::codec::Decode;
use iggy_protocol::limits::MAX_PARTITIONS_PER_REQUEST;
use iggy_protocol::reply::message::{FetchReply, FetchSection, PartitionRoute};
use iggy_protocol::request::message::{FetchMessages, FetchTarget};
use iggy_protocol::{ErrorCode, PollingStrategy};
use tokio::time::Instant;

use super::partition::State;
use super::{InFlight, PartitionReader, ReadError};
use crate::encryption;
use crate::error::{ErrorClass, IggyError};
use crate::message::messages_of;
use crate::poll::{CommitPolicy, Continuation, PollOptions, PolledMessages, ReadStart};
use crate::routes::RouteKey;

/// What a task of a reader ended with.
#[derive(Debug)]
pub(super) enum Done {
    /// A route was looked up.
    Routed {
        partition_id: u32,
        generation: u64,
        route: Result<PartitionRoute, IggyError>,
    },
    /// A primary answered a fetch.
    Fetched {
        primary: u8,
        number: u64,
        body: Result<Bytes, IggyError>,
    },
    /// A partition that starts at a time or at its end was polled.
    Polled {
        partition_id: u32,
        generation: u64,
        polled: Box<Result<PolledMessages, IggyError>>,
    },
}

impl PartitionReader {
    /// Begins whatever can be begun while there is room for what it brings.
    pub(super) fn begin_reads(&mut self) {
        let held = self.ready.iter().filter_map(|ready| ready.as_ref().ok());
        let (messages, bytes) = held.fold((0, 0), |(messages, bytes), polled| {
            let size: usize = polled.messages.iter().map(crate::message::IggyMessage::size).sum();
            (messages + polled.messages.len(), bytes + size)
        });
        if self.closed || messages >= self.prefetch.messages || bytes >= self.prefetch.bytes {
            return;
        }
        let now = Instant::now();
        let mut by_primary: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        let due: Vec<u32> = self
            .partitions
            .iter()
            .filter(|(_, partition)| partition.is_due(now))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            let Some(partition) = self.partitions.get_mut(&id) else {
                continue;
            };
            partition.resume_at = None;
            match &partition.route {
                _ if partition.needs_poll() => self.begin_poll(id),
                None => self.begin_lookup(id),
                Some(route) => by_primary.entry(route.primary_replica).or_default().push(id),
            }
        }
        for (primary, ids) in by_primary {
            self.begin_fetch(primary, ids);
        }
    }

    fn begin_lookup(&mut self, partition_id: u32) {
        let Some(partition) = self.partitions.get_mut(&partition_id) else {
            return;
        };
        partition.state = State::Busy;
        let generation = partition.generation;
        let core = self.client.core().clone();
        let key = RouteKey {
            stream: self.stream.clone(),
            topic: self.topic.clone(),
            partition_id,
        };
        self.tasks.spawn(async move {
            let route = core.find_route(&key, core.default_deadline()).await;
            Done::Routed {
                partition_id,
                generation,
                route,
            }
        });
    }

    fn read_options(&self) -> PollOptions {
        // Automatic commits are the reader's own.
        PollOptions {
            commit: CommitPolicy::Manual,
            ..self.options
        }
    }

    fn begin_poll(&mut self, partition_id: u32) {
        let options = self.read_options();
        let Some(partition) = self.partitions.get_mut(&partition_id) else {
            return;
        };
        partition.state = State::Busy;
        let (generation, start) = (partition.generation, partition.start);
        let (client, consumer) = (self.client.clone(), self.consumer.clone());
        let (stream, topic) = (self.stream.clone(), self.topic.clone());
        self.tasks.spawn(async move {
            let polled = client
                .poll_messages(&stream, &topic, partition_id, &consumer, start, options)
                .await;
            Done::Polled {
                partition_id,
                generation,
                polled: Box::new(polled),
            }
        });
    }

    /// Asks a primary for these partitions, together with those a fetch is waiting for there.
    fn begin_fetch(&mut self, primary: u8, mut ids: Vec<u32>) {
        let most = MAX_PARTITIONS_PER_REQUEST as usize;
        if let Some(waiting) = self.fetches.get(&primary) {
            if waiting.partitions.len() >= most {
                return;
            }
            ids.extend(waiting.partitions.iter().copied());
            self.cancel(primary);
        }
        // Those that have waited longest go first when not all fit.
        ids.sort_by_key(|id| self.partitions.get(id).map(|partition| (partition.turn, *id)));
        ids.truncate(most);
        self.numbers += 1;
        let number = self.numbers;
        let mut targets = Vec::with_capacity(ids.len());
        for id in &ids {
            let Some(partition) = self.partitions.get_mut(id) else {
                continue;
            };
            let Some(context) = partition.context() else { continue };
            partition.state = State::Busy;
            partition.turn = number;
            targets.push(FetchTarget {
                partition_id: *id,
                strategy: match partition.start.strategy() {
                    PollingStrategy::First => PollingStrategy::Offset(0),
                    strategy => strategy,
                },
                max_bytes: self.options.max_bytes,
                incarnation: context.incarnation,
                owner_generation: context.owner_generation,
            });
        }
        let fetch = FetchMessages {
            consumer: self.consumer.clone(),
            stream: self.stream.clone(),
            topic: self.topic.clone(),
            wait_us: self.options.max_wait.as_micros(),
            request_timeout_us: self.options.request_timeout().as_micros(),
            min_count: self.options.min_count,
            count: self.options.count,
            max_bytes: self.options.max_bytes,
            auto_commit: false,
            targets,
        };
        let client = self.client.clone();
        let abort = self.tasks.spawn(async move {
            let body = client.fetch_partitions(primary, &fetch).await;
            Done::Fetched { primary, number, body }
        });
        self.fetches.insert(
            primary,
            InFlight {
                number,
                partitions: ids,
                abort,
            },
        );
    }

    /// Ends a waiting fetch; its partitions can be read again at once. It stored nothing.
    pub(super) fn cancel(&mut self, primary: u8) {
        let Some(fetch) = self.fetches.remove(&primary) else {
            return;
        };
        fetch.abort.abort();
        for id in fetch.partitions {
            if let Some(partition) = self.partitions.get_mut(&id) {
                partition.state = State::Idle;
            }
        }
    }

    pub(super) fn take_in(&mut self, done: Done) {
        let now = Instant::now();
        match done {
            Done::Routed {
                partition_id,
                generation,
                route,
            } => {
                let partition = self.partitions.get_mut(&partition_id);
                let Some(partition) = partition.filter(|partition| partition.generation == generation) else {
                    return;
                };
                match route {
                    Ok(route) => {
                        partition.route = Some(route);
                        partition.state = State::Idle;
                    }
                    Err(error) => self.trouble(&[partition_id], error, now),
                }
            }
            Done::Polled {
                partition_id,
                generation,
                polled,
            } => {
                let partition = self.partitions.get_mut(&partition_id);
                let Some(partition) = partition.filter(|partition| partition.generation == generation) else {
                    return;
                };
                match *polled {
                    Ok(polled) => {
                        self.unanswered_since = None;
                        partition.served(polled.continuation());
                        if !polled.is_empty() {
                            self.ready.push_back(Ok(polled));
                        }
                    }
                    Err(error) => self.trouble(&[partition_id], error, now),
                }
            }
            Done::Fetched { primary, number, body } => {
                let current = self.fetches.get(&primary).is_some_and(|fetch| fetch.number == number);
                let Some(fetch) = current.then(|| self.fetches.remove(&primary)).flatten() else {
                    return;
                };
                match body {
                    Ok(body) => self.take_sections(&fetch, &body, now),
                    Err(error) => self.trouble(&fetch.partitions, error, now),
                }
            }
        }
    }

    /// Something kept these partitions from being read at all.
    fn trouble(&mut self, ids: &[u32], error: IggyError, now: Instant) {
        let passing = error.retryable()
            || matches!(error.class(), ErrorClass::Connection)
            || matches!(
                error.code(),
                ErrorCode::TransientNotCommitted | ErrorCode::TransientNotAccepted
            );
        let one = (ids.len() == 1).then(|| ids[0]);
        if passing {
            for id in ids {
                if let Some(partition) = self.partitions.get_mut(id) {
                    partition.route = None;
                    partition.pause(now);
                }
            }
            // A short outage is nobody's business; one that outlasts a call is told, again and again.
            let since = *self.unanswered_since.get_or_insert(now);
            if now.duration_since(since) >= self.client.core().config.request_timeout {
                self.unanswered_since = Some(now);
                self.ready.push_back(Err(ReadError::of(one, error)));
            }
            return;
        }
        for id in ids {
            if let Some(partition) = self.partitions.get_mut(id) {
                partition.route = None;
                partition.refused(now);
            }
        }
        self.ready.push_back(Err(ReadError::of(one, error)));
    }

    fn take_sections(&mut self, fetch: &InFlight, body: &Bytes, now: Instant) {
        self.unanswered_since = None;
        let reply = match FetchReply::from_bytes(body) {
            Ok(reply) => reply,
            Err(error) => return self.trouble(&fetch.partitions, error.into(), now),
        };
        // A partition without a section keeps its position.
        for id in &fetch.partitions {
            if let Some(partition) = self.partitions.get_mut(id) {
                partition.state = State::Idle;
            }
        }
        for (section, records) in reply.sections {
            if !fetch.partitions.contains(&section.partition_id) {
                continue;
            }
            match ErrorCode::from_u32(section.status) {
                _ if section.status == 0 => self.take_records(&section, records, body),
                code => self.refused(section.partition_id, code, now),
            }
        }
    }

    fn take_records(&mut self, section: &FetchSection, records: &[u8], body: &Bytes) {
        let id = section.partition_id;
        let Some(partition) = self.partitions.get_mut(&id) else {
            return;
        };
        let start = partition.start;
        let mut messages = Vec::new();
        for batch in Records::new(records) {
            match batch {
                Ok(batch) => messages_of(body, &batch, &mut messages),
                Err(error) => {
                    partition.state = State::Stopped;
                    let error = IggyError::new(error.code(), error.to_string());
                    return self.ready.push_back(Err(ReadError::of(id, error)));
                }
            }
        }
        let at = |offset| Continuation {
            partition_id: id,
            strategy: PollingStrategy::Offset(offset),
            context: Some(section.context),
        };
        partition.served(at(section.next_offset));
        let mut unreadable = None;
        if let Some(encryptor) = self.client.encryptor() {
            for index in 0..messages.len() {
                match encryption::open(&*encryptor, &messages[index]) {
                    Ok(opened) => messages[index] = opened,
                    Err(error) => {
                        unreadable = Some((error, messages[index].clone()));
                        messages.truncate(index);
                        break;
                    }
                }
            }
        }
        if let Some((_, message)) = &unreadable {
            // It is read again until the application skips it.
            partition.start = ReadStart::from(at(message.header.offset));
            partition.state = State::Stopped;
        }
        if !messages.is_empty() {
            self.ready
                .push_back(Ok(PolledMessages::of_section(section, messages, start)));
        }
        if let Some((error, message)) = unreadable {
            let offset = message.header.offset;
            self.ready.push_back(Err(ReadError {
                partition_id: Some(id),
                error,
                skip: Some(at(offset + 1)),
                offset: Some(offset),
                record: Some(message.payload),
            }));
        }
    }

    fn refused(&mut self, id: u32, code: ErrorCode, now: Instant) {
        let Some(partition) = self.partitions.get_mut(&id) else {
            return;
        };
        let key = RouteKey {
            stream: self.stream.clone(),
            topic: self.topic.clone(),
            partition_id: id,
        };
        let error = IggyError::new(code, format!("the read of partition {id} was refused"));
        match code {
            ErrorCode::NotPrimary => {
                self.client.core().routes.drop_route(&key);
                return partition.reroute(now);
            }
            // A position the application chose may meet a newer history; one of an earlier read may not go on in it.
            ErrorCode::HistoryUnavailable if partition.chosen && partition.start.context().is_none() => {
                self.client.core().routes.drop_route(&key);
                return partition.reroute(now);
            }
            ErrorCode::HistoryUnavailable => partition.state = State::Stopped,
            ErrorCode::TransientNotAccepted => partition.pause(now),
            _ if error.retryable() => return partition.pause(now),
            _ => {
                partition.route = None;
                partition.refused(now);
            }
        }
        self.ready.push_back(Err(ReadError::of(id, error)));
    }
}
