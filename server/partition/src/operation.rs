//! What a partition's log can hold besides batches of messages.

use iggy_protocol::consumer::Consumer;
use iggy_protocol::identifier::Identifier;
use serde::{Deserialize, Serialize};

/// Drops messages before an offset. Internal to the partition plane; never on a client's wire.
pub const TRUNCATE_PREFIX: u8 = 170;

/// A name under which an offset is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConsumerKey {
    /// A consumer of its own, as spelled by the client: a number and the same digits as a name are different consumers.
    Consumer(Identifier),
    /// A consumer group of the topic.
    Group(u32),
    /// A group managed outside, as spelled by the client.
    External(Identifier),
}

impl ConsumerKey {
    /// The key of a consumer that is not a group of the topic; groups are resolved to their number first.
    pub fn standalone(consumer: &Consumer) -> Self {
        Self::Consumer(consumer.id.clone())
    }
}

/// The session that owns a partition within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Identity the client chose.
    pub client: u128,
    /// Session number.
    pub session: u64,
}

/// An entry of the partition's log that is not a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionOperation {
    /// A batch of an idempotent producer that is already in the log: only its receipt is new.
    DuplicateBatch {
        /// Offset of its first message, from the first time.
        base_offset: u64,
    },
    /// Stores an offset.
    StoreOffset {
        /// For whom.
        consumer: ConsumerKey,
        /// Last processed message.
        offset: u64,
    },
    /// Forgets an offset.
    DeleteOffset {
        /// For whom.
        consumer: ConsumerKey,
    },
    /// Gives the partition to a member of a group, or to nobody.
    InstallOwner {
        /// Group.
        group: u32,
        /// Metadata position that decided it.
        generation: u64,
        /// Owner.
        member: Option<Member>,
    },
    /// Forgets a deleted group with its owner and offset.
    RetireGroup {
        /// Group.
        group: u32,
        /// Metadata position that deleted it.
        generation: u64,
    },
    /// Forgets the receipts of a session that has ended.
    RetireSession(Member),
    /// Drops messages before an offset.
    TruncatePrefix {
        /// First offset to keep.
        before: u64,
    },
}

impl PartitionOperation {
    /// The group whose owner it may change.
    pub fn owned_group(&self) -> Option<u32> {
        match self {
            Self::InstallOwner { group, .. } | Self::RetireGroup { group, .. } => Some(*group),
            _ => None,
        }
    }

    /// The bytes of a prepare's body.
    pub fn encode(&self) -> Vec<u8> {
        rmp_serde::to_vec(self).expect("plain data always encodes")
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}
