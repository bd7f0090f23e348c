//! All links of a node, as the rest of it sees them.

use crate::config::{Inbound, LinksConfig};
use crate::handshake::{Facts, Key, Release};
use crate::lane::{self, Lane};
use crate::peer::{Frame, Peer};
use crate::status::PeerStatus;
use iggy_consensus::codec;
use iggy_consensus::message::Message;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio_util::sync::CancellationToken;

/// See the module's page.
pub struct Links {
    pub(crate) config: LinksConfig,
    pub(crate) facts: Facts,
    pub(crate) inbound: Inbound,
    /// By number; `None` for this node itself.
    peers: Vec<Option<Peer>>,
    pub(crate) stop: CancellationToken,
}

impl Links {
    /// Links that are made by as many lanes as there are shards: each lane runs on the thread of one of them.
    ///
    /// # Panics
    ///
    /// When the roster does not hold this node, or there is no shard.
    pub fn new(config: LinksConfig, inbound: Inbound) -> (Arc<Self>, Vec<Lane>) {
        let own = usize::from(config.identity.replica);
        assert!(own < config.addresses.len(), "the roster must hold this node");
        assert!(!inbound.shards.is_empty(), "somebody must take what comes in");
        let limits = config.limits;
        let peer = |replica: usize| {
            let links = limits.connections_per_peer;
            Peer::new(replica as u8, links, limits.queue_max, limits.queue_bytes_max)
        };
        let all = 0..config.addresses.len();
        let peers = all.map(|replica| (replica != own).then(|| peer(replica))).collect();
        let secrets = config.secrets.iter();
        let keys = secrets.flat_map(|secrets| std::iter::once(&secrets.current).chain(&secrets.previous));
        let facts = Facts {
            identity: config.identity,
            nodes: config.addresses.len() as u8,
            links: limits.connections_per_peer,
            release: Release::of(&config.release),
            keys: keys.map(|secret| Key::of(secret.as_bytes())).collect(),
        };
        let lanes = inbound.shards.len();
        let links = Arc::new(Self {
            config,
            facts,
            inbound,
            peers,
            stop: CancellationToken::new(),
        });
        let lanes = lane::lanes(&links, lanes);
        (links, lanes)
    }

    /// Sends a message to a node. Never waits: without a link or without room it is dropped, and counted.
    pub fn send(&self, to: u8, message: &Message) {
        let Some(peer) = self.peer(to) else { return };
        if let Some(beat) = message.as_beat() {
            return peer.beat(beat);
        }
        let pieces = codec::encode(message);
        let length = pieces.iter().map(bytes::Bytes::len).sum::<usize>();
        let limit = self.config.limits.message_bytes_max;
        if length > limit as usize {
            tracing::error!(
                to,
                length,
                limit,
                kind = message.kind.name(),
                "a message to a replica is larger than message_bus.max_message_size"
            );
            peer.counts.dropped.fetch_add(1, Relaxed);
            return;
        }
        peer.push(&message.group, Frame { pieces, length });
    }

    /// The links to every other node.
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.peers.iter().flatten().map(Peer::status).collect()
    }

    /// Ends every link after what waits has been sent, or `Limits::close_grace` is over; lanes end with the last one.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn peer(&self, replica: u8) -> Option<&Peer> {
        self.peers.get(usize::from(replica))?.as_ref()
    }

    pub(crate) fn all_peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().flatten()
    }
}
