//! When each node was last heard, by whichever shard heard it.
//!
//! A group in which nothing happens says nothing: that its members live is known from their nodes, once for all groups.

use std::sync::atomic::{AtomicU64, Ordering};

/// Nodes of a cluster.
const NODES_MAX: usize = iggy_consensus::quorum::REPLICAS_MAX as usize;

/// When each node was last heard, and in which life of its process. The shards of a node share one.
#[derive(Debug, Default)]
pub struct NodesHeard {
    nodes: [Heard; NODES_MAX],
}

#[derive(Debug, Default)]
struct Heard {
    incarnation: AtomicU64,
    at: AtomicU64,
}

impl NodesHeard {
    /// Notes that something came from a node, at this microsecond of the monotonic clock. What an earlier life of its
    /// process sent is ignored, and so is a node that no cluster has.
    pub fn note(&self, node: u8, incarnation: u64, at: u64) {
        let Some(heard) = self.nodes.get(usize::from(node)) else {
            return;
        };
        // Two lives of a process do not speak at once: who reads the time of the earlier one with the later incarnation
        // is wrong by no more than a restart takes.
        if heard.incarnation.fetch_max(incarnation, Ordering::Relaxed) <= incarnation {
            heard.at.fetch_max(at, Ordering::Relaxed);
        }
    }

    /// Incarnation of a node's process and when it was heard last; `None` when it never was.
    pub fn last(&self, node: u8) -> Option<(u64, u64)> {
        let heard = self.nodes.get(usize::from(node))?;
        let at = heard.at.load(Ordering::Relaxed);
        (at > 0).then(|| (heard.incarnation.load(Ordering::Relaxed), at))
    }
}
