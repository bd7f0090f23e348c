//! Steps of an admission that the node takes off its loop before the change can be proposed.

use std::fmt;

use iggy_protocol::secret::Secret;
use iggy_protocol::{Name, Permissions};

use crate::change::{Change, UserRef};
use crate::keys::PartitionKey;
use crate::model::user::UserStatus;

/// A user to be created once its password is hashed.
pub struct PendingUser {
    /// The password in plain text.
    pub password: Secret,
    pub(super) username: Name,
    pub(super) status: UserStatus,
    pub(super) permissions: Option<Permissions>,
}

impl PendingUser {
    /// The change, given the password's Argon2id hash in PHC text form.
    pub fn finish(self, password_hash: String) -> Change {
        Change::CreateUser {
            username: self.username,
            password_hash,
            status: self.status,
            permissions: self.permissions,
        }
    }
}

/// A password to be replaced once the current one is verified and the new one hashed.
pub struct PendingPassword {
    /// Hash to verify the current password against; a mismatch is refused with `InvalidCredentials`.
    pub current_hash: String,
    /// The current password in plain text, as the client sent it.
    pub current: Secret,
    /// The new password in plain text.
    pub new: Secret,
    pub(super) user: UserRef,
}

impl PendingPassword {
    /// The change, given the new password's Argon2id hash in PHC text form.
    pub fn finish(self, password_hash: String) -> Change {
        Change::ChangePassword {
            user: self.user,
            verified_hash: self.current_hash,
            password_hash,
        }
    }
}

/// A token to be made.
#[derive(Debug)]
pub struct PendingToken {
    pub(super) user: UserRef,
    pub(super) name: Name,
    pub(super) lifetime: Option<u64>,
    pub(super) limit: u32,
}

impl PendingToken {
    /// The change, given the SHA-256 of the token's text.
    pub fn finish(self, hash: [u8; 32]) -> Change {
        Change::CreateToken {
            user: self.user,
            name: self.name,
            hash,
            lifetime: self.lifetime,
            limit: self.limit,
        }
    }
}

/// Segments to be deleted once the partition said where they end.
#[derive(Debug)]
pub struct PendingTruncation {
    /// The partition.
    pub partition: PartitionKey,
    /// How many of its oldest sealed segments may go; the active one never does.
    pub segments_count: u32,
}

impl PendingTruncation {
    /// The change, given the first offset that stays.
    pub fn finish(self, before_offset: u64) -> Change {
        Change::TruncatePartition {
            partition: self.partition,
            before_offset,
        }
    }
}

// Passwords stay out of logs and of failed tests.
impl fmt::Debug for PendingUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingUser")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PendingPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingPassword")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
