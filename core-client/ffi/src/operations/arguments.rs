//! The arguments of operations.

use std::collections::BTreeMap;
use std::fmt;

use iggy::{Consumer, ConsumerKind, Identifier, RawOptions};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::Value;

use crate::Failure;

/// A name or a number.
#[derive(Debug, Clone)]
pub(crate) struct Id(pub Identifier);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrNumber;
        impl Visitor<'_> for NameOrNumber {
            type Value = Id;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a name of 1..=255 bytes, or a number of 0..=4294967295")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
                let number = u32::try_from(number);
                number
                    .map(|number| Id(Identifier::numeric(number)))
                    .map_err(|_| E::invalid_type(de::Unexpected::Other("a number above 4294967295"), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
                Identifier::named(text).map(Id).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(NameOrNumber)
    }
}

/// Settings of a resource by name; numbers and truth values as well as text.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Settings(BTreeMap<String, Value>);

impl Settings {
    /// As text, which the server converts.
    pub fn into_raw(self) -> Result<RawOptions, Failure> {
        let text = |(key, value)| match value {
            Value::String(text) => Ok((key, text)),
            Value::Number(number) => Ok((key, number.to_string())),
            Value::Bool(value) => Ok((key, value.to_string())),
            _ => Err(Failure::invalid(format!(
                "the option {key} is neither text nor a number nor a truth value"
            ))),
        };
        self.0.into_iter().map(text).collect()
    }
}

/// Who reads: a consumer of its own, or a group.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reader {
    pub id: Id,
    #[serde(default)]
    pub kind: Kind,
}

#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    #[default]
    Consumer,
    Group,
    External,
}

impl From<Reader> for Consumer {
    fn from(reader: Reader) -> Self {
        Self {
            kind: match reader.kind {
                Kind::Consumer => ConsumerKind::Consumer,
                Kind::Group => ConsumerKind::Group,
                Kind::External => ConsumerKind::External,
            },
            id: reader.id.0,
        }
    }
}
