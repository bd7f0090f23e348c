//! The client-facing binary protocol 0.12.2: frames, batches, commands, errors. Pure: no I/O.
//!
//! Everything that reads bytes from outside checks every length before it takes or allocates anything and names what was
//! wrong. Sections of the wire description are cited as "wire 7.4".

pub mod batch;
pub mod batch_builder;
pub mod batch_slice;
pub mod byte_size;
pub mod codec;
pub mod command;
pub mod consumer;
pub mod context;
pub mod duration;
pub mod error_code;
mod error_code_table;
pub mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod header;
pub mod identifier;
pub mod limits;
pub mod name;
pub mod operation;
pub mod option_catalog;
pub mod option_value;
pub mod options;
pub mod partitioning;
pub mod permissions;
pub mod polling_strategy;
pub mod reply;
pub mod request;
pub mod result_section;
pub mod secret;
pub mod topic_settings;
pub mod typed_value;
pub mod user_headers;
pub mod version;
mod wire_struct;

pub use batch::{BatchError, BatchHeader, BatchView, ProducerSection, Records};
pub use batch_builder::BatchBuilder;
pub use batch_slice::{BatchSlice, slice};
pub use byte_size::IggyByteSize;
pub use codec::{Decode, DecodeError, Encode, Reader, WriteWire};
pub use command::{Command, PermissionClass};
pub use consumer::{Consumer, ConsumerKind};
pub use context::PartitionContext;
pub use duration::IggyDuration;
pub use error_code::ErrorCode;
pub use frame::{FrameHeader, FrameView};
pub use header::{Committed, EvictionHeader, EvictionReason, HeaderError, ReplyHeader, RequestHeader};
pub use identifier::Identifier;
pub use name::{Name, NameError};
pub use operation::{Operation, Plane};
pub use option_catalog::{OptionError, Scope};
pub use options::Options;
pub use partitioning::Partitioning;
pub use permissions::{GlobalPermissions, Permissions, StreamFlags, StreamPermissions, TopicPermissions};
pub use polling_strategy::PollingStrategy;
pub use result_section::ResultSection;
pub use secret::Secret;
pub use topic_settings::{Durability, TopicSettings};
pub use typed_value::{TypedValue, TypedValueError, ValueKind};
pub use user_headers::{UserHeaders, UserHeadersView};
pub use version::{PROTOCOL_VERSION, PackedVersion};
