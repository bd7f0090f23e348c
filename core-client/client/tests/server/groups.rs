//! Members of a consumer group: joining, sharing, leaving, vanishing, and positions under a generation.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use iggy::prelude::*;
use iggy_testkit::TestServer;

use crate::{connected, named, texts, with_topic};

const PATIENCE: Duration = Duration::from_mins(1);

fn member(client: &IggyClient, options: PollOptions) -> IggyConsumer {
    client
        .consumer_group("billing", "orders", "created")
        .unwrap()
        .poll_options(options)
        .build()
}

async fn joined(client: &IggyClient, options: PollOptions) -> IggyConsumer {
    let mut consumer = member(client, options);
    consumer.init().await.unwrap();
    consumer
}

/// A client that reads its assignments again often.
pub async fn attentive(server: &TestServer) -> IggyClient {
    attentive_at(server.tcp_address()).await
}

/// The same at another address.
pub async fn attentive_at(address: SocketAddr) -> IggyClient {
    let config = ClientConfig {
        heartbeat_interval: Duration::from_millis(100),
        ..ClientConfig::default()
    };
    let credentials = Credentials::Password {
        username: "iggy".parse().unwrap(),
        password: Secret::new("iggy"),
    };
    let client = IggyClient::builder()
        .with_config(config)
        .with_server_address(&address.to_string())
        .unwrap()
        .with_auto_sign_in(credentials)
        .build();
    client.connect().await.unwrap();
    client
}

async fn send(client: &IggyClient, partition: u32, prefix: &str, count: usize) {
    let partitioning = Partitioning::partition_id(partition);
    client
        .send_messages(
            &named("orders"),
            &named("created"),
            &partitioning,
            &texts(prefix, count),
        )
        .await
        .unwrap();
}

async fn next(consumer: &mut IggyConsumer) -> ReceivedMessage {
    let next = tokio::time::timeout(PATIENCE, consumer.next()).await;
    next.expect("nothing came").expect("it is open").unwrap()
}

async fn stored(client: &IggyClient, partition: u32) -> Option<u64> {
    // The owner alone may ask: whoever asks here has just joined.
    let group = Consumer::group(named("billing"));
    let stored = client
        .get_consumer_offset(&group, &named("orders"), &named("created"), partition)
        .await;
    stored.unwrap().map(|stored| stored.stored_offset)
}

/// Waits until a consumer reads these partitions.
async fn assigned(consumer: &IggyConsumer, events: &mut Events<ReaderEvent>, expected: &[u32]) {
    let all = async {
        while !consumer.partitions().eq(expected.iter().copied()) {
            events.next().await.expect("it is open");
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap_or_else(|_| {
        panic!(
            "reads {:?}, not {expected:?}",
            consumer.partitions().collect::<Vec<_>>()
        )
    });
}

fn waiting() -> PollOptions {
    PollOptions::wait(IggyDuration::from_secs(5))
}

#[tokio::test]
async fn given_one_member_when_it_joins_should_create_the_group_and_read_every_partition() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 3).await;
    for partition in 0..3 {
        send(&client, partition, "m", 5).await;
    }
    let mut consumer = joined(&client, waiting()).await;
    let mut seen: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for _ in 0..15 {
        let received = next(&mut consumer).await;
        let offset = received.message.header.offset;
        seen.entry(received.partition_id).or_default().push(offset);
        consumer.commit(received.checkpoint()).await.unwrap();
    }
    assert!(
        seen.len() == 3 && seen.values().all(|offsets| *offsets == [0, 1, 2, 3, 4]),
        "{seen:?}"
    );
    assert_eq!(stored(&client, 2).await, Some(4));
    consumer.shutdown().await.unwrap();
    let group = client
        .get_consumer_group(&stream, &topic, &named("billing"))
        .await
        .unwrap();
    assert_eq!(group.unwrap().group.members_count, 0, "it left");

    send(&client, 1, "late", 1).await;
    let mut again = joined(&client, waiting()).await;
    let received = next(&mut again).await;
    assert_eq!((received.partition_id, received.message.header.offset), (1, 5));
}

#[tokio::test]
async fn given_a_missing_group_when_it_may_not_be_created_should_be_refused() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let begin = || {
        client
            .consumer_group("billing", "orders", "created")
            .unwrap()
            .do_not_create_consumer_group_if_not_exists()
    };
    let error = begin().build().init().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StreamNameNotFound);
    with_topic(&client, 1).await;
    let error = begin().build().init().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConsumerGroupNameNotFound);
    let error = begin().partitions([0]).build().init().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidCommand);
    let mut consumer = begin().build();
    let error = consumer.next().await.unwrap().unwrap_err();
    assert_eq!(error.error.code(), ErrorCode::InvalidConfiguration, "init comes first");

    let mut patient = begin().init_retries(1_000, IggyDuration::from_millis(10)).build();
    let (stream, topic) = (named("orders"), named("created"));
    let create = client.create_consumer_group(&stream, &topic, "billing");
    let (init, created) = tokio::join!(patient.init(), create);
    created.unwrap();
    init.unwrap();
    let error = member(&client, waiting()).init().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidCommand, "the session is one member");
}

#[tokio::test]
async fn given_two_members_when_one_joins_and_leaves_should_share_the_partitions_evenly_and_fence_the_other() {
    let server = TestServer::start().await.unwrap();
    let (first_client, second_client) = (attentive(&server).await, attentive(&server).await);
    with_topic(&first_client, 4).await;
    for partition in 0..4 {
        send(&first_client, partition, "m", 2).await;
    }
    let mut first = joined(&first_client, waiting()).await;
    let mut events = first.subscribe_events().unwrap();
    let mut held = BTreeMap::new();
    for _ in 0..8 {
        let received = next(&mut first).await;
        if received.message.header.offset == 0 {
            first.commit(received.checkpoint()).await.unwrap();
        } else {
            held.insert(received.partition_id, received.checkpoint());
        }
    }
    let mut second = joined(&second_client, waiting()).await;
    let gained: Vec<u32> = second.partitions().collect();
    assert_eq!(gained.len(), 2);
    let kept: Vec<u32> = (0..4).filter(|id| !gained.contains(id)).collect();
    assigned(&first, &mut events, &kept).await;

    // What it lost it can commit no more; the new owner goes on after what was committed.
    let fenced = first.commit(held[&gained[0]]).await.unwrap_err();
    assert_eq!(
        (fenced.code(), fenced.class()),
        (ErrorCode::ConsumerGroupPartitionNotOwned, ErrorClass::Stale)
    );
    first.commit(held[&kept[0]]).await.unwrap();
    let again = [next(&mut second).await, next(&mut second).await];
    let places: BTreeSet<_> = again
        .iter()
        .map(|received| (received.partition_id, received.message.header.offset))
        .collect();
    assert_eq!(places, gained.iter().map(|id| (*id, 1)).collect());

    second.shutdown().await.unwrap();
    assigned(&first, &mut events, &[0, 1, 2, 3]).await;
    send(&first_client, gained[0], "late", 1).await;
    // The second message of the partition was handed out to this member already.
    let received = next(&mut first).await;
    assert_eq!((received.partition_id, received.message.header.offset), (gained[0], 2));
}

#[tokio::test]
async fn given_a_member_that_is_dropped_when_its_session_ends_should_leave_its_partitions_to_the_others() {
    let server = TestServer::start().await.unwrap();
    let (first_client, second_client) = (attentive(&server).await, attentive(&server).await);
    with_topic(&first_client, 2).await;
    let first = joined(&first_client, waiting()).await;
    let mut second = joined(&second_client, waiting()).await;
    let mut events = second.subscribe_events().unwrap();
    assert_eq!(second.partitions().count(), 1);
    drop(first);
    // Dropped, it stays a member: the session does not end with its consumer.
    let again = joined(&first_client, waiting()).await;
    assert_eq!((again.partitions().count(), second.partitions().count()), (1, 1));
    drop(again);
    first_client.logout_user().await.unwrap();
    assigned(&second, &mut events, &[0, 1]).await;
    send(&second_client, 0, "m", 1).await;
    send(&second_client, 1, "m", 1).await;
    let both = [
        next(&mut second).await.partition_id,
        next(&mut second).await.partition_id,
    ];
    assert_eq!(BTreeSet::from(both), BTreeSet::from([0, 1]));
}

#[tokio::test]
async fn given_a_lost_session_when_the_server_restarts_should_join_again_and_hand_out_nothing_twice() {
    let mut server = TestServer::start().await.unwrap();
    let client = attentive(&server).await;
    with_topic(&client, 2).await;
    send(&client, 0, "m", 3).await;
    let mut consumer = joined(&client, waiting()).await;
    for offset in 0..3 {
        assert_eq!(next(&mut consumer).await.message.header.offset, offset);
    }
    let mut events = consumer.subscribe_events().unwrap();
    // Signed in anew, the client has another session, which is no member yet.
    client.login_user("iggy", "iggy").await.unwrap();
    assert_eq!(events.next().await, Some(ReaderEvent::MembershipLost));
    assigned(&consumer, &mut events, &[0, 1]).await;
    send(&client, 0, "more", 1).await;
    assert_eq!(
        next(&mut consumer).await.message.header.offset,
        3,
        "nothing was committed, and nothing comes twice"
    );
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    send(&client, 1, "after", 1).await;
    assert_eq!(next(&mut consumer).await.partition_id, 1);
}

#[tokio::test]
async fn given_commits_on_read_when_shut_down_should_have_stored_what_was_handed_out() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 2).await;
    send(&client, 0, "m", 10).await;
    send(&client, 1, "m", 10).await;
    let options = PollOptions {
        count: 1000,
        commit: CommitPolicy::OnRead,
        ..PollOptions::wait(IggyDuration::ONE_SECOND)
    };
    let mut consumer = joined(&client, options).await;
    let mut given: BTreeMap<u32, u64> = BTreeMap::new();
    for _ in 0..4 {
        let received = next(&mut consumer).await;
        given.insert(received.partition_id, received.message.header.offset);
        let error = consumer.commit(received.checkpoint()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidCommand);
    }
    assert_eq!(given.len(), 1, "batch after batch");
    let (read, last) = given.pop_first().unwrap();
    assert_eq!(stored(&client, read).await, Some(9), "the read stored all it returned");
    consumer.shutdown().await.unwrap();
    let again = joined(&client, waiting()).await;
    assert_eq!(stored(&client, read).await, Some(last));
    assert_eq!(stored(&client, 1 - read).await, None, "read, and not handed out");
    drop(again);
}
