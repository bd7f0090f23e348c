//! Keeps a link to a node with a higher number up.

use crate::handshake::{self, Met};
use crate::link::{self, Transport};
use crate::preamble::Preamble;
use crate::switchboard::Links;
use rand::Rng;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Pause after the first failed attempt; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Dials until the node stops. After a failure it pauses, longer each time, and never for longer than
/// `Limits::reconnect_period`.
pub async fn keep_up(links: Arc<Links>, peer: u8, index: u16) {
    let longest = links.config.limits.reconnect_period;
    let mut pause = FIRST_PAUSE.min(longest);
    let mut told: Option<String> = None;
    for attempt in 0_usize.. {
        let dialed = tokio::select! {
            () = links.stop.cancelled() => return,
            dialed = dial(&links, peer, index, attempt) => dialed,
        };
        match dialed {
            Ok((transport, met)) => {
                told = None;
                pause = FIRST_PAUSE.min(longest);
                link::run(&links, transport, met).await;
            }
            Err(error) => {
                // Said once, not with each attempt.
                if told.as_ref() != Some(&error) {
                    tracing::warn!(peer, link = index, %error, "no link to a node of the cluster");
                    told = Some(error.clone());
                }
                if let Some(peer) = links.peer(peer) {
                    peer.trouble(Some(error));
                }
            }
        }
        // Not all at once, when many lost the same node.
        let jittered = pause.mul_f64(rand::rng().random_range(0.5..1.0));
        tokio::select! {
            () = links.stop.cancelled() => return,
            () = tokio::time::sleep(jittered) => {}
        }
        pause = (pause * 2).min(longest);
    }
}

async fn dial(links: &Links, peer: u8, index: u16, attempt: usize) -> Result<(Transport, Met), String> {
    let deadline = links.config.limits.handshake_grace;
    let dialed = tokio::time::timeout(deadline, connect(links, peer, index, attempt)).await;
    dialed.map_err(|_| format!("it did not answer within {deadline:?}"))?
}

async fn connect(links: &Links, peer: u8, index: u16, attempt: usize) -> Result<(Transport, Met), String> {
    let address = links.config.addresses[usize::from(peer)];
    let stream = TcpStream::connect(address);
    let stream = stream
        .await
        .map_err(|error| format!("{address} cannot be reached: {error}"))?;
    let preamble = Preamble {
        dialer: links.config.identity.replica,
        link: index,
    };
    let (mut transport, channel) = Transport::dial(links, stream, preamble, address.ip())
        .await
        .map_err(|error| format!("{address} cannot be linked: {error}"))?;
    let met = handshake::dial(&mut transport, &links.facts, preamble, peer, attempt, &channel).await;
    let met = met.map_err(|error| format!("{address} cannot be linked: {error}"))?;
    Ok((transport, met))
}
