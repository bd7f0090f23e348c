//! What an intake knows: cursors, what was read ahead, what is under way. Changed under one lock, never across a wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::task::Waker;
use std::vec::IntoIter;

use iggy_protocol::{ErrorCode, PartitionContext};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Settings;
use super::commits::Commits;
use super::cursor::{Activity, Cursor, Lookup, Moved};
use super::membership::Member;
use super::read_error::ReadError;
use crate::consumer::ReceivedMessage;
use crate::error::IggyError;
use crate::events::{EventSource, ReaderEvent};
use crate::message::IggyMessage;
use crate::poll::{Checkpoint, Ordering, PolledMessages, ReadStart};

/// How far an intake has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It reads.
    Open,
    /// It stores what it owes, and leaves.
    Closing,
    /// It is over.
    Closed,
}

/// What waits for the application.
#[derive(Debug)]
pub enum Ready {
    /// Messages of one partition, and their bytes.
    Batch(PolledMessages, usize),
    /// A reason why there are none.
    Refusal(ReadError),
}

/// A batch that is handed out message by message.
#[derive(Debug)]
struct Current {
    partition_id: u32,
    newest: u64,
    context: PartitionContext,
    start: ReadStart,
    ordering: Ordering,
    rest: IntoIter<IggyMessage>,
}

/// Fetches with one primary: those that store offsets and those that do not are never one.
pub type FetchKey = (u8, bool);

/// A read that is under way.
#[derive(Debug)]
pub struct InFlight {
    /// Counted, so that an answer to a read that was given up is known.
    pub number: u64,
    /// What it reads, each in its ordering.
    pub partitions: Vec<(u32, u64)>,
    /// Ends it.
    pub cancel: CancellationToken,
}

/// The state of an intake.
#[derive(Debug)]
pub struct State {
    pub phase: Phase,
    pub cursors: BTreeMap<u32, Cursor>,
    /// At most one fetch of each kind per primary.
    pub fetches: BTreeMap<FetchKey, InFlight>,
    /// Polls of partitions that start at a time or at their end.
    pub polls: BTreeMap<u32, InFlight>,
    pub ready: VecDeque<Ready>,
    current: Option<Current>,
    /// A message the application gave back.
    put_back: Option<ReceivedMessage>,
    pub held_messages: usize,
    pub held_bytes: usize,
    pub commits: Commits,
    /// Lookups under way, and until when reads wait for them, so that partitions are read together.
    pub lookups: usize,
    pub gather_until: Option<Instant>,
    /// Whether positions are being stored.
    pub storing: bool,
    /// Positions of partitions that were taken away.
    pub drained: Vec<Checkpoint>,
    /// The last message handed out of each partition, and its history: it is not handed out twice.
    yielded: BTreeMap<u32, (u64, u64)>,
    pub member: Option<Member>,
    /// Whether the application has asked for a message at all.
    pub asked: bool,
    /// Whether it waits for one now.
    pub waiting: bool,
    pub waker: Option<Waker>,
    pub events: EventSource<ReaderEvent>,
    /// Since when no primary has answered at all.
    pub unanswered_since: Option<Instant>,
    pub last_partition: Option<u32>,
    reader: u64,
    generations: u64,
    numbers: u64,
}

/// Readers of this process, counted.
static READERS: AtomicU64 = AtomicU64::new(1);

impl State {
    /// Nothing read yet.
    pub fn new(settings: &Settings, member: Option<Member>) -> Self {
        Self {
            phase: Phase::Open,
            cursors: BTreeMap::new(),
            fetches: BTreeMap::new(),
            polls: BTreeMap::new(),
            ready: VecDeque::new(),
            current: None,
            put_back: None,
            held_messages: 0,
            held_bytes: 0,
            commits: Commits::new(settings.options.commit),
            lookups: 0,
            gather_until: None,
            storing: false,
            drained: Vec::new(),
            yielded: BTreeMap::new(),
            member,
            asked: false,
            waiting: false,
            waker: None,
            events: EventSource::new(),
            unanswered_since: None,
            last_partition: None,
            reader: READERS.fetch_add(1, Atomic::Relaxed),
            generations: 0,
            numbers: 0,
        }
    }

    /// The next number of a read.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }

    /// Whether a position comes from this intake, or from a single poll.
    pub fn knows(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.ordering.reader == 0 || checkpoint.ordering.reader == self.reader
    }

    /// The ordering positions of a partition are handed out in.
    pub fn ordering(&self, partition_id: u32) -> Ordering {
        let generation = self.cursors.get(&partition_id).map_or(0, |cursor| cursor.generation);
        Ordering {
            reader: self.reader,
            generation,
        }
    }

    /// Reads a partition from now on. One that was gained goes on after what was stored for it.
    pub fn add(&mut self, settings: &Settings, partition_id: u32, gained: bool) {
        let generation = self.generation();
        let gained = gained && settings.start.strategy() != super::DEFAULT_START;
        let mut cursor = Cursor::new(settings.start, generation, settings.retry_interval);
        if gained || settings.commits_on_read() {
            cursor.lookup = Some(Lookup::Begin);
        }
        if gained {
            cursor.start = super::DEFAULT_START.into();
        }
        self.cursors.insert(partition_id, cursor);
        self.commits.begin(partition_id, generation);
    }

    /// Stops reading a partition for good. Messages of it that reads have counted as consumed already are still handed
    /// out; others are dropped.
    pub fn remove(&mut self, settings: &Settings, partition_id: u32) {
        self.cancel_reads_of(settings, partition_id);
        if self.cursors.remove(&partition_id).is_none() {
            return;
        }
        if !settings.commits_on_read() {
            self.drop_ahead(partition_id);
        }
        self.drained.extend(self.commits.end(partition_id));
    }

    fn drop_ahead(&mut self, partition_id: u32) {
        self.ready.retain(|ready| match ready {
            Ready::Batch(polled, _) => polled.partition_id != partition_id,
            Ready::Refusal(error) => error.partition_id != Some(partition_id),
        });
        self.count_held();
        self.current.take_if(|current| current.partition_id == partition_id);
        self.put_back.take_if(|message| message.partition_id == partition_id);
    }

    fn count_held(&mut self) {
        let held = self.ready.iter().filter_map(|ready| match ready {
            Ready::Batch(polled, bytes) => Some((polled.messages.len(), *bytes)),
            Ready::Refusal(_) => None,
        });
        (self.held_messages, self.held_bytes) = held.fold((0, 0), |sum, held| (sum.0 + held.0, sum.1 + held.1));
    }

    /// Goes on somewhere else in a partition, in a new ordering.
    pub fn seek(&mut self, settings: &Settings, partition_id: u32, start: ReadStart) -> Result<(), IggyError> {
        self.check_own(partition_id)?;
        super::check_start(&start, partition_id)?;
        self.cancel_reads_of(settings, partition_id);
        let generation = self.generation();
        if let Some(cursor) = self.cursors.get_mut(&partition_id) {
            cursor.seek(start, generation);
        }
        self.drop_ahead(partition_id);
        self.yielded.remove(&partition_id);
        self.commits.begin(partition_id, generation);
        self.events.publish(ReaderEvent::Sought { partition_id });
        Ok(())
    }

    /// Refuses a partition that is not read here.
    pub fn check_own(&self, partition_id: u32) -> Result<(), IggyError> {
        if self.cursors.contains_key(&partition_id) {
            return Ok(());
        }
        let code = if self.member.is_some() {
            ErrorCode::ConsumerGroupPartitionNotOwned
        } else {
            ErrorCode::InvalidCommand
        };
        Err(IggyError::new(
            code,
            format!("partition {partition_id} is not read here"),
        ))
    }

    /// Ends whatever reads a partition, with the others it reads.
    fn cancel_reads_of(&mut self, settings: &Settings, partition_id: u32) {
        let reads = |read: &InFlight| read.partitions.iter().any(|(id, _)| *id == partition_id);
        let keys: Vec<FetchKey> = self
            .fetches
            .iter()
            .filter(|(_, fetch)| reads(fetch))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.cancel_fetch(key);
        }
        if let Some(poll) = self.polls.get(&partition_id) {
            poll.cancel.cancel();
            if !settings.commits_on_read() {
                self.polls.remove(&partition_id);
            }
        }
    }

    /// Ends a waiting fetch. One that stores nothing is over at once; the answer of another is awaited.
    pub fn cancel_fetch(&mut self, key: FetchKey) {
        let (_, commits) = key;
        if commits {
            if let Some(fetch) = self.fetches.get(&key) {
                fetch.cancel.cancel();
            }
            return;
        }
        let Some(fetch) = self.fetches.remove(&key) else {
            return;
        };
        fetch.cancel.cancel();
        for (id, generation) in fetch.partitions {
            if let Some(cursor) = self.cursors.get_mut(&id)
                && cursor.generation == generation
                && cursor.activity == Activity::Busy
            {
                cursor.activity = Activity::Idle;
            }
        }
    }

    /// Ends every read. True when none is left whose answer is awaited.
    pub fn cancel_reads(&mut self, settings: &Settings) -> bool {
        for key in self.fetches.keys().copied().collect::<Vec<_>>() {
            self.cancel_fetch(key);
        }
        self.polls.values().for_each(|poll| poll.cancel.cancel());
        if !settings.commits_on_read() {
            self.polls.clear();
        }
        self.fetches.is_empty() && self.polls.is_empty()
    }

    /// Something is there for the application.
    pub fn push(&mut self, ready: Ready) {
        if let Ready::Batch(polled, bytes) = &ready {
            self.held_messages += polled.messages.len();
            self.held_bytes += bytes;
        }
        self.ready.push_back(ready);
        self.wake();
    }

    /// Lets the application look again.
    pub fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Whether nothing is left to hand out.
    pub fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.current.is_none() && self.put_back.is_none()
    }

    /// Whether nothing will come before the application seeks.
    pub fn has_stopped(&self) -> bool {
        let stopped = self.cursors.values().all(|cursor| cursor.activity == Activity::Stopped);
        match &self.member {
            None => stopped,
            Some(member) => member.has_failed(),
        }
    }

    /// Whether a message was handed out already.
    pub fn was_yielded(&self, partition_id: u32, incarnation: u64, offset: u64) -> bool {
        self.yielded
            .get(&partition_id)
            .is_some_and(|(history, last)| *history == incarnation && offset <= *last)
    }

    /// Takes the next batch, or the reason why there is none.
    pub fn take_batch(&mut self, settings: &Settings) -> Option<Result<PolledMessages, ReadError>> {
        let polled = match self.put_back.take() {
            Some(message) => message.into(),
            None => match self.current.take() {
                Some(current) => current.into_batch(),
                None => match self.next_ready()? {
                    Ok(polled) => polled,
                    Err(error) => return Some(Err(error)),
                },
            },
        };
        if let Some(checkpoint) = polled.checkpoint() {
            self.yields(settings, checkpoint, polled.messages.len() as u32, true);
        }
        Some(Ok(polled))
    }

    /// Takes the next message, or the reason why there is none.
    pub fn take_message(&mut self, settings: &Settings) -> Option<Result<ReceivedMessage, ReadError>> {
        if let Some(message) = self.put_back.take() {
            let last_of_batch = self.current.is_none();
            self.yields(settings, message.checkpoint(), 1, last_of_batch);
            return Some(Ok(message));
        }
        loop {
            if let Some(current) = &mut self.current
                && let Some(message) = current.rest.next()
            {
                let received = current.received(message);
                let last_of_batch = current.rest.len() == 0;
                if last_of_batch {
                    self.current = None;
                }
                self.yields(settings, received.checkpoint(), 1, last_of_batch);
                return Some(Ok(received));
            }
            match self.next_ready()? {
                Ok(polled) => self.current = Some(Current::of(polled)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn next_ready(&mut self) -> Option<Result<PolledMessages, ReadError>> {
        match self.ready.pop_front()? {
            Ready::Batch(polled, bytes) => {
                self.held_messages -= polled.messages.len();
                self.held_bytes -= bytes;
                Some(Ok(polled))
            }
            Ready::Refusal(error) => Some(Err(error)),
        }
    }

    fn yields(&mut self, settings: &Settings, checkpoint: Checkpoint, messages: u32, last_of_batch: bool) {
        let partition_id = checkpoint.partition_id;
        self.last_partition = Some(partition_id);
        self.yielded
            .insert(partition_id, (checkpoint.context.incarnation, checkpoint.offset));
        self.commits.handed_out(checkpoint, messages, last_of_batch);
        if settings.commits_on_read()
            && let Some(cursor) = self.cursors.get_mut(&partition_id)
        {
            cursor.progress.delivered = Some(checkpoint.offset);
        }
    }

    /// The application could not process the message it was handed last: it gets it again.
    pub fn give_back(&mut self, settings: &Settings, message: ReceivedMessage) {
        let id = message.partition_id;
        if self.ordering(id) != message.checkpoint().ordering {
            return;
        }
        let before = message.message.header.offset.checked_sub(1);
        match before {
            Some(before) => drop(
                self.yielded
                    .insert(id, (message.checkpoint().context.incarnation, before)),
            ),
            None => drop(self.yielded.remove(&id)),
        }
        self.commits.taken_back(id, before);
        if settings.commits_on_read()
            && let Some(cursor) = self.cursors.get_mut(&id)
        {
            cursor.progress.delivered = before;
        }
        self.put_back = Some(message);
    }

    /// The stored offsets that reads moved beyond what the application was given, and what they were before that.
    pub fn overshoots(&self) -> Vec<(u32, Option<u64>, Option<PartitionContext>)> {
        let overshoot = |(id, cursor): (&u32, &Cursor)| {
            let progress = &cursor.progress;
            let given = progress.delivered.or(progress.origin);
            match progress.moved {
                Moved::Not => None,
                Moved::To(offset, _) if Some(offset) == given => None,
                Moved::To(_, context) => Some((*id, given, Some(context))),
                Moved::Unknown => Some((*id, given, cursor.context())),
            }
        };
        self.cursors.iter().filter_map(overshoot).collect()
    }

    /// A partition is not read any more before a seek.
    pub fn stop(&mut self, partition_id: u32, code: ErrorCode) {
        if let Some(cursor) = self.cursors.get_mut(&partition_id) {
            cursor.activity = Activity::Stopped;
            self.events.publish(ReaderEvent::Stopped { partition_id, code });
            self.wake();
        }
    }
}

impl Current {
    fn of(polled: PolledMessages) -> Self {
        Self {
            partition_id: polled.partition_id,
            newest: polled.current_offset,
            context: polled.context,
            start: polled.start,
            ordering: polled.ordering,
            rest: polled.messages.into_iter(),
        }
    }

    fn received(&self, message: IggyMessage) -> ReceivedMessage {
        let checkpoint = Checkpoint {
            partition_id: self.partition_id,
            offset: message.header.offset,
            context: self.context,
            ordering: self.ordering,
        };
        ReceivedMessage::new(message, self.newest, checkpoint)
    }

    fn into_batch(self) -> PolledMessages {
        PolledMessages {
            partition_id: self.partition_id,
            current_offset: self.newest,
            count: self.rest.len() as u32,
            messages: self.rest.collect(),
            context: self.context,
            start: self.start,
            ordering: self.ordering,
        }
    }
}
