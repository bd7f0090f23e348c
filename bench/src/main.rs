//! Measures a running server beside the floor of the same machine.
//!
//! Shared machines have no absolute speed: every row has a floor measured in the same run with the same bytes, the same
//! number of connections and of outstanding requests, and is judged by its ratio to it. The server must be running; a
//! bench never starts one.

mod compare;
mod end_to_end;
mod floor;
mod idle_consumers;
mod latency;
mod process;
mod report;
mod round_trips;
mod small_requests;
mod suite;
mod workload;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use workload::Workload;

#[derive(Parser)]
#[command(
    name = "iggy-bench",
    version,
    about = "Measures a running server beside the floor of the same machine."
)]
struct Arguments {
    /// Server, with credentials
    #[arg(long, global = true, default_value = "iggy://iggy:iggy@127.0.0.1:8090")]
    connection_string: String,

    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    #[command(flatten)]
    Workload(Workload),

    /// Two servers in turn under the same workload
    Compare(compare::Arguments),

    /// The workloads that a node is judged by, in one table
    Suite(suite::Arguments),

    /// One connection, one request at a time: what a small send costs beside a bare round trip
    SmallRequests(small_requests::Arguments),

    /// One producer and one consumer that waits: how long a message takes, beside a bare round trip
    Latency(end_to_end::Arguments),

    /// Many consumers on a node to which nothing comes: requests per wait and processor time
    IdleConsumers(idle_consumers::Arguments),

    /// The other process of a round trip
    #[command(hide = true)]
    Echo(round_trips::EchoArguments),

    /// The other process of a floor
    #[command(hide = true)]
    FloorReceiver(floor::ReceiverArguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.kind {
        Kind::Echo(own) => round_trips::echo(own),
        Kind::FloorReceiver(own) => floor::receive(own),
        _ => measure(arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("iggy-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures in a task, as applications run: the thread that starts a runtime is none of its workers and is woken by one.
fn measure(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async { tokio::spawn(run(arguments)).await? })
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match &arguments.kind {
        Kind::Workload(workload) => {
            let report = workload::run(&arguments.connection_string, workload).await?;
            report.publish(arguments.json)
        }
        Kind::Compare(own) => compare::run(&arguments.connection_string, own, arguments.json).await,
        Kind::Suite(own) => suite::run(&arguments.connection_string, own, arguments.json).await,
        Kind::SmallRequests(own) => small_requests::run(&arguments.connection_string, own, arguments.json).await,
        Kind::Latency(own) => end_to_end::run(&arguments.connection_string, own, arguments.json).await,
        Kind::IdleConsumers(own) => idle_consumers::run(&arguments.connection_string, own, arguments.json).await,
        Kind::Echo(own) => round_trips::echo(own),
        Kind::FloorReceiver(own) => floor::receive(own),
    }
}
