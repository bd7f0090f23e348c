//! The log: standard error always, files of bounded size when asked for.
//!
//! Standard output stays free for the ready line and `--print-config`. Files are written by a thread of their own; when
//! the disk cannot keep up, lines are dropped rather than a shard made to wait, and the count of them is logged at the
//! stop.

mod rotation;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::{env, io};

use thiserror::Error;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Logging, LoggingLevel};
use rotation::RotatingFile;

const FILTER_VARIABLE: &str = "RUST_LOG";
/// Lines that may wait for the file; each is a few hundred bytes.
const BUFFERED_LINES: usize = 16_384;

/// Why the log cannot be started. Every variant stops the boot.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// `RUST_LOG` is no filter.
    #[error(
        "the environment variable {FILTER_VARIABLE} is `{value}`; allowed: a level or a filter such as \"info,iggy_server=debug\" ({reason})"
    )]
    Filter {
        /// The value.
        value: String,
        /// What was wrong.
        reason: String,
    },
    /// The log file cannot be opened.
    #[error("cannot write log files in {} (`logging.path`): {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process already logs.
    #[error("the log was started twice: {0}")]
    Twice(String),
}

/// Keeps the log alive; dropping it writes out what waits for the file.
#[must_use]
pub struct LogGuard {
    worker: Option<(WorkerGuard, ErrorCounter)>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let dropped = self.worker.as_ref().map_or(0, |(_, counter)| counter.dropped_lines());
        if dropped > 0 {
            tracing::warn!(dropped, "log lines were dropped because the disk could not keep up");
        }
    }
}

/// The folder of the log files: `logging.path`, below the data directory when relative.
pub fn folder(settings: &Logging, data_directory: &Path) -> PathBuf {
    data_directory.join(&settings.path)
}

/// Starts the log of this process.
///
/// # Errors
/// See [`LoggingError`].
pub fn start(settings: &Logging, data_directory: &Path) -> Result<LogGuard, LoggingError> {
    let filter = filter(settings.level, env::var(FILTER_VARIABLE).ok())?;
    let console = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let (file, worker) = if settings.file_enabled {
        let folder = folder(settings, data_directory);
        let file = RotatingFile::open(&folder, settings.max_file_size, settings.max_total_size)
            .map_err(|source| LoggingError::Folder { folder, source })?;
        let (writer, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(BUFFERED_LINES)
            .thread_name("log")
            .finish(file);
        let counter = writer.error_counter();
        (
            Some(fmt::layer().with_writer(writer).with_ansi(false)),
            Some((guard, counter)),
        )
    } else {
        (None, None)
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(console)
        .with(file)
        .try_init()
        .map_err(|error| LoggingError::Twice(error.to_string()))?;
    Ok(LogGuard { worker })
}

fn filter(level: LoggingLevel, variable: Option<String>) -> Result<EnvFilter, LoggingError> {
    let value = match variable {
        Some(value) if !value.trim().is_empty() => value,
        _ => level.to_string(),
    };
    EnvFilter::try_new(&value).map_err(|error| LoggingError::Filter {
        value,
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_rust_log_should_beat_the_level() {
        assert_eq!(filter(LoggingLevel::Warn, None).unwrap().to_string(), "warn");
        assert_eq!(
            filter(LoggingLevel::Warn, Some(String::new())).unwrap().to_string(),
            "warn"
        );
        assert_eq!(
            filter(LoggingLevel::Warn, Some("iggy_server=trace".to_owned()))
                .unwrap()
                .to_string(),
            "iggy_server=trace"
        );
    }

    #[test]
    fn given_rust_log_that_is_no_filter_should_refuse() {
        let error = filter(LoggingLevel::Warn, Some("iggy_server=loud".to_owned()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("iggy_server=loud"), "{error}");
    }
}
