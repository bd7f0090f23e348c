//! Stored consumer offsets (wire 8.1).

use crate::consumer::Consumer;
use crate::identifier::Identifier;
use crate::wire_struct::wire_struct;

/// Answer after a local write only; for a partition with one replica.
pub const ACK_NONE: u8 = 0;
/// Answer after the quorum has it.
pub const ACK_QUORUM: u8 = 1;

wire_struct! {
    /// Reads a stored offset (120).
    pub struct GetConsumerOffset {
        /// Whose offset.
        consumer: Consumer,
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The partition.
        partition_id: Option<u32> = optional_partition,
    }

    /// Stores the offset of the last processed message (121).
    pub struct StoreConsumerOffset {
        /// Whose offset.
        consumer: Consumer,
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The partition.
        partition_id: Option<u32> = optional_partition,
        /// The offset of the last processed message.
        offset: u64,
        /// [`ACK_NONE`] or [`ACK_QUORUM`].
        ack: u8,
    }

    /// Deletes a stored offset (122).
    pub struct DeleteConsumerOffset {
        /// Whose offset.
        consumer: Consumer,
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The partition.
        partition_id: Option<u32> = optional_partition,
        /// [`ACK_NONE`] or [`ACK_QUORUM`].
        ack: u8,
    }
}
