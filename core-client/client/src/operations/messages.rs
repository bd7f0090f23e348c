//! Sending and polling.

use std::sync::PoisonError;

use bytes::{Bytes, BytesMut};
use iggy_protocol::partitioning::partition_of_key;
use iggy_protocol::reply::message::{SendConfirmation, SendReply};
use iggy_protocol::request::message::{DeferredPoll, PollMessages, SendTarget};
use iggy_protocol::{
    BatchBuilder, Command, Consumer, ConsumerKind, Decode, Encode, ErrorCode, Identifier, Partitioning,
    PollingStrategy, ProducerSection,
};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::answer::CallKind;
use crate::call::{Call, execute};
use crate::client::IggyClient;
use crate::deferred::{Times, Timing};
use crate::encryption;
use crate::error::{IggyError, Outcome};
use crate::frame_buffer::FrameBuffer;
use crate::message::IggyMessage;
use crate::poll::{CommitPolicy, PollOptions, PolledMessages, ReadStart};
use crate::routes::RouteKey;
use crate::session::random_id;

impl IggyClient {
    /// Reads messages of one partition, waiting for them as long as `options` say. An expired wait is no error: the result
    /// holds whatever came. Start from a strategy, or from the continuation of an earlier read.
    ///
    /// Dropping the future cancels the poll at the server. With [`CommitPolicy::OnRead`] a dropped or lost read may have
    /// stored its offset all the same.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient, stream_id: iggy::Identifier, topic_id: iggy::Identifier) -> Result<(), iggy::IggyError> {
    /// use iggy::prelude::*;
    /// # let (partition_id, offset, messages_per_batch) = (0, 0, 10);
    /// # let consumer = Consumer::new(Identifier::named("audit")?);
    /// let polled = client
    ///     .poll_messages(
    ///         &stream_id,
    ///         &topic_id,
    ///         partition_id,
    ///         &consumer,
    ///         &PollingStrategy::offset(offset),
    ///         PollOptions {
    ///             count: messages_per_batch,
    ///             ..PollOptions::wait(IggyDuration::ONE_SECOND)
    ///         },
    ///     )
    ///     .await?;
    /// if let Some(checkpoint) = polled.checkpoint() {
    ///     client
    ///         .store_consumer_position(&consumer, &stream_id, &topic_id, &checkpoint)
    ///         .await?;
    /// }
    /// let next = polled.continuation();
    /// # let _ = client.poll_messages(&stream_id, &topic_id, partition_id, &consumer, &next, PollOptions::default());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What [`PollOptions::validate`] refuses, [`CommitPolicy::Auto`], which only a consumer serves, a continuation of
    /// another partition, and whatever the server refuses.
    pub async fn poll_messages(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        consumer: &Consumer,
        start: impl Into<ReadStart>,
        options: PollOptions,
    ) -> Result<PolledMessages, IggyError> {
        let start = start.into();
        let call = poll_call(stream, topic, partition_id, consumer, &start, options)?;
        let payload = execute(self.core(), call).await?;
        let mut polled = PolledMessages::decode(&payload, start)?;
        if let Some(encryptor) = self.encryptor() {
            for message in &mut polled.messages {
                *message = encryption::open(&*encryptor, message)?;
            }
        }
        Ok(polled)
    }

    /// The body of a poll's reply, as it came.
    pub(crate) async fn poll_body(
        &self,
        partition: &RouteKey,
        consumer: &Consumer,
        start: &ReadStart,
        options: PollOptions,
        cancel: CancellationToken,
    ) -> Result<Bytes, IggyError> {
        let RouteKey {
            stream,
            topic,
            partition_id,
        } = partition;
        let mut call = poll_call(stream, topic, *partition_id, consumer, start, options)?;
        call.cancel = Some(cancel);
        execute(self.core(), call).await
    }

    /// Sends messages and returns where they were stored. Balanced and key partitioning are resolved by the client. An
    /// empty result means that the server stored them without saying where.
    ///
    /// # Errors
    /// Nothing to send, a message outside the limits, and whatever the server refuses. With
    /// [`ErrorCode::OperationUncertain`] the messages may or may not be stored: resolve or abandon the operation.
    pub async fn send_messages(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partitioning: &Partitioning,
        messages: &[IggyMessage],
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        if messages.is_empty() {
            return Err(IggyError::new(
                ErrorCode::InvalidMessagesCount,
                "there is no message to send",
            ));
        }
        let sealed = self.sealed(messages)?;
        let messages = sealed.as_deref().unwrap_or(messages);
        let chosen = match self.partitioner() {
            Some(partitioner) => Some(partitioner.calculate_partition_id(stream, topic, messages)?),
            None => None,
        };
        self.send_sealed(stream, topic, partitioning, chosen, messages).await
    }

    /// Sends a batch of an idempotent producer to one partition. The same batch may be sent again, under whatever request
    /// and session: the partition writes it once.
    ///
    /// # Errors
    /// As [`Self::send_messages`], and [`ErrorCode::ProducerSequenceOutOfOrder`], [`ErrorCode::ProducerEpochFenced`] and
    /// [`ErrorCode::ProducerUnknown`], none of which wrote anything.
    pub async fn send_producer_messages(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        producer: ProducerSection,
        messages: &[IggyMessage],
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        producer.validate()?;
        let sealed = self.sealed(messages)?;
        let messages = sealed.as_deref().unwrap_or(messages);
        self.send_to(stream, topic, partition_id, Some(producer), messages)
            .await
    }

    /// An id for an idempotent producer, made from the session without a request.
    ///
    /// # Errors
    /// The client is not signed in, or the session has given out all its 2^20 ids.
    pub fn next_producer_id(&self) -> Result<u64, IggyError> {
        let bound = self.core().require_session()?;
        let mut counter = self
            .core()
            .producer_index
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if counter.0 != bound.session {
            *counter = (bound.session, 0);
        }
        let id = iggy_protocol::batch::producer_id(bound.session, counter.1);
        let exhausted = || {
            IggyError::new(
                ErrorCode::ProducerIdsExhausted,
                "the session has given out all its producer ids",
            )
        };
        counter.1 = counter.1.saturating_add(1);
        id.ok_or_else(exhausted)
    }

    fn sealed(&self, messages: &[IggyMessage]) -> Result<Option<Vec<IggyMessage>>, IggyError> {
        let Some(encryptor) = self.encryptor() else {
            return Ok(None);
        };
        messages
            .iter()
            .map(|message| encryption::seal(&*encryptor, message))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Sends messages that are encrypted already, choosing the partition anew once if it turns out not to exist.
    pub(crate) async fn send_sealed(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partitioning: &Partitioning,
        chosen: Option<u32>,
        messages: &[IggyMessage],
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        let partition = match chosen {
            Some(partition) => partition,
            None => self.choose_partition(stream, topic, partitioning, false).await?,
        };
        let fixed = chosen.is_some() || matches!(partitioning, Partitioning::PartitionId(_));
        match self.send_to(stream, topic, partition, None, messages).await {
            Err(error)
                if error.code() == ErrorCode::PartitionNotFound && error.outcome() == Outcome::NotApplied && !fixed =>
            {
                let partition = self.choose_partition(stream, topic, partitioning, true).await?;
                self.send_to(stream, topic, partition, None, messages).await
            }
            outcome => outcome,
        }
    }

    /// The partition a send goes to.
    pub(crate) async fn choose_partition(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partitioning: &Partitioning,
        fresh: bool,
    ) -> Result<u32, IggyError> {
        let none = || IggyError::new(ErrorCode::NoPartitions, format!("topic {topic} has no partitions"));
        match partitioning {
            Partitioning::PartitionId(id) => Ok(*id),
            Partitioning::MessagesKey(key) => {
                partition_of_key(key, self.partitions_count(stream, topic, fresh).await?).ok_or_else(none)
            }
            Partitioning::Balanced => {
                let count = self.partitions_count(stream, topic, fresh).await?;
                let mut cursors = self.core().cursors.lock().unwrap_or_else(PoisonError::into_inner);
                let cursor = cursors.entry((stream.clone(), topic.clone())).or_default();
                let partition = cursor.checked_rem(count).ok_or_else(none)?;
                *cursor = cursor.wrapping_add(1);
                Ok(partition)
            }
        }
    }

    async fn partitions_count(&self, stream: &Identifier, topic: &Identifier, fresh: bool) -> Result<u32, IggyError> {
        let core = self.core();
        if !fresh
            && let Some(bound) = core.session.bound()
            && let Some(count) = core
                .routes
                .partitions_count(stream, topic, bound.epoch, core.session.watermark())
        {
            return Ok(count);
        }
        if fresh {
            core.refresh_roster(core.default_deadline()).await;
        }
        if let Some(details) = self.get_topic(stream, topic).await? {
            return Ok(details.topic.partitions_count);
        }
        let code = match topic {
            Identifier::Numeric(_) => ErrorCode::TopicIdNotFound,
            Identifier::Named(_) => ErrorCode::TopicNameNotFound,
        };
        Err(IggyError::new(
            code,
            format!("there is no topic {topic} in stream {stream}"),
        ))
    }

    /// One send request to one partition.
    pub(crate) async fn send_to(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
        producer: Option<ProducerSection>,
        messages: &[IggyMessage],
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        let frame = send_frame(stream, topic, partition_id, producer, messages)?;
        let key = RouteKey {
            stream: stream.clone(),
            topic: topic.clone(),
            partition_id,
        };
        let call = Call::new(Command::SendMessages, frame, self.core().default_deadline()).at_partition(key, None);
        let payload = execute(self.core(), call).await?;
        // The messages are stored, whatever the reply says about where.
        Ok(SendReply::from_bytes(&payload)
            .map(|reply| reply.confirmations)
            .unwrap_or_default())
    }
}

/// A deferred poll (106); without a wait it answers at once.
fn poll_call(
    stream: &Identifier,
    topic: &Identifier,
    partition_id: u32,
    consumer: &Consumer,
    start: &ReadStart,
    options: PollOptions,
) -> Result<Call, IggyError> {
    options.validate()?;
    if let CommitPolicy::Auto(_) = options.commit {
        let message = "a single poll cannot commit by itself later: use a consumer, or Manual or OnRead";
        return Err(IggyError::new(ErrorCode::InvalidConfiguration, message));
    }
    if consumer.kind == ConsumerKind::External {
        let message = "an external group keeps offsets only and is never polled";
        return Err(IggyError::new(ErrorCode::FeatureUnavailable, message));
    }
    if let ReadStart::Continuation(continuation) = start
        && continuation.partition_id != partition_id
    {
        let message = format!(
            "the continuation belongs to partition {}, not {partition_id}",
            continuation.partition_id
        );
        return Err(IggyError::new(ErrorCode::InvalidCommand, message));
    }
    let commits = options.commit == CommitPolicy::OnRead;
    let timeout: Duration = options.request_timeout().into();
    let poll = DeferredPoll {
        poll: PollMessages {
            consumer: consumer.clone(),
            stream: stream.clone(),
            topic: topic.clone(),
            partition_id: Some(partition_id),
            strategy: start.strategy(),
            count: options.count,
            auto_commit: commits,
        },
        wait_us: options.max_wait.as_micros(),
        min_count: options.min_count,
        max_bytes: options.max_bytes,
        request_timeout_us: options.request_timeout().as_micros(),
    };
    let began = Instant::now();
    let key = RouteKey {
        stream: stream.clone(),
        topic: topic.clone(),
        partition_id,
    };
    let mut call = Call::new(Command::PollMessagesDeferred, FrameBuffer::of(&poll), began + timeout);
    call = call.at_partition(key, start.context());
    call.kind = if commits {
        CallKind::CommittingRead
    } else {
        CallKind::Read
    };
    call.reply_limit = poll.reply_limit();
    call.timing = Some(Timing {
        times: Times::POLL,
        began,
        wait: options.max_wait.into(),
        timeout,
    });
    // Reads that depend on a stored position, or move it, take their turn; others need not wait for anybody.
    if commits || start.strategy() == PollingStrategy::Next {
        call = call.in_turn_of(consumer);
    }
    Ok(call)
}

/// A send request in one buffer: header, names and batch.
fn send_frame(
    stream: &Identifier,
    topic: &Identifier,
    partition_id: u32,
    producer: Option<ProducerSection>,
    messages: &[IggyMessage],
) -> Result<FrameBuffer, IggyError> {
    let messages_count = u32::try_from(messages.len())
        .map_err(|_| IggyError::new(ErrorCode::TooManyMessages, "one send holds at most 2^32-1 messages"))?;
    let target = SendTarget {
        stream: stream.clone(),
        topic: topic.clone(),
        partitioning: Partitioning::PartitionId(partition_id),
        messages_count,
    };
    let mut buffer: BytesMut = FrameBuffer::new().into_inner();
    target.encode(&mut buffer);
    let mut builder = BatchBuilder::after(buffer);
    builder.reserve(messages.len(), messages.iter().map(IggyMessage::size).sum());
    for message in messages {
        let id = if message.header.id == 0 {
            random_message_id()
        } else {
            message.header.id
        };
        let headers = message.user_headers.as_deref().unwrap_or_default();
        builder.push(id, &message.payload, headers, message.header.origin_timestamp)?;
    }
    Ok(FrameBuffer::from_reserved(builder.finish(producer)?))
}

/// A random UUID of version 4, as a number.
fn random_message_id() -> u128 {
    const VERSION: u128 = 0x4 << 76;
    const VARIANT: u128 = 0x2 << 62;
    random_id() & !(0xf << 76) & !(0x3 << 62) | VERSION | VARIANT
}
