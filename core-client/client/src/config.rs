//! How a client reaches and treats its server: every setting with its unit and default.

use std::path::PathBuf;
use std::time::Duration;

use iggy_protocol::limits::DEFAULT_MAX_FRAME_BYTES;
use iggy_protocol::request::session::Credentials;

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Endpoint {
    /// An endpoint.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// Reads `host:port`, with IPv6 addresses in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let host = match host.strip_prefix('[') {
            Some(inside) => inside.strip_suffix(']')?,
            None if host.contains(':') => return None,
            None => host,
        };
        (!host.is_empty()).then(|| Self::new(host, port))
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{}:{}", self.host, self.port)
        }
    }
}

/// TLS of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// The name the certificate must be for; the host of the endpoint when `None`.
    pub domain: Option<String>,
    /// Certificates to trust besides those of the system, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Whether the certificate is checked at all. Default true.
    pub validate_certificate: bool,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            domain: None,
            ca_file: None,
            validate_certificate: true,
        }
    }
}

/// How a lost link comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconnectionConfig {
    /// Passes over all endpoints before a connect gives up; unlimited when `None`. Default unlimited.
    pub max_retries: Option<u32>,
    /// Ceiling of the first random pause between passes. Default 1 s; it doubles up to 10 s.
    pub interval: Duration,
    /// A link that held this long starts again with the first pause. Default 5 s.
    pub reestablish_after: Duration,
}

impl Default for ReconnectionConfig {
    fn default() -> Self {
        Self {
            max_retries: None,
            interval: Duration::from_secs(1),
            reestablish_after: Duration::from_secs(5),
        }
    }
}

/// Everything a client is configured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// The node to start from. Default 127.0.0.1:8090.
    pub endpoint: Endpoint,
    /// TLS, or plain TCP when `None`. Default plain.
    pub tls: Option<TlsConfig>,
    /// Whether small frames are sent at once (`TCP_NODELAY`). Default true.
    pub nodelay: bool,
    /// Who signs in on connect; nobody when `None`.
    pub credentials: Option<Credentials>,
    /// How a lost link comes back.
    pub reconnection: ReconnectionConfig,
    /// Time between two pings of a link. Default 5 s.
    pub heartbeat_interval: Duration,
    /// Deadline of a call that names none. Default 30 s. Polls have their wait plus 10 s.
    pub request_timeout: Duration,
    /// Writes under way or unresolved at once. Default 256.
    pub max_pending_operations: u32,
    /// Bytes of the frames of those writes. Default 64 MiB.
    pub max_pending_operation_bytes: u32,
    /// Largest request, in bytes: what the server is configured to take. A larger one is refused before it is sent,
    /// because a server answers it by closing the connection. Default 64 MiB.
    pub max_frame_bytes: u32,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            endpoint: Endpoint::new("127.0.0.1", 8090),
            tls: None,
            nodelay: true,
            credentials: None,
            reconnection: ReconnectionConfig::default(),
            heartbeat_interval: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            max_pending_operations: 256,
            max_pending_operation_bytes: 64 * 1024 * 1024,
            max_frame_bytes: DEFAULT_MAX_FRAME_BYTES,
        }
    }
}
