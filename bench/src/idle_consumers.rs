//! What waiting costs: many consumers on a node to which nothing comes.

use crate::process;
use anyhow::Context;
use comfy_table::{CellAlignment, Table};
use iggy::prelude::*;
use serde::Serialize;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Consumers of one client: a client may have 64 reads that wait.
const CONSUMERS_PER_CLIENT: u32 = 50;
/// A server that does not answer the metrics page in this time is given up.
const PAGE_DEADLINE: Duration = Duration::from_secs(10);

/// Options of the measurement.
#[derive(clap::Args)]
pub struct Arguments {
    /// Consumers, 1 to 10000
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    consumers: u32,

    /// Partitions they wait at, 1 to 1000
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    partitions: u32,

    /// Seconds of one wait, 1 to 30
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=30))]
    wait: u64,

    /// Seconds to measure, 1 to 3600; take a multiple of the wait
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// Process of the server, on this machine
    #[arg(long)]
    server_pid: u32,

    /// Address of the server's metrics page
    #[arg(long, default_value = "127.0.0.1:3000")]
    metrics: SocketAddr,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Idle {
    consumers: u32,
    seconds: f64,
    /// Waits that ended.
    waits: u64,
    /// Requests of the consumers: all the server took but pings.
    requests: u64,
    requests_per_wait: f64,
    /// Percent of one core that the server used.
    server_cpu_percent: f64,
    /// The same with connections that are open and ask for nothing.
    connected_cpu_percent: f64,
}

/// Measures and prints.
pub async fn run(connection_string: &str, arguments: &Arguments, json: bool) -> anyhow::Result<()> {
    let client = IggyClient::from_connection_string(connection_string)?;
    client.connect().await?;
    let name = format!("bench-{:016x}", rand::random::<u64>());
    client.create_stream(&name, &StreamCreateOptions::default()).await?;
    let measured = measure(&client, connection_string, &name, arguments).await;
    client.delete_stream(&Identifier::named(&name)?).await?;
    client.shutdown().await?;
    print(&measured?, json)
}

async fn measure(
    client: &IggyClient,
    connection_string: &str,
    stream: &str,
    arguments: &Arguments,
) -> anyhow::Result<Idle> {
    let stream = Identifier::named(stream)?;
    let options = TopicCreateOptions {
        partitions_count: Some(arguments.partitions),
        ..TopicCreateOptions::default()
    };
    client.create_topic(&stream, "idle", &options).await?;
    let mut clients = Vec::new();
    for _ in 0..arguments.consumers.div_ceil(CONSUMERS_PER_CLIENT) {
        let client = IggyClient::from_connection_string(connection_string)?;
        client.connect().await?;
        clients.push(Arc::new(client));
    }
    let seconds = Duration::from_secs(arguments.seconds);
    let connected_cpu_percent = cpu_percent(arguments.server_pid, seconds).await?;
    let waits = Arc::new(AtomicU64::new(0));
    let mut consumers = JoinSet::new();
    for number in 0..arguments.consumers {
        let client = Arc::clone(&clients[(number / CONSUMERS_PER_CLIENT) as usize]);
        let partition = number % arguments.partitions;
        consumers.spawn(consume(
            client,
            stream.clone(),
            number,
            partition,
            arguments.wait,
            Arc::clone(&waits),
        ));
    }
    // The first waits look up routes; the steady state is measured.
    tokio::time::sleep(Duration::from_secs(arguments.wait + 1)).await;
    let before = (requests(arguments.metrics)?, waits.load(Ordering::Relaxed));
    let began = Instant::now();
    let server_cpu_percent = cpu_percent(arguments.server_pid, seconds).await?;
    let took = began.elapsed();
    let after = (requests(arguments.metrics)?, waits.load(Ordering::Relaxed));
    if let Some(ended) = consumers.try_join_next() {
        ended??;
        anyhow::bail!("a consumer ended by itself");
    }
    consumers.shutdown().await;
    for client in clients {
        client.shutdown().await?;
    }
    let (requests, waits) = (after.0 - before.0, after.1 - before.1);
    Ok(Idle {
        consumers: arguments.consumers,
        seconds: took.as_secs_f64(),
        waits,
        requests,
        requests_per_wait: float(requests)? / float(waits.max(1))?,
        server_cpu_percent,
        connected_cpu_percent,
    })
}

fn float(count: u64) -> anyhow::Result<f64> {
    let count = u32::try_from(count).context("more was counted than a measurement can make")?;
    Ok(count.into())
}

async fn consume(
    client: Arc<IggyClient>,
    stream: Identifier,
    number: u32,
    partition: u32,
    wait: u64,
    waits: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    let topic = Identifier::named("idle")?;
    let consumer = Consumer::new(Identifier::numeric(number));
    loop {
        let options = PollOptions::wait(IggyDuration::from_secs(wait));
        let start = PollingStrategy::offset(0);
        client
            .poll_messages(&stream, &topic, partition, &consumer, &start, options)
            .await?;
        waits.fetch_add(1, Ordering::Relaxed);
    }
}

async fn cpu_percent(pid: u32, during: Duration) -> anyhow::Result<f64> {
    let before = process::cpu_time(pid)?;
    let began = Instant::now();
    tokio::time::sleep(during).await;
    let used = process::cpu_time(pid)?.saturating_sub(before);
    Ok(used.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0)
}

/// Requests that the server has taken, pings left out.
fn requests(metrics: SocketAddr) -> anyhow::Result<u64> {
    let page = page(metrics).with_context(|| format!("reading the metrics page at {metrics}"))?;
    let mut sum = 0;
    for line in page.lines().filter(|line| line.starts_with("requests_total{")) {
        let (labels, count) = line
            .rsplit_once(' ')
            .context("a line of the metrics page has no number")?;
        if !labels.contains("\"ping\"") && !labels.contains(".ping\"") {
            sum += count.parse::<u64>()?;
        }
    }
    Ok(sum)
}

fn page(metrics: SocketAddr) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect_timeout(&metrics, PAGE_DEADLINE)?;
    stream.set_read_timeout(Some(PAGE_DEADLINE))?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {metrics}\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    anyhow::ensure!(
        page.starts_with("HTTP/1.0 200") || page.starts_with("HTTP/1.1 200"),
        "it answers {}",
        page.lines().next().unwrap_or("nothing")
    );
    Ok(page)
}

fn print(idle: &Idle, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(idle)?);
        return Ok(());
    }
    let mut table = Table::new();
    table.set_header([
        "consumers",
        "waits",
        "requests",
        "requests per wait",
        "server CPU %",
        "connected only, CPU %",
    ]);
    table.add_row([
        idle.consumers.to_string(),
        idle.waits.to_string(),
        idle.requests.to_string(),
        format!("{:.2}", idle.requests_per_wait),
        format!("{:.2}", idle.server_cpu_percent),
        format!("{:.2}", idle.connected_cpu_percent),
    ]);
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}
