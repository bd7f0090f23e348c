//! How many replicas must agree.
//!
//! Replication and view change each have their quorum; any two of them share a replica, so a new primary always hears
//! of every write that may have been acknowledged.

/// Most replicas a group can have (wire 16).
pub const REPLICAS_MAX: u8 = 32;

/// Quorums of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// Replicas that must hold a prepare before it commits. Also the replicas a primary must hear to stay primary.
    pub replication: u8,
    /// Replicas that must vote before a view starts.
    pub view_change: u8,
    /// Replicas that must be known never to have held a prepare before it may be dropped.
    pub nack: u8,
}

impl Quorum {
    /// The quorums of a group of `replicas`, `None` outside 1..=32.
    pub const fn of(replicas: u8) -> Option<Self> {
        if replicas == 0 || replicas > REPLICAS_MAX {
            return None;
        }
        // Two replicas must both agree: with one of them a partition of the network would make two primaries.
        let replication = match replicas {
            2 => 2,
            n if n.div_ceil(2) < 3 => n.div_ceil(2),
            _ => 3,
        };
        let view_change = if replicas == 2 { 2 } else { replicas - replication + 1 };
        Some(Self {
            replication,
            view_change,
            nack: replicas - replication + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_one_to_six_replicas_when_asked_should_match_the_documented_table() {
        let table = [(1, 1, 1), (2, 2, 2), (3, 2, 2), (4, 2, 3), (5, 3, 3), (6, 3, 4)];
        for (replicas, replication, view_change) in table {
            let quorum = Quorum::of(replicas).unwrap();
            assert_eq!(
                (quorum.replication, quorum.view_change),
                (replication, view_change),
                "{replicas} replicas"
            );
        }
    }

    /// S9.
    #[test]
    fn given_any_group_when_quorums_meet_should_share_a_replica() {
        for replicas in 1..=REPLICAS_MAX {
            let quorum = Quorum::of(replicas).unwrap();
            assert!(
                quorum.replication + quorum.view_change > replicas,
                "{replicas} replicas"
            );
            assert!(quorum.replication + quorum.nack > replicas, "{replicas} replicas");
        }
        assert_eq!(Quorum::of(0), None);
        assert_eq!(Quorum::of(33), None);
    }
}
