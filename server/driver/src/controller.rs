//! What follows from a metadata change for the partitions: who must open, forget, truncate, or belong to whom.
//!
//! Everything here is derived from the applied state, and every order is idempotent, so that all of it can be given again
//! after a restart.

use crate::counters::PartitionCounters;
use crate::members::Members;
use iggy_consensus::Durability;
use iggy_metadata::model::topic::{History, Topic};
use iggy_metadata::{Event, GroupKey, Metadata, OwnerChange, PartitionKey, SessionKey};
use iggy_partition::Settings;
use iggy_partition::operation::Member;
use iggy_protocol::topic_settings::{self, TopicSettings};
use std::sync::Arc;

/// An order to the shard that owns a partition.
#[derive(Clone, Debug)]
pub enum Order {
    /// Host this partition.
    Open {
        /// Partition.
        key: PartitionKey,
        /// Nodes that hold it; nobody else opens it.
        members: Members,
        /// Its settings.
        settings: Settings,
        /// Its history, as the metadata knows it.
        history: History,
        /// Whether it is being created now; otherwise what is missing of it was lost.
        created: bool,
        /// Where it publishes its numbers.
        counters: Arc<PartitionCounters>,
    },
    /// Forget this partition with all it holds.
    Delete {
        /// Partition.
        key: PartitionKey,
    },
    /// Its settings have changed.
    Configure {
        /// Partition.
        key: PartitionKey,
        /// New settings.
        settings: Settings,
    },
    /// A new history of it began.
    BeginHistory {
        /// Partition.
        key: PartitionKey,
        /// Its history from now on.
        history: History,
    },
    /// It belongs to a member of a group, or to nobody.
    InstallOwner {
        /// Partition.
        key: PartitionKey,
        /// Group.
        group: u32,
        /// Metadata position that decided it.
        generation: u64,
        /// Owner.
        member: Option<Member>,
    },
    /// A group is gone.
    RetireGroup {
        /// Partition.
        key: PartitionKey,
        /// Group.
        group: u32,
        /// Metadata position that deleted it.
        generation: u64,
    },
    /// Drop messages before an offset.
    Truncate {
        /// Partition.
        key: PartitionKey,
        /// First offset to keep.
        before: u64,
    },
    /// A session has ended; for every partition of every shard.
    RetireSession(Member),
}

impl Order {
    /// Partition it concerns; `None` for all of them.
    pub fn key(&self) -> Option<PartitionKey> {
        match self {
            Self::Open { key, .. }
            | Self::Delete { key }
            | Self::Configure { key, .. }
            | Self::BeginHistory { key, .. }
            | Self::InstallOwner { key, .. }
            | Self::RetireGroup { key, .. }
            | Self::Truncate { key, .. } => Some(*key),
            Self::RetireSession(_) => None,
        }
    }
}

/// Settings of one partition of a topic: its share of the topic's size is equal to the others'.
pub fn settings_of(topic: &TopicSettings, partition_id: u32, partitions: u32) -> Settings {
    let durability = |durability| match durability {
        topic_settings::Durability::Replicated => Durability::Replicated,
        topic_settings::Durability::Persisted => Durability::Persisted,
    };
    let size_max = match topic.max_topic_size {
        u64::MAX => u64::MAX,
        size => size / u64::from(partitions.max(1)),
    };
    Settings {
        partition_id,
        segment_size: topic.segment_size,
        preallocate: topic.preallocate_segments,
        durability: durability(topic.durability),
        consumer_offset_durability: durability(topic.consumer_offset_durability),
        message_expiry: topic.message_expiry,
        size_max,
    }
}

fn member_of(session: SessionKey) -> Member {
    Member {
        client: session.client,
        session: session.session,
    }
}

/// The orders that follow from `events`, given the state after them. `counters` makes the counters of a new partition.
pub fn orders(
    events: &[Event],
    state: &Metadata,
    counters: &mut dyn FnMut(PartitionKey) -> Arc<PartitionCounters>,
) -> Vec<Order> {
    let mut orders = Vec::new();
    for event in events {
        match event {
            Event::PartitionCreated { key, settings, members } => {
                let partitions = state
                    .topic_by_id(key.stream_id, key.topic_id)
                    .map_or(1, Topic::partitions_count);
                let settings = settings_of(settings, key.partition_id, partitions);
                let history = History {
                    losses: 0,
                    incarnation: key.incarnation,
                };
                let members = Members::new(members.clone());
                let counters = counters_of(*key, &members, counters);
                orders.push(Order::Open {
                    key: *key,
                    members,
                    settings,
                    history,
                    created: true,
                    counters,
                });
            }
            Event::HistoryBegun { key, history } => orders.push(Order::BeginHistory {
                key: *key,
                history: *history,
            }),
            Event::PartitionDeleted { key } => orders.push(Order::Delete { key: *key }),
            Event::TruncatePartition { key, before_offset } => {
                orders.push(Order::Truncate {
                    key: *key,
                    before: *before_offset,
                });
            }
            Event::TopicSettingsChanged { topic, settings } => {
                let found = state.topic_by_key(topic);
                let keys = found.into_iter().flat_map(|found| keys_of(found, topic.stream_id));
                let partitions = found.map_or(1, Topic::partitions_count);
                orders.extend(keys.map(|key| Order::Configure {
                    key,
                    settings: settings_of(settings, key.partition_id, partitions),
                }));
            }
            Event::OwnersChanged { group, changes } => orders.extend(installs(state, group, changes)),
            Event::GroupDeleted { group } => {
                let topic = state.topic_by_id(group.stream_id, group.topic_id);
                let keys = topic.into_iter().flat_map(|topic| keys_of(topic, group.stream_id));
                let generation = state.applied().op;
                orders.extend(keys.map(|key| Order::RetireGroup {
                    key,
                    group: group.group_id,
                    generation,
                }));
            }
            Event::SessionEnded { session, .. } => orders.push(Order::RetireSession(member_of(*session))),
            Event::SessionOpened { .. } | Event::UserRevoked { .. } => {}
        }
    }
    orders
}

/// The counters of a partition. A member without others is in sync from the first: its client may look at once.
fn counters_of(
    key: PartitionKey,
    members: &Members,
    counters: &mut dyn FnMut(PartitionKey) -> Arc<PartitionCounters>,
) -> Arc<PartitionCounters> {
    let counters = counters(key);
    if let [only] = members.nodes() {
        counters.set_in_sync([*only].into_iter());
    }
    counters
}

fn keys_of(topic: &Topic, stream_id: u32) -> impl Iterator<Item = PartitionKey> + '_ {
    (0..topic.partitions_count()).filter_map(move |id| topic.partition_key(stream_id, id))
}

fn installs<'a>(
    state: &'a Metadata,
    group: &'a GroupKey,
    changes: &'a [OwnerChange],
) -> impl Iterator<Item = Order> + 'a {
    let topic = state.topic_by_id(group.stream_id, group.topic_id);
    changes.iter().filter_map(move |change| {
        let key = topic?.partition_key(group.stream_id, change.partition_id)?;
        let member = change.owner.map(|owner| member_of(owner.session));
        Some(Order::InstallOwner {
            key,
            group: group.group_id,
            generation: change.owner_generation,
            member,
        })
    })
}

/// The orders that bring the partitions of a restarted node to what the metadata says.
pub fn orders_at_start(
    state: &Metadata,
    counters: &mut dyn FnMut(PartitionKey) -> Arc<PartitionCounters>,
) -> Vec<Order> {
    let mut orders = Vec::new();
    for (key, topic, partition) in state.partitions() {
        let settings = settings_of(&topic.settings, key.partition_id, topic.partitions_count());
        let members = Members::new(partition.members.clone());
        let counters = counters_of(key, &members, counters);
        orders.push(Order::Open {
            key,
            members,
            settings,
            history: partition.history,
            created: false,
            counters,
        });
        if partition.truncated_before > 0 {
            orders.push(Order::Truncate {
                key,
                before: partition.truncated_before,
            });
        }
        for group in topic.groups.values() {
            let Some(slot) = group.slot(key.partition_id) else {
                continue;
            };
            let member = group.owner(key.partition_id).map(|owner| member_of(owner.session));
            let generation = slot.owner_generation;
            orders.push(Order::InstallOwner {
                key,
                group: group.id,
                generation,
                member,
            });
        }
    }
    orders
}
