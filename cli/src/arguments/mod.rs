//! The command line, word by word: every command, its options and their bounds.
//!
//! Parsing is complete before anything is sent: a value that parses is one that the protocol allows.

mod message;
mod resource;
mod system;
mod user;
mod value;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub use message::{ConsumerGroupCommand, ConsumerOffsetCommand, MessageCommand, Moment, PollArguments, SendArguments};
pub use resource::{
    ListMode, PartitionCommand, SegmentCommand, Setting, StreamCommand, TopicCommand, TopicCreateArguments,
};
pub use system::{
    ChangesArguments, ChangesGroup, ChangesStart, ClientCommand, ClusterCommand, ContextCommand,
    ContextCreateArguments, MetadataCommand, OptionScope, SessionCommand, SnapshotArguments, StatsFormat, Transport,
};
pub(crate) use user::parse_password;
pub use user::{TokenCommand, UserCommand, UserStatusArgument};
pub use value::{Expiry, HeaderArgument};

/// Talk to a message-streaming server.
///
/// Exit status: 0 when the command did what it says; 1 when the server refused it, could not be reached or does not
/// have what was asked for; 2 when the command line itself is wrong.
#[derive(Debug, Parser)]
#[command(name = "iggy", version, max_term_width = 110, arg_required_else_help = true)]
pub struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArguments,
    /// The command.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options before the command.
#[derive(Debug, Args)]
pub struct GlobalArguments {
    /// Print only what was asked for: no confirmations, no progress
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Print results as JSON: one object, one array, or one object per line for messages and changes
    #[arg(long, global = true)]
    pub json: bool,

    /// Print the completion script of a shell and exit
    #[arg(long, value_name = "SHELL")]
    pub generate: Option<Shell>,

    /// Sign in with this name, together with --password
    #[arg(
        short,
        long,
        visible_alias = "credentials-username",
        requires = "password",
        value_name = "NAME"
    )]
    pub username: Option<String>,

    /// Sign in with this password, together with --username
    #[arg(
        short,
        long,
        visible_alias = "credentials-password",
        requires = "username",
        value_name = "PASSWORD"
    )]
    pub password: Option<String>,

    /// Sign in with this personal access token
    #[arg(short, long, conflicts_with_all = ["username", "token_name"], value_name = "TOKEN")]
    pub token: Option<String>,

    /// Sign in with the token stored under this name by `pat create --store-token`
    #[arg(short = 'n', long, conflicts_with = "username", value_name = "NAME")]
    pub token_name: Option<String>,

    /// How to reach the server and how to seal messages.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// How to reach the server. What is not given comes from the active context.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArguments {
    /// Transport to the server
    #[arg(long, value_enum)]
    pub transport: Option<Transport>,

    /// Address of the server [default: 127.0.0.1:8090]
    #[arg(long, value_name = "HOST:PORT", value_parser = value::parse_endpoint)]
    pub tcp_server_address: Option<String>,

    /// How often to dial before giving up [default: 3]
    #[arg(long, value_name = "COUNT")]
    pub tcp_reconnection_max_retries: Option<u32>,

    /// Pause between two dials, at first [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = value::parse_time)]
    pub tcp_reconnection_interval: Option<std::time::Duration>,

    /// Speak TLS
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub tcp_tls_enabled: Option<bool>,

    /// Name that the server's certificate must be good for [default: the host of the address]
    #[arg(long, value_name = "NAME")]
    pub tcp_tls_domain: Option<String>,

    /// PEM file with the certificates to trust [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub tcp_tls_ca_file: Option<PathBuf>,

    /// Seal payloads and headers with this key before they are sent and open them after a poll: base64 of 32 bytes
    #[arg(long, value_name = "KEY", env = "IGGY_ENCRYPTION_KEY", hide_env_values = true)]
    pub encryption_key: Option<String>,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the time of a request that does nothing; needs no credentials
    Ping {
        /// How many to send
        #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        count: u32,
    },
    /// Show this connection as the server sees it
    Me,
    /// Show what the server counts about itself
    Stats {
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        output: StatsFormat,
    },
    /// List the options that a kind of resource has
    Options {
        /// Kind of resource
        scope: OptionScope,
    },
    /// Save an archive of the server's logs, settings and surroundings
    Snapshot(SnapshotArguments),
    /// Changes of streams, topics, users and the rest
    #[command(subcommand, visible_alias = "md")]
    Metadata(MetadataCommand),
    /// The nodes
    #[command(subcommand, visible_alias = "cl")]
    Cluster(ClusterCommand),
    /// Connections
    #[command(subcommand, visible_alias = "c")]
    Client(ClientCommand),
    /// Streams: namespaces of topics
    #[command(subcommand, visible_alias = "s")]
    Stream(StreamCommand),
    /// Topics: named, partitioned logs of messages
    #[command(subcommand, visible_alias = "t")]
    Topic(TopicCommand),
    /// Partitions of a topic
    #[command(subcommand, visible_alias = "p")]
    Partition(PartitionCommand),
    /// Segments of a partition
    #[command(subcommand, visible_alias = "seg")]
    Segment(SegmentCommand),
    /// Send and poll messages
    #[command(subcommand, visible_alias = "m")]
    Message(MessageCommand),
    /// Consumer groups of a topic
    #[command(subcommand, visible_alias = "g")]
    ConsumerGroup(ConsumerGroupCommand),
    /// How far consumers have read
    #[command(subcommand, visible_alias = "o")]
    ConsumerOffset(ConsumerOffsetCommand),
    /// Users and what they may do
    #[command(subcommand, visible_alias = "u")]
    User(UserCommand),
    /// Personal access tokens
    #[command(subcommand)]
    Pat(TokenCommand),
    /// Named servers with credentials, kept on this machine
    #[command(subcommand, visible_alias = "ctx")]
    Context(ContextCommand),
    /// Sign in once for the commands that follow: makes a token and stores it for the active context
    #[command(visible_alias = "li")]
    Login {
        /// How long the token is good for [default: 15m]
        #[arg(value_name = "TIME")]
        expiry: Vec<String>,
    },
    /// Delete the token that `login` stored, here and at the server
    #[command(visible_alias = "lo")]
    Logout,
    /// What `login` stored
    #[command(subcommand, visible_alias = "sess")]
    Session(SessionCommand),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn given_the_whole_tree_should_have_no_conflicts() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn given_aliases_should_parse_as_their_commands() {
        for line in [
            "iggy s c orders",
            "iggy t c orders created 3 none",
            "iggy t c orders created 2 gzip 1day 2h -m 2GiB --durability persisted --set segment_size=1048576",
            "iggy p delete orders created 1",
            "iggy seg delete orders created 0 1",
            "iggy m s orders created -p 1 -H k1:string:v1,k2:uint64:7 text",
            "iggy m p orders created 0 -f -m 10 -s",
            "iggy g list orders created",
            "iggy o get -k external-group ext orders created 0",
            "iggy u c eve secretpw -s 0:r_str,p_msg#1:s_msg,m_top#2 -s 1:m_str",
            "iggy md c --groups streams,users --limit 3 --json",
            "iggy ctx list",
            "iggy -u iggy -p iggy -q cl m -l list",
        ] {
            Arguments::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn given_words_that_cannot_be_should_refuse_before_anything_is_sent() {
        for line in [
            "iggy",
            "iggy stream create",
            "iggy -u iggy stream list",
            "iggy -u iggy -p iggy -t token stream list",
            "iggy topic create orders created 0 none",
            "iggy topic create orders created 3 zip",
            "iggy topic create orders created 3 none --set nothing",
            "iggy partition create orders created 1001",
            "iggy message send orders created -p 1 -m key text",
            "iggy message send orders created --headers k1:nokind:v",
            "iggy message poll orders created 0 -f -l",
            "iggy message poll orders created 0 --follow --all",
            "iggy user create ab secretpw",
            "iggy user create eve secretpw -g fly",
            "iggy consumer-offset set c9 orders created 0 minus",
            "iggy metadata changes --since 2020-01-01T00:00:00Z",
            "iggy --transport carrier-pigeon me",
            "iggy --tcp-server-address localhost me",
            "iggy ping -c 0",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
