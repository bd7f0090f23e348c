//! Runs seeds, and prints the line that reproduces a failure.

use clap::{Parser, ValueEnum};
use iggy_simulator::bugs::Bug;
use iggy_simulator::{Faults, Mode, Report, run};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Runs after which every kind of fault must have been injected.
const RUNS_WITH_EVERY_FAULT: u64 = 2_000;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Wanted {
    Safety,
    Liveness,
    Unlimited,
}

impl From<Wanted> for Mode {
    fn from(wanted: Wanted) -> Self {
        match wanted {
            Wanted::Safety => Self::Safety,
            Wanted::Liveness => Self::Liveness,
            Wanted::Unlimited => Self::Unlimited,
        }
    }
}

/// Runs whole clusters on simulated networks, disks and clocks.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seed of the first run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs, with seeds that follow one another.
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Mode of every run; without it the seed decides.
    #[arg(long)]
    mode: Option<Wanted>,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Prints every event.
    #[arg(long)]
    trace: bool,
    /// Plants a fault in the code, by number from 1: every run is expected to go on until one finds it.
    #[arg(long)]
    bug: Option<usize>,
    /// Goes on after a failure.
    #[arg(long)]
    keep_going: bool,
    /// Lists the faults that can be planted.
    #[arg(long)]
    list_bugs: bool,
}

#[derive(Default)]
struct Sum {
    runs: u64,
    faults: Faults,
    events: u64,
    commits: u64,
    acknowledged: u64,
    view_changes: u64,
    state_transfers: u64,
    batches_kept: u64,
    histories: u64,
    beyond_help: u64,
    failures: u64,
}

impl Sum {
    fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.faults.add(&report.faults);
        self.events += report.events;
        self.commits += report.commits;
        self.acknowledged += report.acknowledged;
        self.view_changes += report.view_changes;
        self.state_transfers += report.state_transfers;
        self.batches_kept += report.batches_kept;
        self.histories += report.histories;
        self.beyond_help += u64::from(report.is_beyond_help);
        self.failures += u64::from(report.failure.is_some());
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list_bugs {
        for (index, bug) in Bug::all().iter().enumerate() {
            println!("{:>2} {bug:?}", index + 1);
        }
        return ExitCode::SUCCESS;
    }
    let bug = match arguments.bug {
        None => None,
        Some(number) => {
            let found = Bug::numbered(number);
            if found.is_none() {
                eprintln!("there is no bug {number}; 1 to {} are there", Bug::all().len());
                return ExitCode::FAILURE;
            }
            found
        }
    };
    let begun = Instant::now();
    let sum = run_all(&arguments, bug);
    report(&arguments, bug, &sum, begun.elapsed().as_secs_f64())
}

fn run_all(arguments: &Arguments, bug: Option<Bug>) -> Sum {
    let next = AtomicU64::new(arguments.seed);
    let end = arguments.seed + arguments.runs;
    let stop = AtomicBool::new(false);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let mode = arguments.mode.map_or_else(|| Mode::of(seed), Mode::from);
                    let report = run(seed, mode, bug, arguments.trace);
                    if let Some(failure) = &report.failure {
                        say(failure, &report, arguments);
                        stop.fetch_or(!arguments.keep_going, Ordering::Relaxed);
                    }
                    sum.lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .add(&report);
                }
            });
        }
    });
    sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Prints a failure as soon as it is there, with the line that reproduces it.
fn say(failure: &str, report: &Report, arguments: &Arguments) {
    let plants = arguments.bug.map_or(String::new(), |number| format!(" --bug {number}"));
    println!(
        "FAILED: {failure}\n  cargo run -p iggy-simulator -- --seed {} --mode {}{plants}",
        report.seed,
        report.mode.name()
    );
}

fn report(arguments: &Arguments, bug: Option<Bug>, sum: &Sum, seconds: f64) -> ExitCode {
    println!(
        "{} runs in {seconds:.1} s, {:.2} seeds/s, {} events, {} commits, {} acknowledged, {} view changes, \
         {} state transfers with {} batches that were there, {} new histories, {} beyond help",
        sum.runs,
        f64::from(u32::try_from(sum.runs).unwrap_or(u32::MAX)) / seconds,
        sum.events,
        sum.commits,
        sum.acknowledged,
        sum.view_changes,
        sum.state_transfers,
        sum.batches_kept,
        sum.histories,
        sum.beyond_help
    );
    let kinds: Vec<String> = sum
        .faults
        .all()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    println!("faults: {}", kinds.join(", "));
    let never: Vec<&str> = sum
        .faults
        .all()
        .filter(|(_, count)| *count == 0)
        .map(|(name, _)| name)
        .collect();
    let is_complete = bug.is_some() || arguments.mode.is_some() || sum.runs < RUNS_WITH_EVERY_FAULT || never.is_empty();
    if !is_complete {
        println!("FAILED: {} runs without a single {}", sum.runs, never.join(", "));
    }
    match (bug, sum.failures == 0) {
        (None, true) if is_complete => ExitCode::SUCCESS,
        (Some(_), false) => ExitCode::SUCCESS,
        (None, _) => ExitCode::FAILURE,
        (Some(bug), true) => {
            println!("NOT FOUND: {bug:?}");
            ExitCode::FAILURE
        }
    }
}
