//! What a node can say of its links.

/// The links to one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Number of the peer.
    pub replica: u8,
    /// Links that are up.
    pub links_up: u16,
    /// Links that should be.
    pub links: u16,
    /// Start of the peer's process, as its newest link said; 0 before the first one.
    pub incarnation: u64,
    /// Frames that wait to be sent.
    pub queued: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Frames sent, heartbeats of many groups being one.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames received.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Messages that found no link or no room.
    pub dropped: u64,
    /// Messages received that could not be read, or were sent in the name of another node.
    pub refused: u64,
    /// Why there is no link, where the last attempt failed.
    pub trouble: Option<String>,
}
