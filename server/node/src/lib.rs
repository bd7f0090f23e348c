//! The server: shards, transports, authentication, configuration.
//!
//! Each shard is a thread with a runtime of its own; it hosts partitions and serves connections. Shard 0 also orders the
//! metadata, which every shard reads as a published snapshot. What a group does is in `iggy-driver`; here are only the
//! threads, the sockets and the clock around it.

pub mod config;
pub mod connection;
pub mod data_directory;
mod diagnostics;
mod dispatch;
mod housekeeping;
pub mod logging;
pub mod metrics;
pub mod node;
pub mod passwords;
pub mod shard;
pub mod start;
pub mod tls;
