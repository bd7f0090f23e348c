//! Identities of what the metadata holds, each fenced by the position that created it.
//!
//! An id alone may be given again after a deletion; the pair of id and creating position never is.

use serde::{Deserialize, Serialize};

/// One partition in one of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionKey {
    /// Id of the stream.
    pub stream_id: u32,
    /// Id of the topic within the stream.
    pub topic_id: u32,
    /// Id of the partition within the topic, from 0 without gaps.
    pub partition_id: u32,
    /// Position of the metadata entry that created the partition (wire 4.8).
    pub incarnation: u64,
}

/// One topic in one of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicKey {
    /// Id of the stream.
    pub stream_id: u32,
    /// Id of the topic within the stream.
    pub topic_id: u32,
    /// Position of the metadata entry that created the topic.
    pub created_op: u64,
}

/// One consumer group in one of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKey {
    /// Id of the stream.
    pub stream_id: u32,
    /// Id of the topic within the stream.
    pub topic_id: u32,
    /// Id of the group within the topic.
    pub group_id: u32,
    /// Position of the metadata entry that created the group.
    pub created_op: u64,
}

/// One session: the client's own id and the position of its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// Random id chosen by the client, never 0.
    pub client: u128,
    /// Position of the committed registration, never 0.
    pub session: u64,
}

/// Hands out ids in ascending order and returns to freed ones only when the space is used up.
///
/// An id seen in an old log line or kept by a client therefore keeps meaning one thing for as long as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdSpace {
    next: u32,
    size: u32,
}

impl IdSpace {
    /// An unused space of the ids `0..size`.
    pub const fn new(size: u32) -> Self {
        Self { next: 0, size }
    }

    /// An unused space whose first `taken` ids are never handed out.
    pub const fn starting_at(taken: u32, size: u32) -> Self {
        Self { next: taken, size }
    }

    /// The id the next [`take`](Self::take) returns, or `None` when every id is in use.
    pub fn peek(&self, is_used: impl Fn(u32) -> bool) -> Option<u32> {
        if self.next < self.size {
            return Some(self.next);
        }
        (0..self.size).find(|id| !is_used(*id))
    }

    /// Takes the next id, or `None` when every id is in use.
    pub fn take(&mut self, is_used: impl Fn(u32) -> bool) -> Option<u32> {
        let id = self.peek(is_used)?;
        if self.next < self.size {
            self.next += 1;
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_freed_id_when_taking_should_prefer_an_unused_one() {
        let mut space = IdSpace::new(3);
        assert_eq!(space.take(|_| false), Some(0));
        assert_eq!(space.take(|id| id == 0), Some(1));
        // 0 was freed; 2 was never used.
        assert_eq!(space.take(|id| id == 1), Some(2));
    }

    #[test]
    fn given_a_used_up_space_when_taking_should_return_the_lowest_freed_id() {
        let mut space = IdSpace::new(3);
        for _ in 0..3 {
            space.take(|_| true);
        }
        assert_eq!(space.take(|id| id != 1), Some(1));
        assert_eq!(space.take(|_| true), None);
    }
}
