//! The workloads that a node is judged by, one after the other, in one table.

use crate::report::{Floor, Report};
use crate::workload::{self, Workload};
use anyhow::Context;
use clap::Parser;
use comfy_table::{CellAlignment, Table};
use std::path::PathBuf;

/// What is run, and how many GB of payload it moves at scale 1.
const ROWS: [(&str, &str, f64); 9] = [
    ("20 producers", "pp -p 20", 8.0),
    ("20 consumers", "pc -c 20", 8.0),
    ("1 producer", "pp -p 1", 2.0),
    ("1 consumer", "pc -c 1", 2.0),
    ("20 producers at 100 MB/s", "pp -p 20 -r 100MB", 1.0),
    ("20 producers, persisted", "pp -p 20 --durability persisted", 4.0),
    ("20 producers, 100 bytes, 100 a batch", "pp -p 20 -m 100 -P 100", 0.5),
    ("10 producers and 10 consumers", "ppc -p 10 -c 10", 4.0),
    ("10 actors that send and read", "e2e -p 10", 2.0),
];

/// Options of the suite.
#[derive(clap::Args)]
pub struct Arguments {
    /// Amount of data: 1 moves between 0.5 and 8 GB per row, 0.01 to 100
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    scale: f64,

    /// Folder for the files of the floor; take one on the server's disk
    #[arg(long, default_value = ".")]
    floor_directory: PathBuf,

    /// Only rows whose names contain this
    #[arg(long, default_value = "")]
    only: String,
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: Result<f64, _> = text.parse();
    scale
        .ok()
        .filter(|scale| (0.01..=100.0).contains(scale))
        .ok_or_else(|| "a number from 0.01 to 100 is wanted".to_owned())
}

/// A workload as it is written on the command line.
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    workload: Workload,
}

/// Measures and prints, each row as soon as it is there.
pub async fn run(connection_string: &str, arguments: &Arguments, json: bool) -> anyhow::Result<()> {
    let mut reports = Vec::new();
    for (name, line, gigabytes) in ROWS {
        if !name.contains(&arguments.only) {
            continue;
        }
        let megabytes = (gigabytes * arguments.scale * 1000.0).ceil();
        let line = format!("iggy-bench {line} --total-data {megabytes}MB --floor-directory");
        let folder = arguments.floor_directory.as_os_str();
        let words = line.split(' ').map(Into::into).chain([folder.to_owned()]);
        let workload = Line::try_parse_from(words)?.workload;
        let report = workload::run(connection_string, &workload)
            .await
            .with_context(|| name.to_owned())?;
        reports.push((name, report));
    }
    anyhow::ensure!(!reports.is_empty(), "no row is named like that");
    if json {
        let named: Vec<_> = reports
            .iter()
            .map(|(name, report)| serde_json::json!({ "name": name, "ratio": report.ratio(), "report": report }))
            .collect();
        println!("{}", serde_json::to_string_pretty(&named)?);
    } else {
        println!("{}", table(&reports));
    }
    Ok(())
}

fn table(reports: &[(&str, Report)]) -> Table {
    let mut table = Table::new();
    table.set_header([
        "",
        "MB/s",
        "floor MB/s",
        "ratio",
        "p50 ms",
        "p99 ms",
        "floor p99 ms",
        "server s/GB",
        "noise",
    ]);
    for (name, report) in reports {
        let p50 = report.sides().map(|(_, side)| side.averaged.p50).fold(0.0, f64::max);
        let floor = report.floor.as_ref();
        let number = |digits: usize, value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.digits$}"));
        let cpu = report.server.map(|server| server.cpu_seconds / report.gigabytes());
        table.add_row([
            (*name).to_owned(),
            format!("{:.0}", report.megabytes_per_second()),
            number(0, floor.map(Floor::megabytes_per_second)),
            number(2, report.ratio()),
            format!("{p50:.2}"),
            format!("{:.2}", report.p99()),
            number(2, floor.map(Floor::p99)),
            number(2, cpu),
            number(2, floor.map(Floor::noise)),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
