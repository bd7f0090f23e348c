//! Users, permissions, passwords, tokens and signing in.

use std::collections::BTreeMap;

use iggy::{
    IdentityInfo, IggyClient, IggyDuration, IggyExpiry, Permissions, StreamPermissions, UserCreateOptions, UserStatus,
    UserUpdateOptions,
};
use iggy_view::permissions::{parse_global, parse_stream, parse_topic};
use iggy_view::resources as view;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::{Id, Settings};
use super::{done, list, optional, read};
use crate::Failure;

pub(super) const NAMES: &[&str] = &[
    "change_password",
    "create_personal_access_token",
    "create_user",
    "delete_personal_access_token",
    "delete_user",
    "get_personal_access_tokens",
    "get_user",
    "get_users",
    "login_user",
    "login_with_personal_access_token",
    "logout_user",
    "update_permissions",
    "update_user",
    "user_id",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfUser {
    user: Id,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Active,
    Inactive,
}

impl From<Status> for UserStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Active => Self::Active,
            Status::Inactive => Self::Inactive,
        }
    }
}

/// What a user may do, in the form of [`iggy_view::resources::user_details`]: permissions by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Granted {
    #[serde(default)]
    global: Vec<String>,
    #[serde(default)]
    streams: BTreeMap<u32, GrantedOnStream>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantedOnStream {
    #[serde(default)]
    granted: Vec<String>,
    #[serde(default)]
    topics: BTreeMap<u32, Vec<String>>,
}

impl Granted {
    fn into_permissions(self) -> Result<Permissions, Failure> {
        let mut streams = BTreeMap::new();
        for (stream, granted) in self.streams {
            let mut topics = BTreeMap::new();
            for (topic, names) in granted.topics {
                topics.insert(topic, parse_topic(&names).map_err(Failure::invalid)?);
            }
            let flags = parse_stream(&granted.granted).map_err(Failure::invalid)?;
            streams.insert(stream, StreamPermissions { flags, topics });
        }
        Ok(Permissions {
            global: parse_global(&self.global).map_err(Failure::invalid)?,
            streams,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateUser {
    username: String,
    password: String,
    status: Option<Status>,
    permissions: Option<Granted>,
    #[serde(default)]
    options: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateUser {
    user: Id,
    username: Option<String>,
    status: Option<Status>,
    #[serde(default)]
    options: Settings,
    #[serde(default)]
    reset: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdatePermissions {
    user: Id,
    permissions: Option<Granted>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangePassword {
    user: Id,
    current: String,
    new: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    username: String,
    password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginWithToken {
    token: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfToken {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateToken {
    name: String,
    /// Microseconds; never when absent.
    expiry: Option<u64>,
}

fn identity(identity: IdentityInfo) -> Value {
    json!({ "user_id": identity.user_id, "session": identity.session })
}

pub(super) async fn invoke(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    match operation {
        "login_user" => {
            let given: Login = read(operation, arguments)?;
            Ok(identity(client.login_user(&given.username, &given.password).await?))
        }
        "login_with_personal_access_token" => {
            let given: LoginWithToken = read(operation, arguments)?;
            Ok(identity(client.login_with_personal_access_token(&given.token).await?))
        }
        "logout_user" => {
            let Nothing {} = read(operation, arguments)?;
            done(client.logout_user()).await
        }
        "user_id" => {
            let Nothing {} = read(operation, arguments)?;
            Ok(client.user_id().into())
        }
        _ if operation.contains("_personal_access_token") => tokens(client, operation, arguments).await,
        _ => users(client, operation, arguments).await,
    }
}

async fn tokens(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    match operation {
        "get_personal_access_tokens" => {
            let Nothing {} = read(operation, arguments)?;
            Ok(list(&client.get_personal_access_tokens().await?, view::token))
        }
        "create_personal_access_token" => {
            let given: CreateToken = read(operation, arguments)?;
            let expiry = given.expiry.map_or(IggyExpiry::NeverExpire, |micros| {
                IggyExpiry::ExpireDuration(IggyDuration::from_micros(micros))
            });
            let token = client.create_personal_access_token(&given.name, expiry).await?;
            Ok(token.expose().into())
        }
        _ => {
            let given: OfToken = read(operation, arguments)?;
            done(client.delete_personal_access_token(&given.name)).await
        }
    }
}

async fn users(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    match operation {
        "get_users" => {
            let Nothing {} = read(operation, arguments)?;
            Ok(list(&client.get_users().await?, view::user))
        }
        "get_user" => {
            let OfUser { user } = read(operation, arguments)?;
            Ok(optional(client.get_user(&user.0).await?, view::user_details))
        }
        "create_user" => {
            let given: CreateUser = read(operation, arguments)?;
            let options = UserCreateOptions {
                status: given.status.map(Into::into).unwrap_or_default(),
                permissions: given.permissions.map(Granted::into_permissions).transpose()?,
                raw: given.options.into_raw()?,
            };
            let created = client.create_user(&given.username, &given.password, &options).await?;
            Ok(view::user_details(&created))
        }
        "update_user" => {
            let given: UpdateUser = read(operation, arguments)?;
            let options = UserUpdateOptions {
                username: given.username,
                status: given.status.map(Into::into),
                raw: given.options.into_raw()?,
                reset: given.reset,
            };
            done(client.update_user(&given.user.0, &options)).await
        }
        "update_permissions" => {
            let given: UpdatePermissions = read(operation, arguments)?;
            let permissions = given.permissions.map(Granted::into_permissions).transpose()?;
            done(client.update_permissions(&given.user.0, permissions)).await
        }
        "change_password" => {
            let given: ChangePassword = read(operation, arguments)?;
            done(client.change_password(&given.user.0, &given.current, &given.new)).await
        }
        _ => {
            let OfUser { user } = read(operation, arguments)?;
            done(client.delete_user(&user.0)).await
        }
    }
}
