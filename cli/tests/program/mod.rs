//! Runs the command line against a server of its own, with a home folder of its own.

// Each test file compiles this for itself and uses its own part of it.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iggy_testkit::TestServer;
use serde_json::Value;
use tempfile::TempDir;

/// A server and the program pointed at it.
pub struct Program {
    pub server: TestServer,
    home: TempDir,
}

impl Program {
    pub async fn start() -> Self {
        let server = TestServer::start().await.expect("the server starts");
        Self {
            server,
            home: tempfile::tempdir().expect("a home folder is made"),
        }
    }

    /// As [`Self::start`], with the stream `shop` and in it the topic `orders`.
    pub async fn with_topic(partitions: &str) -> Self {
        let program = Self::start().await;
        program.succeeds(&["stream", "create", "shop"]);
        program.succeeds(&["topic", "create", "shop", "orders", partitions, "none"]);
        program
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A command without address and credentials.
    pub fn bare(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iggy"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("IGGY_") {
                command.env_remove(name);
            }
        }
        command
            .env("IGGY_HOME", self.home.path())
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }

    /// A command of the root user.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = self.bare();
        command
            .args(["--tcp-server-address", &self.server.tcp_address().to_string()])
            .args(["-u", "iggy", "-p", "iggy"])
            .args(arguments);
        command
    }

    /// Runs a command that must succeed and returns its standard output.
    #[track_caller]
    pub fn succeeds<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        ends_with(&mut self.command(arguments), 0).0
    }

    /// Runs a command that must fail and returns its standard error.
    #[track_caller]
    pub fn fails<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        ends_with(&mut self.command(arguments), 1).1
    }

    /// Runs a command with `--json` that must succeed and returns what it printed.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.succeeds(&[&["--json"], arguments].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in:\n{text}"))
    }

    /// Runs a command that reads `input`, and must succeed.
    #[track_caller]
    pub fn reads<S: AsRef<OsStr>>(&self, arguments: &[S], input: &[u8]) -> String {
        let mut command = self.command(arguments);
        let mut running = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        running.stdin.take().unwrap().write_all(input).unwrap();
        let finished = running.wait_with_output().unwrap();
        checked(&finished, 0).0
    }
}

/// Runs a command that must end with `status`; returns standard output and standard error.
#[track_caller]
pub fn ends_with(command: &mut Command, status: i32) -> (String, String) {
    checked(&command.output().expect("the program runs"), status)
}

#[track_caller]
fn checked(finished: &Output, status: i32) -> (String, String) {
    let output = String::from_utf8_lossy(&finished.stdout).into_owned();
    let error = String::from_utf8_lossy(&finished.stderr).into_owned();
    assert_eq!(finished.status.code(), Some(status), "it printed:\n{output}{error}");
    (output, error)
}
