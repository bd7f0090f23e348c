//! What all connections of the node leave unread.
//!
//! Each connection has a bound of its own, and there may be thousands: so the replies that wait for sockets are counted
//! over all of them. Where they are too many, a connection keeps its even part, and whoever leaves more than that unread is
//! refused further reads. Small answers always pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of unread replies above which a connection is held to its even part of them.
pub const UNREAD_OF_NODE_MAX: usize = 1 << 30;

/// Bytes that wait for the sockets of a node.
#[derive(Debug)]
pub struct NodeUnread {
    bytes: AtomicUsize,
    connections: AtomicUsize,
    bytes_max: usize,
}

impl NodeUnread {
    /// With a bound in bytes. Even parts may take as much again.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            bytes_max,
        }
    }
}

/// The part of one connection.
#[derive(Debug)]
pub struct Unread {
    node: Arc<NodeUnread>,
    bytes: AtomicUsize,
}

impl Unread {
    /// Nothing yet.
    pub fn new(node: Arc<NodeUnread>) -> Self {
        node.connections.fetch_add(1, Ordering::Relaxed);
        Self {
            node,
            bytes: AtomicUsize::new(0),
        }
    }

    /// Whether the node has room for a read of so many bytes.
    pub fn admits(&self, bytes: usize) -> bool {
        let node = &self.node;
        let all = node.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        if all <= node.bytes_max {
            return true;
        }
        let part = node.bytes_max / node.connections.load(Ordering::Relaxed).max(1);
        let own = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        own <= part && all <= node.bytes_max.saturating_mul(2)
    }

    /// Notes bytes that wait.
    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.node.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes bytes that were written.
    pub fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.node.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        // What was never written went with the connection.
        self.node
            .bytes
            .fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        self.node.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(bytes_max: usize, count: usize) -> (Arc<NodeUnread>, Vec<Unread>) {
        let node = Arc::new(NodeUnread::new(bytes_max));
        let connections = (0..count).map(|_| Unread::new(Arc::clone(&node))).collect();
        (node, connections)
    }

    #[test]
    fn given_a_slow_reader_when_the_node_is_full_should_be_refused_while_others_keep_their_part() {
        let (node, connections) = connections(1_000, 10);
        connections[0].add(900);
        assert!(connections[0].admits(100), "there is room");
        connections[0].add(100);
        assert!(!connections[0].admits(1), "it has ten times its part");
        assert!(connections[1].admits(100));
        assert!(!connections[1].admits(101));
        connections[0].remove(500);
        assert!(connections[0].admits(500));
        assert_eq!(node.bytes.load(Ordering::Relaxed), 500);
    }

    #[test]
    fn given_connections_that_come_and_take_their_part_when_many_do_should_stay_within_twice_the_bound() {
        let node = Arc::new(NodeUnread::new(1_000));
        let mut open = Vec::new();
        for _ in 0..500 {
            open.push(Unread::new(Arc::clone(&node)));
            for connection in &open {
                while connection.admits(10) {
                    connection.add(10);
                }
            }
            assert!(node.bytes.load(Ordering::Relaxed) <= 2_000);
        }
        drop(open);
        assert_eq!(node.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(node.connections.load(Ordering::Relaxed), 0);
    }
}
