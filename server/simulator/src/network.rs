//! Packets: how long they take, and what happens to them on the way (simulator N1 to N16).

use crate::faults::{Fault, Faults};
use crate::plan::{PacketFaults, Plan, stream};
use bytes::Bytes;
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::time::Duration;

/// Old packets that may come again.
const REPLAYS_MAX: usize = 64;
/// Bytes on one way at once; what goes beyond is lost, as from a full buffer.
const WAY_BYTES_MAX: usize = 256 << 10;

/// A packet that will arrive.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When.
    pub at: u64,
    /// Where.
    pub to: u8,
    /// What.
    pub bytes: Bytes,
}

/// What is cut or dropped on purpose.
#[derive(Clone, Debug, Default)]
pub struct Weather {
    /// Ways on which nothing passes, from and to.
    pub cut: Vec<(u8, u8)>,
    /// Ways on which everything waits until then.
    pub clogged: BTreeMap<(u8, u8), u64>,
    /// A kind of message that is dropped.
    pub dropped_kind: Option<&'static str>,
    /// A group of which nothing passes.
    pub dropped_namespace: Option<u64>,
    /// A way that is cut and mended every so many microseconds.
    pub flapping: Option<(u8, u8, u64)>,
}

/// The network.
pub struct Network {
    random: StdRng,
    members: u8,
    delay: u64,
    faults: PacketFaults,
    /// What is cut now.
    pub weather: Weather,
    old: Vec<(u8, Bytes)>,
    on_way: BTreeMap<(u8, u8), (u64, usize)>,
}

impl Network {
    /// The network of a run.
    pub fn new(plan: &Plan) -> Self {
        Self {
            random: stream(plan.seed, "network"),
            members: plan.members,
            delay: plan.delay,
            faults: plan.packets.clone(),
            weather: Weather::default(),
            old: Vec::new(),
            on_way: BTreeMap::new(),
        }
    }

    /// From now on every packet arrives, once and whole.
    pub fn heal(&mut self) {
        self.faults = PacketFaults::default();
        self.weather = Weather::default();
        self.old.clear();
    }

    fn strikes(&mut self, rate: u32) -> bool {
        rate > 0 && self.random.random_ratio(rate, 10_000)
    }

    /// When a packet between two places without faults would arrive.
    pub fn delay(&mut self) -> u64 {
        // Exponential, with a least time.
        let unit: f64 = self.random.random_range(0.000_1..1.0);
        let mean = Duration::from_micros(self.delay);
        50 + mean.mul_f64(-unit.ln()).as_micros() as u64
    }

    /// Sends a packet; what arrives of it comes out.
    #[allow(clippy::too_many_arguments)] // The facts of one packet.
    pub fn send(
        &mut self,
        now: u64,
        from: u8,
        to: u8,
        kind: &'static str,
        namespace: Option<u64>,
        bytes: Bytes,
        counts: &mut Faults,
    ) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        let way = (from, to);
        if self.weather.cut.contains(&way) {
            return arrivals;
        }
        if let Some((a, b, period)) = self.weather.flapping
            && way == (a, b)
            && (now / period).is_multiple_of(2)
        {
            counts.count(Fault::FlappingLink);
            return arrivals;
        }
        if self.weather.dropped_kind == Some(kind) {
            counts.count(Fault::DropByType);
            return arrivals;
        }
        if namespace.is_some() && self.weather.dropped_namespace == namespace {
            counts.count(Fault::DropByGroup);
            return arrivals;
        }
        let (until, load) = self.on_way.entry(way).or_default();
        if *until <= now {
            (*until, *load) = (now + 10_000, 0);
        }
        *load += bytes.len();
        if *load > WAY_BYTES_MAX {
            counts.count(Fault::Backpressure);
            return arrivals;
        }
        if self.strikes(self.faults.loss) {
            counts.count(Fault::Loss);
            return arrivals;
        }
        if self.strikes(self.faults.replay) && self.old.len() < REPLAYS_MAX {
            self.old.push((to, bytes.clone()));
        }
        let mut at = now + self.delay();
        if self.strikes(self.faults.spike) {
            counts.count(Fault::DelaySpike);
            at += self.random.random_range(20_000..400_000);
        }
        if let Some(clogged) = self.weather.clogged.get(&way) {
            at = at.max(*clogged);
        }
        let bytes = self.damaged(bytes, counts);
        if self.strikes(self.faults.duplicate) {
            counts.count(Fault::Duplicate);
            let later = at + self.delay();
            arrivals.push(Arrival {
                at: later,
                to,
                bytes: bytes.clone(),
            });
        }
        if self.strikes(self.faults.misroute) {
            counts.count(Fault::Misroute);
            let other = self.random.random_range(0..self.members);
            arrivals.push(Arrival {
                at,
                to: other,
                bytes: bytes.clone(),
            });
        }
        arrivals.push(Arrival { at, to, bytes });
        if !self.old.is_empty() && self.strikes(200) {
            let place = self.random.random_range(0..self.old.len());
            let (to, bytes) = self.old[place].clone();
            counts.count(Fault::OldReplay);
            let at = now + self.delay();
            arrivals.push(Arrival { at, to, bytes });
        }
        arrivals
    }

    fn damaged(&mut self, bytes: Bytes, counts: &mut Faults) -> Bytes {
        if self.strikes(self.faults.corrupt) && !bytes.is_empty() {
            counts.count(Fault::Corruption);
            let mut changed = bytes.to_vec();
            let place = self.random.random_range(0..changed.len());
            changed[place] ^= 1 << self.random.random_range(0..8);
            return Bytes::from(changed);
        }
        if self.strikes(self.faults.truncate) && !bytes.is_empty() {
            counts.count(Fault::Truncation);
            let length = self.random.random_range(0..bytes.len());
            return bytes.slice(..length);
        }
        bytes
    }
}
