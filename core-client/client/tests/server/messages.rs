//! Sending and polling.

use std::collections::BTreeSet;

use iggy::prelude::*;
use iggy_testkit::TestServer;

use crate::{connected, named, read_all, texts, with_topic};

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
async fn given_a_send_above_the_largest_frame_when_sent_should_be_refused_before_it_leaves() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let to = Partitioning::partition_id(0);
    let half = IggyMessage::new(vec![1; 40_000_000]).unwrap();
    let error = client
        .send_messages(&stream, &topic, &to, &[half.clone(), half])
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::InvalidSizeBytes, Outcome::NotApplied)
    );
    let largest = IggyMessage::new(vec![1; 64_000_000]).unwrap();
    client
        .send_messages(&stream, &topic, &to, std::slice::from_ref(&largest))
        .await
        .unwrap();
    let options = PollOptions {
        max_bytes: 344,
        ..PollOptions::default()
    };
    let consumer = Consumer::new(named("large"));
    let polled = client
        .poll_messages(&stream, &topic, 0, &consumer, PollingStrategy::first(), options)
        .await
        .unwrap();
    assert_eq!(
        polled.messages[0].payload, largest.payload,
        "a first message above the limit comes alone"
    );
}
