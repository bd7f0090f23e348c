//! The client core: connection, session, router, operations, producer, consumer and partition reader.
//!
//! ```no_run
//! # async fn example() -> Result<(), iggy::IggyError> {
//! use iggy::prelude::*;
//!
//! let client = IggyClient::from_connection_string("iggy://iggy:iggy@127.0.0.1:8090")?;
//! client.connect().await?;
//! let producer = client.producer("orders", "created")?.build();
//! producer.init().await?;
//! producer.send(vec![IggyMessage::new("hello")?]).await?;
//! # Ok(()) }
//! ```
//!
//! Layers, each knowing only those below: `transport` (bytes), `connection` (frames and request numbers), `session` and
//! `sign_in` (who we are), `connect` and `heartbeat` (links), `memberships`, `routes`, `lanes`, `answer` and `call` (one
//! call to its end), [`operations`] (one function per command, and the table of them all), [`producer`], `intake` (what
//! reading has in common), [`reader`] and [`consumer`], [`stream_builder`].
//!
//! Every write ends as applied, not applied or unknown: see [`IggyError::outcome`]. A write whose outcome is unknown keeps
//! its lane until it is resolved or abandoned, so that nothing overtakes it.

mod answer;
mod backoff;
mod call;
mod client;
pub mod config;
mod connect;
mod connection;
pub mod connection_string;
pub mod consumer;
mod core;
mod deferred;
pub mod encryption;
mod error;
mod events;
mod frame_buffer;
mod heartbeat;
mod intake;
mod lanes;
mod memberships;
mod message;
pub mod operations;
mod poll;
pub mod prelude;
pub mod producer;
pub mod reader;
mod reading;
#[cfg(test)]
mod replay_tests;
mod resolve;
mod resource_options;
mod route_lookup;
mod routes;
#[cfg(test)]
mod scripted_tests;
mod session;
mod sign_in;
pub mod stream_builder;
mod topic_setup;
mod transport;

pub use client::{ConnectionInfo, IggyClient, IggyClientBuilder};
pub use config::{ClientConfig, Endpoint, ReconnectionConfig, TlsConfig};
pub use consumer::{IggyConsumer, IggyConsumerBuilder, IggyConsumerState, MessageHandler, ReceivedMessage};
pub use encryption::{Aes256GcmEncryptor, Aes256GcmSivEncryptor, Encryptor};
pub use error::{ErrorClass, IggyError, OperationId, Outcome};
pub use events::{DiagnosticEvent, Events, ReaderEvent};
pub use lanes::Resolution;
pub use message::{IggyMessage, IggyMessageBuilder, IggyMessageHeader};
pub use operations::IdentityInfo;
pub use poll::{
    AutoCommit, Checkpoint, CommitAfter, CommitEvery, CommitPolicy, Continuation, PollOptions, PolledMessages,
    ReadStart,
};
pub use producer::{
    BackgroundConfig, BackpressureMode, DirectConfig, IggyProducer, IggyProducerBuilder, Partitioner, SendFailed,
    Sharding,
};
pub use reader::{PartitionReader, ReadError, ReaderBuilder};
pub use resource_options::{
    CompressionAlgorithm, IggyExpiry, MaxTopicSize, PartitionResizePolicy, RawOptions, StreamCreateOptions,
    StreamUpdateOptions, TopicCreateOptions, TopicUpdateOptions, UserCreateOptions, UserStatus, UserUpdateOptions,
};

pub use stream_builder::{
    IggyConsumerConfig, IggyProducerConfig, IggyStream, IggyStreamConfig, IggyStreamConsumer, IggyStreamProducer,
};

/// The wire types this client shows.
pub use iggy_protocol as protocol;
pub use iggy_protocol::reply::group::{Assignment, ConsumerGroup, ConsumerGroupDetails, ConsumerGroupMember};
pub use iggy_protocol::reply::message::SendConfirmation;
pub use iggy_protocol::reply::metadata_changes::MetadataChanges;
pub use iggy_protocol::reply::offset::ConsumerOffset;
pub use iggy_protocol::reply::stream::{Stream, StreamDetails};
pub use iggy_protocol::reply::system::{
    ClientDetails, ClientSummary, ClusterMetadata, ClusterNode, NodeRole, NodeStatus, OptionDescription, Stats,
};
pub use iggy_protocol::reply::topic::{Partition, Topic, TopicDetails};
pub use iggy_protocol::reply::user::{PersonalAccessToken, User, UserDetails};
pub use iggy_protocol::request::metadata_changes::{ChangesStart, GetMetadataChanges};
pub use iggy_protocol::request::session::Credentials;
pub use iggy_protocol::request::system::{SnapshotCompression, SnapshotType};
pub use iggy_protocol::{
    Consumer, ConsumerKind, Durability, ErrorCode, GlobalPermissions, Identifier, IggyByteSize, IggyDuration, Name,
    PartitionContext, Partitioning, Permissions, PollingStrategy, ProducerSection, Scope, Secret, StreamFlags,
    StreamPermissions, TopicPermissions, TypedValue, UserHeaders, ValueKind,
};
