//! A peer of one or several nodes that follows a script per request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use iggy_protocol::codec::Encode;
use iggy_protocol::reply::group::Assignment;
use iggy_protocol::reply::message::{PartitionRoute, PollHead, SendConfirmation, SendReply};
use iggy_protocol::reply::session::LoginReply;
use iggy_protocol::reply::system::{ClusterMetadata, ClusterNode, NodeRole, NodeStatus};
use iggy_protocol::{
    Command, Committed, ErrorCode, EvictionHeader, EvictionReason, Identifier, Name, Operation, PartitionContext,
    Partitioning, ReplyHeader, RequestHeader, Secret, result_section,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Duration;

use crate::client::IggyClient;
use crate::config::ClientConfig;
use crate::error::IggyError;
use crate::message::IggyMessage;

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
        let (sender, seen) = mpsc::unbounded_channel();
        for node in 0..nodes {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            script.lock().unwrap().ports.push(listener.local_addr().unwrap().port());
            tokio::spawn(accept(listener, node, script.clone(), sender.clone()));
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
        Self { script, seen, client }
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

async fn accept(listener: TcpListener, node: u8, script: Arc<Mutex<Script>>, seen: mpsc::UnboundedSender<Seen>) {
    for connection in 1.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        tokio::spawn(serve(stream, (node, connection), script.clone(), seen.clone()));
    }
}

async fn serve(
    mut stream: TcpStream,
    (node, connection): (u8, u32),
    script: Arc<Mutex<Script>>,
    seen: mpsc::UnboundedSender<Seen>,
) {
    loop {
        let mut frame = vec![0; 256];
        if stream.read_exact(&mut frame).await.is_err() {
            return;
        }
        let header = *RequestHeader::view(&frame).unwrap();
        frame.resize(header.prefix.size.get() as usize, 0);
        stream.read_exact(&mut frame[256..]).await.unwrap();
        let operation = header.validate().unwrap();
        let command = Command::of_header(operation, header.code.get()).unwrap();
        let (step, ports, primary) = {
            let mut script = script.lock().unwrap();
            (script.next(command), script.ports.clone(), script.primary)
        };
        let led = matches!(command, Command::SendMessages | Command::PollMessagesDeferred);
        let step = if led && primary.0 != node {
            Step::Refuse(ErrorCode::NotPrimary)
        } else {
            step
        };
        let _ = seen.send(Seen {
            node,
            connection,
            command,
            frame,
        });
        let reply = match step {
            Step::Serve => answer(&header, command, true, &ports, primary),
            Step::ServeUnproven => answer(&header, command, false, &ports, primary),
            Step::Refuse(code) => ReplyHeader::uncommitted(&header, code.code()).as_array().to_vec(),
            Step::Reject(code) => framed(&header, operation, &result_section::rejection(code), true),
            Step::Flood(size) => framed(&header, operation, &vec![0; size], false),
            Step::Ignore => continue,
            Step::Close => return,
            Step::Evict(reason) => EvictionHeader::new(header.client.get(), reason).as_array().to_vec(),
        };
        if stream.write_all(&reply).await.is_err() {
            return;
        }
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
fn answer(header: &RequestHeader, command: Command, committed: bool, ports: &[u16], primary: (u8, u32)) -> Vec<u8> {
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
            Assignment {
                generation: 1,
                partitions: vec![0],
            }
            .encode(&mut body);
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
