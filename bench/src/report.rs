//! What a workload measured, for people, for machines, and as a page.

mod page;
mod table;

use crate::process::Usage;
use crate::workload::{Options, POINT, Record, histogram};
use anyhow::Context;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// A workload and its floor.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the workload.
    pub workload: &'static str,
    /// What it was told.
    pub options: Options,
    /// Those who sent.
    pub senders: Option<Summary>,
    /// Those who only read.
    pub readers: Option<Summary>,
    /// The same without a protocol.
    pub floor: Option<Floor>,
    /// What the server used; none when it runs elsewhere.
    pub server: Option<Server>,
}

/// What some actors measured.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// How many they are.
    pub actors: usize,
    /// Bytes of payload of all.
    pub bytes: u64,
    /// Messages of all.
    pub messages: u64,
    /// Time of the slowest.
    pub seconds: f64,
    /// Bytes over the time of the slowest, in millions per second.
    pub megabytes_per_second: f64,
    /// Messages over the time of the slowest.
    pub messages_per_second: f64,
    /// Percentiles of each actor, averaged over them.
    pub averaged: Percentiles,
    /// Percentiles of all batches together.
    pub pooled: Percentiles,
    /// Millions of bytes per second of all, in each half second since the beginning.
    pub curve: Vec<f64>,
}

/// Latencies of batches, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub p9999: f64,
    pub max: f64,
}

impl Percentiles {
    fn of(latencies: &Histogram<u64>) -> Self {
        let at = |quantile| millis(latencies.value_at_quantile(quantile));
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: millis(latencies.max()),
        }
    }

    fn merged(all: &[Self], merge: impl Fn(&mut dyn Iterator<Item = f64>) -> f64) -> Self {
        let of = |field: fn(&Self) -> f64| merge(&mut all.iter().map(field));
        Self {
            p50: of(|each| each.p50),
            p90: of(|each| each.p90),
            p95: of(|each| each.p95),
            p99: of(|each| each.p99),
            p999: of(|each| each.p999),
            p9999: of(|each| each.p9999),
            max: of(|each| each.max),
        }
    }

    fn averaged(all: &[Self]) -> Self {
        Self::merged(all, |values| {
            let (sum, count) = values.fold((0.0, 0.0_f64), |(sum, count), value| (sum + value, count + 1.0));
            sum / count.max(1.0)
        })
    }
}

fn millis(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e3
}

/// A count as a number with a fraction; what a bench counts stays far below where that loses digits.
#[allow(clippy::cast_precision_loss)]
const fn float(count: u64) -> f64 {
    count as f64
}

impl Summary {
    /// Sums records up; none when there are none.
    pub fn of(records: &[Record]) -> Option<Self> {
        let slowest = records.iter().map(|record| record.took).max()?;
        let mut all = histogram();
        let mut points: Vec<u64> = Vec::new();
        for record in records {
            all.add(&record.latencies).ok()?;
            points.resize(points.len().max(record.points.len()), 0);
            for (sum, bytes) in points.iter_mut().zip(&record.points) {
                *sum += bytes;
            }
        }
        let each: Vec<_> = records
            .iter()
            .map(|record| Percentiles::of(&record.latencies))
            .collect();
        let bytes = records.iter().map(|record| record.bytes).sum();
        let messages = records.iter().map(|record| record.messages).sum();
        let seconds = slowest.as_secs_f64().max(1e-9);
        Some(Self {
            actors: records.len(),
            bytes,
            messages,
            seconds,
            megabytes_per_second: float(bytes) / 1e6 / seconds,
            messages_per_second: float(messages) / seconds,
            averaged: Percentiles::averaged(&each),
            pooled: Percentiles::of(&all),
            curve: points
                .iter()
                .map(|bytes| float(*bytes) / 1e6 / POINT.as_secs_f64())
                .collect(),
        })
    }
}

/// Those who sent and those who only read.
pub type Sides = [Option<Summary>; 2];

/// The floor of a workload, measured before and after it.
#[derive(Clone, Debug, Serialize)]
pub struct Floor {
    /// Senders and readers before.
    pub before: Sides,
    /// Senders and readers after.
    pub after: Sides,
}

impl Floor {
    /// Of both measurements.
    pub fn of(before: Sides, after: Sides) -> Self {
        Self { before, after }
    }

    fn mean(&self, value: impl Fn(&Summary) -> f64) -> f64 {
        let of = |side: &Sides| side.iter().flatten().map(&value).sum::<f64>();
        f64::midpoint(of(&self.before), of(&self.after))
    }

    /// Millions of bytes per second of all connections, the mean of both measurements.
    pub fn megabytes_per_second(&self) -> f64 {
        self.mean(|summary| summary.megabytes_per_second)
    }

    /// 99th percentile of the slower side, the mean of both measurements, in milliseconds.
    pub fn p99(&self) -> f64 {
        f64::midpoint(p99(self.before.iter().flatten()), p99(self.after.iter().flatten()))
    }

    /// How far its two measurements lie apart: the larger over the smaller.
    pub fn noise(&self) -> f64 {
        let of = |side: &Sides| -> f64 { side.iter().flatten().map(|summary| summary.megabytes_per_second).sum() };
        let (before, after) = (of(&self.before), of(&self.after));
        before.max(after) / before.min(after).max(1e-9)
    }
}

/// 99th percentile of the slowest side, averaged over its actors, in milliseconds.
fn p99<'a>(sides: impl Iterator<Item = &'a Summary>) -> f64 {
    sides.map(|side| side.averaged.p99).fold(0.0, f64::max)
}

/// What the server used for the workload.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Server {
    /// Seconds of processor time, warm-up included.
    pub cpu_seconds: f64,
    /// Most memory that it ever had in use, in bytes.
    pub memory_max_bytes: u64,
}

impl Server {
    /// Of what it had used before and after.
    pub fn of(before: &Usage, after: &Usage) -> Self {
        Self {
            cpu_seconds: after.cpu.saturating_sub(before.cpu).as_secs_f64(),
            memory_max_bytes: after.memory_max,
        }
    }
}

impl Report {
    /// Senders and readers, those that there are.
    pub fn sides(&self) -> impl Iterator<Item = (&'static str, &Summary)> {
        let sides = [("senders", &self.senders), ("readers", &self.readers)];
        sides
            .into_iter()
            .filter_map(|(name, side)| Some((name, side.as_ref()?)))
    }

    /// Millions of bytes per second of all actors.
    pub fn megabytes_per_second(&self) -> f64 {
        self.sides().map(|(_, side)| side.megabytes_per_second).sum()
    }

    /// 99th percentile of the slower side, averaged over its actors, in milliseconds.
    pub fn p99(&self) -> f64 {
        p99(self.sides().map(|(_, side)| side))
    }

    /// Billions of bytes of payload that moved.
    pub fn gigabytes(&self) -> f64 {
        float(self.sides().map(|(_, side)| side.bytes).sum()) / 1e9
    }

    /// Throughput over that of the floor.
    pub fn ratio(&self) -> Option<f64> {
        let floor = self.floor.as_ref()?.megabytes_per_second();
        (floor > 0.0).then(|| self.megabytes_per_second() / floor)
    }

    /// Prints it, for people or as JSON, and writes its files where that is wanted.
    pub fn publish(&self, json: bool) -> anyhow::Result<()> {
        if json {
            println!("{}", serde_json::to_string_pretty(self)?);
        } else {
            println!("{}", table::of(self));
        }
        if let Some(folder) = &self.options.output {
            self.write(folder)
                .with_context(|| format!("writing to {}", folder.display()))?;
        }
        Ok(())
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("report.json"), serde_json::to_vec_pretty(self)?)?;
        std::fs::write(folder.join("report.html"), page::of(self)?)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(millis: u64, bytes: u64) -> Record {
        let mut latencies = histogram();
        latencies.record(millis * 1_000_000).unwrap();
        Record {
            took: Duration::from_millis(millis),
            latencies,
            bytes,
            messages: 10,
            points: vec![bytes],
        }
    }

    #[test]
    fn given_two_actors_when_summed_up_should_take_the_slowest_and_average_and_pool() {
        let summary = Summary::of(&[record(100, 1_000_000), record(300, 3_000_000)]).unwrap();
        assert!((summary.megabytes_per_second - 4.0 / 0.3).abs() < 0.1);
        assert!((summary.averaged.p99 - 200.0).abs() < 1.0, "the mean of both");
        assert!((summary.pooled.p99 - 300.0).abs() < 1.0, "the slowest batch of all");
        assert!((summary.curve[0] - 8.0).abs() < 0.1, "4 MB in half a second");
        assert!(Summary::of(&[]).is_none());
    }

    #[test]
    fn given_a_floor_when_measured_twice_should_average_and_tell_the_noise() {
        let side = |bytes| [Summary::of(&[record(100, bytes)]), None];
        let floor = Floor::of(side(1_000_000), side(2_000_000));
        assert!((floor.megabytes_per_second() - 15.0).abs() < 0.1);
        assert!((floor.noise() - 2.0).abs() < 0.01);
    }
}
