//! Consumer groups with two members, call by call.

use iggy::prelude::*;
use interop::{World, code_of, group, named, payloads, soon};

const GROUP_NAME_ALREADY_EXISTS: u32 = 5004;
const PARTITION_NOT_OWNED: u32 = 5009;

async fn sync(world: &World, client: &IggyClient) -> Vec<u32> {
    let assignment = client
        .sync_consumer_group(&world.stream, &world.topic, &named("billing"))
        .await
        .unwrap();
    assignment.expect("the client is a member").partitions
}

/// A partition changes hands in steps, so a member asks until the assignment is the wanted one.
async fn sync_until(world: &World, client: &IggyClient, partitions: usize) -> Vec<u32> {
    soon(async {
        loop {
            let assigned = sync(world, client).await;
            if assigned.len() == partitions {
                return assigned;
            }
        }
    })
    .await
}

/// Reads from a partition that the client has just been assigned: refused until its former owner let go.
async fn poll_when_owned(world: &World, client: &IggyClient, partition: u32) -> PolledMessages {
    soon(async {
        loop {
            let (next, options) = (
                PollingStrategy::next(),
                PollOptions {
                    count: 10,
                    ..PollOptions::default()
                },
            );
            let consumer = group("billing");
            match client
                .poll_messages(&world.stream, &world.topic, partition, &consumer, &next, options)
                .await
            {
                Err(error) if error.as_code() == PARTITION_NOT_OWNED => {
                    sync(world, client).await;
                }
                other => return other.unwrap(),
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_group_should_be_found_until_deleted() {
    let world = World::with_topic(4).await;
    let (client, stream, topic) = (&world.client, &world.stream, &world.topic);
    let created = client.create_consumer_group(stream, topic, "billing").await.unwrap();
    assert_eq!(
        (created.name.as_str(), created.members_count, created.partitions_count),
        ("billing", 0, 4)
    );
    let again = client.create_consumer_group(stream, topic, "billing").await;
    assert_eq!(code_of(again), GROUP_NAME_ALREADY_EXISTS);
    assert!(
        client
            .sync_consumer_group(stream, topic, &named("billing"))
            .await
            .unwrap()
            .is_none()
    );
    let listed = client.get_consumer_groups(stream, topic).await.unwrap();
    assert_eq!(listed.iter().map(|group| group.id).collect::<Vec<_>>(), [created.id]);
    let found = client
        .get_consumer_group(stream, topic, &named("billing"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.id, found.members.len()), (created.id, 0));
    client
        .delete_consumer_group(stream, topic, &named("billing"))
        .await
        .unwrap();
    assert!(
        client
            .get_consumer_group(stream, topic, &named("billing"))
            .await
            .unwrap()
            .is_none()
    );
    assert!(client.get_consumer_groups(stream, topic).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_one_member_should_own_every_partition_and_commit() {
    let world = World::with_topic(4).await;
    let (client, stream, topic) = (&world.client, &world.stream, &world.topic);
    client.create_consumer_group(stream, topic, "billing").await.unwrap();
    world.send(1, &["a", "b", "c"]).await;
    client
        .join_consumer_group(stream, topic, &named("billing"))
        .await
        .unwrap();
    client
        .join_consumer_group(stream, topic, &named("billing"))
        .await
        .expect("joining again changes nothing");
    assert_eq!(sync_until(&world, client, 4).await, [0, 1, 2, 3]);
    let polled = poll_when_owned(&world, client, 1).await;
    assert_eq!(payloads(&polled), ["a", "b", "c"]);
    let second = polled.checkpoint_at(1).unwrap();
    client
        .store_consumer_position(&group("billing"), stream, topic, &second)
        .await
        .unwrap();
    let stored = client
        .get_consumer_offset(&group("billing"), stream, topic, Some(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.stored_offset, 1);
    let details = client
        .get_consumer_group(stream, topic, &named("billing"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((details.members_count, details.members[0].partitions_count), (1, 4));
    assert_eq!(client.get_me().await.unwrap().consumer_groups_count, 1);
    client
        .leave_consumer_group(stream, topic, &named("billing"))
        .await
        .unwrap();
    let twice = client.leave_consumer_group(stream, topic, &named("billing")).await;
    assert!(twice.is_err(), "a client that is no member cannot leave");
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_second_member_should_share_partitions_and_fence_the_first() {
    let world = World::with_topic(4).await;
    let (stream, topic, billing) = (&world.stream, &world.topic, named("billing"));
    let (a, b) = (&world.client, &world.another_client().await);
    a.create_consumer_group(stream, topic, "billing").await.unwrap();
    for partition in 0..4 {
        world.send(partition, &["one", "two", "three"]).await;
    }
    a.join_consumer_group(stream, topic, &billing).await.unwrap();
    sync_until(&world, a, 4).await;
    let mut checkpoints = Vec::new();
    for partition in 0..4 {
        let polled = poll_when_owned(&world, a, partition).await;
        checkpoints.push(polled.checkpoint_at(1).unwrap());
        let checkpoint = &checkpoints[partition as usize];
        a.store_consumer_position(&group("billing"), stream, topic, checkpoint)
            .await
            .unwrap();
    }

    b.join_consumer_group(stream, topic, &billing).await.unwrap();
    let of_b = sync_until(&world, b, 2).await;
    let of_a = sync_until(&world, a, 2).await;
    let mut all = [of_a, of_b.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3], "every partition has one owner");

    let moved = of_b[0];
    let resumed = poll_when_owned(&world, b, moved).await;
    assert_eq!(
        payloads(&resumed),
        ["three"],
        "the new owner goes on where the old one committed"
    );
    let (next, options) = (PollingStrategy::next(), PollOptions::default());
    let lost = a
        .poll_messages(stream, topic, moved, &group("billing"), &next, options)
        .await;
    assert_eq!(code_of(lost), PARTITION_NOT_OWNED);
    let stale = &checkpoints[moved as usize];
    let late = a.store_consumer_position(&group("billing"), stream, topic, stale).await;
    assert_eq!(code_of(late), PARTITION_NOT_OWNED);

    b.leave_consumer_group(stream, topic, &billing).await.unwrap();
    assert_eq!(sync_until(&world, a, 4).await, [0, 1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_logout_should_end_the_membership() {
    let world = World::with_topic(2).await;
    let (stream, topic, billing) = (&world.stream, &world.topic, named("billing"));
    world
        .client
        .create_consumer_group(stream, topic, "billing")
        .await
        .unwrap();
    let member = world.another_client().await;
    member.join_consumer_group(stream, topic, &billing).await.unwrap();
    let members = async || {
        world
            .client
            .get_consumer_group(stream, topic, &billing)
            .await
            .unwrap()
            .unwrap()
            .members_count
    };
    assert_eq!(members().await, 1);
    member.logout_user().await.unwrap();
    assert_eq!(members().await, 0);
}
