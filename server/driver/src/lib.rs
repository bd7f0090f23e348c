//! Hosts consensus groups and runs their effects over storage.
//!
//! A [`Shard`] is everything one thread of a node does with its groups, without the thread: admission, logs, fences,
//! receipts, parked polls on the time it is told, and the orders that follow from metadata. No tokio, no sockets and no
//! clock, so that the same code runs in a node and in a simulator.
//!
//! Faults tolerated: those of the journal and the partitions beneath. A group whose disk fails is fenced alone; the
//! others go on.

pub mod controller;
pub mod counters;
pub mod group_log;
pub mod heard;
pub mod members;
pub mod metadata_group;
pub mod partition_group;
pub mod request;
pub mod shard;
pub mod tally;

pub use controller::Order;
pub use heard::NodesHeard;
pub use members::Members;
pub use shard::{Output, PartitionEvent, Shard, ShardConfig};
