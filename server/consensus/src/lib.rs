//! The replica of Viewstamped Replication that orders every write of the node.
//!
//! [`Replica::step`] is the whole interface: no clock, no randomness, no I/O and no task inside. It takes the time and
//! one [`Input`], and appends [`Effect`]s. An effect that must wait for a write names that write's token, so whoever
//! runs the effects holds no policy of its own.
//!
//! The same type orders the metadata group and each partition. One node is a group of one: its own journal is its
//! quorum, through the same code that larger groups use. Larger groups are refused by [`Replica::recover`] until their
//! part of the protocol is here; [`message`] and [`quorum`] already define it.
//!
//! Faults tolerated by a group of one: a crash between any two effects. A failed write or sync fences the group: it
//! takes no further writes, because what its disk holds is no longer known.

pub mod group;
pub mod message;
pub mod prepare;
pub mod quorum;
pub mod replica;
pub mod state;

pub use group::{Durability, GroupId};
pub use prepare::{Body, Prepare, PrepareHeader};
pub use replica::{Barrier, Effect, Effects, FenceReason, Input, Now, Proposal, Refusal, Replica, ReplicaConfig};
pub use state::{LogEnd, VsrState};
