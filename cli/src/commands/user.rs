//! Users.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Result, bail};
use iggy::prelude::*;

use super::{NotFound, Session};
use crate::arguments::{UserCommand, UserStatusArgument, parse_password};
use crate::output::Form;
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
            let current = current.map_or_else(|| ask("Current password"), Ok)?;
            let new = new.map_or_else(|| ask("New password"), Ok)?;
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

/// Reads one line of standard input. At a terminal what is typed stays visible; the question says so.
fn ask(what: &str) -> Result<String> {
    let input = io::stdin();
    if input.is_terminal() {
        eprint!("{what} (will be visible): ");
        io::stderr().flush()?;
    }
    let mut line = String::new();
    if input.lock().read_line(&mut line)? == 0 {
        bail!("{what} is missing: give it as an argument or on standard input");
    }
    parse_password(line.trim_end_matches(['\r', '\n'])).map_err(|error| anyhow::anyhow!("{what}: {error}"))
}
