//! Messages as text: one JSON object per line, so that what was polled can be sent again, and lines of a file.

use std::io::{self, BufRead};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use iggy_protocol::limits::MAX_PAYLOAD_BYTES;
use iggy_protocol::{TypedValue, UserHeaders, ValueKind};
use serde::{Deserialize, Serialize};

/// A message before it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// Its id; 0: the client makes one.
    pub id: u128,
    /// Its headers.
    pub headers: UserHeaders,
    /// What it says.
    pub payload: Bytes,
}

/// A message of a poll.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// Partition it stands in.
    pub partition_id: u32,
    /// Its offset.
    pub offset: u64,
    /// Its id.
    pub id: u128,
    /// When the server took it, in microseconds.
    pub timestamp: u64,
    /// When its sender made it, in microseconds.
    pub origin_timestamp: u64,
    /// Its headers.
    pub headers: UserHeaders,
    /// What it says.
    pub payload: Bytes,
}

/// The one form on disk and on standard output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// 32 hexadecimal digits, because a JSON number cannot hold it.
    #[serde(default)]
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin_timestamp: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<HeaderLine>,
    /// When the payload is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    /// When it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine {
    #[serde(default = "text_kind", skip_serializing_if = "is_text_kind")]
    key_kind: String,
    key: String,
    kind: String,
    value: String,
}

fn text_kind() -> String {
    "string".to_owned()
}

fn is_text_kind(kind: &str) -> bool {
    kind == "string"
}

impl Incoming {
    /// As one JSON object.
    pub fn json(&self) -> serde_json::Value {
        let text = std::str::from_utf8(&self.payload).ok().map(str::to_owned);
        let payload_base64 = text.is_none().then(|| STANDARD.encode(&self.payload));
        let line = Line {
            partition_id: Some(self.partition_id),
            offset: Some(self.offset),
            id: format!("{:032x}", self.id),
            timestamp: Some(self.timestamp),
            origin_timestamp: Some(self.origin_timestamp),
            headers: self
                .headers
                .iter()
                .map(|(key, value)| header_line(key, value))
                .collect(),
            payload: text,
            payload_base64,
        };
        // A struct of strings and numbers always has a JSON form.
        serde_json::to_value(line).unwrap_or_default()
    }
}

fn header_line(key: &TypedValue, value: &TypedValue) -> HeaderLine {
    HeaderLine {
        key_kind: kind_name(key.kind()),
        key: value_text(key),
        kind: kind_name(value.kind()),
        value: value_text(value),
    }
}

/// Kinds of a newer server keep their number.
fn kind_name(kind: ValueKind) -> String {
    kind.name().map_or_else(|| kind.code().to_string(), str::to_owned)
}

/// Bytes that are no text or number stand in base64.
fn value_text(value: &TypedValue) -> String {
    match value.kind() {
        ValueKind::Raw | ValueKind::Unknown(_) => STANDARD.encode(value.bytes()),
        _ => value.to_string(),
    }
}

fn read_value(kind: &str, text: &str) -> Result<TypedValue, String> {
    let number = kind.parse().ok().and_then(ValueKind::from_u8);
    let Some(kind) = ValueKind::from_name(kind).or(number) else {
        return Err(format!("the header kind `{kind}` is unknown"));
    };
    match kind {
        ValueKind::Raw | ValueKind::Unknown(_) => {
            let bytes = STANDARD
                .decode(text)
                .map_err(|error| format!("the header value `{text}`: {error}"))?;
            TypedValue::new(kind, bytes).map_err(|error| error.to_string())
        }
        _ => TypedValue::parse(kind, text).map_err(|error| error.to_string()),
    }
}

/// Reads one line as [`Incoming::json`] writes it; place and times are passed over, since the server gives new ones.
pub fn parse_json_line(text: &str) -> Result<Outgoing, String> {
    let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let payload = match (line.payload, line.payload_base64) {
        (Some(text), None) => Bytes::from(text),
        (None, Some(text)) => STANDARD
            .decode(&text)
            .map_err(|error| format!("payload_base64: {error}"))?
            .into(),
        _ => return Err("either `payload` or `payload_base64` is needed".to_owned()),
    };
    check_payload(&payload)?;
    let id = match line.id.as_str() {
        "" => 0,
        hex => u128::from_str_radix(hex, 16).map_err(|error| format!("the id `{hex}`: {error}"))?,
    };
    let mut headers = UserHeaders::new();
    for header in &line.headers {
        headers.insert(
            read_value(&header.key_kind, &header.key)?,
            read_value(&header.kind, &header.value)?,
        );
    }
    Ok(Outgoing { id, headers, payload })
}

/// Payloads have 1 to 64,000,000 bytes.
pub fn check_payload(payload: &[u8]) -> Result<(), String> {
    match payload.len() {
        0 => Err("a message cannot be empty".to_owned()),
        length if length > MAX_PAYLOAD_BYTES => Err(format!(
            "the payload has {length} bytes; allowed: at most {MAX_PAYLOAD_BYTES}"
        )),
        _ => Ok(()),
    }
}

/// Lines of a reader, each with a bound on its length.
pub struct Lines<R> {
    reader: R,
    number: u64,
    keep_ends: bool,
    longest: u64,
}

impl<R: BufRead> Lines<R> {
    /// Lines with their ends or without; none longer than `longest` bytes.
    pub fn new(reader: R, keep_ends: bool, longest: u64) -> Self {
        Self {
            reader,
            number: 0,
            keep_ends,
            longest,
        }
    }

    /// The next line and its number, from 1; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut line = Vec::new();
        // One more than allowed, to tell a line that is too long from one that just fits; two for its end.
        let bound = self.longest.saturating_add(3);
        if io::Read::take(&mut self.reader, bound).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if !self.keep_ends && line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        }
        if line.len() as u64 > self.longest {
            let text = format!("line {} is longer than {} bytes", self.number, self.longest);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Some((self.number, line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(payload: &'static [u8]) -> Incoming {
        let mut headers = UserHeaders::new();
        headers.insert(TypedValue::string("k1").unwrap(), TypedValue::raw(&[0, 255]).unwrap());
        headers.insert(
            TypedValue::parse(ValueKind::Uint8, "7").unwrap(),
            TypedValue::string("seven").unwrap(),
        );
        headers.insert(
            TypedValue::string("newer").unwrap(),
            TypedValue::new(ValueKind::Unknown(77), vec![1, 2]).unwrap(),
        );
        Incoming {
            partition_id: 1,
            offset: 9,
            id: u128::MAX,
            timestamp: 5,
            origin_timestamp: 4,
            headers,
            payload: Bytes::from_static(payload),
        }
    }

    #[test]
    fn given_a_polled_message_should_send_the_same_again() {
        for payload in [&b"text\n"[..], b"\xff\x00"] {
            let message = sample(payload);
            let again = parse_json_line(&message.json().to_string()).unwrap();
            assert_eq!(
                again,
                Outgoing {
                    id: message.id,
                    headers: message.headers,
                    payload: message.payload
                }
            );
        }
    }

    #[test]
    fn given_lines_of_json_that_are_no_message_should_say_why() {
        for (line, part) in [
            ("{}", "payload"),
            ("{\"payload\":\"a\",\"payload_base64\":\"YQ==\"}", "either"),
            ("{\"payload\":\"\"}", "empty"),
            ("{\"payload\":\"a\",\"extra\":1}", "extra"),
            ("{\"payload\":\"a\",\"id\":\"xyz\"}", "xyz"),
            (
                "{\"payload\":\"a\",\"headers\":[{\"key\":\"k\",\"kind\":\"byte\",\"value\":\"1\"}]}",
                "byte",
            ),
            ("not json", "expected"),
        ] {
            let error = parse_json_line(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn given_lines_should_keep_or_drop_their_ends() {
        let read = |keep_ends| {
            let mut lines = Lines::new(&b"one\r\n\ntwo"[..], keep_ends, 10);
            let mut found = Vec::new();
            while let Some((_, line)) = lines.next().unwrap() {
                found.push(String::from_utf8(line).unwrap());
            }
            found
        };
        assert_eq!(read(false), ["one", "", "two"]);
        assert_eq!(read(true), ["one\r\n", "\n", "two"]);
    }

    #[test]
    fn given_a_line_that_is_too_long_should_name_it() {
        let mut lines = Lines::new(&b"fits\nfar too long\n"[..], false, 4);
        assert_eq!(lines.next().unwrap(), Some((1, b"fits".to_vec())));
        assert_eq!(lines.next().unwrap_err().to_string(), "line 2 is longer than 4 bytes");
    }
}
