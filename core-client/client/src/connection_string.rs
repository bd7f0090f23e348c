//! Connection strings: `iggy://user:password@host:port?key=value&...`.
//!
//! Credentials are taken as they stand, without percent-decoding, so they cannot contain `:`, `@` or `?`.

use std::time::Duration;

use iggy_protocol::request::session::Credentials;
use iggy_protocol::{ErrorCode, IggyDuration, Name, Secret};

use crate::config::{ClientConfig, Endpoint, TlsConfig};
use crate::error::IggyError;

/// The keys a TCP connection string may have.
pub const TCP_KEYS: &[&str] = &[
    "tls",
    "tls_domain",
    "tls_ca_file",
    "reconnection_retries",
    "reconnection_interval",
    "reestablish_after",
    "heartbeat_interval",
    "nodelay",
    "max_pending_operations",
    "max_pending_operation_bytes",
];

fn wrong(message: impl Into<String>) -> IggyError {
    IggyError::new(ErrorCode::InvalidConnectionString, message)
}

/// Reads a connection string. `iggy://` and `iggy+tcp://` are served; the other transports are refused by name.
///
/// # Errors
/// [`ErrorCode::InvalidConnectionString`], naming the part that is wrong and what is allowed there.
pub fn parse(text: &str) -> Result<ClientConfig, IggyError> {
    let mut parts = text.split("://");
    let (Some(scheme), Some(rest), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(wrong("a connection string has exactly one '://'"));
    };
    match scheme {
        "iggy" | "iggy+tcp" => {}
        "iggy+quic" | "iggy+http" | "iggy+ws" => {
            let message = format!("this client has no transport for '{scheme}://', expected iggy:// or iggy+tcp://");
            return Err(IggyError::new(ErrorCode::FeatureUnavailable, message));
        }
        other => {
            return Err(wrong(format!(
                "unknown scheme '{other}://', expected iggy:// or iggy+tcp://"
            )));
        }
    }
    let (credentials, rest) = split_once_only(rest, '@')
        .ok_or_else(|| wrong("a connection string has exactly one '@', after the credentials"))?;
    let (address, options) = match rest.matches('?').count() {
        0 => (rest, None),
        1 => rest
            .split_once('?')
            .map_or((rest, None), |(address, options)| (address, Some(options))),
        _ => return Err(wrong("a connection string has at most one '?'")),
    };
    let endpoint = Endpoint::parse(address).ok_or_else(|| {
        wrong(format!(
            "'{address}' is no address, expected host:port with a port of 1..=65535 and IPv6 in brackets"
        ))
    })?;
    let mut config = ClientConfig {
        endpoint,
        credentials: Some(read_credentials(credentials)?),
        ..ClientConfig::default()
    };
    let mut tls = TlsOptions::default();
    for option in options.into_iter().flat_map(|options| options.split('&')) {
        let (key, value) = split_once_only(option, '=')
            .ok_or_else(|| wrong(format!("option '{option}' is not of the form key=value")))?;
        apply(&mut config, &mut tls, key, value)?;
    }
    config.tls = tls.finish()?;
    Ok(config)
}

fn split_once_only(text: &str, separator: char) -> Option<(&str, &str)> {
    text.split_once(separator).filter(|(_, rest)| !rest.contains(separator))
}

fn read_credentials(text: &str) -> Result<Credentials, IggyError> {
    let credentials = match text.split_once(':') {
        Some((_, password)) if password.contains(':') => return Err(wrong("credentials have at most one ':'")),
        Some((user, password)) if !user.is_empty() && !password.is_empty() => {
            let username = Name::new(user).map_err(|error| wrong(format!("user name: {error}")))?;
            Credentials::Password {
                username,
                password: Secret::new(password),
            }
        }
        Some(_) => return Err(wrong("user name and password must not be empty")),
        None if text.is_empty() => return Err(wrong("credentials must not be empty: user:password or a token")),
        None => Credentials::Token(Secret::new(text)),
    };
    Ok(credentials)
}

#[derive(Default)]
struct TlsOptions {
    enabled: bool,
    domain: Option<String>,
    ca_file: Option<String>,
}

impl TlsOptions {
    /// A connection string always validates certificates. TLS settings without TLS would do nothing and are refused.
    fn finish(self) -> Result<Option<TlsConfig>, IggyError> {
        if !self.enabled {
            return match (&self.domain, &self.ca_file) {
                (None, None) => Ok(None),
                _ => Err(wrong("tls_domain and tls_ca_file need tls=true")),
            };
        }
        let ca_file = self.ca_file.map(Into::into);
        Ok(Some(TlsConfig {
            domain: self.domain,
            ca_file,
            validate_certificate: true,
        }))
    }
}

fn apply(config: &mut ClientConfig, tls: &mut TlsOptions, key: &str, value: &str) -> Result<(), IggyError> {
    match key {
        "tls" => tls.enabled = truth(key, value)?,
        "tls_domain" => tls.domain = Some(value.to_owned()).filter(|domain| !domain.is_empty()),
        "tls_ca_file" => tls.ca_file = Some(value.to_owned()).filter(|file| !file.is_empty()),
        "reconnection_retries" => {
            config.reconnection.max_retries = if value == "unlimited" {
                None
            } else {
                Some(number(key, value, 0)?)
            };
        }
        "reconnection_interval" => config.reconnection.interval = duration(key, value)?,
        "reestablish_after" => config.reconnection.reestablish_after = duration(key, value)?,
        "heartbeat_interval" => {
            config.heartbeat_interval = duration(key, value)?;
            if config.heartbeat_interval.is_zero() {
                return Err(wrong("heartbeat_interval must be above zero"));
            }
        }
        "nodelay" => config.nodelay = truth(key, value)?,
        "max_pending_operations" => config.max_pending_operations = number(key, value, 1)?,
        "max_pending_operation_bytes" => config.max_pending_operation_bytes = number(key, value, 1)?,
        other => {
            return Err(wrong(format!(
                "unknown option '{other}', expected one of {}",
                TCP_KEYS.join(", ")
            )));
        }
    }
    Ok(())
}

fn truth(key: &str, value: &str) -> Result<bool, IggyError> {
    value
        .parse()
        .map_err(|_| wrong(format!("{key} is true or false, not '{value}'")))
}

fn number(key: &str, value: &str, least: u32) -> Result<u32, IggyError> {
    let number = value.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| wrong(format!("{key} is a number of {least}..=4294967295, not '{value}'")))
}

fn duration(key: &str, value: &str) -> Result<Duration, IggyError> {
    let duration: Result<IggyDuration, _> = value.parse();
    duration
        .map(Into::into)
        .map_err(|error| wrong(format!("{key}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_full_string_when_parsed_should_set_every_option() {
        let text = "iggy+tcp://user:secret@[::1]:9000?tls=true&tls_domain=example.org&tls_ca_file=/ca.pem&reconnection_retries=3\
            &reconnection_interval=250ms&reestablish_after=2s&heartbeat_interval=1s&nodelay=false&max_pending_operations=7\
            &max_pending_operation_bytes=4096";
        let config = parse(text).unwrap();
        assert_eq!(config.endpoint, Endpoint::new("::1", 9000));
        assert_eq!(config.endpoint.to_string(), "[::1]:9000");
        let tls = config.tls.unwrap();
        assert_eq!(
            (tls.domain.as_deref(), tls.validate_certificate),
            (Some("example.org"), true)
        );
        assert_eq!(config.reconnection.max_retries, Some(3));
        assert_eq!(config.reconnection.interval, Duration::from_millis(250));
        assert_eq!(config.heartbeat_interval, Duration::from_secs(1));
        assert_eq!(
            (
                config.nodelay,
                config.max_pending_operations,
                config.max_pending_operation_bytes
            ),
            (false, 7, 4096)
        );
    }

    #[test]
    fn given_every_listed_key_when_used_should_be_known() {
        for key in TCP_KEYS {
            let error = parse(&format!("iggy://token@localhost:1?{key}=?")).unwrap_err();
            assert!(!error.message().contains("unknown option"), "{key}");
        }
    }

    #[test]
    fn given_broken_strings_when_parsed_should_be_refused_and_say_why() {
        let cases = [
            ("localhost:8090", "://"),
            ("iggy://a:b@localhost:8090://", "://"),
            ("kafka://a:b@localhost:8090", "unknown scheme"),
            ("iggy://localhost:8090", "@"),
            ("iggy://a:b@c@localhost:8090", "@"),
            ("iggy://:b@localhost:8090", "empty"),
            ("iggy://@localhost:8090", "empty"),
            ("iggy://a:b:c@localhost:8090", "at most one ':'"),
            ("iggy://a:b@localhost", "no address"),
            ("iggy://a:b@localhost:0", "no address"),
            ("iggy://a:b@localhost:65536", "no address"),
            ("iggy://a:b@localhost:1?x=1?y=2", "one '?'"),
            (
                "iggy://a:b@localhost:1?speed=11",
                "unknown option 'speed', expected one of tls, ",
            ),
            ("iggy://a:b@localhost:1?tls", "key=value"),
            ("iggy://a:b@localhost:1?tls=maybe", "true or false"),
            ("iggy://a:b@localhost:1?tls_domain=x", "need tls=true"),
            ("iggy://a:b@localhost:1?heartbeat_interval=0s", "above zero"),
        ];
        for (text, part) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidConnectionString, "{text}");
            assert!(error.message().contains(part), "{text}: {error}");
        }
        assert_eq!(
            parse("iggy+quic://a:b@localhost:1").unwrap_err().code(),
            ErrorCode::FeatureUnavailable
        );
    }
}
