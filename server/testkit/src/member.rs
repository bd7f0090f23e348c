//! A member of a consumer group in a process of its own, to be killed.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a member may take to join.
const JOIN_DEADLINE: Duration = Duration::from_secs(30);

/// A running `iggy-bdd-member`; dropping it kills the process.
#[derive(Debug)]
pub struct MemberProcess(Child);

impl MemberProcess {
    /// Starts `program` and waits until it is a member.
    ///
    /// # Errors
    /// There is no such program, or it does not join within 30 s.
    pub async fn start(program: &Path, server: SocketAddr, stream: &str, topic: &str, group: &str) -> Result<Self> {
        let mut process = Command::new(program)
            .arg(format!("iggy://iggy:iggy@{server}"))
            .args([stream, topic, group])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = process.stdout.take().context("the member's output is not piped")?;
        let mut lines = BufReader::new(output).lines();
        let said = timeout(JOIN_DEADLINE, lines.next_line()).await;
        match said.context("the member did not join in time")??.as_deref() {
            Some("joined") => Ok(Self(process)),
            said => bail!("the member did not join, it said {said:?}"),
        }
    }

    /// Kills it with SIGKILL and waits until it is gone.
    ///
    /// # Errors
    /// It could not be killed.
    pub async fn kill(mut self) -> Result<()> {
        self.0.kill().await.context("the member could not be killed")
    }
}
