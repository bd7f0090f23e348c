//! The whole metadata state and its lookups.

use std::sync::Arc;

use iggy_protocol::limits::MAX_STREAMS;
use iggy_protocol::{ErrorCode, Identifier, Name};
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::change::{StreamRef, UserRef};
use crate::change_log::ChangeLog;
use crate::keys::{GroupKey, IdSpace, PartitionKey, SessionKey, TopicKey};
use crate::limits::{Limits, USERS_MAX};
use crate::model::group::Group;
use crate::model::session::Session;
use crate::model::stream::Stream;
use crate::model::topic::{Partition, Topic};
use crate::model::user::{ROOT_USER_ID, Token, User};
use crate::position::Position;

/// The metadata of the cluster as of one position of its log.
///
/// Cloning is cheap: the maps are persistent and share everything that did not change, so a node publishes a clone after
/// each entry and reads it without locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    pub(crate) applied: Position,
    pub(crate) log_id: u128,
    pub(crate) limits: Limits,
    pub(crate) streams: OrdMap<u32, Arc<Stream>>,
    pub(crate) stream_names: OrdMap<Name, u32>,
    pub(crate) stream_ids: IdSpace,
    pub(crate) users: OrdMap<u32, Arc<User>>,
    pub(crate) user_names: OrdMap<Name, u32>,
    pub(crate) user_ids: IdSpace,
    /// Owners of tokens by the token's hash, for logins.
    pub(crate) tokens: OrdMap<[u8; 32], TokenOwner>,
    pub(crate) sessions: OrdMap<u128, Arc<Session>>,
    /// Clients by session number, which is their age.
    pub(crate) session_order: OrdMap<u64, u128>,
    pub(crate) changes: ChangeLog,
}

/// Where a token hash leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenOwner {
    pub user_id: u32,
    pub name: Name,
}

/// Sizes of the state, for statistics and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Streams.
    pub streams: u32,
    /// Topics of all streams.
    pub topics: u32,
    /// Partitions of all topics.
    pub partitions: u32,
    /// Consumer groups of all topics.
    pub groups: u32,
    /// Users.
    pub users: u32,
    /// Sessions.
    pub sessions: u32,
}

impl Default for Metadata {
    fn default() -> Self {
        Self::new()
    }
}

impl Metadata {
    /// The state before the first entry: nothing, not even the root user.
    pub fn new() -> Self {
        Self {
            applied: Position::default(),
            log_id: 0,
            limits: Limits::default(),
            streams: OrdMap::new(),
            stream_names: OrdMap::new(),
            stream_ids: IdSpace::new(MAX_STREAMS),
            users: OrdMap::new(),
            user_names: OrdMap::new(),
            user_ids: IdSpace::starting_at(ROOT_USER_ID + 1, USERS_MAX),
            tokens: OrdMap::new(),
            sessions: OrdMap::new(),
            session_order: OrdMap::new(),
            changes: ChangeLog::default(),
        }
    }

    /// Position of the last applied entry.
    pub fn applied(&self) -> Position {
        self.applied
    }

    /// Identity of this history, 0 before the bootstrap entry.
    pub fn log_id(&self) -> u128 {
        self.log_id
    }

    /// The bounds in force. A primary whose configuration says otherwise proposes [`Change::SetLimits`](crate::Change).
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the bootstrap entry was applied.
    pub fn is_bootstrapped(&self) -> bool {
        !self.users.is_empty()
    }

    /// Sizes of the state.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            streams: self.streams.len() as u32,
            users: self.users.len() as u32,
            sessions: self.sessions.len() as u32,
            ..Counts::default()
        };
        for topic in self.streams.values().flat_map(|stream| stream.topics.values()) {
            counts.topics += 1;
            counts.partitions += topic.partitions_count();
            counts.groups += topic.groups.len() as u32;
        }
        counts
    }

    /// All streams by ascending id.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values().map(AsRef::as_ref)
    }

    /// All users by ascending id.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values().map(AsRef::as_ref)
    }

    /// All sessions, oldest first.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.session_order
            .values()
            .filter_map(|client| self.sessions.get(client))
            .map(AsRef::as_ref)
    }

    /// Every partition with its topic, for a node that starts from this state.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionKey, &Topic, &Partition)> {
        self.streams.values().flat_map(|stream| {
            stream.topics.values().flat_map(move |topic| {
                topic
                    .partition_keys(stream.id)
                    .zip(topic.partitions.iter())
                    .map(move |(key, partition)| (key, topic.as_ref(), partition))
            })
        })
    }

    /// The stream an identifier names, or `StreamIdNotFound` / `StreamNameNotFound`.
    pub fn stream(&self, id: &Identifier) -> Result<&Stream, ErrorCode> {
        match id {
            Identifier::Numeric(id) => self.stream_by_id(*id).ok_or(ErrorCode::StreamIdNotFound),
            Identifier::Named(name) => self
                .stream_names
                .get(name)
                .and_then(|id| self.stream_by_id(*id))
                .ok_or(ErrorCode::StreamNameNotFound),
        }
    }

    /// The stream of an id.
    pub fn stream_by_id(&self, id: u32) -> Option<&Stream> {
        self.streams.get(&id).map(AsRef::as_ref)
    }

    /// The topic two identifiers name, with its stream; a missing one is told apart as on the wire.
    pub fn topic(&self, stream: &Identifier, topic: &Identifier) -> Result<(&Stream, &Topic), ErrorCode> {
        let stream = self.stream(stream)?;
        let found = match topic {
            Identifier::Numeric(id) => stream.topics.get(id).ok_or(ErrorCode::TopicIdNotFound)?,
            Identifier::Named(name) => stream
                .topic_names
                .get(name)
                .and_then(|id| stream.topics.get(id))
                .ok_or(ErrorCode::TopicNameNotFound)?,
        };
        Ok((stream, found.as_ref()))
    }

    /// The topic of two ids.
    pub fn topic_by_id(&self, stream_id: u32, topic_id: u32) -> Option<&Topic> {
        self.stream_by_id(stream_id)?.topics.get(&topic_id).map(AsRef::as_ref)
    }

    /// The topic of a key, if it still is the same one.
    pub fn topic_by_key(&self, key: &TopicKey) -> Option<&Topic> {
        self.topic_by_id(key.stream_id, key.topic_id)
            .filter(|topic| topic.created_op == key.created_op)
    }

    /// The partition a request names, or `PartitionNotFound` after the refusals of [`topic`](Self::topic).
    pub fn partition(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        partition_id: u32,
    ) -> Result<(PartitionKey, &Topic), ErrorCode> {
        let (stream, topic) = self.topic(stream, topic)?;
        let key = topic
            .partition_key(stream.id, partition_id)
            .ok_or(ErrorCode::PartitionNotFound)?;
        Ok((key, topic))
    }

    /// The partition of a key, if it still is the same one.
    pub fn partition_by_key(&self, key: &PartitionKey) -> Option<(&Topic, &Partition)> {
        let topic = self.topic_by_id(key.stream_id, key.topic_id)?;
        let partition = topic.partition(key.partition_id)?;
        (partition.incarnation == key.incarnation).then_some((topic, partition))
    }

    /// The group an identifier names within a topic, or `ConsumerGroupIdNotFound` / `ConsumerGroupNameNotFound`.
    pub fn group<'a>(&self, topic: &'a Topic, group: &Identifier) -> Result<&'a Group, ErrorCode> {
        let found = match group {
            Identifier::Numeric(id) => topic.groups.get(id).ok_or(ErrorCode::ConsumerGroupIdNotFound)?,
            Identifier::Named(name) => topic
                .group_names
                .get(name)
                .and_then(|id| topic.groups.get(id))
                .ok_or(ErrorCode::ConsumerGroupNameNotFound)?,
        };
        Ok(found.as_ref())
    }

    /// The group of a key, if it still is the same one.
    pub fn group_by_key(&self, key: &GroupKey) -> Option<&Group> {
        self.topic_by_id(key.stream_id, key.topic_id)?
            .groups
            .get(&key.group_id)
            .map(AsRef::as_ref)
            .filter(|group| group.created_op == key.created_op)
    }

    /// The user an identifier names, or `ResourceNotFound`.
    pub fn user(&self, id: &Identifier) -> Result<&User, ErrorCode> {
        match id {
            Identifier::Numeric(id) => self.user_by_id(*id),
            Identifier::Named(name) => self.user_by_name(name),
        }
        .ok_or(ErrorCode::ResourceNotFound)
    }

    /// The user of an id.
    pub fn user_by_id(&self, id: u32) -> Option<&User> {
        self.users.get(&id).map(AsRef::as_ref)
    }

    /// The user of a name.
    pub fn user_by_name(&self, name: &str) -> Option<&User> {
        self.user_names.get(name).and_then(|id| self.user_by_id(*id))
    }

    /// The user a token's SHA-256 belongs to, with the token.
    pub fn token(&self, hash: &[u8; 32]) -> Option<(&User, &Token)> {
        let owner = self.tokens.get(hash)?;
        let user = self.user_by_id(owner.user_id)?;
        user.tokens.get(&owner.name).map(|token| (user, token))
    }

    /// The live session of a key.
    pub fn session(&self, key: SessionKey) -> Option<&Session> {
        self.session_of_client(key.client).filter(|session| session.key == key)
    }

    /// The live session of a client id, whatever its number.
    pub fn session_of_client(&self, client: u128) -> Option<&Session> {
        self.sessions.get(&client).map(AsRef::as_ref)
    }

    pub(crate) fn stream_by_ref(&self, stream: &StreamRef) -> Option<&Stream> {
        self.stream_by_id(stream.stream_id)
            .filter(|found| found.created_op == stream.created_op)
    }

    pub(crate) fn user_by_ref(&self, user: &UserRef) -> Option<&User> {
        self.user_by_id(user.user_id)
            .filter(|found| found.created_at == user.created_at)
    }

    pub(crate) fn stream_mut(&mut self, stream_id: u32) -> Option<&mut Stream> {
        self.streams.get_mut(&stream_id).map(Arc::make_mut)
    }

    pub(crate) fn topic_mut(&mut self, stream_id: u32, topic_id: u32) -> Option<&mut Topic> {
        self.stream_mut(stream_id)?.topics.get_mut(&topic_id).map(Arc::make_mut)
    }

    pub(crate) fn group_mut(&mut self, key: &GroupKey) -> Option<&mut Group> {
        self.topic_mut(key.stream_id, key.topic_id)?
            .groups
            .get_mut(&key.group_id)
            .map(Arc::make_mut)
            .filter(|group| group.created_op == key.created_op)
    }

    pub(crate) fn user_mut(&mut self, user_id: u32) -> Option<&mut User> {
        self.users.get_mut(&user_id).map(Arc::make_mut)
    }

    pub(crate) fn session_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.sessions
            .get_mut(&key.client)
            .map(Arc::make_mut)
            .filter(|session| session.key == key)
    }
}
