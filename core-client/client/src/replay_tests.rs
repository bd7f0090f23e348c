//! Replays recorded sessions against a scripted peer: the same calls must lead to the same frames, byte for byte outside
//! what is random, with the same request numbers, over the same connections.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use iggy_protocol::codec::Decode;
use iggy_protocol::request::{group, message, offset, partition, stream, topic};
use iggy_protocol::{
    BatchView, Command, ErrorCode, Operation, PartitionContext, Partitioning, ReplyHeader, RequestHeader,
};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Duration;

use crate::client::IggyClient;
use crate::config::ClientConfig;
use crate::error::{IggyError, Outcome};
use crate::message::IggyMessage;
use crate::poll::{CommitPolicy, Continuation, PollOptions, ReadStart};
use crate::resource_options::{StreamCreateOptions, TopicCreateOptions};

const HEADER: usize = 256;
/// Only against hanging; nothing here takes long.
const HANG: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Deserialize)]
struct Span {
    offset: usize,
    length: usize,
}

#[derive(Debug, Clone, Deserialize)]
struct Recorded {
    dir: String,
    conn: u32,
    name: String,
    hex: String,
    volatile: Vec<Span>,
}

#[derive(Debug, Clone)]
struct Row {
    from_client: bool,
    conn: u32,
    name: String,
    bytes: Vec<u8>,
    volatile: Vec<Span>,
}

impl Row {
    fn request(&self) -> &RequestHeader {
        RequestHeader::view(&self.bytes).unwrap()
    }

    fn number(&self) -> u64 {
        self.request().request.get()
    }

    fn command(&self) -> Command {
        Command::of_header(self.request().operation().unwrap(), self.request().code.get()).unwrap()
    }

    fn body(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }
}

fn load(name: &str) -> Arc<Vec<Row>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../bdd/vectors/sessions")
        .join(name);
    let rows: Vec<Recorded> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let unhex = |text: &str| {
        (0..text.len() / 2)
            .map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap())
            .collect()
    };
    let row = |row: Recorded| Row {
        from_client: row.dir == "c2s",
        conn: row.conn,
        name: row.name,
        bytes: unhex(&row.hex),
        volatile: row.volatile,
    };
    Arc::new(rows.into_iter().map(row).collect())
}

/// Serves the rows in order and tells how many were served.
async fn serve(listener: TcpListener, rows: Arc<Vec<Row>>, served: watch::Sender<usize>, side_by_side: bool) {
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut requests: Vec<(u32, u64, Vec<u8>)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        while connections.len() < row.conn as usize {
            if !side_by_side {
                connections.fill_with(|| None);
            }
            connections.push(Some(listener.accept().await.unwrap().0));
        }
        let stream = connections[row.conn as usize - 1]
            .as_mut()
            .expect("a connection that is still used");
        if row.from_client {
            let frame = read_frame(stream, &row.name).await;
            compare(row, &frame);
            let number = RequestHeader::view(&frame).unwrap().request.get();
            requests.push((row.conn, number, frame));
        } else {
            let number = ReplyHeader::view(&row.bytes).unwrap().request.get();
            let request = requests.iter().rev().find(|(conn, other, frame)| {
                let cancel = RequestHeader::view(frame).unwrap().code.get() == Command::CancelDeferred.code();
                (*conn, *other) == (row.conn, number) && !cancel
            });
            let request = &request.unwrap_or_else(|| panic!("{} answers nothing", row.name)).2;
            let mut reply = row.bytes.clone();
            reply[128..144].copy_from_slice(&request[144..160]);
            reply[160..176].copy_from_slice(&request[128..144]);
            stream.write_all(&reply).await.unwrap();
        }
        served.send_replace(index + 1);
    }
    // Connections stay open until the test is over.
    std::future::pending::<()>().await;
}

async fn read_frame(stream: &mut TcpStream, name: &str) -> Vec<u8> {
    let mut frame = vec![0; HEADER];
    stream
        .read_exact(&mut frame)
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let size = RequestHeader::view(&frame).unwrap().prefix.size.get() as usize;
    frame.resize(size, 0);
    stream
        .read_exact(&mut frame[HEADER..])
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    frame
}

fn compare(row: &Row, frame: &[u8]) {
    let place = format!("{} {}", row.name, row.number());
    if matches!(row.command(), Command::Login | Command::BindSession) {
        // Our version has another length than the recorded one; the header after the size is compared.
        assert_eq!(frame[52..128], row.bytes[52..128], "{place}");
        assert_eq!(frame[160..HEADER], row.bytes[160..HEADER], "{place}");
        return;
    }
    let mask = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        for span in &row.volatile {
            bytes[span.offset..span.offset + span.length].fill(0);
        }
        bytes
    };
    assert_eq!(frame.len(), row.bytes.len(), "{place}");
    let (ours, recorded) = (mask(frame), mask(&row.bytes));
    let differing: Vec<_> = (0..ours.len()).filter(|at| ours[*at] != recorded[*at]).collect();
    assert!(differing.is_empty(), "{place} differs at {differing:?}");
}

/// The messages of a recorded send.
fn messages(batch: &BatchView<'_>) -> Vec<IggyMessage> {
    let message = |frame: iggy_protocol::FrameView<'_>| {
        let headers = iggy_protocol::UserHeaders::from_bytes(frame.user_headers()).unwrap();
        let builder = IggyMessage::builder()
            .id(frame.id())
            .payload(frame.payload().to_vec())
            .user_headers(headers);
        builder.build().unwrap()
    };
    batch.frames().map(message).collect()
}

/// Makes the call that a recorded request came from.
async fn drive(client: &IggyClient, row: &Row, refusal: Option<ErrorCode>) -> Result<(), IggyError> {
    let body = row.body();
    match row.command() {
        Command::GetMe => client.get_me().await.map(drop),
        Command::Logout => client.logout_user().await,
        Command::Login => client.login_user("iggy", "iggy").await.map(drop),
        Command::GetStreams => client.get_streams().await.map(drop),
        Command::CreateStream => {
            let create = stream::CreateStream::from_bytes(body).unwrap();
            client
                .create_stream(&create.name, &StreamCreateOptions::default())
                .await
                .map(drop)
        }
        Command::DeleteStream => {
            client
                .delete_stream(&stream::DeleteStream::from_bytes(body).unwrap().stream)
                .await
        }
        Command::CreateTopic => {
            let create = topic::CreateTopic::from_bytes(body).unwrap();
            let options = TopicCreateOptions {
                partitions_count: Some(create.partitions_count),
                ..Default::default()
            };
            client
                .create_topic(&create.stream, &create.name, &options)
                .await
                .map(drop)
        }
        Command::CreatePartitions => {
            let body = partition::CreatePartitions::from_bytes(body).unwrap();
            client
                .create_partitions(&body.stream, &body.topic, body.partitions_count)
                .await
        }
        Command::DeletePartitions => {
            let body = partition::DeletePartitions::from_bytes(body).unwrap();
            client
                .delete_partitions(&body.stream, &body.topic, body.partitions_count)
                .await
        }
        Command::SendMessages => {
            let send = message::SendMessages::from_bytes(body).unwrap();
            let batch = send.batch().unwrap();
            let (target, messages) = (&send.target, messages(&batch));
            let Partitioning::PartitionId(partition) = target.partitioning else {
                panic!("a send names its partition")
            };
            match batch.header().producer() {
                Some(producer) => client
                    .send_producer_messages(&target.stream, &target.topic, partition, producer, &messages)
                    .await
                    .map(drop),
                None => client
                    .send_messages(&target.stream, &target.topic, &target.partitioning, &messages)
                    .await
                    .map(drop),
            }
        }
        Command::PollMessagesDeferred => poll(client, row, refusal).await,
        Command::StoreConsumerOffset => {
            let store = offset::StoreConsumerOffset::from_bytes(body).unwrap();
            let (partition_id, context) = (store.partition_id.unwrap(), row.request().partition_context());
            if context.owner_generation == 0 {
                let (consumer, stream, topic) = (&store.consumer, &store.stream, &store.topic);
                return client
                    .store_consumer_offset(consumer, stream, topic, partition_id, store.offset)
                    .await;
            }
            let checkpoint = crate::poll::Checkpoint::new(partition_id, store.offset, context);
            client
                .store_consumer_position(&store.consumer, &store.stream, &store.topic, &checkpoint)
                .await
        }
        Command::GetConsumerOffset => {
            let get = offset::GetConsumerOffset::from_bytes(body).unwrap();
            client
                .get_consumer_offset(&get.consumer, &get.stream, &get.topic, get.partition_id.unwrap())
                .await
                .map(drop)
        }
        Command::DeleteConsumerOffset => {
            let get = offset::DeleteConsumerOffset::from_bytes(body).unwrap();
            client
                .delete_consumer_offset(&get.consumer, &get.stream, &get.topic, get.partition_id.unwrap())
                .await
        }
        Command::CreateConsumerGroup => {
            let body = group::CreateConsumerGroup::from_bytes(body).unwrap();
            client
                .create_consumer_group(&body.stream, &body.topic, &body.name)
                .await
                .map(drop)
        }
        command => {
            let body =
                group::GetConsumerGroup::from_bytes(body).unwrap_or_else(|_| panic!("no call is known for {command}"));
            match command {
                Command::JoinConsumerGroup => client.join_consumer_group(&body.stream, &body.topic, &body.group).await,
                Command::LeaveConsumerGroup => {
                    client
                        .leave_consumer_group(&body.stream, &body.topic, &body.group)
                        .await
                }
                Command::SyncConsumerGroup => client
                    .sync_consumer_group(&body.stream, &body.topic, &body.group)
                    .await
                    .map(drop),
                other => panic!("no call is known for {other}"),
            }
        }
    }
}

async fn poll(client: &IggyClient, row: &Row, refusal: Option<ErrorCode>) -> Result<(), IggyError> {
    let recorded = message::DeferredPoll::from_bytes(row.body()).unwrap();
    let (poll, context) = (recorded.poll, row.request().partition_context());
    let partition_id = poll.partition_id.unwrap();
    // A recorded wait is a little below what was asked for: lookups had taken time.
    let wait = recorded.wait_us.div_ceil(1_000_000) * 1_000_000;
    let options = PollOptions {
        count: poll.count,
        max_wait: iggy_protocol::IggyDuration::from_micros(wait),
        min_count: recorded.min_count,
        max_bytes: recorded.max_bytes,
        commit: if poll.auto_commit {
            CommitPolicy::OnRead
        } else {
            CommitPolicy::Manual
        },
    };
    let captured = refusal == Some(ErrorCode::HistoryUnavailable) || context.owner_generation != 0;
    let start = if captured {
        ReadStart::Continuation(Continuation {
            partition_id,
            strategy: poll.strategy,
            context: Some(context),
        })
    } else {
        ReadStart::Strategy(poll.strategy)
    };
    let polled = client
        .poll_messages(&poll.stream, &poll.topic, partition_id, &poll.consumer, start, options)
        .await?;
    assert_ne!(polled.context, PartitionContext::ZERO);
    Ok(())
}

/// The code a recorded reply refuses with.
fn refusal_of(rows: &[Row], row: &Row) -> Option<ErrorCode> {
    let reply = rows.iter().rfind(|other| {
        !other.from_client
            && other.conn >= row.conn
            && ReplyHeader::view(&other.bytes).unwrap().request.get() == row.number()
    })?;
    let status = ReplyHeader::view(&reply.bytes).unwrap().status.get();
    (status != 0).then(|| ErrorCode::from_u32(status))
}

struct Replay {
    rows: Arc<Vec<Row>>,
    served: watch::Receiver<usize>,
    client_of: Vec<IggyClient>,
}

impl Replay {
    async fn start(file: &str, clients: u32) -> (Self, tokio::task::JoinHandle<()>) {
        let rows = load(file);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, served) = watch::channel(0);
        let peer = tokio::spawn(serve(listener, rows.clone(), sender, clients > 1));
        let client = || {
            let config = ClientConfig {
                heartbeat_interval: Duration::from_hours(1),
                ..ClientConfig::default()
            };
            let builder = IggyClient::builder()
                .with_config(config)
                .with_server_address(&address.to_string())
                .unwrap();
            let (username, password) = (
                iggy_protocol::Name::new("iggy").unwrap(),
                iggy_protocol::Secret::new("iggy"),
            );
            let credentials = iggy_protocol::request::session::Credentials::Password { username, password };
            builder.with_auto_sign_in(credentials).build()
        };
        (
            Self {
                rows,
                served,
                client_of: (0..clients).map(|_| client()).collect(),
            },
            peer,
        )
    }

    async fn until(&self, row: usize) {
        let mut served = self.served.clone();
        served.wait_for(|count| *count > row).await.unwrap();
    }

    fn client(&self, conn: u32) -> &IggyClient {
        &self.client_of[(conn as usize - 1).min(self.client_of.len() - 1)]
    }

    /// Connects each client and waits for its first heartbeat, so that numbers are taken in the recorded order.
    async fn connect(&self) {
        for client in &self.client_of {
            let pings = |row: &(usize, &Row)| row.1.from_client && row.1.command() == Command::Ping;
            let before = *self.served.borrow();
            client.connect().await.unwrap();
            let ping = self
                .rows
                .iter()
                .enumerate()
                .filter(pings)
                .find(|(index, _)| *index >= before)
                .unwrap()
                .0;
            self.until(ping + 1).await;
        }
    }

    async fn run(&self) {
        self.connect().await;
        let made_by_itself = [
            Command::GetClusterMetadata,
            Command::Ping,
            Command::GetPartitionRoute,
            Command::BindSession,
        ];
        let mut driven = HashSet::new();
        let mut waiting = Vec::new();
        let signed_in = self
            .rows
            .iter()
            .position(|row| row.from_client && row.command() == Command::Ping)
            .unwrap();
        for (index, row) in self.rows.iter().enumerate().skip(signed_in) {
            // A login after the first connection is made by the client itself, when the server has forgotten the session.
            let by_itself =
                row.from_client && row.command() == Command::Login && (row.conn > 1 || self.client_of.len() > 1);
            if !row.from_client || by_itself || made_by_itself.contains(&row.command()) {
                continue;
            }
            let fresh = row.command() == Command::Login
                || driven.insert(
                    (self.client_of.len() > 1)
                        .then_some(row.conn)
                        .map_or((0, row.number()), |conn| (conn, row.number())),
                );
            if row.command() == Command::CancelDeferred {
                self.until(index - 1).await;
                let (_, poll): (u64, tokio::task::JoinHandle<()>) = waiting.pop().expect("a poll to cancel");
                poll.abort();
                self.until(index).await;
                continue;
            }
            if !fresh {
                continue;
            }
            let refusal = refusal_of(&self.rows, row);
            let answered_next = self
                .rows
                .get(index + 1)
                .is_some_and(|next| !next.from_client || next.conn != row.conn);
            let client = self.client(row.conn).clone();
            if row.command() == Command::PollMessagesDeferred && !answered_next {
                let row = row.clone();
                let poll = tokio::spawn(async move { drive(&client, &row, None).await.unwrap() });
                waiting.push((index as u64, poll));
                self.until(index).await;
                continue;
            }
            self.wait_for_lost_link(index).await;
            check(drive(&client, row, refusal).await, refusal, &row.name);
        }
        self.until(self.rows.len() - 1).await;
        for (_, poll) in waiting {
            poll.await.unwrap();
        }
    }

    /// When the next request goes over a new connection though nothing was lost, the client must notice first.
    async fn wait_for_lost_link(&self, index: usize) {
        let rows = &self.rows;
        let previous = rows[..index].iter().rfind(|row| row.from_client);
        let bound_before = previous.is_some_and(|row| row.conn < rows[index].conn || row.command() == Command::Login);
        if self.client_of.len() == 1
            && rows[index].conn > 1
            && bound_before
            && previous.unwrap().command() == Command::Login
        {
            while self.client_of[0].core().live_main().is_some() {
                tokio::task::yield_now().await;
            }
        }
    }
}

fn check(outcome: Result<(), IggyError>, refusal: Option<ErrorCode>, name: &str) {
    match (outcome, refusal) {
        // A send that was refused because the primary moved is sent again and succeeds.
        (Ok(()), None | Some(ErrorCode::NotPrimary)) => {}
        (Err(error), Some(code)) => {
            assert_eq!(error.code(), code, "{name}: {error}");
            assert_eq!(error.outcome(), Outcome::NotApplied, "{name}");
        }
        (outcome, refusal) => panic!("{name}: {outcome:?}, recorded {refusal:?}"),
    }
}

async fn replay(file: &str, clients: u32) {
    let (replay, peer) = Replay::start(file, clients).await;
    let run = tokio::time::timeout(HANG, async {
        tokio::select! {
            () = replay.run() => {}
            ended = peer => panic!("the peer ended: {ended:?}"),
        }
    });
    run.await
        .unwrap_or_else(|_| panic!("{file} hangs after row {}", *replay.served.borrow()));
    assert_eq!(*replay.served.borrow(), replay.rows.len());
    let operations = replay
        .rows
        .iter()
        .filter(|row| row.from_client && row.request().operation() != Some(Operation::Register));
    assert!(operations.count() > 2, "{file} holds requests");
}

#[tokio::test]
async fn given_connect_login_when_replayed_should_send_the_same_frames() {
    replay("connect_login.json", 1).await;
}

#[tokio::test]
async fn given_create_send_poll_when_replayed_should_send_the_same_frames() {
    replay("create_send_poll.json", 1).await;
}

#[tokio::test]
async fn given_deferred_poll_wait_cancel_when_replayed_should_send_the_same_frames() {
    replay("deferred_poll_wait_cancel.json", 1).await;
}

#[tokio::test]
async fn given_idempotent_resend_when_replayed_should_send_the_same_frames() {
    replay("idempotent_resend.json", 1).await;
}

#[tokio::test]
async fn given_reconnect_bind_when_replayed_should_send_the_same_frames() {
    replay("reconnect_bind.json", 1).await;
}

#[tokio::test]
async fn given_stale_route_when_replayed_should_send_the_same_frames() {
    replay("stale_route.json", 1).await;
}

#[tokio::test]
async fn given_group_two_members_when_replayed_should_send_the_same_frames() {
    replay("group_two_members.json", 2).await;
}
