//! Options of a resource as they are stored: what the client set and what the server filled in.
//!
//! Both are kept, so that a reset returns to the value the server gives now and a reply can tell the two apart. The
//! effective value is the client's where there is one.

use iggy_protocol::option_catalog::{CATALOG, Scope};
use iggy_protocol::options::Options;
use iggy_protocol::topic_settings::TopicSettings;
use iggy_protocol::typed_value::TypedValue;
use iggy_protocol::{ErrorCode, Name};
use serde::{Deserialize, Serialize};

/// Explicit and derived options; no key is in both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredOptions {
    /// Set by the client, canonical.
    pub explicit: Options,
    /// Filled in or computed by the server.
    pub derived: Options,
}

const ENCRYPTION_KEY_SOURCE: &str = "encryption_key_source";

impl StoredOptions {
    /// Options of a stream. Nothing encrypts streams here, and the reply says so.
    pub fn of_stream(explicit: Options) -> Self {
        let source = Name::new(ENCRYPTION_KEY_SOURCE)
            .ok()
            .zip(TypedValue::string("none").ok());
        Self {
            explicit,
            derived: source.into_iter().collect(),
        }
    }

    /// Options of a topic: what the client left out comes from the defaults.
    pub fn of_topic(explicit: Options, defaults: &Options) -> Self {
        let missing = defaults.iter().filter(|(key, _)| !explicit.contains(key));
        let derived = missing.map(|(key, value)| (key.clone(), value.clone())).collect();
        Self { explicit, derived }
    }

    /// The options after an update, or the refusal of a combination that is not allowed.
    pub fn updated(&self, set: &Options, reset: &[Name], defaults: &Options) -> Result<Self, ErrorCode> {
        let mut updated = self.clone();
        for key in reset {
            if updated.explicit.remove(key).is_some()
                && let Some(value) = defaults.get(key)
            {
                updated.derived.insert(key.clone(), value.clone());
            }
        }
        for (key, value) in set.iter() {
            updated.derived.remove(key);
            updated.explicit.insert(key.clone(), value.clone());
        }
        updated.explicit.check_limits().map_err(|error| error.code())?;
        // Preallocation counts the partitions of one create, so none are counted here.
        updated.topic_settings().validate(0).map_err(|error| error.code())?;
        Ok(updated)
    }

    /// What the options of a topic amount to.
    pub fn topic_settings(&self) -> TopicSettings {
        let both = self.derived.iter().chain(self.explicit.iter());
        TopicSettings::from_options(&both.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

/// Every topic option with the value the catalogue gives it, and the replication factor of the server.
pub(crate) fn catalog_defaults(replication_factor: u32) -> Options {
    let topic = CATALOG.iter().filter(|spec| spec.applies_to(Scope::Topic));
    let mut defaults: Options = topic
        .filter_map(|spec| Name::new(spec.key).ok().zip(spec.default.value()))
        .collect();
    if let Ok(key) = Name::new("replication_factor") {
        defaults.insert(key, TypedValue::uint32(replication_factor));
    }
    defaults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a valid name")
    }

    fn one(key: &str, value: u64) -> Options {
        [(name(key), TypedValue::uint64(value))].into_iter().collect()
    }

    #[test]
    fn given_a_set_option_when_reset_should_return_to_the_default() {
        let defaults = catalog_defaults(3);
        let stored = StoredOptions::of_topic(one("message_expiry", 5), &defaults);
        assert_eq!(stored.topic_settings().message_expiry, 5);
        assert!(!stored.derived.contains("message_expiry"));
        let reset = stored
            .updated(&Options::new(), &[name("message_expiry")], &defaults)
            .expect("allowed");
        assert_eq!(reset, StoredOptions::of_topic(Options::new(), &defaults));
        assert_eq!(reset.topic_settings().replication_factor, Some(3));
    }

    #[test]
    fn given_a_topic_size_below_a_segment_when_updated_should_be_refused() {
        let stored = StoredOptions::of_topic(Options::new(), &catalog_defaults(1));
        let refused = stored.updated(&one("max_topic_size", 1), &[], &catalog_defaults(1));
        assert_eq!(refused, Err(ErrorCode::InvalidOptionValue));
    }

    #[test]
    fn given_a_stream_when_created_should_say_that_nothing_encrypts_it() {
        let stored = StoredOptions::of_stream(Options::new());
        assert_eq!(
            stored.derived.get(ENCRYPTION_KEY_SOURCE),
            TypedValue::string("none").ok().as_ref()
        );
    }
}
