//! What goes wrong with nodes, disks, clocks and the network as a whole (simulator 4).

use crate::disks::{PacedStorage, is_segment};
use crate::faults::Fault;
use crate::metadata::topic_name;
use crate::plan::{Plan, stream};
use crate::world::{Event, World};
use iggy_consensus::Input;
use iggy_driver::partition_group::PartitionGroup;
use iggy_driver::{Order, Shard};
use iggy_metadata::PartitionKey;
use iggy_partition::operation::Member;
use iggy_storage::memory::MemoryDisk;
use rand::Rng;
use rand::rngs::StdRng;

/// Endings of the files whose writes may get lost.
const LIES: [&str; 1] = [".log"];
/// Kinds of messages that may be dropped for a while.
const DROPPED: [&str; 8] = [
    "prepare",
    "prepare-ok",
    "beats",
    "start-view",
    "do-view-change",
    "start-view-change",
    "repair-prepare",
    "request-start-view",
];

/// What went wrong, and what will.
pub struct Mishaps {
    random: StdRng,
    /// Nodes whose disks were made to fail in this life.
    hurt: Vec<u8>,
    generation: u64,
}

impl Mishaps {
    /// Those of a run.
    pub fn new(plan: &Plan) -> Self {
        Self {
            random: stream(plan.seed, "mishaps"),
            hurt: Vec::new(),
            generation: 1 << 40,
        }
    }

    /// Whether a node may be in trouble because its disk was hurt.
    pub fn is_hurt(&self, node: u8) -> bool {
        self.hurt.contains(&node)
    }
}

impl World {
    /// One round of mishaps.
    pub(crate) fn mishap(&mut self) -> Result<(), String> {
        let rates = self.plan.mishaps.clone();
        let mut happens = |rate: u32| rate > 0 && self.mishaps.random.random_ratio(rate, 100);
        let crash = happens(rates.crash);
        let cluster = happens(rates.cluster_crash);
        let partition = happens(rates.partition);
        let disk = happens(rates.disk);
        let pause = happens(rates.pause);
        let clock = happens(rates.clock);
        let operator = happens(rates.operator);
        // What is cut comes back by itself after a while.
        if self.mishaps.random.random_ratio(1, 8) {
            self.network.weather = crate::network::Weather::default();
        }
        if partition {
            self.disturb_network();
        }
        if disk {
            self.hurt_disk();
        }
        if pause {
            self.pause();
        }
        if clock {
            self.disturb_clock();
        }
        if operator {
            self.operate()?;
        }
        if crash {
            self.crash_one()?;
        }
        if cluster {
            self.crash_all()?;
        }
        Ok(())
    }

    fn pick(&mut self) -> u8 {
        self.mishaps.random.random_range(0..self.plan.members)
    }

    fn crash_one(&mut self) -> Result<(), String> {
        let node = self.pick();
        let power = self.mishaps.random.random();
        match self.mishaps.random.random_range(0..6) {
            0 => {
                // In the middle of whatever the disk does next.
                let steps = self.mishaps.random.random_range(0..30);
                self.nodes[usize::from(node)].disk.die_after(steps);
                Ok(())
            }
            1 => {
                self.faults.count(Fault::CrashLoop);
                self.crash(node, power, true)?;
                for _ in 0..2 {
                    self.start(node)?;
                    self.faults.count(Fault::CrashInRecovery);
                    self.crash(node, power, true)?;
                }
                Ok(())
            }
            2 => {
                self.faults.count(Fault::CrashInRecovery);
                self.crash(node, power, false)?;
                let steps = self.mishaps.random.random_range(0..40);
                self.start(node)?;
                self.nodes[usize::from(node)].disk.die_after(steps);
                Ok(())
            }
            3 if self.plan.liars.contains(&node) && self.plan.members > 1 => {
                self.faults.count(Fault::WipedDisk);
                self.crash(node, true, true)?;
                self.nodes[usize::from(node)].disk = MemoryDisk::new();
                Ok(())
            }
            4 => {
                self.faults.count(Fault::GracefulStop);
                self.stop(node)
            }
            _ => {
                let fault = if power { Fault::PowerLoss } else { Fault::ProcessCrash };
                self.faults.count(fault);
                self.crash(node, power, true)
            }
        }
    }

    /// Stops a process in order, as far as its disk goes along.
    fn stop(&mut self, index: u8) -> Result<(), String> {
        let node = &mut self.nodes[usize::from(index)];
        let now = node.now(self.now);
        if let Some(process) = &mut node.process {
            process.shard.stop();
            drain(&mut process.shard, &process.storage, now);
        }
        self.crash(index, false, true)
    }

    fn crash_all(&mut self) -> Result<(), String> {
        let power: bool = self.mishaps.random.random();
        let fault = if power {
            Fault::ClusterPowerLoss
        } else {
            Fault::ClusterCrash
        };
        self.faults.count(fault);
        for node in 0..self.plan.members {
            self.crash(node, power, true)?;
        }
        Ok(())
    }

    fn disturb_network(&mut self) {
        let members = self.plan.members;
        if members == 1 {
            return;
        }
        let first = self.pick();
        let second = (first + self.mishaps.random.random_range(1..members)) % members;
        let weather = &mut self.network.weather;
        let isolate = |weather: &mut crate::network::Weather, node: u8, both: bool| {
            for other in (0..members).filter(|other| *other != node) {
                weather.cut.push((node, other));
                if both {
                    weather.cut.push((other, node));
                }
            }
        };
        match self.mishaps.random.random_range(0..8) {
            0 => {
                self.faults.count(Fault::Partition);
                let sides = self.mishaps.random.random_range(0..1_u32 << members);
                if members > 3 && self.mishaps.random.random() {
                    // Two halves of any size, with the leaders on either.
                    let side = |node: u8| sides >> node & 1;
                    let ways = (0..members).flat_map(|from| (0..members).map(move |to| (from, to)));
                    weather.cut.extend(ways.filter(|(from, to)| side(*from) != side(*to)));
                } else {
                    isolate(weather, first, true);
                }
            }
            1 => {
                self.faults.count(Fault::OneWayPartition);
                // It hears everything and is not heard, or the other way round.
                if self.mishaps.random.random() {
                    isolate(weather, first, false);
                } else {
                    weather.cut.extend((0..members).map(|other| (other, first)));
                }
            }
            2 => {
                self.faults.count(Fault::PartialPartition);
                weather.cut.extend([(first, second), (second, first)]);
            }
            3 => {
                let primary = self.leading_metadata().map(|(leader, _)| leader);
                if let Some(primary) = primary {
                    self.faults.count(Fault::PrimaryIsolated);
                    isolate(&mut self.network.weather, primary, true);
                }
            }
            4 => weather.flapping = Some((first, second, self.mishaps.random.random_range(5_000..60_000))),
            5 => {
                let kind = DROPPED[self.mishaps.random.random_range(0..DROPPED.len())];
                weather.dropped_kind = Some(kind);
            }
            6 => {
                let groups: Vec<u64> = self.nodes[usize::from(first)]
                    .durable_states()
                    .iter()
                    .map(|state| state.group.namespace)
                    .collect();
                // G1: the others do not notice.
                if !groups.is_empty() {
                    let place = self.mishaps.random.random_range(0..groups.len());
                    self.network.weather.dropped_namespace = Some(groups[place]);
                }
            }
            _ => {
                self.faults.count(Fault::Clog);
                self.faults.count(Fault::Reorder);
                let until = self.now + self.mishaps.random.random_range(20_000..300_000);
                weather.clogged.insert((first, second), until);
            }
        }
    }

    fn hurt_disk(&mut self) {
        let index = self.pick();
        let lies = self.plan.unlimited || self.plan.liars.contains(&index);
        let kind = self.mishaps.random.random_range(0..8);
        let disk = self.nodes[usize::from(index)].disk.clone();
        let suffix = LIES[self.mishaps.random.random_range(0..LIES.len())];
        match kind {
            0 => {
                self.faults.count(Fault::FailedSync);
                disk.fail_next_sync(1);
            }
            1 => {
                self.faults.count(Fault::FailedWrite);
                disk.fail_next_writes(1);
            }
            2 => {
                self.faults.count(Fault::FullDisk);
                disk.fill_after(Some(self.mishaps.random.random_range(0..4_000)));
            }
            3 => {
                self.faults.count(Fault::SlowDisk);
                self.nodes[usize::from(index)].slowness = self.mishaps.random.random_range(2..30);
                return;
            }
            // What lands elsewhere or nowhere shows at the next start as long as the journal names it, and later not.
            4 if self.plan.unlimited => {
                self.faults.count(Fault::LostWrite);
                disk.lose_next_writes(suffix, 1);
            }
            5 if self.plan.unlimited => {
                self.faults.count(Fault::MisdirectedWrite);
                disk.misdirect_next_writes(suffix, 1);
            }
            6 | 7 if lies => {
                let paths = disk.paths();
                if paths.is_empty() {
                    return;
                }
                let path = &paths[self.mishaps.random.random_range(0..paths.len())];
                if kind == 6 {
                    self.faults.count(Fault::BitFlip);
                    let offset = self.mishaps.random.random_range(0..2_000);
                    disk.flip_bit(path, offset, self.mishaps.random.random_range(0..8));
                } else if is_segment(path) {
                    self.faults.count(Fault::UnreadableFile);
                    disk.make_unreadable(path);
                }
            }
            _ => return,
        }
        self.nodes[usize::from(index)].lied |= kind >= 4;
        self.wrote_elsewhere |= matches!(kind, 4 | 5);
        if !self.mishaps.hurt.contains(&index) {
            self.mishaps.hurt.push(index);
        }
        // Somebody looks after it.
        let pause = self.mishaps.random.random_range(100_000..900_000);
        self.schedule(self.now + pause, Event::Start(index));
    }

    fn pause(&mut self) {
        let node = self.pick();
        self.faults.count(Fault::Pause);
        self.nodes[usize::from(node)].paused_until = self.now + self.mishaps.random.random_range(10_000..800_000);
    }

    fn disturb_clock(&mut self) {
        let index = self.pick();
        let node = &mut self.nodes[usize::from(index)];
        match self.mishaps.random.random_range(0..3) {
            0 => {
                self.faults.count(Fault::WallJump);
                node.skew += self.mishaps.random.random_range(-5_000_000..5_000_000);
            }
            1 => {
                self.faults.count(Fault::WallSkew);
                node.skew = self.mishaps.random.random_range(-60_000_000..60_000_000);
            }
            _ => {
                // Only ever faster: a clock that goes back is another fault, and none of a monotonic one.
                self.faults.count(Fault::Drift);
                node.drift = node.drift.max(self.mishaps.random.random_range(0..50_000));
            }
        }
    }

    /// What operators and the balance of leaders do.
    fn operate(&mut self) -> Result<(), String> {
        let index = self.pick();
        let keys: Vec<PartitionKey> = self.nodes[usize::from(index)]
            .process
            .iter()
            .flat_map(|process| process.shard.partitions().map(PartitionGroup::key))
            .collect();
        if keys.is_empty() {
            return Ok(());
        }
        let key = keys[self.mishaps.random.random_range(0..keys.len())];
        match self.mishaps.random.random_range(0..6) {
            0 | 1 => {
                self.faults.count(Fault::HandOver);
                let to = self.pick();
                let of_metadata = self.mishaps.random.random_ratio(1, 4);
                for node in 0..self.plan.members {
                    let now = self.nodes[usize::from(node)].now(self.now);
                    if let Some(process) = &mut self.nodes[usize::from(node)].process {
                        let of = Some(&key).filter(|_| !of_metadata);
                        process.shard.instruct(now, of, Input::HandOver { to });
                    }
                    self.settle(node)?;
                }
                Ok(())
            }
            2 => {
                self.faults.count(Fault::Retention);
                let now = self.nodes[usize::from(index)].now(self.now);
                if let Some(process) = &mut self.nodes[usize::from(index)].process {
                    process.shard.retain(now);
                }
                self.settle(index)
            }
            3 => {
                self.faults.count(Fault::OwnerChange);
                self.mishaps.generation += 1;
                let generation = self.mishaps.generation;
                let member = Member { client: 1, session: 9 };
                let order = Order::InstallOwner {
                    key,
                    group: 3,
                    generation,
                    member: Some(member),
                };
                let now = self.nodes[usize::from(index)].now(self.now);
                let disk = self.nodes[usize::from(index)].disk.clone();
                if let Some(process) = &mut self.nodes[usize::from(index)].process {
                    process.shard.order(now, order, &disk);
                }
                self.settle(index)
            }
            _ => {
                let place = self.mishaps.random.random_range(0..self.plan.topics.len());
                let wanted = topic_name(place);
                let topic = self.leading_metadata().and_then(|(_, state)| {
                    let stream = state.streams().next()?;
                    let topic = stream.topics.values().find(|topic| topic.name.to_string() == wanted)?;
                    Some(topic.key(stream.id))
                });
                if topic.is_some() && self.desk.unwanted.is_none() && self.mishaps.random.random_ratio(1, 3) {
                    self.faults.count(Fault::TopicDeleted);
                    self.faults.count(Fault::TopicRecreated);
                    self.desk.unwanted = topic;
                }
                Ok(())
            }
        }
    }

    /// Takes every fault away that can be taken away, and starts whoever is down and not meant to stay so.
    pub(crate) fn heal(&mut self, dead: &[u8]) -> Result<(), String> {
        self.chaos = false;
        self.network.heal();
        for index in 0..self.plan.members {
            let node = &mut self.nodes[usize::from(index)];
            node.paused_until = self.now;
            node.slowness = 1;
            node.is_dead = dead.contains(&index);
            node.disk.heal();
            let is_dead = node.is_dead;
            let fenced = self.has_fenced(index);
            if is_dead {
                self.crash(index, false, false)?;
            } else if fenced {
                // A disk that failed is mended and its node started again.
                self.crash(index, false, true)?;
            } else {
                self.schedule(self.now + 1_000, Event::Start(index));
            }
        }
        Ok(())
    }

    fn has_fenced(&self, index: u8) -> bool {
        let Some(process) = &self.nodes[usize::from(index)].process else {
            return false;
        };
        let partitions = process.shard.partitions().any(|group| group.fenced().is_some());
        let metadata = process.shard.metadata().and_then(|group| group.replica().fenced());
        partitions || metadata.is_some() || self.nodes[usize::from(index)].refused > 0 || self.mishaps.is_hurt(index)
    }
}

/// Runs a stopping shard until its disk has nothing left to do.
fn drain(shard: &mut Shard<PacedStorage>, storage: &PacedStorage, now: iggy_consensus::Now) {
    for _ in 0..2_000 {
        if !storage.run_one() {
            break;
        }
        shard.complete(now);
    }
}
