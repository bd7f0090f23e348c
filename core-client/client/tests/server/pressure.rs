//! Many calls at once, calls that are dropped, and messages at the limits.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use iggy::prelude::*;
use iggy_testkit::TestServer;

use crate::{connected, read_all, texts, with_topic};

fn payloads(messages: &[IggyMessage]) -> Vec<String> {
    let text = |message: &IggyMessage| String::from_utf8(message.payload.to_vec()).unwrap();
    messages.iter().map(text).collect()
}

#[tokio::test]
async fn given_ten_thousand_sends_at_once_when_some_are_refused_should_store_exactly_those_that_were_not() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 2).await;
    let sends = (0..10_000_u32).map(|number| {
        let (client, stream, topic) = (&client, &stream, &topic);
        async move {
            let message = [IggyMessage::new(number.to_string()).unwrap()];
            let partitioning = Partitioning::partition_id(number % 2);
            client.send_messages(stream, topic, &partitioning, &message).await
        }
    });
    let mut expected = BTreeSet::new();
    for (number, result) in join_all(sends).await.into_iter().enumerate() {
        match result {
            Ok(_) => {
                expected.insert(number.to_string());
            }
            Err(error) => assert_eq!(error.outcome(), Outcome::NotApplied, "{error}"),
        }
    }
    assert!(!expected.is_empty());
    let mut stored = Vec::new();
    for partition in 0..2 {
        stored.extend(payloads(&read_all(&client, &stream, &topic, partition).await));
    }
    assert_eq!(stored.len(), expected.len());
    assert_eq!(stored.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[tokio::test]
async fn given_a_thousand_calls_dropped_midway_should_go_on_and_store_nothing_twice() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let partitioning = Partitioning::partition_id(0);
    for number in 0..1_000_u64 {
        let messages = texts(&number.to_string(), 1);
        let send = client.send_messages(&stream, &topic, &partitioning, &messages);
        // Points of a send that takes some hundred microseconds; which one is hit does not matter.
        let _ = tokio::time::timeout(Duration::from_micros(number % 700), send).await;
    }
    let last = texts("last", 1);
    client
        .send_messages(&stream, &topic, &partitioning, &last)
        .await
        .unwrap();
    let stored = payloads(&read_all(&client, &stream, &topic, 0).await);
    assert_eq!(stored.last().map(String::as_str), Some("last-0"));
    assert_eq!(stored.iter().collect::<BTreeSet<_>>().len(), stored.len());
    client.ping().await.unwrap();
}

#[tokio::test]
async fn given_messages_at_the_limits_should_take_the_largest_and_refuse_what_is_beyond() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let partitioning = Partitioning::partition_id(0);
    let largest = vec![7_u8; 64_000_000];
    let message = [IggyMessage::new(largest.clone()).unwrap()];
    client
        .send_messages(&stream, &topic, &partitioning, &message)
        .await
        .unwrap();
    let read = read_all(&client, &stream, &topic, 0).await;
    assert_eq!(read.len(), 1);
    assert!(read[0].payload == largest);
    assert!(IggyMessage::new(vec![7_u8; 64_000_001]).is_err());
    assert!(IggyMessage::new("").is_err());
    client.ping().await.unwrap();
}

#[tokio::test]
async fn given_a_password_of_special_characters_when_in_a_connection_string_should_sign_in() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    // Credentials are not decoded, so that only ':', '@' and '?' cannot stand in them.
    let password = "p/w%41#&=+ é";
    client
        .create_user("o'brien", password, &UserCreateOptions::default())
        .await
        .unwrap();
    let address = server.tcp_address();
    let text = format!("iggy://o'brien:{password}@localhost:{}", address.port());
    let other = IggyClient::from_connection_string(&text).unwrap();
    other.connect().await.unwrap();
    assert!(other.get_me().await.is_ok());
}
