//! The application's side of an intake: asking for messages, positions, seeks, the end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use iggy_protocol::ErrorCode;
use iggy_protocol::reply::group::Assignment;
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Settings;
use super::driver;
use super::membership::Member;
use super::read_error::ReadError;
use super::state::{Phase, State};
use crate::consumer::ReceivedMessage;
use crate::error::IggyError;
use crate::events::{Events, ReaderEvent};
use crate::memberships::Seat;
use crate::poll::{Checkpoint, PolledMessages, ReadStart};

/// What the application's handles and the task share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub settings: Settings,
    state: Mutex<State>,
    /// Wakes the task.
    pub wanted: Notify,
    /// Held while a position is stored: positions are stored one at a time, in order.
    pub storing: tokio::sync::Mutex<()>,
    /// The seat of a group member, until it is dropped or has left.
    seat: Mutex<Option<Seat>>,
    outcome: Mutex<Option<IggyError>>,
    over: watch::Sender<bool>,
}

/// An intake and its task, which ends with it unless it is being closed.
#[derive(Debug)]
pub(crate) struct Intake {
    shared: Arc<Shared>,
    task: Option<DropGuard>,
}

/// Whose messages a group member or reader reads first.
#[derive(Debug)]
pub(crate) enum Share {
    /// These partitions, named by the application.
    Named(Vec<u32>),
    /// What a group assigned.
    Assigned(Seat, Assignment),
}

impl Intake {
    /// Begins. Nothing is read before the first message is asked for. Must be called within a tokio runtime.
    pub fn start(settings: Settings, share: Share) -> Self {
        let member = match &share {
            Share::Named(_) => None,
            Share::Assigned(..) => Some(Member::new()),
        };
        let mut state = State::new(&settings, member);
        let (seat, news) = match share {
            Share::Named(partitions) => {
                for id in partitions {
                    state.add(&settings, id, false);
                }
                (None, None)
            }
            Share::Assigned(seat, assignment) => {
                state.assign(&settings, assignment.generation, &assignment.partitions);
                let news = seat.news.clone();
                (Some(seat), Some(news))
            }
        };
        let shared = Arc::new(Shared {
            settings,
            state: Mutex::new(state),
            wanted: Notify::new(),
            storing: tokio::sync::Mutex::new(()),
            seat: Mutex::new(seat),
            outcome: Mutex::new(None),
            over: watch::Sender::new(false),
        });
        let gone = CancellationToken::new();
        tokio::spawn(driver::run(shared.clone(), news, gone.clone()));
        Self {
            shared,
            task: Some(gone.drop_guard()),
        }
    }

    /// What handles share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The next batch; `None` when it is closed, or when nothing will come before a seek.
    pub fn poll_batch(&self, context: &mut Context<'_>) -> Poll<Option<Result<PolledMessages, ReadError>>> {
        self.shared.poll_next(context, State::take_batch)
    }

    /// The next message; `None` as with [`Self::poll_batch`].
    pub fn poll_message(&self, context: &mut Context<'_>) -> Poll<Option<Result<ReceivedMessage, ReadError>>> {
        self.shared.poll_next(context, State::take_message)
    }

    /// Marks that the application waits, until the guard is dropped.
    pub fn waiting(&self) -> Waiting<'_> {
        Waiting(&self.shared)
    }

    /// Stores what is owed, and leaves the group. Goes on in the background when it is dropped.
    pub async fn close(&mut self) -> Result<(), IggyError> {
        {
            let mut state = self.shared.state();
            if state.phase == Phase::Open {
                state.phase = Phase::Closing;
            }
            state.wake();
        }
        self.shared.wanted.notify_one();
        // From here on the task ends by itself.
        if let Some(task) = self.task.take() {
            task.disarm();
        }
        let mut over = self.shared.over.subscribe();
        let limit = driver::close_limit(&self.shared.settings);
        let closed = tokio::time::timeout(limit, over.wait_for(|over| *over)).await.is_ok();
        if !closed {
            let message = "it was not closed in time; it goes on in the background";
            return Err(IggyError::new(ErrorCode::TaskTimeout, message));
        }
        let outcome = self
            .shared
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        outcome.map_or(Ok(()), Err)
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        // One that is being closed keeps its seat until it has left the group.
        if self.task.is_some() {
            self.shared.leave_seat();
        }
    }
}

/// The application waits for a message while this lives.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let on_read = self.0.settings.commits_on_read();
        let mut state = self.0.state();
        if std::mem::take(&mut state.waiting) && on_read {
            self.0.wanted.notify_one();
        }
    }
}

impl Shared {
    /// The state, for a moment.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_next<T>(
        &self,
        context: &mut Context<'_>,
        take: impl Fn(&mut State, &Settings) -> Option<Result<T, ReadError>>,
    ) -> Poll<Option<Result<T, ReadError>>> {
        let mut state = self.state();
        if state.phase != Phase::Open {
            return Poll::Ready(None);
        }
        let begins = !std::mem::replace(&mut state.asked, true);
        let (held, waited) = (state.ready.len(), state.waiting);
        state.commits.asked_for_next();
        let taken = take(&mut state, &self.settings);
        let next = match taken {
            Some(taken) => {
                state.waiting = false;
                Poll::Ready(Some(taken))
            }
            None if state.has_stopped() => Poll::Ready(None),
            None => {
                state.waiting = true;
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        };
        // There is room to read on, a position to store, or a read that is made only while somebody waits.
        let waits = self.settings.commits_on_read() && waited != state.waiting;
        if begins || waits || state.ready.len() != held || state.commits.needs_attention() {
            self.wanted.notify_one();
        }
        next
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.state().phase != Phase::Open
    }

    /// Ends every read; true when none is left whose answer is awaited.
    pub fn reads_are_over(&self) -> bool {
        self.state().cancel_reads(&self.settings)
    }

    /// It is over.
    pub fn closed(&self, outcome: Result<(), IggyError>) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome.err();
        {
            let mut state = self.state();
            state.phase = Phase::Closed;
            state.ready.clear();
            state.events.publish(ReaderEvent::Closed);
            state.wake();
        }
        self.leave_seat();
        self.over.send_replace(true);
    }

    /// Another consumer of the client may read for the group.
    fn leave_seat(&self) {
        drop(self.seat.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Writes a position to the server.
    pub async fn store(&self, position: &Checkpoint) -> Result<(), IggyError> {
        let Settings {
            client,
            consumer,
            stream,
            topic,
            ..
        } = &self.settings;
        client.store_consumer_position(consumer, stream, topic, position).await
    }

    fn check(&self, checkpoint: &Checkpoint) -> Result<(), IggyError> {
        let state = self.state();
        if !state.knows(checkpoint) {
            let message = "the position was handed out by another reader or consumer";
            return Err(IggyError::new(ErrorCode::InvalidCommand, message));
        }
        state.check_own(checkpoint.partition_id)
    }

    fn refuse_on_read(&self) -> Result<(), IggyError> {
        if self.settings.commits_on_read() {
            let message = "positions are stored as part of each read: commit nothing, or use Manual or Auto commits";
            return Err(IggyError::new(ErrorCode::InvalidCommand, message));
        }
        Ok(())
    }

    /// Stores a position of a message that was handed out.
    pub async fn commit(self: &Arc<Self>, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.refuse_on_read()?;
        self.check(&checkpoint)?;
        self.in_order(move |shared| async move {
            if !shared.state().commits.advances(&checkpoint) {
                return Ok(());
            }
            shared.store(&checkpoint).await?;
            shared.state().commits.stored(checkpoint);
            Ok(())
        })
        .await
    }

    /// Runs to its end even when the caller goes away, after what was begun before.
    async fn in_order<F, T>(self: &Arc<Self>, work: F) -> Result<(), IggyError>
    where
        F: FnOnce(Arc<Self>) -> T + Send + 'static,
        T: Future<Output = Result<(), IggyError>> + Send,
    {
        let shared = self.clone();
        let task = tokio::spawn(async move {
            let _turn = shared.storing.lock().await;
            work(shared.clone()).await
        });
        task.await.unwrap_or_else(|error| {
            let message = format!("the write was interrupted: {error}");
            Err(IggyError::new(ErrorCode::ClientShutdown, message).with_outcome(crate::error::Outcome::Unknown))
        })
    }

    /// Notes that the application is done up to a position.
    pub fn mark(&self, checkpoint: Checkpoint) -> Result<(), IggyError> {
        self.check(&checkpoint)?;
        let mut state = self.state();
        if !state.commits.takes_marks() {
            let message =
                "marks count for automatic commits after marks alone: CommitPolicy::Auto with CommitAfter::Marked";
            return Err(IggyError::new(ErrorCode::InvalidCommand, message));
        }
        state.commits.marked(checkpoint);
        drop(state);
        self.wanted.notify_one();
        Ok(())
    }

    /// Stores an offset of a partition that is read here, wherever it lies.
    pub async fn store_offset(self: &Arc<Self>, partition_id: u32, offset: u64) -> Result<(), IggyError> {
        self.refuse_on_read()?;
        self.state().check_own(partition_id)?;
        self.in_order(move |shared| async move {
            let Settings {
                client,
                consumer,
                stream,
                topic,
                ..
            } = &shared.settings;
            client
                .store_consumer_offset(consumer, stream, topic, partition_id, offset)
                .await
        })
        .await
    }

    /// Deletes the stored offset of a partition that is read here.
    pub async fn delete_offset(self: &Arc<Self>, partition_id: u32) -> Result<(), IggyError> {
        self.refuse_on_read()?;
        self.state().check_own(partition_id)?;
        self.in_order(move |shared| async move {
            let Settings {
                client,
                consumer,
                stream,
                topic,
                ..
            } = &shared.settings;
            client
                .delete_consumer_offset(consumer, stream, topic, partition_id)
                .await
        })
        .await
    }

    /// Goes on somewhere else in a partition.
    pub fn seek(&self, partition_id: u32, start: ReadStart) -> Result<(), IggyError> {
        self.state().seek(&self.settings, partition_id, start)?;
        self.wanted.notify_one();
        Ok(())
    }

    /// Whether a position belongs to the present ordering of its partition.
    pub fn is_current(&self, checkpoint: &Checkpoint) -> bool {
        let ordering = self.state().ordering(checkpoint.partition_id);
        let unordered = checkpoint.ordering.reader == 0 && ordering.generation != 0;
        unordered || checkpoint.ordering == ordering
    }

    /// The application gives a message back.
    pub fn give_back(&self, message: ReceivedMessage) {
        self.state().give_back(&self.settings, message);
    }

    /// The partitions that are read, ascending.
    pub fn partitions(&self) -> Vec<u32> {
        self.state().cursors.keys().copied().collect()
    }

    /// The partitions that wait for a seek, ascending.
    pub fn stopped(&self) -> Vec<u32> {
        let state = self.state();
        let stopped = state
            .cursors
            .iter()
            .filter(|(_, cursor)| cursor.activity == super::cursor::Activity::Stopped);
        stopped.map(|(id, _)| *id).collect()
    }

    /// The offset handed out last of a partition.
    pub fn last_consumed(&self, partition_id: u32) -> Option<u64> {
        self.state().commits.last_handed_out(partition_id)
    }

    /// The offset stored last for a partition by this reader.
    pub fn last_stored(&self, partition_id: u32) -> Option<u64> {
        self.state().commits.last_stored(partition_id)
    }

    /// The partition of the message handed out last.
    pub fn last_partition(&self) -> Option<u32> {
        self.state().last_partition
    }

    /// Subscribes to what happens from now on.
    pub fn subscribe(&self) -> Events<ReaderEvent> {
        self.state().events.subscribe()
    }
}
