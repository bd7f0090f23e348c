//! Topics and partitions: creation, options, deletion, truncation.

use std::sync::Arc;

use iggy_protocol::limits::MAX_PARTITIONS_PER_TOPIC;
use iggy_protocol::options::Options;
use iggy_protocol::reply::metadata_record::TopicBody;
use iggy_protocol::{ErrorCode, Name};
use imbl::{OrdMap, Vector};

use super::{Ruling, Step};
use crate::change::StreamRef;
use crate::change_log::{Fact, fact};
use crate::event::Event;
use crate::keys::{PartitionKey, TopicKey};
use crate::metadata::Metadata;
use crate::model::topic::{History, Partition, Topic};
use crate::options::StoredOptions;
use crate::queries::encode;
use crate::receipt::Outcome;

impl Metadata {
    pub(super) fn create_topic(
        &mut self,
        step: &mut Step,
        stream_ref: &StreamRef,
        name: &Name,
        explicit: &Options,
        defaults: &Options,
        placement: &[Vec<u8>],
    ) -> Ruling {
        let stream = self.stream_by_ref(stream_ref).ok_or(ErrorCode::StreamIdNotFound)?;
        if stream.topic_names.contains_key(name) {
            return Err(ErrorCode::TopicNameAlreadyExists);
        }
        let options = StoredOptions::of_topic(explicit.clone(), defaults);
        let settings = options.topic_settings();
        let stream = self
            .stream_mut(stream_ref.stream_id)
            .ok_or(ErrorCode::StreamIdNotFound)?;
        let topics = &stream.topics;
        let id = stream
            .topic_ids
            .take(|id| topics.contains_key(&id))
            .ok_or(ErrorCode::TooManyTopics)?;
        let topic = Topic {
            id,
            name: name.clone(),
            created_at: step.at.timestamp,
            created_op: step.at.op,
            options,
            settings: Arc::new(settings),
            partitions: placement
                .iter()
                .map(|members| step.new_partition(members))
                .collect::<Vector<_>>(),
            groups: OrdMap::new(),
            group_names: OrdMap::new(),
            group_ids: Topic::group_id_space(),
        };
        let payload = encode::new_topic(stream_ref.stream_id, &topic, step.at.op);
        let key = topic.key(stream_ref.stream_id);
        step.partitions_created(&key, &topic, 0);
        stream.topic_names.insert(name.clone(), id);
        stream.topics.insert(id, Arc::new(topic));
        if let Some(body) = self.topic_fact(&key) {
            step.facts.push(Fact::TopicCreated(body));
        }
        Ok(Outcome::Done(payload))
    }

    pub(super) fn update_topic(
        &mut self,
        step: &mut Step,
        key: &TopicKey,
        name: Option<&Name>,
        set: &Options,
        reset: &[Name],
        defaults: &Options,
    ) -> Ruling {
        let topic = self.topic_by_key(key).ok_or(ErrorCode::TopicIdNotFound)?;
        let options = topic.options.updated(set, reset, defaults)?;
        let settings = options.topic_settings();
        let old_name = topic.name.clone();
        let stream = self.stream_mut(key.stream_id).ok_or(ErrorCode::StreamIdNotFound)?;
        if let Some(name) = name {
            if stream.topic_names.get(name).is_some_and(|id| *id != key.topic_id) {
                return Err(ErrorCode::TopicNameAlreadyExists);
            }
            stream.topic_names.remove(&old_name);
            stream.topic_names.insert(name.clone(), key.topic_id);
        }
        let topic = self
            .topic_mut(key.stream_id, key.topic_id)
            .ok_or(ErrorCode::TopicIdNotFound)?;
        if let Some(name) = name {
            topic.name = name.clone();
        }
        topic.options = options;
        if *topic.settings != settings {
            topic.settings = Arc::new(settings);
            step.events.push(Event::TopicSettingsChanged {
                topic: *key,
                settings: Arc::clone(&topic.settings),
            });
        }
        if let Some(body) = self.topic_fact(key) {
            step.facts.push(Fact::TopicUpdated(body));
        }
        Ok(Outcome::EMPTY)
    }

    fn topic_fact(&self, key: &TopicKey) -> Option<TopicBody> {
        let stream = self.stream_by_id(key.stream_id)?;
        self.topic_by_key(key).map(|topic| fact::topic_body(stream, topic))
    }

    pub(super) fn delete_topic(&mut self, step: &mut Step, key: &TopicKey) -> Ruling {
        if self.topic_by_key(key).is_none() {
            return Err(ErrorCode::TopicIdNotFound);
        }
        self.remove_topic(step, key);
        self.prune_topic_permissions(step, key.stream_id, key.topic_id);
        Ok(Outcome::EMPTY)
    }

    /// Removes a topic with its groups and partitions.
    pub(super) fn remove_topic(&mut self, step: &mut Step, key: &TopicKey) {
        let identity = self.topic_identity(key);
        let Some(topic) = self.topic_by_key(key) else { return };
        let deleted = fact::topic_deleted(identity, topic);
        let name = topic.name.clone();
        let partitions: Vec<PartitionKey> = topic.partition_keys(key.stream_id).collect();
        let groups: Vec<_> = topic
            .groups
            .values()
            .map(|group| {
                let sessions: Vec<_> = group.members().map(|(_, session)| session).collect();
                (topic.group_key(key.stream_id, group), sessions)
            })
            .collect();
        for (group, sessions) in groups {
            for session in sessions {
                self.forget_membership(session, &group);
            }
            step.events.push(Event::GroupDeleted { group });
        }
        step.events
            .extend(partitions.into_iter().map(|key| Event::PartitionDeleted { key }));
        if let Some(stream) = self.stream_mut(key.stream_id) {
            stream.topics.remove(&key.topic_id);
            stream.topic_names.remove(&name);
        }
        step.facts.push(deleted);
    }

    pub(super) fn create_partitions(&mut self, step: &mut Step, key: &TopicKey, placement: &[Vec<u8>]) -> Ruling {
        let topic = self.topic_by_key(key).ok_or(ErrorCode::TopicIdNotFound)?;
        if topic.settings.fixed_partitions {
            return Err(ErrorCode::PartitionResizeDisabled);
        }
        let first = topic.partitions_count();
        if u64::from(first) + placement.len() as u64 > u64::from(MAX_PARTITIONS_PER_TOPIC) {
            return Err(ErrorCode::PartitionsLimitReached);
        }
        let topic = self
            .topic_mut(key.stream_id, key.topic_id)
            .ok_or(ErrorCode::TopicIdNotFound)?;
        topic
            .partitions
            .extend(placement.iter().map(|members| step.new_partition(members)));
        let partitions_count = topic.partitions_count();
        step.partitions_created(key, topic, first);
        let identity = self.topic_identity(key);
        step.facts
            .push(fact::partitions_changed(identity, partitions_count, Vec::new()));
        self.resize_groups(step, key);
        Ok(Outcome::EMPTY)
    }

    pub(super) fn delete_partitions(&mut self, step: &mut Step, key: &TopicKey, count: u32) -> Ruling {
        let topic = self.topic_by_key(key).ok_or(ErrorCode::TopicIdNotFound)?;
        if topic.settings.fixed_partitions {
            return Err(ErrorCode::PartitionResizeDisabled);
        }
        let left = topic
            .partitions_count()
            .checked_sub(count)
            .ok_or(ErrorCode::InvalidPartitionsCount)?;
        let removed: Vec<PartitionKey> = topic.partition_keys(key.stream_id).skip(left as usize).collect();
        if let Some(topic) = self.topic_mut(key.stream_id, key.topic_id) {
            topic.partitions.truncate(left as usize);
        }
        let identity = self.topic_identity(key);
        let removed_ids = removed.iter().map(|key| key.partition_id).collect();
        step.facts.push(fact::partitions_changed(identity, left, removed_ids));
        step.events
            .extend(removed.into_iter().rev().map(|key| Event::PartitionDeleted { key }));
        self.resize_groups(step, key);
        Ok(Outcome::EMPTY)
    }

    /// Begins a new history of a partition that lost acknowledged writes. Told twice, it begins once.
    pub(super) fn begin_history(&mut self, step: &mut Step, key: &PartitionKey, losses: u64) -> Ruling {
        let known = self
            .partition_by_key(key)
            .ok_or(ErrorCode::PartitionHistoryChanged)?
            .1
            .history;
        if losses <= known.losses {
            return Ok(Outcome::EMPTY);
        }
        let history = History {
            losses,
            incarnation: step.at.op,
        };
        let topic = self
            .topic_mut(key.stream_id, key.topic_id)
            .ok_or(ErrorCode::PartitionHistoryChanged)?;
        if let Some(partition) = topic.partitions.get_mut(key.partition_id as usize) {
            partition.history = history;
        }
        step.events.push(Event::HistoryBegun { key: *key, history });
        Ok(Outcome::EMPTY)
    }

    pub(super) fn truncate_partition(&mut self, step: &mut Step, key: &PartitionKey, before_offset: u64) -> Ruling {
        if self.partition_by_key(key).is_none() {
            return Err(ErrorCode::PartitionHistoryChanged);
        }
        let topic = self
            .topic_mut(key.stream_id, key.topic_id)
            .ok_or(ErrorCode::PartitionHistoryChanged)?;
        if let Some(partition) = topic.partitions.get_mut(key.partition_id as usize) {
            partition.truncated_before = partition.truncated_before.max(before_offset);
        }
        step.events.push(Event::TruncatePartition {
            key: *key,
            before_offset,
        });
        Ok(Outcome::EMPTY)
    }
}

impl Step {
    fn new_partition(&self, members: &[u8]) -> Partition {
        Partition {
            incarnation: self.at.op,
            created_at: self.at.timestamp,
            members: members.to_vec(),
            truncated_before: 0,
            history: History {
                losses: 0,
                incarnation: self.at.op,
            },
        }
    }

    /// Announces the partitions of a topic from `first` on.
    fn partitions_created(&mut self, key: &TopicKey, topic: &Topic, first: u32) {
        let created = topic
            .partition_keys(key.stream_id)
            .zip(topic.partitions.iter())
            .skip(first as usize);
        self.events
            .extend(created.map(|(key, partition)| Event::PartitionCreated {
                key,
                settings: Arc::clone(&topic.settings),
                members: partition.members.clone(),
            }));
    }
}
