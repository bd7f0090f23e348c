//! What one applied entry means for the rest of the node.
//!
//! An event says that the state changed and is delivered once, in order, on every replica. It is never the only record
//! of the change: a node that starts from a snapshot derives the same work from the state itself.

use std::sync::Arc;

use iggy_protocol::topic_settings::TopicSettings;

use crate::keys::{GroupKey, PartitionKey, SessionKey, TopicKey};
use crate::model::topic::History;

/// A consequence of an applied entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A partition exists from now on.
    PartitionCreated {
        /// The new partition.
        key: PartitionKey,
        /// Effective settings of its topic.
        settings: Arc<TopicSettings>,
        /// Replicas that store it, in member order.
        members: Vec<u8>,
    },
    /// A partition and everything in it is gone.
    PartitionDeleted {
        /// The partition that was.
        key: PartitionKey,
    },
    /// A new history of a partition began.
    HistoryBegun {
        /// Partition.
        key: PartitionKey,
        /// Its history from now on.
        history: History,
    },
    /// Everything below an offset is to be dropped, whole segments only.
    TruncatePartition {
        /// The partition.
        key: PartitionKey,
        /// First offset that stays.
        before_offset: u64,
    },
    /// The effective settings of a topic changed.
    TopicSettingsChanged {
        /// The topic.
        topic: TopicKey,
        /// Its settings from now on.
        settings: Arc<TopicSettings>,
    },
    /// Partitions of a consumer group changed hands.
    OwnersChanged {
        /// The group.
        group: GroupKey,
        /// Each partition whose owner changed, in ascending order.
        changes: Vec<OwnerChange>,
    },
    /// A consumer group is gone, its stored offsets with it.
    GroupDeleted {
        /// The group that was.
        group: GroupKey,
    },
    /// A session exists from now on.
    SessionOpened {
        /// The session.
        session: SessionKey,
        /// Its user.
        user_id: u32,
    },
    /// A session is over: connections bound to it lose it and its memberships are gone.
    SessionEnded {
        /// The session that was.
        session: SessionKey,
        /// Why it ended.
        reason: SessionEnd,
    },
    /// A user was deleted or disabled; its sessions have ended by events of their own.
    UserRevoked {
        /// The user.
        user_id: u32,
    },
}

/// The new owner of one partition within a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerChange {
    /// The partition.
    pub partition_id: u32,
    /// Position that decided the owner (wire 4.8).
    pub owner_generation: u64,
    /// The owner, or `None` when the group has no member left.
    pub owner: Option<Owner>,
}

/// A member of a consumer group as a partition sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Id of the member within the group.
    pub member_id: u32,
    /// Session that is the member.
    pub session: SessionKey,
}

/// Why a session ended, with the numbers of the change log (wire 12, kind 71).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SessionEnd {
    /// The client logged out.
    Logout = 0,
    /// Its lease ran out or the table was full.
    Expired = 1,
    /// Its user was deleted or disabled.
    Revoked = 2,
}
