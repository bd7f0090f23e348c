//! Consumers and readers, shared by many callers: reads wait for each other, everything else waits for nobody.
//!
//! What a read brings is a [`Delivery`]; see [`crate::handout`] for what happens to one that nobody takes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use iggy::{
    Checkpoint, ErrorCode, IggyConsumer, IggyConsumerState, IggyError, PartitionReader, PolledMessages, ReadStart,
    ReceivedMessage,
};

use crate::Failure;
use crate::events::Subscription;
use crate::handout::{Delivery, Handout, Source};

/// What may be asked of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// The next message.
    Message,
    /// The next messages of one partition at once.
    Batch,
}

/// What a consumer handed out, as it was asked for.
#[derive(Debug)]
pub enum Read {
    /// A message.
    Message(ReceivedMessage),
    /// Messages of one partition.
    Batch(Arc<PolledMessages>),
    /// Nothing will come: the consumer was shut down, or every named partition has stopped.
    End,
}

/// A consumer of the core as a source.
#[derive(Debug)]
pub struct Messages {
    consumer: IggyConsumer,
    /// Of a batch that nobody took, when messages are asked for after it.
    left: VecDeque<ReceivedMessage>,
}

impl Messages {
    fn state(&self) -> Option<IggyConsumerState> {
        self.consumer.state().ok()
    }
}

fn is_before_seek(state: &IggyConsumerState, position: Option<Checkpoint>, sought: &BTreeSet<u32>) -> bool {
    position.is_some_and(|position| sought.contains(&position.partition_id) && !state.is_current(&position))
}

impl Source for Messages {
    type Ask = Ask;
    type Item = Read;

    async fn read(&mut self, ask: Ask) -> Result<Read, Failure> {
        if let Some(message) = self.left.pop_front() {
            return Ok(self.fit(Read::Message(message), &ask));
        }
        let read = match ask {
            Ask::Message => self.consumer.next().await.map(|next| next.map(Read::Message)),
            Ask::Batch => {
                let next = self.consumer.next_batch().await;
                next.map(|next| next.map(|batch| Read::Batch(Arc::new(batch))))
            }
        };
        let read = read.transpose().map(|read| read.unwrap_or(Read::End));
        read.map_err(Failure::from)
    }

    fn is_before_seek(&self, item: &Read, sought: &BTreeSet<u32>) -> bool {
        let position = match item {
            Read::Message(message) => Some(message.checkpoint()),
            Read::Batch(batch) => batch.checkpoint(),
            Read::End => None,
        };
        self.state()
            .is_some_and(|state| is_before_seek(&state, position, sought))
    }

    fn sought(&mut self, sought: &BTreeSet<u32>) {
        if let Some(state) = self.state() {
            self.left
                .retain(|message| !is_before_seek(&state, Some(message.checkpoint()), sought));
        }
    }

    fn fit(&mut self, item: Read, ask: &Ask) -> Read {
        match (item, ask) {
            (Read::Message(message), Ask::Batch) => Read::Batch(Arc::new(message.into())),
            (Read::Batch(batch), Ask::Message) => {
                let mut messages = ReceivedMessage::each_of(Arc::unwrap_or_clone(batch));
                let first = messages.next();
                for message in messages.collect::<Vec<_>>().into_iter().rev() {
                    self.left.push_front(message);
                }
                first.map_or(Read::End, Read::Message)
            }
            (item, _) => item,
        }
    }

    fn ended() -> Result<Read, Failure> {
        Ok(Read::End)
    }
}

/// A consumer of its own, or a member of a group.
pub struct SharedConsumer {
    messages: Handout<Messages>,
    /// From `init` on.
    state: OnceLock<IggyConsumerState>,
}

impl SharedConsumer {
    /// Takes a consumer that was not initialised.
    pub fn new(consumer: IggyConsumer) -> Self {
        Self {
            messages: Handout::new(Messages {
                consumer,
                left: VecDeque::new(),
            }),
            state: OnceLock::new(),
        }
    }

    /// Joins the group, or looks the partitions up.
    ///
    /// # Errors
    /// Whatever the core says.
    ///
    /// # Cancel safety
    /// May be called again.
    pub async fn init(&self) -> Result<(), Failure> {
        let init = async |messages: &mut Messages| {
            messages.consumer.init().await?;
            messages.consumer.state()
        };
        let state = self.messages.with(init).await?;
        self.state.get_or_init(|| state);
        Ok(())
    }

    /// The next message or batch, or what an earlier read brought and nobody took.
    ///
    /// # Errors
    /// What keeps a partition from being read; the next read goes on.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn read(&self, ask: Ask) -> Result<Delivery<Messages>, Failure> {
        self.messages.read(ask).await
    }

    /// What commits, marks and knows positions.
    ///
    /// # Errors
    /// It was not initialised.
    pub fn state(&self) -> Result<&IggyConsumerState, Failure> {
        let message = "the consumer was not initialised; call init first";
        self.state
            .get()
            .ok_or_else(|| IggyError::new(ErrorCode::NotConnected, message).into())
    }

    /// What [`state`](Self::state) says, when there is one.
    pub fn state_if_initialised(&self) -> Option<&IggyConsumerState> {
        self.state.get()
    }

    /// Goes on somewhere else in a partition.
    ///
    /// # Errors
    /// It was not initialised, or whatever the core says.
    pub fn seek(&self, partition_id: u32, start: impl Into<ReadStart>) -> Result<(), Failure> {
        self.state()?.seek(partition_id, start)?;
        self.messages.seek(partition_id);
        Ok(())
    }

    /// Subscribes to what happens from now on.
    ///
    /// # Errors
    /// It was not initialised.
    pub fn subscribe_events(&self) -> Result<Subscription, Failure> {
        Ok(Subscription::Reader(self.state()?.subscribe_events()))
    }

    /// Ends the reads, stores what automatic commits still owe, leaves the group.
    ///
    /// # Errors
    /// Whatever the core says.
    pub async fn shutdown(&self) -> Result<(), Failure> {
        self.messages.close();
        let ended = self
            .messages
            .with(async |messages| messages.consumer.shutdown().await)
            .await;
        ended.map_err(Failure::from)
    }
}

/// A reader of the core as a source.
#[derive(Debug)]
pub struct Batches {
    reader: PartitionReader,
    state: IggyConsumerState,
}

impl Source for Batches {
    type Ask = ();
    type Item = Arc<PolledMessages>;

    async fn read(&mut self, (): ()) -> Result<Arc<PolledMessages>, Failure> {
        self.reader.next().await.map(Arc::new).map_err(Failure::from)
    }

    fn is_before_seek(&self, item: &Arc<PolledMessages>, sought: &BTreeSet<u32>) -> bool {
        is_before_seek(&self.state, item.checkpoint(), sought)
    }

    fn ended() -> Result<Arc<PolledMessages>, Failure> {
        Err(IggyError::new(ErrorCode::ClientShutdown, "the reader is closed").into())
    }
}

/// A reader of many partitions of one topic.
pub struct SharedReader {
    batches: Handout<Batches>,
    state: IggyConsumerState,
}

impl SharedReader {
    /// Takes a reader.
    pub fn new(reader: PartitionReader) -> Self {
        let state = reader.state();
        Self {
            batches: Handout::new(Batches {
                reader,
                state: state.clone(),
            }),
            state,
        }
    }

    /// The next batch, or what an earlier read brought and nobody took.
    ///
    /// # Errors
    /// What keeps a partition from being read; the next read goes on. `ClientShutdown` once it is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn read(&self) -> Result<Delivery<Batches>, Failure> {
        self.batches.read(()).await
    }

    /// What commits, marks and knows positions.
    pub fn state(&self) -> &IggyConsumerState {
        &self.state
    }

    /// Goes on somewhere else in a partition.
    ///
    /// # Errors
    /// Whatever the core says.
    pub fn seek(&self, partition_id: u32, start: impl Into<ReadStart>) -> Result<(), Failure> {
        self.state.seek(partition_id, start)?;
        self.batches.seek(partition_id);
        Ok(())
    }

    /// Subscribes to what happens from now on.
    pub fn subscribe_events(&self) -> Subscription {
        Subscription::Reader(self.state.subscribe_events())
    }

    /// Ends the reads and stores what automatic commits still owe.
    ///
    /// # Errors
    /// Whatever the core says.
    pub async fn close(&self) -> Result<(), Failure> {
        self.batches.close();
        let ended = self.batches.with(async |batches| batches.reader.close().await).await;
        ended.map_err(Failure::from)
    }
}
