//! Topics (wire 9).

use crate::identifier::Identifier;
use crate::name::Name;
use crate::options::Options;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// Reads a topic with its partitions (300).
    pub struct GetTopic {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
    }

    /// Lists the topics of a stream (301).
    pub struct GetTopics {
        /// The stream.
        stream: Identifier,
    }

    /// Creates a topic (302).
    pub struct CreateTopic {
        /// The stream.
        stream: Identifier,
        /// How many partitions it starts with: 1..=1000.
        partitions_count: u32,
        /// Its name.
        name: Name,
        /// Its settings.
        options: Options = options_to_end,
    }

    /// Deletes a topic (303).
    pub struct DeleteTopic {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
    }
}
