//! How a consensus group survives a restart: superblock, checkpoint and prepare log in one directory.
//!
//! ```text
//! superblock.a  superblock.b      two copies, written in turn; the newest intact one counts
//! checkpoint.{op}                 the applied state at one position, whole or absent
//! journal.{generation}            prepares after it, in order; a new generation per checkpoint
//! ```
//!
//! The bodies of message batches are not here: a record names where its batch lies in the partition's segments, so each
//! payload is written once.
//!
//! Nothing in this crate touches a disk. Writers return [`Step`](iggy_storage::Step)s; [`recover()`] is a pure function
//! over an [`Image`](iggy_storage::image::Image).
//!
//! Faults tolerated: a crash or loss of power between any two steps; a torn end of the newest generation; a torn or
//! damaged copy of the superblock. Damage to a prepare that a later prepare proves to have been committed is never
//! repaired by forgetting: recovery refuses and names file and offset, unless the group promised no more than the
//! memory of a node that has since lost power, and then it reports the loss.

mod journal;
pub mod planted;
mod record;
mod recover;
mod superblock;

pub use journal::{FileNumbers, Journal, JournalFiles};
pub use record::BodyLocation;
pub use recover::{Body, Loss, Policy, Record, RecoverError, Recovered, recover, store_again};
pub use superblock::{BootId, Checkpoint, Superblock};

/// Most bytes of one checkpoint.
pub const CHECKPOINT_LEN_MAX: u64 = 1 << 30;

/// Most bytes of one generation of the journal that recovery reads.
pub const GENERATION_LEN_MAX: u64 = 2 << 30;

fn journal_path(directory: &str, generation: u64) -> String {
    format!("{directory}/journal.{generation:020}")
}

fn checkpoint_path(directory: &str, op: u64) -> String {
    format!("{directory}/checkpoint.{op:020}")
}

fn superblock_path(directory: &str, sequence: u64) -> String {
    let copy = if sequence.is_multiple_of(2) { 'a' } else { 'b' };
    format!("{directory}/superblock.{copy}")
}
