//! How reads, sends and commits are described. Each holds the JSON that `iggy_ffi::settings` reads. Times are
//! microseconds.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ext_php_rs::convert::FromZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::Zval;
use iggy::{Consumer, ReadStart};
use iggy_ffi::settings;
use serde_json::{Map, Value, json};

use crate::failure::{OrThrow, invalid};
use crate::position::Continuation;
use crate::value::{bytes_of, identifier, number64, to_json};

/// The limits of one read and its commit policy.
#[php_class]
#[php(name = "Iggy\\PollOptions")]
pub struct PollOptions(pub Value);

#[php_impl]
impl PollOptions {
    pub fn __construct(
        count: Option<i64>,
        max_wait: Option<i64>,
        min_count: Option<i64>,
        max_bytes: Option<i64>,
        commit: Option<&CommitPolicy>,
    ) -> PhpResult<Self> {
        let mut members = Map::new();
        let numbers = [
            ("count", count),
            ("max_wait", max_wait),
            ("min_count", min_count),
            ("max_bytes", max_bytes),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                members.insert(name.to_owned(), number.into());
            }
        }
        if let Some(commit) = commit {
            members.insert("commit".to_owned(), commit.0.clone());
        }
        let made = Value::Object(members);
        // Refused here already, where the mistake is.
        settings::poll_options(made.clone()).or_throw()?;
        Ok(Self(made))
    }
}

/// When positions are stored.
#[php_class]
#[php(name = "Iggy\\CommitPolicy")]
pub struct CommitPolicy(pub Value);

#[php_impl]
impl CommitPolicy {
    pub fn manual() -> Self {
        Self(json!("manual"))
    }

    pub fn on_read() -> Self {
        Self(json!("on_read"))
    }

    pub fn auto(interval: Option<i64>, every: Option<&Zval>, after: Option<String>) -> PhpResult<Self> {
        let mut members = Map::new();
        if let Some(interval) = interval {
            members.insert("interval".to_owned(), interval.into());
        }
        if let Some(every) = every.filter(|every| !every.is_null()) {
            members.insert("every".to_owned(), to_json("every", every)?);
        }
        if let Some(after) = after {
            members.insert("after".to_owned(), after.into());
        }
        let made = json!({ "auto": members });
        settings::poll_options(json!({ "commit": made })).or_throw()?;
        Ok(Self(made))
    }
}

/// How a send finds its partition.
#[php_class]
#[php(name = "Iggy\\Partitioning")]
pub struct Partitioning(pub Value);

impl Partitioning {
    /// As the core has it; balanced when there is none.
    pub fn core(given: Option<&Self>) -> PhpResult<iggy::Partitioning> {
        let setting = given.map_or_else(|| json!("balanced"), |given| given.0.clone());
        settings::partitioning(setting).or_throw()
    }
}

#[php_impl]
impl Partitioning {
    pub fn balanced() -> Self {
        Self(json!("balanced"))
    }

    pub fn partition(partition: i64) -> PhpResult<Self> {
        let made = Self(json!({ "partition": partition }));
        Self::core(Some(&made))?;
        Ok(made)
    }

    pub fn key(key: &Zval) -> PhpResult<Self> {
        let text = match key.long() {
            // As every client of the server writes numbers: 64 bits, lowest byte first.
            Some(number) => STANDARD.encode(number.to_le_bytes()),
            None => STANDARD.encode(bytes_of("a key", key)?),
        };
        let made = Self(json!({ "key": text }));
        Self::core(Some(&made))?;
        Ok(made)
    }
}

/// Where a read starts.
#[php_class]
#[php(name = "Iggy\\PollingStrategy")]
pub struct PollingStrategy(pub Value);

#[php_impl]
impl PollingStrategy {
    pub fn first() -> Self {
        Self(json!("first"))
    }

    pub fn last() -> Self {
        Self(json!("last"))
    }

    pub fn next() -> Self {
        Self(json!("next"))
    }

    pub fn offset(offset: &Zval) -> PhpResult<Self> {
        Ok(Self(json!({ "offset": number64("an offset", offset)? })))
    }

    pub fn timestamp(timestamp: &Zval) -> PhpResult<Self> {
        Ok(Self(json!({ "timestamp": number64("a timestamp", timestamp)? })))
    }
}

/// A start: a strategy, a continuation, or nothing for after the stored offset.
pub fn read_start(given: Option<&Zval>) -> PhpResult<ReadStart> {
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Ok(settings::strategy(json!("next")).or_throw()?.into());
    };
    if let Some(continuation) = <&Continuation>::from_zval(given) {
        return Ok(continuation.0.into());
    }
    match <&PollingStrategy>::from_zval(given) {
        Some(strategy) => Ok(settings::strategy(strategy.0.clone()).or_throw()?.into()),
        None => Err(invalid("a start is a PollingStrategy or a Continuation")),
    }
}

/// End-to-end encryption.
#[php_class]
#[php(name = "Iggy\\Encryption")]
pub struct Encryption(pub Value);

#[php_impl]
impl Encryption {
    pub fn __construct(key: &Zval, cipher: Option<String>) -> PhpResult<Self> {
        let key = bytes_of("a key", key)?;
        if key.len() != 32 {
            return Err(invalid(format!("a key has 32 bytes, this one has {}", key.len())));
        }
        let cipher = cipher.unwrap_or_else(|| "aes-256-gcm".to_owned());
        if !["aes-256-gcm", "aes-256-gcm-siv"].contains(&cipher.as_str()) {
            let message = format!("'{cipher}' is no cipher; known are aes-256-gcm and aes-256-gcm-siv");
            return Err(invalid(message));
        }
        Ok(Self(json!({ "key": STANDARD.encode(key), "cipher": cipher })))
    }
}

/// Who reads.
#[php_class]
#[php(name = "Iggy\\ConsumerId")]
pub struct ConsumerId {
    kind: &'static str,
    id: iggy::Identifier,
}

impl ConsumerId {
    fn of(kind: &'static str, id: &Zval) -> PhpResult<Self> {
        let id = identifier("a consumer", id)?;
        Ok(Self { kind, id })
    }
}

#[php_impl]
impl ConsumerId {
    pub fn consumer(id: &Zval) -> PhpResult<Self> {
        Self::of("consumer", id)
    }

    pub fn group(id: &Zval) -> PhpResult<Self> {
        Self::of("group", id)
    }

    pub fn external(id: &Zval) -> PhpResult<Self> {
        Self::of("external", id)
    }
}

/// Who reads; a bare name or number is a consumer of its own.
pub fn who_reads(given: &Zval) -> PhpResult<Consumer> {
    let Some(named) = <&ConsumerId>::from_zval(given) else {
        return identifier("a consumer", given).map(Consumer::new);
    };
    let id = named.id.clone();
    Ok(match named.kind {
        "group" => Consumer::group(id),
        "external" => Consumer::external(id),
        _ => Consumer::new(id),
    })
}

/// As [`who_reads`], for operations by name.
pub fn consumer_json(given: &Zval) -> PhpResult<Value> {
    let Some(named) = <&ConsumerId>::from_zval(given) else {
        return Ok(json!({ "id": to_json("a consumer", given)? }));
    };
    let id = match &named.id {
        iggy::Identifier::Numeric(number) => json!(number),
        iggy::Identifier::Named(name) => json!(name.to_string()),
    };
    Ok(json!({ "id": id, "kind": named.kind }))
}

/// The JSON of an object of these classes.
pub fn json_of(given: &Zval) -> Option<Value> {
    let found = <&PollOptions>::from_zval(given).map(|found| &found.0);
    let found = found.or_else(|| <&CommitPolicy>::from_zval(given).map(|found| &found.0));
    let found = found.or_else(|| <&Partitioning>::from_zval(given).map(|found| &found.0));
    let found = found.or_else(|| <&PollingStrategy>::from_zval(given).map(|found| &found.0));
    let found = found.or_else(|| <&Encryption>::from_zval(given).map(|found| &found.0));
    found.cloned()
}
