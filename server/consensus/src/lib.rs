//! The replica of Viewstamped Replication that orders every write of a group.
//!
//! [`Replica::step`] is the whole interface: no clock, no randomness, no I/O and no task inside. It takes the time and
//! one [`Input`], and appends [`Effect`]s. A message that depends on a write is only sent once that write is done, so
//! whoever runs the effects holds no policy of its own.
//!
//! The same type orders the metadata group and each partition. One node is a group of one: its own journal is its
//! quorum, through the same code that larger groups use.
//!
//! * [`replica`] is the protocol; [`vote`] is the decision a new view depends on, as a pure function.
//! * [`message`] is what replicas say, [`codec`] how it is written.
//! * [`quorum`] says how many must agree.
//!
//! Faults tolerated: messages that are lost, repeated, late, reordered or for somebody else; a crash of any replicas
//! between any two effects; the loss of what was not synced, of as many replicas as the durability of the group allows;
//! a log that is damaged on fewer replicas than hold a committed prepare. A failed write or sync fences the replica: it
//! says and takes nothing more, because what its disk holds is no longer known. Not tolerated: replicas that lie, and a
//! directory that is put back to an older state.

pub mod codec;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod group;
mod log;
pub mod message;
pub mod planted;
pub mod prepare;
pub mod quorum;
pub mod replica;
pub mod state;
pub mod vote;

pub use group::{Durability, GroupId};
pub use prepare::{Body, Prepare, PrepareHeader};
pub use replica::{
    Barrier, Effect, Effects, FenceReason, Input, Now, Proposal, Refusal, Replica, ReplicaConfig, Status, Timing,
};
pub use state::{Ending, LogEnd, RecoveredLog, VsrState};
