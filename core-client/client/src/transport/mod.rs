//! Byte streams to a node: TCP, plain or with TLS. Everything above sees [`ByteStream`] only.

mod tcp;
mod tls;

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::config::{ClientConfig, Endpoint};
use crate::error::IggyError;

/// A bidirectional stream of bytes.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for T {}

/// Why a node could not be dialled.
#[derive(Debug)]
pub enum DialError {
    /// Another attempt may succeed.
    Unreachable(io::Error),
    /// No attempt will succeed: the TLS settings or the certificate are wrong.
    Tls(IggyError),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error)
    }
}

/// Longest a dial may take, TLS handshake included.
const DIAL_LIMIT: Duration = Duration::from_secs(2);

/// Dials a node within two seconds.
pub async fn dial(endpoint: &Endpoint, config: &ClientConfig) -> Result<Box<dyn ByteStream>, DialError> {
    let dial = async {
        let stream = tcp::dial(endpoint, config.nodelay).await?;
        match &config.tls {
            None => Ok(Box::new(stream) as Box<dyn ByteStream>),
            Some(tls) => Ok(Box::new(tls::handshake(stream, endpoint, tls).await?) as Box<dyn ByteStream>),
        }
    };
    tokio::time::timeout(DIAL_LIMIT, dial).await.unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no connection to {endpoint} within {DIAL_LIMIT:?}"),
        )
        .into())
    })
}
