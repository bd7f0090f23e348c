//! A report as a table.

use super::{Report, Summary};
use comfy_table::{CellAlignment, Table};
use std::fmt::Write;

/// Rows for those who sent, those who read, and their floor, then what else is known.
pub fn of(report: &Report) -> String {
    let mut table = Table::new();
    table.set_header([
        report.workload,
        "actors",
        "MB/s",
        "messages/s",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "p999 ms",
        "p9999 ms",
        "max ms",
    ]);
    for (name, side) in report.sides() {
        row(&mut table, name, side, false);
        row(&mut table, &format!("{name}, pooled"), side, true);
    }
    if let Some(floor) = &report.floor {
        for (when, sides) in [("before", &floor.before), ("after", &floor.after)] {
            for side in sides.iter().flatten() {
                row(&mut table, &format!("floor {when}"), side, false);
            }
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("{table}\nLatencies are each actor's, averaged over the actors, unless pooled.\n");
    if let (Some(ratio), Some(floor)) = (report.ratio(), &report.floor) {
        let noise = floor.noise();
        let _ = writeln!(
            text,
            "{ratio:.2} of the floor, whose two measurements differ by a factor of {noise:.2}; p99 is {:.1} times the floor's.",
            report.p99() / floor.p99().max(1e-9)
        );
    }
    if let Some(server) = report.server {
        let memory = server.memory_max_bytes >> 20;
        let _ = writeln!(
            text,
            "The server used {:.2} s of processor time for each GB and had at most {memory} MiB in use.",
            server.cpu_seconds / report.gigabytes().max(1e-9)
        );
    }
    text.truncate(text.trim_end().len());
    text
}

fn row(table: &mut Table, name: &str, side: &Summary, pooled: bool) {
    let latency = if pooled { side.pooled } else { side.averaged };
    let throughput = [
        side.actors.to_string(),
        format!("{:.1}", side.megabytes_per_second),
        format!("{:.0}", side.messages_per_second),
    ];
    let throughput = if pooled { Default::default() } else { throughput };
    let latencies = [
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p999,
        latency.p9999,
        latency.max,
    ];
    let latencies = latencies.map(|value| format!("{value:.3}"));
    table.add_row([name.to_owned()].into_iter().chain(throughput).chain(latencies));
}
