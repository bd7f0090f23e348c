//! What a user may do: globally, per stream and per topic (wire 5.6).

use std::collections::BTreeMap;

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};

use crate::codec::{Decode, DecodeError, Encode, Problem, Reader, WriteWire};

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name { $($(#[$field_doc])* pub $field: bool,)* }

        impl $name {
            /// Every permission of this level.
            pub const ALL: Self = Self { $($field: true,)* };

            fn write(self, out: &mut BytesMut) {
                $(out.put_flag(self.$field);)*
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(Self { $($field: reader.u8(stringify!($field))? != 0,)* })
            }
        }
    };
}

flags! {
    /// Permissions on everything.
    GlobalPermissions {
        /// Change server-wide things and take snapshots.
        manage_servers,
        /// Read statistics, clients and the roster.
        read_servers,
        /// Create, change and delete users.
        manage_users,
        /// Read users.
        read_users,
        /// Create, change and delete streams.
        manage_streams,
        /// Read streams.
        read_streams,
        /// Create, change and delete topics.
        manage_topics,
        /// Read topics.
        read_topics,
        /// Poll messages.
        poll_messages,
        /// Send messages.
        send_messages,
    }
}

flags! {
    /// Permissions on one stream.
    StreamFlags {
        /// Change and delete the stream.
        manage_stream,
        /// Read the stream.
        read_stream,
        /// Create, change and delete its topics.
        manage_topics,
        /// Read its topics.
        read_topics,
        /// Poll from its topics.
        poll_messages,
        /// Send to its topics.
        send_messages,
    }
}

flags! {
    /// Permissions on one topic.
    TopicPermissions {
        /// Change and delete the topic.
        manage_topic,
        /// Read the topic.
        read_topic,
        /// Poll from it.
        poll_messages,
        /// Send to it.
        send_messages,
    }
}

/// Permissions on one stream and on topics of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StreamPermissions {
    /// On the stream itself.
    pub flags: StreamFlags,
    /// On topics, by topic id.
    #[serde(default)]
    pub topics: BTreeMap<u32, TopicPermissions>,
}

/// All permissions of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Permissions {
    /// On everything.
    pub global: GlobalPermissions,
    /// On streams, by stream id.
    #[serde(default)]
    pub streams: BTreeMap<u32, StreamPermissions>,
}

impl Permissions {
    /// Everything, everywhere: what the root user has.
    pub fn root() -> Self {
        Self {
            global: GlobalPermissions::ALL,
            streams: BTreeMap::new(),
        }
    }
}

impl Encode for Permissions {
    fn encode(&self, out: &mut BytesMut) {
        self.global.write(out);
        out.put_flag(!self.streams.is_empty());
        let mut streams = self.streams.iter().peekable();
        while let Some((stream_id, stream)) = streams.next() {
            out.put_u32_le(*stream_id);
            stream.flags.write(out);
            out.put_flag(!stream.topics.is_empty());
            let mut topics = stream.topics.iter().peekable();
            while let Some((topic_id, topic)) = topics.next() {
                out.put_u32_le(*topic_id);
                topic.write(out);
                out.put_flag(topics.peek().is_some());
            }
            out.put_flag(streams.peek().is_some());
        }
    }
}

impl<'a> Decode<'a> for Permissions {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let global = GlobalPermissions::read(reader)?;
        let mut streams = BTreeMap::new();
        let mut more = reader.u8("has streams")? != 0;
        while more {
            let stream_id = reader.u32("permissions stream id")?;
            let stream = decode_stream(reader)?;
            if streams.insert(stream_id, stream).is_some() {
                return Err(DecodeError::new(
                    "permissions",
                    Problem::Duplicate(format!("stream {stream_id}")),
                ));
            }
            more = reader.u8("has next stream")? != 0;
        }
        Ok(Self { global, streams })
    }
}

fn decode_stream(reader: &mut Reader<'_>) -> Result<StreamPermissions, DecodeError> {
    let flags = StreamFlags::read(reader)?;
    let mut topics = BTreeMap::new();
    let mut more = reader.u8("has topics")? != 0;
    while more {
        let topic_id = reader.u32("permissions topic id")?;
        if topics.insert(topic_id, TopicPermissions::read(reader)?).is_some() {
            return Err(DecodeError::new(
                "permissions",
                Problem::Duplicate(format!("topic {topic_id}")),
            ));
        }
        more = reader.u8("has next topic")? != 0;
    }
    Ok(StreamPermissions { flags, topics })
}
