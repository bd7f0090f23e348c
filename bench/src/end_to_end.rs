//! How long a message takes from its producer to a consumer that waits for it.

use crate::floor::{self, Storing};
use crate::latency::{self, Latency};
use anyhow::Context;
use iggy::prelude::*;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Bytes of a send beside its payload, as for small requests.
const REQUEST_OVERHEAD: usize = 256 + 40 + 256;
const FRAME_OVERHEAD: usize = 48;
/// Pause before each message, and before each round trip of the floor.
const PAUSE: Duration = Duration::from_millis(1);
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
    // Half of the messages measure before the floor and half after it: a machine that grows slower or faster meanwhile
    // does so for both.
    let half = arguments.messages.div_ceil(2);
    let path = Path {
        producer,
        connection_string,
        stream: &stream,
        topic: &topic,
        bytes: arguments.bytes,
    };
    let mut samples = path.pass_on(0, half).await?;
    let bytes = REQUEST_OVERHEAD + FRAME_OVERHEAD + arguments.bytes as usize;
    let count = arguments.messages as usize;
    let directory = std::env::temp_dir();
    let floor = tokio::task::spawn_blocking(move || floor::measure(Storing::Nothing, bytes, count, PAUSE, &directory));
    let floor = floor.await?.context("measuring the round trip")?;
    samples.extend(path.pass_on(u64::from(half) + 1, half).await?);
    Ok(vec![
        Latency::of("round trip", floor),
        Latency::of("end to end", samples),
    ])
}

/// The way a message takes.
struct Path<'a> {
    producer: &'a IggyClient,
    connection_string: &'a str,
    stream: &'a Identifier,
    topic: &'a Identifier,
    bytes: u32,
}

impl Path<'_> {
    /// Sends messages one by one, each after the one before has arrived at a consumer that was waiting. The log ends at
    /// `offset`; one message more, which finds the routes, is not measured.
    async fn pass_on(&self, offset: u64, messages: u32) -> anyhow::Result<Vec<Duration>> {
        let client = IggyClient::from_connection_string(self.connection_string)?;
        client.connect().await?;
        let (arrived, mut arrivals) = mpsc::channel(1);
        let (stream, topic) = (self.stream.clone(), self.topic.clone());
        let consumer = tokio::spawn(consume(client, stream, topic, offset, messages + 1, arrived));
        let partitioning = Partitioning::partition_id(0);
        let payload = vec![b'x'; self.bytes as usize];
        let mut samples = Vec::with_capacity(messages as usize);
        for _ in 0..=messages {
            // The consumer asks again as soon as it has reported; its request is given time to be parked.
            tokio::time::sleep(PAUSE).await;
            let message = [IggyMessage::new(payload.clone())?];
            let began = Instant::now();
            self.producer
                .send_messages(self.stream, self.topic, &partitioning, &message)
                .await?;
            let arrival = tokio::time::timeout(ARRIVAL_DEADLINE, arrivals.recv()).await;
            let at: Instant = arrival
                .context("a message did not arrive in 30 s")?
                .context("the consumer ended")?;
            samples.push(at.duration_since(began));
        }
        consumer.await??;
        samples.remove(0);
        Ok(samples)
    }
}

async fn consume(
    client: IggyClient,
    stream: Identifier,
    topic: Identifier,
    offset: u64,
    messages: u32,
    arrived: mpsc::Sender<Instant>,
) -> anyhow::Result<()> {
    let consumer = Consumer::new(Identifier::numeric(1));
    let options = PollOptions::wait(IggyDuration::from_secs(5));
    let mut start = ReadStart::from(PollingStrategy::offset(offset));
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
