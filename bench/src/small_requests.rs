//! What a small send costs: one connection, one request at a time.

use crate::latency::{self, Latency};
use crate::round_trips::{Floor, Storing};
use anyhow::Context;
use iggy::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes of a send beside its payloads: request header, target and batch header, and a frame header each.
const REQUEST_OVERHEAD: usize = 256 + 40 + 256;
const FRAME_OVERHEAD: usize = 48;

/// Options of the measurement.
#[derive(clap::Args)]
pub struct Arguments {
    /// Requests per row, 1 to 1000000
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    requests: u32,

    /// Messages per request, 1 to 100000
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    messages: u32,

    /// Bytes per message, 1 to 64000000
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=64_000_000))]
    bytes: u32,

    /// Folder for the files of the floor; take one on the server's disk
    #[arg(long, default_value = ".")]
    directory: PathBuf,
}

/// Measures and prints.
pub async fn run(connection_string: &str, arguments: &Arguments, json: bool) -> anyhow::Result<()> {
    let client = IggyClient::from_connection_string(connection_string)?;
    client.connect().await?;
    let name = format!("bench-{:016x}", rand::random::<u64>());
    client.create_stream(&name, &StreamCreateOptions::default()).await?;
    let measured = measure(&client, &name, arguments).await;
    client.delete_stream(&Identifier::named(&name)?).await?;
    client.shutdown().await?;
    latency::print(&measured?, json)
}

async fn measure(client: &IggyClient, stream: &str, arguments: &Arguments) -> anyhow::Result<Vec<Latency>> {
    let requests = arguments.requests as usize;
    let style = ProgressStyle::with_template("{msg:24} {bar:30} {pos}/{len}")?;
    let bytes = REQUEST_OVERHEAD + arguments.messages as usize * (FRAME_OVERHEAD + arguments.bytes as usize);
    let mut rows = Vec::new();
    for (name, storing) in [
        ("round trip", Storing::Nothing),
        ("floor, written", Storing::Write),
        ("floor, synced", Storing::Sync),
    ] {
        let directory = arguments.directory.clone();
        let samples = tokio::task::spawn_blocking(move || {
            anyhow::Ok(Floor::start(storing, bytes, &directory)?.measure(requests, Duration::ZERO)?)
        });
        rows.push(Latency::of(
            name,
            samples.await?.with_context(|| format!("measuring the {name}"))?,
        ));
    }
    for durability in [Durability::Replicated, Durability::Persisted] {
        let name = format!("send, {durability:?}").to_lowercase();
        let bar = ProgressBar::new(requests as u64)
            .with_style(style.clone())
            .with_message(name.clone());
        rows.push(Latency::of(
            name,
            send(client, stream, durability, arguments, &bar).await?,
        ));
        bar.finish_and_clear();
    }
    Ok(rows)
}

async fn send(
    client: &IggyClient,
    stream: &str,
    durability: Durability,
    arguments: &Arguments,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<Duration>> {
    let stream = Identifier::named(stream)?;
    let topic = format!("{durability:?}").to_lowercase();
    let options = TopicCreateOptions {
        partitions_count: Some(1),
        durability,
        ..TopicCreateOptions::default()
    };
    client.create_topic(&stream, &topic, &options).await?;
    let topic = Identifier::named(&topic)?;
    let partitioning = Partitioning::partition_id(0);
    let payload = vec![b'x'; arguments.bytes as usize];
    let mut samples = Vec::with_capacity(arguments.requests as usize);
    for _ in 0..arguments.requests {
        let messages: Result<Vec<_>, _> = (0..arguments.messages)
            .map(|_| IggyMessage::new(payload.clone()))
            .collect();
        let messages = messages?;
        let began = Instant::now();
        client.send_messages(&stream, &topic, &partitioning, &messages).await?;
        samples.push(began.elapsed());
        bar.inc(1);
    }
    Ok(samples)
}
