//! Takes connections, reads which link they want to be, and hands them to the lane of that link.

use crate::preamble::{self, Preamble};
use crate::switchboard::Links;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::task::TaskTracker;

/// Pause after a failed accept, mostly for lack of file descriptors, which an immediate retry would only spin on.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Strangers that may hold a connection at once, besides the links of all peers.
const STRANGERS_MAX: usize = 64;

/// A connection whose preamble was read.
pub struct Arrival {
    /// The connection.
    pub stream: TcpStream,
    /// Where it came from.
    pub from: SocketAddr,
    /// What it wants to be.
    pub preamble: Preamble,
    /// Held until it is a link, or is gone.
    pub place: OwnedSemaphorePermit,
}

/// Accepts until the node stops.
pub async fn listen(links: Arc<Links>, listener: TcpListener, lanes: Vec<mpsc::Sender<Arrival>>) {
    let all = links.config.addresses.len() * usize::from(links.config.limits.connections_per_peer);
    let places = Arc::new(Semaphore::new(all + STRANGERS_MAX));
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = links.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accepting a link failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(%from, "too many connections want to be links; this one is closed");
            continue;
        };
        let (links, lanes) = (Arc::clone(&links), lanes.clone());
        tasks.spawn(async move {
            let grace = links.config.limits.handshake_grace;
            let arriving = tokio::time::timeout(grace, arrive(stream, from, place));
            let arrived = tokio::select! {
                () = links.stop.cancelled() => return,
                arrived = arriving => arrived,
            };
            match arrived {
                Ok(Ok(arrival)) => {
                    let lane = usize::from(arrival.preamble.link) % lanes.len();
                    if lanes[lane].try_send(arrival).is_err() {
                        tracing::warn!(%from, "too many links begin at once; this one is closed");
                    }
                }
                Ok(Err(error)) => tracing::debug!(%from, error, "a connection did not become a link"),
                Err(_) => tracing::debug!(%from, "a connection did not say which link it wants to be"),
            }
        });
    }
}

async fn arrive(mut stream: TcpStream, from: SocketAddr, place: OwnedSemaphorePermit) -> Result<Arrival, String> {
    let mut bytes = [0; preamble::LEN];
    stream.read_exact(&mut bytes).await.map_err(|error| error.to_string())?;
    let preamble = Preamble::decode(bytes).map_err(|error| error.to_string())?;
    Ok(Arrival {
        stream,
        from,
        preamble,
        place,
    })
}
