//! Streams, topics, groups and raw requests.

use iggy::prelude::*;
use iggy_testkit::TestServer;

use crate::{connected, named, texts, with_topic};

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
