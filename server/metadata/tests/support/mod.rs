//! A metadata log of one writer: requests are admitted, committed at the next position and applied at once.

// Each test binary uses the part it needs.
#![allow(dead_code, clippy::missing_panics_doc)]

use bytes::Bytes;
use iggy_metadata::{
    Admission, Applied, Change, Event, Metadata, Outcome, Position, Receipt, RequestKey, SessionKey, Settings, UserRef,
    committed_operation,
};
use iggy_protocol::options::Options;
use iggy_protocol::request::group::{CreateConsumerGroup, DeleteConsumerGroup, JoinConsumerGroup, LeaveConsumerGroup};
use iggy_protocol::request::partition::{CreatePartitions, DeletePartitions};
use iggy_protocol::request::stream::CreateStream;
use iggy_protocol::request::system::{Resource, UpdateResource};
use iggy_protocol::request::token::CreatePersonalAccessToken;
use iggy_protocol::request::topic::CreateTopic;
use iggy_protocol::request::user::CreateUser;
use iggy_protocol::secret::Secret;
use iggy_protocol::typed_value::TypedValue;
use iggy_protocol::{Command, Encode, ErrorCode, Identifier, Name, Operation, Permissions};

/// Microseconds between two entries.
pub const TICK: u64 = 1_000;
pub const LOG_ID: u128 = 0xabc;

pub struct World {
    pub metadata: Metadata,
    pub settings: Settings,
    pub events: Vec<Event>,
    clients: u128,
    requests: u64,
}

/// A signed-in session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login {
    pub key: SessionKey,
    pub user_id: u32,
}

pub fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

pub fn named(text: &str) -> Identifier {
    Identifier::named(text).expect("a valid name")
}

pub fn options(entries: &[(&str, TypedValue)]) -> Options {
    entries.iter().map(|(key, value)| (name(key), value.clone())).collect()
}

pub fn text(value: &str) -> TypedValue {
    TypedValue::string(value).expect("a valid text")
}

pub fn position(op: u64) -> Position {
    Position {
        op,
        timestamp: 1_000_000 + op * TICK,
        checksum: u128::from(op) * 7 + 1,
        view: 3,
        replica: 2,
    }
}

impl World {
    /// A log whose first entry made the root user.
    pub fn new() -> Self {
        let mut world = Self {
            metadata: Metadata::new(),
            settings: Settings::default(),
            events: Vec::new(),
            clients: 0,
            requests: 0,
        };
        let bootstrap = Change::Bootstrap {
            log_id: LOG_ID,
            root_username: name("iggy"),
            root_password_hash: "hash:iggy".into(),
        };
        world.commit(RequestKey::INTERNAL, &bootstrap);
        world
    }

    pub fn next_position(&self) -> Position {
        position(self.metadata.applied().op + 1)
    }

    /// Commits a change at the next position, through its encoded form.
    pub fn commit(&mut self, request: RequestKey, change: &Change) -> Applied {
        let change = Change::decode(&change.encode()).expect("an encoded change is read back");
        let applied = self.metadata.apply(self.next_position(), request, &change);
        self.events.clone_from(&applied.events);
        applied
    }

    pub fn root(&mut self) -> Login {
        self.login("iggy").expect("root signs in")
    }

    pub fn secret(client: u128) -> [u8; 32] {
        let mut secret = [7; 32];
        secret[..16].copy_from_slice(&client.to_le_bytes());
        secret
    }

    pub fn register_key(client: u128) -> RequestKey {
        RequestKey {
            client,
            session: 0,
            request: 0,
            request_checksum: client + 1,
            operation: Operation::Register,
            user_id: 0,
        }
    }

    /// Signs a user in, as if its password was right.
    pub fn login(&mut self, username: &str) -> Result<Login, ErrorCode> {
        let user = self.metadata.credentials(username).expect("a known user").user;
        self.clients += 1;
        let client = self.clients;
        let key = Self::register_key(client);
        let change = match self
            .metadata
            .admit_register(&key, user, &Self::secret(client), |_| false)
        {
            Admission::Ready(change) => change,
            Admission::Refused(code) => return Err(code),
            other => panic!("a new registration is ready or refused, not {other:?}"),
        };
        let receipt = self.commit(key, &change).receipt;
        match receipt.outcome {
            Outcome::Registered { user_id } => Ok(Login {
                key: SessionKey {
                    client,
                    session: receipt.at.op,
                },
                user_id,
            }),
            Outcome::Refused(code) => Err(code),
            other => panic!("a registration does not end as {other:?}"),
        }
    }

    pub fn request(&mut self, login: Login) -> RequestKey {
        self.requests += 1;
        RequestKey {
            client: login.key.client,
            session: login.key.session,
            request: self.requests,
            request_checksum: u128::from(self.requests) + 1_000,
            operation: Operation::NonReplicated,
            user_id: login.user_id,
        }
    }

    /// Admits a request and finishes what the node would.
    pub fn admit(&self, request: &RequestKey, command: Command, body: &[u8]) -> Result<Change, ErrorCode> {
        match self.metadata.admit(&self.settings, request, command, body) {
            Admission::Ready(change) => Ok(change),
            Admission::Refused(code) => Err(code),
            Admission::HashPassword(pending) => {
                let hash = hash(&pending.password);
                Ok(pending.finish(hash))
            }
            Admission::VerifyPassword(pending) => {
                if pending.current_hash != hash(&pending.current) {
                    return Err(ErrorCode::InvalidCredentials);
                }
                let new = hash(&pending.new);
                Ok(pending.finish(new))
            }
            Admission::MintToken(pending) => {
                let mut token = [0; 32];
                token[..8].copy_from_slice(&request.request.to_le_bytes());
                Ok(pending.finish(token))
            }
            Admission::ResolveSegments(pending) => {
                let offset = u64::from(pending.segments_count) * 100;
                Ok(pending.finish(offset))
            }
            Admission::Replay(receipt) => panic!("a new request is not replayed: {receipt:?}"),
        }
    }

    /// Runs one metadata write to its committed receipt.
    pub fn receipt(&mut self, login: Login, command: Command, body: &impl Encode) -> Result<Receipt, ErrorCode> {
        let mut request = self.request(login);
        let change = self.admit(&request, command, &body.to_bytes())?;
        request.operation = committed_operation(command, &change);
        Ok(self.commit(request, &change).receipt)
    }

    /// Runs one metadata write to its payload or refusal, committed or not.
    pub fn write(&mut self, login: Login, command: Command, body: &impl Encode) -> Result<Bytes, ErrorCode> {
        match self.receipt(login, command, body)?.outcome {
            Outcome::Done(payload) => Ok(payload),
            Outcome::Refused(code) => Err(code),
            Outcome::TokenCreated | Outcome::Registered { .. } => Ok(Bytes::new()),
        }
    }

    pub fn read(&self, login: Login, command: Command, body: &impl Encode) -> Result<Bytes, ErrorCode> {
        self.metadata
            .query(login.user_id, login.key, command, &body.to_bytes(), &())
    }

    pub fn create_stream(&mut self, login: Login, stream: &str) -> Result<Bytes, ErrorCode> {
        self.write(
            login,
            Command::CreateStream,
            &CreateStream {
                name: name(stream),
                options: Options::new(),
            },
        )
    }

    pub fn create_topic(
        &mut self,
        login: Login,
        stream: &str,
        topic: &str,
        partitions: u32,
    ) -> Result<Bytes, ErrorCode> {
        self.create_topic_with(login, stream, topic, partitions, Options::new())
    }

    pub fn create_topic_with(
        &mut self,
        login: Login,
        stream: &str,
        topic: &str,
        partitions_count: u32,
        options: Options,
    ) -> Result<Bytes, ErrorCode> {
        let request = CreateTopic {
            stream: named(stream),
            partitions_count,
            name: name(topic),
            options,
        };
        self.write(login, Command::CreateTopic, &request)
    }

    pub fn create_partitions(
        &mut self,
        login: Login,
        stream: &str,
        topic: &str,
        count: u32,
    ) -> Result<Bytes, ErrorCode> {
        let request = CreatePartitions {
            stream: named(stream),
            topic: named(topic),
            partitions_count: count,
        };
        self.write(login, Command::CreatePartitions, &request)
    }

    pub fn delete_partitions(
        &mut self,
        login: Login,
        stream: &str,
        topic: &str,
        count: u32,
    ) -> Result<Bytes, ErrorCode> {
        let request = DeletePartitions {
            stream: named(stream),
            topic: named(topic),
            partitions_count: count,
        };
        self.write(login, Command::DeletePartitions, &request)
    }

    pub fn create_group(&mut self, login: Login, stream: &str, topic: &str, group: &str) -> Result<Bytes, ErrorCode> {
        let request = CreateConsumerGroup {
            stream: named(stream),
            topic: named(topic),
            name: name(group),
        };
        self.write(login, Command::CreateConsumerGroup, &request)
    }

    pub fn delete_group(&mut self, login: Login, stream: &str, topic: &str, group: &str) -> Result<Bytes, ErrorCode> {
        let request = DeleteConsumerGroup {
            stream: named(stream),
            topic: named(topic),
            group: named(group),
        };
        self.write(login, Command::DeleteConsumerGroup, &request)
    }

    pub fn join(&mut self, login: Login, stream: &str, topic: &str, group: &str) -> Result<Bytes, ErrorCode> {
        let request = JoinConsumerGroup {
            stream: named(stream),
            topic: named(topic),
            group: named(group),
        };
        self.write(login, Command::JoinConsumerGroup, &request)
    }

    pub fn leave(&mut self, login: Login, stream: &str, topic: &str, group: &str) -> Result<Bytes, ErrorCode> {
        let request = LeaveConsumerGroup {
            stream: named(stream),
            topic: named(topic),
            group: named(group),
        };
        self.write(login, Command::LeaveConsumerGroup, &request)
    }

    pub fn create_user(
        &mut self,
        login: Login,
        username: &str,
        permissions: Option<Permissions>,
    ) -> Result<Bytes, ErrorCode> {
        let request = CreateUser {
            username: name(username),
            password: Secret::from("secret"),
            status: 1,
            permissions,
            options: Options::new(),
        };
        self.write(login, Command::CreateUser, &request)
    }

    pub fn create_token(&mut self, login: Login, token: &str, expiry: u64) -> Result<Bytes, ErrorCode> {
        let request = CreatePersonalAccessToken {
            name: name(token),
            expiry,
        };
        self.write(login, Command::CreatePersonalAccessToken, &request)
    }

    pub fn update(
        &mut self,
        login: Login,
        resource: Resource,
        set: Options,
        reset: &[&str],
    ) -> Result<Bytes, ErrorCode> {
        let reset = reset.iter().map(|key| name(key)).collect();
        self.write(login, Command::UpdateResource, &UpdateResource { resource, reset, set })
    }

    /// The user of a name, fenced.
    pub fn user(&self, username: &str) -> UserRef {
        self.metadata.credentials(username).expect("a known user").user
    }
}

/// What stands for an Argon2id hash here.
pub fn hash(password: &Secret) -> String {
    format!("hash:{}", password.expose())
}
