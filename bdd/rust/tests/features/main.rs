//! Runs every scenario of `bdd/features` with the Rust client against one node that the run starts and stops.
//!
//! `cargo test -p iggy-bdd` runs all, with `IGGY_BDD_FEATURE=reader` only `reader.feature`; `-- --name 'pattern'` some.

// Steps own what they take from a text.
#![allow(clippy::needless_pass_by_value)]

mod steps;
mod values;
mod world;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use cucumber::World as _;
use cucumber::event::ScenarioFinished;
use cucumber::writer::Stats as _;
use futures::FutureExt;
use world::{BddWorld, Node};

/// Notes how a scenario ended, for the table of scenarios and languages.
fn note(feature: &str, scenario: &str, ended: &ScenarioFinished) {
    let Ok(path) = std::env::var("IGGY_BDD_RESULTS") else {
        return;
    };
    let outcome = if matches!(ended, ScenarioFinished::StepPassed) {
        "passed"
    } else {
        "failed"
    };
    let mut results = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(results, "{feature}\t{scenario}\t{outcome}").unwrap();
}

#[tokio::main]
async fn main() {
    if let Ok(path) = std::env::var("IGGY_BDD_RESULTS") {
        std::fs::write(path, "").unwrap();
    }
    let mut features = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../features"));
    if let Some(feature) = std::env::var("IGGY_BDD_FEATURE").ok().filter(|name| !name.is_empty()) {
        features.push(format!("{feature}.feature"));
        assert!(features.is_file(), "there is no {}", features.display());
    }
    Node::start().await;
    let outcome = BddWorld::cucumber()
        // One node serves all scenarios, and some of them restart it.
        .max_concurrent_scenarios(1)
        // A log of hundreds of scenarios ends with what went wrong.
        .repeat_failed()
        .fail_on_skipped()
        .after(|feature, _, scenario, ended, world| {
            note(&feature.name, &scenario.name, ended);
            async move { world.expect("a world").finish().await }.boxed_local()
        })
        .run(features)
        .await;
    Node::stop().await;
    let failed = outcome.execution_has_failed();
    if failed || outcome.passed_steps() == 0 {
        std::process::exit(1);
    }
}
