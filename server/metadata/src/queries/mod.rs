//! Reads of the metadata: what is there, answered as the wire wants it.
//!
//! Sizes and message counts live in the partitions; they come through [`PartitionCounters`]. Everything else is read from
//! one state, so an answer is never a mix of two positions.

mod changes;
mod current;
pub(crate) mod encode;

use bytes::{Bytes, BytesMut};
use iggy_protocol::option_catalog::described;
use iggy_protocol::reply::group::{Assignment, ConsumerGroups};
use iggy_protocol::reply::stream::{StreamDetails, Streams};
use iggy_protocol::reply::system::{OptionDescription, OptionDescriptions};
use iggy_protocol::reply::topic::Topics;
use iggy_protocol::reply::user::{PersonalAccessToken, PersonalAccessTokens, Users};
use iggy_protocol::request::Empty;
use iggy_protocol::request::group::{GetConsumerGroup, GetConsumerGroups, SyncConsumerGroup};
use iggy_protocol::request::stream::GetStream;
use iggy_protocol::request::system::DescribeOptions;
use iggy_protocol::request::topic::{GetTopic, GetTopics};
use iggy_protocol::request::user::GetUser;
use iggy_protocol::{Command, Encode, ErrorCode, Identifier, Name};

use crate::access::Target;
use crate::admission::decode;
use crate::keys::{GroupKey, PartitionKey, SessionKey};
use crate::metadata::Metadata;
use crate::model::topic::Topic;

/// What a partition knows of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments.
    pub segments_count: u32,
    /// Offset of the newest message, 0 when there is none.
    pub current_offset: u64,
    /// Bytes of all messages.
    pub size_bytes: u64,
    /// Messages.
    pub messages_count: u64,
    /// Replicas in sync, ascending; empty until the primary first reports.
    pub in_sync: Vec<u8>,
}

/// Where reads get the counters of partitions from.
pub trait PartitionCounters {
    /// Counters of one partition; the default for one that has not reported yet.
    fn of(&self, key: &PartitionKey) -> Counters;
}

impl PartitionCounters for () {
    /// Nothing is known of any partition.
    fn of(&self, _: &PartitionKey) -> Counters {
        Counters::default()
    }
}

/// What a partition route (wire 7.2) repeats of the metadata; view and primary are the answering replica's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The partition.
    pub partition: PartitionKey,
    /// Its history, as clients name it.
    pub incarnation: u64,
    /// Partitions of its topic.
    pub partitions_count: u32,
    /// Position as of which the two hold.
    pub metadata_op: u64,
    /// Replicas that store the partition, in member order.
    pub members: Vec<u8>,
}

impl Metadata {
    /// Answers a read of the metadata for a signed-in user: the reply's body, or the status it is refused with.
    ///
    /// Serves options.describe, metadata.changes and the get, list and sync commands of streams, topics, groups, users and
    /// tokens; any other command is refused with `InvalidCommand`. `session` is the caller's own, for sync.
    pub fn query(
        &self,
        user_id: u32,
        session: SessionKey,
        command: Command,
        body: &[u8],
        counters: &dyn PartitionCounters,
    ) -> Result<Bytes, ErrorCode> {
        let mut out = BytesMut::new();
        match command {
            Command::GetStream => self.get_stream(user_id, &decode(body)?, counters, &mut out)?,
            Command::GetStreams => self.get_streams(user_id, decode(body)?, counters, &mut out)?,
            Command::GetTopic => self.get_topic(user_id, &decode(body)?, counters, &mut out)?,
            Command::GetTopics => self.get_topics(user_id, &decode(body)?, counters, &mut out)?,
            Command::GetConsumerGroup => self.get_group(user_id, &decode(body)?, &mut out)?,
            Command::GetConsumerGroups => self.get_groups(user_id, &decode(body)?, &mut out)?,
            Command::SyncConsumerGroup => self.sync_group(user_id, session, &decode(body)?, &mut out)?,
            Command::GetUser => self.get_user(user_id, &decode(body)?, &mut out)?,
            Command::GetUsers => self.get_users(user_id, decode(body)?, &mut out)?,
            Command::GetPersonalAccessTokens => self.get_tokens(user_id, decode(body)?, &mut out)?,
            Command::DescribeOptions => self.describe_options(user_id, &decode(body)?, &mut out)?,
            Command::GetMetadataChanges => {
                self.authorize(user_id, command, Target::Nothing)?;
                self.metadata_changes(&decode(body)?)?.encode(&mut out);
            }
            _ => return Err(ErrorCode::InvalidCommand),
        }
        Ok(out.freeze())
    }

    /// Resolves a partition route for a user who may send to or poll from the topic.
    pub fn route(
        &self,
        user_id: u32,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
    ) -> Result<Route, ErrorCode> {
        let class = Command::GetPartitionRoute.permission();
        let (stream, topic) = self.permitted_topic(user_id, class, stream, topic)?;
        let partition = topic
            .partition_key(stream.id, partition_id)
            .ok_or(ErrorCode::PartitionNotFound)?;
        let found = topic.partition(partition_id).ok_or(ErrorCode::PartitionNotFound)?;
        Ok(Route {
            partition,
            incarnation: found.history.incarnation,
            partitions_count: topic.partitions_count(),
            metadata_op: self.applied.op,
            members: found.members.clone(),
        })
    }

    /// The partition a request of the partition plane names, for a user who may use the command on its topic:
    /// `PartitionNotFound` after the refusals of [`permitted_topic`](Self::permitted_topic).
    pub fn permitted_partition(
        &self,
        user_id: u32,
        command: Command,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
    ) -> Result<(PartitionKey, &Topic), ErrorCode> {
        let (stream, topic) = self.permitted_topic(user_id, command.permission(), stream, topic)?;
        let key = topic
            .partition_key(stream.id, partition_id)
            .ok_or(ErrorCode::PartitionNotFound)?;
        Ok((key, topic))
    }

    /// Groups a session is a member of, ascending (for the client commands of wire 11.7).
    pub fn groups_of(&self, session: SessionKey) -> Vec<GroupKey> {
        self.session(session)
            .map(|session| session.memberships.iter().copied().collect())
            .unwrap_or_default()
    }

    fn get_stream(
        &self,
        user_id: u32,
        request: &GetStream,
        counters: &dyn PartitionCounters,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let found = self.permitted_stream(user_id, Command::GetStream.permission(), &request.stream);
        let Some(stream) = absent_is_empty(found)? else {
            return Ok(());
        };
        let topics: Vec<_> = stream
            .topics
            .values()
            .map(|topic| encode::topic(stream.id, topic, counters))
            .collect();
        StreamDetails {
            stream: encode::stream(stream, &topics),
            topics,
        }
        .encode(out);
        Ok(())
    }

    fn get_streams(
        &self,
        user_id: u32,
        _: Empty,
        counters: &dyn PartitionCounters,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        self.authorize(user_id, Command::GetStreams, Target::Nothing)?;
        let streams = self.streams().map(|stream| {
            let topics: Vec<_> = stream
                .topics
                .values()
                .map(|topic| encode::topic(stream.id, topic, counters))
                .collect();
            encode::stream(stream, &topics)
        });
        Streams {
            streams: streams.collect(),
        }
        .encode(out);
        Ok(())
    }

    fn get_topic(
        &self,
        user_id: u32,
        request: &GetTopic,
        counters: &dyn PartitionCounters,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let class = Command::GetTopic.permission();
        let found = self.permitted_topic(user_id, class, &request.stream, &request.topic);
        let Some((stream, topic)) = absent_is_empty(found)? else {
            return Ok(());
        };
        encode::topic_details(stream.id, topic, self.applied.op, counters).encode(out);
        Ok(())
    }

    fn get_topics(
        &self,
        user_id: u32,
        request: &GetTopics,
        counters: &dyn PartitionCounters,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let stream = self.permitted_stream(user_id, Command::GetTopics.permission(), &request.stream)?;
        let topics = stream
            .topics
            .values()
            .map(|topic| encode::topic(stream.id, topic, counters));
        Topics {
            topics: topics.collect(),
        }
        .encode(out);
        Ok(())
    }

    fn get_group(&self, user_id: u32, request: &GetConsumerGroup, out: &mut BytesMut) -> Result<(), ErrorCode> {
        let found = self.permitted_topic(
            user_id,
            Command::GetConsumerGroup.permission(),
            &request.stream,
            &request.topic,
        );
        let Some((_, topic)) = absent_is_empty(found)? else {
            return Ok(());
        };
        if let Some(group) = absent_is_empty(self.group(topic, &request.group))? {
            out.extend_from_slice(&encode::group_details(group));
        }
        Ok(())
    }

    fn get_groups(&self, user_id: u32, request: &GetConsumerGroups, out: &mut BytesMut) -> Result<(), ErrorCode> {
        let class = Command::GetConsumerGroups.permission();
        let (_, topic) = self.permitted_topic(user_id, class, &request.stream, &request.topic)?;
        ConsumerGroups {
            groups: topic.groups.values().map(|group| encode::group(group)).collect(),
        }
        .encode(out);
        Ok(())
    }

    fn sync_group(
        &self,
        user_id: u32,
        session: SessionKey,
        request: &SyncConsumerGroup,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let class = Command::SyncConsumerGroup.permission();
        let found = self.permitted_topic(user_id, class, &request.stream, &request.topic);
        let Some((_, topic)) = absent_is_empty(found)? else {
            return Ok(());
        };
        let Some(group) = absent_is_empty(self.group(topic, &request.group))? else {
            return Ok(());
        };
        if let Some(member_id) = group.member_of(session) {
            let partitions = group.partitions_of(member_id);
            Assignment {
                generation: group.generation,
                partitions,
            }
            .encode(out);
        }
        Ok(())
    }

    fn get_user(&self, user_id: u32, request: &GetUser, out: &mut BytesMut) -> Result<(), ErrorCode> {
        let found = self.permitted_user(user_id, Command::GetUser, &request.user);
        if let Some(user) = absent_is_empty(found)? {
            out.extend_from_slice(&encode::user_details(user));
        }
        Ok(())
    }

    fn get_users(&self, user_id: u32, _: Empty, out: &mut BytesMut) -> Result<(), ErrorCode> {
        self.authorize(user_id, Command::GetUsers, Target::Nothing)?;
        Users {
            users: self.users().map(encode::user).collect(),
        }
        .encode(out);
        Ok(())
    }

    fn get_tokens(&self, user_id: u32, _: Empty, out: &mut BytesMut) -> Result<(), ErrorCode> {
        let user = self.signed_in(user_id)?;
        let tokens = user.tokens.iter().map(|(name, token)| PersonalAccessToken {
            name: name.clone(),
            expiry_at: token.expiry_at,
        });
        PersonalAccessTokens {
            tokens: tokens.collect(),
        }
        .encode(out);
        Ok(())
    }

    fn describe_options(&self, user_id: u32, request: &DescribeOptions, out: &mut BytesMut) -> Result<(), ErrorCode> {
        self.signed_in(user_id)?;
        let options = described(request.scope).filter_map(|spec| {
            Some(OptionDescription {
                key: Name::new(spec.key).ok()?,
                kind: spec.kind.code(),
                flags: spec.flags(),
                default: spec
                    .default
                    .value()
                    .map(|value| value.bytes().clone())
                    .unwrap_or_default(),
                description: spec.description.to_owned(),
            })
        });
        OptionDescriptions {
            options: options.collect(),
        }
        .encode(out);
        Ok(())
    }

    /// Total of a topic's partitions: bytes and messages.
    pub(crate) fn totals(stream_id: u32, topic: &Topic, counters: &dyn PartitionCounters) -> (u64, u64) {
        topic
            .partition_keys(stream_id)
            .map(|key| counters.of(&key))
            .fold((0, 0), |(bytes, messages), counters| {
                (
                    bytes.saturating_add(counters.size_bytes),
                    messages.saturating_add(counters.messages_count),
                )
            })
    }
}

/// A get of something that does not exist is an empty reply, not an error (wire 9); refusals stay refusals.
fn absent_is_empty<T>(found: Result<T, ErrorCode>) -> Result<Option<T>, ErrorCode> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(
            ErrorCode::StreamIdNotFound
            | ErrorCode::StreamNameNotFound
            | ErrorCode::TopicIdNotFound
            | ErrorCode::TopicNameNotFound
            | ErrorCode::ConsumerGroupIdNotFound
            | ErrorCode::ConsumerGroupNameNotFound
            | ErrorCode::ResourceNotFound,
        ) => Ok(None),
        Err(code) => Err(code),
    }
}
