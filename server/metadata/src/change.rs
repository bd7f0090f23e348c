//! What the metadata log carries: commands after everything that depends on the outside was resolved.
//!
//! A change names resources by id and creation, holds hashes instead of secrets, and carries the placement and the
//! defaults the primary chose. Applying it needs nothing else, so every replica and every restart gets the same state.
//! Rules that depend on the state (a name still free, a partition still the same) are checked again when it applies,
//! because other entries may have been committed since it was admitted.

use bytes::Bytes;
use iggy_protocol::options::Options;
use iggy_protocol::{Name, Permissions};
use serde::{Deserialize, Serialize};

use crate::keys::{GroupKey, PartitionKey, SessionKey, TopicKey};
use crate::limits::Limits;
use crate::model::stream::Stream;
use crate::model::user::{User, UserStatus};

/// One committed command. Serialised with field names, so that fields can be added with a default later.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// First entry of every log: names the history and creates the root user.
    Bootstrap {
        /// Random identity of this metadata history (wire 12).
        log_id: u128,
        /// Name of the root user.
        root_username: Name,
        /// Argon2id hash of its password, PHC text form.
        root_password_hash: String,
    },
    /// Puts other bounds in force.
    SetLimits(Limits),
    /// A login (wire 4.3).
    Register {
        /// The user whose credentials were verified.
        user: UserRef,
        /// [`bind_verifier`](crate::bind_verifier) of the client's secret.
        verifier: [u8; 32],
        /// Sessions without a connection that may give way, oldest first, when the table is full.
        may_evict: Vec<SessionKey>,
    },
    /// A logout; the request names the session (wire 4.4).
    Logout,
    /// Sessions whose lease ran out without a live connection.
    ExpireSessions {
        /// The sessions; those already gone are ignored.
        sessions: Vec<SessionKey>,
    },
    /// Drops tokens past their expiry as of the entry's timestamp.
    ExpireTokens,
    /// Creates a stream.
    CreateStream {
        /// Its name.
        name: Name,
        /// Options set by the client, canonical (wire 5.8).
        explicit: Options,
    },
    /// Renames a stream.
    UpdateStream {
        /// The stream.
        stream: StreamRef,
        /// Its new name.
        name: Name,
    },
    /// Deletes a stream with everything in it.
    DeleteStream {
        /// The stream.
        stream: StreamRef,
    },
    /// Creates a topic.
    CreateTopic {
        /// The stream it belongs to.
        stream: StreamRef,
        /// Its name.
        name: Name,
        /// Options set by the client, canonical (wire 5.8).
        explicit: Options,
        /// Values for the options the client left out.
        defaults: Options,
        /// Replicas of each partition, in member order; one entry per partition.
        placement: Vec<Vec<u8>>,
    },
    /// Renames a topic and sets or resets its options.
    UpdateTopic {
        /// The topic.
        topic: TopicKey,
        /// Its new name, if it gets one.
        name: Option<Name>,
        /// Options to set, canonical.
        set: Options,
        /// Keys of options that go back to their default.
        reset: Vec<Name>,
        /// Defaults for the keys that are reset.
        defaults: Options,
    },
    /// Deletes a topic with everything in it.
    DeleteTopic {
        /// The topic.
        topic: TopicKey,
    },
    /// Adds partitions after the last one.
    CreatePartitions {
        /// The topic.
        topic: TopicKey,
        /// Replicas of each new partition, in member order.
        placement: Vec<Vec<u8>>,
    },
    /// Removes partitions from the highest id down.
    DeletePartitions {
        /// The topic.
        topic: TopicKey,
        /// How many.
        count: u32,
    },
    /// A node found that acknowledged writes of a partition may be lost.
    BeginHistory {
        /// Partition.
        partition: PartitionKey,
        /// Times this has happened to it, by its superblock.
        losses: u64,
    },
    /// Drops the oldest sealed segments of a partition.
    TruncatePartition {
        /// The partition.
        partition: PartitionKey,
        /// First offset that stays, chosen by the partition's primary.
        before_offset: u64,
    },
    /// Creates a consumer group.
    CreateGroup {
        /// The topic.
        topic: TopicKey,
        /// Name of the group.
        name: Name,
    },
    /// Deletes a consumer group.
    DeleteGroup {
        /// The group.
        group: GroupKey,
    },
    /// Makes the requesting session a member.
    JoinGroup {
        /// The group.
        group: GroupKey,
    },
    /// Ends the requesting session's membership.
    LeaveGroup {
        /// The group.
        group: GroupKey,
    },
    /// Creates a user.
    CreateUser {
        /// Its name.
        username: Name,
        /// Argon2id hash of its password, PHC text form.
        password_hash: String,
        /// Whether it may sign in.
        status: UserStatus,
        /// What it may do.
        permissions: Option<Permissions>,
    },
    /// Renames a user or changes its status.
    UpdateUser {
        /// The user.
        user: UserRef,
        /// Its new name, if it gets one.
        username: Option<Name>,
        /// Its new status, if it gets one.
        status: Option<UserStatus>,
    },
    /// Deletes a user with its sessions and tokens.
    DeleteUser {
        /// The user.
        user: UserRef,
    },
    /// Replaces a password whose predecessor was verified.
    ChangePassword {
        /// The user.
        user: UserRef,
        /// Hash that was verified; if another change came first, this one is refused.
        verified_hash: String,
        /// Argon2id hash of the new password.
        password_hash: String,
    },
    /// Replaces all permissions of a user.
    UpdatePermissions {
        /// The user.
        user: UserRef,
        /// What it may do from now on; `None` is nothing.
        permissions: Option<Permissions>,
    },
    /// Creates a personal access token for the requesting user.
    CreateToken {
        /// The user.
        user: UserRef,
        /// Name of the token, unique for the user.
        name: Name,
        /// SHA-256 of the token's text.
        hash: [u8; 32],
        /// Lifetime in microseconds from the entry's timestamp; `None` is for ever.
        lifetime: Option<u64>,
        /// Tokens the user may have at most.
        limit: u32,
    },
    /// Deletes a personal access token of the requesting user.
    DeleteToken {
        /// The user.
        user: UserRef,
        /// Name of the token.
        name: Name,
    },
}

/// A stream in one of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRef {
    /// Id.
    pub stream_id: u32,
    /// Position that created it.
    pub created_op: u64,
}

/// A user in one of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRef {
    /// Id.
    pub user_id: u32,
    /// Microseconds since the Unix epoch.
    pub created_at: u64,
}

impl StreamRef {
    /// The fenced identity of a stream.
    pub fn of(stream: &Stream) -> Self {
        Self {
            stream_id: stream.id,
            created_op: stream.created_op,
        }
    }
}

impl UserRef {
    /// The fenced identity of a user.
    pub fn of(user: &User) -> Self {
        Self {
            user_id: user.id,
            created_at: user.created_at,
        }
    }
}

impl Change {
    /// The change as a log entry's body.
    pub fn encode(&self) -> Bytes {
        // Writing into memory fails only for a type of unknown length, and no field here is one.
        Bytes::from(rmp_serde::to_vec_named(self).expect("a change serialises into memory"))
    }

    /// Reads a log entry's body.
    pub fn decode(body: &[u8]) -> Result<Self, ChangeError> {
        let mut rest = body;
        let change = rmp_serde::from_read(&mut rest)?;
        if rest.is_empty() {
            Ok(change)
        } else {
            Err(ChangeError::Trailing(rest.len()))
        }
    }

    /// Short name for logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bootstrap { .. } => "bootstrap",
            Self::SetLimits(_) => "set limits",
            Self::Register { .. } => "register",
            Self::Logout => "logout",
            Self::ExpireSessions { .. } => "expire sessions",
            Self::ExpireTokens => "expire tokens",
            Self::CreateStream { .. } => "create stream",
            Self::UpdateStream { .. } => "update stream",
            Self::DeleteStream { .. } => "delete stream",
            Self::CreateTopic { .. } => "create topic",
            Self::UpdateTopic { .. } => "update topic",
            Self::DeleteTopic { .. } => "delete topic",
            Self::CreatePartitions { .. } => "create partitions",
            Self::DeletePartitions { .. } => "delete partitions",
            Self::BeginHistory { .. } => "begin partition history",
            Self::TruncatePartition { .. } => "truncate partition",
            Self::CreateGroup { .. } => "create consumer group",
            Self::DeleteGroup { .. } => "delete consumer group",
            Self::JoinGroup { .. } => "join consumer group",
            Self::LeaveGroup { .. } => "leave consumer group",
            Self::CreateUser { .. } => "create user",
            Self::UpdateUser { .. } => "update user",
            Self::DeleteUser { .. } => "delete user",
            Self::ChangePassword { .. } => "change password",
            Self::UpdatePermissions { .. } => "update permissions",
            Self::CreateToken { .. } => "create token",
            Self::DeleteToken { .. } => "delete token",
        }
    }
}

impl std::fmt::Debug for Change {
    /// Names the change without its hashes, which have no place in a log file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Change({})", self.name())
    }
}

/// A log entry's body that is no change.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The body is damaged or of a later version.
    #[error("the body of a metadata entry cannot be read: {0}")]
    Malformed(#[from] rmp_serde::decode::Error),
    /// Bytes follow the change.
    #[error("{0} bytes follow the change in a metadata entry")]
    Trailing(usize),
}
