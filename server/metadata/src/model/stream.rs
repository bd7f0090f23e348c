//! Streams: named sets of topics.

use std::sync::Arc;

use iggy_protocol::Name;
use iggy_protocol::limits::MAX_TOPICS_PER_STREAM;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::keys::IdSpace;
use crate::model::topic::Topic;
use crate::options::StoredOptions;

/// A stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Id.
    pub id: u32,
    /// Name, unique among streams.
    pub name: Name,
    /// Microseconds since the Unix epoch.
    pub created_at: u64,
    /// Position that created it.
    pub created_op: u64,
    /// Options as set by the client and as filled in by the server.
    pub options: StoredOptions,
    /// Topics by id.
    pub topics: OrdMap<u32, Arc<Topic>>,
    /// Topic ids by name.
    pub topic_names: OrdMap<Name, u32>,
    /// Ids of topics to come.
    pub topic_ids: IdSpace,
}

impl Stream {
    /// The ids for topics of a new stream.
    pub const fn topic_id_space() -> IdSpace {
        IdSpace::new(MAX_TOPICS_PER_STREAM)
    }
}
