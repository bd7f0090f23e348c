//! Users with their permissions and personal access tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use iggy_protocol::{Name, Permissions};
use serde::{Deserialize, Serialize};

/// Id of the root user, who may do everything and cannot be deleted.
pub const ROOT_USER_ID: u32 = 0;

/// A user.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Id.
    pub id: u32,
    /// Microseconds since the Unix epoch; with the id it names one user for ever.
    pub created_at: u64,
    /// Name, unique among users.
    pub username: Name,
    /// Argon2id hash in PHC text form.
    pub password_hash: String,
    /// Whether the user may sign in.
    pub status: UserStatus,
    /// What the user may do; `None` is nothing.
    pub permissions: Option<Arc<Permissions>>,
    /// Tokens by name.
    pub tokens: BTreeMap<Name, Token>,
}

/// Whether a user may sign in, with its number on the wire (wire 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum UserStatus {
    /// May sign in.
    Active = 1,
    /// May not; has no sessions.
    Inactive = 2,
}

/// A personal access token. The token itself is never kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// Microseconds since the Unix epoch, or 0 for never.
    pub expiry_at: u64,
}

impl Token {
    /// Whether the token is past its expiry at a point in time.
    pub fn is_expired(&self, now: u64) -> bool {
        self.expiry_at != 0 && self.expiry_at <= now
    }
}

impl std::fmt::Debug for User {
    /// Leaves the password hash out: state is printed in logs and failed tests.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User")
            .field("id", &self.id)
            .field("created_at", &self.created_at)
            .field("username", &self.username)
            .field("status", &self.status)
            .field("permissions", &self.permissions)
            .field("tokens", &self.tokens.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
