//! Accepts TCP connections, plain or TLS, on every shard.
//!
//! Each shard listens on the same address, so that the kernel spreads connections and no shard hands sockets to another.

use super::serve;
use crate::node::Node;
use rustls::ServerConfig;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const BACKLOG: i32 = 1024;
/// A TLS handshake takes no longer than this.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);
/// Pause after a failed accept, mostly for lack of file descriptors, which an immediate retry would only spin on.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds one listener for each of `count` shards. With port 0 all of them get the port the first one got.
pub fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<std::net::TcpListener>> {
    if address.port() != 0 {
        // Listeners that share a port would also share it with another server of the same user, and clients would reach
        // one or the other: a bind that does not share shows that nobody has it.
        drop(listen(address, false)?);
    }
    let mut address = address;
    let mut listeners = Vec::with_capacity(count);
    for _ in 0..count {
        let listener = listen(address, count > 1)?;
        address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(listeners)
}

fn listen(address: SocketAddr, shared: bool) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// When a node takes connections.
#[derive(Clone)]
pub struct Gates {
    /// From when on: a node that has no root user yet would refuse every login for good. Until then the kernel keeps
    /// the connections.
    pub admit: CancellationToken,
    /// Until when.
    pub stop: CancellationToken,
}

/// Accepts while the gates are open; each connection runs on this thread and is tracked in `connections`.
pub async fn accept(
    node: Arc<Node>,
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    connections: TaskTracker,
    gates: Gates,
) {
    let Gates { admit, stop } = gates;
    tokio::select! {
        () = stop.cancelled() => return,
        () = admit.cancelled() => {}
    }
    let tls = tls.map(TlsAcceptor::from);
    let mut full = false;
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let Ok(place) = Arc::clone(&node.connection_places).try_acquire_owned() else {
                    if !full {
                        tracing::warn!("no place for another connection: raise the limit of open files");
                    }
                    full = true;
                    continue;
                };
                full = false;
                node.metrics.connections_accepted.inc();
                let connection = start(Arc::clone(&node), stream, address, tls.clone());
                connections.spawn_local(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn start(node: Arc<Node>, stream: TcpStream, address: SocketAddr, tls: Option<TlsAcceptor>) {
    // Small replies must not wait for the acknowledgement of the reply before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%address, %error, "the connection ended before it began");
        return;
    }
    let Some(tls) = tls else {
        return serve(node, stream, address).await;
    };
    match tokio::time::timeout(HANDSHAKE_DEADLINE, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve(node, stream, address).await,
        Ok(Err(error)) => tracing::debug!(%address, %error, "a TLS handshake failed"),
        Err(_) => tracing::debug!(%address, "a TLS handshake took too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_port_of_another_server_when_bound_should_refuse_instead_of_sharing_it() {
        let first = bind(SocketAddr::from(([127, 0, 0, 1], 0)), 2).unwrap();
        let address = first[0].local_addr().unwrap();
        assert!(first.iter().all(|listener| listener.local_addr().unwrap() == address));
        assert_eq!(bind(address, 2).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert_eq!(bind(address, 2).unwrap().len(), 2);
    }
}
