//! The least that a workload can cost on this machine: the same frames over loopback between this program and another
//! process, without a protocol.
//!
//! As many connections, files and outstanding requests as the workload has. A sender copies each batch into a frame and
//! hashes it, as a client does; the receiver checks the hash, writes the bytes to a file of that connection, with or
//! without waiting for the disk, and answers 256 bytes. A reader asks with 256 bytes; the other side reads the frame from a
//! file and sends it; the reader checks the hash. Who sends and reads does one after the other. All are blocked threads: the cheapest that the kernel offers.

mod receiver;
mod sender;

pub use receiver::{ReceiverArguments, receive};
pub use sender::{Plan, measure};

use clap::ValueEnum;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of an answer, and of the request of a reader: a header.
const HEADER: usize = 256;
/// Bytes before the batch in a frame: a header, whose first eight are the hash of what follows it.
const PREFIX: usize = HEADER;

/// What the other side does with the bytes of a sender before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Storing {
    /// Hands them to the operating system.
    Write,
    /// Also waits for the disk.
    Sync,
}

/// What a connection is for; its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Send,
    Read,
    Echo,
}

impl Purpose {
    const fn byte(self) -> u8 {
        match self {
            Self::Send => 0,
            Self::Read => 1,
            Self::Echo => 2,
        }
    }

    const fn of(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Send),
            1 => Some(Self::Read),
            2 => Some(Self::Echo),
            _ => None,
        }
    }
}

fn seal(frame: &mut [u8]) {
    let hash = xxh3_64(&frame[PREFIX..]);
    frame[..8].copy_from_slice(&hash.to_le_bytes());
}

fn is_sealed(frame: &[u8]) -> bool {
    let hash = frame.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    hash == Some(xxh3_64(&frame[PREFIX..]))
}
