//! Statistics, clients, snapshots, the roster, metadata changes and raw requests.

use bytes::{BufMut, Bytes, BytesMut};
use iggy::prelude::*;
use interop::{World, code_of, named};

const INVALID_COMMAND: u32 = 3;
const INVALID_IDENTIFIER: u32 = 6;
const STATS: u32 = 10;
const POLL: u32 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn given_some_messages_should_count_them_in_the_statistics() {
    let world = World::with_topic(2).await;
    world.send(0, &["a", "b"]).await;
    world
        .client
        .create_consumer_group(&world.stream, &world.topic, "billing")
        .await
        .unwrap();
    let stats = world.client.get_stats().await.unwrap();
    assert_eq!(
        (stats.streams_count, stats.topics_count, stats.partitions_count),
        (1, 1, 2)
    );
    assert_eq!((stats.messages_count, stats.consumer_groups_count), (2, 1));
    assert!(stats.segments_count >= 1);
    assert!(stats.clients_count >= 1);
    assert_eq!(Some(stats.process_id), world.server.process_id());
    assert!(!stats.hostname.is_empty() && !stats.os_name.is_empty() && !stats.iggy_server_version.is_empty());
    assert!(stats.total_memory.as_bytes_u64() > 0 && stats.total_disk_space.as_bytes_u64() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_two_clients_should_list_both() {
    let world = World::start().await;
    let another = world.another_client().await;
    let me = another.get_me().await.unwrap();
    let clients = world.client.get_clients().await.unwrap();
    assert_eq!(clients.len(), 2);
    assert!(clients.iter().any(|client| client.client_id == me.client_id));
    let found = world.client.get_client(me.client_id).await.unwrap().unwrap();
    assert_eq!((found.user_id, found.address), (Some(0), me.address));
    assert!(world.client.get_client(u32::MAX).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_one_node_should_lead_its_roster_at_its_own_port() {
    let world = World::start().await;
    let roster = world.client.get_cluster_metadata().await.unwrap();
    assert_eq!(roster.nodes.len(), 1);
    let node = &roster.nodes[0];
    assert_eq!(
        (node.replica_id, node.role, node.status),
        (0, ClusterNodeRole::Leader, ClusterNodeStatus::Healthy)
    );
    assert_eq!(node.endpoints.tcp, world.server.tcp_address().port());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_snapshot_should_be_a_zip_archive() {
    let world = World::start().await;
    for compression in [SnapshotCompression::Stored, SnapshotCompression::Deflated] {
        let snapshot = world
            .client
            .snapshot(compression, vec![SystemSnapshotType::All])
            .await
            .unwrap();
        assert!(snapshot.0.starts_with(b"PK"), "{compression:?}");
        assert!(snapshot.0.len() > 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn given_metadata_changes_should_read_them_page_by_page_from_a_cursor() {
    let world = World::with_topic(1).await;
    let groups = vec![MetadataChangeGroup::Streams, MetadataChangeGroup::Topics];
    let earliest = MetadataChangesQuery {
        start: MetadataChangeStart::Earliest,
        groups: groups.clone(),
        limit: 1,
        ..MetadataChangesQuery::default()
    };
    let first = world.client.get_metadata_changes(&earliest).await.unwrap();
    assert_eq!(
        (first.status, first.phase),
        (MetadataChangeStatus::Ok, MetadataChangePhase::Changes)
    );
    assert!(first.has_more);
    assert!(matches!(&first.records[0].change, MetadataChange::StreamCreated(stream) if stream.name == "orders"));

    let next = MetadataChangesQuery {
        start: MetadataChangeStart::After(first.next.unwrap()),
        ..earliest.clone()
    };
    let second = world.client.get_metadata_changes(&next).await.unwrap();
    assert!(matches!(&second.records[0].change, MetadataChange::TopicCreated(topic) if topic.name == "created"));

    let latest = MetadataChangesQuery {
        start: MetadataChangeStart::Latest,
        limit: 100,
        ..earliest.clone()
    };
    let end = world.client.get_metadata_changes(&latest).await.unwrap();
    assert!(end.records.is_empty());
    world.client.delete_stream(&world.stream).await.unwrap();
    let after = MetadataChangesQuery {
        start: MetadataChangeStart::After(end.next.unwrap()),
        ..latest
    };
    let deleted = world.client.get_metadata_changes(&after).await.unwrap();
    assert!(
        deleted
            .records
            .iter()
            .any(|record| matches!(record.change, MetadataChange::StreamDeleted(_))),
        "{:?}",
        deleted.records
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_the_current_state_should_list_what_exists_and_then_go_on_with_changes() {
    let world = World::with_topic(2).await;
    let mut query = MetadataChangesQuery {
        start: MetadataChangeStart::Current(None),
        groups: vec![
            MetadataChangeGroup::Streams,
            MetadataChangeGroup::Topics,
            MetadataChangeGroup::Partitions,
        ],
        limit: 1,
        ..MetadataChangesQuery::default()
    };
    let mut items = Vec::new();
    loop {
        let page = world.client.get_metadata_changes(&query).await.unwrap();
        items.extend(page.items);
        match page.current_page_token {
            Some(token) => query.start = MetadataChangeStart::Current(Some(token)),
            None => break,
        }
    }
    assert!(
        items
            .iter()
            .any(|item| matches!(item, MetadataCurrentItem::Stream(stream) if stream.name == "orders"))
    );
    assert!(
        items
            .iter()
            .any(|item| matches!(item, MetadataCurrentItem::Topic(topic) if topic.name == "created"))
    );
    assert!(
        items
            .iter()
            .any(|item| matches!(item, MetadataCurrentItem::Partitions(found) if found.partitions_count == 2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_raw_requests_should_answer_or_refuse_as_typed_ones() {
    let world = World::with_topic(1).await;
    assert!(
        world
            .client
            .send_binary_request(STATS, Bytes::new())
            .await
            .unwrap()
            .len()
            > 108
    );
    assert!(
        world
            .client
            .send_binary_request_to_replica(STATS, Bytes::new(), 0)
            .await
            .unwrap()
            .len()
            > 108
    );
    let elsewhere = world
        .client
        .send_binary_request_to_replica(STATS, Bytes::new(), 7)
        .await;
    assert_eq!(code_of(elsewhere), INVALID_IDENTIFIER);
    assert!(world.client.send_binary_request(9_999, Bytes::new()).await.is_err());
    let to_replica = world.client.send_binary_request_to_replica(POLL, raw_poll(), 0).await;
    assert_eq!(code_of(to_replica), INVALID_COMMAND);
    world
        .client
        .ping()
        .await
        .expect("a refusal leaves the connection as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_raw_poll_should_answer_at_once_with_the_batch() {
    let world = World::with_topic(1).await;
    world.send(0, &["hello"]).await;
    let reply = world.client.send_binary_request(POLL, raw_poll()).await.unwrap();
    assert_eq!(&reply[..4], &0_u32.to_le_bytes(), "partition");
    assert_eq!(&reply[12..16], &1_u32.to_le_bytes(), "count of messages");
    assert!(reply.ends_with(b"hello"));
}

/// Body of the plain poll (code 100): consumer, stream, topic, partition, strategy, count, no commit.
fn raw_poll() -> Bytes {
    let mut body = BytesMut::new();
    body.put_u8(1);
    for name in ["reader", "orders", "created"] {
        body.put_u8(2);
        body.put_u8(u8::try_from(name.len()).expect("the name is short"));
        body.put_slice(name.as_bytes());
    }
    body.put_u8(1);
    body.put_u32_le(0);
    body.put_u8(3);
    body.put_u64_le(0);
    body.put_u32_le(10);
    body.put_u8(0);
    body.freeze()
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_numeric_looking_name_should_still_be_a_name() {
    let world = World::start().await;
    world
        .client
        .create_stream("7", &StreamCreateOptions::default())
        .await
        .unwrap();
    assert_eq!(world.client.get_stream(&named("7")).await.unwrap().unwrap().name, "7");
}
