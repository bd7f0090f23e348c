//! Hosts consensus groups and runs their effects over storage.
pub mod group_log;
