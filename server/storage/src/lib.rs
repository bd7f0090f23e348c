//! The seam between the replicated state machines and whatever keeps their bytes.
//!
//! Storage is *submit and complete*: a caller hands in a [`Job`] with a token and later receives a [`Completion`]
//! with that token. Nothing here is `async`, so that a thread pool, `io_uring` and a simulated disk fit the same
//! trait and every interleaving can be replayed from a seed.
//!
//! * [`mod@file`] keeps files in a directory, with a bounded pool of threads.
//! * [`memory`] keeps them in memory, and can crash (written bytes survive) or lose power (only synced bytes are sure
//!   to survive), the two ways a node dies.
//! * [`image`] is how recovery reads: a directory as it lies, without opening anything for writing.
//!
//! Faults tolerated: a failed sync poisons its file, because the kernel may already have dropped the dirty pages and a
//! second sync would lie; everything later on that file fails with [`StorageError::Poisoned`].

pub mod file;
pub mod image;
pub mod memory;

use bytes::Bytes;
use std::fmt;

/// Names one submitted job; its completion carries the same token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IoToken(pub u64);

/// Jobs of one lane run one after the other, in the order of submission. Lanes run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub u64);

/// An open file, under a number the submitter chose. It must be unique among the files open at one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// A path relative to the storage root, with `/` between its parts.
pub type Path = String;

/// One thing to do to a disk.
#[derive(Clone, Debug)]
pub enum Step {
    /// Makes a directory and those above it. Existing ones are fine.
    CreateDirectory(Path),
    /// Makes the directory's entries durable.
    SyncDirectory(Path),
    /// Removes a directory with all it holds. A missing one is fine.
    RemoveDirectory(Path),
    /// Opens a file for reading and writing.
    Open {
        /// Number for later steps.
        file: FileId,
        /// Where it lies.
        path: Path,
        /// Whether a missing file is made; otherwise it is an error.
        create: bool,
    },
    /// Forgets an open file. Unknown numbers are ignored.
    Close(FileId),
    /// Writes the pieces one after the other, starting at `offset` bytes.
    Write {
        /// Open file.
        file: FileId,
        /// First byte to write.
        offset: u64,
        /// Pieces in order; they are not joined in memory.
        pieces: Vec<Bytes>,
    },
    /// Reads exactly `length` bytes from `offset`; a shorter file is an error.
    Read {
        /// Open file.
        file: FileId,
        /// First byte to read.
        offset: u64,
        /// Bytes to read.
        length: u32,
    },
    /// Cuts or extends (with zeros) a file to `length` bytes.
    Truncate {
        /// Open file.
        file: FileId,
        /// New length in bytes.
        length: u64,
    },
    /// Writes `length` bytes from `offset` again as they are read, so that the next sync has to reach the device with
    /// them: after a failed sync the kernel may hold bytes it believes to be stored. A shorter file is an error.
    Rewrite {
        /// Open file.
        file: FileId,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Sets aside disk space for the first `length` bytes of a file, without changing its length. A file system that
    /// cannot is left alone.
    Reserve {
        /// Open file.
        file: FileId,
        /// Bytes to set aside.
        length: u64,
    },
    /// Makes the content and length of these files durable, side by side.
    Sync(Vec<FileId>),
    /// Renames a file, replacing the target.
    Rename {
        /// Old path.
        from: Path,
        /// New path.
        to: Path,
    },
    /// Removes a file. A missing one is fine.
    Remove(Path),
}

/// Steps that run in order; the first failure ends the job.
pub type Job = Vec<Step>;

/// How a job ended.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The token it was submitted with.
    pub token: IoToken,
    /// The bytes of every [`Step::Read`] in order, or the first failure.
    pub result: Result<Vec<Bytes>, StorageError>,
}

/// Why a step failed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StorageError {
    /// The operating system refused.
    #[error("{operation} of {subject} failed: {kind}: {message}")]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// File or directory.
        subject: String,
        /// Class of the failure.
        kind: std::io::ErrorKind,
        /// Text of the operating system.
        message: String,
    },
    /// The file ends before the bytes asked for.
    #[error("read of {length} bytes at {offset} of {subject} meets the end of the file")]
    ShortRead {
        /// File.
        subject: String,
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length: u32,
    },
    /// An earlier sync of this file failed, so what it holds is no longer known.
    #[error("{subject} is fenced: an earlier sync of it failed")]
    Poisoned {
        /// File.
        subject: String,
    },
    /// No open file has this number.
    #[error("file {0:?} is not open")]
    NotOpen(FileId),
}

impl StorageError {
    pub(crate) fn io(operation: &'static str, subject: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::Io {
            operation,
            subject: subject.to_string(),
            kind: error.kind(),
            message: error.to_string(),
        }
    }

    /// Whether the device is full, which an operator can mend.
    pub fn is_full(&self) -> bool {
        matches!(
            self,
            Self::Io {
                kind: std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded,
                ..
            }
        )
    }
}

/// A disk.
pub trait Storage {
    /// Hands in a job. Never blocks on the device. Its completion comes back exactly once, unless the storage ends first.
    fn submit(&mut self, lane: LaneId, token: IoToken, job: Job);

    /// Moves every completion that has arrived to the end of `out`.
    fn completions(&mut self, out: &mut Vec<Completion>);
}
