//! The kinds of arguments that step texts have, and the JSON each becomes, so that no agent parses words.

use serde_json::{Map, Value, json};

/// How an argument is written and what an agent gets for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `42` -> a number.
    Int,
    /// What stands between quotes -> a string.
    Text,
    /// A word without quotes -> a string.
    Word,
    /// `the first message`, `the last messages`, `the next message`, `the noted time`, `offset 7` ->
    /// `{"kind":"first"}`, `last`, `next`, `noted_time`, `{"kind":"offset","value":7}`.
    Start,
    /// `30 s`, `50 ms` -> milliseconds.
    Wait,
    /// `30m`, `1h` -> microseconds, as the options of a topic have it.
    Expiry,
    /// `2MiB` -> bytes.
    Size,
    /// `"a" and "b"` -> an array of strings.
    Names,
    /// `0 to 3`, `0 and 9` -> an array of numbers.
    Partitions,
    /// `manual commits`, `commits on read`, `commits after every 4 messages` -> `{"policy":"manual"}`, `on_read`,
    /// `{"policy":"auto","every":4}`.
    Commits,
    /// `do nothing`, `poll messages`, `poll messages of "orders"`, `poll messages of another stream` ->
    /// `{"global":[..],"streams":[{"stream":NAME or NUMBER,"granted":[..]}]}`.
    Permissions,
    /// The limits of a poll -> several arguments: `count`, `min_count`, `max_wait_ms`, `max_bytes`.
    Limits,
}

impl Kind {
    /// The kind of this name in a pattern.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "int" => Self::Int,
            "text" => Self::Text,
            "word" => Self::Word,
            "start" => Self::Start,
            "wait" => Self::Wait,
            "expiry" => Self::Expiry,
            "size" => Self::Size,
            "names" => Self::Names,
            "partitions" => Self::Partitions,
            "commits" => Self::Commits,
            "permissions" => Self::Permissions,
            "limits" => Self::Limits,
            _ => return None,
        })
    }

    /// What it matches.
    pub const fn expression(self) -> &'static str {
        match self {
            Self::Int => r"(\d+)",
            Self::Text => r#""([^"]*)""#,
            Self::Word => r"([\w-]+)",
            Self::Start => r"(the first message|the last messages|the next message|the noted time|offset \d+)",
            Self::Wait => r"(\d+ (?:ms|s))",
            Self::Expiry => r"(\d+[smh])",
            Self::Size => r"(\d+(?:KiB|MiB|GiB))",
            Self::Names => r#"("[^"]*"(?: and "[^"]*")*)"#,
            Self::Partitions => r"(\d+ (?:to|and) \d+)",
            Self::Commits => r"(manual commits|commits on read|commits after every \d+ messages)",
            Self::Permissions => r#"([a-z]+ [a-z]+(?: of (?:"[^"]*"|another stream))?)"#,
            Self::Limits => {
                r"(a count of \d+|at least \d+ messages and a count of \d+|a wait of \d+ s|room for \d+ bytes)"
            }
        }
    }

    /// Adds what `text`, which matched, stands for to `arguments`.
    pub fn read(self, name: &str, text: &str, arguments: &mut Map<String, Value>) {
        let value = match self {
            Self::Int => number(text).into(),
            Self::Text | Self::Word => text.into(),
            Self::Start => start(text),
            Self::Wait | Self::Expiry => scaled(text, if self == Self::Wait { 1 } else { 1_000 }).into(),
            Self::Size => size(text).into(),
            Self::Names => text.split(" and ").map(|name| name.trim_matches('"')).collect(),
            Self::Partitions => partitions(text),
            Self::Commits => match numbers(text).first() {
                Some(every) => json!({ "policy": "auto", "every": every }),
                None if text.starts_with("manual") => json!({ "policy": "manual" }),
                None => json!({ "policy": "on_read" }),
            },
            Self::Permissions => permissions(text),
            Self::Limits => {
                limits(text, arguments);
                return;
            }
        };
        arguments.insert(name.to_owned(), value);
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

fn numbers(text: &str) -> Vec<u64> {
    let parts = text.split(|letter: char| !letter.is_ascii_digit());
    parts.filter(|part| !part.is_empty()).map(number).collect()
}

fn scaled(text: &str, per_millisecond: u64) -> u64 {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let milliseconds = match text[digits.len()..].trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => 3_600_000,
    };
    number(digits.trim()) * milliseconds * per_millisecond
}

fn size(text: &str) -> u64 {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "KiB" => 10,
        "MiB" => 20,
        _ => 30,
    };
    number(digits) << shift
}

fn start(text: &str) -> Value {
    match text {
        "the first message" => json!({ "kind": "first" }),
        "the last messages" => json!({ "kind": "last" }),
        "the next message" => json!({ "kind": "next" }),
        "the noted time" => json!({ "kind": "noted_time" }),
        offset => json!({ "kind": "offset", "value": numbers(offset).first() }),
    }
}

fn partitions(text: &str) -> Value {
    match (text.contains(" to "), &numbers(text)[..]) {
        (true, &[first, last]) => (first..=last).collect(),
        (_, numbers) => numbers.iter().copied().collect(),
    }
}

/// A number that no stream of a scenario has.
const ANOTHER_STREAM: u32 = 1_000;

fn permissions(text: &str) -> Value {
    if text == "do nothing" {
        return json!({ "global": [], "streams": [] });
    }
    match text.split_once(" of ") {
        None => json!({ "global": [text.replace(' ', "_")], "streams": [] }),
        Some((may, stream)) => {
            let stream = match stream {
                "another stream" => json!(ANOTHER_STREAM),
                named => json!(named.trim_matches('"')),
            };
            json!({ "global": [], "streams": [{ "stream": stream, "granted": [may.replace(' ', "_")] }] })
        }
    }
}

fn limits(text: &str, arguments: &mut Map<String, Value>) {
    let numbers = numbers(text);
    let mut set = |name: &str, value: u64| arguments.insert(name.to_owned(), value.into());
    match (text, &numbers[..]) {
        (text, &[count]) if text.starts_with("a count") => set("count", count),
        (text, &[seconds]) if text.starts_with("a wait") => set("max_wait_ms", seconds * 1_000),
        (_, &[bytes]) => set("max_bytes", bytes),
        (_, &[least, count, ..]) => {
            set("min_count", least);
            set("count", count)
        }
        _ => None,
    };
}

/// The settings of a topic from a table of names and values, named and measured as its options are.
///
/// # Errors
/// A row that is not a name and a value, or a value that is not written as its name wants it.
pub fn settings(table: &[Vec<String>]) -> Result<Value, String> {
    let mut settings = Map::new();
    for row in table {
        let [key, value] = &row[..] else {
            return Err(format!("a setting is a name and a value, not {row:?}"));
        };
        let (name, kind) = match key.as_str() {
            "partitions" => ("partitions", Kind::Int),
            "offset_durability" => ("consumer_offset_durability", Kind::Word),
            "message_expiry" => (key.as_str(), Kind::Expiry),
            size if size.ends_with("_size") => (size, Kind::Size),
            other => (other, Kind::Word),
        };
        let whole = regex::Regex::new(&format!("^{}$", kind.expression())).map_err(|error| error.to_string())?;
        if !whole.is_match(value) {
            return Err(format!("'{value}' is not how {key} is written"));
        }
        kind.read(name, value, &mut settings);
    }
    Ok(settings.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, text: &str) -> Value {
        let mut arguments = Map::new();
        kind.read("it", text, &mut arguments);
        arguments.get("it").cloned().unwrap_or(Value::Object(arguments))
    }

    #[test]
    fn given_words_when_read_should_be_values() {
        assert_eq!(read(Kind::Wait, "50 ms"), json!(50));
        assert_eq!(read(Kind::Wait, "601 s"), json!(601_000));
        assert_eq!(read(Kind::Expiry, "30m"), json!(1_800_000_000_u64));
        assert_eq!(read(Kind::Size, "2MiB"), json!(2 << 20));
        assert_eq!(read(Kind::Start, "offset 7"), json!({ "kind": "offset", "value": 7 }));
        assert_eq!(read(Kind::Names, r#""a" and "b""#), json!(["a", "b"]));
        assert_eq!(read(Kind::Partitions, "0 to 3"), json!([0, 1, 2, 3]));
        assert_eq!(read(Kind::Partitions, "0 and 9"), json!([0, 9]));
        assert_eq!(
            read(Kind::Commits, "commits after every 4 messages"),
            json!({ "policy": "auto", "every": 4 })
        );
        assert_eq!(
            read(Kind::Permissions, r#"poll messages of "orders""#),
            json!({ "global": [], "streams": [{ "stream": "orders", "granted": ["poll_messages"] }] })
        );
        assert_eq!(
            read(Kind::Limits, "at least 6 messages and a count of 5"),
            json!({ "min_count": 6, "count": 5 })
        );
        assert_eq!(read(Kind::Limits, "a wait of 601 s"), json!({ "max_wait_ms": 601_000 }));
    }

    #[test]
    fn given_a_table_of_settings_when_read_should_be_named_as_options_are() {
        let row = |key: &str, value: &str| vec![key.to_owned(), value.to_owned()];
        let table = [
            row("partitions", "3"),
            row("offset_durability", "persisted"),
            row("segment_size", "2MiB"),
        ];
        let wanted = json!({ "partitions": 3, "consumer_offset_durability": "persisted", "segment_size": 2 << 20 });
        assert_eq!(settings(&table), Ok(wanted));
        assert!(settings(&[row("segment_size", "big")]).is_err());
        assert!(settings(&[vec!["partitions".to_owned()]]).is_err());
    }
}
