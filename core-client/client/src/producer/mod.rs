//! Producers: messages in, confirmations out, directly or in the background.
//!
//! A direct producer sends from the calling task and says where everything was stored. A background producer takes
//! messages into a bounded buffer and sends them in batches. Either may be idempotent: then a partition writes each batch
//! once, however often it is sent.

mod background;
mod builder;
mod direct;
mod failure;
mod idempotent;
mod settings;

pub use builder::IggyProducerBuilder;
pub use failure::SendFailed;
pub use settings::{BackgroundConfig, BackpressureMode, DirectConfig, ErrorCallback, Sharding};

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use iggy_protocol::reply::message::SendConfirmation;
use iggy_protocol::{ErrorCode, Identifier, Partitioning};
use tokio::time::Duration;

use crate::client::IggyClient;
use crate::encryption::{self, Encryptor};
use crate::error::{IggyError, OperationId, Outcome};
use crate::message::IggyMessage;
use crate::producer::background::Workers;
use crate::producer::direct::Pace;
use crate::producer::idempotent::Sequences;
use crate::topic_setup::{TopicCreation, ensure_topic};

/// Chooses the partition of a send by its messages; overrides every partitioning.
pub trait Partitioner: Send + Sync + std::fmt::Debug {
    /// The partition of these messages.
    fn calculate_partition_id(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        messages: &[IggyMessage],
    ) -> Result<u32, IggyError>;
}

/// How a producer works; set by its builder.
#[derive(Debug)]
struct Plan {
    client: IggyClient,
    stream: Identifier,
    topic: Identifier,
    encryptor: Option<Arc<dyn Encryptor>>,
    partitioner: Option<Arc<dyn Partitioner>>,
    partitioning: Partitioning,
    create_stream: bool,
    create_topic: Option<TopicCreation>,
    direct: DirectConfig,
    sequences: Option<Sequences>,
    pace: Pace,
    /// Uncertain operations of this producer: it resolves them before it sends on.
    uncertain: Mutex<HashSet<OperationId>>,
    ready: AtomicBool,
    closed: AtomicBool,
}

/// A producer of one stream and topic. Clones share everything.
#[derive(Debug, Clone)]
pub struct IggyProducer {
    plan: Arc<Plan>,
    background: Option<Arc<Workers>>,
}

/// How long [`IggyProducer::shutdown`] waits for the background to drain.
const SHUTDOWN_LIMIT: Duration = Duration::from_mins(1);

impl IggyProducer {
    /// Makes sure that stream and topic exist, creating them if the builder allows it. Must succeed before the first send.
    ///
    /// # Errors
    /// The stream or topic is missing and may not, or cannot, be created.
    pub async fn init(&self) -> Result<(), IggyError> {
        let plan = &self.plan;
        ensure_topic(
            &plan.client,
            &plan.stream,
            &plan.topic,
            plan.create_stream,
            plan.create_topic,
        )
        .await?;
        if let Some(sequences) = &self.plan.sequences {
            sequences.begin(&self.plan.client).await?;
        }
        self.plan.ready.store(true, Ordering::Release);
        Ok(())
    }

    /// Sends messages. A direct producer returns where they were stored; a background producer returns nothing yet.
    ///
    /// # Errors
    /// Direct: [`ErrorCode::ProducerSendFailed`] with a [`SendFailed`] as its source. Background: the buffer is full, see
    /// [`BackpressureMode`].
    ///
    /// # Cancel safety
    /// A dropped call goes on in the background once it has begun: its messages are sent all the same, once.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient, messages: Vec<iggy::IggyMessage>) -> Result<(), iggy::IggyError> {
    /// let producer = client
    ///     .producer("orders", "created")?
    ///     .idempotent()
    ///     .build();
    /// producer.init().await?;
    /// producer.send(messages).await?;
    /// # Ok(()) }
    /// ```
    pub async fn send(&self, messages: Vec<IggyMessage>) -> Result<Vec<SendConfirmation>, IggyError> {
        self.dispatch(messages, None, None).await
    }

    /// Sends one message.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_one(&self, message: IggyMessage) -> Result<Vec<SendConfirmation>, IggyError> {
        self.send(vec![message]).await
    }

    /// Sends messages by another partitioning than the producer's.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_with_partitioning(
        &self,
        messages: Vec<IggyMessage>,
        partitioning: Partitioning,
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        self.dispatch(messages, Some(partitioning), None).await
    }

    /// Sends messages to another stream and topic, which must exist.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_to(
        &self,
        stream: Identifier,
        topic: Identifier,
        messages: Vec<IggyMessage>,
        partitioning: Option<Partitioning>,
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        self.dispatch(messages, partitioning, Some((stream, topic))).await
    }

    async fn dispatch(
        &self,
        messages: Vec<IggyMessage>,
        partitioning: Option<Partitioning>,
        place: Option<(Identifier, Identifier)>,
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        let plan = &self.plan;
        if plan.closed.load(Ordering::Acquire) {
            return Err(IggyError::new(ErrorCode::ProducerClosed, "the producer was shut down"));
        }
        if !plan.ready.load(Ordering::Acquire) {
            return Err(IggyError::new(
                ErrorCode::InvalidConfiguration,
                "call init before the first send",
            ));
        }
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let job = Job {
            place: place.unwrap_or_else(|| (plan.stream.clone(), plan.topic.clone())),
            partitioning: partitioning.unwrap_or_else(|| plan.partitioning.clone()),
            messages: plan.seal(messages)?,
        };
        match &self.background {
            // A send that has begun goes on to its end when its future is dropped: an idempotent producer must know what
            // became of a sequence before it uses the next, and a send of many requests is not cut in two.
            None => {
                let plan = plan.clone();
                let sending = tokio::spawn(async move { plan.send_job(job).await });
                sending.await.unwrap_or_else(|error| {
                    let message = format!("the send was interrupted: {error}");
                    Err(IggyError::new(ErrorCode::ClientShutdown, message).with_outcome(Outcome::Unknown))
                })
            }
            Some(workers) => workers.submit(job).await.map(|()| Vec::new()),
        }
    }

    /// Refuses further sends, waits until everything buffered was sent and every callback returned, at most a minute.
    ///
    /// # Errors
    /// [`ErrorCode::TaskTimeout`] when that took longer; what is left is still sent in the background.
    pub async fn shutdown(&self) -> Result<(), IggyError> {
        self.plan.closed.store(true, Ordering::Release);
        match &self.background {
            None => Ok(()),
            Some(workers) => workers.drain(SHUTDOWN_LIMIT).await,
        }
    }

    /// The stream.
    pub fn stream(&self) -> &Identifier {
        &self.plan.stream
    }

    /// The topic.
    pub fn topic(&self) -> &Identifier {
        &self.plan.topic
    }
}

/// Messages on their way, encrypted already.
#[derive(Debug)]
struct Job {
    place: (Identifier, Identifier),
    partitioning: Partitioning,
    messages: Vec<IggyMessage>,
}

impl Job {
    /// Bytes this job takes of the buffer.
    fn size(&self) -> usize {
        self.messages
            .iter()
            .map(|message| message.size() + iggy_protocol::limits::MESSAGE_FRAME_SIZE)
            .sum()
    }
}

impl Plan {
    fn seal(&self, messages: Vec<IggyMessage>) -> Result<Vec<IggyMessage>, IggyError> {
        match &self.encryptor {
            None => Ok(messages),
            Some(encryptor) => messages
                .iter()
                .map(|message| encryption::seal(&**encryptor, message))
                .collect(),
        }
    }

    /// Remembers an uncertain operation of this producer.
    fn note_uncertain(&self, error: &IggyError) {
        if error.outcome() == Outcome::Unknown
            && let Some(operation) = error.operation()
        {
            self.uncertain
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(operation);
        }
    }

    /// Whether an operation that blocks a lane is one of ours; it is forgotten here.
    fn take_own(&self, operation: OperationId) -> bool {
        self.uncertain
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&operation)
    }
}
