//! Users, passwords, permissions and personal access tokens.

use iggy_protocol::limits::{
    MAX_PASSWORD_BYTES, MAX_TOKEN_NAME_BYTES, MAX_USERNAME_BYTES, MIN_PASSWORD_BYTES, MIN_TOKEN_NAME_BYTES,
    MIN_USERNAME_BYTES, NEVER,
};
use iggy_protocol::option_catalog::{Scope, check_create};
use iggy_protocol::request::token::{CreatePersonalAccessToken, DeletePersonalAccessToken};
use iggy_protocol::request::user::{ChangePassword, CreateUser, DeleteUser, UpdatePermissions};
use iggy_protocol::{Command, ErrorCode, Identifier};

use super::{Admission, Admitted, PendingPassword, PendingToken, PendingUser, Settings};
use crate::access::Target;
use crate::change::{Change, UserRef};
use crate::metadata::Metadata;
use crate::model::user::{ROOT_USER_ID, User, UserStatus};

impl Metadata {
    pub(super) fn admit_create_user(&self, user_id: u32, request: CreateUser) -> Admitted {
        self.authorize(user_id, Command::CreateUser, Target::Nothing)?;
        if !(MIN_USERNAME_BYTES..=MAX_USERNAME_BYTES).contains(&request.username.len()) {
            return Err(ErrorCode::InvalidUsername);
        }
        check_password(request.password.expose())?;
        let status = match request.status {
            1 => UserStatus::Active,
            2 => UserStatus::Inactive,
            _ => return Err(ErrorCode::InvalidUserStatus),
        };
        // No option of a user can be set at creation; what is there gets its refusal.
        check_create(Scope::User, &request.options).map_err(|error| error.code())?;
        if self.user_names.contains_key(&request.username) {
            return Err(ErrorCode::UserAlreadyExists);
        }
        self.user_ids
            .peek(|id| self.users.contains_key(&id))
            .ok_or(ErrorCode::UsersLimitReached)?;
        Ok(Admission::HashPassword(PendingUser {
            password: request.password,
            username: request.username,
            status,
            permissions: request.permissions,
        }))
    }

    pub(super) fn admit_delete_user(&self, user_id: u32, request: &DeleteUser) -> Admitted {
        let user = self.permitted_user(user_id, Command::DeleteUser, &request.user)?;
        if user.id == ROOT_USER_ID {
            return Err(ErrorCode::CannotDeleteUser);
        }
        Ok(Admission::Ready(Change::DeleteUser {
            user: UserRef::of(user),
        }))
    }

    pub(super) fn admit_update_permissions(&self, user_id: u32, request: UpdatePermissions) -> Admitted {
        let user = self.permitted_user(user_id, Command::UpdatePermissions, &request.user)?;
        if user.id == ROOT_USER_ID {
            return Err(ErrorCode::CannotChangePermissions);
        }
        Ok(Admission::Ready(Change::UpdatePermissions {
            user: UserRef::of(user),
            permissions: request.permissions,
        }))
    }

    pub(super) fn admit_change_password(&self, user_id: u32, request: ChangePassword) -> Admitted {
        let user = self.permitted_user(user_id, Command::ChangePassword, &request.user)?;
        check_password(request.new.expose())?;
        if request.current.expose().len() > MAX_PASSWORD_BYTES {
            return Err(ErrorCode::InvalidCredentials);
        }
        Ok(Admission::VerifyPassword(PendingPassword {
            current_hash: user.password_hash.clone(),
            current: request.current,
            new: request.new,
            user: UserRef::of(user),
        }))
    }

    pub(super) fn admit_create_token(
        &self,
        settings: &Settings,
        user_id: u32,
        request: CreatePersonalAccessToken,
    ) -> Admitted {
        let user = self.signed_in(user_id)?;
        if !(MIN_TOKEN_NAME_BYTES..=MAX_TOKEN_NAME_BYTES).contains(&request.name.len()) {
            return Err(ErrorCode::InvalidPersonalAccessTokenName);
        }
        if user.tokens.contains_key(&request.name) {
            return Err(ErrorCode::PersonalAccessTokenAlreadyExists);
        }
        if user.tokens.len() >= settings.tokens_per_user as usize {
            return Err(ErrorCode::PersonalAccessTokensLimitReached);
        }
        let lifetime = match request.expiry {
            // The server default is no expiry.
            0 | NEVER => None,
            lifetime if self.applied.timestamp.checked_add(lifetime).is_none() => {
                return Err(ErrorCode::InvalidPersonalAccessTokenExpiry);
            }
            lifetime => Some(lifetime),
        };
        Ok(Admission::MintToken(PendingToken {
            user: UserRef::of(user),
            name: request.name,
            lifetime,
            limit: settings.tokens_per_user,
        }))
    }

    pub(super) fn admit_delete_token(&self, user_id: u32, request: DeletePersonalAccessToken) -> Admitted {
        let user = self.signed_in(user_id)?;
        if !user.tokens.contains_key(&request.name) {
            return Err(ErrorCode::ResourceNotFound);
        }
        Ok(Admission::Ready(Change::DeleteToken {
            user: UserRef::of(user),
            name: request.name,
        }))
    }

    /// The active user a request speaks for.
    pub(crate) fn signed_in(&self, user_id: u32) -> Result<&User, ErrorCode> {
        self.user_by_id(user_id)
            .filter(|user| user.status == UserStatus::Active)
            .ok_or(ErrorCode::Unauthenticated)
    }

    pub(crate) fn permitted_user(&self, user_id: u32, command: Command, user: &Identifier) -> Result<&User, ErrorCode> {
        self.permit(user_id, command.permission(), self.user(user), |user| {
            Target::User(user.id)
        })
    }
}

fn check_password(password: &str) -> Result<(), ErrorCode> {
    if (MIN_PASSWORD_BYTES..=MAX_PASSWORD_BYTES).contains(&password.len()) {
        Ok(())
    } else {
        Err(ErrorCode::InvalidPassword)
    }
}
