//! Workloads: who sends and reads what, all at once, beside the floor of the same shape.

mod actors;
mod crew;
mod options;
mod pace;
mod recorder;

use crate::floor::{self, Plan, Storing};
use crate::process;
use crate::report::{Floor, Report, Server, Sides, Summary};
use actors::{Actor, Goal, TOPIC};
use anyhow::Context;
pub use crew::Workload;
use crew::{Crew, Task};
use iggy::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
pub use options::Options;
pub use recorder::{Moved, POINT, Record, Recorder, histogram};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Bytes of a batch beside its payload: its header, and one for each message.
const BATCH_HEADER: usize = 256;
const FRAME_HEADER: usize = 48;
/// Between two looks of the progress bar.
const TICK: Duration = Duration::from_millis(200);

/// Runs a workload against a server, and its floor before and after it.
pub async fn run(connection_string: &str, workload: &Workload) -> anyhow::Result<Report> {
    let options = workload.options();
    options.validate()?;
    let crew = workload.crew();
    let client = IggyClient::from_connection_string(connection_string)?;
    client.connect().await?;
    let name = format!("bench-{:016x}", rand::random::<u64>());
    let streams: Vec<String> = (0..crew.streams).map(|stream| format!("{name}-{stream}")).collect();
    let measured = async {
        for stream in &streams {
            create(&client, stream, crew.partitions, options.durability).await?;
        }
        measure(connection_string, &client, &streams, &crew, workload).await
    }
    .await;
    for stream in &streams {
        // After a failure some of them may be missing.
        let deleted = client.delete_stream(&Identifier::named(stream)?).await;
        if measured.is_ok() {
            deleted?;
        }
    }
    client.shutdown().await?;
    measured
}

async fn create(client: &IggyClient, stream: &str, partitions: u32, durability: Durability) -> anyhow::Result<()> {
    client.create_stream(stream, &StreamCreateOptions::default()).await?;
    let topic = TopicCreateOptions {
        partitions_count: Some(partitions),
        durability,
        ..TopicCreateOptions::default()
    };
    client.create_topic(&Identifier::named(stream)?, TOPIC, &topic).await?;
    Ok(())
}

async fn measure(
    connection_string: &str,
    client: &IggyClient,
    streams: &[String],
    crew: &Crew,
    workload: &Workload,
) -> anyhow::Result<Report> {
    let options = workload.options();
    if crew.filled {
        fill(client, streams, crew, options).await?;
    }
    let floor_before = measure_floor(crew, options, "floor").await?;
    let pid = client.get_stats().await?.numbers.process_id;
    let usage_before = process::usage(pid);
    let records = work(connection_string, streams, crew, options).await?;
    let usage = process::usage(pid);
    let floor_after = measure_floor(crew, options, "floor again").await?;
    let (sent, read): (Vec<_>, Vec<_>) = records.into_iter().partition(|(sends, _)| *sends);
    let summary = |records: Vec<(bool, Record)>| {
        let records: Vec<Record> = records.into_iter().map(|(_, record)| record).collect();
        Summary::of(&records)
    };
    let floor = floor_before
        .zip(floor_after)
        .map(|(before, after)| Floor::of(before, after));
    let server = usage_before
        .zip(usage)
        .map(|(before, after)| Server::of(&before, &after));
    Ok(Report {
        workload: workload.name(),
        options: options.clone(),
        senders: summary(sent),
        readers: summary(read),
        floor,
        server,
    })
}

/// Writes what readers will read.
async fn fill(client: &IggyClient, streams: &[String], crew: &Crew, options: &Options) -> anyhow::Result<()> {
    let per_stream = crew.to_fill(options);
    let total: u64 = per_stream.values().sum();
    let bar = bar("filling", total * u64::from(options.message_size.middle()))?;
    let message = IggyMessage::new(vec![b'x'; options.message_size.middle() as usize])?;
    let batch = vec![message; options.messages_per_batch.middle() as usize];
    let mut fillers = JoinSet::new();
    for (stream, messages) in per_stream {
        let (client, batch, bar) = (client.clone(), batch.clone(), bar.clone());
        let stream = Identifier::named(&streams[stream as usize])?;
        fillers.spawn(async move {
            let topic = Identifier::named(TOPIC)?;
            let mut left = messages;
            while left > 0 {
                client
                    .send_messages(&stream, &topic, &Partitioning::balanced(), &batch)
                    .await?;
                left = left.saturating_sub(batch.len() as u64);
                bar.inc(batch.iter().map(|message| message.payload.len() as u64).sum());
            }
            anyhow::Ok(())
        });
    }
    while let Some(filled) = fillers.join_next().await {
        filled??;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Runs every actor to its end; whether it sends, and what it measured.
async fn work(
    connection_string: &str,
    streams: &[String],
    crew: &Crew,
    options: &Options,
) -> anyhow::Result<Vec<(bool, Record)>> {
    let start = Arc::new(Barrier::new(crew.tasks.len()));
    let moved = Moved::default();
    let to_read = crew.to_read(options).into_iter();
    let to_read: HashMap<u32, Arc<AtomicU64>> = to_read
        .map(|(shares, (_, messages))| (shares, Arc::new(AtomicU64::new(messages))))
        .collect();
    let mut actors = JoinSet::new();
    for Task { role, stream, shares } in &crew.tasks {
        let sends = role.sends();
        let goal = if sends {
            Goal::Batches(options.batches(crew.senders()))
        } else {
            Goal::Messages(Arc::clone(&to_read[shares]))
        };
        let alike = if sends { crew.senders() } else { crew.readers() };
        let actor = Actor {
            role: role.clone(),
            stream: streams[*stream as usize].clone(),
            goal,
            pace: options.pace(alike),
            options: options.clone(),
            start: Arc::clone(&start),
            moved: Arc::clone(&moved),
        };
        let connection_string = connection_string.to_owned();
        actors.spawn(async move { Ok::<_, anyhow::Error>((sends, actor.run(connection_string).await?)) });
    }
    let bar = bar("working", crew.bytes(options))?;
    let watching = tokio::spawn(watch(bar.clone(), moved));
    let mut records = Vec::new();
    while let Some(ended) = actors.join_next().await {
        // One that fails takes the others with it: what is left of them is dropped.
        records.push(ended.context("an actor panicked")??);
    }
    watching.abort();
    bar.finish_and_clear();
    Ok(records)
}

async fn measure_floor(crew: &Crew, options: &Options, label: &'static str) -> anyhow::Result<Option<Sides>> {
    if options.no_floor {
        return Ok(None);
    }
    let (senders, readers) = (crew.senders(), crew.readers());
    let messages = options.messages_per_batch.middle();
    let payload = usize::try_from(options.batch_bytes())?;
    let plan = Plan {
        senders,
        readers,
        echoes: crew.echoes(),
        batches: options.batches(senders.max(readers)),
        payload,
        messages: messages.into(),
        overhead: BATCH_HEADER + FRAME_HEADER * messages as usize,
        storing: match options.durability {
            Durability::Replicated => Storing::Write,
            Durability::Persisted => Storing::Sync,
        },
        pace: [options.pace(senders), options.pace(readers)],
        directory: options.floor_directory.clone(),
    };
    let moved = Moved::default();
    let bar = bar(label, crew.bytes(options))?;
    let watching = tokio::spawn(watch(bar.clone(), Arc::clone(&moved)));
    let measured = tokio::task::spawn_blocking(move || floor::measure(&plan, &moved)).await?;
    watching.abort();
    bar.finish_and_clear();
    let mut sent = measured.context("measuring the floor")?;
    let read = sent.split_off(senders as usize);
    Ok(Some([sent, read].map(|records| Summary::of(&records))))
}

fn bar(label: &'static str, bytes: u64) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{msg:12} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")?;
    Ok(ProgressBar::new(bytes).with_style(style).with_message(label))
}

async fn watch(bar: ProgressBar, moved: Moved) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        bar.set_position(moved.load(Ordering::Relaxed));
    }
}
