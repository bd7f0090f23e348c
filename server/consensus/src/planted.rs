//! Faults that a test plants in the protocol, to see that the simulator finds them: a check that has never failed proves
//! nothing. They exist only under the feature `planted-bugs`, and there only in the thread that asked for one.

/// A fault to plant. Each is one that such code has had somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A backup acknowledges a prepare before its write is done.
    AckBeforeWrite,
    /// A voter that is not sure counts as one that is.
    NackWhenFaulty,
    /// A view is entered without being written down first.
    SkipViewPersist,
    /// A prepare is known by its position alone when logs are compared.
    MatchByOp,
    /// A backup stamps prepares with its own time.
    RestampTime,
    /// A restarted replica votes as if it had forgotten nothing.
    ForgetEnding,
    /// A restarted replica uses the incarnation of its earlier life.
    ReuseIncarnation,
    /// Every acknowledgement counts, also a second one of the same replica.
    CountDuplicateAcks,
    /// A backup cuts its log down to what the primary has, also where it is committed.
    TruncateCommitted,
    /// A primary goes on without hearing from a quorum, and commits with one replica less.
    SmallQuorum,
    /// A replica acknowledges while its log does not yet hold what the view started with.
    AckWhileAdopting,
    /// The view of the log is not looked at when votes are compared.
    IgnoreLogView,
    /// A view starts without waiting for the bodies it misses.
    StartWithoutBodies,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::AckBeforeWrite,
        Self::NackWhenFaulty,
        Self::SkipViewPersist,
        Self::MatchByOp,
        Self::RestampTime,
        Self::ForgetEnding,
        Self::ReuseIncarnation,
        Self::CountDuplicateAcks,
        Self::TruncateCommitted,
        Self::SmallQuorum,
        Self::AckWhileAdopting,
        Self::IgnoreLogView,
        Self::StartWithoutBodies,
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
