//! The server itself, and what this program keeps on this machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use iggy_protocol::request::metadata_changes::Cursor;
use iggy_protocol::request::system::{SnapshotCompression, SnapshotType};

use super::ConnectionArguments;
use super::resource::ListMode;
use super::value::parse_time;
use iggy_view::changes::parse_cursor;

/// Transports that this program speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// TCP, with or without TLS.
    #[default]
    Tcp,
}

/// Form of the statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// A table of names and values.
    #[default]
    Table,
    /// One name and value per line.
    List,
    /// One JSON object.
    Json,
    /// TOML.
    Toml,
}

/// Kinds of resource that have options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OptionScope {
    /// Topics.
    Topic,
    /// Streams.
    Stream,
    /// Users.
    User,
}

/// How an archive is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// Not at all.
    Stored,
    /// Deflate.
    #[default]
    Deflated,
    /// Bzip2.
    Bzip2,
    /// Zstandard.
    Zstd,
    /// LZMA.
    Lzma,
    /// XZ.
    Xz,
}

impl From<Compression> for SnapshotCompression {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::Stored => Self::Stored,
            Compression::Deflated => Self::Deflated,
            Compression::Bzip2 => Self::Bzip2,
            Compression::Zstd => Self::Zstd,
            Compression::Lzma => Self::Lzma,
            Compression::Xz => Self::Xz,
        }
    }
}

/// Parts of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum SnapshotPart {
    /// What the data directory holds.
    FilesystemOverview,
    /// Processes of the machine.
    ProcessList,
    /// What the server uses.
    ResourceUsage,
    /// A line that proves the way works.
    Test,
    /// Log files.
    ServerLogs,
    /// Settings.
    ServerConfig,
    /// All of them.
    All,
}

impl From<SnapshotPart> for SnapshotType {
    fn from(part: SnapshotPart) -> Self {
        match part {
            SnapshotPart::FilesystemOverview => Self::FilesystemOverview,
            SnapshotPart::ProcessList => Self::ProcessList,
            SnapshotPart::ResourceUsage => Self::ResourceUsage,
            SnapshotPart::Test => Self::Test,
            SnapshotPart::ServerLogs => Self::ServerLogs,
            SnapshotPart::ServerConfig => Self::ServerConfig,
            SnapshotPart::All => Self::All,
        }
    }
}

/// What an archive holds and where it goes.
#[derive(Debug, Args)]
pub struct SnapshotArguments {
    /// Compression of the archive
    #[arg(short, long, value_enum, default_value_t)]
    pub compression: Compression,
    /// Parts of the archive
    #[arg(short, long, value_enum, num_args = 1.., default_values = ["all"])]
    pub snapshot_types: Vec<SnapshotPart>,
    /// Folder that the archive is written to
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    pub out_dir: PathBuf,
}

/// Commands on changes.
#[derive(Debug, Subcommand)]
pub enum MetadataCommand {
    /// Print changes, one JSON object per page and line
    #[command(visible_alias = "c")]
    Changes(ChangesArguments),
}

/// Where changes start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ChangesStart {
    /// The oldest change still kept.
    #[default]
    Earliest,
    /// Only what comes from now on.
    Latest,
    /// First everything that exists, then what changes.
    Current,
}

/// Kinds of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ChangesGroup {
    /// Streams.
    Streams,
    /// Topics.
    Topics,
    /// Counts of partitions.
    Partitions,
    /// Consumer groups.
    ConsumerGroups,
    /// Members of consumer groups.
    ConsumerGroupMembers,
    /// Users.
    Users,
    /// Personal access tokens.
    PersonalAccessTokens,
    /// Sessions.
    Sessions,
}

/// Which changes.
#[derive(Debug, Args)]
pub struct ChangesArguments {
    /// Where to start
    #[arg(long, value_enum, default_value_t, conflicts_with = "after")]
    pub from: ChangesStart,
    /// Start after this cursor: the `next` of a page
    #[arg(long, value_name = "CURSOR", value_parser = parse_cursor)]
    pub after: Option<Cursor>,
    /// Only these kinds, separated by commas [default: all that the start allows]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "GROUPS")]
    pub groups: Vec<ChangesGroup>,
    /// Not before this moment, in microseconds since the epoch
    #[arg(long, value_name = "MICROSECONDS")]
    pub since: Option<u64>,
    /// Before this moment, in microseconds since the epoch
    #[arg(long, value_name = "MICROSECONDS")]
    pub until: Option<u64>,
    /// Changes of one page, 1 to 1000
    #[arg(short, long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Go on with what changes until interrupted
    #[arg(short, long)]
    pub follow: bool,
    /// Pause between two looks of --follow
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = parse_time)]
    pub interval: Duration,
}

/// Commands on nodes.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// List the nodes, their addresses and roles
    #[command(visible_alias = "m")]
    Metadata {
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        list_mode: ListMode,
    },
}

/// Commands on connections.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Show one connection and its groups
    #[command(visible_alias = "g")]
    Get {
        /// Id, as `client list` shows it
        id: u32,
    },
    /// List connections
    #[command(visible_alias = "l")]
    List {
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        list_mode: ListMode,
    },
}

/// Commands on what `login` stored.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Show whether the active context is signed in, and until when
    #[command(visible_alias = "s")]
    Status,
}

/// What a context holds.
#[derive(Debug, Args)]
pub struct ContextCreateArguments {
    /// Name
    pub name: String,
    /// Sign in with this name
    #[arg(short, long, requires = "password")]
    pub username: Option<String>,
    /// Sign in with this password; stored as it is, in a file that only you can read
    #[arg(short, long, requires = "username")]
    pub password: Option<String>,
    /// Sign in with this token
    #[arg(short, long, conflicts_with_all = ["username", "token_name"])]
    pub token: Option<String>,
    /// Sign in with the token stored under this name
    #[arg(short = 'n', long, conflicts_with = "username")]
    pub token_name: Option<String>,
    /// How to reach the server.
    #[command(flatten)]
    pub connection: ConnectionArguments,
}

/// Commands on contexts.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// List contexts
    #[command(visible_alias = "l")]
    List {
        /// Form of the output
        #[arg(short, long, value_enum, default_value_t)]
        list_mode: ListMode,
    },
    /// Make a context the active one
    #[command(visible_alias = "u")]
    Use {
        /// Name
        name: String,
    },
    /// Create a context
    #[command(visible_alias = "c")]
    Create(Box<ContextCreateArguments>),
    /// Delete a context
    #[command(visible_alias = "d")]
    Delete {
        /// Name
        name: String,
    },
    /// Show a context; secrets stay hidden
    #[command(visible_alias = "s")]
    Show {
        /// Name
        name: String,
    },
}
