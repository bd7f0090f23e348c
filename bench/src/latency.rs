//! Latencies of many requests.

use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::time::Duration;

/// What a run of requests took.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// What was measured.
    pub name: String,
    /// Requests.
    pub requests: usize,
    /// Half of the requests took at most this, in microseconds.
    pub median_us: f64,
    /// 99 of 100 requests took at most this, in microseconds.
    pub p99_us: f64,
    /// The slowest request, in microseconds.
    pub max_us: f64,
}

impl Latency {
    /// Sums up `samples`, which must not be empty.
    pub fn of(name: impl Into<String>, mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at = |per_thousand: usize| {
            let index = ((samples.len() - 1) * per_thousand).div_ceil(1000);
            samples[index].as_secs_f64() * 1e6
        };
        let (median_us, p99_us, max_us) = (at(500), at(990), at(1000));
        Self {
            name: name.into(),
            requests: samples.len(),
            median_us,
            p99_us,
            max_us,
        }
    }
}

/// Prints rows, for people or as JSON.
pub fn print(rows: &[Latency], json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(rows)?);
        return Ok(());
    }
    let mut table = Table::new();
    table.set_header(["", "requests", "median us", "p99 us", "max us"]);
    for row in rows {
        table.add_row([
            row.name.clone(),
            row.requests.to_string(),
            format!("{:.0}", row.median_us),
            format!("{:.0}", row.p99_us),
            format!("{:.0}", row.max_us),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}
