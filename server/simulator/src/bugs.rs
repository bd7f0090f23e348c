//! The faults that can be planted in the code under test, by number.

use iggy_consensus::planted as consensus;
use iggy_journal::planted as journal;

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// In the protocol.
    Consensus(consensus::Bug),
    /// In storage, recovery or the state.
    Journal(journal::Bug),
}

impl Bug {
    /// All that the simulator must find, in the order of their numbers from 1.
    pub fn all() -> Vec<Self> {
        let protocol = consensus::Bug::ALL.into_iter().map(Self::Consensus);
        let storage = [
            journal::Bug::AckBeforeSync,
            journal::Bug::IgnoreFailedSync,
            journal::Bug::ForgetDirectorySync,
            journal::Bug::SkipBatchCheck,
            journal::Bug::OneSuperblock,
            journal::Bug::CheckpointBeforeSync,
            journal::Bug::ForgetReceipts,
            journal::Bug::ResurrectDropped,
        ];
        protocol.chain(storage.into_iter().map(Self::Journal)).collect()
    }

    /// The fault with this number, from 1.
    pub fn numbered(number: usize) -> Option<Self> {
        Self::all().get(number.checked_sub(1)?).copied()
    }
}

/// Plants a fault in this thread, or takes it away.
pub fn plant(bug: Option<Bug>) {
    let (protocol, storage) = match bug {
        Some(Bug::Consensus(bug)) => (Some(bug), None),
        Some(Bug::Journal(bug)) => (None, Some(bug)),
        None => (None, None),
    };
    consensus::plant(protocol);
    journal::plant(storage);
}
