//! The typed configuration and the bounds of every value.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use toml::Value;

use super::error::ConfigError;
use super::layers::Values;
use super::units::{format_size, parse_size, parse_time};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY: Duration = Duration::from_hours(24);
const SECOND: Duration = Duration::from_secs(1);
const TEN_MINUTES: Duration = Duration::from_mins(10);

const SHARDS_MAX: usize = 256;

/// The whole configuration; `config.toml` documents each key.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Data directory.
    pub path: PathBuf,
    /// `[node]`
    pub node: Node,
    /// `[tcp]`
    pub tcp: Tcp,
    /// `[http]`
    pub http: Http,
    /// `[logging]`
    pub logging: Logging,
    /// `[heartbeat]`
    pub heartbeat: Heartbeat,
    /// `[sharding]`
    pub sharding: Sharding,
    /// `[metadata]`
    pub metadata: Metadata,
    /// `[partition]`
    pub partition: Partition,
    /// `[message_bus]`
    pub message_bus: MessageBus,
    /// `[personal_access_token]`
    pub personal_access_token: PersonalAccessToken,
    /// `[data_maintenance.messages]`
    pub data_maintenance: DataMaintenance,
}

/// How clients reach this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Host name or IP address told to clients; `None`: the address that tcp binds.
    pub advertised_address: Option<String>,
}

/// The TCP listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tcp {
    /// Whether it is served.
    pub enabled: bool,
    /// Address to bind.
    pub address: SocketAddr,
    /// `[tcp.tls]`
    pub tls: Tls,
}

/// TLS of one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Whether the listener speaks TLS.
    pub enabled: bool,
    /// Whether a certificate is made while `cert_file` names no existing file.
    pub self_signed: bool,
    /// Certificate chain in PEM.
    pub cert_file: Option<PathBuf>,
    /// Private key in PEM.
    pub key_file: Option<PathBuf>,
}

/// The HTTP listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Address to bind.
    pub address: SocketAddr,
    /// `[http.metrics]`
    pub metrics: Metrics,
}

/// The metrics page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// Whether it is served; without it nothing listens on `http.address`.
    pub enabled: bool,
    /// Its path, with the leading slash.
    pub endpoint: String,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logging {
    /// Folder of the files; when relative, below the data directory.
    pub path: PathBuf,
    /// Least severity that is logged.
    pub level: LoggingLevel,
    /// Whether files are written.
    pub file_enabled: bool,
    /// Bytes at which a file is set aside.
    pub max_file_size: u64,
    /// Bytes of all files together.
    pub max_total_size: u64,
}

/// Severity of the log, least verbose first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggingLevel {
    /// Nothing.
    Off,
    /// Faults that an operator must look at.
    Error,
    /// Trouble that the server handled.
    Warn,
    /// What an operator wants to know of a healthy server.
    Info,
    /// What a developer wants to know.
    Debug,
    /// Every step.
    Trace,
}

impl LoggingLevel {
    const ALL: [(&str, Self); 6] = [
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL
            .iter()
            .find(|(_, level)| level == self)
            .map_or("", |(name, _)| *name);
        out.write_str(name)
    }
}

/// Closing of silent connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Whether it happens.
    pub enabled: bool,
    /// Expected time between two requests; 1.2 times this is tolerated.
    pub interval: Duration,
}

/// The shards of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharding {
    /// Number of shards, at least 1.
    pub cpu_allocation: usize,
    /// Requests that may wait in one mailbox.
    pub inbox_capacity: usize,
    /// Wait for requests in progress at a stop.
    pub shutdown_drain_timeout: Duration,
    /// File jobs of one shard at once.
    pub partition_io_capacity: usize,
    /// Longest wait of a deferred poll.
    pub deferred_poll_max_wait: Duration,
    /// Parked polls of one shard.
    pub deferred_poll_max_pending: usize,
    /// Parked polls of one session.
    pub deferred_poll_max_pending_per_session: usize,
    /// Bytes of the largest reply to a parked poll.
    pub deferred_poll_max_read_bytes: u64,
    /// Bytes that all parked disk reads of a shard reserve.
    pub deferred_poll_max_inflight_bytes: u64,
}

/// The metadata group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Writes under way at once.
    pub prepare_queue_depth: usize,
    /// Sessions remembered at once.
    pub clients_table_max: usize,
    /// Resource changes kept.
    pub change_log_resource_capacity: usize,
    /// Activity changes kept.
    pub change_log_activity_capacity: usize,
}

/// Every partition group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Writes under way at once in one partition.
    pub prepare_queue_depth: usize,
    /// Bytes of one partition's journal.
    pub wal_bytes_max: u64,
    /// Whether a poll from disk hashes each batch again.
    pub validate_checksum: bool,
}

/// Frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageBus {
    /// Bytes of the largest frame, header included.
    pub max_message_size: u32,
}

/// Personal access tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonalAccessToken {
    /// Tokens of one user.
    pub max_tokens_per_user: usize,
    /// `[personal_access_token.cleaner]`
    pub cleaner: PersonalAccessTokenCleaner,
}

/// Removal of expired tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonalAccessTokenCleaner {
    /// Whether it happens.
    pub enabled: bool,
    /// Time between two looks.
    pub interval: Duration,
}

/// Retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataMaintenance {
    /// Whether sealed segments are removed.
    pub cleaner_enabled: bool,
    /// Time between two looks.
    pub interval: Duration,
}

impl Config {
    pub(super) fn from_values(values: &Values) -> Result<Self, ConfigError> {
        let max_message_size = values.size("message_bus.max_message_size", MIB..=64 * MIB)?;
        let config = Self {
            path: PathBuf::from(values.nonempty("path")?),
            node: Node {
                advertised_address: values.host("node.advertised_address")?,
            },
            tcp: Tcp {
                enabled: values.switch("tcp.enabled"),
                address: values.address("tcp.address")?,
                tls: Tls {
                    enabled: values.switch("tcp.tls.enabled"),
                    self_signed: values.switch("tcp.tls.self_signed"),
                    cert_file: values.file("tcp.tls.cert_file"),
                    key_file: values.file("tcp.tls.key_file"),
                },
            },
            http: Http {
                address: values.address("http.address")?,
                metrics: Metrics {
                    enabled: values.switch("http.metrics.enabled"),
                    endpoint: values.endpoint("http.metrics.endpoint")?,
                },
            },
            logging: logging(values)?,
            heartbeat: Heartbeat {
                enabled: values.switch("heartbeat.enabled"),
                interval: values.time("heartbeat.interval", SECOND..=Duration::from_hours(1))?,
            },
            sharding: sharding(values)?,
            metadata: Metadata {
                prepare_queue_depth: values.count("metadata.prepare_queue_depth", 1..=127)?,
                clients_table_max: values.count("metadata.clients_table_max", 2..=65_536)?,
                change_log_resource_capacity: values
                    .count("metadata.change_log_resource_capacity", 1024..=1_048_576)?,
                change_log_activity_capacity: values
                    .count("metadata.change_log_activity_capacity", 1024..=1_048_576)?,
            },
            partition: Partition {
                prepare_queue_depth: values.count("partition.prepare_queue_depth", 1..=127)?,
                wal_bytes_max: values.size("partition.wal_bytes_max", max_message_size..=64 * GIB)?,
                validate_checksum: values.switch("partition.validate_checksum"),
            },
            message_bus: MessageBus {
                max_message_size: u32::try_from(max_message_size).unwrap_or(u32::MAX),
            },
            personal_access_token: PersonalAccessToken {
                max_tokens_per_user: values.count("personal_access_token.max_tokens_per_user", 1..=10_000)?,
                cleaner: PersonalAccessTokenCleaner {
                    enabled: values.switch("personal_access_token.cleaner.enabled"),
                    interval: values.time("personal_access_token.cleaner.interval", SECOND..=DAY)?,
                },
            },
            data_maintenance: DataMaintenance {
                cleaner_enabled: values.switch("data_maintenance.messages.cleaner_enabled"),
                interval: values.time("data_maintenance.messages.interval", SECOND..=DAY)?,
            },
        };
        config.check_together()?;
        Ok(config)
    }

    fn check_together(&self) -> Result<(), ConfigError> {
        let conflict = |text: &str| Err(ConfigError::Conflict(text.to_owned()));
        if !self.tcp.enabled {
            return conflict(
                "`tcp.enabled` is false, so no listener would serve clients; tcp is the only one there is",
            );
        }
        if self.tcp.address.ip().is_unspecified() && self.node.advertised_address.is_none() {
            return conflict(
                "`tcp.address` binds a wildcard address, which no client can dial; set `node.advertised_address` to \
                 the host name or IP address that clients reach this node at",
            );
        }
        let tls = &self.tcp.tls;
        if tls.cert_file.is_some() != tls.key_file.is_some() {
            return conflict("`tcp.tls.cert_file` and `tcp.tls.key_file` are set together or not at all");
        }
        if tls.enabled && !tls.self_signed && tls.cert_file.is_none() {
            return conflict(
                "`tcp.tls.enabled` needs a certificate: set `tcp.tls.cert_file` and `tcp.tls.key_file`, or \
                 `tcp.tls.self_signed`",
            );
        }
        Ok(())
    }
}

fn logging(values: &Values) -> Result<Logging, ConfigError> {
    let level_text = values.text("logging.level");
    let level = LoggingLevel::ALL
        .iter()
        .find(|(name, _)| level_text.eq_ignore_ascii_case(name));
    let Some((_, level)) = level else {
        return Err(values.refused("logging.level", "off, error, warn, info, debug or trace"));
    };
    let max_file_size = values.size("logging.max_file_size", 64 * KIB..=4 * GIB)?;
    Ok(Logging {
        path: PathBuf::from(values.nonempty("logging.path")?),
        level: *level,
        file_enabled: values.switch("logging.file_enabled"),
        max_file_size,
        max_total_size: values.size("logging.max_total_size", max_file_size..=1_000_000_000_000)?,
    })
}

fn sharding(values: &Values) -> Result<Sharding, ConfigError> {
    let max_pending = values.count("sharding.deferred_poll_max_pending", 1..=65_536)?;
    let max_read_bytes = values.size("sharding.deferred_poll_max_read_bytes", 64 * KIB..=GIB)?;
    Ok(Sharding {
        cpu_allocation: values.shards("sharding.cpu_allocation")?,
        inbox_capacity: values.count("sharding.inbox_capacity", 64..=1_048_576)?,
        shutdown_drain_timeout: values.time(
            "sharding.shutdown_drain_timeout",
            Duration::from_millis(100)..=TEN_MINUTES,
        )?,
        partition_io_capacity: values.count("sharding.partition_io_capacity", 1..=1024)?,
        deferred_poll_max_wait: values.time("sharding.deferred_poll_max_wait", SECOND..=TEN_MINUTES)?,
        deferred_poll_max_pending: max_pending,
        deferred_poll_max_pending_per_session: values
            .count("sharding.deferred_poll_max_pending_per_session", 1..=max_pending)?,
        deferred_poll_max_read_bytes: max_read_bytes,
        deferred_poll_max_inflight_bytes: values
            .size("sharding.deferred_poll_max_inflight_bytes", max_read_bytes..=16 * GIB)?,
    })
}

/// Reading by kind. The layers have already checked that a switch is a boolean and a count an integer.
impl Values {
    fn switch(&self, key: &str) -> bool {
        self.get(key).as_bool().unwrap_or_default()
    }

    /// Text as written; a number written without quotes reads as its digits.
    fn text(&self, key: &str) -> String {
        match self.get(key) {
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        }
    }

    fn nonempty(&self, key: &str) -> Result<String, ConfigError> {
        let text = self.text(key);
        if text.is_empty() {
            Err(self.refused(key, "a path, not empty"))
        } else {
            Ok(text)
        }
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        let text = self.text(key);
        (!text.is_empty()).then(|| PathBuf::from(text))
    }

    fn address(&self, key: &str) -> Result<SocketAddr, ConfigError> {
        self.text(key)
            .parse()
            .map_err(|_| self.refused(key, "an IP address and a port, as 127.0.0.1:8090 or [::1]:8090"))
    }

    fn host(&self, key: &str) -> Result<Option<String>, ConfigError> {
        let text = self.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        let label_fits = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let named = text.len() <= 253 && text.split('.').all(label_fits);
        match text.parse::<std::net::IpAddr>() {
            Ok(ip) if ip.is_unspecified() => {}
            Ok(_) => return Ok(Some(text)),
            Err(_) if named => return Ok(Some(text)),
            Err(_) => {}
        }
        Err(self.refused(key, "a host name or an IP address that is no wildcard, without a port"))
    }

    fn endpoint(&self, key: &str) -> Result<String, ConfigError> {
        let text = self.text(key);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
        if text.len() > 1 && text.starts_with('/') && text.bytes().all(plain) {
            Ok(text)
        } else {
            Err(self.refused(key, "a path that begins with a slash, of letters, digits and / - _ ."))
        }
    }

    fn count(&self, key: &str, bounds: RangeInclusive<usize>) -> Result<usize, ConfigError> {
        let number = self
            .get(key)
            .as_integer()
            .and_then(|number| usize::try_from(number).ok());
        number
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| self.refused(key, format!("{} to {}", bounds.start(), bounds.end())))
    }

    fn size(&self, key: &str, bounds: RangeInclusive<u64>) -> Result<u64, ConfigError> {
        parse_size(&self.text(key))
            .filter(|size| bounds.contains(size))
            .ok_or_else(|| {
                let (low, high) = (format_size(*bounds.start()), format_size(*bounds.end()));
                self.refused(key, format!("a size from {low} to {high}, as \"64 MiB\""))
            })
    }

    fn time(&self, key: &str, bounds: RangeInclusive<Duration>) -> Result<Duration, ConfigError> {
        parse_time(&self.text(key))
            .filter(|time| bounds.contains(time))
            .ok_or_else(|| {
                let [low, high] = [bounds.start(), bounds.end()].map(|time| humantime::format_duration(*time));
                self.refused(key, format!("a time from {low} to {high}, as \"30 s\""))
            })
    }

    fn shards(&self, key: &str) -> Result<usize, ConfigError> {
        let text = self.text(key);
        if text.eq_ignore_ascii_case("all") {
            return Ok(thread::available_parallelism().map_or(1, usize::from).min(SHARDS_MAX));
        }
        text.parse()
            .ok()
            .filter(|shards| (1..=SHARDS_MAX).contains(shards))
            .ok_or_else(|| self.refused(key, format!("\"all\" or 1 to {SHARDS_MAX}")))
    }
}
