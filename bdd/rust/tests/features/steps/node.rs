//! The node itself: its state, its changes, its restarts.

use cucumber::{given, then, when};
use iggy::prelude::*;

use crate::world::{BddWorld, Node};

#[when("the node is pinged")]
async fn ping(world: &mut BddWorld) {
    let pinged = world.client().ping().await;
    world.keep(pinged);
}

#[then(regex = r#"^the client finds itself among the clients, signed in as "(.*)"$"#)]
async fn finds_itself(world: &mut BddWorld, name: String) {
    let client = world.client();
    let me = client.get_me().await.unwrap();
    let all = client.get_clients().await.unwrap();
    assert!(all.iter().any(|other| other.client_id == me.client.client_id));
    let found = client.get_client(me.client.client_id).await.unwrap();
    assert_eq!(found.expect("the client").client.user_id, me.client.user_id);
    let user = client.get_user(&Identifier::named(&name).unwrap()).await.unwrap();
    assert_eq!(me.client.user_id, user.expect("the user").user.id);
}

#[then(regex = r"^the statistics count (\d+) streams, (\d+) topics, (\d+) partitions and (\d+) messages$")]
async fn statistics(world: &mut BddWorld, streams: u32, topics: u32, partitions: u32, messages: u64) {
    let found = world.client().get_stats().await.unwrap().numbers;
    let counted = (
        found.streams_count,
        found.topics_count,
        found.partitions_count,
        found.messages_count,
    );
    assert_eq!(counted, (streams, topics, partitions, messages));
}

#[then(regex = r"^the cluster has (\d+) nodes and its leader is the node the client talks to$")]
async fn roster(world: &mut BddWorld, count: usize) {
    let found = world.client().get_cluster_metadata().await.unwrap();
    assert_eq!(found.nodes.len(), count);
    let leaders: Vec<_> = found
        .nodes
        .iter()
        .filter(|node| node.role == iggy::NodeRole::Leader)
        .collect();
    let port = Node::server().await.tcp_address().port();
    assert!(matches!(leaders[..], [leader] if leader.tcp == port), "{found:?}");
}

async fn changes(client: &IggyClient, start: ChangesStart) -> iggy::MetadataChanges {
    let request = GetMetadataChanges {
        start,
        since: None,
        until: None,
        limit: 1_000,
        groups: Vec::new(),
    };
    client.get_metadata_changes(&request).await.unwrap()
}

#[given("the changes are noted")]
async fn note_changes(world: &mut BddWorld) {
    let page = changes(&world.client(), ChangesStart::Latest).await;
    world.noted_changes = page.next.map(ChangesStart::After);
}

#[then("the changes since then include the creation of a stream and of a topic, in that order")]
async fn changes_since(world: &mut BddWorld) {
    let noted = world.noted_changes.take().expect("noted changes");
    let page = changes(&world.client(), noted).await;
    let kinds: Vec<String> = page.records.iter().map(|record| format!("{record:?}")).collect();
    let stream = kinds.iter().position(|kind| kind.contains("StreamCreated"));
    let topic = kinds.iter().position(|kind| kind.contains("TopicCreated"));
    assert!(stream.is_some() && stream < topic, "{kinds:?}");
}

#[when("a snapshot of the test entry is taken")]
async fn snapshot(world: &mut BddWorld) {
    let types = vec![SnapshotType::Test];
    let taken = world.client().snapshot(SnapshotCompression::Deflated, types).await;
    world.answer = world.keep(taken).unwrap_or_default().to_vec();
}

#[then("the snapshot is a zip archive")]
fn is_zip(world: &mut BddWorld) {
    world.expect_no_error();
    assert!(world.answer.starts_with(b"PK"));
}

#[when(regex = r"^the raw command (\d+) is sent$")]
async fn raw(world: &mut BddWorld, code: u32) {
    let answered = world.client().send_binary_request(code, &[]).await;
    world.keep(answered);
}

#[when("the server is restarted")]
async fn restart(_: &mut BddWorld) {
    let mut server = Node::server().await;
    server.stop().await.unwrap();
    server.restart().await.unwrap();
}

#[when("the server is killed and started again")]
async fn kill(_: &mut BddWorld) {
    let mut server = Node::server().await;
    server.kill().await.unwrap();
    server.restart().await.unwrap();
}

#[when("the server is stopped")]
async fn stop(_: &mut BddWorld) {
    Node::server().await.stop().await.unwrap();
}

#[when("the server is started")]
async fn start(_: &mut BddWorld) {
    Node::server().await.restart().await.unwrap();
}
