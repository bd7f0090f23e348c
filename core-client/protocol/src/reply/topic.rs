//! Topics and their partitions (wire 9). What does not exist is an empty body.

use bytes::BytesMut;

use crate::codec::{Decode, DecodeError, Encode, Reader};
use crate::context::PartitionContext;
use crate::name::Name;
use crate::options::Options;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// A topic.
    pub struct Topic {
        /// Its id.
        id: u32,
        /// When it was created, in microseconds.
        created_at: u64,
        /// Its partitions.
        partitions_count: u32,
        /// Bytes of its messages.
        size_bytes: u64,
        /// Messages in it.
        messages_count: u64,
        /// Its name.
        name: Name,
        /// Settings its creator or an update named.
        options: Options,
        /// Settings the server filled in.
        derived_options: Options,
    }

    /// The topics of a stream.
    pub struct Topics {
        /// In id order.
        topics: Vec<Topic> = counted,
    }

    /// A partition.
    pub struct Partition {
        /// Its id.
        id: u32,
        /// When it was created, in microseconds.
        created_at: u64,
        /// Its segments.
        segments_count: u32,
        /// Its newest offset.
        current_offset: u64,
        /// Bytes of its messages.
        size_bytes: u64,
        /// Messages in it.
        messages_count: u64,
        /// Its history.
        context: PartitionContext,
        /// Replica ids that store it, in member order.
        members: Vec<u8> = short_counted,
        /// Replica ids that are in sync; none until the primary first reports.
        in_sync: Vec<u8> = short_counted,
    }
}

/// A topic and its partitions.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicDetails {
    /// The topic.
    pub topic: Topic,
    /// As many partitions as the topic says.
    pub partitions: Vec<Partition>,
}

impl Encode for TopicDetails {
    fn encode(&self, out: &mut BytesMut) {
        debug_assert_eq!(self.topic.partitions_count as usize, self.partitions.len());
        self.topic.encode(out);
        self.partitions.iter().for_each(|partition| partition.encode(out));
    }
}

impl<'a> Decode<'a> for TopicDetails {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let topic = Topic::decode(reader)?;
        let partitions = (0..topic.partitions_count)
            .map(|_| Partition::decode(reader))
            .collect::<Result<_, _>>()?;
        Ok(Self { topic, partitions })
    }
}
