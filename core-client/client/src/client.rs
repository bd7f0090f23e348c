//! The client: a cheap handle that is cloned freely, and how it is made.

use std::sync::Arc;

use iggy_protocol::{Command, Consumer, Encode, ErrorCode, Identifier};
use tokio::time::{Duration, Instant};

use crate::call::{Call, execute};
use crate::config::{ClientConfig, Endpoint, TlsConfig};
use crate::connection_string;
use crate::consumer::IggyConsumerBuilder;
use crate::core::Core;
use crate::encryption::Encryptor;
use crate::error::{IggyError, OperationId};
use crate::events::{DiagnosticEvent, Events};
use crate::frame_buffer::FrameBuffer;
use crate::lanes::Resolution;
use crate::producer::{IggyProducerBuilder, Partitioner};
use crate::reader::ReaderBuilder;
use crate::session::Intent;

/// A client. Clones share one session and its connections; when the last of them is gone, the connections close.
///
/// Nothing here blocks in `Drop`. Unless a method says otherwise its future is cancel safe: a read stops, a write goes on
/// to its end in the background.
#[derive(Debug, Clone)]
pub struct IggyClient {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    core: Arc<Core>,
    encryptor: Option<Arc<dyn Encryptor>>,
    partitioner: Option<Arc<dyn Partitioner>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.ended.cancel();
    }
}

impl IggyClient {
    /// A client of a connection string: `iggy://user:password@host:port?key=value`. It connects with [`Self::connect`].
    ///
    /// # Errors
    /// [`ErrorCode::InvalidConnectionString`], naming the part that is wrong and what is allowed there.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), iggy::IggyError> {
    /// let client = iggy::IggyClient::from_connection_string("iggy://iggy:iggy@127.0.0.1:8090")?;
    /// client.connect().await?;
    /// # Ok(()) }
    /// ```
    pub fn from_connection_string(text: &str) -> Result<Self, IggyError> {
        Ok(Self::builder_from_connection_string(text)?.build())
    }

    /// A builder that starts from a connection string.
    ///
    /// # Errors
    /// As [`Self::from_connection_string`].
    pub fn builder_from_connection_string(text: &str) -> Result<IggyClientBuilder, IggyError> {
        Ok(IggyClientBuilder {
            config: connection_string::parse(text)?,
            ..IggyClientBuilder::default()
        })
    }

    /// A builder that starts from the defaults.
    pub fn builder() -> IggyClientBuilder {
        IggyClientBuilder::default()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    pub(crate) fn encryptor(&self) -> Option<Arc<dyn Encryptor>> {
        self.handle.encryptor.clone()
    }

    pub(crate) fn partitioner(&self) -> Option<Arc<dyn Partitioner>> {
        self.handle.partitioner.clone()
    }

    /// Connects, and signs in whoever is configured. Returns at once when that is done already.
    ///
    /// # Errors
    /// No node could be reached, the credentials were refused, or the versions do not fit.
    pub async fn connect(&self) -> Result<(), IggyError> {
        self.core().connect(self.core().default_deadline()).await
    }

    /// Closes every connection and forgets the session; nothing connects again before the next [`Self::connect`] or login.
    /// The server keeps the session until it expires.
    #[allow(clippy::unused_async, reason = "other transports will have something to wait for")]
    pub async fn disconnect(&self) -> Result<(), IggyError> {
        self.core().require_open()?;
        self.core().session.set_intent(Intent::Idle);
        self.core().end_session();
        self.core().close_links("the client disconnected");
        Ok(())
    }

    /// Closes the client for good: calls under way and later ones fail with [`ErrorCode::ClientShutdown`].
    #[allow(clippy::unused_async, reason = "other transports will have something to wait for")]
    pub async fn shutdown(&self) -> Result<(), IggyError> {
        let core = self.core();
        if core.session.intent() == Intent::Shutdown {
            return Ok(());
        }
        core.session.set_intent(Intent::Shutdown);
        core.end_session();
        core.ended.cancel();
        core.close_links("the client was shut down");
        core.events.publish(DiagnosticEvent::Shutdown);
        Ok(())
    }

    /// Subscribes to what happens to the client as a whole.
    pub fn subscribe_events(&self) -> Events {
        self.core().events.subscribe()
    }

    /// The protocol, and the address of the node that is served by: the metadata primary, else the configured one.
    pub fn get_connection_info(&self) -> ConnectionInfo {
        let core = self.core();
        let live = core.live_main().map(|link| link.endpoint);
        ConnectionInfo {
            protocol: "tcp",
            server_address: live.unwrap_or_else(|| core.config.endpoint.clone()).to_string(),
        }
    }

    /// Finds out what became of a write whose outcome is unknown, by sending the identical frame until a committed answer
    /// comes. Its lane is free afterwards.
    ///
    /// # Errors
    /// [`ErrorCode::OperationUncertain`] when `deadline` passes first, [`ErrorCode::OperationNotRetained`] when it can no
    /// longer be known, [`ErrorCode::FetchProgressUncertain`] for a read, which can only be abandoned.
    pub async fn resolve_operation(&self, operation: OperationId, deadline: Duration) -> Result<Resolution, IggyError> {
        self.core().resolve(operation, Instant::now() + deadline).await
    }

    /// Gives up on an operation whose outcome is unknown, and frees its lane.
    ///
    /// # Errors
    /// [`ErrorCode::OperationNotRetained`] when there is no such operation.
    pub fn abandon_operation(&self, operation: OperationId) -> Result<(), IggyError> {
        if self.core().lanes.release(operation) {
            return Ok(());
        }
        Err(
            IggyError::new(ErrorCode::OperationNotRetained, "there is no such uncertain operation")
                .with_operation(operation),
        )
    }

    /// The operations whose outcome is unknown, ascending.
    pub fn uncertain_operations(&self) -> Vec<OperationId> {
        self.core().lanes.uncertain()
    }

    /// Begins a producer of a stream and topic, by names or numbers.
    ///
    /// # Errors
    /// A name that is empty or above 255 bytes.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient) -> Result<(), iggy::IggyError> {
    /// use iggy::prelude::*;
    /// let producer = client.producer("orders", "created")?.build();
    /// producer.init().await?;
    /// producer.send(vec![IggyMessage::new("hello")?]).await?;
    /// # Ok(()) }
    /// ```
    pub fn producer(&self, stream: &str, topic: &str) -> Result<IggyProducerBuilder, IggyError> {
        Ok(IggyProducerBuilder::new(
            self.clone(),
            Identifier::try_from(stream)?,
            Identifier::try_from(topic)?,
        ))
    }

    /// Begins a standalone consumer of named partitions of a topic.
    ///
    /// # Errors
    /// A name that is empty or above 255 bytes.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient) -> Result<(), iggy::IggyError> {
    /// let mut consumer = client.consumer("audit", "orders", "created")?.partitions([0, 1]).build();
    /// consumer.init().await?;
    /// while let Some(received) = consumer.next().await {
    ///     let received = received?;
    ///     consumer.commit(received.checkpoint()).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn consumer(&self, name: &str, stream: &str, topic: &str) -> Result<IggyConsumerBuilder, IggyError> {
        self.begin_consumer(Consumer::new(Identifier::try_from(name)?), stream, topic)
    }

    /// Begins a member of a consumer group, which shares the partitions of a topic out among its members.
    ///
    /// # Errors
    /// A name that is empty or above 255 bytes.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient) -> Result<(), iggy::IggyError> {
    /// use iggy::prelude::*;
    /// let mut consumer = client
    ///     .consumer_group("billing", "orders", "created")?
    ///     .create_consumer_group_if_not_exists()
    ///     .polling_strategy(PollingStrategy::next())
    ///     .poll_options(PollOptions {
    ///         count: 1000,
    ///         commit: CommitPolicy::OnRead,
    ///         ..PollOptions::wait(IggyDuration::ONE_SECOND)
    ///     })
    ///     .build();
    /// consumer.init().await?;
    /// while let Some(received) = consumer.next().await {
    ///     println!("{:?}", received?.message.payload);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn consumer_group(&self, name: &str, stream: &str, topic: &str) -> Result<IggyConsumerBuilder, IggyError> {
        self.begin_consumer(Consumer::group(Identifier::try_from(name)?), stream, topic)
    }

    fn begin_consumer(&self, consumer: Consumer, stream: &str, topic: &str) -> Result<IggyConsumerBuilder, IggyError> {
        let (stream, topic) = (Identifier::try_from(stream)?, Identifier::try_from(topic)?);
        Ok(IggyConsumerBuilder::new(self.clone(), consumer, stream, topic))
    }

    /// Begins a reader of many partitions of a topic, in batches.
    ///
    /// ```no_run
    /// # async fn example(client: iggy::IggyClient) -> Result<(), Box<dyn std::error::Error>> {
    /// # use iggy::prelude::*;
    /// # let (stream, topic) = (Identifier::named("orders")?, Identifier::named("created")?);
    /// let mut reader = client
    ///     .reader(&stream, &topic, &Consumer::new(Identifier::named("audit")?))
    ///     .partitions(0..8)
    ///     .build()
    ///     .await?;
    /// let batch = reader.next().await?;
    /// if let Some(checkpoint) = batch.checkpoint() {
    ///     reader.commit(checkpoint).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn reader(&self, stream: &Identifier, topic: &Identifier, consumer: &Consumer) -> ReaderBuilder {
        ReaderBuilder::new(self.clone(), stream.clone(), topic.clone(), consumer.clone())
    }

    /// A call of the application with this body, to the metadata primary; returns the payload.
    pub(crate) async fn ask(&self, command: Command, body: &impl Encode) -> Result<bytes::Bytes, IggyError> {
        let call = Call::new(command, FrameBuffer::of(body), self.core().default_deadline());
        execute(self.core(), call).await
    }
}

/// How a client reaches its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The transport.
    pub protocol: &'static str,
    /// The address.
    pub server_address: String,
}

/// Builds a client.
#[derive(Debug, Clone, Default)]
pub struct IggyClientBuilder {
    config: ClientConfig,
    encryptor: Option<Arc<dyn Encryptor>>,
    partitioner: Option<Arc<dyn Partitioner>>,
}

impl IggyClientBuilder {
    /// TCP, the only transport so far.
    #[must_use]
    pub fn with_tcp(self) -> Self {
        self
    }

    /// Everything at once.
    #[must_use]
    pub fn with_config(mut self, config: ClientConfig) -> Self {
        self.config = config;
        self
    }

    /// The node to start from, as `host:port`.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidServerAddress`].
    pub fn with_server_address(mut self, address: &str) -> Result<Self, IggyError> {
        self.config.endpoint = Endpoint::parse(address).ok_or_else(|| {
            let message = format!("'{address}' is no address, expected host:port with IPv6 in brackets");
            IggyError::new(ErrorCode::InvalidServerAddress, message)
        })?;
        Ok(self)
    }

    /// Who signs in on connect.
    #[must_use]
    pub fn with_auto_sign_in(mut self, credentials: iggy_protocol::request::session::Credentials) -> Self {
        self.config.credentials = Some(credentials);
        self
    }

    /// TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsConfig) -> Self {
        self.config.tls = Some(tls);
        self
    }

    /// Whether small frames are sent at once.
    #[must_use]
    pub fn with_no_delay(mut self, nodelay: bool) -> Self {
        self.config.nodelay = nodelay;
        self
    }

    /// Passes over all endpoints before a connect gives up; unlimited when `None`.
    #[must_use]
    pub fn with_reconnection_max_retries(mut self, retries: Option<u32>) -> Self {
        self.config.reconnection.max_retries = retries;
        self
    }

    /// Ceiling of the first pause between passes.
    #[must_use]
    pub fn with_reconnection_interval(mut self, interval: Duration) -> Self {
        self.config.reconnection.interval = interval;
        self
    }

    /// How long a link must hold to start again with the first pause.
    #[must_use]
    pub fn with_reestablish_after(mut self, after: Duration) -> Self {
        self.config.reconnection.reestablish_after = after;
        self
    }

    /// Writes, and bytes of their frames, under way or unresolved at once.
    #[must_use]
    pub fn with_pending_operations(mut self, operations: u32, bytes: u32) -> Self {
        self.config.max_pending_operations = operations.max(1);
        self.config.max_pending_operation_bytes = bytes.max(1);
        self
    }

    /// Deadline of calls that name none.
    #[must_use]
    pub fn with_request_timeout(mut self, timeout: Duration) -> Self {
        self.config.request_timeout = timeout;
        self
    }

    /// Encrypts what is sent and decrypts what is polled.
    #[must_use]
    pub fn with_encryptor(mut self, encryptor: Arc<dyn Encryptor>) -> Self {
        self.encryptor = Some(encryptor);
        self
    }

    /// Chooses the partition of every send; overrides its partitioning.
    #[must_use]
    pub fn with_partitioner(mut self, partitioner: Arc<dyn Partitioner>) -> Self {
        self.partitioner = Some(partitioner);
        self
    }

    /// The client; it connects with [`IggyClient::connect`].
    pub fn build(self) -> IggyClient {
        let core = Arc::new(Core::new(self.config));
        IggyClient {
            handle: Arc::new(Handle {
                core,
                encryptor: self.encryptor,
                partitioner: self.partitioner,
            }),
        }
    }
}
