//! Faults that a test plants in storage and recovery, to see that it finds them: a check that has never failed proves
//! nothing. They exist only under the feature `planted-bugs`, and there only in the thread that asked for one.

/// A fault to plant. Each is one that such code has had somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A prepare that asks for a sync counts as held once it is written.
    AckBeforeSync,
    /// A failed sync counts as one that succeeded.
    IgnoreFailedSync,
    /// A sync of a new process is believed, although the one before may have failed.
    BelieveFreshSync,
    /// A new generation's name is not synced before prepares are written to it.
    ForgetDirectorySync,
    /// What lies after the last intact record stays, and records are appended behind it.
    KeepTornTail,
    /// Records are taken without looking for their batches.
    SkipBatchCheck,
    /// Both copies of the superblock are written at one place.
    OneSuperblock,
    /// The checkpoint is made to count before what it stands for is synced.
    CheckpointBeforeSync,
    /// The old checkpoint is removed before the new one counts.
    RemoveBeforeCheckpoint,
    /// A checkpoint takes files from those that the next sync must cover.
    CheckpointTakesFiles,
    /// Receipts are left out of the checkpoint.
    ForgetReceipts,
    /// Producers are left out of the checkpoint.
    ForgetProducers,
    /// An index is believed, whatever it was built from.
    TrustIndex,
    /// Recovery leaves sealed segments as they are.
    TrustSealedSegments,
    /// Segments that were dropped are removed while the journal names them.
    RemoveNamedSegments,
    /// Requests are answered before what recovery found is on disk.
    AnswerBeforeOpen,
    /// A possible loss is not counted.
    SilentLoss,
    /// An order to cut the log is done again after a loss.
    CutAgain,
    /// Reads go beyond what is written.
    ReadUnwritten,
    /// Where the log starts is left out of the checkpoint: what was dropped comes back.
    ResurrectDropped,
}

impl Bug {
    /// Those that show at a group of one.
    pub const ALL: [Self; 19] = [
        Self::AckBeforeSync,
        Self::IgnoreFailedSync,
        Self::BelieveFreshSync,
        Self::ForgetDirectorySync,
        Self::KeepTornTail,
        Self::SkipBatchCheck,
        Self::OneSuperblock,
        Self::CheckpointBeforeSync,
        Self::RemoveBeforeCheckpoint,
        Self::CheckpointTakesFiles,
        Self::ForgetReceipts,
        Self::ForgetProducers,
        Self::TrustIndex,
        Self::TrustSealedSegments,
        Self::RemoveNamedSegments,
        Self::AnswerBeforeOpen,
        Self::SilentLoss,
        Self::CutAgain,
        Self::ReadUnwritten,
    ];
}

#[cfg(feature = "planted-bugs")]
mod planting {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a fault in this thread, or takes it away.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this fault is planted here.
    pub fn has(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub use planting::{has, plant};

/// Whether this fault is planted here: never in this build.
#[cfg(not(feature = "planted-bugs"))]
pub const fn has(_: Bug) -> bool {
    false
}
