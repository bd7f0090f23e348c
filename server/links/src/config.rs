//! What links are told when a node starts.

use iggy_consensus::GroupId;
use iggy_consensus::message::Message;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use crate::tls::LinkTls;

/// Who a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Cluster.
    pub cluster: u128,
    /// Number of the node in the roster.
    pub replica: u8,
    /// Start of its process; rises with every start.
    pub incarnation: u64,
}

/// The secret that the nodes of a cluster share, at least 32 bytes.
#[derive(Clone)]
pub struct Secrets {
    /// The secret.
    pub current: String,
    /// The one before, while it is being changed.
    pub previous: Option<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secrets(..)")
    }
}

/// Bounds and deadlines of links.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Links between two nodes, 1 to 256.
    pub connections_per_peer: u16,
    /// Frames of one write.
    pub batch_max: usize,
    /// Bytes of one frame.
    pub message_bytes_max: u32,
    /// Frames that may wait for one link.
    pub queue_max: usize,
    /// Bytes that may wait for one peer.
    pub queue_bytes_max: usize,
    /// Longest pause between two attempts to reach a peer.
    pub reconnect_period: Duration,
    /// Time to send what waits when a node stops.
    pub close_grace: Duration,
    /// Time a connection has to become a link.
    pub handshake_grace: Duration,
    /// Bytes to read ahead.
    pub read_buffer: usize,
    /// Pause between two signs of life.
    pub pulse: Duration,
    /// A peer that says nothing, or takes nothing, for this long has lost its link.
    pub silence_max: Duration,
}

/// What [`Links`](crate::Links) are made of.
pub struct LinksConfig {
    /// Who this node is.
    pub identity: Identity,
    /// Where each node of the cluster listens for links, by its number.
    pub addresses: Vec<SocketAddr>,
    /// Version of the program, the same on all nodes.
    pub release: String,
    /// The secret, when the nodes must show that they share one.
    pub secrets: Option<Secrets>,
    /// TLS, when links are encrypted.
    pub tls: Option<LinkTls>,
    /// Bounds and deadlines.
    pub limits: Limits,
}

/// Where what comes in goes.
#[derive(Clone)]
pub struct Inbound {
    /// The shards. A link waits for room in the queue of the shard it has something for.
    pub shards: Vec<mpsc::Sender<Message>>,
    /// Which of them hosts a group.
    pub shard_of: Arc<dyn Fn(&GroupId) -> usize + Send + Sync>,
    /// Called with number and incarnation of a node that has shown that it lives.
    pub heard: Arc<dyn Fn(u8, u64) + Send + Sync>,
}
