//! What the metadata holds: streams with topics and partitions, consumer groups, users and sessions.
//!
//! The types keep their own invariants (names unique, partitions without gaps, every partition of a group with a member
//! owned exactly once); the rules about who may change what stand in `admission` and `apply`.

pub mod group;
pub mod session;
pub mod stream;
pub mod topic;
pub mod user;
