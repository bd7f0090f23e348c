//! Everything an application usually needs, in one import.

pub use crate::{
    Aes256GcmEncryptor, Aes256GcmSivEncryptor, Assignment, AutoCommit, BackgroundConfig, BackpressureMode,
    ChangesStart, Checkpoint, ClientConfig, ClientDetails, ClientSummary, ClusterMetadata, CommitAfter, CommitEvery,
    CommitPolicy, CompressionAlgorithm, ConnectionInfo, Consumer, ConsumerGroup, ConsumerGroupDetails, ConsumerKind,
    ConsumerOffset, Continuation, Credentials, DiagnosticEvent, DirectConfig, Durability, Encryptor, ErrorClass,
    ErrorCode, Events, GetMetadataChanges, GlobalPermissions, Identifier, IdentityInfo, IggyByteSize, IggyClient,
    IggyClientBuilder, IggyConsumer, IggyConsumerBuilder, IggyConsumerConfig, IggyConsumerState, IggyDuration,
    IggyError, IggyExpiry, IggyMessage, IggyMessageBuilder, IggyMessageHeader, IggyProducer, IggyProducerBuilder,
    IggyProducerConfig, IggyStream, IggyStreamConfig, IggyStreamConsumer, IggyStreamProducer, MaxTopicSize,
    MessageHandler, OperationId, Outcome, PartitionContext, PartitionReader, PartitionResizePolicy, Partitioner,
    Partitioning, Permissions, PollOptions, PolledMessages, PollingStrategy, ProducerSection, ReadError, ReadStart,
    ReaderBuilder, ReaderEvent, ReceivedMessage, Resolution, Scope, Secret, SendConfirmation, SendFailed, Sharding,
    SnapshotCompression, SnapshotType, Stats, Stream, StreamCreateOptions, StreamDetails, StreamFlags,
    StreamPermissions, StreamUpdateOptions, TlsConfig, Topic, TopicCreateOptions, TopicDetails, TopicPermissions,
    TopicUpdateOptions, TypedValue, User, UserCreateOptions, UserDetails, UserHeaders, UserStatus, UserUpdateOptions,
    ValueKind,
};
