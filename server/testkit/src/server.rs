//! One server process: start, graceful stop, kill, restart on the same data and addresses.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::binary::find_server_binary;
use crate::output::{Endpoints, Log, drain, drain_until_ready};

/// How long a server may take from its start to its ready line, unless a builder says otherwise. Generous: a debug
/// build on a machine busy with other tests, replaying a log, must still fit.
pub const READY_DEADLINE: Duration = Duration::from_mins(1);

/// How long a server may take to end after SIGTERM.
pub const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// How long a line may take from the server's log to the test.
const LOG_DEADLINE: Duration = Duration::from_secs(30);

/// Lowest time between looks at a killed process in `Drop`.
const REAP_PAUSE: Duration = Duration::from_millis(1);
const REAP_DEADLINE: Duration = Duration::from_secs(5);

/// Variables of the server's namespace never leak in from the environment of the test run.
const VARIABLE_PREFIX: &str = "IGGY_";

/// The listeners that bind port 0 unless a test says otherwise: name in the ready line, key that sets the address.
const LISTENERS: [(&str, &str); 2] = [("tcp", "tcp.address"), ("metrics", "http.address")];

/// Describes a server before it starts. Every setting has a default that fits a test.
#[derive(Debug, Clone)]
#[must_use]
pub struct TestServerBuilder {
    config: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    arguments: Vec<OsString>,
    data_directory: Option<PathBuf>,
    binary: Option<PathBuf>,
    ready_deadline: Duration,
    default_root_credentials: bool,
}

impl Default for TestServerBuilder {
    fn default() -> Self {
        Self {
            config: BTreeMap::new(),
            environment: BTreeMap::new(),
            arguments: Vec::new(),
            data_directory: None,
            binary: None,
            ready_deadline: READY_DEADLINE,
            default_root_credentials: true,
        }
    }
}

impl TestServerBuilder {
    /// Sets one configuration key, named as in the file (`partition.wal_bytes_max`). It reaches the server as the
    /// environment variable of that key.
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.insert(key.into(), value.into());
        self
    }

    /// Sets one environment variable of the server process.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Adds one command line argument.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Uses this data directory and leaves it in place afterwards. Default: a temporary one, removed with the server.
    pub fn data_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_directory = Some(path.into());
        self
    }

    /// Starts this binary. Default: [`find_server_binary`].
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// How long to wait for the ready line. Default: [`READY_DEADLINE`].
    pub fn ready_deadline(mut self, deadline: Duration) -> Self {
        self.ready_deadline = deadline;
        self
    }

    /// Leaves out `--with-default-root-credentials`, for tests that bring their own or expect the refusal.
    pub fn without_default_root_credentials(mut self) -> Self {
        self.default_root_credentials = false;
        self
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Errors
    /// No binary, a server that ends before it is ready, or no ready line within the deadline; each with the log.
    ///
    /// # Cancel safety
    /// A dropped future kills the process that it started.
    pub async fn start(self) -> Result<TestServer> {
        let binary = match &self.binary {
            Some(path) => path.clone(),
            None => find_server_binary()?,
        };
        let (data_directory, temporary) = if let Some(path) = &self.data_directory {
            (path.clone(), None)
        } else {
            let temporary = tempfile::Builder::new().prefix("iggy-test-").tempdir()?;
            (temporary.path().to_owned(), Some(temporary))
        };
        let mut server = TestServer {
            settings: self,
            binary,
            data_directory,
            process: None,
            endpoints: Endpoints::new(),
            log: Log::default(),
            temporary,
        };
        server.launch().await?;
        Ok(server)
    }
}

/// A running server with its data directory; dropping it kills the process and removes temporary data.
///
/// Needs a Tokio runtime with I/O enabled for as long as it lives.
pub struct TestServer {
    settings: TestServerBuilder,
    binary: PathBuf,
    data_directory: PathBuf,
    process: Option<Child>,
    endpoints: Endpoints,
    log: Log,
    temporary: Option<TempDir>,
}

impl TestServer {
    /// A builder with the defaults of a test: temporary data, free ports, root user `iggy` with password `iggy`.
    pub fn builder() -> TestServerBuilder {
        TestServerBuilder::default()
    }

    /// Starts a server with all defaults.
    ///
    /// # Errors
    /// As [`TestServerBuilder::start`].
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// Address of the TCP listener. It survives restarts.
    ///
    /// # Panics
    /// When the server named no TCP listener in its ready line.
    pub fn tcp_address(&self) -> SocketAddr {
        self.endpoint("tcp").expect("the ready line names no tcp listener")
    }

    /// Address of the listener called `name` in the ready line (`tcp`, `metrics`).
    pub fn endpoint(&self, name: &str) -> Option<SocketAddr> {
        self.endpoints.get(name).copied()
    }

    /// Connection string of the root user over TCP.
    pub fn connection_string(&self) -> String {
        format!("iggy://iggy:iggy@{}", self.tcp_address())
    }

    /// The data directory.
    pub fn data_directory(&self) -> &Path {
        &self.data_directory
    }

    /// Process id while the process has not been seen to end.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().and_then(Child::id)
    }

    /// The end of what the server printed, over all its runs.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until the server has printed `text`: what it logs comes a moment after what it does.
    ///
    /// # Errors
    /// It was not printed within 30 s; the error holds the log.
    pub async fn logged(&self, text: &str) -> Result<()> {
        let printed = timeout(LOG_DEADLINE, self.log.until(text)).await;
        printed.map_err(|_| anyhow!("{text:?} was not logged within {LOG_DEADLINE:?}:\n{}", self.log()))
    }

    /// Changes a configuration key for the next start.
    pub fn reconfigure(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.settings.config.insert(key.into(), value.into());
    }

    /// Ends the server as an operator would, with SIGTERM, and waits until it is gone.
    ///
    /// # Errors
    /// The server does not run, does not end within [`STOP_DEADLINE`] (it is then killed), or ends with a failure.
    pub async fn stop(&mut self) -> Result<()> {
        let process = self.running()?;
        terminate(process)?;
        let ended = timeout(STOP_DEADLINE, process.wait()).await;
        let Ok(status) = ended else {
            self.kill().await?;
            bail!(
                "the server did not end within {STOP_DEADLINE:?} of SIGTERM; its log:\n{}",
                self.log()
            );
        };
        self.process = None;
        let status = status?;
        if !status.success() {
            bail!("the server ended with {status} after SIGTERM; its log:\n{}", self.log());
        }
        Ok(())
    }

    /// Kills the server with SIGKILL and waits until it is gone. Proves recovery, never durability: the page cache
    /// survives.
    ///
    /// # Errors
    /// The server does not run.
    pub async fn kill(&mut self) -> Result<()> {
        self.running()?.kill().await.context("the server could not be killed")?;
        self.process = None;
        Ok(())
    }

    /// Waits until the server ends by itself.
    ///
    /// # Errors
    /// The server does not run, or still runs at the deadline.
    pub async fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let status = timeout(deadline, self.running()?.wait())
            .await
            .map_err(|_| anyhow!("the server still runs after {deadline:?}; its log:\n{}", self.log()))??;
        self.process = None;
        Ok(status)
    }

    /// Starts the server again on the same data directory and addresses, after a graceful stop if it still runs.
    ///
    /// # Errors
    /// As [`Self::stop`] and [`TestServerBuilder::start`].
    pub async fn restart(&mut self) -> Result<()> {
        if self.process.is_some() {
            self.stop().await?;
        }
        self.launch().await
    }

    fn running(&mut self) -> Result<&mut Child> {
        self.process.as_mut().ok_or_else(|| anyhow!("the server does not run"))
    }

    async fn launch(&mut self) -> Result<()> {
        self.log.push(format!("--- {} starts", self.binary.display()));
        let mut process = self
            .command()
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        let stdout = process.stdout.take().context("the server's stdout is not piped")?;
        let stderr = process.stderr.take().context("the server's stderr is not piped")?;
        drain(File::from(stderr.into_owned_fd()?), self.log.clone());
        let mut ready = drain_until_ready(File::from(stdout.into_owned_fd()?), self.log.clone());
        self.process = Some(process);

        let deadline = self.settings.ready_deadline;
        let outcome = match timeout(deadline, ready.wait_for(Option::is_some)).await {
            Ok(Ok(endpoints)) => Ok(endpoints.clone().unwrap_or_default()),
            Ok(Err(_)) => Err("ended before it was ready".to_owned()),
            Err(_) => Err(format!("was not ready within {deadline:?}")),
        };
        match outcome {
            Ok(endpoints) => {
                self.endpoints = endpoints;
                Ok(())
            }
            Err(reason) => {
                self.kill().await?;
                bail!("the server {reason}; its log:\n{}", self.log())
            }
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(VARIABLE_PREFIX) {
                command.env_remove(name);
            }
        }
        command.env(variable("path"), &self.data_directory);
        for (name, key) in LISTENERS {
            let address = self
                .endpoint(name)
                .map_or_else(|| "127.0.0.1:0".to_owned(), |address| address.to_string());
            command.env(variable(key), address);
        }
        for (key, value) in &self.settings.config {
            command.env(variable(key), value);
        }
        command.envs(&self.settings.environment);
        if self.settings.default_root_credentials {
            command.arg("--with-default-root-credentials");
        }
        command
            .args(&self.settings.arguments)
            .current_dir(&self.data_directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

impl Drop for TestServer {
    /// Waits for the killed process, because a dying server may still write into the temporary directory that is
    /// removed next, and the next test may want its port.
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let _ = process.start_kill();
        let begin = Instant::now();
        while matches!(process.try_wait(), Ok(None)) && begin.elapsed() < REAP_DEADLINE {
            std::thread::sleep(REAP_PAUSE);
        }
        if self.temporary.is_some() && std::thread::panicking() {
            eprintln!("log of the server under the failing test:\n{}", self.log.text());
        }
    }
}

/// Name of the environment variable that sets a configuration key.
fn variable(key: &str) -> String {
    format!("{VARIABLE_PREFIX}{}", key.replace('.', "_").to_uppercase())
}

fn terminate(process: &Child) -> Result<()> {
    let id = process.id().ok_or_else(|| anyhow!("the server has already ended"))?;
    let id = i32::try_from(id)
        .ok()
        .and_then(Pid::from_raw)
        .context("the process id does not fit pid_t")?;
    kill_process(id, Signal::TERM).context("SIGTERM could not be sent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_key_should_name_its_variable() {
        assert_eq!(variable("tcp.tls.enabled"), "IGGY_TCP_TLS_ENABLED");
        assert_eq!(variable("path"), "IGGY_PATH");
    }
}
