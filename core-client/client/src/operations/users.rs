//! Users.

use iggy_protocol::reply::user::{User, UserDetails, Users};
use iggy_protocol::request::Empty;
use iggy_protocol::request::session::Credentials;
use iggy_protocol::request::system::{Resource, UpdateResource};
use iggy_protocol::request::user::{ChangePassword, CreateUser, DeleteUser, GetUser, UpdatePermissions};
use iggy_protocol::{Command, ErrorCode, Identifier, Permissions, Secret};

use crate::client::IggyClient;
use crate::error::IggyError;
use crate::operations::resource_name;
use crate::resource_options::{UserCreateOptions, UserUpdateOptions};

fn password(text: &str) -> Result<Secret, IggyError> {
    match text.len() {
        3..=100 => Ok(Secret::new(text)),
        length => {
            let message = format!("a password has 3..=100 bytes, this one has {length}");
            Err(IggyError::new(ErrorCode::InvalidPassword, message))
        }
    }
}

impl IggyClient {
    /// A user and what it may do; `None` when there is none of that name.
    pub async fn get_user(&self, user: &Identifier) -> Result<Option<UserDetails>, IggyError> {
        self.fetch_optional(Command::GetUser, &GetUser { user: user.clone() })
            .await
    }

    /// All users.
    pub async fn get_users(&self) -> Result<Vec<User>, IggyError> {
        Ok(self.fetch::<Users>(Command::GetUsers, &Empty).await?.users)
    }

    /// Creates a user with a name of 3..=50 and a password of 3..=100 bytes.
    pub async fn create_user(
        &self,
        username: &str,
        secret: &str,
        options: &UserCreateOptions,
    ) -> Result<UserDetails, IggyError> {
        let body = CreateUser {
            username: resource_name(username, ErrorCode::InvalidUsername)?,
            password: password(secret)?,
            status: options.status.code(),
            permissions: options.permissions.clone(),
            options: options.encode()?,
        };
        self.fetch(Command::CreateUser, &body).await
    }

    /// Changes a user's name or status. A client that renames the user it is signed in as remembers the new name.
    pub async fn update_user(&self, user: &Identifier, options: &UserUpdateOptions) -> Result<(), IggyError> {
        let (set, reset) = options.encode()?;
        let own = self.is_own(user);
        self.update(UpdateResource {
            resource: Resource::User(user.clone()),
            reset,
            set,
        })
        .await?;
        if let (true, Some(name)) = (own, &options.username) {
            let name = resource_name(name, ErrorCode::InvalidUsername)?;
            self.core().session.update_credentials(|credentials| {
                if let Credentials::Password { username, .. } = credentials {
                    *username = name;
                }
            });
        }
        Ok(())
    }

    /// Replaces what a user may do; `None` removes everything.
    pub async fn update_permissions(
        &self,
        user: &Identifier,
        permissions: Option<Permissions>,
    ) -> Result<(), IggyError> {
        let body = UpdatePermissions {
            user: user.clone(),
            permissions,
        };
        self.ask(Command::UpdatePermissions, &body).await.map(drop)
    }

    /// Changes a password. A client that changes its own remembers the new one.
    pub async fn change_password(&self, user: &Identifier, current: &str, new: &str) -> Result<(), IggyError> {
        if current.len() > 255 {
            return Err(IggyError::new(
                ErrorCode::InvalidPassword,
                "the current password is above 255 bytes",
            ));
        }
        let body = ChangePassword {
            user: user.clone(),
            current: Secret::new(current),
            new: password(new)?,
        };
        let own = self.is_own(user);
        self.ask(Command::ChangePassword, &body).await?;
        if own {
            self.core().session.update_credentials(|credentials| {
                if let Credentials::Password { password, .. } = credentials {
                    *password = Secret::new(new);
                }
            });
        }
        Ok(())
    }

    /// Deletes a user; its sessions end.
    pub async fn delete_user(&self, user: &Identifier) -> Result<(), IggyError> {
        self.ask(Command::DeleteUser, &DeleteUser { user: user.clone() })
            .await
            .map(drop)
    }

    /// Whether this client is signed in as the user.
    fn is_own(&self, user: &Identifier) -> bool {
        match user {
            Identifier::Numeric(id) => self.user_id() == Some(*id),
            Identifier::Named(name) => match self.core().session.credentials() {
                Some(Credentials::Password { username, .. }) => username == *name,
                _ => false,
            },
        }
    }
}
