//! How long a message takes from its producer to a consumer that waits for it.

use crate::latency::{self, Latency};
use crate::round_trips::{Floor, Storing, TaskFloor};
use anyhow::Context;
use iggy::prelude::*;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes of a send beside its payload, as for small requests.
const REQUEST_OVERHEAD: usize = 256 + 40 + 256;
const FRAME_OVERHEAD: usize = 48;
/// Pause before each message, and before each round trip of the floor: of two milliseconds, since the timer of the runtime
/// ends a pause with the millisecond after it.
const PAUSE: Duration = Duration::from_millis(2);
/// The same pause for that timer.
const TIMER_PAUSE: Duration = Duration::from_millis(1);
/// Messages, and round trips of each floor, in a row.
const TURN: u32 = 100;
/// A message that does not arrive in this time ends the measurement.
const ARRIVAL_DEADLINE: Duration = Duration::from_secs(30);

/// Options of the measurement.
#[derive(clap::Args)]
pub struct Arguments {
    /// Messages, one at a time, 1 to 1000000
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    messages: u32,

    /// Bytes per message, 1 to 64000000
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=64_000_000))]
    bytes: u32,
}

/// Measures and prints.
pub async fn run(connection_string: &str, arguments: &Arguments, json: bool) -> anyhow::Result<()> {
    let producer = IggyClient::from_connection_string(connection_string)?;
    producer.connect().await?;
    let name = format!("bench-{:016x}", rand::random::<u64>());
    producer.create_stream(&name, &StreamCreateOptions::default()).await?;
    let measured = measure(&producer, connection_string, &name, arguments).await;
    producer.delete_stream(&Identifier::named(&name)?).await?;
    producer.shutdown().await?;
    latency::print(&measured?, json)
}

async fn measure(
    producer: &IggyClient,
    connection_string: &str,
    stream: &str,
    arguments: &Arguments,
) -> anyhow::Result<Vec<Latency>> {
    let stream = Identifier::named(stream)?;
    let options = TopicCreateOptions {
        partitions_count: Some(1),
        ..TopicCreateOptions::default()
    };
    producer.create_topic(&stream, "latency", &options).await?;
    let topic = Identifier::named("latency")?;
    let bytes = REQUEST_OVERHEAD + FRAME_OVERHEAD + arguments.bytes as usize;
    let directory = std::env::temp_dir();
    let mut floor = Floor::start(Storing::Nothing, bytes, &directory)?;
    let mut task_floor = TaskFloor::start(bytes, &directory).await?;
    let count = arguments.messages;
    let mut path = Path::open(producer, connection_string, &stream, &topic, arguments).await?;
    let (mut raw, mut in_tasks, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    // In turns: a machine that grows slower or faster meanwhile does so for all.
    let mut left = count;
    while left > 0 {
        let turn = left.min(TURN);
        left -= turn;
        let measured = tokio::task::spawn_blocking(move || {
            let samples = floor.measure(turn as usize, PAUSE);
            (floor, samples)
        });
        let (back, measured) = measured.await?;
        floor = back;
        raw.extend(measured.context("measuring the round trip")?);
        let measured = task_floor.measure(turn as usize, TIMER_PAUSE).await;
        in_tasks.extend(measured.context("measuring the round trip of tasks")?);
        path.pass_on(turn, &mut samples).await?;
    }
    path.close().await?;
    let rows = [
        ("round trip", raw),
        ("round trip, tasks", in_tasks),
        ("end to end", samples),
    ];
    Ok(rows.map(|(name, samples)| Latency::of(name, samples)).into())
}

/// The way a message takes.
struct Path<'a> {
    producer: &'a IggyClient,
    stream: &'a Identifier,
    topic: &'a Identifier,
    payload: Vec<u8>,
    arrivals: mpsc::Receiver<Instant>,
    consumer: JoinHandle<anyhow::Result<()>>,
}

impl<'a> Path<'a> {
    /// Starts the consumer and passes on one message, which finds the routes and is not measured.
    async fn open(
        producer: &'a IggyClient,
        connection_string: &str,
        stream: &'a Identifier,
        topic: &'a Identifier,
        arguments: &Arguments,
    ) -> anyhow::Result<Self> {
        let client = IggyClient::from_connection_string(connection_string)?;
        client.connect().await?;
        let (arrived, arrivals) = mpsc::channel(1);
        let all = u64::from(arguments.messages) + 1;
        let consumer = tokio::spawn(consume(client, stream.clone(), topic.clone(), all, arrived));
        let mut path = Self {
            producer,
            stream,
            topic,
            payload: vec![b'x'; arguments.bytes as usize],
            arrivals,
            consumer,
        };
        path.pass_on(1, &mut Vec::new()).await?;
        Ok(path)
    }

    /// Sends messages one by one, each after the one before has arrived at a consumer that was waiting.
    async fn pass_on(&mut self, messages: u32, samples: &mut Vec<Duration>) -> anyhow::Result<()> {
        let partitioning = Partitioning::partition_id(0);
        for _ in 0..messages {
            // The consumer asks again as soon as it has reported; its request is given time to be parked.
            tokio::time::sleep(TIMER_PAUSE).await;
            let message = [IggyMessage::new(self.payload.clone())?];
            let began = Instant::now();
            self.producer
                .send_messages(self.stream, self.topic, &partitioning, &message)
                .await?;
            let arrival = tokio::time::timeout(ARRIVAL_DEADLINE, self.arrivals.recv()).await;
            let at: Instant = arrival
                .context("a message did not arrive in 30 s")?
                .context("the consumer ended")?;
            samples.push(at.duration_since(began));
        }
        Ok(())
    }

    async fn close(self) -> anyhow::Result<()> {
        self.consumer.await?
    }
}

async fn consume(
    client: IggyClient,
    stream: Identifier,
    topic: Identifier,
    messages: u64,
    arrived: mpsc::Sender<Instant>,
) -> anyhow::Result<()> {
    let consumer = Consumer::new(Identifier::numeric(1));
    let options = PollOptions::wait(IggyDuration::from_secs(5));
    let mut start = ReadStart::from(PollingStrategy::offset(0));
    let mut left = messages;
    while left > 0 {
        let polled = client
            .poll_messages(&stream, &topic, 0, &consumer, start, options)
            .await?;
        let at = Instant::now();
        start = polled.continuation().into();
        for _ in &polled.messages {
            left = left.saturating_sub(1);
            arrived.send(at).await.context("the producer ended")?;
        }
    }
    client.shutdown().await?;
    Ok(())
}
