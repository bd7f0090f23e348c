//! Values of options: text in, something the protocol allows out, or an error that says what is allowed.

use std::str::FromStr;
use std::time::Duration;

use iggy::IggyExpiry;
use iggy_protocol::{Identifier, TypedValue, UserHeaders, ValueKind};

/// Reads a number as an id and anything else as a name.
pub fn parse_id(text: &str) -> Result<Identifier, String> {
    match text.parse::<u32>() {
        Ok(number) => Ok(Identifier::numeric(number)),
        Err(_) => Identifier::named(text).map_err(|error| error.to_string()),
    }
}

/// Reads a time such as `10s` or `1h 30m`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; allowed: a time such as 10s or 1h 30m"))
}

/// Checks `host:port`; a name is resolved when it is dialled.
pub fn parse_endpoint(text: &str) -> Result<String, String> {
    let port = text
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty())
        .and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(port) if port > 0 => Ok(text.to_owned()),
        _ => Err("allowed: a host and a port from 1 to 65535, as 127.0.0.1:8090".to_owned()),
    }
}

/// When something stops being valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Whatever the server's default is.
    ServerDefault,
    /// Never.
    Never,
    /// After this time.
    After(Duration),
}

impl Expiry {
    /// What the words on the command line say: nothing, one special word, or times that add up (`1day 2h`).
    pub fn from_words(words: &[String]) -> Result<Self, String> {
        let Some(first) = words.first() else {
            return Ok(Self::ServerDefault);
        };
        match (first.to_lowercase().as_str(), words.len()) {
            ("server_default" | "default", 1) => Ok(Self::ServerDefault),
            ("none" | "never" | "unlimited", 1) => Ok(Self::Never),
            _ => {
                let time = parse_time(&words.join(" "))
                    .map_err(|error| format!("{error}; or server_default, or none for never"))?;
                if time.is_zero() {
                    Err("a time of zero would expire at once".to_owned())
                } else {
                    Ok(Self::After(time))
                }
            }
        }
    }

    /// Microseconds as the protocol writes them: 0 for the default, all ones for never.
    pub fn micros(self) -> u64 {
        match self {
            Self::ServerDefault => 0,
            Self::Never => u64::MAX,
            Self::After(time) => u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

impl From<Expiry> for IggyExpiry {
    fn from(expiry: Expiry) -> Self {
        match expiry {
            Expiry::ServerDefault => Self::ServerDefault,
            Expiry::Never => Self::NeverExpire,
            Expiry::After(time) => Self::ExpireDuration(time.into()),
        }
    }
}

/// One `--headers` value: `key:kind:value`, several separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderArgument {
    key: TypedValue,
    value: TypedValue,
}

impl HeaderArgument {
    /// The headers of a message.
    pub fn collect(arguments: &[Self]) -> UserHeaders {
        arguments
            .iter()
            .map(|header| (header.key.clone(), header.value.clone()))
            .collect()
    }
}

impl FromStr for HeaderArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let (Some(key), Some(kind), Some(value)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("allowed: key:kind:value, as source:string:web".to_owned());
        };
        let Some(kind) = ValueKind::from_name(&kind.to_lowercase()) else {
            let kinds: Vec<_> = ValueKind::ALL.iter().filter_map(|kind| kind.name()).collect();
            return Err(format!("the kind {kind} is unknown; allowed: {}", kinds.join(", ")));
        };
        let key = TypedValue::string(key).map_err(|error| format!("the key {key}: {error}"))?;
        let value = TypedValue::parse(kind, value).map_err(|error| format!("the value {value}: {error}"))?;
        Ok(Self { key, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn given_expiry_words_should_add_them_up() {
        assert_eq!(Expiry::from_words(&[]), Ok(Expiry::ServerDefault));
        assert_eq!(Expiry::from_words(&words("none")), Ok(Expiry::Never));
        assert_eq!(
            Expiry::from_words(&words("1day 2h")),
            Ok(Expiry::After(Duration::from_hours(26)))
        );
        for refused in ["none 1h", "tomorrow", "0s"] {
            assert!(Expiry::from_words(&words(refused)).is_err(), "{refused}");
        }
        assert_eq!(Expiry::After(Duration::from_millis(1)).micros(), 1000);
    }

    #[test]
    fn given_ids_should_read_numbers_as_ids() {
        assert_eq!(parse_id("7"), Ok(Identifier::numeric(7)));
        assert_eq!(parse_id("orders"), Ok(Identifier::named("orders").unwrap()));
        assert_eq!(parse_id("4294967296"), Ok(Identifier::named("4294967296").unwrap()));
        assert!(parse_id("").is_err());
        assert!(parse_id(&"x".repeat(256)).is_err());
    }

    #[test]
    fn given_a_header_should_keep_colons_of_its_value() {
        let header: HeaderArgument = "at:string:12:30:00".parse().unwrap();
        assert_eq!(header.value.as_str(), Ok("12:30:00"));
        let number: HeaderArgument = "n:UINT64:7".parse().unwrap();
        assert_eq!(number.value.as_uint64(), Ok(7));
        for refused in ["n", "n:uint8", "n:uint8:300", "n:byte:1", ":string:x"] {
            assert!(refused.parse::<HeaderArgument>().is_err(), "{refused}");
        }
    }

    #[test]
    fn given_endpoints_should_require_a_host_and_a_port() {
        for allowed in ["127.0.0.1:8090", "[::1]:8090", "broker.example:1"] {
            assert!(parse_endpoint(allowed).is_ok(), "{allowed}");
        }
        for refused in ["localhost", ":8090", "host:0", "host:70000", "host:"] {
            assert!(parse_endpoint(refused).is_err(), "{refused}");
        }
    }
}
