//! Consumer groups (wire 8.2). What does not exist is an empty body.

use bytes::BytesMut;

use crate::codec::{Decode, DecodeError, Encode, Reader};
use crate::name::Name;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// A consumer group.
    pub struct ConsumerGroup {
        /// Its id.
        id: u32,
        /// Partitions of the topic.
        partitions_count: u32,
        /// Its members.
        members_count: u32,
        /// Its name.
        name: Name,
    }

    /// A member and the partitions it owns.
    pub struct ConsumerGroupMember {
        /// Its id within the group.
        id: u32,
        /// The partitions it owns.
        partitions: Vec<u32> = counted,
    }

    /// Which partitions a member owns.
    pub struct Assignment {
        /// Rises with every rebalance.
        generation: u64,
        /// The partitions it owns.
        partitions: Vec<u32> = counted,
    }

    /// The groups of a topic.
    pub struct ConsumerGroups {
        /// In id order.
        groups: Vec<ConsumerGroup> = to_end,
    }
}

/// A consumer group and its members.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerGroupDetails {
    /// The group.
    pub group: ConsumerGroup,
    /// As many members as the group says.
    pub members: Vec<ConsumerGroupMember>,
}

impl Encode for ConsumerGroupDetails {
    fn encode(&self, out: &mut BytesMut) {
        debug_assert_eq!(self.group.members_count as usize, self.members.len());
        self.group.encode(out);
        self.members.iter().for_each(|member| member.encode(out));
    }
}

impl<'a> Decode<'a> for ConsumerGroupDetails {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let group = ConsumerGroup::decode(reader)?;
        let members = (0..group.members_count)
            .map(|_| ConsumerGroupMember::decode(reader))
            .collect::<Result<_, _>>()?;
        Ok(Self { group, members })
    }
}
