//! Asks for what must not stand on the command line.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::arguments::parse_password;

/// Reads one line of standard input as a password. At a terminal it asks first and shows nothing of what is typed.
///
/// Waits for the person as long as it takes. An interrupt ends the question with an error, so that the command can
/// still sign out and the terminal is left as it was.
pub async fn password(what: &str) -> Result<String> {
    let hidden = Hidden::begin().context("cannot hide what is typed")?;
    if hidden.is_some() {
        eprint!("{what}: ");
        io::stderr().flush()?;
    }
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|read| (read, line))
    });
    let answer = tokio::select! {
        answer = reading => answer?,
        interrupt = tokio::signal::ctrl_c() => {
            interrupt?;
            bail!("interrupted");
        }
    };
    if hidden.is_some() {
        // The line end that was typed was not shown either.
        eprintln!();
    }
    let (read, line) = answer?;
    if read == 0 {
        bail!("{what} is missing: give it as an argument or on standard input");
    }
    parse_password(line.trim_end_matches(['\r', '\n'])).map_err(|error| anyhow!("{what}: {error}"))
}

/// While it lives the terminal shows nothing of what is typed.
struct Hidden {
    before: Termios,
}

impl Hidden {
    /// `None` when standard input is no terminal.
    fn begin() -> io::Result<Option<Self>> {
        let input = io::stdin();
        if !input.is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(&input)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        tcsetattr(&input, OptionalActions::Now, &silent)?;
        Ok(Some(Self { before }))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring, and nobody is left to tell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
