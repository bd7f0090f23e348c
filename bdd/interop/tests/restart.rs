//! A client that lives through the server's restarts, graceful and not.

use iggy::prelude::*;
use interop::{World, consumer, group, named, payloads, persisted_topic, soon, texts};

#[tokio::test(flavor = "multi_thread")]
async fn given_a_graceful_restart_should_keep_everything_for_the_same_client() {
    let mut world = World::with_topic(2).await;
    let reader = consumer("reader");
    world.send(0, &["a", "b"]).await;
    world
        .client
        .store_consumer_offset(&reader, &world.stream, &world.topic, Some(0), 0)
        .await
        .unwrap();
    let options = UserCreateOptions::default();
    world
        .client
        .create_user("bob", "bobs-secret", UserStatus::Active, None, &options)
        .await
        .unwrap();
    let token = world
        .client
        .create_personal_access_token("laptop", PersonalAccessTokenExpiry::NeverExpire)
        .await
        .unwrap();
    world
        .client
        .create_consumer_group(&world.stream, &world.topic, "billing")
        .await
        .unwrap();

    world.server.restart().await.unwrap();

    assert_eq!(soon(world.send(0, &["c"])).await, 2);
    let rest = world.poll(0, &reader, &PollingStrategy::next(), 10).await.unwrap();
    assert_eq!(payloads(&rest), ["b", "c"]);
    let groups = world
        .client
        .get_consumer_groups(&world.stream, &world.topic)
        .await
        .unwrap();
    assert_eq!(groups[0].name, "billing");
    world.client_of("bob", "bobs-secret").await.unwrap();
    world.client_by_token(&token.token).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_send_while_the_server_is_down_should_end_exactly_once() {
    let mut world = World::with_topic(1).await;
    world.send(0, &["before"]).await;
    world.server.stop().await.unwrap();
    let (client, stream, topic) = (&world.client, &world.stream, &world.topic);
    let partitioning = Partitioning::partition_id(0);
    let mut messages = texts(&["while down"]);
    let sending = client.send_messages(stream, topic, &partitioning, &mut messages);
    let (sent, restarted) = soon(async { tokio::join!(sending, world.server.restart()) }).await;
    restarted.unwrap();
    assert_eq!(sent.unwrap().confirmations[0].base_offset, 1);
    assert_eq!(world.everything(0).await, ["before", "while down"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_killed_server_should_have_every_acknowledged_message() {
    let mut world = World::start().await;
    world.create_topic(&persisted_topic(1)).await;
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        for number in 0..20 {
            let text = format!("round {round} message {number}");
            let offset = soon(world.send(0, &[&text])).await;
            assert_eq!(offset, acknowledged.len() as u64);
            acknowledged.push(text);
        }
        world.server.kill().await.unwrap();
        world.server.restart().await.unwrap();
    }
    assert_eq!(soon(world.everything(0)).await, acknowledged);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_group_member_should_go_on_after_a_restart() {
    let mut world = World::with_topic(1).await;
    world
        .client
        .create_consumer_group(&world.stream, &world.topic, "billing")
        .await
        .unwrap();
    world
        .client
        .join_consumer_group(&world.stream, &world.topic, &named("billing"))
        .await
        .unwrap();
    world
        .client
        .sync_consumer_group(&world.stream, &world.topic, &named("billing"))
        .await
        .unwrap()
        .unwrap();
    world.send(0, &["a", "b"]).await;
    let billing = group("billing");
    let polled = soon(async {
        loop {
            match world.poll(0, &billing, &PollingStrategy::next(), 1).await {
                Ok(polled) => return polled,
                Err(error) => assert_eq!(error.as_code(), 5009, "only a hand-over may refuse"),
            }
        }
    })
    .await;
    let checkpoint = polled.checkpoint().unwrap();
    world
        .client
        .store_consumer_position(&billing, &world.stream, &world.topic, &checkpoint)
        .await
        .unwrap();

    world.server.restart().await.unwrap();

    let group_id = named("billing");
    let assignment = soon(world.client.sync_consumer_group(&world.stream, &world.topic, &group_id))
        .await
        .unwrap();
    assert_eq!(assignment.expect("the membership outlives the restart").partitions, [0]);
    let rest = soon(world.poll(0, &billing, &PollingStrategy::next(), 10))
        .await
        .unwrap();
    assert_eq!(payloads(&rest), ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_stop_right_after_the_ready_line_should_be_a_graceful_one() {
    for _ in 0..5 {
        let mut server = iggy_testkit::TestServer::start().await.unwrap();
        server.stop().await.unwrap();
    }
}
