//! What the steps of one scenario share.

use std::collections::BTreeMap;
use std::time::Duration;

use cucumber::World;
use iggy::prelude::*;
use iggy_testkit::{MemberProcess, TestServer};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

use crate::values::Sent;

/// Against hanging only: nothing here is expected to take a tenth of it.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// The node all scenarios talk to.
pub struct Node;

static NODE: Mutex<Option<TestServer>> = Mutex::const_new(None);

impl Node {
    pub async fn start() {
        *NODE.lock().await = Some(TestServer::start().await.unwrap());
    }

    pub async fn stop() {
        if let Some(mut server) = NODE.lock().await.take() {
            server.stop().await.unwrap();
        }
    }

    pub async fn server() -> MappedServer {
        MutexGuard::map(NODE.lock().await, |server| server.as_mut().expect("a node"))
    }

    pub async fn connection_string(credentials: &str) -> String {
        format!("iggy://{credentials}@{}", Self::server().await.tcp_address())
    }
}

pub type MappedServer = tokio::sync::MappedMutexGuard<'static, TestServer>;

/// A poll that was made: what it asked for and what it brought.
#[derive(Debug)]
pub struct Polled {
    pub partition: u32,
    pub reply: PolledMessages,
}

/// A message received by a reader, a consumer or a member.
#[derive(Debug, Clone)]
pub struct Received {
    pub partition: u32,
    pub offset: u64,
    pub payload: Vec<u8>,
}

#[derive(Debug, World)]
#[world(init = Self::new)]
pub struct BddWorld {
    /// The client of the scenario, signed in as root.
    client: Option<IggyClient>,
    /// Clients of other users and members, by name.
    pub clients: BTreeMap<String, IggyClient>,
    pub stream: String,
    pub topic: String,
    pub group: String,
    /// What was sent to each partition, in order: its place is its offset.
    pub sent: BTreeMap<u32, Vec<Sent>>,
    pub polled: Option<Polled>,
    pub confirmation: Option<SendConfirmation>,
    pub waiting: Option<(u32, JoinHandle<Result<PolledMessages, IggyError>>)>,
    pub sending: Option<JoinHandle<Result<Vec<SendConfirmation>, IggyError>>>,
    pub noted_time: u64,
    pub noted_changes: Option<ChangesStart>,
    pub producer: Option<IggyProducer>,
    pub reader: Option<PartitionReader>,
    pub read: Vec<Received>,
    pub checkpoints: Vec<Checkpoint>,
    pub reported: Vec<(Option<u32>, IggyError)>,
    pub consumers: BTreeMap<String, crate::steps::consumers::Receiver>,
    pub member: Option<MemberProcess>,
    pub tokens: BTreeMap<String, Secret>,
    pub answer: Vec<u8>,
    /// Of the last request. A scenario must look at it.
    error: Option<IggyError>,
}

impl BddWorld {
    async fn new() -> Self {
        Self::clean().await;
        Self {
            client: None,
            clients: BTreeMap::new(),
            stream: String::new(),
            topic: String::new(),
            group: String::new(),
            sent: BTreeMap::new(),
            polled: None,
            confirmation: None,
            waiting: None,
            sending: None,
            noted_time: 0,
            noted_changes: None,
            producer: None,
            reader: None,
            read: Vec::new(),
            checkpoints: Vec::new(),
            reported: Vec::new(),
            consumers: BTreeMap::new(),
            member: None,
            tokens: BTreeMap::new(),
            answer: Vec::new(),
            error: None,
        }
    }

    /// Removes what the scenario before left at the node.
    async fn clean() {
        let client = Self::connect("iggy:iggy").await.unwrap();
        for stream in client.get_streams().await.unwrap() {
            client.delete_stream(&Identifier::numeric(stream.id)).await.unwrap();
        }
        for user in client.get_users().await.unwrap() {
            if user.username.as_str() != "iggy" {
                client.delete_user(&Identifier::numeric(user.id)).await.unwrap();
            }
        }
        for token in client.get_personal_access_tokens().await.unwrap() {
            client.delete_personal_access_token(token.name.as_str()).await.unwrap();
        }
        client.shutdown().await.unwrap();
    }

    pub async fn connect(credentials: &str) -> Result<IggyClient, IggyError> {
        let client = IggyClient::from_connection_string(&Node::connection_string(credentials).await)?;
        client.connect().await?;
        Ok(client)
    }

    /// Signs the client of the scenario in.
    pub async fn sign_in(&mut self) {
        self.client = Some(Self::connect("iggy:iggy").await.unwrap());
    }

    pub fn client(&self) -> IggyClient {
        self.client.clone().expect("a signed-in client")
    }

    pub fn client_of(&self, name: &str) -> IggyClient {
        self.clients
            .get(name)
            .cloned()
            .unwrap_or_else(|| panic!("no client of {name}"))
    }

    pub fn stream_id(&self) -> Identifier {
        Identifier::named(&self.stream).unwrap()
    }

    pub fn topic_id(&self) -> Identifier {
        Identifier::named(&self.topic).unwrap()
    }

    /// Keeps how a request ended. The next step that cares says whether that was right.
    pub fn keep<T>(&mut self, result: Result<T, IggyError>) -> Option<T> {
        self.expect_no_error();
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    /// The error of the last request; it counts as looked at.
    pub fn take_error(&mut self) -> Option<IggyError> {
        self.error.take()
    }

    pub fn expect_no_error(&self) {
        if let Some(error) = &self.error {
            panic!("an earlier request failed: {error}");
        }
    }

    /// Ends the scenario: nothing may be left that failed and was not looked at.
    pub async fn finish(&mut self) {
        if let Some((_, waiting)) = self.waiting.take() {
            waiting.abort();
        }
        for (_, receiver) in std::mem::take(&mut self.consumers) {
            receiver.close().await;
        }
        if let Some(mut reader) = self.reader.take() {
            let _ = reader.close().await;
        }
        if let Some(producer) = self.producer.take() {
            let _ = producer.shutdown().await;
        }
        for client in std::mem::take(&mut self.clients)
            .into_values()
            .chain(self.client.take())
        {
            let _ = client.shutdown().await;
        }
        self.expect_no_error();
    }
}
