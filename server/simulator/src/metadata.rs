//! Wants the metadata to be what the run needs, like the primary's controller: asks whoever leads, until it is.

use crate::plan::Plan;
use iggy_consensus::Durability;
use iggy_driver::request::Ticket;
use iggy_metadata::{Change, Metadata, PartitionKey, StreamRef, TopicKey};
use iggy_protocol::Name;
use iggy_protocol::options::Options;
use iggy_protocol::typed_value::TypedValue;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the stream all topics are in.
const STREAM: &str = "orders";

/// What the metadata should hold, and what was said about it.
#[derive(Debug, Default)]
pub struct Desk {
    /// Losses that the metadata does not know of.
    pub losses: BTreeMap<PartitionKey, u64>,
    /// Streams that were asked for by name, whose creation was acknowledged.
    pub acknowledged: BTreeSet<String>,
    markers: u64,
    /// The change under way: its ticket, the stream it makes, and when it is given up.
    pub open: Option<(u64, Option<String>, u64)>,
    /// Losses that were heard of, by partition.
    pub told: BTreeMap<PartitionKey, u64>,
    /// Histories that began.
    pub histories: u64,
    /// A topic that is to be deleted, and will then be missed and created again.
    pub unwanted: Option<TopicKey>,
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// Name of a topic.
pub fn topic_name(index: usize) -> String {
    format!("topic-{index}")
}

impl Desk {
    /// What should change now, given the state at whoever leads.
    pub fn next(&mut self, plan: &Plan, state: &Metadata) -> Option<(Change, Option<String>)> {
        if !state.is_bootstrapped() {
            let change = Change::Bootstrap {
                log_id: u128::from(plan.seed) + 1,
                root_username: name("iggy"),
                root_password_hash: "hash".into(),
            };
            return Some((change, None));
        }
        let Some(stream) = state.streams().find(|stream| stream.name == name(STREAM)) else {
            return Some((create_stream(STREAM), None));
        };
        let stream_ref = StreamRef {
            stream_id: stream.id,
            created_op: stream.created_op,
        };
        if let Some(topic) = self.unwanted {
            if state.topic_by_key(&topic).is_some() {
                return Some((Change::DeleteTopic { topic }, None));
            }
            self.unwanted = None;
        }
        for (index, durability) in plan.topics.iter().enumerate() {
            let wanted = topic_name(index);
            if !stream.topics.values().any(|topic| topic.name == name(&wanted)) {
                return Some((
                    create_topic(&plan.placement[index], stream_ref, &wanted, *durability),
                    None,
                ));
            }
        }
        self.losses.retain(|key, losses| {
            state
                .partition_by_key(key)
                .is_some_and(|(_, partition)| partition.history.losses < *losses)
        });
        if let Some((key, losses)) = self.losses.iter().next() {
            let change = Change::BeginHistory {
                partition: *key,
                losses: *losses,
            };
            return Some((change, None));
        }
        None
    }

    /// A stream more, whose creation is remembered.
    pub fn marker(&mut self) -> (Change, Option<String>) {
        self.markers += 1;
        let marker = format!("marker-{}", self.markers);
        (create_stream(&marker), Some(marker))
    }

    /// Takes the end of a change. True when it was this desk's.
    pub fn ended(&mut self, ticket: Ticket, done: bool) {
        if self.open.as_ref().is_some_and(|(open, ..)| *open == ticket.0)
            && let Some((_, marker, _)) = self.open.take()
            && done
        {
            self.acknowledged.extend(marker);
        }
    }

    /// Holds a state against what was acknowledged.
    pub fn check(&self, state: &Metadata) -> Result<(), String> {
        let names: Vec<String> = state.streams().map(|stream| stream.name.to_string()).collect();
        let unique: BTreeSet<&String> = names.iter().collect();
        if unique.len() != names.len() {
            return Err("C1: a stream is there twice".into());
        }
        match self.acknowledged.iter().find(|marker| !unique.contains(marker)) {
            Some(marker) => Err(format!("C1 D3: stream {marker} was created and is gone")),
            None => Ok(()),
        }
    }
}

fn create_stream(wanted: &str) -> Change {
    Change::CreateStream {
        name: name(wanted),
        explicit: Options::new(),
    }
}

fn create_topic(
    placement: &[Vec<u8>],
    stream: StreamRef,
    wanted: &str,
    durability: (Durability, Durability),
) -> Change {
    let mut explicit = Options::new();
    let text = |durability| {
        let text = match durability {
            Durability::Replicated => "replicated",
            Durability::Persisted => "persisted",
        };
        TypedValue::string(text).expect("a short text")
    };
    explicit.insert(name("durability"), text(durability.0));
    explicit.insert(name("consumer_offset_durability"), text(durability.1));
    Change::CreateTopic {
        stream,
        name: name(wanted),
        explicit,
        defaults: Options::new(),
        placement: placement.to_vec(),
    }
}
