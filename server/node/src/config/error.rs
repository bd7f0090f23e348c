//! What can be wrong with a configuration, always with the place it came from.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The embedded defaults.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable, by name.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("the embedded defaults"),
            Self::File(path) => write!(out, "the file {}", path.display()),
            Self::Variable(name) => write!(out, "the environment variable {name}"),
        }
    }
}

/// Why the server refuses its configuration. Every variant stops the boot.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{origin} is not valid TOML: {message}")]
    Syntax {
        /// The file.
        origin: Origin,
        /// Line, column and reason.
        message: String,
    },
    /// A key that no part of the server reads.
    #[error("{origin} sets the unknown key `{key}`{}", suggestion(nearest.as_deref()))]
    UnknownKey {
        /// Where it was set.
        origin: Origin,
        /// The key as a dotted path.
        key: String,
        /// The known key with the most alike name.
        nearest: Option<String>,
    },
    /// A key of an older generation.
    #[error("{origin} sets `{key}`, which was removed: {instead}")]
    RemovedKey {
        /// Where it was set.
        origin: Origin,
        /// The key as a dotted path.
        key: String,
        /// What to do instead.
        instead: String,
    },
    /// A value of the wrong kind or outside its bounds.
    #[error("{origin} sets `{key}` to `{value}`; allowed: {allowed}")]
    Refused {
        /// Where it was set.
        origin: Origin,
        /// The key as a dotted path.
        key: String,
        /// The value as written.
        value: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// Two values that exclude each other, or one that requires another.
    #[error("{0}")]
    Conflict(String),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |key| format!("; did you mean `{key}`?"))
}
