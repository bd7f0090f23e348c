//! Runs the published command line against a server.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iggy_testkit::TestServer;
use tempfile::TempDir;

/// Environment variable that names the program; without it the place where `scripts/setup` installs it is used.
const PROGRAM_VARIABLE: &str = "IGGY_PUBLISHED_CLI";
const INSTALLED: &str = "../../target/tools/published/bin/iggy";

/// The published command line with a home folder of its own, pointed at one server.
pub struct PublishedCli {
    program: PathBuf,
    home: TempDir,
    address: String,
    credentials: Vec<String>,
}

/// What one run printed and how it ended.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status; -1 when a signal ended it.
    pub status: i32,
    /// Standard output, then standard error.
    pub text: String,
    /// Standard output alone.
    pub output: String,
}

impl PublishedCli {
    /// Signed in as the root user.
    pub fn new(server: &TestServer) -> Self {
        Self {
            program: program(),
            home: tempfile::tempdir().expect("a home folder is made"),
            address: server.tcp_address().to_string(),
            credentials: ["-u", "iggy", "-p", "iggy"].map(str::to_owned).to_vec(),
        }
    }

    /// The same program and home with other credentials; none when empty.
    #[must_use]
    pub fn with_credentials(self, credentials: &[&str]) -> Self {
        Self {
            credentials: credentials.iter().map(|&word| word.to_owned()).collect(),
            ..self
        }
    }

    /// Folder for files that a command reads or writes; it is also the home folder and the working directory.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Runs one command.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Outcome {
        let mut command = Command::new(&self.program);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("IGGY_") {
                command.env_remove(name);
            }
        }
        let finished = command
            .args(["--tcp-server-address", &self.address])
            .args(&self.credentials)
            .args(arguments)
            .env("HOME", self.home.path())
            .env("IGGY_HOME", self.home.path())
            .env("NO_COLOR", "1")
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .output()
            .expect("the published command line runs");
        let output = String::from_utf8_lossy(&finished.stdout).into_owned();
        let text = format!("{output}{}", String::from_utf8_lossy(&finished.stderr));
        Outcome {
            status: finished.status.code().unwrap_or(-1),
            text,
            output,
        }
    }

    /// Runs a command that must succeed and returns what it printed.
    #[track_caller]
    pub fn succeeds<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        self.ends_with(arguments, 0)
    }

    /// Runs a command that must be refused with an error that says `reason`.
    #[track_caller]
    pub fn is_refused<S: AsRef<OsStr>>(&self, arguments: &[S], reason: &str) {
        let text = self.ends_with(arguments, 1);
        assert!(text.contains(reason), "no `{reason}` in:\n{text}");
    }

    /// Runs a command whose arguments must be refused before anything is sent.
    #[track_caller]
    pub fn is_usage_error<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        self.ends_with(arguments, 2)
    }

    #[track_caller]
    fn ends_with<S: AsRef<OsStr>>(&self, arguments: &[S], status: i32) -> String {
        let outcome = self.run(arguments);
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        assert_eq!(
            outcome.status,
            status,
            "`iggy {}` printed:\n{}",
            words.join(" "),
            outcome.text
        );
        outcome.text
    }
}

fn program() -> PathBuf {
    if let Some(named) = env::var_os(PROGRAM_VARIABLE) {
        return PathBuf::from(named);
    }
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join(INSTALLED);
    assert!(
        installed.is_file(),
        "the published command line is not at {}; run scripts/setup or name it in {PROGRAM_VARIABLE}",
        installed.display()
    );
    installed
}
