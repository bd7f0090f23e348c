//! The server: shards, transports, authentication, configuration.

pub mod config;
pub mod logging;
pub mod metrics;
pub mod passwords;
pub mod tls;
