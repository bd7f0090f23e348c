//! Streams: creation, renaming, deletion.

use std::sync::Arc;

use iggy_protocol::options::Options;
use iggy_protocol::{ErrorCode, Name};
use imbl::OrdMap;

use super::{Ruling, Step};
use crate::change::StreamRef;
use crate::change_log::{Fact, fact};
use crate::metadata::Metadata;
use crate::model::stream::Stream;
use crate::options::StoredOptions;
use crate::queries::encode;
use crate::receipt::Outcome;

impl Metadata {
    pub(super) fn create_stream(&mut self, step: &mut Step, name: &Name, explicit: &Options) -> Ruling {
        if self.stream_names.contains_key(name) {
            return Err(ErrorCode::StreamNameAlreadyExists);
        }
        let streams = &self.streams;
        let id = self
            .stream_ids
            .take(|id| streams.contains_key(&id))
            .ok_or(ErrorCode::TooManyStreams)?;
        let stream = Stream {
            id,
            name: name.clone(),
            created_at: step.at.timestamp,
            created_op: step.at.op,
            options: StoredOptions::of_stream(explicit.clone()),
            topics: OrdMap::new(),
            topic_names: OrdMap::new(),
            topic_ids: Stream::topic_id_space(),
        };
        let payload = encode::new_stream(&stream);
        step.facts.push(Fact::StreamCreated(fact::stream_body(&stream)));
        self.stream_names.insert(name.clone(), id);
        self.streams.insert(id, Arc::new(stream));
        Ok(Outcome::Done(payload))
    }

    pub(super) fn update_stream(&mut self, step: &mut Step, stream: &StreamRef, name: &Name) -> Ruling {
        let found = self.stream_by_ref(stream).ok_or(ErrorCode::StreamIdNotFound)?;
        let old_name = found.name.clone();
        if self.stream_names.get(name).is_some_and(|id| *id != stream.stream_id) {
            return Err(ErrorCode::StreamNameAlreadyExists);
        }
        self.stream_names.remove(&old_name);
        self.stream_names.insert(name.clone(), stream.stream_id);
        if let Some(found) = self.stream_mut(stream.stream_id) {
            found.name = name.clone();
            step.facts.push(Fact::StreamUpdated(fact::stream_body(found)));
        }
        Ok(Outcome::EMPTY)
    }

    pub(super) fn delete_stream(&mut self, step: &mut Step, stream: &StreamRef) -> Ruling {
        let found = self.stream_by_ref(stream).ok_or(ErrorCode::StreamIdNotFound)?;
        let deleted = fact::stream_deleted(found);
        let name = found.name.clone();
        let topics: Vec<_> = found.topics.values().map(|topic| topic.key(found.id)).collect();
        for topic in &topics {
            self.remove_topic(step, topic);
        }
        self.streams.remove(&stream.stream_id);
        self.stream_names.remove(&name);
        step.facts.push(deleted);
        self.prune_stream_permissions(step, stream.stream_id);
        Ok(Outcome::EMPTY)
    }
}
