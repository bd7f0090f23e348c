//! Consumer offsets.

use iggy::prelude::*;
use interop::{World, code_of, consumer, named, payloads};

const FEATURE_UNAVAILABLE: u32 = 5;
const CONSUMER_OFFSET_NOT_FOUND: u32 = 3021;
const INVALID_OFFSET: u32 = 4100;

async fn stored(world: &World, consumer: &Consumer) -> Option<u64> {
    let found = world
        .client
        .get_consumer_offset(consumer, &world.stream, &world.topic, Some(0))
        .await
        .unwrap();
    found.map(|offset| offset.stored_offset)
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_stored_position_should_resume_after_it() {
    let world = World::with_topic(1).await;
    world.send(0, &["a", "b", "c"]).await;
    let reader = consumer("reader");
    let polled = world.poll(0, &reader, &PollingStrategy::next(), 2).await.unwrap();
    let checkpoint = polled.checkpoint().unwrap();
    world
        .client
        .store_consumer_position(&reader, &world.stream, &world.topic, &checkpoint)
        .await
        .unwrap();
    assert_eq!(stored(&world, &reader).await, Some(1));
    let rest = world.poll(0, &reader, &PollingStrategy::next(), 10).await.unwrap();
    assert_eq!(payloads(&rest), ["c"]);
    let checkpoint = rest.checkpoint().unwrap();
    world
        .client
        .store_consumer_position(&reader, &world.stream, &world.topic, &checkpoint)
        .await
        .unwrap();
    assert!(
        world
            .poll(0, &reader, &PollingStrategy::next(), 10)
            .await
            .unwrap()
            .messages
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_offsets_by_number_should_store_overwrite_and_delete() {
    let world = World::with_topic(1).await;
    world.send(0, &["a", "b", "c"]).await;
    let reader = consumer("reader");
    assert_eq!(stored(&world, &reader).await, None);
    for offset in [2, 0] {
        let client = &world.client;
        client
            .store_consumer_offset(&reader, &world.stream, &world.topic, Some(0), offset)
            .await
            .unwrap();
        assert_eq!(stored(&world, &reader).await, Some(offset));
    }
    let delete = async || {
        world
            .client
            .delete_consumer_offset(&reader, &world.stream, &world.topic, Some(0))
            .await
    };
    delete().await.unwrap();
    assert_eq!(stored(&world, &reader).await, None);
    assert_eq!(code_of(delete().await), CONSUMER_OFFSET_NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_an_offset_beyond_the_end_should_refuse_it() {
    let world = World::with_topic(1).await;
    world.send(0, &["a"]).await;
    let reader = consumer("reader");
    let beyond = world
        .client
        .store_consumer_offset(&reader, &world.stream, &world.topic, Some(0), 1)
        .await;
    assert_eq!(code_of(beyond), INVALID_OFFSET);
    assert_eq!(stored(&world, &reader).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_consumers_of_each_kind_should_keep_their_offsets_apart() {
    let world = World::with_topic(1).await;
    world.send(0, &["a", "b", "c"]).await;
    let external = Consumer::external_group(named("reader"));
    let plain = consumer("reader");
    let client = &world.client;
    client
        .store_consumer_offset(&external, &world.stream, &world.topic, Some(0), 2)
        .await
        .unwrap();
    client
        .store_consumer_offset(&plain, &world.stream, &world.topic, Some(0), 1)
        .await
        .unwrap();
    assert_eq!(stored(&world, &external).await, Some(2));
    assert_eq!(stored(&world, &plain).await, Some(1));
    let polled = world.poll(0, &external, &PollingStrategy::next(), 1).await;
    assert_eq!(code_of(polled), FEATURE_UNAVAILABLE);
}
