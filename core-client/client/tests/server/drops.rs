//! Every call dropped at each of its points, against a real server: nothing is lost, nothing comes twice.

use std::collections::BTreeMap;

use futures::StreamExt;
use iggy::prelude::*;
use iggy_testkit::{TestServer, insist, woken_at_most};

use crate::{connected, named, read_all, texts, with_topic};

fn policies() -> [CommitPolicy; 3] {
    let auto = AutoCommit {
        interval: IggyDuration::ZERO,
        every: Some(CommitEvery::Messages(4)),
        after: CommitAfter::Delivery,
    };
    [CommitPolicy::Manual, CommitPolicy::Auto(auto), CommitPolicy::OnRead]
}

async fn send(client: &IggyClient, partition: u32, count: usize) {
    let partitioning = Partitioning::partition_id(partition);
    client
        .send_messages(&named("orders"), &named("created"), &partitioning, &texts("m", count))
        .await
        .unwrap();
}

fn in_order(seen: &BTreeMap<u32, Vec<u64>>) -> bool {
    let whole = |offsets: &Vec<u64>| offsets.iter().copied().eq(0..offsets.len() as u64);
    seen.values().all(whole)
}

#[tokio::test]
async fn given_a_group_member_when_its_calls_are_dropped_at_every_point_should_hand_out_each_message_once() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 3).await;
    for (number, commit) in policies().into_iter().enumerate() {
        let name = format!("group-{number}");
        let already = 20 * number;
        let mut consumer = client
            .consumer_group(&name, "orders", "created")
            .unwrap()
            .poll_options(PollOptions {
                count: 4,
                commit,
                ..PollOptions::wait(IggyDuration::from_secs(5))
            })
            .build();
        insist(async || consumer.init().await.unwrap()).await;
        let sending = async {
            for _ in 0..10 {
                for partition in 0..3 {
                    send(&client, partition, 2).await;
                }
            }
        };
        let reading = async {
            let mut seen: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
            for _ in 0..3 * (already + 20) {
                let received = insist(async || consumer.next().await.unwrap().unwrap()).await;
                let offset = received.message.header.offset;
                seen.entry(received.partition_id).or_default().push(offset);
                if commit == CommitPolicy::Manual {
                    insist(async || consumer.commit(received.checkpoint()).await.unwrap()).await;
                }
            }
            seen
        };
        let (seen, ()) = tokio::join!(reading, sending);
        assert!(in_order(&seen) && seen.len() == 3, "{commit:?}: {seen:?}");
        insist(async || consumer.shutdown().await.unwrap()).await;

        let mut again = client.consumer_group(&name, "orders", "created").unwrap().build();
        again.init().await.unwrap();
        for partition in 0..3 {
            let group = Consumer::group(named(&name));
            let stored = client
                .get_consumer_offset(&group, &named("orders"), &named("created"), partition)
                .await
                .unwrap();
            let last = (already + 19) as u64;
            assert_eq!(stored.map(|stored| stored.stored_offset), Some(last), "{commit:?}");
        }
    }
}

#[tokio::test]
async fn given_streams_of_messages_and_batches_when_mixed_should_bring_each_message_once() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 1).await;
    send(&client, 0, 30).await;
    let mut consumer = client
        .consumer("audit", "orders", "created")
        .unwrap()
        .partitions([0])
        .poll_options(PollOptions {
            count: 10,
            ..PollOptions::wait(IggyDuration::from_secs(5))
        })
        .build();
    consumer.init().await.unwrap();
    let mut offsets = Vec::new();
    while offsets.len() < 30 {
        let received = StreamExt::next(&mut consumer).await.unwrap().unwrap();
        offsets.push(received.message.header.offset);
        let batch = consumer.batches().next().await.unwrap().unwrap();
        offsets.extend(batch.messages.iter().map(|message| message.header.offset));
    }
    assert!(offsets.iter().copied().eq(0..30), "{offsets:?}");
    consumer.shutdown().await.unwrap();
    assert!(StreamExt::next(&mut consumer).await.is_none());
}

#[tokio::test]
async fn given_sends_when_dropped_at_every_point_should_store_each_message_whole_and_at_most_once() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let mut done = Vec::new();
    for idempotent in [false, true] {
        let builder = client.producer("orders", "created").unwrap();
        let producer = if idempotent { builder.idempotent() } else { builder }.build();
        insist(async || producer.init().await.unwrap()).await;
        for number in 0..60 {
            let text = format!("{idempotent}-{number}");
            let send = producer.send_one(IggyMessage::new(text.clone()).unwrap());
            if let Some(sent) = woken_at_most(send, number % 8).await {
                sent.unwrap();
                done.push(text);
            }
        }
        producer.send_one(IggyMessage::new("the last").unwrap()).await.unwrap();
    }
    let stored = read_all(&client, &stream, &topic, 0).await;
    let mut texts: Vec<&str> = stored
        .iter()
        .map(|message| message.payload_as_string().unwrap())
        .collect();
    texts.retain(|text| *text != "the last");
    let mut once = texts.clone();
    once.dedup();
    assert_eq!(once, texts, "in a row twice");
    let mut sorted = texts.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), texts.len(), "twice");
    assert!(
        done.iter().all(|text| texts.contains(&text.as_str())),
        "acknowledged and missing"
    );
    assert!(
        done.len() > 10 && texts.len() > done.len(),
        "some were dropped under way"
    );
}

#[tokio::test]
async fn given_a_raw_fetch_when_sent_should_be_routed_and_stored_like_a_typed_one() {
    use iggy::protocol::codec::{Decode, Encode};
    use iggy::protocol::reply::message::FetchReply;
    use iggy::protocol::request::message::{FetchMessages, FetchTarget};
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 1).await;
    send(&client, 0, 3).await;
    let consumer = Consumer::new(named("audit"));
    let peek = PollOptions::default();
    let polled = client
        .poll_messages(
            &named("orders"),
            &named("created"),
            0,
            &consumer,
            PollingStrategy::first(),
            peek,
        )
        .await
        .unwrap();
    let fetch = FetchMessages {
        consumer: consumer.clone(),
        stream: named("orders"),
        topic: named("created"),
        wait_us: 0,
        request_timeout_us: 5_000_000,
        min_count: 1,
        count: 10,
        max_bytes: 4096,
        auto_commit: true,
        targets: vec![FetchTarget {
            partition_id: 0,
            strategy: PollingStrategy::next(),
            max_bytes: 4096,
            incarnation: polled.context.incarnation,
            owner_generation: 0,
        }],
    };
    let reply = client.send_binary_request(109, &fetch.to_bytes()).await.unwrap();
    let reply = FetchReply::from_bytes(&reply).unwrap();
    assert_eq!(reply.sections[0].0.messages_count, 3);
    let stored = client
        .get_consumer_offset(&consumer, &named("orders"), &named("created"), 0)
        .await
        .unwrap();
    assert_eq!(stored.unwrap().stored_offset, 2);
}
