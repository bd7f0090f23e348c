//! The bounded log of what changed, for followers of metadata changes (wire 12).
//!
//! Records of resources and of activity (group members, sessions) are bounded apart, so that busy clients never push the
//! creation of a stream out. A follower whose position gave way is told to rebuild from the current state.

pub(crate) mod fact;
mod scan;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use iggy_protocol::reply::metadata_record::group;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::position::Position;

pub(crate) use fact::{Fact, TopicIdentity, UserKey};
pub(crate) use scan::{Filter, is_selected};

/// Place of one record: its entry and its number within the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub(crate) struct RecordId {
    pub op: u64,
    pub ordinal: u32,
}

/// One record as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub checksum: u128,
    pub timestamp: u64,
    pub actor: Option<u32>,
    pub group: u8,
    pub kind: u8,
    pub body: Bytes,
}

/// Records of one kind of groups, oldest first, with the place up to which they gave way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordRing {
    records: OrdMap<RecordId, Arc<Record>>,
    /// Newest record that gave way; everything after it is here.
    dropped: Option<Dropped>,
}

/// The newest record that gave way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dropped {
    pub id: RecordId,
    pub timestamp: u64,
}

impl RecordRing {
    fn trim(&mut self, limit: u32) {
        while self.records.len() > limit as usize {
            let Some((oldest, record)) = self.records.get_min().cloned() else {
                break;
            };
            self.dropped = Some(Dropped {
                id: oldest,
                timestamp: record.timestamp,
            });
            self.records.remove(&oldest);
        }
    }

    pub(crate) fn dropped(&self) -> Option<Dropped> {
        self.dropped
    }
}

/// Every record that is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeLog {
    resources: RecordRing,
    activity: RecordRing,
}

/// Groups whose records come with every client's comings and goings.
const ACTIVITY_GROUPS: [u8; 2] = [group::CONSUMER_GROUP_MEMBERS, group::SESSIONS];

/// Whether a group's records are bounded as activity.
pub(crate) fn is_activity(group: u8) -> bool {
    ACTIVITY_GROUPS.contains(&group)
}

impl ChangeLog {
    /// Adds the facts of one entry.
    pub(crate) fn append(&mut self, at: &Position, actor: Option<u32>, facts: Vec<Fact>, limits: &Limits) {
        for (fact, ordinal) in facts.into_iter().zip(0u32..) {
            let mut body = BytesMut::new();
            fact.encode_body(&mut body);
            let record = Record {
                checksum: at.checksum,
                timestamp: at.timestamp,
                actor,
                group: fact.group(),
                kind: fact.kind(),
                body: body.freeze(),
            };
            let id = RecordId { op: at.op, ordinal };
            if is_activity(record.group) {
                self.activity.records.insert(id, Arc::new(record));
            } else {
                self.resources.records.insert(id, Arc::new(record));
            }
        }
        self.trim(limits);
    }

    /// Drops the oldest records beyond the bounds.
    pub(crate) fn trim(&mut self, limits: &Limits) {
        self.resources.trim(limits.resource_records);
        self.activity.trim(limits.activity_records);
    }

    /// The rings that hold any of the selected groups.
    pub(crate) fn rings(&self, is_selected: impl Fn(u8) -> bool) -> impl Iterator<Item = &RecordRing> {
        let activity = (1..=u8::MAX).any(|group| is_activity(group) && is_selected(group));
        let resources = (1..=u8::MAX).any(|group| !is_activity(group) && is_selected(group));
        [(resources, &self.resources), (activity, &self.activity)]
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, ring)| ring)
    }

    /// Records after a place, both rings merged in order.
    pub(crate) fn after(&self, place: Option<RecordId>) -> impl Iterator<Item = (RecordId, &Record)> {
        Merged {
            resources: range(&self.resources, place).peekable(),
            activity: range(&self.activity, place).peekable(),
        }
    }

    /// Checksum of the entry at a position, if a record of it is kept.
    pub(crate) fn checksum_of(&self, op: u64) -> Option<u128> {
        let first = RecordId { op, ordinal: 0 };
        let last = RecordId { op, ordinal: u32::MAX };
        [&self.resources, &self.activity]
            .into_iter()
            .find_map(|ring| ring.records.range(first..=last).next())
            .map(|(_, record)| record.checksum)
    }
}

fn range(ring: &RecordRing, place: Option<RecordId>) -> impl Iterator<Item = (RecordId, &Record)> {
    use std::ops::Bound;
    let from = place.map_or(Bound::Unbounded, Bound::Excluded);
    ring.records
        .range((from, Bound::Unbounded))
        .map(|(id, record)| (*id, record.as_ref()))
}

struct Merged<A: Iterator, B: Iterator> {
    resources: std::iter::Peekable<A>,
    activity: std::iter::Peekable<B>,
}

impl<'a, A, B> Iterator for Merged<A, B>
where
    A: Iterator<Item = (RecordId, &'a Record)>,
    B: Iterator<Item = (RecordId, &'a Record)>,
{
    type Item = (RecordId, &'a Record);

    fn next(&mut self) -> Option<Self::Item> {
        match (self.resources.peek(), self.activity.peek()) {
            (Some((resource, _)), Some((activity, _))) if activity < resource => self.activity.next(),
            (Some(_), _) => self.resources.next(),
            (None, _) => self.activity.next(),
        }
    }
}
