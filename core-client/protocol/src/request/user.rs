//! Users (wire 10).

use crate::identifier::Identifier;
use crate::name::Name;
use crate::options::Options;
use crate::permissions::Permissions;
use crate::secret::Secret;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// Reads a user (31).
    pub struct GetUser {
        /// The user.
        user: Identifier,
    }

    /// Creates a user (33).
    pub struct CreateUser {
        /// The name, 3..=50 bytes.
        username: Name,
        /// The password, 3..=100 bytes.
        password: Secret = short_secret,
        /// 1 active, 2 inactive.
        status: u8,
        /// What the user may do.
        permissions: Option<Permissions> = optional_permissions,
        /// Settings.
        options: Options = options_to_end,
    }

    /// Deletes a user (34).
    pub struct DeleteUser {
        /// The user.
        user: Identifier,
    }

    /// Replaces what a user may do (36); nothing removes all permissions.
    pub struct UpdatePermissions {
        /// The user.
        user: Identifier,
        /// What the user may do.
        permissions: Option<Permissions> = optional_permissions,
    }

    /// Changes a password (37).
    pub struct ChangePassword {
        /// The user.
        user: Identifier,
        /// The current password.
        current: Secret = short_secret,
        /// The new password, 3..=100 bytes.
        new: Secret = short_secret,
    }
}
