//! Topics, their partitions and their consumer groups.

use std::sync::Arc;

use iggy_protocol::Name;
use iggy_protocol::topic_settings::TopicSettings;
use imbl::{OrdMap, Vector};
use serde::{Deserialize, Serialize};

use crate::keys::{GroupKey, IdSpace, PartitionKey, TopicKey};
use crate::limits::CONSUMER_GROUPS_PER_TOPIC_MAX;
use crate::model::group::Group;
use crate::options::StoredOptions;

/// A topic of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// Id within the stream.
    pub id: u32,
    /// Name, unique within the stream.
    pub name: Name,
    /// Microseconds since the Unix epoch.
    pub created_at: u64,
    /// Position that created it.
    pub created_op: u64,
    /// Options as set by the client and as filled in by the server.
    pub options: StoredOptions,
    /// Effective settings, computed from the options and not stored beside them.
    #[serde(skip)]
    pub settings: Arc<TopicSettings>,
    /// Partition `i` at index `i`.
    pub partitions: Vector<Partition>,
    /// Groups by id.
    pub groups: OrdMap<u32, Arc<Group>>,
    /// Group ids by name.
    pub group_names: OrdMap<Name, u32>,
    /// Ids of groups to come.
    pub group_ids: IdSpace,
}

/// One partition as the metadata knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Position that created it (wire 4.8).
    pub incarnation: u64,
    /// Microseconds since the Unix epoch.
    pub created_at: u64,
    /// Replicas that store it, in member order.
    pub members: Vec<u8>,
    /// Offsets below this one were deleted on request; a replica that missed the event drops them when it starts.
    pub truncated_before: u64,
    /// The history its messages belong to.
    pub history: History,
}

/// One unbroken history of a partition. It ends when the partition is deleted, and when writes that were acknowledged
/// may have been lost beyond what the partition promised: positions of the old history must not be applied to the new.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Times acknowledged writes may have been lost since the partition was created.
    pub losses: u64,
    /// Metadata position that began this history; what clients know as the incarnation (wire 4.8).
    pub incarnation: u64,
}

impl Topic {
    /// The ids for groups of a new topic.
    pub const fn group_id_space() -> IdSpace {
        IdSpace::new(CONSUMER_GROUPS_PER_TOPIC_MAX)
    }

    /// The topic's fenced identity within a stream.
    pub fn key(&self, stream_id: u32) -> TopicKey {
        TopicKey {
            stream_id,
            topic_id: self.id,
            created_op: self.created_op,
        }
    }

    /// Number of partitions.
    pub fn partitions_count(&self) -> u32 {
        self.partitions.len() as u32
    }

    /// One partition, or `None` if the topic has no such id.
    pub fn partition(&self, partition_id: u32) -> Option<&Partition> {
        self.partitions.get(partition_id as usize)
    }

    /// The fenced identity of one partition.
    pub fn partition_key(&self, stream_id: u32, partition_id: u32) -> Option<PartitionKey> {
        self.partition(partition_id).map(|partition| PartitionKey {
            stream_id,
            topic_id: self.id,
            partition_id,
            incarnation: partition.incarnation,
        })
    }

    /// The fenced identities of all partitions, ascending.
    pub fn partition_keys(&self, stream_id: u32) -> impl Iterator<Item = PartitionKey> + '_ {
        self.partitions
            .iter()
            .zip(0u32..)
            .map(move |(partition, partition_id)| PartitionKey {
                stream_id,
                topic_id: self.id,
                partition_id,
                incarnation: partition.incarnation,
            })
    }

    /// The fenced identity of a group of this topic.
    pub fn group_key(&self, stream_id: u32, group: &Group) -> GroupKey {
        GroupKey {
            stream_id,
            topic_id: self.id,
            group_id: group.id,
            created_op: group.created_op,
        }
    }
}
