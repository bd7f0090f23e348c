//! Agents that answer well, badly, late and not at all, against a node that only takes notes.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use iggy_bdd_driver::features::{self, Run};
use iggy_bdd_driver::node::{Node, Order};
use iggy_bdd_driver::patterns::Matchers;
use iggy_bdd_driver::run::{Report, Runner};
use iggy_bdd_driver::steps::STEPS;

#[derive(Default)]
struct Noting(Vec<Order>);

impl Node for Noting {
    fn obey(&mut self, order: Order) -> Result<()> {
        self.0.push(order);
        Ok(())
    }

    fn ready(&mut self) -> Result<(String, String)> {
        Ok(("127.0.0.1:1".to_owned(), "/nowhere".to_owned()))
    }
}

fn runs(steps: &[&str]) -> Vec<Run> {
    let one = |name: &str| {
        let steps = steps.join("\n    Given ");
        format!("  Scenario: {name}\n    Given {steps}\n")
    };
    features::parse(&format!("Feature: F\n{}{}", one("first"), one("second")), "f.feature").unwrap()
}

struct Ended {
    report: Result<Report>,
    said: String,
    results: String,
    orders: Vec<Order>,
}

/// Runs two scenarios of these steps with a shell script as the agent: `$line` is what it was told.
fn run(steps: &[&str], script: &str, deadline: Duration) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("answer() {{ echo \"{{\\\"status\\\":\\\"$1\\\",\\\"message\\\":\\\"$2\\\"}}\"; }}\n{script}");
    let command = ["sh", "-c", &script, "agent"].map(str::to_owned);
    let marks = folder.path().join("mark").display().to_string();
    let command = [&command[..], &[marks]].concat();
    let matchers = Matchers::new(STEPS).unwrap();
    let (mut node, mut out) = (Noting::default(), Vec::new());
    let results = folder.path().join("results.tsv");
    let report = Runner {
        command: &command,
        deadline,
        matchers: &matchers,
        results: Some(results.clone()),
        out: &mut out,
    }
    .run(&runs(steps), &mut node);
    Ended {
        report,
        said: String::from_utf8(out).unwrap(),
        results: std::fs::read_to_string(Path::new(&results)).unwrap(),
        orders: node.0,
    }
}

const LONG: Duration = Duration::from_mins(1);
const EACH: &str = "while read -r line; do ";

#[test]
fn given_an_agent_that_passes_when_run_should_count_and_note_every_scenario() {
    let ended = run(&["a signed-in client"], &format!("{EACH} answer passed; done"), LONG);
    let report = ended.report.unwrap();
    assert!(report.succeeded());
    assert_eq!(ended.results, "F\tfirst\tpassed\nF\tsecond\tpassed\n");
    assert!(ended.said.ends_with("2 passed, 0 failed\n"));
}

#[test]
fn given_an_agent_that_fails_a_step_when_run_should_say_why_again_at_the_end_and_note_it() {
    let script = format!("{EACH} case $line in *ping*) answer failed 'no such luck';; *) answer passed;; esac; done");
    let ended = run(&["the node is pinged", "a signed-in client"], &script, LONG);
    assert!(!ended.report.unwrap().succeeded());
    assert_eq!(ended.results, "F\tfirst\tfailed\nF\tsecond\tfailed\n");
    let last: Vec<_> = ended.said.lines().rev().take(3).collect();
    assert_eq!(last[0], "0 passed, 2 failed");
    assert!(
        last[1].starts_with("failed: F / second") && last[1].contains("no such luck"),
        "{}",
        last[1]
    );
}

#[test]
fn given_an_agent_that_does_not_know_a_step_when_run_should_fail_it() {
    let script = format!("{EACH} case $line in *ping*) answer undefined;; *) answer passed;; esac; done");
    let ended = run(&["the node is pinged"], &script, LONG);
    assert_eq!(ended.report.unwrap().failed.len(), 2);
}

#[test]
fn given_a_step_that_no_pattern_fits_when_run_should_fail_it() {
    let ended = run(
        &["something else happens"],
        &format!("{EACH} answer passed; done"),
        LONG,
    );
    let report = ended.report.unwrap();
    assert!(report.failed[0].contains("undefined"), "{}", report.failed[0]);
}

#[test]
fn given_an_agent_that_ends_early_when_run_should_fail_that_scenario_and_start_another_agent() {
    // The mark says that an agent has died already.
    let script = format!(
        "{EACH} case $line in *ping*) [ -e \"$1\" ] || {{ touch \"$1\"; exit 0; }};; esac; answer passed; done"
    );
    let ended = run(&["the node is pinged"], &script, LONG);
    let report = ended.report.unwrap();
    assert_eq!((report.passed, report.failed.len()), (1, 1));
    assert!(report.failed[0].contains("the agent ended"), "{}", report.failed[0]);
}

#[test]
fn given_an_agent_that_never_answers_when_run_should_fail_within_the_deadline() {
    let ended = run(&["the node is pinged"], "exec sleep 1000", Duration::from_millis(50));
    let report = ended.report.unwrap();
    assert!(report.failed[0].contains("no answer"), "{}", report.failed[0]);
}

#[test]
fn given_an_agent_that_talks_nonsense_when_run_should_fail() {
    for nonsense in ["echo hello", "echo '{}'"] {
        let ended = run(&["the node is pinged"], &format!("{EACH} {nonsense}; done"), LONG);
        assert_eq!(ended.report.unwrap().failed.len(), 2, "{nonsense}");
    }
}

#[test]
fn given_an_agent_that_exits_with_an_error_when_run_should_be_an_error() {
    let ended = run(
        &["the node is pinged"],
        &format!("{EACH} answer passed; done; exit 3"),
        LONG,
    );
    assert!(ended.report.unwrap_err().to_string().contains("exit status: 3"));
}

#[test]
fn given_steps_about_the_server_when_run_should_never_reach_the_agent() {
    let script = format!("{EACH} case $line in *server*) answer failed;; *) answer passed;; esac; done");
    let ended = run(
        &["the server is killed and started again", "the server is stopped"],
        &script,
        LONG,
    );
    assert!(ended.report.unwrap().succeeded());
    assert_eq!(
        ended.orders,
        [Order::KillAndStart, Order::Stop, Order::KillAndStart, Order::Stop]
    );
}

#[test]
fn given_no_scenario_when_reported_should_not_have_succeeded() {
    assert!(!Report::default().succeeded());
}
