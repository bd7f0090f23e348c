//! A peer of one or several nodes that follows a script per request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use iggy_protocol::codec::{Decode, Encode};
use iggy_protocol::options::Options;
use iggy_protocol::reply::group::{Assignment, ConsumerGroup};
use iggy_protocol::reply::message::{PartitionRoute, PollHead, SendConfirmation, SendReply};
use iggy_protocol::reply::session::LoginReply;
use iggy_protocol::reply::stream::Stream;
use iggy_protocol::reply::system::{ClusterMetadata, ClusterNode, NodeRole, NodeStatus};
use iggy_protocol::reply::topic::Topic;
use iggy_protocol::request::message::{DeferredPoll, FetchMessages};
use iggy_protocol::request::offset::{DeleteConsumerOffset, GetConsumerOffset, StoreConsumerOffset};
use iggy_protocol::{
    Command, Committed, ErrorCode, EvictionHeader, EvictionReason, Identifier, Name, Operation, PartitionContext,
    Partitioning, ReplyHeader, RequestHeader, Secret, result_section,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Duration;

use crate::client::IggyClient;
use crate::config::ClientConfig;
use crate::error::IggyError;
use crate::message::IggyMessage;
use crate::scripted_tests::store::Store;

/// What the peer does with one request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Serves it as a server would.
    Serve,
    /// Answers with a status.
    Refuse(ErrorCode),
    /// Answers with a framed rejection that is committed.
    Reject(ErrorCode),
    /// Serves it without the committed byte.
    ServeUnproven,
    /// Says nothing.
    Ignore,
    /// Closes the connection without an answer.
    Close,
    /// Serves it and closes the connection before the answer.
    Lose,
    /// Evicts.
    Evict(EvictionReason),
    /// Answers with a body of so many bytes.
    Flood(usize),
}

#[derive(Default)]
struct Script {
    /// Ports of the nodes, by replica id.
    ports: Vec<u16>,
    /// The node that leads the partition, and the view it leads in.
    primary: (u8, u32),
    steps: HashMap<Command, Vec<Step>>,
    /// What reads find; without it, nothing is ever there.
    store: Option<Store>,
    /// What a member of a group is assigned.
    assignment: Option<Assignment>,
}

impl Script {
    fn next(&mut self, command: Command) -> Step {
        match self.steps.get_mut(&command) {
            Some(steps) if !steps.is_empty() => steps.remove(0),
            _ => Step::Serve,
        }
    }
}

/// A request the peer saw.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub node: u8,
    pub connection: u32,
    pub command: Command,
    pub frame: Vec<u8>,
}

impl Seen {
    pub fn header(&self) -> &RequestHeader {
        RequestHeader::view(&self.frame).unwrap()
    }
}

pub struct Peer {
    script: Arc<Mutex<Script>>,
    /// Tells parked reads that there is something new.
    changed: watch::Sender<()>,
    seen: mpsc::UnboundedReceiver<Seen>,
    pub client: IggyClient,
}

impl Peer {
    /// One node.
    pub async fn start(timeout: Duration) -> Self {
        Self::start_cluster(1, timeout, Duration::from_hours(1)).await
    }

    /// Nodes with replica ids from 0; node 0 leads the metadata, and partitions until [`Self::lead`] says otherwise.
    pub async fn start_cluster(nodes: u8, timeout: Duration, heartbeat_interval: Duration) -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let changed = watch::Sender::new(());
        let (sender, seen) = mpsc::unbounded_channel();
        for node in 0..nodes {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            script.lock().unwrap().ports.push(listener.local_addr().unwrap().port());
            let changes = changed.subscribe();
            tokio::spawn(accept(listener, node, (script.clone(), changes), sender.clone()));
        }
        let address = format!("127.0.0.1:{}", script.lock().unwrap().ports[0]);
        let credentials = iggy_protocol::request::session::Credentials::Password {
            username: Name::new("iggy").unwrap(),
            password: Secret::new("iggy"),
        };
        let client = IggyClient::builder()
            .with_config(ClientConfig {
                heartbeat_interval,
                ..ClientConfig::default()
            })
            .with_server_address(&address)
            .unwrap()
            .with_auto_sign_in(credentials)
            .with_request_timeout(timeout)
            .build();
        Self {
            script,
            changed,
            seen,
            client,
        }
    }

    /// Changes, or looks at, what the peer stores.
    pub fn store<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let changed = change(self.script.lock().unwrap().store.get_or_insert_default());
        self.changed.send_replace(());
        changed
    }

    /// What a member of a group is assigned from now on.
    pub fn assign(&self, generation: u64, partitions: &[u32]) {
        let partitions = partitions.to_vec();
        self.script.lock().unwrap().assignment = Some(Assignment { generation, partitions });
    }

    /// From now on this node leads the partition, in this view.
    pub fn lead(&self, node: u8, view: u32) {
        self.script.lock().unwrap().primary = (node, view);
    }

    /// Connected, with the first heartbeat behind it.
    pub async fn connected(timeout: Duration) -> Self {
        let mut peer = Self::start(timeout).await;
        peer.client.connect().await.unwrap();
        peer.until(Command::Ping).await;
        peer
    }

    pub fn script(&self, command: Command, steps: impl IntoIterator<Item = Step>) {
        self.script
            .lock()
            .unwrap()
            .steps
            .insert(command, steps.into_iter().collect());
    }

    /// The next request of this command; others before it are skipped.
    pub async fn until(&mut self, command: Command) -> Seen {
        let next = async {
            loop {
                let seen = self.seen.recv().await.expect("the peer is alive");
                if seen.command == command {
                    return seen;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), next)
            .await
            .unwrap_or_else(|_| panic!("no {command} came"))
    }

    /// A request that came already.
    pub fn seen_so_far(&mut self) -> Option<Seen> {
        self.seen.try_recv().ok()
    }

    pub async fn send(&self) -> Result<Vec<SendConfirmation>, IggyError> {
        let message = IggyMessage::new("payload").unwrap();
        self.client
            .send_messages(&id(1), &id(2), &Partitioning::partition_id(0), &[message])
            .await
    }
}

pub fn id(number: u32) -> Identifier {
    Identifier::numeric(number)
}

type Shared = (Arc<Mutex<Script>>, watch::Receiver<()>);

async fn accept(listener: TcpListener, node: u8, shared: Shared, seen: mpsc::UnboundedSender<Seen>) {
    for connection in 1.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        tokio::spawn(serve(stream, (node, connection), shared.clone(), seen.clone()));
    }
}

/// Passes on the frames of a connection.
async fn read_frames(mut stream: OwnedReadHalf, frames: mpsc::UnboundedSender<Vec<u8>>) {
    loop {
        let mut frame = vec![0; 256];
        if stream.read_exact(&mut frame).await.is_err() {
            return;
        }
        let size = RequestHeader::view(&frame).unwrap().prefix.size.get();
        frame.resize(size as usize, 0);
        if stream.read_exact(&mut frame[256..]).await.is_err() || frames.send(frame).is_err() {
            return;
        }
    }
}

/// A read that waits for messages.
struct Parked {
    header: RequestHeader,
    command: Command,
    body: Vec<u8>,
}

impl Parked {
    fn commits(&self) -> bool {
        match self.command {
            Command::FetchMessages => FetchMessages::from_bytes(&self.body).unwrap().auto_commit,
            _ => DeferredPoll::from_bytes(&self.body).unwrap().poll.auto_commit,
        }
    }

    /// The answer, if it need not wait any more.
    fn answer(&self, store: &mut Store, over: bool) -> Option<Vec<u8>> {
        let body = match self.command {
            Command::FetchMessages => store.fetch(&FetchMessages::from_bytes(&self.body).unwrap(), over)?,
            _ => store.poll(&DeferredPoll::from_bytes(&self.body).unwrap(), over)?,
        };
        Some(framed(&self.header, Operation::NonReplicated, &body, false))
    }
}

async fn serve(
    stream: TcpStream,
    (node, connection): (u8, u32),
    (script, mut changes): Shared,
    seen: mpsc::UnboundedSender<Seen>,
) {
    let (reader, mut writer) = stream.into_split();
    let (sender, mut frames) = mpsc::unbounded_channel();
    let reading = tokio::spawn(read_frames(reader, sender));
    let _ended = AbortOnDrop(reading);
    let mut parked: Vec<Parked> = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            Ok(()) = changes.changed() => {
                let replies: Vec<Vec<u8>> = {
                    let mut script = script.lock().unwrap();
                    let store = script.store.get_or_insert_default();
                    let mut replies = Vec::new();
                    parked.retain(|read| read.answer(store, false).map(|reply| replies.push(reply)).is_none());
                    replies
                };
                for reply in replies {
                    if writer.write_all(&reply).await.is_err() {
                        return;
                    }
                }
                continue;
            }
        };
        let Some(frame) = frame else { return };
        let header = *RequestHeader::view(&frame).unwrap();
        let operation = header.validate().unwrap();
        let command = Command::of_header(operation, header.code.get()).unwrap();
        let body = frame[256..].to_vec();
        let seen_frame = Seen {
            node,
            connection,
            command,
            frame,
        };
        let _ = seen.send(seen_frame);
        match react(&script, node, &header, command, &body, &mut parked) {
            Reaction::Reply(reply) => {
                if writer.write_all(&reply).await.is_err() {
                    return;
                }
            }
            Reaction::Silence => {}
            Reaction::Close => return,
        }
    }
}

enum Reaction {
    Reply(Vec<u8>),
    Silence,
    Close,
}

/// Does what the script says about a request.
fn react(
    script: &Mutex<Script>,
    node: u8,
    header: &RequestHeader,
    command: Command,
    body: &[u8],
    parked: &mut Vec<Parked>,
) -> Reaction {
    let mut script = script.lock().unwrap();
    let led = matches!(
        command,
        Command::SendMessages | Command::PollMessagesDeferred | Command::FetchMessages
    );
    let mut step = script.next(command);
    if led && script.primary.0 != node {
        step = Step::Refuse(ErrorCode::NotPrimary);
    }
    let operation = command.operation();
    Reaction::Reply(match step {
        Step::Serve | Step::ServeUnproven | Step::Lose => {
            let committed = !matches!(step, Step::ServeUnproven);
            let stored = stored_answer(&mut script, header, command, body, parked);
            match (step, stored) {
                (Step::Lose, _) => return Reaction::Close,
                (_, Stored::Answer(reply)) => reply,
                (_, Stored::Silence) => return Reaction::Silence,
                (_, Stored::Elsewhere) => answer(header, command, committed, &script),
            }
        }
        Step::Refuse(code) => ReplyHeader::uncommitted(header, code.code()).as_array().to_vec(),
        Step::Reject(code) => framed(header, operation, &result_section::rejection(code), true),
        Step::Flood(size) => framed(header, operation, &vec![0; size], false),
        Step::Ignore => return Reaction::Silence,
        Step::Close => return Reaction::Close,
        Step::Evict(reason) => EvictionHeader::new(header.client.get(), reason).as_array().to_vec(),
    })
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a store has to say about a request.
enum Stored {
    Answer(Vec<u8>),
    /// Nothing for now, or for ever.
    Silence,
    /// It is none of its business.
    Elsewhere,
}

fn stored_answer(
    script: &mut Script,
    header: &RequestHeader,
    command: Command,
    body: &[u8],
    parked: &mut Vec<Parked>,
) -> Stored {
    let Some(store) = script.store.as_mut() else {
        return Stored::Elsewhere;
    };
    let answer = |reply: Option<Vec<u8>>| reply.map_or(Stored::Silence, Stored::Answer);
    match command {
        Command::FetchMessages | Command::PollMessagesDeferred => {
            let read = Parked {
                header: *header,
                command,
                body: body.to_vec(),
            };
            let reply = read.answer(store, false);
            if reply.is_none() {
                parked.push(read);
            }
            answer(reply)
        }
        Command::CancelDeferred => {
            let index = parked.iter().position(|read| read.header.request == header.request);
            let read = index.map(|index| parked.remove(index)).filter(Parked::commits);
            answer(read.and_then(|read| read.answer(store, true)))
        }
        Command::GetConsumerOffset => {
            let get = GetConsumerOffset::from_bytes(body).unwrap();
            let body = store.get(get.partition_id.unwrap());
            Stored::Answer(framed(header, Operation::NonReplicated, &body, false))
        }
        Command::StoreConsumerOffset => {
            let asked = StoreConsumerOffset::from_bytes(body).unwrap();
            store.store(asked.partition_id.unwrap(), Some(asked.offset));
            Stored::Elsewhere
        }
        Command::DeleteConsumerOffset => {
            let asked = DeleteConsumerOffset::from_bytes(body).unwrap();
            store.store(asked.partition_id.unwrap(), None);
            Stored::Elsewhere
        }
        _ => Stored::Elsewhere,
    }
}

fn framed(header: &RequestHeader, operation: Operation, body: &[u8], committed: bool) -> Vec<u8> {
    let reply = if committed {
        ReplyHeader::committed(&Committed {
            cluster: 0,
            view: 0,
            replica: 0,
            request_checksum: header.request_checksum.get(),
            client: header.client.get(),
            op: 50,
            timestamp: 1,
            request: header.request.get(),
            operation,
            partition_incarnation: header.partition_incarnation.get(),
        })
    } else {
        ReplyHeader::uncommitted(header, 0)
    };
    let mut frame = reply.with_body_len(body.len()).as_array().to_vec();
    frame.extend_from_slice(body);
    frame
}

/// What a server with one stream and one topic of one partition says.
fn answer(header: &RequestHeader, command: Command, committed: bool, script: &Script) -> Vec<u8> {
    let (ports, primary) = (&script.ports, script.primary);
    let mut body = BytesMut::new();
    let operation = command.operation();
    match command {
        Command::Login | Command::BindSession => {
            if command == Command::Login {
                result_section::put_success(&mut body);
            }
            let session = if command == Command::Login {
                77
            } else {
                header.session.get()
            };
            let server_version = Name::new("1.0.0").unwrap();
            LoginReply {
                user_id: 0,
                session,
                server_protocol_version: 12290,
                server_version,
            }
            .encode(&mut body);
        }
        Command::GetClusterMetadata => {
            let node = |(id, port): (usize, &u16)| ClusterNode {
                replica_id: id as u8,
                name: format!("node-{id}"),
                ip: "127.0.0.1".to_owned(),
                tcp: *port,
                quic: 0,
                http: 0,
                websocket: 0,
                role: if id == 0 { NodeRole::Leader } else { NodeRole::Follower },
                status: NodeStatus::Healthy,
            };
            let nodes = ports.iter().enumerate().map(node).collect();
            ClusterMetadata {
                name: "test".to_owned(),
                nodes,
            }
            .encode(&mut body);
        }
        Command::GetPartitionRoute => {
            PartitionRoute {
                incarnation: 7,
                metadata_op: 80,
                view: primary.1,
                partitions_count: 1,
                primary_replica: primary.0,
            }
            .encode(&mut body);
        }
        Command::SendMessages => {
            let confirmation = SendConfirmation {
                stream_id: 1,
                topic_id: 2,
                partition_id: 0,
                base_offset: 5,
            };
            SendReply {
                confirmations: vec![confirmation],
            }
            .encode(&mut body);
        }
        Command::SyncConsumerGroup => {
            let assignment = script.assignment.clone().unwrap_or(Assignment {
                generation: 1,
                partitions: vec![0],
            });
            assignment.encode(&mut body);
        }
        Command::PollMessagesDeferred => {
            let context = PartitionContext::from_route(7, 80);
            PollHead {
                partition_id: 0,
                current_offset: 0,
                messages_count: 0,
                context,
            }
            .encode(&mut body);
        }
        Command::GetStream | Command::GetTopic | Command::GetConsumerGroup => describe(command, &mut body),
        _ if operation.is_result_framed() => result_section::put_success(&mut body),
        _ => {}
    }
    framed(
        header,
        operation,
        &body,
        committed && operation != Operation::NonReplicated,
    )
}

/// The stream, the topic and the group there are.
fn describe(command: Command, body: &mut BytesMut) {
    let name = Name::new("thing").unwrap();
    let (options, derived_options) = (Options::default(), Options::default());
    match command {
        Command::GetStream => Stream {
            id: 1,
            created_at: 1,
            topics_count: 0,
            size_bytes: 0,
            messages_count: 0,
            name,
            options,
            derived_options,
        }
        .encode(body),
        Command::GetTopic => Topic {
            id: 2,
            created_at: 1,
            partitions_count: 0,
            size_bytes: 0,
            messages_count: 0,
            name,
            options,
            derived_options,
        }
        .encode(body),
        _ => ConsumerGroup {
            id: 3,
            partitions_count: 1,
            members_count: 0,
            name,
        }
        .encode(body),
    }
}
