//! A stored consumer offset (wire 8.1). No offset is an empty body.

use crate::wire_struct::wire_struct;

wire_struct! {
    /// A stored offset.
    pub struct ConsumerOffset {
        /// The partition.
        partition_id: u32,
        /// The newest offset of the partition.
        current_offset: u64,
        /// The offset of the last processed message.
        stored_offset: u64,
    }
}
