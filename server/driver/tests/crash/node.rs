//! A shard over a memory disk that hands out its completions a few at a time, so that every step of the disk can come
//! between any two steps of the shard.

use iggy_consensus::{Now, ReplicaConfig};
use iggy_driver::partition_group::PartitionConfig;
use iggy_driver::{Shard, ShardConfig};
use iggy_storage::memory::{MemoryDisk, MemoryStorage};
use iggy_storage::{Completion, IoToken, Job, LaneId, Storage};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The storage a shard sees: at most `pace` jobs end per call.
pub struct Paced {
    storage: Rc<RefCell<MemoryStorage>>,
    pace: Rc<Cell<usize>>,
}

impl Storage for Paced {
    fn submit(&mut self, lane: LaneId, token: IoToken, job: Job) {
        self.storage.borrow_mut().submit(lane, token, job);
    }

    fn completions(&mut self, out: &mut Vec<Completion>) {
        let mut storage = self.storage.borrow_mut();
        for _ in 0..self.pace.get() {
            let Some(completion) = storage.run_one() else { break };
            out.push(completion);
        }
    }
}

/// One life of the process.
pub struct Node {
    pub shard: Shard<Paced>,
    storage: Rc<RefCell<MemoryStorage>>,
    pace: Rc<Cell<usize>>,
}

impl Node {
    pub fn start(disk: &MemoryDisk, seed: u64, boot: u128) -> Self {
        let storage = Rc::new(RefCell::new(disk.storage(seed)));
        let pace = Rc::new(Cell::new(1));
        let paced = Paced {
            storage: Rc::clone(&storage),
            pace: Rc::clone(&pace),
        };
        Self {
            shard: Shard::new(config(boot), paced),
            storage,
            pace,
        }
    }

    /// Lets up to `jobs` jobs of the disk end.
    pub fn complete(&mut self, now: Now, jobs: usize) {
        self.pace.set(jobs);
        self.shard.complete(now);
    }

    /// Whether the disk has nothing left to do.
    pub fn is_idle(&self) -> bool {
        self.storage.borrow().is_idle()
    }
}

/// Limits so small that each of them is met often.
pub fn config(boot: u128) -> ShardConfig {
    ShardConfig {
        partition: PartitionConfig {
            cluster: 7,
            boot,
            replica: 0,
            replica_count: 1,
            consensus: ReplicaConfig {
                pipeline_max: 6,
                ..ReplicaConfig::default()
            },
            wal_bytes_max: 6_000,
            tail_bytes_max: 1_200,
            read_bytes_max: 1 << 20,
            verify_reads: true,
            waiting_max: 4,
        },
        tails_bytes_max: 4_000,
        repair_bytes_max: 0,
        read_bytes_max: 1 << 20,
        parked_max: 8,
        parked_per_session_max: 4,
        parked_wait_max: 1_000_000,
    }
}
