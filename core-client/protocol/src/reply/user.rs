//! Users and personal access tokens (wire 10). What does not exist is an empty body.

use crate::name::Name;
use crate::options::Options;
use crate::permissions::Permissions;
use crate::wire_struct::wire_struct;

/// Status of a user that may sign in.
pub const USER_ACTIVE: u8 = 1;
/// Status of a user that may not.
pub const USER_INACTIVE: u8 = 2;

wire_struct! {
    /// A user.
    pub struct User {
        /// Its id; the root user is 0.
        id: u32,
        /// When it was created, in microseconds.
        created_at: u64,
        /// 1 active, 2 inactive.
        status: u8,
        /// Its name.
        username: Name,
        /// Settings its creator or an update named.
        options: Options,
        /// Settings the server filled in.
        derived_options: Options,
    }

    /// A user and what it may do.
    pub struct UserDetails {
        /// The user.
        user: User,
        /// What it may do.
        permissions: Option<Permissions> = permissions_part,
    }

    /// All users.
    pub struct Users {
        /// In id order.
        users: Vec<User> = to_end,
    }

    /// A personal access token, without its value.
    pub struct PersonalAccessToken {
        /// Its name.
        name: Name,
        /// When it expires, in microseconds since the Unix epoch; 0 is never.
        expiry_at: u64,
    }

    /// The tokens of the caller.
    pub struct PersonalAccessTokens {
        /// In name order.
        tokens: Vec<PersonalAccessToken> = to_end,
    }

    /// The value of a new token, shown once.
    pub struct RawPersonalAccessToken {
        /// The token: 1..=255 bytes.
        token: Name,
    }
}
