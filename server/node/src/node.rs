//! What every shard and connection of the node shares.
//!
//! The metadata is published as an immutable snapshot after each change, before anyone hears of the change: a client that
//! saw a write answered finds it in every later read on this node.

use crate::config::Config;
use crate::connection::registry::Registry;
use crate::connection::unread::NodeUnread;
use crate::metrics::{Metrics, Sample};
use crate::passwords::Passwords;
use crate::shard::ShardHandle;
use arc_swap::ArcSwap;
use iggy_driver::counters::PartitionCounters;
use iggy_driver::shard::SessionWaits;
use iggy_metadata::{Counters, Metadata, PartitionKey, Settings};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;

/// Name of the cluster a single node forms.
pub const CLUSTER_NAME: &str = "single-node";
/// Version the server shows to clients.
pub const SERVER_VERSION: &str = env!("CARGO_PKG_VERSION");

/// See the module's page.
pub struct Node {
    /// Effective configuration.
    pub config: Config,
    /// Effective configuration as TOML, secrets masked.
    pub effective_config: String,
    /// Metadata as of the newest change.
    pub published: ArcSwap<Metadata>,
    /// Numbers of every partition.
    pub counters: CounterTable,
    /// Shards, by index.
    pub shards: Vec<ShardHandle>,
    /// Open connections, and the sessions bound to them.
    pub connections: Registry,
    /// Connections that may still be opened; the rest of the files is for partitions.
    pub connection_places: Arc<Semaphore>,
    /// Reads that wait at the shards.
    pub waits: Arc<SessionWaits>,
    /// Replies that wait for the sockets of clients.
    pub unread: Arc<NodeUnread>,
    /// Password hashing off the shards.
    pub passwords: Passwords,
    /// What the metrics page shows.
    pub metrics: Metrics,
    /// What admission of metadata changes is told.
    pub settings: Settings,
    /// Cluster identity, stamped into replies.
    pub cluster: u128,
    /// Address clients reach TCP at.
    pub tcp_address: SocketAddr,
    /// Start of the process.
    pub started: Instant,
}

impl Node {
    /// Index of the shard that owns a partition. Partitions of one topic go round the shards.
    pub fn shard_index(&self, key: &PartitionKey) -> usize {
        let sum = u64::from(key.stream_id) + u64::from(key.topic_id) + u64::from(key.partition_id);
        (sum % self.shards.len() as u64) as usize
    }

    /// Shard that owns a partition.
    pub fn shard_of(&self, key: &PartitionKey) -> &ShardHandle {
        &self.shards[self.shard_index(key)]
    }

    /// Shard that orders metadata.
    pub fn metadata_shard(&self) -> &ShardHandle {
        &self.shards[0]
    }

    /// What the metrics page shows of the node's content.
    pub fn sample(&self) -> Sample {
        let metadata = self.published.load();
        let counts = metadata.counts();
        let totals = self.counters.totals();
        let [appended, polled] = self.counters.moved();
        Sample {
            streams: counts.streams.into(),
            topics: counts.topics.into(),
            partitions: counts.partitions.into(),
            segments: totals.segments_count.into(),
            messages: totals.messages_count,
            messages_bytes: totals.size_bytes,
            users: counts.users.into(),
            clients: self.connections.len() as u64,
            consumer_groups: counts.groups.into(),
            waiting_reads: self.waits.total() as u64,
            appended,
            polled,
        }
    }
}

/// Microseconds since the epoch.
pub fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The counters of every partition, shared by the shards that write and the connections that read them.
#[derive(Default)]
pub struct CounterTable {
    partitions: RwLock<HashMap<PartitionKey, Arc<PartitionCounters>>>,
    /// What deleted partitions had appended and sent: totals never fall.
    gone: [AtomicU64; 2],
}

impl CounterTable {
    /// The counters of a partition, made when it is new.
    pub fn of_partition(&self, key: PartitionKey) -> Arc<PartitionCounters> {
        let mut partitions = self.partitions.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(partitions.entry(key).or_default())
    }

    /// Forgets a deleted partition.
    pub fn forget(&self, key: &PartitionKey) {
        let removed = self
            .partitions
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
        if let Some(removed) = removed {
            for (gone, counted) in self.gone.iter().zip([&removed.appended, &removed.polled]) {
                gone.fetch_add(counted.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    /// Messages appended and messages sent to consumers since the process started.
    pub fn moved(&self) -> [u64; 2] {
        let partitions = self.partitions.read().unwrap_or_else(PoisonError::into_inner);
        let mut moved = [&self.gone[0], &self.gone[1]].map(|gone| gone.load(Ordering::Relaxed));
        for counters in partitions.values() {
            moved[0] += counters.appended.load(Ordering::Relaxed);
            moved[1] += counters.polled.load(Ordering::Relaxed);
        }
        moved
    }

    /// Sums over all partitions.
    pub fn totals(&self) -> Counters {
        let partitions = self.partitions.read().unwrap_or_else(PoisonError::into_inner);
        let mut totals = Counters::default();
        for counters in partitions.values() {
            let counters = read(counters);
            totals.segments_count += counters.segments_count;
            totals.size_bytes += counters.size_bytes;
            totals.messages_count += counters.messages_count;
        }
        totals
    }
}

impl iggy_metadata::PartitionCounters for CounterTable {
    fn of(&self, key: &PartitionKey) -> Counters {
        let partitions = self.partitions.read().unwrap_or_else(PoisonError::into_inner);
        partitions
            .get(key)
            .map(|counters| Counters {
                in_sync: counters.in_sync(),
                ..read(counters)
            })
            .unwrap_or_default()
    }
}

fn read(counters: &PartitionCounters) -> Counters {
    Counters {
        segments_count: u32::try_from(counters.segments.load(Ordering::Relaxed)).unwrap_or(u32::MAX),
        current_offset: counters.current_offset.load(Ordering::Relaxed),
        size_bytes: counters.size_bytes.load(Ordering::Relaxed),
        messages_count: counters.messages.load(Ordering::Relaxed),
        in_sync: Vec::new(),
    }
}
