//! Streams (wire 9). What does not exist is an empty body.

use bytes::BytesMut;

use crate::codec::{Decode, DecodeError, Encode, Reader};
use crate::name::Name;
use crate::options::Options;
use crate::reply::topic::Topic;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// A stream.
    pub struct Stream {
        /// Its id.
        id: u32,
        /// When it was created, in microseconds.
        created_at: u64,
        /// Its topics.
        topics_count: u32,
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

    /// All streams.
    pub struct Streams {
        /// In id order.
        streams: Vec<Stream> = to_end,
    }
}

/// A stream and its topics.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamDetails {
    /// The stream.
    pub stream: Stream,
    /// As many topics as the stream says.
    pub topics: Vec<Topic>,
}

impl Encode for StreamDetails {
    fn encode(&self, out: &mut BytesMut) {
        debug_assert_eq!(self.stream.topics_count as usize, self.topics.len());
        self.stream.encode(out);
        self.topics.iter().for_each(|topic| topic.encode(out));
    }
}

impl<'a> Decode<'a> for StreamDetails {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let stream = Stream::decode(reader)?;
        let topics = (0..stream.topics_count)
            .map(|_| Topic::decode(reader))
            .collect::<Result<_, _>>()?;
        Ok(Self { stream, topics })
    }
}
