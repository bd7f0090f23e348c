//! Plain TCP.

use std::io;

use tokio::net::TcpStream;

use crate::config::Endpoint;

/// Dials every address the host resolves to until one answers.
pub async fn dial(endpoint: &Endpoint, nodelay: bool) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
    // Without this a small frame would wait for the acknowledgement of the one before it.
    stream.set_nodelay(nodelay)?;
    Ok(stream)
}
