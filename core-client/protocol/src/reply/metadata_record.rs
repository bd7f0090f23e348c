//! The bodies of metadata changes and of items that exist now (wire 12).

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{Decode, DecodeError, Encode, Reader};
use crate::name::Name;
use crate::options::Options;
use crate::permissions::Permissions;
use crate::request::system::byte_enum;
use crate::wire_struct::{Field, composite_fields, wire_struct};

/// Partition ids, strictly ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AscendingIds(pub Vec<u32>);

impl Encode for AscendingIds {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u32_le(self.0.len() as u32);
        self.0.iter().for_each(|id| out.put_u32_le(*id));
    }
}

impl<'a> Decode<'a> for AscendingIds {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.count("ids", 4)?;
        let ids = (0..count).map(|_| reader.u32("id")).collect::<Result<Vec<_>, _>>()?;
        if !ids.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(DecodeError::rule("ids", "must ascend strictly"));
        }
        Ok(Self(ids))
    }
}

/// Options as far as the caller may see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisibleOptions {
    /// Set ones and derived ones.
    Readable {
        /// Settings its creator or an update named.
        explicit: Options,
        /// Settings the server filled in.
        derived: Options,
    },
    /// This node cannot read them.
    Unreadable,
}

impl Encode for VisibleOptions {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Readable { explicit, derived } => {
                out.put_u8(0);
                explicit.write(out);
                derived.write(out);
            }
            Self::Unreadable => out.put_u8(1),
        }
    }
}

impl<'a> Decode<'a> for VisibleOptions {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.u8("options state")? {
            0 => {
                let explicit = Field::read(reader, "explicit options")?;
                Ok(Self::Readable {
                    explicit,
                    derived: Field::read(reader, "derived options")?,
                })
            }
            1 => Ok(Self::Unreadable),
            other => Err(DecodeError::value(
                "options state",
                other,
                "0 (readable) or 1 (unreadable)",
            )),
        }
    }
}

byte_enum! {
    /// Why a member left.
    LeaveReason "leave reason" "0 (left) or 1 (session ended)" {
        /// It left.
        0 Left "left",
        /// Its session ended.
        1 SessionEnded "session_ended",
    }
}

byte_enum! {
    /// Why permissions changed.
    PermissionsReason "permissions reason" "0 (updated) or 1 (resource deleted)" {
        /// They were updated.
        0 Updated "updated",
        /// What they were about was deleted.
        1 ResourceDeleted "resource_deleted",
    }
}

byte_enum! {
    /// Why a token is gone.
    TokenReason "token reason" "0 (deleted) or 1 (expired)" {
        /// It was deleted.
        0 Deleted "deleted",
        /// It expired.
        1 Expired "expired",
    }
}

byte_enum! {
    /// Why a session ended.
    SessionReason "session reason" "0 (logout), 1 (expired) or 2 (revoked)" {
        /// By logout.
        0 Logout "logout",
        /// It expired.
        1 Expired "expired",
        /// It was revoked.
        2 Revoked "revoked",
    }
}

composite_fields! { AscendingIds VisibleOptions }

/// Declares the key structs and bodies; every field is documented by its name, which is that of the protocol.
macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {
        wire_struct! { $($(#[$doc])* pub struct $name {
            $(#[doc = concat!("`", stringify!($field), "` of the protocol.")] $field: $type,)*
        })* }
    };
}

bodies! {
    /// A stream across recreation.
    StreamKey { stream_id: u32, stream_created_op: u64, }
    /// A topic across recreation.
    TopicKey { stream: StreamKey, topic_id: u32, topic_created_op: u64, }
    /// A user across recreation.
    UserKey { user_id: u32, user_created_at: u64, }
    /// A stream as it is.
    StreamBody { key: StreamKey, created_at: u64, name: Name, options: VisibleOptions, }
    /// A stream that is gone.
    StreamDeletedBody { key: StreamKey, created_at: u64, name: Name, requested_op: Option<u64>, }
    /// A topic as it is.
    TopicBody { key: TopicKey, created_at: u64, name: Name, partitions_count: u32, options: VisibleOptions, }
    /// A topic that is gone.
    TopicDeletedBody { key: TopicKey, created_at: u64, name: Name, requested_op: Option<u64>, }
    /// Partitions that were added or removed.
    PartitionsChangedBody { topic: TopicKey, partitions_count: u32, removed: AscendingIds, requested_op: Option<u64>, }
    /// A new group.
    GroupCreatedBody { topic: TopicKey, group_id: u32, name: Name, consumer_groups_count: u32, }
    /// A group that is gone.
    GroupDeletedBody { topic: TopicKey, group_id: u32, name: Name, consumer_groups_count: u32, requested_op: Option<u64>, }
    /// A new member.
    MemberJoinedBody {
        topic: TopicKey, group_id: u32, member_id: u32, client_id: u128, members_count: u32, partitions: AscendingIds,
    }
    /// A member that is gone.
    MemberLeftBody {
        topic: TopicKey, group_id: u32, member_id: u32, client_id: u128, members_count: u32, reason: LeaveReason,
    }
    /// A partition with a new owner.
    PartitionHandedOverBody { topic: TopicKey, group_id: u32, partition_id: u32, member_id: Option<u32>, }
    /// A user as it is.
    UserBody {
        key: UserKey, username: Name, status: u8, permissions: Option<Permissions>, options: VisibleOptions,
    }
    /// A user that something happened to.
    UserNamedBody { key: UserKey, username: Name, }
    /// A user whose permissions changed.
    UserPermissionsBody { key: UserKey, username: Name, permissions: Option<Permissions>, reason: PermissionsReason, }
    /// A token; an expiry of 0 is never.
    TokenBody { user: UserKey, name: Name, expiry: u64, }
    /// A token that is gone.
    TokenDeletedBody { user: UserKey, name: Name, reason: TokenReason, }
    /// A session.
    SessionBody { user: UserKey, client_id: u128, session: u64, }
    /// A session that ended.
    SessionClosedBody { user: UserKey, client_id: u128, session: u64, reason: SessionReason, }
    /// A topic that exists, without its partitions.
    TopicItem { key: TopicKey, created_at: u64, name: Name, options: VisibleOptions, }
    /// The partitions of a topic that exists.
    PartitionsItem { topic: TopicKey, partitions_count: u32, }
    /// A group that exists.
    GroupItem { topic: TopicKey, group_id: u32, name: Name, }
    /// A member that exists.
    MemberItem { topic: TopicKey, group_id: u32, member_id: u32, client_id: u128, partitions: AscendingIds, }
}

/// Groups of metadata changes by number.
pub mod group {
    /// Streams.
    pub const STREAMS: u8 = 1;
    /// Topics.
    pub const TOPICS: u8 = 2;
    /// Partitions.
    pub const PARTITIONS: u8 = 3;
    /// Consumer groups.
    pub const CONSUMER_GROUPS: u8 = 4;
    /// Members of consumer groups.
    pub const CONSUMER_GROUP_MEMBERS: u8 = 5;
    /// Users.
    pub const USERS: u8 = 6;
    /// Personal access tokens.
    pub const PERSONAL_ACCESS_TOKENS: u8 = 7;
    /// Sessions.
    pub const SESSIONS: u8 = 8;

    /// The name of a group in text forms.
    pub const fn name(group: u8) -> Option<&'static str> {
        Some(match group {
            STREAMS => "streams",
            TOPICS => "topics",
            PARTITIONS => "partitions",
            CONSUMER_GROUPS => "consumer_groups",
            CONSUMER_GROUP_MEMBERS => "consumer_group_members",
            USERS => "users",
            PERSONAL_ACCESS_TOKENS => "personal_access_tokens",
            SESSIONS => "sessions",
            _ => return None,
        })
    }
}

macro_rules! changes {
    ($($kind:literal $group:literal $name:ident $body:ident $text:literal;)*) => {
        /// One change.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Change {
            $(#[doc = concat!("`", $text, "` (", $kind, ").")] $name($body),)*
            /// A change of a kind this version does not define, kept as it is.
            Unknown {
                /// The group.
                group: u8,
                /// The kind.
                kind: u8,
                /// The body.
                body: Bytes,
            },
        }

        impl Change {
            /// The group it belongs to.
            pub fn group(&self) -> u8 {
                match self { $(Self::$name(_) => $group,)* Self::Unknown { group, .. } => *group }
            }

            /// Its kind.
            pub fn kind(&self) -> u8 {
                match self { $(Self::$name(_) => $kind,)* Self::Unknown { kind, .. } => *kind }
            }

            /// Its name in text forms; `None` for a kind this version does not define.
            pub fn name(&self) -> Option<&'static str> {
                match self { $(Self::$name(_) => Some($text),)* Self::Unknown { .. } => None }
            }

            /// Writes the body alone.
            pub fn encode_body(&self, out: &mut BytesMut) {
                match self {
                    $(Self::$name(body) => body.encode(out),)*
                    Self::Unknown { body, .. } => out.put_slice(body),
                }
            }

            /// Reads a body. A known kind under another group than its own is an error; unknown kinds are kept raw.
            pub fn decode_body(group: u8, kind: u8, body: &[u8]) -> Result<Self, DecodeError> {
                match (kind, group) {
                    $(($kind, $group) => $body::from_bytes(body).map(Self::$name),
                    ($kind, other) => Err(DecodeError::value("change group", other, concat!($group, " for kind ", $kind))),)*
                    _ => Ok(Self::Unknown { group, kind, body: Bytes::copy_from_slice(body) }),
                }
            }
        }
    };
}

changes! {
    1 1 StreamCreated StreamBody "stream_created";
    2 1 StreamUpdated StreamBody "stream_updated";
    3 1 StreamDeleted StreamDeletedBody "stream_deleted";
    10 2 TopicCreated TopicBody "topic_created";
    11 2 TopicUpdated TopicBody "topic_updated";
    12 2 TopicDeleted TopicDeletedBody "topic_deleted";
    20 3 PartitionsChanged PartitionsChangedBody "partitions_changed";
    30 4 ConsumerGroupCreated GroupCreatedBody "consumer_group_created";
    31 4 ConsumerGroupDeleted GroupDeletedBody "consumer_group_deleted";
    40 5 ConsumerGroupMemberJoined MemberJoinedBody "consumer_group_member_joined";
    41 5 ConsumerGroupMemberLeft MemberLeftBody "consumer_group_member_left";
    42 5 ConsumerGroupPartitionHandedOver PartitionHandedOverBody "consumer_group_partition_handed_over";
    50 6 UserCreated UserBody "user_created";
    51 6 UserUpdated UserBody "user_updated";
    52 6 UserDeleted UserNamedBody "user_deleted";
    53 6 UserPasswordChanged UserNamedBody "user_password_changed";
    54 6 UserPermissionsUpdated UserPermissionsBody "user_permissions_updated";
    60 7 PersonalAccessTokenCreated TokenBody "personal_access_token_created";
    61 7 PersonalAccessTokenDeleted TokenDeletedBody "personal_access_token_deleted";
    70 8 SessionRegistered SessionBody "session_registered";
    71 8 SessionClosed SessionClosedBody "session_closed";
}

macro_rules! items {
    ($($group:literal $name:ident $body:ident;)*) => {
        /// Something that exists now.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Item {
            $(#[doc = concat!("An item of group ", $group, ".")] $name($body),)*
            /// An item of a group this version does not define, kept as it is.
            Unknown {
                /// The group.
                group: u8,
                /// The body.
                body: Bytes,
            },
        }

        impl Item {
            /// The group it belongs to.
            pub fn group(&self) -> u8 {
                match self { $(Self::$name(_) => $group,)* Self::Unknown { group, .. } => *group }
            }

            /// Writes the body alone.
            pub fn encode_body(&self, out: &mut BytesMut) {
                match self {
                    $(Self::$name(body) => body.encode(out),)*
                    Self::Unknown { body, .. } => out.put_slice(body),
                }
            }

            /// Reads a body.
            pub fn decode_body(group: u8, body: &[u8]) -> Result<Self, DecodeError> {
                match group {
                    $($group => $body::from_bytes(body).map(Self::$name),)*
                    _ => Ok(Self::Unknown { group, body: Bytes::copy_from_slice(body) }),
                }
            }
        }
    };
}

items! {
    1 Stream StreamBody;
    2 Topic TopicItem;
    3 Partitions PartitionsItem;
    4 ConsumerGroup GroupItem;
    5 Member MemberItem;
    6 User UserBody;
    7 PersonalAccessToken TokenBody;
    8 Session SessionBody;
}
