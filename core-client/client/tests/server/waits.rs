//! Reads that wait, and grouped fetches, against a real server: under load, with clients that give up and vanish, over many
//! partitions, and within their limits.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use iggy::prelude::*;
use iggy_protocol::limits::MAX_IN_FLIGHT;
use iggy_protocol::reply::message::{FetchReply, FetchSection, PartitionRoute};
use iggy_protocol::request::message::{FetchMessages, FetchTarget, GetPartitionRoute};
use iggy_protocol::{Command, Decode, Encode};
use iggy_testkit::TestServer;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::{connected, named, texts, with_topic};

/// A hang is a failure after this time; nothing here takes more than a tenth of it.
const DEADLINE: Duration = Duration::from_mins(2);

fn encoded(request: &impl Encode) -> Vec<u8> {
    let mut body = bytes::BytesMut::new();
    request.encode(&mut body);
    body.to_vec()
}

async fn incarnation(client: &IggyClient, stream: &Identifier, topic: &Identifier, partition_id: u32) -> u64 {
    let request = GetPartitionRoute {
        stream: stream.clone(),
        topic: topic.clone(),
        partition_id,
    };
    let code = Command::GetPartitionRoute.code();
    let reply = client.send_binary_request(code, &encoded(&request)).await.unwrap();
    PartitionRoute::from_bytes(&reply).unwrap().incarnation
}

/// A reader that fetches partitions together and goes on where it was.
struct Fetcher<'a> {
    client: &'a IggyClient,
    asked: FetchMessages,
    /// Messages read of each partition.
    read: BTreeMap<u32, u32>,
}

impl<'a> Fetcher<'a> {
    async fn new(client: &'a IggyClient, stream: &Identifier, topic: &Identifier, partitions: u32) -> Self {
        let mut targets = Vec::new();
        for partition_id in 0..partitions {
            targets.push(FetchTarget {
                partition_id,
                strategy: PollingStrategy::Offset(0),
                max_bytes: 1 << 20,
                incarnation: incarnation(client, stream, topic, partition_id).await,
                owner_generation: 0,
            });
        }
        Self {
            client,
            asked: FetchMessages {
                consumer: Consumer::new(named("fetcher")),
                stream: stream.clone(),
                topic: topic.clone(),
                wait_us: 0,
                request_timeout_us: 10_000_000,
                min_count: 1,
                count: 1_000,
                max_bytes: 1 << 20,
                auto_commit: false,
                targets,
            },
            read: BTreeMap::new(),
        }
    }

    fn limit(&mut self, count: u32, max_bytes: u32) {
        (self.asked.count, self.asked.max_bytes) = (count, max_bytes);
        for target in &mut self.asked.targets {
            target.max_bytes = max_bytes;
        }
    }

    /// Fetches once; the sections and all bytes of records.
    async fn fetch(&mut self) -> (Vec<FetchSection>, usize) {
        let code = Command::FetchMessages.code();
        let reply = self
            .client
            .send_binary_request(code, &encoded(&self.asked))
            .await
            .unwrap();
        let reply = FetchReply::from_bytes(&reply).unwrap();
        reply.validate().unwrap();
        let bytes = reply.sections.iter().map(|(_, records)| records.len()).sum();
        let sections: Vec<FetchSection> = reply.sections.into_iter().map(|(section, _)| section).collect();
        for section in sections.iter().filter(|section| section.status == 0) {
            *self.read.entry(section.partition_id).or_default() += section.messages_count;
            let target = &mut self.asked.targets[section.partition_id as usize];
            target.strategy = PollingStrategy::Offset(section.next_offset);
        }
        let messages: u32 = sections.iter().map(|section| section.messages_count).sum();
        assert!(messages <= self.asked.count);
        (sections, bytes)
    }
}

async fn fill(client: &IggyClient, stream: &Identifier, topic: &Identifier, partition: u32, messages: usize) {
    let partitioning = Partitioning::partition_id(partition);
    for chunk in texts("message", messages).chunks(200) {
        client.send_messages(stream, topic, &partitioning, chunk).await.unwrap();
    }
}

#[tokio::test]
async fn given_a_busy_partition_when_fetched_with_quiet_ones_should_leave_them_their_part_every_time() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 6).await;
    fill(&client, &stream, &topic, 0, 4_000).await;
    for quiet in 1..6 {
        fill(&client, &stream, &topic, quiet, 3).await;
    }
    let mut fetcher = Fetcher::new(&client, &stream, &topic, 6).await;
    fetcher.limit(60, 20_000);
    fetcher.fetch().await;
    let quiet: Vec<u32> = (1..6).map(|partition| fetcher.read[&partition]).collect();
    assert_eq!(quiet, [3; 5], "the first fetch brings what the quiet ones have");
    assert!(fetcher.read[&0] > 3, "and the busy one has the rest");
}

/// Limits in which one message fits: each partition comes first in its turn, however busy the others are.
#[tokio::test]
async fn given_room_for_one_message_when_fetched_again_and_again_should_read_every_partition() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 5).await;
    for partition in 0..5 {
        fill(&client, &stream, &topic, partition, 50).await;
    }
    let mut fetcher = Fetcher::new(&client, &stream, &topic, 5).await;
    fetcher.limit(1, 344);
    for _ in 0..50 {
        fetcher.fetch().await;
    }
    assert_eq!(fetcher.read.values().copied().collect::<Vec<_>>(), [10; 5]);
}

#[tokio::test]
async fn given_a_fetch_larger_than_the_server_reads_at_once_when_asked_should_be_cut_to_that() {
    let server = TestServer::builder()
        .config("sharding.deferred_poll_max_read_bytes", "64 KiB")
        .start()
        .await
        .unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 4).await;
    for partition in 0..4 {
        fill(&client, &stream, &topic, partition, 1_000).await;
    }
    let mut fetcher = Fetcher::new(&client, &stream, &topic, 4).await;
    fetcher.limit(1_000_000, 1 << 20);
    let (sections, bytes) = fetcher.fetch().await;
    assert!(bytes <= 64 << 10, "{bytes} bytes");
    assert!(
        bytes > 32 << 10,
        "{bytes} bytes are less than the limit leaves room for"
    );
    assert!(sections.iter().all(|section| section.messages_count > 0));
}

#[tokio::test]
async fn given_a_thousand_partitions_when_fetched_should_bring_what_there_is_and_refuse_only_the_one_that_is_gone() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1_000).await;
    let mut fetcher = Fetcher::new(&client, &stream, &topic, 1_000).await;
    fetcher.asked.targets[7].incarnation += 1_000_000;
    fetcher.asked.wait_us = 5_000_000;
    fetcher.asked.request_timeout_us = 15_000_000;
    fetcher.asked.min_count = 3;
    let sending = async {
        for partition in [7, 500, 3, 999] {
            fill(&client, &stream, &topic, partition, 1).await;
        }
    };
    let ((sections, _), ()) = tokio::join!(fetcher.fetch(), sending);
    assert_eq!(sections.len(), 1_000);
    let brought = sections.iter().filter(|section| section.messages_count > 0);
    let brought: Vec<u32> = brought.map(|section| section.partition_id).collect();
    assert_eq!(brought, [3, 500, 999]);
    let refused: Vec<&FetchSection> = sections.iter().filter(|section| section.status != 0).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(
        (refused[0].partition_id, refused[0].status),
        (7, ErrorCode::HistoryUnavailable.code())
    );
}

/// Many readers with waits of every length, who give up midway and lose their connections, while messages come: each reads
/// each message of its partition once, in order, and no wait is left at the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn given_many_waiting_readers_when_clients_give_up_and_vanish_should_deliver_every_message_to_each() {
    const PARTITIONS: u32 = 4;
    const MESSAGES: u64 = 300;
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, PARTITIONS).await;
    let mut tasks = Vec::new();
    for partition in 0..PARTITIONS {
        let (client, stream, topic) = (client.clone(), stream.clone(), topic.clone());
        tasks.push(tokio::spawn(async move {
            for number in 0..MESSAGES {
                let message = [IggyMessage::new(number.to_string()).unwrap()];
                let partitioning = Partitioning::partition_id(partition);
                client
                    .send_messages(&stream, &topic, &partitioning, &message)
                    .await
                    .unwrap();
            }
        }));
    }
    for reader in 0..32_u32 {
        let connection_string = server.connection_string();
        let (stream, topic) = (stream.clone(), topic.clone());
        tasks.push(tokio::spawn(async move {
            let mut random = StdRng::seed_from_u64(reader.into());
            let connect = || async {
                let client = IggyClient::from_connection_string(&connection_string).unwrap();
                client.connect().await.unwrap();
                client
            };
            let mut client = connect().await;
            let consumer = Consumer::new(Identifier::numeric(reader));
            let mut next = 0;
            while next < MESSAGES {
                let options = PollOptions {
                    min_count: random.random_range(1..6),
                    max_bytes: random.random_range(344..4_000),
                    ..PollOptions::wait(IggyDuration::from_micros(random.random_range(1..200_000)))
                };
                let start = PollingStrategy::offset(next);
                let poll = client.poll_messages(&stream, &topic, reader % PARTITIONS, &consumer, &start, options);
                match random.random_range(0..10) {
                    0 => {
                        let patience = Duration::from_micros(random.random_range(1..5_000));
                        let _ = tokio::time::timeout(patience, poll).await;
                    }
                    1 => {
                        let patience = Duration::from_micros(random.random_range(1..5_000));
                        let _ = tokio::time::timeout(patience, poll).await;
                        client.shutdown().await.unwrap();
                        client = connect().await;
                    }
                    _ => {
                        for message in poll.await.unwrap().messages {
                            assert_eq!(message.payload, next.to_string().as_bytes());
                            next += 1;
                        }
                    }
                }
            }
        }));
    }
    let all = tokio::time::timeout(DEADLINE, try_join_all(tasks)).await;
    all.expect("every reader comes to the end").unwrap();
}

#[tokio::test]
async fn given_positions_of_a_topic_that_was_created_again_when_used_should_be_refused_and_change_nothing() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let consumer = Consumer::new(named("reader"));
    fill(&client, &stream, &topic, 0, 5).await;
    let poll = |start: ReadStart| client.poll_messages(&stream, &topic, 0, &consumer, start, PollOptions::default());
    let old = poll(PollingStrategy::first().into()).await.unwrap();
    client.delete_topic(&stream, &topic).await.unwrap();
    let options = TopicCreateOptions {
        partitions_count: Some(1),
        ..TopicCreateOptions::default()
    };
    client.create_topic(&stream, "created", &options).await.unwrap();
    fill(&client, &stream, &topic, 0, 8).await;
    let refusal = poll(old.continuation().into()).await.unwrap_err();
    assert_eq!(refusal.code(), ErrorCode::HistoryUnavailable);
    let checkpoint = old.checkpoint().expect("it has messages");
    let refusal = client
        .store_consumer_position(&consumer, &stream, &topic, &checkpoint)
        .await;
    assert_eq!(refusal.unwrap_err().code(), ErrorCode::HistoryUnavailable);
    let next = poll(PollingStrategy::next().into()).await.unwrap();
    assert_eq!(next.messages.len(), 8, "no offset was stored");
}

/// A client that is gone with its runtime, without a word.
fn vanish_while_reading(connection_string: String) {
    let client = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let kept = runtime.block_on(async {
            let client = IggyClient::from_connection_string(&connection_string).unwrap();
            client.connect().await.unwrap();
            let options = PollOptions {
                commit: CommitPolicy::OnRead,
                ..PollOptions::wait(IggyDuration::from_secs(20))
            };
            let consumer = client.consumer("audit", "orders", "created").unwrap();
            let mut consumer = consumer.partitions([0, 1]).poll_options(options).build();
            consumer.init().await.unwrap();
            // Long enough for its fetch to wait at the server; were it too short, the test would prove less.
            let _ = tokio::time::timeout(Duration::from_millis(300), consumer.next()).await;
            (client, consumer)
        });
        // First the tasks that could say goodbye, then the sockets.
        drop(runtime);
        drop(kept);
    });
    client.join().unwrap();
}

#[tokio::test]
async fn given_a_client_that_vanishes_while_its_fetch_waits_should_not_read_for_it_any_more() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 2).await;
    let string = server.connection_string();
    tokio::task::spawn_blocking(|| vanish_while_reading(string))
        .await
        .unwrap();
    let alone = async {
        while client.get_clients().await.unwrap().len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), alone)
        .await
        .expect("the client is gone");
    fill(&client, &stream, &topic, 0, 5).await;
    let consumer = Consumer::new(named("audit"));
    for partition in [0, 1] {
        let stored = client.get_consumer_offset(&consumer, &stream, &topic, partition).await;
        assert!(
            stored.unwrap().is_none(),
            "nobody received a message of partition {partition}"
        );
    }
    client.shutdown().await.unwrap();
}

/// The cancel of a wait frees a place among the requests in flight, so it must get through when none is free.
#[tokio::test]
async fn given_a_wait_in_every_place_of_a_connection_when_one_is_given_up_should_serve_what_comes_next() {
    let server = TestServer::builder()
        .config("sharding.deferred_poll_max_pending_per_session", "1024")
        .config("sharding.deferred_poll_max_wait", "10 min")
        .start()
        .await
        .unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let waits: Vec<_> = (0..MAX_IN_FLIGHT)
        .map(|_| {
            let (client, stream, topic) = (client.clone(), stream.clone(), topic.clone());
            tokio::spawn(async move {
                let consumer = Consumer::new(named("reader"));
                let start = PollingStrategy::first();
                let options = PollOptions::wait(IggyDuration::from_secs(600));
                client
                    .poll_messages(&stream, &topic, 0, &consumer, start, options)
                    .await
            })
        })
        .collect();
    let places = MAX_IN_FLIGHT as u64;
    server
        .until_metric("waiting_reads", |waiting| waiting == places)
        .await
        .unwrap();
    let connections = server.metric("connections_accepted_total").await.unwrap();
    waits[0].abort();
    tokio::time::timeout(DEADLINE, client.ping())
        .await
        .expect("an answer")
        .unwrap();
    let now = server.metric("connections_accepted_total").await.unwrap();
    assert!(now <= connections, "the client gave its connection up to be heard");
    waits.iter().for_each(tokio::task::JoinHandle::abort);
}
