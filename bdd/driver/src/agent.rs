//! The agent's process: one line out, one line back, each within a deadline.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// How long an agent may take to exit once its input has ended.
pub const EXIT_DEADLINE: Duration = Duration::from_secs(10);

/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 1 << 20;

const EXIT_PAUSE: Duration = Duration::from_millis(5);

/// How an agent answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It did what it was told, and all was as it should be.
    Passed,
    /// Something was not, and why.
    Failed(String),
    /// It does not know that step.
    Undefined,
}

/// A running agent; dropping it kills the process.
pub struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    deadline: Duration,
}

impl Agent {
    /// Starts `command`, whose every answer has to come within `deadline`.
    ///
    /// # Errors
    /// There is no such program.
    pub fn start(command: &[String], deadline: Duration) -> Result<Self> {
        let (program, arguments) = command.split_first().context("an agent is a command")?;
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let input = process.stdin.take();
        let mut output = BufReader::new(process.stdout.take().context("an output")?);
        let (answers, lines) = sync_channel(1);
        // A thread, because reading a pipe has no deadline. It ends with the pipe.
        std::thread::spawn(move || {
            loop {
                let mut line = String::new();
                match (&mut output).take(LONGEST_ANSWER).read_line(&mut line) {
                    Ok(length) if length > 0 && answers.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        Ok(Self {
            process,
            input,
            lines,
            deadline,
        })
    }

    /// Says `line` and waits for the answer.
    ///
    /// # Errors
    /// No answer in time, one that is none, or an agent that ended: it cannot be asked again.
    pub fn ask(&mut self, line: &Value) -> Result<Answer> {
        let input = self.input.as_mut().context("the agent was told to end")?;
        let said = writeln!(input, "{line}").and_then(|()| input.flush());
        let answer = match self.lines.recv_timeout(self.deadline) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => bail!("no answer within {:?}", self.deadline),
            Err(RecvTimeoutError::Disconnected) => match self.exited()? {
                Some(status) => bail!("the agent ended: {status}"),
                None => bail!("the agent closed its output"),
            },
        };
        said.context("the agent does not read")?;
        let Ok(parsed) = serde_json::from_str::<Value>(&answer) else {
            bail!("the answer is not JSON: {}", answer.trim_end());
        };
        match parsed["status"].as_str() {
            Some("passed") => Ok(Answer::Passed),
            Some("failed") => Ok(Answer::Failed(
                parsed["message"].as_str().unwrap_or("no reason given").to_owned(),
            )),
            Some("undefined") => Ok(Answer::Undefined),
            _ => bail!("the answer has no status: {}", answer.trim_end()),
        }
    }

    /// How the process exited; `None` when it does not.
    fn exited(&mut self) -> Result<Option<ExitStatus>> {
        let end = Instant::now() + EXIT_DEADLINE;
        loop {
            let status = self.process.try_wait()?;
            if status.is_some() || Instant::now() >= end {
                return Ok(status);
            }
            std::thread::sleep(EXIT_PAUSE);
        }
    }

    /// Ends the agent's input and waits for it to exit.
    ///
    /// # Errors
    /// It says something more, exits with an error, or does not exit.
    pub fn end(mut self) -> Result<()> {
        self.input = None;
        match self.exited()? {
            Some(status) => ensure!(status.success(), "the agent exited with {status}"),
            None => bail!("the agent does not exit when its input has ended"),
        }
        match self.lines.recv_timeout(EXIT_PAUSE) {
            Ok(line) => bail!("the agent said more than it was asked: {}", line.trim_end()),
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.input = None;
        if !matches!(self.process.try_wait(), Ok(Some(_))) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
