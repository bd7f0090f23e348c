//! Two servers in turn under the same workload: the ratio of each pair, and how far they scatter.

use crate::report::Report;
use crate::workload::{self, Workload};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

/// Options of a comparison.
#[derive(clap::Args)]
pub struct Arguments {
    /// The other server, with credentials; the first one is that of --connection-string
    #[arg(long)]
    other: String,

    /// Pairs of runs, 1 to 100
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    #[command(subcommand)]
    workload: Workload,
}

/// One pair of runs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Pair {
    /// Millions of bytes per second.
    first: f64,
    /// The same of the other server.
    other: f64,
    /// Throughput of the other over that of the first.
    throughput_ratio: f64,
    /// 99th percentile of the other over that of the first.
    p99_ratio: f64,
}

/// All pairs.
#[derive(Debug, Serialize)]
struct Comparison {
    pairs: Vec<Pair>,
    throughput_ratio: Spread,
    p99_ratio: Spread,
    /// Largest over smallest throughput of the first server with itself: what chance alone does here.
    noise: f64,
}

/// Values that were measured several times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    /// Of at least one value.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Self {
            min: values[0],
            median,
            max: values[values.len() - 1],
        }
    }
}

/// Measures and prints.
pub async fn run(connection_string: &str, arguments: &Arguments, json: bool) -> anyhow::Result<()> {
    let mut pairs = Vec::new();
    for round in 0..arguments.rounds {
        // Who begins changes, so that a machine that grows slower favours nobody.
        let servers = [connection_string, arguments.other.as_str()];
        let first_begins = round % 2 == 0;
        let order = if first_begins { [0, 1] } else { [1, 0] };
        let mut measured = [None, None];
        for server in order {
            measured[server] = Some(workload::run(servers[server], &arguments.workload).await?);
        }
        if let [Some(first), Some(other)] = measured {
            pairs.push(Pair::of(&first, &other));
        }
    }
    let first = Spread::of(pairs.iter().map(|pair| pair.first));
    let comparison = Comparison {
        throughput_ratio: Spread::of(pairs.iter().map(|pair| pair.throughput_ratio)),
        p99_ratio: Spread::of(pairs.iter().map(|pair| pair.p99_ratio)),
        noise: first.max / first.min.max(1e-9),
        pairs,
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&comparison)?);
    } else {
        print(&comparison);
    }
    Ok(())
}

impl Pair {
    fn of(first: &Report, other: &Report) -> Self {
        let throughput = [first, other].map(Report::megabytes_per_second);
        let p99 = [first, other].map(Report::p99);
        Self {
            first: throughput[0],
            other: throughput[1],
            throughput_ratio: throughput[1] / throughput[0].max(1e-9),
            p99_ratio: p99[1] / p99[0].max(1e-9),
        }
    }
}

fn print(comparison: &Comparison) {
    let mut table = Table::new();
    table.set_header(["pair", "MB/s", "other MB/s", "throughput ratio", "p99 ratio"]);
    for (index, pair) in comparison.pairs.iter().enumerate() {
        table.add_row([
            (index + 1).to_string(),
            format!("{:.1}", pair.first),
            format!("{:.1}", pair.other),
            format!("{:.3}", pair.throughput_ratio),
            format!("{:.3}", pair.p99_ratio),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    for (name, spread) in [
        ("throughput", comparison.throughput_ratio),
        ("p99", comparison.p99_ratio),
    ] {
        let Spread { min, median, max } = spread;
        println!("{name}: {median:.3} of the first server's, {min:.3} to {max:.3}");
    }
    println!(
        "The first server differs from itself by a factor of {:.2} in throughput.",
        comparison.noise
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_values_when_spread_should_find_the_middle() {
        let spread = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.0, 3.0));
        let even = Spread::of([1.0, 2.0].into_iter());
        assert!((even.median - 1.5).abs() < 1e-9);
    }
}
