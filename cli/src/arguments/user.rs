//! Users, their permissions, and personal access tokens.

use clap::{Args, Subcommand, ValueEnum};
use iggy_protocol::{GlobalPermissions, Identifier, Permissions};

use super::resource::ListMode;
use super::value::parse_id;
use iggy_view::permissions::{StreamGrant, parse_global_permissions};

/// Whether a user may sign in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum UserStatusArgument {
    /// May sign in.
    #[default]
    Active,
    /// May not sign in.
    Inactive,
}

/// What a user may do. Without either option: nothing but its own account.
#[derive(Debug, Args)]
pub struct PermissionArguments {
    /// Permissions on everything, separated by commas: `manage_servers` (`m_srv`), `read_servers` (`r_srv`),
    /// `manage_users` (`m_usr`), `read_users` (`r_usr`), `manage_streams` (`m_str`), `read_streams` (`r_str`),
    /// `manage_topics` (`m_top`), `read_topics` (`r_top`), `poll_messages` (`p_msg`), `send_messages` (`s_msg`)
    #[arg(short, long, value_name = "PERMISSIONS", value_parser = parse_global_permissions)]
    pub global_permissions: Option<GlobalPermissions>,
    /// Permissions on one stream and its topics: STREAM[:PERMISSIONS][#TOPIC[:PERMISSIONS]]..., ids by number; may be
    /// repeated. On a stream: `manage_stream` (`m_str`), `read_stream` (`r_str`), `manage_topics` (`m_top`),
    /// `read_topics` (`r_top`), `poll_messages` (`p_msg`), `send_messages` (`s_msg`). On a topic: `manage_topic`
    /// (`m_top`), `read_topic` (`r_top`), `poll_messages` (`p_msg`), `send_messages` (`s_msg`)
    #[arg(short, long, value_name = "GRANT")]
    pub stream_permissions: Vec<StreamGrant>,
}

impl PermissionArguments {
    /// The whole set; `None` when no option is given.
    pub fn permissions(&self) -> Option<Permissions> {
        if self.global_permissions.is_none() && self.stream_permissions.is_empty() {
            return None;
        }
        let streams = self
            .stream_permissions
            .iter()
            .map(|grant| (grant.stream, grant.permissions.clone()))
            .collect();
        Some(Permissions {
            global: self.global_permissions.unwrap_or_default(),
            streams,
        })
    }
}

/// Commands on users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Create a user
    #[command(visible_alias = "c")]
    Create {
        /// Name, 3 to 50 bytes
        #[arg(value_parser = parse_username)]
        name: String,
        /// Password, 3 to 100 bytes
        #[arg(value_parser = parse_password)]
        password: String,
        /// Whether the user may sign in
        #[arg(short, long, value_enum, default_value_t)]
        user_status: UserStatusArgument,
        /// What the user may do.
        #[command(flatten)]
        permissions: PermissionArguments,
    },
    /// Delete a user; its sessions end
    #[command(visible_alias = "d")]
    Delete {
        /// Id or name
        #[arg(value_parser = parse_id)]
        user: Identifier,
    },
    /// Show a user and its permissions
    #[command(visible_alias = "g")]
    Get {
        /// Id or name
        #[arg(value_parser = parse_id)]
        user: Identifier,
    },
    /// List users
    #[command(visible_alias = "l")]
    List {
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        list_mode: ListMode,
    },
    /// Rename a user
    #[command(visible_alias = "n")]
    Name {
        /// Id or name
        #[arg(value_parser = parse_id)]
        user: Identifier,
        /// New name, 3 to 50 bytes
        #[arg(value_parser = parse_username)]
        name: String,
    },
    /// Let a user sign in, or not
    #[command(visible_alias = "s")]
    Status {
        /// Id or name
        #[arg(value_parser = parse_id)]
        user: Identifier,
        /// Whether the user may sign in
        status: UserStatusArgument,
    },
    /// Change a password; what is not given is asked for
    #[command(visible_alias = "pwd")]
    Password {
        /// Id or name
        #[arg(value_parser = parse_id)]
        user: Identifier,
        /// Current password
        #[arg(value_parser = parse_password)]
        current: Option<String>,
        /// New password, 3 to 100 bytes
        #[arg(value_parser = parse_password)]
        new: Option<String>,
    },
    /// Replace everything a user may do
    #[command(visible_alias = "p")]
    Permissions {
        /// Id or name
        #[arg(value_parser = parse_id)]
        user: Identifier,
        /// What the user may do.
        #[command(flatten)]
        permissions: PermissionArguments,
    },
}

/// Commands on personal access tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token; it is shown once
    #[command(visible_alias = "c")]
    Create {
        /// Name, 3 to 30 bytes
        #[arg(value_parser = parse_token_name)]
        name: String,
        /// How long it is good for, as `1day 2h`, none or `server_default`
        #[arg(value_name = "EXPIRY")]
        expiry: Vec<String>,
        /// Store it on this machine, for --token-name, instead of showing it
        #[arg(short, long)]
        store_token: bool,
    },
    /// Delete a token
    #[command(visible_alias = "d")]
    Delete {
        /// Name
        name: String,
    },
    /// List your tokens
    #[command(visible_alias = "l")]
    List {
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        list_mode: ListMode,
    },
}

fn parse_username(text: &str) -> Result<String, String> {
    bounded(text, 3, 50)
}

/// Also used for what is typed when asked.
pub(crate) fn parse_password(text: &str) -> Result<String, String> {
    bounded(text, 3, 100)
}

fn parse_token_name(text: &str) -> Result<String, String> {
    bounded(text, 3, 30)
}

fn bounded(text: &str, least: usize, most: usize) -> Result<String, String> {
    if (least..=most).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(format!("it has {} bytes; allowed: {least} to {most}", text.len()))
    }
}
