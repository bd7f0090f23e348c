//! Consumer groups (wire 8.2).

use crate::identifier::Identifier;
use crate::name::Name;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// Reads a group with its members (600).
    pub struct GetConsumerGroup {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The group.
        group: Identifier,
    }

    /// Lists the groups of a topic (601).
    pub struct GetConsumerGroups {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
    }

    /// Creates a group (602).
    pub struct CreateConsumerGroup {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// Its name.
        name: Name,
    }

    /// Deletes a group (603).
    pub struct DeleteConsumerGroup {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The group.
        group: Identifier,
    }

    /// Makes the session a member (604).
    pub struct JoinConsumerGroup {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The group.
        group: Identifier,
    }

    /// Ends the membership of the session (605).
    pub struct LeaveConsumerGroup {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The group.
        group: Identifier,
    }

    /// Reads which partitions the session owns (606).
    pub struct SyncConsumerGroup {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
        /// The group.
        group: Identifier,
    }
}
