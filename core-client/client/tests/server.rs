//! The client against a real server process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use iggy::prelude::*;
use iggy_testkit::TestServer;
use tokio::time::Duration;

async fn connected(server: &TestServer) -> IggyClient {
    let client = IggyClient::from_connection_string(&server.connection_string()).unwrap();
    client.connect().await.unwrap();
    client
}

fn named(name: &str) -> Identifier {
    Identifier::named(name).unwrap()
}

async fn with_topic(client: &IggyClient, partitions_count: u32) -> (Identifier, Identifier) {
    client
        .create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap();
    let options = TopicCreateOptions {
        partitions_count: Some(partitions_count),
        ..TopicCreateOptions::default()
    };
    client
        .create_topic(&named("orders"), "created", &options)
        .await
        .unwrap();
    (named("orders"), named("created"))
}

fn texts(prefix: &str, count: usize) -> Vec<IggyMessage> {
    (0..count)
        .map(|index| IggyMessage::new(format!("{prefix}-{index}")).unwrap())
        .collect()
}

async fn read_all(client: &IggyClient, stream: &Identifier, topic: &Identifier, partition: u32) -> Vec<IggyMessage> {
    let consumer = Consumer::new(named("reader"));
    let mut start = ReadStart::from(PollingStrategy::first());
    let mut messages = Vec::new();
    loop {
        let polled = client
            .poll_messages(stream, topic, partition, &consumer, start, PollOptions::default())
            .await
            .unwrap();
        if polled.is_empty() {
            return messages;
        }
        start = polled.continuation().into();
        messages.extend(polled.messages);
    }
}

#[tokio::test]
async fn given_a_server_when_resources_are_managed_should_show_what_was_made() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 3).await;
    assert_eq!(client.get_streams().await.unwrap().len(), 1);
    let details = client.get_topic(&stream, &topic).await.unwrap().unwrap();
    assert_eq!((details.topic.partitions_count, details.partitions.len()), (3, 3));
    client.create_partitions(&stream, &topic, 2).await.unwrap();
    client.delete_partitions(&stream, &topic, 1).await.unwrap();
    assert_eq!(
        client
            .get_topic(&stream, &topic)
            .await
            .unwrap()
            .unwrap()
            .partitions
            .len(),
        4
    );
    let options = TopicUpdateOptions {
        name: Some("renamed".to_owned()),
        ..TopicUpdateOptions::default()
    };
    client.update_topic(&stream, &topic, &options).await.unwrap();
    assert!(client.get_topic(&stream, &topic).await.unwrap().is_none());
    assert!(client.get_topic(&stream, &named("renamed")).await.unwrap().is_some());
    let error = client
        .create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.outcome()),
        (ErrorClass::AlreadyExists, Outcome::NotApplied)
    );
    let error = client.get_topics(&named("absent")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::NotFound);
    client.delete_topic(&stream, &named("renamed")).await.unwrap();
    client.delete_stream(&stream).await.unwrap();
    assert!(client.get_stream(&stream).await.unwrap().is_none());
    assert!(client.get_stats().await.unwrap().numbers.process_id > 0);
    assert!(!client.describe_options(Scope::Topic).await.unwrap().is_empty());
    assert_eq!(client.get_me().await.unwrap().client.user_id, 0);
}

#[tokio::test]
async fn given_each_partitioning_when_sending_should_store_where_it_says() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 3).await;
    let mut partitions = BTreeSet::new();
    for _ in 0..3 {
        let sent = client
            .send_messages(&stream, &topic, &Partitioning::balanced(), &texts("b", 1))
            .await
            .unwrap();
        partitions.insert(sent[0].partition_id);
    }
    assert_eq!(partitions, BTreeSet::from([0, 1, 2]));
    let key = Partitioning::messages_key_str("customer").unwrap();
    let expected = iggy::protocol::partitioning::partition_of_key(b"customer", 3).unwrap();
    for _ in 0..2 {
        let sent = client
            .send_messages(&stream, &topic, &key, &texts("k", 2))
            .await
            .unwrap();
        assert_eq!(sent[0].partition_id, expected);
    }
    let sent = client
        .send_messages(&stream, &topic, &Partitioning::partition_id(1), &texts("p", 5))
        .await
        .unwrap();
    assert_eq!((sent[0].partition_id, sent.len()), (1, 1));
    let error = client
        .send_messages(&stream, &topic, &Partitioning::partition_id(9), &texts("x", 1))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::PartitionNotFound);
    let mut stored = 0;
    for partition in 0..3 {
        stored += read_all(&client, &stream, &topic, partition).await.len();
    }
    assert_eq!(stored, 3 + 4 + 5);
}

#[tokio::test]
async fn given_messages_with_headers_when_polled_should_come_back_as_they_were() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let mut headers = UserHeaders::new();
    headers.set("kind", TypedValue::string("test").unwrap()).unwrap();
    headers.set("count", TypedValue::uint64(7)).unwrap();
    let message = IggyMessage::builder()
        .id(42)
        .payload("hello")
        .user_headers(headers.clone())
        .build()
        .unwrap();
    client
        .send_messages(
            &stream,
            &topic,
            &Partitioning::partition_id(0),
            std::slice::from_ref(&message),
        )
        .await
        .unwrap();
    let consumer = Consumer::new(named("audit"));
    let last = PollingStrategy::last();
    let polled = client
        .poll_messages(&stream, &topic, 0, &consumer, &last, PollOptions::default())
        .await
        .unwrap();
    let received = &polled.messages[0];
    assert_eq!((received.header.id, received.payload.as_ref()), (42, &b"hello"[..]));
    assert_eq!(received.user_headers_map().unwrap(), Some(headers));
    assert_eq!(received.header.origin_timestamp, message.header.origin_timestamp);
    assert!(received.header.timestamp > 0);

    client
        .store_consumer_position(&consumer, &stream, &topic, &polled.checkpoint().unwrap())
        .await
        .unwrap();
    let stored = client
        .get_consumer_offset(&consumer, &stream, &topic, 0)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.stored_offset, 0);
    let next = client
        .poll_messages(
            &stream,
            &topic,
            0,
            &consumer,
            PollingStrategy::next(),
            PollOptions::default(),
        )
        .await
        .unwrap();
    assert!(next.is_empty());
    client
        .delete_consumer_offset(&consumer, &stream, &topic, 0)
        .await
        .unwrap();
    assert!(
        client
            .get_consumer_offset(&consumer, &stream, &topic, 0)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn given_a_waiting_poll_when_a_message_comes_should_end_with_it() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let waiting = {
        let (client, stream, topic) = (client.clone(), stream.clone(), topic.clone());
        tokio::spawn(async move {
            let options = PollOptions::wait(IggyDuration::from_secs(20));
            client
                .poll_messages(
                    &stream,
                    &topic,
                    0,
                    &Consumer::new(named("w")),
                    PollingStrategy::offset(0),
                    options,
                )
                .await
        })
    };
    client
        .send_messages(&stream, &topic, &Partitioning::partition_id(0), &texts("late", 1))
        .await
        .unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().messages.len(), 1);
}

#[tokio::test]
async fn given_a_recreated_partition_when_continuing_an_old_read_should_be_refused() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 2).await;
    client
        .send_messages(&stream, &topic, &Partitioning::partition_id(1), &texts("old", 1))
        .await
        .unwrap();
    let consumer = Consumer::new(named("audit"));
    let polled = client
        .poll_messages(
            &stream,
            &topic,
            1,
            &consumer,
            PollingStrategy::first(),
            PollOptions::default(),
        )
        .await
        .unwrap();
    client.delete_partitions(&stream, &topic, 1).await.unwrap();
    client.create_partitions(&stream, &topic, 1).await.unwrap();
    let again = client
        .poll_messages(
            &stream,
            &topic,
            1,
            &consumer,
            polled.continuation(),
            PollOptions::default(),
        )
        .await;
    assert_eq!(again.unwrap_err().code(), ErrorCode::HistoryUnavailable);
    let checkpoint = polled.checkpoint().unwrap();
    let store = client
        .store_consumer_position(&consumer, &stream, &topic, &checkpoint)
        .await;
    assert_eq!(store.unwrap_err().code(), ErrorCode::HistoryUnavailable);
    client
        .send_messages(&stream, &topic, &Partitioning::partition_id(1), &texts("new", 1))
        .await
        .unwrap();
}

#[tokio::test]
async fn given_a_restarted_server_when_sending_on_should_reconnect_and_keep_everything() {
    let mut server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let to = Partitioning::partition_id(0);
    client
        .send_messages(&stream, &topic, &to, &texts("before", 10))
        .await
        .unwrap();
    server.restart().await.unwrap();
    client
        .send_messages(&stream, &topic, &to, &texts("after", 10))
        .await
        .unwrap();
    let messages = read_all(&client, &stream, &topic, 0).await;
    let offsets: Vec<_> = messages.iter().map(|message| message.header.offset).collect();
    assert_eq!(offsets, (0..20).collect::<Vec<_>>());
    assert_eq!(messages[10].payload_as_string().unwrap(), "after-0");
}

#[tokio::test]
async fn given_users_and_tokens_when_signing_in_should_follow_their_permissions() {
    let server = TestServer::start().await.unwrap();
    let root = connected(&server).await;
    root.create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap();
    let permissions = Permissions {
        global: GlobalPermissions {
            read_streams: true,
            ..GlobalPermissions::default()
        },
        ..Permissions::default()
    };
    let options = UserCreateOptions {
        permissions: Some(permissions),
        ..UserCreateOptions::default()
    };
    root.create_user("alice", "secret", &options).await.unwrap();

    let alice = IggyClient::builder()
        .with_server_address(&server.tcp_address().to_string())
        .unwrap()
        .build();
    let error = alice.login_user("alice", "wrong").await.unwrap_err();
    assert_eq!(
        (error.code(), error.class()),
        (ErrorCode::InvalidCredentials, ErrorClass::Authentication)
    );
    alice.login_user("alice", "secret").await.unwrap();
    assert_eq!(alice.get_streams().await.unwrap().len(), 1);
    let error = alice
        .create_stream("forbidden", &StreamCreateOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.class()),
        (ErrorCode::Unauthorized, ErrorClass::Permission)
    );
    let token = alice
        .create_personal_access_token("ci-token", IggyExpiry::NeverExpire)
        .await
        .unwrap();
    assert_eq!(alice.get_personal_access_tokens().await.unwrap().len(), 1);
    alice
        .change_password(&named("alice"), "secret", "another")
        .await
        .unwrap();
    alice.logout_user().await.unwrap();
    assert_eq!(
        alice.get_streams().await.unwrap_err().code(),
        ErrorCode::Unauthenticated
    );
    alice.ping().await.unwrap();
    alice.login_with_personal_access_token(token.expose()).await.unwrap();
    alice.delete_personal_access_token("ci-token").await.unwrap();
    alice.login_user("alice", "another").await.unwrap();
    root.delete_user(&named("alice")).await.unwrap();
}

#[tokio::test]
async fn given_a_direct_producer_when_it_sends_should_create_what_is_missing_and_split_batches() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let config = DirectConfig {
        batch_length: 10,
        ..DirectConfig::default()
    };
    let producer = client.producer("orders", "created").unwrap().direct(config).build();
    assert!(producer.send(texts("early", 1)).await.is_err(), "init comes first");
    producer.init().await.unwrap();
    let confirmations = producer.send(texts("m", 25)).await.unwrap();
    assert_eq!(
        confirmations.iter().map(|sent| sent.base_offset).collect::<Vec<_>>(),
        [0, 10, 20]
    );
    producer.shutdown().await.unwrap();
    assert_eq!(
        producer.send(texts("late", 1)).await.unwrap_err().code(),
        ErrorCode::ProducerClosed
    );
    assert_eq!(
        read_all(&client, &named("orders"), &named("created"), 0).await.len(),
        25
    );
}

#[tokio::test]
async fn given_an_idempotent_producer_when_it_sends_should_number_its_batches() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let producer = client.producer("orders", "created").unwrap().idempotent().build();
    producer.init().await.unwrap();
    for round in 0..3 {
        assert_eq!(producer.send(texts("m", 4)).await.unwrap()[0].base_offset, round * 4);
    }
    let (stream, topic) = (named("orders"), named("created"));
    let section = iggy::ProducerSection {
        producer_id: client.next_producer_id().unwrap(),
        epoch: 0,
        base_sequence: 0,
    };
    let batch = texts("twice", 2);
    let first = client
        .send_producer_messages(&stream, &topic, 0, section, &batch)
        .await
        .unwrap();
    let second = client
        .send_producer_messages(&stream, &topic, 0, section, &batch)
        .await
        .unwrap();
    assert_eq!(first, second, "the batch was written once");
    let gap = iggy::ProducerSection {
        base_sequence: 9,
        ..section
    };
    let error = client
        .send_producer_messages(&stream, &topic, 0, gap, &batch)
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProducerSequenceOutOfOrder);
    assert_eq!(read_all(&client, &stream, &topic, 0).await.len(), 14);
}

#[tokio::test]
async fn given_a_background_producer_when_shut_down_should_have_sent_everything_in_order() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let failures = Arc::new(AtomicUsize::new(0));
    let config = BackgroundConfig {
        max_buffer_size: 4096,
        error_callback: Arc::new({
            let failures = failures.clone();
            move |_| {
                failures.fetch_add(1, Ordering::Relaxed);
            }
        }),
        ..BackgroundConfig::default()
    };
    let producer = client.producer("orders", "created").unwrap().background(config).build();
    producer.init().await.unwrap();
    for index in 0..500 {
        assert!(
            producer
                .send_one(IggyMessage::new(index.to_string()).unwrap())
                .await
                .unwrap()
                .is_empty()
        );
    }
    let large = IggyMessage::new(vec![0; 5000]).unwrap();
    assert_eq!(
        producer.send_one(large).await.unwrap_err().code(),
        ErrorCode::BackgroundSendBufferOverflow
    );
    producer.shutdown().await.unwrap();
    assert_eq!(failures.load(Ordering::Relaxed), 0);
    let messages = read_all(&client, &named("orders"), &named("created"), 0).await;
    let texts: Vec<_> = messages
        .iter()
        .map(|message| message.payload_as_string().unwrap().to_owned())
        .collect();
    assert_eq!(texts, (0..500).map(|index| index.to_string()).collect::<Vec<_>>());
}

#[derive(Debug)]
struct AlwaysSecond;

impl Partitioner for AlwaysSecond {
    fn calculate_partition_id(&self, _: &Identifier, _: &Identifier, _: &[IggyMessage]) -> Result<u32, IggyError> {
        Ok(1)
    }
}

#[tokio::test]
async fn given_encryption_and_a_partitioner_when_sending_should_keep_the_text_from_the_server() {
    let server = TestServer::start().await.unwrap();
    let plain = connected(&server).await;
    let (stream, topic) = with_topic(&plain, 2).await;
    let client = IggyClient::builder_from_connection_string(&server.connection_string())
        .unwrap()
        .with_encryptor(Arc::new(Aes256GcmEncryptor::new(&[9; 32]).unwrap()))
        .with_partitioner(Arc::new(AlwaysSecond))
        .build();
    client.connect().await.unwrap();
    let sent = client
        .send_messages(&stream, &topic, &Partitioning::balanced(), &texts("secret", 1))
        .await
        .unwrap();
    assert_eq!(sent[0].partition_id, 1);
    let sealed = read_all(&plain, &stream, &topic, 1).await;
    assert_eq!(sealed[0].payload.len(), "secret-0".len() + 28);
    let opened = read_all(&client, &stream, &topic, 1).await;
    assert_eq!(opened[0].payload_as_string().unwrap(), "secret-0");
}

#[tokio::test]
async fn given_a_consumer_when_it_commits_should_go_on_from_there() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 2).await;
    for partition in 0..2 {
        client
            .send_messages(&stream, &topic, &Partitioning::partition_id(partition), &texts("m", 10))
            .await
            .unwrap();
    }
    let build = |options: PollOptions| {
        client
            .consumer("audit", "orders", "created")
            .unwrap()
            .partitions([0, 1])
            .poll_options(options)
            .build()
            .unwrap()
    };
    let mut consumer = build(PollOptions::wait(IggyDuration::from_millis(50)));
    let mut received = 0;
    while received < 20 {
        let message = consumer.next().await.unwrap().unwrap();
        received += 1;
        if message.message.header.offset < 5 {
            consumer.commit(message.checkpoint()).await.unwrap();
        }
    }
    consumer.shutdown().await.unwrap();
    assert_eq!(
        client
            .get_consumer_offset(&Consumer::new(named("audit")), &stream, &topic, 0)
            .await
            .unwrap()
            .unwrap()
            .stored_offset,
        4
    );

    let auto = CommitPolicy::Auto(AutoCommit {
        every: Some(CommitEvery::Message),
        after: CommitAfter::Delivery,
        ..AutoCommit::default()
    });
    let mut consumer = build(PollOptions {
        commit: auto,
        ..PollOptions::wait(IggyDuration::from_millis(50))
    });
    let mut offsets = BTreeSet::new();
    for _ in 0..10 {
        let message = consumer.next().await.unwrap().unwrap();
        offsets.insert((message.partition_id, message.message.header.offset));
    }
    assert_eq!(offsets.len(), 10);
    assert!(
        offsets.iter().all(|(_, offset)| *offset >= 5),
        "both partitions go on after the commits"
    );
    consumer.seek(0, PollingStrategy::first()).unwrap();
    let again = consumer.next().await.unwrap().unwrap();
    assert_eq!((again.partition_id, again.message.header.offset), (0, 0));
    consumer.shutdown().await.unwrap();
}

#[tokio::test]
async fn given_groups_when_members_come_and_go_should_share_partitions() {
    let server = TestServer::start().await.unwrap();
    let first = connected(&server).await;
    let second = connected(&server).await;
    let (stream, topic) = with_topic(&first, 2).await;
    let group = named("billing");
    first.create_consumer_group(&stream, &topic, "billing").await.unwrap();
    first.join_consumer_group(&stream, &topic, &group).await.unwrap();
    let alone = first
        .sync_consumer_group(&stream, &topic, &group)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(alone.partitions, [0, 1]);
    assert!(
        second
            .sync_consumer_group(&stream, &topic, &group)
            .await
            .unwrap()
            .is_none()
    );
    second.join_consumer_group(&stream, &topic, &group).await.unwrap();
    assert_eq!(
        first
            .get_consumer_group(&stream, &topic, &group)
            .await
            .unwrap()
            .unwrap()
            .members
            .len(),
        2
    );
    second.leave_consumer_group(&stream, &topic, &group).await.unwrap();
    first.leave_consumer_group(&stream, &topic, &group).await.unwrap();
    first.delete_consumer_group(&stream, &topic, &group).await.unwrap();
    assert!(first.get_consumer_groups(&stream, &topic).await.unwrap().is_empty());
}

#[tokio::test]
async fn given_raw_requests_when_sent_should_be_routed_like_typed_ones() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    assert!(client.send_binary_request(1, &[]).await.unwrap().is_empty());
    for code in [38, 39, 40, 44, 45, 108] {
        assert_eq!(
            client.send_binary_request(code, &[]).await.unwrap_err().code(),
            ErrorCode::InvalidCommand
        );
    }
    let body = iggy::protocol::request::message::PollMessages {
        consumer: Consumer::new(named("raw")),
        stream: stream.clone(),
        topic: topic.clone(),
        partition_id: Some(0),
        strategy: PollingStrategy::first(),
        count: 10,
        auto_commit: false,
    };
    client
        .send_messages(&stream, &topic, &Partitioning::partition_id(0), &texts("raw", 2))
        .await
        .unwrap();
    let reply = client
        .send_binary_request(100, &iggy::protocol::Encode::to_bytes(&body))
        .await
        .unwrap();
    assert_eq!(reply[12..16], 2_u32.to_le_bytes());
    let replica = client.get_cluster_metadata().await.unwrap().nodes[0].replica_id;
    assert!(
        !client
            .send_binary_request_to_replica(12, &[], replica)
            .await
            .unwrap()
            .is_empty()
    );
    let refused = client
        .send_binary_request_to_replica(100, &iggy::protocol::Encode::to_bytes(&body), replica)
        .await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidCommand);
    let unknown = client.send_binary_request_to_replica(12, &[], 200).await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::InvalidIdentifier);
}

#[tokio::test]
async fn given_a_killed_server_when_a_persisted_producer_goes_on_should_leave_neither_gap_nor_duplicate() {
    let mut server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    client
        .create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap();
    let options = TopicCreateOptions {
        durability: Durability::Persisted,
        ..TopicCreateOptions::default()
    };
    client
        .create_topic(&named("orders"), "created", &options)
        .await
        .unwrap();
    let producer = client.producer("orders", "created").unwrap().idempotent().build();
    producer.init().await.unwrap();
    let sender = tokio::spawn(async move {
        for index in 0..400_u32 {
            producer
                .send_one(IggyMessage::new(index.to_string()).unwrap())
                .await
                .unwrap();
        }
    });
    while read_all(&client, &named("orders"), &named("created"), 0).await.len() < 50 {
        tokio::task::yield_now().await;
    }
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    tokio::time::timeout(Duration::from_mins(2), sender)
        .await
        .expect("the producer goes on")
        .unwrap();
    let messages = read_all(&client, &named("orders"), &named("created"), 0).await;
    let texts: Vec<_> = messages
        .iter()
        .map(|message| message.payload_as_string().unwrap().to_owned())
        .collect();
    assert_eq!(texts, (0..400).map(|index| index.to_string()).collect::<Vec<_>>());
}
