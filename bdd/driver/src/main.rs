//! `iggy-bdd-driver -- AGENT ARGUMENTS...` runs every scenario; `scripts/bdd` is how to start it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use iggy_bdd_driver::features;
use iggy_bdd_driver::node::TestNode;
use iggy_bdd_driver::patterns::Matchers;
use iggy_bdd_driver::run::Runner;
use iggy_bdd_driver::steps::STEPS;

/// Runs the scenarios of bdd/features through an agent.
#[derive(Parser)]
struct Arguments {
    /// The folder of the feature files.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../features"))]
    features: PathBuf,
    /// Only this file, named without its ending.
    #[arg(long)]
    feature: Option<String>,
    /// Only scenarios whose names contain this.
    #[arg(long)]
    name: Option<String>,
    /// Seconds that the agent has for each answer, 1 to 3600.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    deadline: u64,
    /// Prints every step as one line of JSON and does nothing else.
    #[arg(long)]
    steps: bool,
    /// The agent and its arguments.
    #[arg(last = true, required_unless_present = "steps")]
    agent: Vec<String>,
}

fn run(arguments: &Arguments) -> Result<bool> {
    let matchers = Matchers::new(STEPS)?;
    let mut out = std::io::stdout().lock();
    if arguments.steps {
        for matcher in matchers.iter() {
            writeln!(out, "{}", matcher.described())?;
        }
        return Ok(true);
    }
    let mut runs = features::read(&arguments.features, arguments.feature.as_deref())?;
    if let Some(name) = &arguments.name {
        runs.retain(|run| run.scenario.contains(name));
    }
    // What waits for the clock of the node runs only where that is wanted.
    if std::env::var_os("IGGY_BDD_SLOW").is_none() {
        runs.retain(|run| !run.tags.iter().any(|tag| tag == "slow"));
    }
    ensure!(!runs.is_empty(), "no scenario is named like that");
    let folder = match std::env::var_os("IGGY_PROGRAMS") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::current_exe()?.parent().context("a folder")?.to_owned(),
    };
    let mut node = TestNode::start(&folder.join("iggy-test-node"))?;
    let mut runner = Runner {
        command: &arguments.agent,
        deadline: Duration::from_secs(arguments.deadline),
        matchers: &matchers,
        results: std::env::var_os("IGGY_BDD_RESULTS").map(PathBuf::from),
        out: &mut out,
    };
    Ok(runner.run(&runs, &mut node)?.succeeded())
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
