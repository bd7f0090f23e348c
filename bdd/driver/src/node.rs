//! The node that scenarios talk to: a process that starts, stops and kills a server when told.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

/// What a scenario does to its node, and beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Stops it in order and starts it again.
    Restart,
    /// Stops it without notice and starts it again.
    KillAndStart,
    /// Stops it in order.
    Stop,
    /// Starts it.
    Start,
    /// Starts a process that is a member of a group.
    StartMember {
        /// Its stream.
        stream: String,
        /// Its topic.
        topic: String,
        /// Its group.
        group: String,
    },
    /// Kills that process.
    KillMember,
}

impl Order {
    /// The order that a step gives, if it is one for the driver.
    pub fn of(step: &str, arguments: &Map<String, Value>) -> Option<Self> {
        let name = |key: &str| {
            arguments
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Some(match step {
            "restart_server" => Self::Restart,
            "kill_server_and_start" => Self::KillAndStart,
            "stop_server" => Self::Stop,
            "start_server" => Self::Start,
            "start_member_process" => Self::StartMember {
                stream: name("stream"),
                topic: name("topic"),
                group: name("group"),
            },
            "kill_member_process" => Self::KillMember,
            _ => return None,
        })
    }

    /// What the program of the node is told for it, line by line.
    fn lines(&self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Restart => &["restart"],
            Self::KillAndStart => &["kill", "start"],
            Self::Stop => &["stop"],
            Self::Start => &["start"],
            Self::KillMember => &["kill-member"],
            Self::StartMember { stream, topic, group } => return vec![format!("member {stream} {topic} {group}")],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// A node that scenarios may restart.
pub trait Node {
    /// Does as told.
    ///
    /// # Errors
    /// What went wrong, as the node says it.
    fn obey(&mut self, order: Order) -> Result<()>;

    /// Starts the node if a scenario left it stopped; where it listens and where its files are.
    ///
    /// # Errors
    /// It does not start.
    fn ready(&mut self) -> Result<(String, String)>;
}

/// The program `iggy-test-node`. It has deadlines of its own for what it does, and ends with its input.
pub struct TestNode {
    process: Child,
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    running: bool,
    address: String,
    data_directory: String,
}

impl TestNode {
    /// Starts the program, and the node.
    ///
    /// # Errors
    /// The program is missing, or the node does not start.
    pub fn start(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let (words, answers) = (process.stdin.take(), process.stdout.take());
        let mut node = Self {
            process,
            words,
            answers: BufReader::new(answers.context("an output")?),
            running: false,
            address: String::new(),
            data_directory: String::new(),
        };
        node.obey(Order::Start)?;
        Ok(node)
    }

    fn tell(&mut self, word: &str) -> Result<()> {
        let words = self.words.as_mut().context("the node has ended")?;
        writeln!(words, "{word}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let mut parts = answer.trim_end().splitn(3, ' ');
        match parts.next() {
            Some("ready") => {
                let address = parts.next().context("an address")?;
                ensure!(
                    self.address.is_empty() || self.address == address,
                    "the node moved from {} to {address}",
                    self.address
                );
                address.clone_into(&mut self.address);
                self.data_directory = parts.next().unwrap_or_default().to_owned();
                self.running = true;
            }
            Some("stopped") => self.running = false,
            Some("joined" | "killed") => {}
            _ => bail!("the node was told to {word} and said: {}", answer.trim_end()),
        }
        Ok(())
    }
}

impl Node for TestNode {
    fn obey(&mut self, order: Order) -> Result<()> {
        order.lines().iter().try_for_each(|line| self.tell(line))
    }

    fn ready(&mut self) -> Result<(String, String)> {
        if !self.running {
            self.obey(Order::Start)?;
        }
        Ok((self.address.clone(), self.data_directory.clone()))
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        // The end of its input ends it, and the server with it.
        self.words = None;
        let _ = self.process.wait();
    }
}
