//! Snapshot, options, resource updates and connected clients (wire 11).

use bytes::{BufMut, BytesMut};

use crate::codec::{Decode, DecodeError, Encode, Reader};
use crate::identifier::Identifier;
use crate::name::Name;
use crate::option_catalog::{Scope, check_update_shape};
use crate::options::Options;
use crate::wire_struct::{composite_fields, field, wire_struct};

wire_struct! {
    /// Takes a diagnostic snapshot (11). Its reply is a ZIP file.
    pub struct GetSnapshot {
        /// How the archive is compressed.
        compression: SnapshotCompression,
        /// What goes into it.
        types: Vec<SnapshotType> = short_counted,
    }

    /// Lists the options of a scope (13).
    pub struct DescribeOptions {
        /// The scope.
        scope: Scope,
    }

    /// Reads one connected client (21).
    pub struct GetClient {
        /// The server's number of the connection.
        client_id: u32,
    }
}

macro_rules! byte_enum {
    ($(#[$doc:meta])* $name:ident $field:literal $allowed:literal { $($(#[$variant_doc:meta])* $code:literal $variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant = $code,)* }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in text forms.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }

        impl Encode for $name {
            fn encode(&self, out: &mut BytesMut) {
                out.put_u8(*self as u8);
            }
        }

        impl<'a> Decode<'a> for $name {
            fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                match reader.u8($field)? {
                    $($code => Ok(Self::$variant),)*
                    other => Err(DecodeError::value($field, other, $allowed)),
                }
            }
        }

        composite_fields! { $name }
    };
}
pub(crate) use byte_enum;

byte_enum! {
    /// How a snapshot archive is compressed (wire 11.3).
    SnapshotCompression "snapshot compression" "1 stored, 2 deflated, 3 bzip2, 4 zstd, 5 lzma or 6 xz" {
        /// Not at all.
        1 Stored "stored",
        /// Deflate, the default.
        2 Deflated "deflated",
        /// Bzip2.
        3 Bzip2 "bzip2",
        /// Zstandard.
        4 Zstd "zstd",
        /// LZMA.
        5 Lzma "lzma",
        /// XZ.
        6 Xz "xz",
    }
}

byte_enum! {
    /// What goes into a snapshot (wire 11.3).
    SnapshotType "snapshot type" "1..=6 or 100 (all)" {
        /// An overview of the file system.
        1 FilesystemOverview "filesystem_overview",
        /// Running processes.
        2 ProcessList "process_list",
        /// Processor and memory use.
        3 ResourceUsage "resource_usage",
        /// A test entry.
        4 Test "test",
        /// The server's logs.
        5 ServerLogs "server_logs",
        /// The server's configuration.
        6 ServerConfig "server_config",
        /// Everything.
        100 All "all",
    }
}

impl Encode for Scope {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(*self as u8);
    }
}

impl<'a> Decode<'a> for Scope {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let code = reader.u8("scope")?;
        Self::from_u8(code).ok_or_else(|| DecodeError::value("scope", code, "1 (topic), 2 (stream) or 3 (user)"))
    }
}

composite_fields! { Scope }

/// What an update changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A topic of a stream.
    Topic {
        /// The stream.
        stream: Identifier,
        /// The topic.
        topic: Identifier,
    },
    /// A stream.
    Stream(Identifier),
    /// A user.
    User(Identifier),
}

impl Resource {
    /// Its scope.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Topic { .. } => Scope::Topic,
            Self::Stream(_) => Scope::Stream,
            Self::User(_) => Scope::User,
        }
    }
}

/// Sets and resets options of a stream, topic or user (16, wire 11.6).
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateResource {
    /// What is changed.
    pub resource: Resource,
    /// Keys that return to their defaults; at most 255.
    pub reset: Vec<Name>,
    /// Keys that are set.
    pub set: Options,
}

impl Encode for UpdateResource {
    fn encode(&self, out: &mut BytesMut) {
        self.resource.scope().encode(out);
        match &self.resource {
            Resource::Topic { stream, topic } => {
                stream.encode(out);
                topic.encode(out);
            }
            Resource::Stream(id) | Resource::User(id) => id.encode(out),
        }
        field::short_counted::write(&self.reset, out);
        self.set.encode(out);
    }
}

impl<'a> Decode<'a> for UpdateResource {
    /// Reads to the end of the body and refuses an update that does nothing or contradicts itself.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let scope = Scope::decode(reader)?;
        let resource = match scope {
            Scope::Topic => Resource::Topic {
                stream: Identifier::decode(reader)?,
                topic: Identifier::decode(reader)?,
            },
            Scope::Stream => Resource::Stream(Identifier::decode(reader)?),
            Scope::User => Resource::User(Identifier::decode(reader)?),
        };
        let reset = field::short_counted::read(reader, "reset key")?;
        let set = Options::from_bytes(reader.rest())?;
        check_update_shape(scope, &set, &reset)
            .map_err(|_| DecodeError::rule("update", "must set or reset something, each key once and not both"))?;
        Ok(Self { resource, reset, set })
    }
}
