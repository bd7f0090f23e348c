//! Streams, topics, partitions and segments.

use iggy_protocol::limits::MAX_PARTITIONS_PER_REQUEST;
use iggy_protocol::option_catalog::{Scope, check_create};
use iggy_protocol::request::partition::{CreatePartitions, DeletePartitions};
use iggy_protocol::request::segment::DeleteSegments;
use iggy_protocol::request::stream::{CreateStream, DeleteStream};
use iggy_protocol::request::topic::{CreateTopic, DeleteTopic};
use iggy_protocol::topic_settings::TopicSettings;
use iggy_protocol::{Command, ErrorCode, Identifier, PermissionClass};

use super::{Admission, Admitted, PendingTruncation, Settings};
use crate::access::Target;
use crate::change::{Change, StreamRef};
use crate::metadata::Metadata;
use crate::model::stream::Stream;
use crate::model::topic::Topic;
use crate::options::StoredOptions;
use crate::placement::place;

const ENCRYPTION_KEY: &str = "encryption_key";

impl Metadata {
    pub(super) fn admit_create_stream(&self, user_id: u32, request: CreateStream) -> Admitted {
        self.authorize(user_id, Command::CreateStream, Target::Nothing)?;
        let explicit = check_create(Scope::Stream, &request.options).map_err(|error| error.code())?;
        if explicit.contains(ENCRYPTION_KEY) {
            // No server key exists that could wrap a stream's key.
            return Err(ErrorCode::StreamEncryptionUnavailable);
        }
        if self.stream_names.contains_key(&request.name) {
            return Err(ErrorCode::StreamNameAlreadyExists);
        }
        self.stream_ids
            .peek(|id| self.streams.contains_key(&id))
            .ok_or(ErrorCode::TooManyStreams)?;
        Ok(Admission::Ready(Change::CreateStream {
            name: request.name,
            explicit,
        }))
    }

    pub(super) fn admit_delete_stream(&self, user_id: u32, request: &DeleteStream) -> Admitted {
        let stream = self.permitted_stream(user_id, Command::DeleteStream.permission(), &request.stream)?;
        Ok(Admission::Ready(Change::DeleteStream {
            stream: StreamRef::of(stream),
        }))
    }

    pub(super) fn admit_create_topic(&self, settings: &Settings, user_id: u32, request: CreateTopic) -> Admitted {
        let stream = self.permitted_stream(user_id, Command::CreateTopic.permission(), &request.stream)?;
        check_request_count(request.partitions_count)?;
        let explicit = check_create(Scope::Topic, &request.options).map_err(|error| error.code())?;
        let options = StoredOptions::of_topic(explicit.clone(), &settings.topic_defaults);
        let effective = options.topic_settings();
        effective
            .validate(request.partitions_count)
            .map_err(|error| error.code())?;
        let factor = replication_factor(settings, &effective)?;
        if stream.topic_names.contains_key(&request.name) {
            return Err(ErrorCode::TopicNameAlreadyExists);
        }
        stream
            .topic_ids
            .peek(|id| stream.topics.contains_key(&id))
            .ok_or(ErrorCode::TooManyTopics)?;
        Ok(Admission::Ready(Change::CreateTopic {
            stream: StreamRef::of(stream),
            name: request.name,
            explicit,
            defaults: settings.topic_defaults.clone(),
            placement: place(self, &settings.places, request.partitions_count, factor),
        }))
    }

    pub(super) fn admit_delete_topic(&self, user_id: u32, request: &DeleteTopic) -> Admitted {
        let class = Command::DeleteTopic.permission();
        let (stream, topic) = self.permitted_topic(user_id, class, &request.stream, &request.topic)?;
        Ok(Admission::Ready(Change::DeleteTopic {
            topic: topic.key(stream.id),
        }))
    }

    pub(super) fn admit_create_partitions(
        &self,
        settings: &Settings,
        user_id: u32,
        request: &CreatePartitions,
    ) -> Admitted {
        let class = Command::CreatePartitions.permission();
        let (stream, topic) = self.permitted_topic(user_id, class, &request.stream, &request.topic)?;
        check_resizable(topic)?;
        check_request_count(request.partitions_count)?;
        topic
            .settings
            .validate(request.partitions_count)
            .map_err(|error| error.code())?;
        let factor = replication_factor(settings, &topic.settings)?;
        let placement = place(self, &settings.places, request.partitions_count, factor);
        Ok(Admission::Ready(Change::CreatePartitions {
            topic: topic.key(stream.id),
            placement,
        }))
    }

    pub(super) fn admit_delete_partitions(&self, user_id: u32, request: &DeletePartitions) -> Admitted {
        let class = Command::DeletePartitions.permission();
        let (stream, topic) = self.permitted_topic(user_id, class, &request.stream, &request.topic)?;
        check_resizable(topic)?;
        check_request_count(request.partitions_count)?;
        if request.partitions_count > topic.partitions_count() {
            return Err(ErrorCode::InvalidPartitionsCount);
        }
        Ok(Admission::Ready(Change::DeletePartitions {
            topic: topic.key(stream.id),
            count: request.partitions_count,
        }))
    }

    pub(super) fn admit_delete_segments(&self, user_id: u32, request: &DeleteSegments) -> Admitted {
        let class = Command::DeleteSegments.permission();
        let (stream, topic) = self.permitted_topic(user_id, class, &request.stream, &request.topic)?;
        if request.segments_count == 0 {
            return Err(ErrorCode::InvalidSegmentsCount);
        }
        let partition = topic
            .partition_key(stream.id, request.partition_id)
            .ok_or(ErrorCode::PartitionNotFound)?;
        let segments_count = request.segments_count;
        Ok(Admission::ResolveSegments(PendingTruncation {
            partition,
            segments_count,
        }))
    }

    pub(crate) fn permitted_stream(
        &self,
        user_id: u32,
        class: PermissionClass,
        stream: &Identifier,
    ) -> Result<&Stream, ErrorCode> {
        self.permit(user_id, class, self.stream(stream), |stream| Target::Stream(stream.id))
    }

    /// The topic two identifiers name, for a user with a permission on it. A missing one is told only to a user who has
    /// the permission globally; for others it is `Unauthorized`.
    pub fn permitted_topic(
        &self,
        user_id: u32,
        class: PermissionClass,
        stream: &Identifier,
        topic: &Identifier,
    ) -> Result<(&Stream, &Topic), ErrorCode> {
        self.permit(user_id, class, self.topic(stream, topic), |(stream, topic)| {
            Target::Topic {
                stream_id: stream.id,
                topic_id: topic.id,
            }
        })
    }
}

fn check_request_count(count: u32) -> Result<(), ErrorCode> {
    match count {
        0 => Err(ErrorCode::InvalidPartitionsCount),
        1..=MAX_PARTITIONS_PER_REQUEST => Ok(()),
        _ => Err(ErrorCode::TooManyPartitions),
    }
}

fn check_resizable(topic: &Topic) -> Result<(), ErrorCode> {
    if topic.settings.fixed_partitions {
        Err(ErrorCode::PartitionResizeDisabled)
    } else {
        Ok(())
    }
}

/// The replicas of each partition: at least one, and no more than there are nodes.
fn replication_factor(settings: &Settings, effective: &TopicSettings) -> Result<u32, ErrorCode> {
    let factor = effective.replication_factor.unwrap_or(1);
    if factor == 0 || factor as usize > settings.places.len() {
        return Err(ErrorCode::InvalidReplicationFactor);
    }
    Ok(factor)
}
