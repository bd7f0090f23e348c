//! A node: what outlives its process, and one life of it.

use crate::disks::PacedStorage;
use crate::plan::Plan;
use iggy_consensus::{GroupId, Now, ReplicaConfig, VsrState};
use iggy_driver::counters::PartitionCounters;
use iggy_driver::metadata_group::MetadataGroup;
use iggy_driver::partition_group::{PartitionConfig, PartitionGroup};
use iggy_driver::{NodesHeard, Order, Shard, ShardConfig, controller};
use iggy_metadata::{Metadata, PartitionKey};
use iggy_storage::memory::MemoryDisk;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Cluster identity of every run.
pub const CLUSTER: u128 = 7;
/// The time of day at which every run begins, in microseconds since the epoch.
const MORNING: i64 = 1_700_000_000_000_000;

/// A running process.
pub struct Process {
    /// Its groups.
    pub shard: Shard<PacedStorage>,
    /// Its queue to the disk.
    pub storage: PacedStorage,
    /// Whether an event for its disk is on its way.
    pub disk_scheduled: bool,
    /// When its next tick is scheduled.
    pub tick_at: Option<u64>,
    /// Whether its metadata was recovered far enough to follow it.
    pub following: bool,
    /// Position of the metadata when the process joined; what was created before is not new here.
    pub joined: Option<u64>,
    /// When it heard the other nodes.
    pub heard: Arc<NodesHeard>,
}

/// A node.
pub struct Node {
    /// Its index.
    pub index: u8,
    /// Its disk.
    pub disk: MemoryDisk,
    /// Counts its processes.
    pub life: u64,
    /// Counts the boots of its machine.
    pub boot: u128,
    /// The process that runs, if one does.
    pub process: Option<Process>,
    /// Whether it never ran, so that the cluster is being created.
    pub is_new: bool,
    /// Stands still until then.
    pub paused_until: u64,
    /// Microseconds its wall clock is ahead.
    pub skew: i64,
    /// Parts in a million its clock runs too fast.
    pub drift: u64,
    /// Times each disk job takes longer.
    pub slowness: u64,
    /// Stays down until the end.
    pub is_dead: bool,
    /// Whether its disk has ever lied.
    pub lied: bool,
    /// Directories that could not be used in this life.
    pub refused: u64,
    /// The newest view this node has spoken of, by group.
    pub spoken: BTreeMap<GroupId, u32>,
}

impl Node {
    /// A node that never ran.
    pub fn new(index: u8) -> Self {
        Self {
            index,
            disk: MemoryDisk::new(),
            life: 0,
            boot: 1 + (u128::from(index) << 32),
            process: None,
            is_new: true,
            paused_until: 0,
            skew: 0,
            drift: 0,
            slowness: 1,
            is_dead: false,
            lied: false,
            refused: 0,
            spoken: BTreeMap::new(),
        }
    }

    /// The time as this node sees it.
    pub fn now(&self, at: u64) -> Now {
        Now {
            monotonic: at + at * self.drift / 1_000_000,
            wall: (MORNING + at.cast_signed() + self.skew).cast_unsigned(),
        }
    }

    /// When a deadline of this node comes, in the time of the world.
    pub fn deadline(&self, monotonic: u64) -> u64 {
        (u128::from(monotonic) * 1_000_000 / u128::from(1_000_000 + self.drift)) as u64 + 1
    }

    /// The metadata as this node has applied it.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.process.as_ref()?.shard.metadata().map(MetadataGroup::state)
    }

    /// A partition hosted here.
    pub fn partition(&self, key: &PartitionKey) -> Option<&PartitionGroup> {
        let shard = &self.process.as_ref()?.shard;
        shard.partitions().find(|group| group.key() == *key)
    }

    /// Begins a life. `Err` holds why the directory cannot be used.
    pub fn start(&mut self, plan: &Plan, seed: u64) -> Result<(), String> {
        self.life += 1;
        let storage = PacedStorage::new(&self.disk, seed);
        let config = config(plan, self.index, self.boot, self.life);
        let heard = Arc::<NodesHeard>::default();
        let mut shard = Shard::new(config, storage.clone())
            .hearing(Arc::clone(&heard))
            .searching_at_most(plan.searches_max);
        let created = std::mem::replace(&mut self.is_new, false);
        shard
            .open_metadata(plan.pipeline_max, created, &self.disk)
            .map_err(|error| error.to_string())?;
        self.process = Some(Process {
            shard,
            storage,
            disk_scheduled: false,
            tick_at: None,
            following: false,
            joined: created.then_some(0),
            heard,
        });
        Ok(())
    }

    /// The orders that bring the partitions to what the metadata says.
    pub fn orders_at_start(&self, plan: &Plan) -> Vec<Order> {
        let Some(state) = self.metadata() else {
            return Vec::new();
        };
        let mut orders = controller::orders_at_start(state, &mut counters);
        for order in &mut orders {
            fit(order, plan);
        }
        orders
    }

    /// States of its replicas as they are on disk, or on their way there.
    pub fn durable_states(&self) -> Vec<VsrState> {
        let Some(process) = &self.process else {
            return Vec::new();
        };
        let metadata = process.shard.metadata().map(|group| *group.durable_state());
        let partitions = process.shard.partitions().map(|group| *group.durable_state());
        metadata.into_iter().chain(partitions).collect()
    }
}

/// Counters of a partition, which nobody looks at here.
pub fn counters(_: PartitionKey) -> Arc<PartitionCounters> {
    Arc::default()
}

/// Makes what an order says as small as the run wants it.
pub fn fit(order: &mut Order, plan: &Plan) {
    if let Order::Open { settings, .. } | Order::Configure { settings, .. } = order {
        settings.segment_size = plan.segment_size;
        settings.size_max = plan.size_max;
        settings.preallocate = false;
    }
}

fn config(plan: &Plan, replica: u8, boot: u128, life: u64) -> ShardConfig {
    ShardConfig {
        partition: PartitionConfig {
            cluster: CLUSTER,
            boot,
            replica,
            replica_count: plan.members,
            consensus: ReplicaConfig {
                pipeline_max: plan.pipeline_max,
                credit_bytes: plan.credit_bytes,
                retain_bytes: plan.retain_bytes,
                repair_chunk: 16,
                incarnation: life,
                view_probes: 2,
                resting_heartbeat: plan.resting_heartbeat,
                timing: plan.timing,
            },
            wal_bytes_max: plan.wal_bytes_max,
            tail_bytes_max: 4_000,
            read_bytes_max: 1 << 20,
            verify_reads: true,
            waiting_max: 16,
        },
        tails_bytes_max: 16_000,
        repair_bytes_max: plan.repair_bytes_max,
        read_bytes_max: 1 << 20,
        parked_max: 16,
        parked_per_session_max: 4,
        parked_wait_max: 1_000_000,
    }
}
