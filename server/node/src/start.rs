//! Starts a node and stops it: the order in which its parts come up and go down.

use crate::config::{Arguments, Config, ConfigError, Loaded, RootCredentials};
use crate::connection::listener::{self, Gates};
use crate::connection::registry::Registry;
use crate::connection::unread::{NodeUnread, UNREAD_OF_NODE_MAX};
use crate::data_directory::{DataDirectory, boot_id};
use crate::metrics::{Access, Metrics, Sampler, TokenCheck};
use crate::node::{CLUSTER_NAME, CounterTable, Node, wall_micros};
use crate::passwords::{Passwords, token_hash};
use crate::shard::{ShardHandle, ShardInbox, ShardMessage, ShardRunner};
use crate::{dispatch, housekeeping, logging, metrics, tls};
use anyhow::Context;
use arc_swap::ArcSwap;
use iggy_consensus::{Now, ReplicaConfig};
use iggy_driver::metadata_group::MetadataNotice;
use iggy_driver::partition_group::{self, PartitionConfig};
use iggy_driver::shard::SessionWaits;
use iggy_driver::{Order, Output, Shard, ShardConfig, controller};
use iggy_metadata::limits::Limits;
use iggy_metadata::{Change, Metadata, Settings};
use iggy_protocol::name::Name;
use iggy_storage::file::FileStorage;
use iggy_storage::image::{FileImage, Image as _};
use rustls::ServerConfig;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{self, LocalOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use xxhash_rust::xxh3::xxh3_128;

/// Newest batches of each partition kept in memory.
const TAIL_BYTES_MAX: usize = 4 << 20;
/// Newest batches of all partitions of a shard kept in memory.
const TAILS_BYTES_MAX: usize = 256 << 20;
/// Requests of a partition that may wait for a write in flight.
const WAITING_MAX: usize = 1024;

/// The recovered metadata is on disk within this, or the disk is not to be used.
const OPEN_DEADLINE: Duration = Duration::from_mins(1);
/// A stopping shard waits this long for its last replies to be written.
const FLUSH_DEADLINE: Duration = Duration::from_secs(2);

/// What the shards of a node have in common while they start.
struct Seed {
    shard: Shard<FileStorage>,
    wake: Arc<Notify>,
    inbox: ShardInbox,
    listener: Option<std::net::TcpListener>,
    orders: Vec<Order>,
}

/// Runs a node until it is told to stop.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Loaded { config, effective } = crate::config::load(arguments.config.as_deref())?;
    if arguments.print_config {
        print!("{effective}");
        return Ok(());
    }
    let root = RootCredentials::resolve(arguments)?;
    let directory = DataDirectory::open(&config.path, arguments.fresh)?;
    let _logging = logging::start(&config.logging, directory.path())?;
    raise_file_limit();
    let control = runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    control.block_on(serve(config, effective, root, &directory))
}

/// Every connection and segment is a file.
fn raise_file_limit() {
    if let Ok((soft, hard)) = rlimit::Resource::NOFILE.get()
        && soft < hard
        && let Err(error) = rlimit::Resource::NOFILE.set(hard, hard)
    {
        tracing::warn!(%error, soft, hard, "the limit of open files could not be raised");
    }
}

/// Three quarters of the files may be connections: a flood of them must not leave partitions without the files that they
/// write to, which would cost them their writes until the next start.
fn connections_max() -> usize {
    let files = rlimit::Resource::NOFILE.get().map_or(u64::MAX, |(soft, _)| soft);
    usize::try_from(files / 4 * 3).map_or(Semaphore::MAX_PERMITS, |max| max.min(Semaphore::MAX_PERMITS))
}

fn shard_config(config: &Config, cluster: u128, boot: u128) -> ShardConfig {
    let read_bytes_max = u32::try_from(config.sharding.deferred_poll_max_read_bytes).unwrap_or(u32::MAX);
    ShardConfig {
        partition: PartitionConfig {
            cluster,
            boot,
            replica: 0,
            replica_count: 1,
            consensus: ReplicaConfig {
                pipeline_max: config.partition.prepare_queue_depth,
                ..ReplicaConfig::default()
            },
            wal_bytes_max: config.partition.wal_bytes_max,
            tail_bytes_max: TAIL_BYTES_MAX,
            read_bytes_max,
            verify_reads: config.partition.validate_checksum,
            waiting_max: WAITING_MAX,
        },
        tails_bytes_max: TAILS_BYTES_MAX,
        // A group of one keeps nothing for others.
        repair_bytes_max: 0,
        read_bytes_max: config.sharding.deferred_poll_max_inflight_bytes,
        parked_max: config.sharding.deferred_poll_max_pending,
        parked_per_session_max: config.sharding.deferred_poll_max_pending_per_session,
        parked_wait_max: u64::try_from(config.sharding.deferred_poll_max_wait.as_micros()).unwrap_or(u64::MAX),
    }
}

async fn serve(
    config: Config,
    effective: String,
    root: Option<RootCredentials>,
    directory: &DataDirectory,
) -> anyhow::Result<()> {
    let cluster = xxh3_128(CLUSTER_NAME.as_bytes());
    let count = config.sharding.cpu_allocation;
    let tls = tls::server_config(
        &config.tcp.tls,
        directory.path(),
        config.node.advertised_address.as_deref(),
    )?;
    let listeners = if config.tcp.enabled {
        listener::bind(config.tcp.address, count)
            .with_context(|| format!("tcp.address {} cannot be bound", config.tcp.address))?
    } else {
        Vec::new()
    };
    let tcp_address = listeners.first().map(std::net::TcpListener::local_addr).transpose()?;
    let image = FileImage::new(directory.path());
    let waits = Arc::<SessionWaits>::default();
    let (mut seeds, handles) = seeds(&config, cluster, directory, listeners, &waits);
    let metadata = open_metadata(&mut seeds[0], &config, &image).await?;
    if !metadata.is_bootstrapped() && root.is_none() {
        return Err(ConfigError::Conflict(RootCredentials::MISSING.to_owned()).into());
    }
    remove_orphans(directory, &metadata)?;
    let counters = CounterTable::default();
    let orders = controller::orders_at_start(&metadata, &mut |key| counters.of_partition(key));
    let mut settings = Settings::default();
    settings.tokens_per_user = u32::try_from(config.personal_access_token.max_tokens_per_user).unwrap_or(u32::MAX);
    let node = Arc::new(Node {
        settings,
        config,
        effective_config: effective,
        published: ArcSwap::from_pointee(metadata),
        counters,
        shards: handles,
        connections: Registry::default(),
        connection_places: Arc::new(Semaphore::new(connections_max())),
        waits,
        unread: Arc::new(NodeUnread::new(UNREAD_OF_NODE_MAX)),
        passwords: Passwords::default(),
        metrics: Metrics::default(),
        cluster,
        tcp_address: tcp_address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
        started: Instant::now(),
    });
    for order in orders {
        let key = order.key().context("an order at the start concerns one partition")?;
        let index = node.shard_index(&key);
        seeds[index].orders.push(order);
    }
    let stop = CancellationToken::new();
    let admit = CancellationToken::new();
    let gates = Gates {
        admit: admit.clone(),
        stop: stop.clone(),
    };
    let threads = start_shards(&node, seeds, tls, &gates, directory).await?;
    bootstrap(&node, root).await?;
    set_limits(&node).await?;
    admit.cancel();
    let metrics_address = start_metrics(&node, &stop).await?;
    tokio::task::spawn_local(housekeeping::run(Arc::clone(&node), stop.clone()));
    let mut signals = StopSignals::new()?;
    announce(tcp_address, metrics_address)?;
    signals.received().await;
    shut_down(&node, threads, &stop).await
}

fn seeds(
    config: &Config,
    cluster: u128,
    directory: &DataDirectory,
    listeners: Vec<std::net::TcpListener>,
    waits: &Arc<SessionWaits>,
) -> (Vec<Seed>, Vec<ShardHandle>) {
    let shard_config = shard_config(config, cluster, boot_id());
    let mut listeners = listeners.into_iter();
    let mut seeds = Vec::new();
    let mut handles = Vec::new();
    for _ in 0..config.sharding.cpu_allocation {
        let wake = Arc::new(Notify::new());
        let notify = Arc::clone(&wake);
        let storage = FileStorage::new(
            directory.path(),
            config.sharding.partition_io_capacity,
            Arc::new(move || notify.notify_one()),
        );
        let (handle, inbox) = ShardHandle::new(config.sharding.inbox_capacity);
        handles.push(handle);
        let shard = Shard::new(shard_config, storage).sharing_session_waits(Arc::clone(waits));
        seeds.push(Seed {
            shard,
            wake,
            inbox,
            listener: listeners.next(),
            orders: Vec::new(),
        });
    }
    (seeds, handles)
}

/// Opens the metadata and waits until what was recovered is on disk: before that nothing that follows from it may be
/// published or removed, because a loss of power could still bring an older state back.
async fn open_metadata(seed: &mut Seed, config: &Config, image: &FileImage) -> anyhow::Result<Metadata> {
    // The only member of its group: nobody else can know more.
    let created = true;
    seed.shard
        .open_metadata(config.metadata.prepare_queue_depth, created, image)?;
    let opening = async {
        let mut outputs = Vec::new();
        loop {
            let metadata = seed.shard.metadata().context("the metadata group was just opened")?;
            if metadata.is_open() {
                return Ok(metadata.state().clone());
            }
            seed.wake.notified().await;
            seed.shard.complete(Now {
                monotonic: 0,
                wall: wall_micros(),
            });
            seed.shard.outputs(&mut outputs);
            for output in outputs.drain(..) {
                if let Output::Metadata(MetadataNotice::OpenFailed(error)) = output {
                    anyhow::bail!("the metadata directory cannot be opened: {error}");
                }
            }
        }
    };
    let late = || format!("the disk did not take the recovered metadata within {OPEN_DEADLINE:?}");
    tokio::time::timeout(OPEN_DEADLINE, opening).await.with_context(late)?
}

/// Removes the directories of partitions that were deleted just before the last process ended.
fn remove_orphans(directory: &DataDirectory, metadata: &Metadata) -> anyhow::Result<()> {
    let kept: HashSet<String> = metadata
        .partitions()
        .map(|(key, ..)| partition_group::directory(&key))
        .collect();
    for found in partition_directories(&FileImage::new(directory.path()))? {
        if !kept.contains(&found) {
            tracing::info!(directory = found, "removing what a deleted partition left");
            std::fs::remove_dir_all(directory.path().join(&found)).with_context(|| found.clone())?;
        }
    }
    remove_empty(&directory.path().join("streams"), EMPTY_DEPTH);
    Ok(())
}

/// Levels below `streams`: a stream, `topics`, a topic, `partitions`.
const EMPTY_DEPTH: usize = 4;

/// Removes the empty directories of deleted streams and topics. Only at the start: a running node may be about to put a
/// partition into one.
fn remove_empty(directory: &std::path::Path, depth: usize) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten().filter(|_| depth > 0) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path(), depth - 1);
            // One that holds something stays.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

fn partition_directories(image: &FileImage) -> std::io::Result<Vec<String>> {
    let inside = |parent: &str| -> std::io::Result<Vec<String>> {
        let entries = image.list(parent)?.into_iter().filter(|entry| entry.directory);
        Ok(entries.map(|entry| format!("{parent}/{}", entry.name)).collect())
    };
    let mut found = Vec::new();
    for stream in inside("streams")? {
        for topic in inside(&format!("{stream}/topics"))? {
            found.extend(inside(&format!("{topic}/partitions"))?);
        }
    }
    Ok(found)
}

/// Starts every shard on a thread of its own; returns when all have opened their partitions.
async fn start_shards(
    node: &Arc<Node>,
    seeds: Vec<Seed>,
    tls: Option<Arc<ServerConfig>>,
    gates: &Gates,
    directory: &DataDirectory,
) -> anyhow::Result<Vec<oneshot::Receiver<()>>> {
    let mut opened = Vec::new();
    let mut threads = Vec::new();
    for (index, seed) in seeds.into_iter().enumerate() {
        let (opened_sender, opened_receiver) = oneshot::channel();
        let (ended_sender, ended_receiver) = oneshot::channel();
        opened.push(opened_receiver);
        threads.push(ended_receiver);
        let (node, tls, gates) = (Arc::clone(node), tls.clone(), gates.clone());
        let image = FileImage::new(directory.path());
        std::thread::Builder::new()
            .name(format!("shard-{index}"))
            .spawn(move || {
                let result = run_shard(node, seed, image, tls, gates, opened_sender);
                if let Err(error) = result {
                    tracing::error!(%error, index, "a shard could not run");
                }
                let _ = ended_sender.send(());
            })?;
    }
    for receiver in opened {
        receiver
            .await
            .context("a shard ended while it started; the log says why")?;
    }
    Ok(threads)
}

fn run_shard(
    node: Arc<Node>,
    seed: Seed,
    image: FileImage,
    tls: Option<Arc<ServerConfig>>,
    gates: Gates,
    opened: oneshot::Sender<()>,
) -> std::io::Result<()> {
    // Everything is a task: a task that wakes another one of its thread only queues it, while waking the future of
    // `block_on`, or a set of tasks in it, costs a write to the event loop and a turn of it each time.
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let shard = runtime.spawn_local(async move {
        let mut runner = ShardRunner::new(Arc::clone(&node), seed.shard, image, seed.wake);
        runner.open(seed.orders);
        let _ = opened.send(());
        let connections = TaskTracker::new();
        if let Some(listener) = seed.listener {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let node = Arc::clone(&node);
            tokio::task::spawn_local(listener::accept(node, listener, tls, connections.clone(), gates));
        }
        runner.run(seed.inbox).await;
        // What was answered while stopping must still reach its client.
        node.connections.close_all();
        connections.close();
        let _ = tokio::time::timeout(FLUSH_DEADLINE, connections.wait()).await;
        Ok(())
    });
    match runtime.block_on(shard) {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(error.into()),
    }
}

/// Makes the root user of a new data directory.
async fn bootstrap(node: &Node, root: Option<RootCredentials>) -> anyhow::Result<()> {
    let Some(root) = root.filter(|_| !node.published.load().is_bootstrapped()) else {
        return Ok(());
    };
    let hash = node.passwords.hash(root.password.into_bytes()).await?;
    let change = Change::Bootstrap {
        log_id: rand::random(),
        root_username: Name::new(&root.username)?,
        root_password_hash: hash,
    };
    let (message, answer) = dispatch::internal(change);
    anyhow::ensure!(
        node.metadata_shard().send_waiting(message).await,
        "the metadata shard has stopped"
    );
    let receipt = answer.await.context("the metadata shard has stopped")?;
    receipt.map_err(|code| anyhow::anyhow!("the root user could not be made: {code}"))?;
    Ok(())
}

/// Brings the replicated limits to what the configuration says.
async fn set_limits(node: &Node) -> anyhow::Result<()> {
    let config = &node.config.metadata;
    let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let limits = Limits {
        sessions: bounded(config.clients_table_max),
        resource_records: bounded(config.change_log_resource_capacity),
        activity_records: bounded(config.change_log_activity_capacity),
    };
    if node.published.load().limits() == limits {
        return Ok(());
    }
    let (message, answer) = dispatch::internal(Change::SetLimits(limits));
    anyhow::ensure!(
        node.metadata_shard().send_waiting(message).await,
        "the metadata shard has stopped"
    );
    let receipt = answer.await.context("the metadata shard has stopped")?;
    receipt.map_err(|code| anyhow::anyhow!("the limits of [metadata] could not be set: {code}"))?;
    Ok(())
}

async fn start_metrics(node: &Arc<Node>, stop: &CancellationToken) -> anyhow::Result<Option<SocketAddr>> {
    let http = &node.config.http;
    if !http.metrics.enabled {
        return Ok(None);
    }
    let listener = tokio::net::TcpListener::bind(http.address)
        .await
        .with_context(|| format!("http.address {} cannot be bound", http.address))?;
    let address = listener.local_addr()?;
    let sampled = Arc::clone(node);
    let sampler: Sampler = Arc::new(move || sampled.sample());
    let checked = Arc::clone(node);
    let check: TokenCheck = Arc::new(move |token| {
        let known = checked
            .published
            .load()
            .token_user(&token_hash(&token), wall_micros())
            .is_ok();
        Box::pin(async move { known })
    });
    let access = Access::of(address, check);
    let (endpoint, counted, stop) = (http.metrics.endpoint.clone(), node.metrics.clone(), stop.clone());
    tokio::task::spawn_local(async move {
        if let Err(error) = metrics::serve(listener, &endpoint, counted, sampler, access, stop).await {
            tracing::error!(%error, "the metrics page is no longer served");
        }
    });
    Ok(Some(address))
}

/// One line on standard output, for people and programs that wait for the node.
fn announce(tcp: Option<SocketAddr>, metrics: Option<SocketAddr>) -> std::io::Result<()> {
    let mut line = "ready".to_owned();
    for (name, address) in [("tcp", tcp), ("metrics", metrics)] {
        if let Some(address) = address {
            let _ = write!(line, " {name}={address}");
        }
    }
    tracing::info!("{line}");
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

/// The signals that stop a node. Made before the node says that it is ready: from then on a stop is a graceful one.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Takes no more connections and requests, leaves everything on disk, and gives up at the deadline.
async fn shut_down(node: &Node, threads: Vec<oneshot::Receiver<()>>, stop: &CancellationToken) -> anyhow::Result<()> {
    tracing::info!("stopping");
    stop.cancel();
    let deadline = node.config.sharding.shutdown_drain_timeout;
    let drained = tokio::time::timeout(deadline, async {
        for shard in &node.shards {
            shard.send_waiting(ShardMessage::Stop).await;
        }
        for thread in threads {
            let _ = thread.await;
        }
    });
    match drained.await {
        Ok(()) => {
            tracing::info!("stopped; everything is on disk");
            Ok(())
        }
        Err(_) => anyhow::bail!("not everything was on disk within {deadline:?} (sharding.shutdown_drain_timeout)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_directories_of_deleted_topics_at_the_start_should_remove_only_the_empty_ones() {
        let root = tempfile::tempdir().unwrap();
        for path in ["0/topics/0/partitions/0-4", "0/topics/1/partitions", "1/topics"] {
            std::fs::create_dir_all(root.path().join(path)).unwrap();
        }
        std::fs::write(root.path().join("0/topics/0/partitions/0-4/superblock.a"), "kept").unwrap();
        remove_empty(root.path(), EMPTY_DEPTH);
        assert!(root.path().join("0/topics/0/partitions/0-4/superblock.a").exists());
        assert!(!root.path().join("0/topics/1").exists());
        assert!(!root.path().join("1").exists());
    }
}
