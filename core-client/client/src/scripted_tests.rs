//! What the client does when the server misbehaves, against a peer that follows a script per request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use iggy_protocol::codec::Encode;
use iggy_protocol::reply::message::{PartitionRoute, PollHead, SendConfirmation, SendReply};
use iggy_protocol::reply::session::LoginReply;
use iggy_protocol::reply::system::{ClusterMetadata, ClusterNode, NodeRole, NodeStatus};
use iggy_protocol::{
    Command, Committed, Consumer, ErrorCode, EvictionHeader, EvictionReason, Identifier, IggyDuration, Name, Operation,
    PartitionContext, Partitioning, PollingStrategy, ReplyHeader, RequestHeader, Secret, result_section,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Duration;

use crate::client::IggyClient;
use crate::config::ClientConfig;
use crate::error::{ErrorClass, IggyError, Outcome};
use crate::lanes::Resolution;
use crate::message::IggyMessage;
use crate::poll::{CommitPolicy, PollOptions};
use crate::resource_options::StreamCreateOptions;

/// What the peer does with one request.
#[derive(Debug, Clone)]
enum Step {
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
struct Seen {
    connection: u32,
    command: Command,
    frame: Vec<u8>,
}

impl Seen {
    fn header(&self) -> &RequestHeader {
        RequestHeader::view(&self.frame).unwrap()
    }
}

struct Peer {
    script: Arc<Mutex<Script>>,
    seen: mpsc::UnboundedReceiver<Seen>,
    client: IggyClient,
}

impl Peer {
    async fn start(timeout: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let script = Arc::new(Mutex::new(Script::default()));
        let (sender, seen) = mpsc::unbounded_channel();
        tokio::spawn({
            let script = script.clone();
            async move {
                for connection in 1.. {
                    let Ok((stream, _)) = listener.accept().await else {
                        return;
                    };
                    tokio::spawn(serve(stream, connection, script.clone(), sender.clone()));
                }
            }
        });
        let credentials = iggy_protocol::request::session::Credentials::Password {
            username: Name::new("iggy").unwrap(),
            password: Secret::new("iggy"),
        };
        let client = IggyClient::builder()
            .with_config(ClientConfig {
                heartbeat_interval: Duration::from_hours(1),
                ..ClientConfig::default()
            })
            .with_server_address(&address)
            .unwrap()
            .with_auto_sign_in(credentials)
            .with_request_timeout(timeout)
            .build();
        Self { script, seen, client }
    }

    /// Connected, with the first heartbeat behind it.
    async fn connected(timeout: Duration) -> Self {
        let mut peer = Self::start(timeout).await;
        peer.client.connect().await.unwrap();
        peer.until(Command::Ping).await;
        peer
    }

    fn script(&self, command: Command, steps: impl IntoIterator<Item = Step>) {
        self.script
            .lock()
            .unwrap()
            .steps
            .insert(command, steps.into_iter().collect());
    }

    /// The next request of this command; others before it are skipped.
    async fn until(&mut self, command: Command) -> Seen {
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

    async fn send(&self) -> Result<Vec<SendConfirmation>, IggyError> {
        let message = IggyMessage::new("payload").unwrap();
        self.client
            .send_messages(&id(1), &id(2), &Partitioning::partition_id(0), &[message])
            .await
    }
}

fn id(number: u32) -> Identifier {
    Identifier::numeric(number)
}

async fn serve(mut stream: TcpStream, connection: u32, script: Arc<Mutex<Script>>, seen: mpsc::UnboundedSender<Seen>) {
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
        let step = script.lock().unwrap().next(command);
        let _ = seen.send(Seen {
            connection,
            command,
            frame,
        });
        let reply = match step {
            Step::Serve => answer(&header, command, true),
            Step::ServeUnproven => answer(&header, command, false),
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

/// What a server with one node, one stream and one topic of one partition says.
fn answer(header: &RequestHeader, command: Command, committed: bool) -> Vec<u8> {
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
            let node = ClusterNode {
                replica_id: 0,
                name: "one".to_owned(),
                ip: "127.0.0.1".to_owned(),
                tcp: 1,
                quic: 0,
                http: 0,
                websocket: 0,
                role: NodeRole::Leader,
                status: NodeStatus::Healthy,
            };
            ClusterMetadata {
                name: "test".to_owned(),
                nodes: vec![node],
            }
            .encode(&mut body);
        }
        Command::GetPartitionRoute => {
            PartitionRoute {
                incarnation: 7,
                metadata_op: 80,
                view: 0,
                partitions_count: 1,
                primary_replica: 0,
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

const LONG: Duration = Duration::from_secs(30);
/// A deadline that is meant to pass.
const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn given_a_lost_reply_when_sending_should_bind_again_and_send_the_identical_frame() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::SendMessages, [Step::Close]);
    let confirmations = peer.send().await.unwrap();
    assert_eq!(confirmations[0].base_offset, 5);
    let first = peer.until(Command::SendMessages).await;
    let bind = peer.until(Command::BindSession).await;
    assert_eq!((bind.connection, bind.header().session.get()), (2, 77));
    let again = peer.until(Command::SendMessages).await;
    assert_eq!(again.frame, first.frame, "a frame that may have been applied is frozen");
    assert_eq!(again.connection, 2);
}

#[tokio::test]
async fn given_success_without_proof_after_a_lost_reply_when_sending_should_ask_until_it_is_proven() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(
        Command::SendMessages,
        [
            Step::Close,
            Step::ServeUnproven,
            Step::Refuse(ErrorCode::TransientNotCommitted),
        ],
    );
    peer.send().await.unwrap();
    let first = peer.until(Command::SendMessages).await;
    for _ in 0..3 {
        assert_eq!(peer.until(Command::SendMessages).await.frame, first.frame);
    }
}

#[tokio::test]
async fn given_no_answer_when_the_deadline_passes_should_hold_the_lane_until_resolved() {
    let mut peer = Peer::connected(SHORT).await;
    peer.script(Command::SendMessages, [Step::Ignore]);
    let error = peer.send().await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::OperationUncertain, Outcome::Unknown)
    );
    assert!(!error.retryable());
    let operation = error.operation().unwrap();
    assert_eq!(peer.client.uncertain_operations(), [operation]);
    let blocked = peer.send().await.unwrap_err();
    assert_eq!(
        (blocked.code(), blocked.operation()),
        (ErrorCode::LaneBlocked, Some(operation))
    );
    let first = peer.until(Command::SendMessages).await;

    assert_eq!(
        peer.client.resolve_operation(operation, LONG).await.unwrap(),
        Resolution::Applied
    );
    assert_eq!(peer.until(Command::SendMessages).await.frame, first.frame);
    assert_eq!(
        peer.client.resolve_operation(operation, LONG).await.unwrap(),
        Resolution::Applied,
        "remembered"
    );
    peer.send().await.unwrap();
}

#[tokio::test]
async fn given_an_uncertain_write_when_abandoned_should_free_its_lane() {
    let peer = Peer::connected(SHORT).await;
    peer.script(Command::CreateStream, [Step::Ignore]);
    let options = StreamCreateOptions::default();
    let error = peer.client.create_stream("a", &options).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Uncertain);
    peer.client.abandon_operation(error.operation().unwrap()).unwrap();
    let gone = peer
        .client
        .resolve_operation(error.operation().unwrap(), LONG)
        .await
        .unwrap_err();
    assert_eq!(gone.code(), ErrorCode::OperationNotRetained);
    peer.client.delete_stream(&id(1)).await.unwrap();
}

#[tokio::test]
async fn given_a_replaced_session_when_a_write_was_sent_should_end_unknown_and_block_nothing() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::SendMessages, [Step::Close]);
    peer.script(Command::BindSession, [Step::Refuse(ErrorCode::Unauthenticated)]);
    let error = peer.send().await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::OperationUncertain, Outcome::Unknown)
    );
    peer.send().await.unwrap();
    let first = peer.until(Command::SendMessages).await;
    let login = peer.until(Command::Login).await;
    assert_eq!(
        login.connection, 2,
        "the login goes over the connection whose bind was refused"
    );
    let second = peer.until(Command::SendMessages).await;
    assert_ne!(second.header().client, first.header().client);
    assert!(
        second.header().request.get() > first.header().request.get(),
        "numbers go on"
    );
}

#[tokio::test]
async fn given_a_busy_lifecycle_when_writing_should_begin_anew_under_a_new_number() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::DeleteStream, [Step::Refuse(ErrorCode::LifecycleBusy)]);
    peer.client.delete_stream(&id(1)).await.unwrap();
    let (first, second) = (
        peer.until(Command::DeleteStream).await,
        peer.until(Command::DeleteStream).await,
    );
    assert!(second.header().request.get() > first.header().request.get());
    assert_ne!(second.header().request_checksum, first.header().request_checksum);
}

#[tokio::test]
async fn given_a_transient_refusal_when_writing_should_send_the_identical_frame() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(
        Command::DeleteStream,
        [
            Step::Refuse(ErrorCode::TransientNotAccepted),
            Step::Reject(ErrorCode::StreamIdNotFound),
        ],
    );
    let error = peer.client.delete_stream(&id(1)).await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::StreamIdNotFound, Outcome::NotApplied)
    );
    let first = peer.until(Command::DeleteStream).await;
    assert_eq!(peer.until(Command::DeleteStream).await.frame, first.frame);
}

#[tokio::test]
async fn given_a_history_that_ended_when_sending_without_a_position_should_restart_once() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(
        Command::SendMessages,
        [
            Step::Refuse(ErrorCode::HistoryUnavailable),
            Step::Refuse(ErrorCode::HistoryUnavailable),
        ],
    );
    let error = peer.send().await.unwrap_err();
    assert_eq!(
        (error.code(), error.class()),
        (ErrorCode::HistoryUnavailable, ErrorClass::Stale)
    );
    let (first, second) = (
        peer.until(Command::SendMessages).await,
        peer.until(Command::SendMessages).await,
    );
    assert!(second.header().request.get() > first.header().request.get());
    peer.send().await.unwrap();
}

#[tokio::test]
async fn given_a_dropped_poll_when_it_waits_should_be_cancelled_by_its_number() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::PollMessagesDeferred, [Step::Ignore]);
    let client = peer.client.clone();
    let poll = tokio::spawn(async move {
        let consumer = Consumer::new(id(9));
        let options = PollOptions::wait(IggyDuration::from_secs(5));
        client
            .poll_messages(&id(1), &id(2), 0, &consumer, PollingStrategy::first(), options)
            .await
    });
    let polled = peer.until(Command::PollMessagesDeferred).await;
    poll.abort();
    let cancel = peer.until(Command::CancelDeferred).await;
    assert_eq!(cancel.header().request, polled.header().request);
    assert_eq!(cancel.header().session, polled.header().session);
    assert_eq!(cancel.frame.len(), 256);
}

#[tokio::test]
async fn given_a_lost_committing_read_when_it_was_sent_should_hold_the_progress_of_its_consumer() {
    let peer = Peer::connected(LONG).await;
    peer.script(Command::PollMessagesDeferred, [Step::Close]);
    let consumer = Consumer::new(id(9));
    let options = PollOptions {
        commit: CommitPolicy::OnRead,
        ..PollOptions::default()
    };
    let poll = |consumer: Consumer| {
        let client = peer.client.clone();
        async move {
            client
                .poll_messages(&id(1), &id(2), 0, &consumer, PollingStrategy::next(), options)
                .await
        }
    };
    let error = poll(consumer.clone()).await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::FetchProgressUncertain, Outcome::Unknown)
    );
    let blocked = poll(consumer.clone()).await.unwrap_err();
    assert_eq!(blocked.code(), ErrorCode::PartitionLaneBlocked);
    poll(Consumer::new(id(10))).await.unwrap();
    let replay = peer
        .client
        .resolve_operation(error.operation().unwrap(), LONG)
        .await
        .unwrap_err();
    assert_eq!(replay.code(), ErrorCode::FetchProgressUncertain);
    peer.client.abandon_operation(error.operation().unwrap()).unwrap();
    poll(consumer).await.unwrap();
}

#[tokio::test]
async fn given_a_reply_above_what_was_asked_for_when_polling_should_give_up_the_connection() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::PollMessagesDeferred, [Step::Flood(64_300_000)]);
    let consumer = Consumer::new(id(9));
    let options = PollOptions {
        max_bytes: 344,
        ..PollOptions::default()
    };
    peer.client
        .poll_messages(&id(1), &id(2), 0, &consumer, PollingStrategy::first(), options)
        .await
        .unwrap();
    assert_eq!(
        peer.until(Command::BindSession).await.connection,
        2,
        "the poll was asked again over a new connection"
    );
}

#[tokio::test]
async fn given_refused_credentials_when_connecting_should_say_so_and_not_try_again() {
    let mut peer = Peer::start(LONG).await;
    peer.script(Command::Login, [Step::Evict(EvictionReason::InvalidCredentials)]);
    let error = peer.client.connect().await.unwrap_err();
    assert_eq!(
        (error.code(), error.class()),
        (ErrorCode::InvalidCredentials, ErrorClass::Authentication)
    );
    let error = peer.client.get_streams().await.unwrap_err();
    assert_eq!(
        error.code(),
        ErrorCode::Unauthenticated,
        "refused credentials are forgotten"
    );
    peer.client.ping().await.unwrap();
    peer.client.login_user("iggy", "iggy").await.unwrap();
    peer.client.get_streams().await.unwrap();
    peer.until(Command::GetStreams).await;
}

#[tokio::test]
async fn given_a_lost_login_reply_when_connecting_should_send_the_identical_registration() {
    let mut peer = Peer::start(LONG).await;
    peer.script(
        Command::Login,
        [Step::Close, Step::Refuse(ErrorCode::TransientNotAccepted)],
    );
    peer.client.connect().await.unwrap();
    let first = peer.until(Command::Login).await;
    let (second, third) = (peer.until(Command::Login).await, peer.until(Command::Login).await);
    assert_eq!(
        (second.connection, &second.frame, &third.frame),
        (2, &first.frame, &first.frame)
    );
}

#[tokio::test]
async fn given_another_protocol_when_connecting_should_name_the_versions() {
    let peer = Peer::start(LONG).await;
    peer.script(Command::Login, [Step::Evict(EvictionReason::IncompatibleProtocol)]);
    // Without a window the server says nothing of its versions: the client is simply not let in.
    assert_eq!(
        peer.client.connect().await.unwrap_err().code(),
        ErrorCode::Unauthenticated
    );
}

#[tokio::test]
async fn given_a_closed_client_when_called_should_say_what_closed_it() {
    let peer = Peer::start(LONG).await;
    assert_eq!(
        peer.client.get_streams().await.unwrap_err().code(),
        ErrorCode::NotConnected
    );
    peer.client.connect().await.unwrap();
    peer.client.disconnect().await.unwrap();
    assert_eq!(peer.client.ping().await.unwrap_err().code(), ErrorCode::NotConnected);
    peer.client.connect().await.unwrap();
    peer.client.shutdown().await.unwrap();
    assert_eq!(peer.client.ping().await.unwrap_err().code(), ErrorCode::ClientShutdown);
    assert_eq!(
        peer.client.connect().await.unwrap_err().code(),
        ErrorCode::ClientShutdown
    );
}

#[tokio::test]
async fn given_many_calls_when_made_at_once_should_each_get_its_own_answer() {
    let peer = Peer::connected(LONG).await;
    let calls = (0..600).map(|_| peer.client.get_cluster_metadata());
    for roster in futures::future::join_all(calls).await {
        assert_eq!(roster.unwrap().nodes.len(), 1);
    }
}

#[tokio::test]
async fn given_a_dropped_write_when_under_way_should_finish_in_the_background() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::SendMessages, [Step::Refuse(ErrorCode::TransientNotAccepted)]);
    {
        let send = peer.send();
        tokio::pin!(send);
        // Polled once, the write has begun; then its future is dropped.
        assert!(futures::poll!(send.as_mut()).is_pending());
    }
    peer.until(Command::SendMessages).await;
    peer.until(Command::SendMessages).await;
    peer.send().await.unwrap();
    assert_eq!(peer.client.uncertain_operations(), []);
}
