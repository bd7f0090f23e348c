//! Values that scenarios name in words: messages, headers, durations, starts.

use std::collections::BTreeMap;
use std::time::Duration;

use iggy::prelude::*;

/// A message as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    pub id: u128,
    pub payload: Vec<u8>,
    pub headers: UserHeaders,
}

impl Sent {
    /// The message of this place in its partition, with a payload of at least `bytes`.
    pub fn numbered(partition: u32, index: usize, bytes: usize) -> Self {
        let mut payload = format!("message {index} of partition {partition}").into_bytes();
        payload.resize(payload.len().max(bytes), b'.');
        let mut headers = UserHeaders::new();
        headers.set("index", TypedValue::uint64(index as u64)).unwrap();
        headers.set("origin", TypedValue::string("scenario").unwrap()).unwrap();
        Self {
            id: (u128::from(partition) << 64) | (index as u128 + 1),
            payload,
            headers,
        }
    }

    pub fn message(&self) -> Result<IggyMessage, IggyError> {
        let builder = IggyMessage::builder().id(self.id).payload(self.payload.clone());
        builder.user_headers(self.headers.clone()).build()
    }

    /// Whether this is what arrived.
    pub fn check(&self, arrived: &IggyMessage) {
        assert_eq!(arrived.header.id, self.id, "the id");
        assert_eq!(arrived.payload, self.payload, "the payload");
        let headers = arrived.user_headers_map().unwrap().unwrap_or_default();
        assert_eq!(headers, self.headers, "the headers");
    }
}

/// `30 s`, `50 ms`, `1h`.
pub fn duration(text: &str) -> IggyDuration {
    let parsed: Duration = humantime::parse_duration(text).unwrap();
    parsed.into()
}

/// A start in words.
pub fn start(text: &str, noted_time: u64) -> PollingStrategy {
    match text {
        "the first message" => PollingStrategy::first(),
        "the last messages" => PollingStrategy::last(),
        "the next message" => PollingStrategy::next(),
        "the noted time" => PollingStrategy::timestamp(noted_time),
        other => {
            let offset = other
                .strip_prefix("offset ")
                .unwrap_or_else(|| panic!("no start: {other}"));
            PollingStrategy::offset(offset.parse().unwrap())
        }
    }
}

/// Several names: `"a" and "b"`, `"a"`.
pub fn names(text: &str) -> Vec<String> {
    let names = text.split(" and ").map(|name| name.trim_matches('"').to_owned());
    names.collect()
}

/// The settings of a topic as text, those that were derived included.
pub fn settings(topic: &TopicDetails) -> BTreeMap<String, String> {
    let partitions = topic.partitions.len().to_string();
    let mut settings = BTreeMap::from([("partitions".to_owned(), partitions)]);
    let options = topic.topic.derived_options.iter().chain(topic.topic.options.iter());
    for (key, value) in options {
        let text = value
            .as_str()
            .map(str::to_owned)
            .or_else(|_| value.as_uint64().map(|number| number.to_string()));
        let key = match key.as_str() {
            "consumer_offset_durability" => "offset_durability",
            key => key,
        };
        if let Ok(text) = text {
            settings.insert(key.to_owned(), text);
        }
    }
    settings
}

/// `replicated` or `persisted`.
pub fn durability(text: &str) -> Durability {
    match text {
        "persisted" => Durability::Persisted,
        "replicated" => Durability::Replicated,
        other => panic!("no durability: {other}"),
    }
}
