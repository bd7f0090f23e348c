//! The whole state as bytes: snapshots, restores, and a hash by which replicas compare.
//!
//! A snapshot starts with the number of its format. A restore reads nothing it does not fully understand: another
//! format, damaged bytes and trailing bytes are refused, and no input makes it panic. Damage that still decodes is the
//! caller's to find, by the checksum it stores beside the snapshot.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::metadata::Metadata;

/// Number of the format this version writes and reads.
pub const SNAPSHOT_FORMAT: u32 = 1;

const FORMAT_BYTES: usize = 4;

/// A snapshot that cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Too short to hold a format number.
    #[error("a metadata snapshot starts with 4 bytes of format number, this one has {0} bytes")]
    Truncated(usize),
    /// Written by a version this one does not know.
    #[error("metadata snapshot format {found} is not supported, this version reads {SNAPSHOT_FORMAT}")]
    Format {
        /// The number found.
        found: u32,
    },
    /// The bytes are no snapshot.
    #[error("a metadata snapshot cannot be read: {0}")]
    Malformed(#[from] rmp_serde::decode::Error),
    /// Bytes follow the snapshot.
    #[error("{0} bytes follow the end of a metadata snapshot")]
    Trailing(usize),
    /// The parts do not fit together.
    #[error("a metadata snapshot contradicts itself: {0}")]
    Inconsistent(&'static str),
}

impl Metadata {
    /// The state as bytes, the same on every replica that applied the same entries.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut bytes = SNAPSHOT_FORMAT.to_le_bytes().to_vec();
        let mut serializer = rmp_serde::Serializer::new(&mut bytes);
        // Writing into memory fails only for a type of unknown length, and no field here is one.
        self.serialize(&mut serializer)
            .expect("the state serialises into memory");
        bytes
    }

    /// Reads a state back.
    pub fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let (format, mut rest) = bytes
            .split_first_chunk::<FORMAT_BYTES>()
            .ok_or(SnapshotError::Truncated(bytes.len()))?;
        let found = u32::from_le_bytes(*format);
        if found != SNAPSHOT_FORMAT {
            return Err(SnapshotError::Format { found });
        }
        let mut metadata = Self::deserialize(&mut rmp_serde::Deserializer::new(&mut rest))?;
        if !rest.is_empty() {
            return Err(SnapshotError::Trailing(rest.len()));
        }
        metadata.check()?;
        metadata.compute_settings();
        Ok(metadata)
    }

    /// A number by which replicas compare their state.
    pub fn hash(&self) -> u128 {
        xxh3_128(&self.snapshot())
    }

    /// Computes what a snapshot leaves out.
    fn compute_settings(&mut self) {
        let topics: Vec<(u32, u32)> = self
            .streams()
            .flat_map(|stream| stream.topics.keys().map(|topic_id| (stream.id, *topic_id)))
            .collect();
        for (stream_id, topic_id) in topics {
            if let Some(topic) = self.topic_mut(stream_id, topic_id) {
                topic.settings = Arc::new(topic.options.topic_settings());
            }
        }
    }

    /// Checks what lookups rely on: every index leads to what it names.
    fn check(&self) -> Result<(), SnapshotError> {
        let inconsistent = |what| Err(SnapshotError::Inconsistent(what));
        let streams_fit = self.stream_names.len() == self.streams.len()
            && self
                .streams
                .iter()
                .all(|(id, stream)| stream.id == *id && self.stream_names.get(&stream.name) == Some(id));
        if !streams_fit {
            return inconsistent("stream names and streams differ");
        }
        for stream in self.streams.values() {
            let topics_fit = stream.topic_names.len() == stream.topics.len()
                && stream
                    .topics
                    .iter()
                    .all(|(id, topic)| topic.id == *id && stream.topic_names.get(&topic.name) == Some(id));
            if !topics_fit {
                return inconsistent("topic names and topics differ");
            }
            for topic in stream.topics.values() {
                let groups_fit = topic.group_names.len() == topic.groups.len()
                    && topic.groups.iter().all(|(id, group)| {
                        group.id == *id
                            && topic.group_names.get(&group.name) == Some(id)
                            && group.partitions_count() == topic.partitions_count()
                    });
                if !groups_fit {
                    return inconsistent("consumer group names, groups and partitions differ");
                }
            }
        }
        let users_fit = self.user_names.len() == self.users.len()
            && self
                .users
                .iter()
                .all(|(id, user)| user.id == *id && self.user_names.get(&user.username) == Some(id));
        if !users_fit {
            return inconsistent("user names and users differ");
        }
        let tokens = self.users.values().map(|user| user.tokens.len()).sum::<usize>();
        if tokens != self.tokens.len() || !self.tokens.keys().all(|hash| self.token(hash).is_some()) {
            return inconsistent("token hashes and tokens differ");
        }
        let sessions_fit = self.session_order.len() == self.sessions.len()
            && self.sessions.iter().all(|(client, session)| {
                session.key.client == *client && self.session_order.get(&session.key.session) == Some(client)
            });
        if !sessions_fit {
            return inconsistent("session numbers and sessions differ");
        }
        Ok(())
    }
}
