//! Which options exist, where they apply, what they default to and in which order a server refuses them (wire 5.8).
//!
//! The functions here are pure: server and client ask the same ones.

use crate::error_code::ErrorCode;
use crate::name::Name;
use crate::option_value::canonical;
use crate::options::Options;
use crate::typed_value::{TypedValue, ValueKind};

/// What an option belongs to. The number is that of the wire (11.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Scope {
    /// A topic.
    Topic = 1,
    /// A stream.
    Stream = 2,
    /// A user.
    User = 3,
}

impl Scope {
    /// The scope of this byte.
    pub const fn from_u8(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Topic),
            2 => Some(Self::Stream),
            3 => Some(Self::User),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Stream => "stream",
            Self::User => "user",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

const T: u8 = Scope::Topic.bit();
const S: u8 = Scope::Stream.bit();
const U: u8 = Scope::User.bit();

/// The value an option has when nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionDefault {
    /// There is none, or a server setting decides.
    None,
    /// Text.
    Text(&'static str),
    /// A `uint64`.
    U64(u64),
    /// A `uint32`.
    U32(u32),
    /// A `bool`.
    Bool(bool),
}

impl OptionDefault {
    /// The default in its canonical kind.
    pub fn value(self) -> Option<TypedValue> {
        match self {
            Self::None => None,
            Self::Text(text) => TypedValue::string(text).ok(),
            Self::U64(value) => Some(TypedValue::uint64(value)),
            Self::U32(value) => Some(TypedValue::uint32(value)),
            Self::Bool(value) => Some(TypedValue::bool(value)),
        }
    }
}

/// Who may set an option, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settable {
    /// At creation only.
    AtCreate,
    /// At creation and later; it can be reset to its default.
    Always,
    /// Later only: the create command has a field of its own for it.
    Column,
    /// Never: the server computes it.
    ReadOnly,
    /// Never, and it is not shown either.
    Internal,
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// The key.
    pub key: &'static str,
    scopes: u8,
    /// The kind of its canonical value.
    pub kind: ValueKind,
    /// What it is when nobody sets it.
    pub default: OptionDefault,
    /// Who may set it, and when.
    pub settable: Settable,
    /// Its value is never returned.
    pub secret: bool,
    /// A node that does not know it must not serve what it applies to.
    pub critical: bool,
    /// A sentence for people.
    pub description: &'static str,
}

impl OptionSpec {
    /// Whether it applies to this scope.
    pub const fn applies_to(&self, scope: Scope) -> bool {
        self.scopes & scope.bit() != 0
    }

    /// The flag byte of a described option: bit 0 updatable, 1 resettable, 2 secret, 3 read-only, 4 critical.
    pub const fn flags(&self) -> u8 {
        let settable = match self.settable {
            Settable::AtCreate | Settable::Internal => 0,
            Settable::Always => 0b11,
            Settable::Column => 0b1,
            Settable::ReadOnly => 0b1000,
        };
        settable | (self.secret as u8) << 2 | (self.critical as u8) << 4
    }
}

const fn option(
    key: &'static str,
    scopes: u8,
    kind: ValueKind,
    default: OptionDefault,
    settable: Settable,
    description: &'static str,
) -> OptionSpec {
    OptionSpec {
        key,
        scopes,
        kind,
        default,
        settable,
        secret: false,
        critical: false,
        description,
    }
}

use OptionDefault as D;
use Settable::{Always, AtCreate, Column, Internal, ReadOnly};
use ValueKind as K;

/// Every option. Described options are listed in this order.
pub const CATALOG: &[OptionSpec] = &[
    option("name", S | T, K::String, D::None, Column, "Name, 1..=255 bytes."),
    option(
        "username",
        U,
        K::String,
        D::None,
        Column,
        "Name of the user, 3..=50 bytes.",
    ),
    option(
        "status",
        U,
        K::String,
        D::None,
        Column,
        "active or inactive; deactivation ends the user's sessions.",
    ),
    option(
        "compression_algorithm",
        T,
        K::String,
        D::Text("none"),
        AtCreate,
        "none or gzip; stored and shown, not applied.",
    ),
    option(
        "message_expiry",
        T,
        K::Uint64,
        D::U64(u64::MAX),
        Always,
        "Age in microseconds after which messages may be removed; 2^64-1 is never.",
    ),
    option(
        "max_topic_size",
        T,
        K::Uint64,
        D::U64(u64::MAX),
        Always,
        "Bytes above which the oldest segments are removed; 2^64-1 is unlimited, otherwise at least segment_size.",
    ),
    option(
        "segment_size",
        T,
        K::Uint64,
        D::U64(1_073_741_824),
        AtCreate,
        "Bytes of a segment: a multiple of 512 in 1048576..=1073741824.",
    ),
    option(
        "durability",
        T,
        K::String,
        D::Text("replicated"),
        AtCreate,
        "When a send is acknowledged: replicated (in memory of a quorum) or persisted (on its disks).",
    ),
    option(
        "consumer_offset_durability",
        T,
        K::String,
        D::Text("replicated"),
        AtCreate,
        "When a consumer offset is acknowledged: replicated or persisted.",
    ),
    option(
        "partition_resize_policy",
        T,
        K::String,
        D::Text("mutable"),
        AtCreate,
        "mutable, or fixed: partitions cannot be added or removed.",
    ),
    option(
        "messages_required_to_save",
        T,
        K::Uint32,
        D::U32(1024),
        AtCreate,
        "Messages a partition may hold before it writes them, 1..=16777216; a batch is never held longer than its own write.",
    ),
    option(
        "size_of_messages_required_to_save",
        T,
        K::Uint64,
        D::U64(1_048_576),
        AtCreate,
        "Bytes a partition may hold before it writes them, at most 1073741824; a batch is never held longer than its own write.",
    ),
    option(
        "preallocate_segments",
        T,
        K::Bool,
        D::Bool(false),
        AtCreate,
        "Reserve disk space for each segment; at most 64 GiB per created topic.",
    ),
    option(
        "replication_factor",
        T,
        K::Uint32,
        D::None,
        AtCreate,
        "Nodes that store each partition, 1..=32 and at most the nodes of the cluster.",
    ),
    OptionSpec {
        secret: true,
        critical: true,
        ..option(
            "encryption_key",
            S,
            K::Raw,
            D::None,
            AtCreate,
            "Key of 32 bytes for messages at rest; never returned.",
        )
    },
    option(
        "encryption_key_wrapped",
        S,
        K::Raw,
        D::None,
        Internal,
        "The stream key under the server's key.",
    ),
    option(
        "encryption_key_source",
        S,
        K::String,
        D::None,
        ReadOnly,
        "Whose key encrypts the stream: stream, server or none.",
    ),
    option(
        "encryption_key_fingerprint",
        S,
        K::String,
        D::None,
        ReadOnly,
        "Fingerprint of the key that encrypts the stream.",
    ),
    option(
        "encryption_kek_fingerprint",
        S,
        K::String,
        D::None,
        ReadOnly,
        "Fingerprints of the keys that wrap the stream key.",
    ),
    option(
        "critical_keys",
        S | T | U,
        K::String,
        D::None,
        Internal,
        "Stored options a node must understand.",
    ),
];

/// The option of this key in this scope.
pub fn find(scope: Scope, key: &str) -> Option<&'static OptionSpec> {
    CATALOG.iter().find(|spec| spec.key == key && spec.applies_to(scope))
}

/// The options a server describes for a scope: all but internal ones.
pub fn described(scope: Scope) -> impl Iterator<Item = &'static OptionSpec> {
    CATALOG
        .iter()
        .filter(move |spec| spec.applies_to(scope) && spec.settable != Settable::Internal)
}

/// An option that is refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("option '{key}' of a {}: {reason}", scope.name())]
pub struct OptionError {
    /// The scope.
    pub scope: Scope,
    /// The key.
    pub key: String,
    /// What is wrong and what is allowed.
    pub reason: String,
    code: ErrorCode,
}

impl OptionError {
    pub(crate) fn new(scope: Scope, key: &str, code: ErrorCode, reason: impl Into<String>) -> Self {
        Self {
            scope,
            key: key.to_owned(),
            reason: reason.into(),
            code,
        }
    }

    /// The code a server answers with.
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

fn spec_of(scope: Scope, key: &str) -> Result<&'static OptionSpec, OptionError> {
    find(scope, key).ok_or_else(|| {
        let known: Vec<_> = described(scope).map(|spec| spec.key).collect();
        let reason = format!("is not known, expected one of {}", known.join(", "));
        OptionError::new(scope, key, ErrorCode::UnsupportedOptionKey, reason)
    })
}

fn refuse_read_only(scope: Scope, spec: &OptionSpec) -> Result<(), OptionError> {
    match spec.settable {
        Settable::ReadOnly | Settable::Internal => Err(OptionError::new(
            scope,
            spec.key,
            ErrorCode::ReadOnlyOption,
            "is set by the server alone",
        )),
        _ => Ok(()),
    }
}

/// Checks the options of a create command and returns them in canonical form: text values converted, keys whose value
/// means "server default" dropped. Refusals come in the order of wire 5.8. What only a server knows is left to it: node
/// count, the encryption key of the server, and [`crate::topic_settings`] for rules between keys.
pub fn check_create(scope: Scope, options: &Options) -> Result<Options, OptionError> {
    let specs = specs_of(scope, options)?;
    for spec in &specs {
        refuse_read_only(scope, spec)?;
    }
    if let Some(column) = specs.iter().find(|spec| spec.settable == Settable::Column) {
        let reason = "is a field of the create command, not an option of it";
        return Err(OptionError::new(
            scope,
            column.key,
            ErrorCode::InvalidOptionValue,
            reason,
        ));
    }
    canonical_all(scope, options, &specs)
}

/// Checks the options an update sets and resets and returns what it sets in canonical form. A set value that means
/// "server default" is dropped from the result: the server removes the key. Refusals come in the order of wire 5.8.
pub fn check_update(scope: Scope, set: &Options, reset: &[Name]) -> Result<Options, OptionError> {
    check_update_shape(scope, set, reset)?;
    let set_specs = specs_of(scope, set)?;
    let reset_specs = reset
        .iter()
        .map(|key| spec_of(scope, key))
        .collect::<Result<Vec<_>, _>>()?;
    for spec in set_specs.iter().chain(&reset_specs) {
        refuse_read_only(scope, spec)?;
    }
    for spec in set_specs.iter().chain(&reset_specs) {
        if spec.settable == Settable::AtCreate {
            return Err(OptionError::new(
                scope,
                spec.key,
                ErrorCode::OptionNotUpdatable,
                "can be set at creation only",
            ));
        }
    }
    if let Some(spec) = reset_specs.iter().find(|spec| spec.settable != Settable::Always) {
        return Err(OptionError::new(
            scope,
            spec.key,
            ErrorCode::OptionNotResettable,
            "has no default to return to",
        ));
    }
    canonical_all(scope, set, &set_specs)
}

/// The first refusals of an update: nothing to do, a key reset twice, or a key both set and reset.
pub fn check_update_shape(scope: Scope, set: &Options, reset: &[Name]) -> Result<(), OptionError> {
    let refuse = |key: &str, reason: &str| Err(OptionError::new(scope, key, ErrorCode::InvalidCommand, reason));
    for (index, key) in reset.iter().enumerate() {
        if reset[..index].contains(key) {
            return refuse(key, "is reset twice");
        }
        if set.contains(key) {
            return refuse(key, "is both set and reset");
        }
    }
    if set.is_empty() && reset.is_empty() {
        return refuse("", "the update sets and resets nothing");
    }
    Ok(())
}

fn specs_of(scope: Scope, options: &Options) -> Result<Vec<&'static OptionSpec>, OptionError> {
    options.iter().map(|(key, _)| spec_of(scope, key)).collect()
}

fn canonical_all(scope: Scope, options: &Options, specs: &[&'static OptionSpec]) -> Result<Options, OptionError> {
    let mut result = Options::new();
    for ((key, value), spec) in options.iter().zip(specs) {
        if let Some(value) = canonical(scope, spec, value)? {
            result.insert(key.clone(), value);
        }
    }
    result
        .check_limits()
        .map_err(|error| OptionError::new(scope, "", error.code(), error.to_string()))?;
    Ok(result)
}
