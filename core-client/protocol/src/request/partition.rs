//! Partitions of a topic (wire 9).

use crate::identifier::Identifier;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// Adds partitions (402).
    pub struct CreatePartitions {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// How many: 1..=1000.
        partitions_count: u32,
    }

    /// Removes partitions, the highest ids first (403).
    pub struct DeletePartitions {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// How many: 1..=1000.
        partitions_count: u32,
    }
}
