//! Members of one group that come, go and vanish while messages flow: nothing is lost, nobody shares a partition, and
//! what was committed never comes again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use iggy::prelude::*;
use iggy_testkit::TestServer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::groups::{attentive, attentive_at};
use crate::{named, texts, with_topic};

const PARTITIONS: u32 = 6;
const PATIENCE: Duration = Duration::from_mins(2);

/// What all members saw.
#[derive(Debug, Default)]
struct Log {
    /// Which member read a partition under which ownership.
    owners: BTreeMap<(u32, u64), BTreeSet<usize>>,
    /// Messages whose commit was acknowledged, and under which ownership.
    committed: BTreeMap<(u32, u64), u64>,
    /// Messages handed out although they had been committed. A member that has not heard of its loss yet may still hand
    /// out what it read ahead; that is not meant.
    again: Vec<(u32, u64)>,
}

#[derive(Debug, Clone, Default)]
struct Shared {
    log: Arc<Mutex<Log>>,
    changed: Arc<Notify>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }
}

/// Reads and commits one message after the other until it is told to stop; then it leaves.
async fn work(number: usize, client: IggyClient, log: Shared, stop: oneshot::Receiver<()>) {
    let options = PollOptions {
        count: 5,
        ..PollOptions::wait(IggyDuration::from_secs(5))
    };
    let mut consumer = client
        .consumer_group("billing", "orders", "created")
        .unwrap()
        .poll_options(options)
        .build();
    consumer.init().await.unwrap();
    let state = consumer.state().unwrap();
    let handler = async |received: ReceivedMessage| {
        let checkpoint = received.checkpoint();
        let owner = checkpoint.context.owner_generation;
        let place = (received.partition_id, received.message.header.offset);
        {
            let mut log = log.lock();
            let ownership = (received.partition_id, owner);
            log.owners.entry(ownership).or_default().insert(number);
            if log.committed.get(&place).is_some_and(|committed| *committed <= owner) {
                log.again.push(place);
            }
        }
        match state.commit(checkpoint).await {
            Ok(()) => {
                log.lock().committed.insert(place, owner);
                log.changed.notify_waiters();
            }
            // Another member owns it by now and gets the message again.
            Err(error) if error.code() == ErrorCode::ConsumerGroupPartitionNotOwned => {}
            Err(error) => return Err(error),
        }
        Ok(())
    };
    consumer.consume_messages(&handler, stop).await.unwrap();
    consumer.shutdown().await.unwrap();
}

struct Member {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

async fn start(number: usize, server: &TestServer, log: &Shared) -> Member {
    let client = attentive(server).await;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(work(number, client, log.clone(), stopped));
    Member { stop, task }
}

async fn leave(member: Member) {
    member.stop.send(()).unwrap();
    tokio::time::timeout(PATIENCE, member.task)
        .await
        .expect("it leaves")
        .unwrap();
}

async fn send(client: &IggyClient, round: u32) {
    for partition in 0..PARTITIONS {
        let messages = texts(&format!("m{round}"), 20);
        client
            .send_messages(
                &named("orders"),
                &named("created"),
                &Partitioning::partition_id(partition),
                &messages,
            )
            .await
            .unwrap();
    }
}

/// Waits until every message up to this offset was committed.
async fn until_committed(log: &Shared, end: u64) {
    let all = (0..PARTITIONS).flat_map(|partition| (0..end).map(move |offset| (partition, offset)));
    let all: Vec<_> = all.collect();
    let waiting = async {
        loop {
            let changed = log.changed.notified();
            if all.iter().all(|place| log.lock().committed.contains_key(place)) {
                return;
            }
            changed.await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        let log = log.lock();
        let missing: Vec<_> = all.iter().filter(|place| !log.committed.contains_key(place)).collect();
        panic!("not committed: {missing:?}");
    }
}

/// Forwards connections until it is cut; from then on nobody gets through.
async fn cable(server: SocketAddr, cut: CancellationToken) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let forward = async {
            let mut tasks = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                tasks.spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(server).await {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        };
        tokio::select! {
            () = forward => {}
            () = cut.cancelled() => {}
        }
    });
    address
}

fn check(log: &Shared) {
    let log = log.lock();
    let shared: Vec<_> = log.owners.iter().filter(|(_, members)| members.len() > 1).collect();
    assert_eq!(shared, [], "two members read a partition under one ownership");
    assert_eq!(log.again, [], "committed, and handed out again");
    let members: BTreeSet<_> = log.owners.values().flatten().collect();
    assert!(members.len() > 1, "one member did everything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn given_three_members_when_they_come_and_go_should_hand_out_everything_and_nothing_committed_twice() {
    let server = TestServer::start().await.unwrap();
    let client = attentive(&server).await;
    with_topic(&client, PARTITIONS).await;
    let log = Shared::default();
    let first = start(0, &server, &log).await;
    send(&client, 0).await;
    let second = start(1, &server, &log).await;
    send(&client, 1).await;
    let third = start(2, &server, &log).await;
    send(&client, 2).await;
    leave(first).await;
    send(&client, 3).await;
    let fourth = start(3, &server, &log).await;
    send(&client, 4).await;
    leave(third).await;
    send(&client, 5).await;
    until_committed(&log, 6 * 20).await;
    leave(second).await;
    leave(fourth).await;
    check(&log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn given_a_member_that_vanishes_when_its_session_runs_out_should_have_its_partitions_read_by_the_others() {
    let server = TestServer::start().await.unwrap();
    let client = attentive(&server).await;
    with_topic(&client, PARTITIONS).await;
    let log = Shared::default();
    // Its connection is cut for good, without a goodbye.
    let cut = CancellationToken::new();
    let vanishing = attentive_at(cable(server.tcp_address(), cut.clone()).await).await;
    let (_stop, stopped) = oneshot::channel();
    let vanished = tokio::spawn(work(0, vanishing, log.clone(), stopped));
    send(&client, 0).await;
    until_committed(&log, 20).await;
    let rest = start(1, &server, &log).await;
    send(&client, 1).await;
    until_committed(&log, 40).await;
    cut.cancel();
    vanished.abort();
    send(&client, 2).await;
    until_committed(&log, 60).await;
    leave(rest).await;
    check(&log);
}
