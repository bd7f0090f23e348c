//! The metadata state machine: streams, topics, partitions, consumer groups, users, tokens, sessions and the log of what
//! changed.
//!
//! It is pure: no I/O, no clock, no randomness, no order that depends on hashing. The primary turns a request into a
//! resolved [`Change`] ([`Metadata::admit`], [`Metadata::admit_register`]); consensus orders changes; every replica applies
//! them ([`Metadata::apply`]) and gets the same state, the same answers and the same [`Event`]s. Reads are answered from
//! any clone of the state ([`Metadata::query`]).
//!
//! Faults tolerated: an entry applied twice under one request (the first answer is repeated), entries admitted against an
//! older state (every rule is checked again), and snapshots from elsewhere (refused unless fully understood). Not
//! tolerated: entries applied out of order or changed after they were admitted; consensus and its checksums see to that.

mod access;
mod admission;
mod apply;
mod change;
mod change_log;
mod event;
mod keys;
pub mod limits;
mod metadata;
pub mod model;
mod options;
mod placement;
mod position;
mod queries;
mod receipt;
mod snapshot;

pub use access::Target;
pub use admission::{
    Admission, Credentials, PendingPassword, PendingToken, PendingTruncation, PendingUser, Settings,
    committed_operation,
};
pub use apply::Applied;
pub use change::{Change, ChangeError, StreamRef, UserRef};
pub use event::{Event, Owner, OwnerChange, SessionEnd};
pub use keys::{GroupKey, IdSpace, PartitionKey, SessionKey, TopicKey};
pub use limits::Limits;
pub use metadata::{Counts, Metadata};
pub use model::session::bind_verifier;
pub use options::StoredOptions;
pub use position::{Position, RequestKey};
pub use queries::{Counters, PartitionCounters, Route};
pub use receipt::{Outcome, Receipt, ReceiptWindow, Recognition};
pub use snapshot::{SNAPSHOT_FORMAT, SnapshotError};
