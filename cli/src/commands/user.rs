//! Users.

use anyhow::{Result, bail};
use iggy::prelude::*;

use super::{NotFound, Session};
use crate::arguments::{UserCommand, UserStatusArgument};
use crate::output::Form;
use crate::prompt;
use crate::view;

impl From<UserStatusArgument> for UserStatus {
    fn from(status: UserStatusArgument) -> Self {
        match status {
            UserStatusArgument::Active => Self::Active,
            UserStatusArgument::Inactive => Self::Inactive,
        }
    }
}

pub(super) async fn run(session: &Session, command: UserCommand) -> Result<()> {
    let (client, output) = (&session.client, session.output);
    match command {
        UserCommand::Create {
            name,
            password,
            user_status,
            permissions,
        } => {
            let (status, permissions) = (user_status.into(), permissions.permissions());
            let options = UserCreateOptions {
                status,
                permissions,
                ..Default::default()
            };
            let created = client.create_user(&name, &password, &options).await?;
            if output.is_json() {
                output.record(&view::user_details(&created), Form::Json)?;
            }
            output.confirm(&format!("created the user `{name}` with id {}", created.user.id))?;
        }
        UserCommand::Delete { user } => {
            client.delete_user(&user).await?;
            output.confirm(&format!("deleted the user {user}"))?;
        }
        UserCommand::Get { user } => {
            let Some(details) = client.get_user(&user).await? else {
                bail!(NotFound(format!("the user {user}")));
            };
            output.record(&view::user_details(&details), Form::Table)?;
        }
        UserCommand::List { list_mode } => {
            let users: Vec<_> = client.get_users().await?.iter().map(view::user).collect();
            output.records(&users, list_mode.into())?;
        }
        UserCommand::Name { user, name } => {
            let options = UserUpdateOptions {
                username: Some(name.clone()),
                ..Default::default()
            };
            client.update_user(&user, &options).await?;
            output.confirm(&format!("the user {user} is now `{name}`"))?;
        }
        UserCommand::Status { user, status } => {
            let options = UserUpdateOptions {
                status: Some(status.into()),
                ..Default::default()
            };
            client.update_user(&user, &options).await?;
            output.confirm(&format!("changed the status of the user {user}"))?;
        }
        UserCommand::Password { user, current, new } => {
            let current = match current {
                Some(current) => current,
                None => prompt::password("Current password").await?,
            };
            let new = match new {
                Some(new) => new,
                None => prompt::password("New password").await?,
            };
            client.change_password(&user, &current, &new).await?;
            output.confirm(&format!("changed the password of the user {user}"))?;
        }
        UserCommand::Permissions { user, permissions } => {
            client.update_permissions(&user, permissions.permissions()).await?;
            output.confirm(&format!("replaced the permissions of the user {user}"))?;
        }
    }
    Ok(())
}
