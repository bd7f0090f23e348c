//! What a run is like, drawn from its seed.

use iggy_consensus::quorum::Quorum;
use iggy_consensus::{Durability, Timing};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A stream of random numbers for one purpose, so that a draw more for one of them does not change the others.
pub fn stream(seed: u64, purpose: &str) -> StdRng {
    StdRng::seed_from_u64(xxh3_64_with_seed(purpose.as_bytes(), seed))
}

/// What is asked of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Faults within what the groups are built for; nothing wrong may happen, and at the end everybody heals.
    Safety,
    /// As safety; at the end only a core heals, others may stay dead, and the core must finish everything.
    Liveness,
    /// Faults without bounds; replicas must still never disagree about what is committed.
    Unlimited,
}

impl Mode {
    /// The mode of a seed that was given none: all of them in turn.
    pub fn of(seed: u64) -> Self {
        match seed % 5 {
            0 | 1 => Self::Safety,
            2 | 3 => Self::Liveness,
            _ => Self::Unlimited,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safety => "safety",
            Self::Liveness => "liveness",
            Self::Unlimited => "unlimited",
        }
    }
}

/// How often something happens to a packet, of 10,000.
#[derive(Clone, Debug, Default)]
pub struct PacketFaults {
    /// It is lost.
    pub loss: u32,
    /// It comes twice.
    pub duplicate: u32,
    /// It comes again much later.
    pub replay: u32,
    /// It takes much longer.
    pub spike: u32,
    /// A byte of it changes.
    pub corrupt: u32,
    /// Its end is missing.
    pub truncate: u32,
    /// It goes to somebody else as well.
    pub misroute: u32,
}

/// How often something happens to a node or the network, per 100 rounds of mishaps.
#[derive(Clone, Debug, Default)]
pub struct MishapRates {
    /// A process crashes or loses power.
    pub crash: u32,
    /// All of them at once.
    pub cluster_crash: u32,
    /// The network splits.
    pub partition: u32,
    /// A disk misbehaves.
    pub disk: u32,
    /// A process stands still.
    pub pause: u32,
    /// A clock jumps.
    pub clock: u32,
    /// Somebody asks for something unusual.
    pub operator: u32,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its seed.
    pub seed: u64,
    /// Its mode.
    pub mode: Mode,
    /// Nodes, which are the members of the metadata group.
    pub members: u8,
    /// Durabilities of messages and offsets, by topic.
    pub topics: Vec<(Durability, Durability)>,
    /// Nodes that hold a partition, in member order, by topic and partition.
    pub placement: Vec<Vec<Vec<u8>>>,
    /// Partitions of each topic.
    pub partitions: u32,
    /// Clients.
    pub clients: usize,
    /// Microseconds of chaos.
    pub chaos: u64,
    /// Microseconds after it in which everything must come to rest.
    pub heal: u64,
    /// Prepares in flight.
    pub pipeline_max: usize,
    /// Credit of a backup in bytes.
    pub credit_bytes: u64,
    /// Bytes of committed prepares kept in memory.
    pub retain_bytes: u64,
    /// Bytes of committed prepares that the partitions of a node keep in memory together.
    pub repair_bytes_max: u64,
    /// Partitions of a node that begin to search for a view at once.
    pub searches_max: usize,
    /// Microseconds between two heartbeats of a group that rests; 0 when none does.
    pub resting_heartbeat: u64,
    /// Bytes of batches between checkpoints, doubled.
    pub wal_bytes_max: u64,
    /// Bytes of a segment.
    pub segment_size: u64,
    /// Bytes of sealed segments a partition keeps.
    pub size_max: u64,
    /// Bytes of a message at most.
    pub message_max: usize,
    /// Mean delay of a packet in microseconds.
    pub delay: u64,
    /// Mean time of a disk job in microseconds.
    pub disk_delay: u64,
    /// Faults of packets.
    pub packets: PacketFaults,
    /// Mishaps.
    pub mishaps: MishapRates,
    /// Nodes whose disks may lie: fewer than hold a committed prepare.
    pub liars: Vec<u8>,
    /// Whether disks may lie without bounds.
    pub unlimited: bool,
    /// Periods of the replicas.
    pub timing: Timing,
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64, mode: Mode) -> Self {
        let mut random = stream(seed, "plan");
        let members = [3, 3, 3, 3, 2, 4, 5, 6, 1, 3][random.random_range(0..10)];
        let replication = match members {
            2 => 2,
            n if n < 5 => u8::div_ceil(n, 2),
            _ => 3,
        };
        let durability = |random: &mut StdRng| {
            if random.random() {
                Durability::Persisted
            } else {
                Durability::Replicated
            }
        };
        let topics: Vec<(Durability, Durability)> = (0..random.random_range(1..=3))
            .map(|_| (durability(&mut random), durability(&mut random)))
            .collect();
        // Each run has its own mix: some have none of a kind of fault, some a lot.
        let rate = |random: &mut StdRng, most: u32| {
            if random.random_ratio(2, 5) {
                0
            } else {
                random.random_range(1..=most)
            }
        };
        let packets = PacketFaults {
            loss: rate(&mut random, 800),
            duplicate: rate(&mut random, 400),
            replay: rate(&mut random, 50),
            spike: rate(&mut random, 200),
            corrupt: rate(&mut random, 100),
            truncate: rate(&mut random, 50),
            misroute: rate(&mut random, 50),
        };
        let mishaps = MishapRates {
            crash: rate(&mut random, 20),
            cluster_crash: rate(&mut random, 4),
            partition: rate(&mut random, 15),
            disk: rate(&mut random, 10),
            pause: rate(&mut random, 8),
            clock: rate(&mut random, 10),
            operator: rate(&mut random, 12),
        };
        let mut liars: Vec<u8> = (0..members).collect();
        while liars.len() > usize::from(replication - 1) {
            let place = random.random_range(0..liars.len());
            liars.remove(place);
        }
        let scale = random.random_range(1..=3);
        let partitions = random.random_range(1..=2);
        let placement = placement(seed, members, topics.len(), partitions);
        let groups = placement.iter().flatten().map(|nodes| nodes.len() as u8);
        let least = groups.filter_map(Quorum::of).map(|quorum| quorum.replication).min();
        liars.truncate(usize::from(least.unwrap_or(1) - 1));
        Self {
            seed,
            mode,
            members,
            topics,
            placement,
            partitions,
            clients: random.random_range(2..=5),
            chaos: random.random_range(2_000_000..6_000_000),
            heal: 60_000_000,
            pipeline_max: [1, 4, 8, 32][random.random_range(0..4)],
            credit_bytes: [300, 4_000, 1 << 20][random.random_range(0..3)],
            retain_bytes: [0, 3_000, 1 << 20][random.random_range(0..3)],
            searches_max: [1, 2, 64][stream(seed, "searches").random_range(0..3)],
            resting_heartbeat: [0, 400_000, 2_000_000][stream(seed, "rest").random_range(0..3)],
            repair_bytes_max: [2_000, 20_000, 1 << 20][stream(seed, "memory").random_range(0..3)],
            wal_bytes_max: random.random_range(2_000..40_000),
            segment_size: random.random_range(800..6_000),
            size_max: if random.random() { u64::MAX } else { 12_000 },
            message_max: random.random_range(1..600),
            delay: random.random_range(200..3_000),
            disk_delay: random.random_range(50..1_500),
            packets,
            mishaps,
            liars,
            unlimited: mode == Mode::Unlimited,
            timing: Timing {
                heartbeat: 20_000 * scale,
                heartbeat_timeout: 120_000 * scale,
                prepare_retransmit: 15_000 * scale,
                view_change_retransmit: 30_000 * scale,
                view_change_status: 160_000 * scale,
                request_start_view: 40_000 * scale,
                repair_retry: 25_000 * scale,
                drain: 60_000 * scale,
            },
        }
    }

    /// Replicas that hold a committed prepare.
    pub fn replication(&self) -> usize {
        let quorum = iggy_consensus::quorum::Quorum::of(self.members);
        quorum.map_or(1, |quorum| usize::from(quorum.replication))
    }

    /// Nodes that every group can do without.
    pub fn spare(&self) -> u8 {
        let groups = self.placement.iter().flatten().map(|nodes| nodes.len() as u8);
        let spare = |members: u8| {
            let quorum = Quorum::of(members)?;
            Some(members - quorum.replication.max(quorum.view_change))
        };
        groups.chain([self.members]).filter_map(spare).min().unwrap_or(0)
    }

    /// The plan as one line.
    pub fn describe(&self) -> String {
        format!(
            "seed {} mode {} members {} topics {:?} x{} on {:?} clients {} pipeline {} retain {} wal {} segment {} liars {:?}",
            self.seed,
            self.mode.name(),
            self.members,
            self.topics,
            self.partitions,
            self.placement,
            self.clients,
            self.pipeline_max,
            self.retain_bytes,
            self.wal_bytes_max,
            self.segment_size,
            self.liars
        )
    }
}

/// Chooses members for each partition, in any order: all nodes for some topics, and fewer for others.
fn placement(seed: u64, members: u8, topics: usize, partitions: u32) -> Vec<Vec<Vec<u8>>> {
    let mut random = stream(seed, "placement");
    let topic = |_| {
        let factor = if random.random_ratio(3, 5) {
            members
        } else {
            random.random_range(1..=members)
        };
        let partition = |_| {
            let mut nodes: Vec<u8> = (0..members).collect();
            let chosen = (0..factor).map(|_| nodes.swap_remove(random.random_range(0..nodes.len())));
            chosen.collect()
        };
        (0..partitions).map(partition).collect()
    };
    (0..topics).map(topic).collect()
}
