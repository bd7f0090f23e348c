//! Runs scenarios one after the other and says how each ended.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::agent::{Agent, Answer};
use crate::features::{Run, Step};
use crate::node::{Node, Order};
use crate::patterns::Matchers;

/// What a run needs.
pub struct Runner<'a> {
    /// The command of the agent.
    pub command: &'a [String],
    /// For each answer of the agent.
    pub deadline: Duration,
    /// The steps there are.
    pub matchers: &'a Matchers,
    /// Where to note `feature TAB scenario TAB outcome`, one line for each run.
    pub results: Option<PathBuf>,
    /// What is said goes here.
    pub out: &'a mut dyn Write,
}

/// How the scenarios ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many passed.
    pub passed: usize,
    /// Those that did not: what and why.
    pub failed: Vec<String>,
}

impl Report {
    /// Whether something ran and nothing failed.
    pub fn succeeded(&self) -> bool {
        self.passed > 0 && self.failed.is_empty()
    }
}

impl Runner<'_> {
    /// Runs all of `runs`; the failed ones are said again at the end.
    ///
    /// # Errors
    /// The agent cannot be started or does not exit by itself, the node is lost, or results cannot be written.
    pub fn run(&mut self, runs: &[Run], node: &mut dyn Node) -> Result<Report> {
        let mut report = Report::default();
        if let Some(path) = &self.results {
            std::fs::write(path, "")?;
        }
        let mut agent = None;
        for run in runs {
            if agent.is_none() {
                agent = Some(Agent::start(self.command, self.deadline)?);
            }
            let outcome = self.scenario(run, node, &mut agent)?;
            self.note(run, outcome.is_ok())?;
            match outcome {
                Ok(()) => {
                    report.passed += 1;
                    writeln!(self.out, "ok      {} / {}", run.feature, run.scenario)?;
                }
                Err(why) => {
                    let said = format!("{} / {} ({}): {why}", run.feature, run.scenario, run.place);
                    writeln!(self.out, "FAILED  {said}")?;
                    report.failed.push(said);
                }
            }
        }
        if let Some(agent) = agent {
            agent.end()?;
        }
        for failed in &report.failed {
            writeln!(self.out, "failed: {failed}")?;
        }
        writeln!(self.out, "{} passed, {} failed", report.passed, report.failed.len())?;
        Ok(report)
    }

    /// One scenario; the agent is gone afterwards when it cannot be asked again.
    fn scenario(&mut self, run: &Run, node: &mut dyn Node, slot: &mut Option<Agent>) -> Result<Result<(), String>> {
        let (address, data_directory) = node.ready().context("the node")?;
        let Some(agent) = slot else { bail!("an agent") };
        let begin = json!({
            "op": "begin", "feature": run.feature, "scenario": run.scenario, "tags": run.tags,
            "address": address, "data_directory": data_directory,
        });
        let mut outcome = judged(agent.ask(&begin), slot, "at its beginning");
        for step in &run.steps {
            if outcome.is_err() {
                break;
            }
            outcome = self.step(step, node, slot);
        }
        if let Some(agent) = slot {
            let ended = agent.ask(&json!({ "op": "end" }));
            let ended = judged(ended, slot, "at its end");
            outcome = outcome.and(ended);
        }
        Ok(outcome)
    }

    fn step(&mut self, step: &Step, node: &mut dyn Node, slot: &mut Option<Agent>) -> Result<(), String> {
        let matched = self
            .matchers
            .find(step)
            .map_err(|error| format!("undefined: {error}"))?;
        if let Some(order) = Order::of(matched.name, &matched.arguments) {
            return node.obey(order).map_err(|error| format!("'{}': {error:#}", step.text));
        }
        let Some(agent) = slot else {
            return Err("the agent is gone".to_owned());
        };
        let line = json!({
            "op": "step", "keyword": step.keyword, "name": matched.name,
            "arguments": Value::Object(matched.arguments), "table": step.table, "doc": step.doc, "text": step.text,
        });
        judged(agent.ask(&line), slot, &format!("'{}' ({})", step.text, matched.name))
    }

    fn note(&self, run: &Run, passed: bool) -> Result<()> {
        let Some(path) = &self.results else { return Ok(()) };
        let outcome = if passed { "passed" } else { "failed" };
        let mut results = OpenOptions::new().append(true).open(path)?;
        writeln!(results, "{}\t{}\t{outcome}", run.feature, run.scenario)?;
        Ok(())
    }
}

fn judged(answer: Result<Answer>, slot: &mut Option<Agent>, place: &str) -> Result<(), String> {
    match answer {
        Ok(Answer::Passed) => Ok(()),
        Ok(Answer::Failed(why)) => Err(format!("{place}: {why}")),
        Ok(Answer::Undefined) => Err(format!("{place}: the agent does not know this step")),
        Err(error) => {
            *slot = None;
            Err(format!("{place}: {error:#}"))
        }
    }
}
