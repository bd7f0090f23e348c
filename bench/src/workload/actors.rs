//! Who works: producers, consumers, and those that are both. Each has a client of its own, with one request under way.

use super::options::Options;
use super::pace::Pace;
use super::recorder::{Moved, Record, Recorder};
use anyhow::{Context, ensure};
use iggy::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Barrier;

/// A read that brings nothing for this long ends the workload with an error.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long a member listens before it looks whether all is read.
const LOOK: Duration = Duration::from_millis(200);
/// How long a read waits at the server.
const WAIT: IggyDuration = IggyDuration::ONE_SECOND;

/// What an actor does.
#[derive(Clone, Debug)]
pub enum Role {
    /// Sends to its partition, or to all of them in turn.
    Producer {
        /// Its partition; none means all.
        partition: Option<u32>,
    },
    /// Reads a partition from its start.
    Consumer {
        /// Its partition.
        partition: u32,
    },
    /// Reads as a member of a group.
    Member {
        /// Its group.
        group: String,
    },
    /// Sends a batch and reads it before it sends the next one; its latency is that of both.
    Both {
        /// Its partition.
        partition: u32,
    },
    /// The same through a group of its own.
    BothInGroup {
        /// Its partition.
        partition: u32,
        /// Its group.
        group: String,
    },
}

impl Role {
    /// Whether it sends.
    pub fn sends(&self) -> bool {
        !matches!(self, Self::Consumer { .. } | Self::Member { .. })
    }
}

/// When an actor is done.
#[derive(Clone, Debug)]
pub enum Goal {
    /// It has sent so many batches.
    Batches(u32),
    /// It and those it shares with have read so many messages; how many are left.
    Messages(Arc<AtomicU64>),
}

/// One of a workload's actors.
pub struct Actor {
    /// What it does.
    pub role: Role,
    /// Its stream.
    pub stream: String,
    /// When it is done.
    pub goal: Goal,
    /// Time of a batch where there is a limit.
    pub pace: Option<Duration>,
    /// What the workload was told.
    pub options: Options,
    /// Where all begin at once.
    pub start: Arc<Barrier>,
    /// What all have moved.
    pub moved: Moved,
}

impl Goal {
    fn is_ahead(&self, done: u32) -> bool {
        match self {
            Self::Batches(batches) => done < *batches,
            Self::Messages(left) => left.load(Ordering::Relaxed) > 0,
        }
    }

    fn count(&self, messages: u64) {
        if let Self::Messages(left) = self {
            let less = |left: u64| Some(left.saturating_sub(messages));
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }
}

/// The topic of each stream.
pub const TOPIC: &str = "bench";

impl Actor {
    /// Connects, warms up, waits for the others, works.
    pub async fn run(self, connection_string: String) -> anyhow::Result<Record> {
        let client = IggyClient::from_connection_string(&connection_string)?;
        client.connect().await?;
        let record = self.work(&client).await;
        let ended = client.shutdown().await;
        let record = record.with_context(|| format!("{:?} of {}", self.role, self.stream))?;
        ended?;
        Ok(record)
    }

    async fn work(&self, client: &IggyClient) -> anyhow::Result<Record> {
        match &self.role {
            Role::Producer { partition } => {
                let mut sender = Sender::new(client, self, *partition).await?;
                self.pass(&mut sender).await
            }
            Role::Consumer { partition } if self.options.high_level_api => {
                let builder = client.consumer("bench", &self.stream, TOPIC)?.partitions([*partition]);
                let mut receiver = Receiver::new(builder, self).await?;
                self.pass(&mut receiver).await
            }
            Role::Consumer { partition } => self.pass(&mut Poller::new(client, self, *partition)?).await,
            Role::Member { group } => {
                let builder = client.consumer_group(group, &self.stream, TOPIC)?;
                let mut receiver = Receiver::new(builder, self).await?;
                self.pass(&mut receiver).await
            }
            Role::Both { partition } => {
                let sender = Sender::new(client, self, Some(*partition)).await?;
                let poller = Poller::new(client, self, *partition)?;
                self.pass(&mut Echo { sender, reader: poller }).await
            }
            Role::BothInGroup { partition, group } => {
                let sender = Sender::new(client, self, Some(*partition)).await?;
                let builder = client.consumer_group(group, &self.stream, TOPIC)?;
                let reader = Receiver::new(builder, self).await?;
                self.pass(&mut Echo { sender, reader }).await
            }
        }
    }

    /// Warms up and measures. Whoever only reads warms up by connecting: what it read then would be missing later.
    async fn pass(&self, steps: &mut impl Steps) -> anyhow::Result<Record> {
        if self.role.sends() {
            let mut pace = Pace::new(self.pace);
            let end = Instant::now() + self.options.warmup();
            while Instant::now() < end {
                pace.turn().await;
                steps.step().await?;
            }
        }
        self.start.wait().await;
        let mut recorder = Recorder::start(Arc::clone(&self.moved));
        let mut pace = Pace::new(self.pace);
        let mut done = 0;
        let mut heard = Instant::now();
        while self.goal.is_ahead(done) {
            pace.turn().await;
            let asked = Instant::now();
            let (messages, bytes) = steps.step().await?;
            if messages == 0 {
                ensure!(heard.elapsed() < SILENCE_MAX, "nothing came for {SILENCE_MAX:?}");
                continue;
            }
            heard = Instant::now();
            recorder.batch(asked, messages, bytes);
            self.goal.count(messages);
            done += 1;
        }
        Ok(recorder.end())
    }
}

/// One batch after the other; each step tells its messages and their bytes of payload, which may be none.
trait Steps {
    async fn step(&mut self) -> anyhow::Result<(u64, u64)>;
}

/// The producer of the client in place of single requests.
enum Way {
    Requests {
        client: IggyClient,
        stream: Identifier,
        topic: Identifier,
        partitioning: Partitioning,
    },
    Producer(Box<IggyProducer>),
}

/// Sends batches.
struct Sender {
    way: Way,
    payload: bytes::Bytes,
    options: Options,
    /// The batch that is sent again and again when all are alike.
    batch: Vec<IggyMessage>,
}

impl Sender {
    async fn new(client: &IggyClient, actor: &Actor, partition: Option<u32>) -> anyhow::Result<Self> {
        let partitioning = partition.map_or_else(Partitioning::balanced, Partitioning::partition_id);
        let way = if actor.options.high_level_api {
            let builder = client.producer(&actor.stream, TOPIC)?.partitioning(partitioning);
            let producer = builder.direct(DirectConfig::default()).build();
            producer.init().await?;
            Way::Producer(Box::new(producer))
        } else {
            Way::Requests {
                client: client.clone(),
                stream: Identifier::named(&actor.stream)?,
                topic: Identifier::named(TOPIC)?,
                partitioning,
            }
        };
        let payload = vec![b'x'; actor.options.message_size.max as usize];
        Ok(Self {
            way,
            payload: payload.into(),
            options: actor.options.clone(),
            batch: Vec::new(),
        })
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let (size, count) = (self.options.message_size, self.options.messages_per_batch);
        if !self.batch.is_empty() && size.min == size.max && count.min == count.max {
            return Ok(());
        }
        self.batch.clear();
        for _ in 0..count.draw() {
            let payload = self.payload.slice(..size.draw() as usize);
            self.batch.push(IggyMessage::new(payload)?);
        }
        Ok(())
    }
}

impl Steps for Sender {
    async fn step(&mut self) -> anyhow::Result<(u64, u64)> {
        self.draw()?;
        match &self.way {
            Way::Requests {
                client,
                stream,
                topic,
                partitioning,
            } => {
                client.send_messages(stream, topic, partitioning, &self.batch).await?;
            }
            Way::Producer(producer) => {
                producer.send(self.batch.clone()).await?;
            }
        }
        Ok(counted(&self.batch))
    }
}

/// Reads a partition request by request.
struct Poller {
    client: IggyClient,
    stream: Identifier,
    topic: Identifier,
    partition: u32,
    consumer: Consumer,
    start: ReadStart,
    options: PollOptions,
}

impl Poller {
    fn new(client: &IggyClient, actor: &Actor, partition: u32) -> anyhow::Result<Self> {
        Ok(Self {
            client: client.clone(),
            stream: Identifier::named(&actor.stream)?,
            topic: Identifier::named(TOPIC)?,
            partition,
            consumer: Consumer::new(Identifier::named("bench")?),
            start: PollingStrategy::first().into(),
            options: poll_options(&actor.options),
        })
    }
}

impl Steps for Poller {
    async fn step(&mut self) -> anyhow::Result<(u64, u64)> {
        let polled = self
            .client
            .poll_messages(
                &self.stream,
                &self.topic,
                self.partition,
                &self.consumer,
                self.start,
                self.options,
            )
            .await?;
        self.start = polled.continuation().into();
        Ok(counted(&polled.messages))
    }
}

/// Reads with a consumer of the client.
struct Receiver {
    consumer: IggyConsumer,
}

impl Receiver {
    async fn new(builder: IggyConsumerBuilder, actor: &Actor) -> anyhow::Result<Self> {
        let options = poll_options(&actor.options);
        let start = PollingStrategy::first();
        let mut consumer = builder.polling_strategy(start).poll_options(options).build();
        consumer.init().await?;
        Ok(Self { consumer })
    }
}

impl Steps for Receiver {
    async fn step(&mut self) -> anyhow::Result<(u64, u64)> {
        // The others of its group may have read what was left.
        let Ok(next) = tokio::time::timeout(LOOK, self.consumer.next_batch()).await else {
            return Ok((0, 0));
        };
        match next.context("the consumer has ended")? {
            Ok(batch) => Ok(counted(&batch.messages)),
            // A member that joins moves partitions.
            Err(error) if error.error.retryable() || error.error.class() == ErrorClass::Stale => Ok((0, 0)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Sends a batch and reads it back.
struct Echo<R> {
    sender: Sender,
    reader: R,
}

impl<R: Steps> Steps for Echo<R> {
    async fn step(&mut self) -> anyhow::Result<(u64, u64)> {
        let (sent, bytes) = self.sender.step().await?;
        let mut read = 0;
        while read < sent {
            read += self.reader.step().await?.0;
        }
        Ok((sent, bytes))
    }
}

fn poll_options(options: &Options) -> PollOptions {
    let bytes = u64::from(options.message_size.max) + 128;
    let bytes = bytes * u64::from(options.messages_per_batch.max) + 1024;
    PollOptions {
        count: options.messages_per_batch.max,
        max_bytes: u32::try_from(bytes).unwrap_or(u32::MAX).max(1 << 20),
        ..PollOptions::wait(WAIT)
    }
}

fn counted(messages: &[IggyMessage]) -> (u64, u64) {
    let bytes = messages.iter().map(|message| message.payload.len() as u64).sum();
    (messages.len() as u64, bytes)
}
