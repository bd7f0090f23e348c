//! Segments of a partition (wire 9).

use crate::identifier::Identifier;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// Deletes the oldest sealed segments (503).
    pub struct DeleteSegments {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The partition.
        partition_id: u32,
        /// How many.
        segments_count: u32,
    }
}
