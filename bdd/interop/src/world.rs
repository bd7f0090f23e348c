//! A server with published clients connected to it, and short names for what tests say often.

use std::fmt::Debug;
use std::time::Duration;

use iggy::prelude::*;
use iggy_testkit::{TestServer, TestServerBuilder};
use tokio::time::timeout;

/// Longest time that one step of a test may take. A step that takes as long has failed: every call of the published
/// client ends within 30 s by itself.
const STEP_DEADLINE: Duration = Duration::from_mins(1);

/// A running server with the root user signed in.
pub struct World {
    /// The server.
    pub server: TestServer,
    /// The root user's client, connected by connection string.
    pub client: IggyClient,
    /// Name of the stream that [`World::with_topic`] made.
    pub stream: Identifier,
    /// Name of the topic that [`World::with_topic`] made.
    pub topic: Identifier,
}

impl World {
    /// A server with defaults and no streams.
    pub async fn start() -> Self {
        Self::start_with(TestServer::builder()).await
    }

    /// A server of `builder` and no streams.
    pub async fn start_with(builder: TestServerBuilder) -> Self {
        let server = builder.start().await.expect("the server starts");
        let client = connect(&server.connection_string())
            .await
            .expect("the root user signs in");
        Self {
            server,
            client,
            stream: named("orders"),
            topic: named("created"),
        }
    }

    /// A server with the stream `orders` and in it the topic `created`.
    pub async fn with_topic(partitions: u32) -> Self {
        let world = Self::start().await;
        world.create_topic(&topic_with(partitions)).await;
        world
    }

    /// Creates the stream `orders` and in it the topic `created`.
    pub async fn create_topic(&self, options: &TopicCreateOptions) {
        self.client
            .create_stream("orders", &StreamCreateOptions::default())
            .await
            .expect("the stream is created");
        self.client
            .create_topic(&self.stream, "created", options)
            .await
            .expect("the topic is created");
    }

    /// Another client of the root user.
    pub async fn another_client(&self) -> IggyClient {
        connect(&self.server.connection_string())
            .await
            .expect("the root user signs in")
    }

    /// A client of some user, signed in.
    pub async fn client_of(&self, username: &str, password: &str) -> Result<IggyClient, IggyError> {
        connect(&format!("iggy://{username}:{password}@{}", self.server.tcp_address())).await
    }

    /// A client signed in by a personal access token.
    pub async fn client_by_token(&self, token: &str) -> Result<IggyClient, IggyError> {
        connect(&format!("iggy://{token}@{}", self.server.tcp_address())).await
    }

    /// A client that is connected and not signed in.
    pub async fn anonymous_client(&self) -> IggyClient {
        let client = IggyClient::builder()
            .with_tcp()
            .with_server_address(self.server.tcp_address().to_string())
            .build()
            .expect("the client is built");
        client.connect().await.expect("the client connects");
        client
    }

    /// Sends texts to one partition of the topic and returns the base offset that the server confirmed.
    pub async fn send(&self, partition: u32, payloads: &[&str]) -> u64 {
        let partitioning = Partitioning::partition_id(partition);
        let sent = self
            .client
            .send_messages(&self.stream, &self.topic, &partitioning, &mut texts(payloads))
            .await
            .expect("the messages are sent");
        let confirmation = sent
            .confirmations
            .first()
            .expect("the send is confirmed with its offset");
        assert_eq!(confirmation.partition_id, partition);
        confirmation.base_offset
    }

    /// Polls one partition of the topic at once.
    pub async fn poll(
        &self,
        partition: u32,
        consumer: &Consumer,
        strategy: &PollingStrategy,
        count: u32,
    ) -> Result<PolledMessages, IggyError> {
        let options = PollOptions {
            count,
            ..PollOptions::default()
        };
        self.client
            .poll_messages(&self.stream, &self.topic, partition, consumer, strategy, options)
            .await
    }

    /// Everything that one partition of the topic holds, as text.
    pub async fn everything(&self, partition: u32) -> Vec<String> {
        let polled = self
            .poll(partition, &consumer("everything"), &PollingStrategy::first(), 1000)
            .await
            .expect("the partition is polled");
        payloads(&polled)
    }
}

async fn connect(connection_string: &str) -> Result<IggyClient, IggyError> {
    let client = IggyClient::from_connection_string(connection_string)?;
    soon(client.connect()).await?;
    Ok(client)
}

/// Waits for `step`, and fails the test when it does not end.
pub async fn soon<F: Future>(step: F) -> F::Output {
    timeout(STEP_DEADLINE, step)
        .await
        .expect("the step ends within its deadline")
}

/// The wire code of the error that `result` must be.
#[track_caller]
pub fn code_of<T: Debug>(result: Result<T, IggyError>) -> u32 {
    result.expect_err("the server refuses").as_code()
}

/// An identifier by name.
pub fn named(name: &str) -> Identifier {
    Identifier::named(name).expect("the name is valid")
}

/// An identifier by number.
pub fn number(value: u32) -> Identifier {
    Identifier::numeric(value).expect("the number is valid")
}

/// A plain consumer by name.
pub fn consumer(name: &str) -> Consumer {
    Consumer::new(named(name))
}

/// A consumer group by name.
pub fn group(name: &str) -> Consumer {
    Consumer::group(named(name))
}

/// Options of a topic with default settings.
pub fn topic_with(partitions: u32) -> TopicCreateOptions {
    TopicCreateOptions {
        partitions_count: Some(partitions),
        ..TopicCreateOptions::default()
    }
}

/// Options of a topic whose writes are acknowledged from stable storage.
pub fn persisted_topic(partitions: u32) -> TopicCreateOptions {
    TopicCreateOptions {
        durability: Durability::Persisted,
        consumer_offset_durability: Durability::Persisted,
        ..topic_with(partitions)
    }
}

/// Messages with these texts as payload.
pub fn texts(payloads: &[&str]) -> Vec<IggyMessage> {
    payloads.iter().map(|text| IggyMessage::from(*text)).collect()
}

/// The payloads of a poll as text.
pub fn payloads(polled: &PolledMessages) -> Vec<String> {
    assert_eq!(polled.count as usize, polled.messages.len());
    polled
        .messages
        .iter()
        .map(|message| message.payload_as_string().expect("the payload is text"))
        .collect()
}
