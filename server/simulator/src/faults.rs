//! The kinds of faults, and how often each was injected.

/// A kind of fault (simulator 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[allow(missing_docs)] // Each is named as the report prints it.
pub enum Fault {
    Loss,
    Duplicate,
    OldReplay,
    Reorder,
    DelaySpike,
    Clog,
    Partition,
    OneWayPartition,
    PartialPartition,
    PrimaryIsolated,
    FlappingLink,
    DropByType,
    DropByGroup,
    Corruption,
    Truncation,
    Misroute,
    Backpressure,
    ProcessCrash,
    PowerLoss,
    ClusterCrash,
    ClusterPowerLoss,
    CrashInWrite,
    CrashInRecovery,
    CrashLoop,
    Pause,
    WipedDisk,
    GracefulStop,
    BitFlip,
    LostWrite,
    MisdirectedWrite,
    UnreadableFile,
    FailedWrite,
    FailedSync,
    FullDisk,
    SlowDisk,
    WallJump,
    WallSkew,
    Drift,
    HandOver,
    Retry,
    RetryElsewhere,
    TopicDeleted,
    TopicRecreated,
    Retention,
    OwnerChange,
}

impl Fault {
    /// All of them, with the names of the report.
    pub const ALL: [(Self, &'static str); 45] = [
        (Self::Loss, "loss"),
        (Self::Duplicate, "duplicate"),
        (Self::OldReplay, "old-replay"),
        (Self::Reorder, "reorder"),
        (Self::DelaySpike, "delay-spike"),
        (Self::Clog, "clog"),
        (Self::Partition, "partition"),
        (Self::OneWayPartition, "one-way-partition"),
        (Self::PartialPartition, "partial-partition"),
        (Self::PrimaryIsolated, "primary-isolated"),
        (Self::FlappingLink, "flapping-link"),
        (Self::DropByType, "drop-by-type"),
        (Self::DropByGroup, "drop-by-group"),
        (Self::Corruption, "corruption"),
        (Self::Truncation, "truncation"),
        (Self::Misroute, "misroute"),
        (Self::Backpressure, "back-pressure"),
        (Self::ProcessCrash, "process-crash"),
        (Self::PowerLoss, "power-loss"),
        (Self::ClusterCrash, "cluster-crash"),
        (Self::ClusterPowerLoss, "cluster-power-loss"),
        (Self::CrashInWrite, "crash-in-write"),
        (Self::CrashInRecovery, "crash-in-recovery"),
        (Self::CrashLoop, "crash-loop"),
        (Self::Pause, "pause"),
        (Self::WipedDisk, "wiped-disk"),
        (Self::GracefulStop, "graceful-stop"),
        (Self::BitFlip, "bit-flip"),
        (Self::LostWrite, "lost-write"),
        (Self::MisdirectedWrite, "misdirected-write"),
        (Self::UnreadableFile, "unreadable-file"),
        (Self::FailedWrite, "failed-write"),
        (Self::FailedSync, "failed-sync"),
        (Self::FullDisk, "full-disk"),
        (Self::SlowDisk, "slow-disk"),
        (Self::WallJump, "wall-jump"),
        (Self::WallSkew, "wall-skew"),
        (Self::Drift, "drift"),
        (Self::HandOver, "hand-over"),
        (Self::Retry, "retry"),
        (Self::RetryElsewhere, "retry-elsewhere"),
        (Self::TopicDeleted, "topic-deleted"),
        (Self::TopicRecreated, "topic-recreated"),
        (Self::Retention, "retention"),
        (Self::OwnerChange, "owner-change"),
    ];
}

/// How often each fault was injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    counts: [u64; Fault::ALL.len()],
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            counts: [0; Fault::ALL.len()],
        }
    }
}

impl Faults {
    /// Counts one.
    pub fn count(&mut self, fault: Fault) {
        self.counts[fault as usize] += 1;
    }

    /// How often it was injected.
    pub fn of(&self, fault: Fault) -> u64 {
        self.counts[fault as usize]
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (own, other) in self.counts.iter_mut().zip(other.counts) {
            *own += other;
        }
    }

    /// Every kind with its name and count.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Fault::ALL.iter().map(|(fault, name)| (*name, self.of(*fault)))
    }
}
