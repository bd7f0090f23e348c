//! Configuration: embedded defaults, then a file, then the environment, checked before anything starts.
//!
//! `config.toml` beside this crate is the one list of keys: it is embedded, it documents each key with unit and bounds,
//! and a key that is not in it is refused. Values are read by name in `settings.rs`, which also holds their bounds.

mod command_line;
mod error;
mod keys;
mod layers;
mod settings;
mod units;

#[cfg(test)]
mod tests;

pub use command_line::{Arguments, RootCredentials};
pub use error::{ConfigError, Origin};
pub use layers::{Loaded, load};
pub use settings::{
    Config, DataMaintenance, Heartbeat, Http, Logging, LoggingLevel, MessageBus, Metadata, Metrics, Node, Partition,
    PersonalAccessToken, PersonalAccessTokenCleaner, Sharding, Tcp, Tls,
};
