//! Which nodes hold a partition.
//!
//! Outside a group its members are named by the ids of their nodes, inside by their places in the list the metadata has
//! decided on. [`PartitionGroup`](crate::partition_group::PartitionGroup) translates; a node that is not in the list has
//! no say in the group.

/// Nodes that hold a partition, in member order: the first one leads view 0. Empty for nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Vec<u8>);

impl Members {
    /// The members the metadata names.
    pub fn new(nodes: Vec<u8>) -> Self {
        Self(nodes)
    }

    /// Every node of a cluster of so many.
    pub fn all(nodes: u8) -> Self {
        Self((0..nodes).collect())
    }

    /// How many there are.
    pub fn count(&self) -> u8 {
        self.0.len() as u8
    }

    /// Place of a node; `None` when it is not a member.
    pub fn index_of(&self, node: u8) -> Option<u8> {
        let place = self.0.iter().position(|member| *member == node)?;
        u8::try_from(place).ok()
    }

    /// The node at a place.
    pub fn node(&self, index: u8) -> Option<u8> {
        self.0.get(usize::from(index)).copied()
    }

    /// The nodes, in member order.
    pub fn nodes(&self) -> &[u8] {
        &self.0
    }
}
