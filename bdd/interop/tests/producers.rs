//! The published producers: direct, in the background, keyed, idempotent.

use std::sync::Arc;

use iggy::prelude::*;
use interop::{World, code_of, soon, texts, topic_with};

const SEQUENCE_OUT_OF_ORDER: u32 = 92;
const EPOCH_FENCED: u32 = 93;
const PRODUCER_UNKNOWN: u32 = 94;

fn numbered(count: usize) -> Vec<IggyMessage> {
    (0..count)
        .map(|number| IggyMessage::from(format!("message {number}")))
        .collect()
}

async fn stored(world: &World) -> u64 {
    world
        .client
        .get_topic(&world.stream, &world.topic)
        .await
        .unwrap()
        .unwrap()
        .messages_count
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_direct_producer_should_create_what_is_missing_and_confirm_each_chunk() {
    let world = World::start().await;
    let producer = world
        .client
        .producer("orders", "created")
        .unwrap()
        .direct(DirectConfig::builder().batch_length(10).build())
        .partitioning(Partitioning::partition_id(0))
        .create_topic_if_not_exists(1, IggyExpiry::ServerDefault, MaxTopicSize::ServerDefault)
        .build();
    producer.init().await.unwrap();
    let sent = producer.send(numbered(25)).await.unwrap();
    let offsets: Vec<_> = sent
        .confirmations
        .iter()
        .map(|confirmation| confirmation.base_offset)
        .collect();
    assert_eq!(offsets, [0, 10, 20]);
    assert_eq!(world.everything(0).await.len(), 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_background_producer_should_have_delivered_all_after_its_shutdown() {
    let world = World::with_topic(1).await;
    let producer = world
        .client
        .producer("orders", "created")
        .unwrap()
        .background(BackgroundConfig::builder().build())
        .build();
    producer.init().await.unwrap();
    for message in numbered(50) {
        assert!(producer.send_one(message).await.unwrap().confirmations.is_empty());
    }
    soon(producer.shutdown()).await;
    let expected: Vec<_> = (0..50).map(|number| format!("message {number}")).collect();
    assert_eq!(world.everything(0).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_keyed_producer_should_keep_to_one_partition() {
    let world = World::with_topic(4).await;
    let key = Arc::new(Partitioning::messages_key_str("customer-1").unwrap());
    let producer = world.client.producer("orders", "created").unwrap().build();
    producer.init().await.unwrap();
    let mut partitions = Vec::new();
    for _ in 0..3 {
        let sent = producer
            .send_with_partitioning(numbered(2), Some(key.clone()))
            .await
            .unwrap();
        partitions.push(sent.confirmations[0].partition_id);
    }
    partitions.dedup();
    assert_eq!(partitions.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_an_idempotent_producer_should_store_each_message_once() {
    let world = World::with_topic(2).await;
    let producer = world.client.producer("orders", "created").unwrap().idempotent().build();
    producer.init().await.unwrap();
    producer.send(numbered(3)).await.unwrap();
    producer.send(numbered(2)).await.unwrap();
    assert_eq!(stored(&world).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_producer_batches_should_recognise_the_same_batch_and_refuse_the_wrong_next() {
    let world = World::with_topic(1).await;
    let id = world.client.next_producer_id().await.unwrap();
    let send = async |id: u64, epoch: u16, sequence: u32, payloads: &[&str]| {
        let producer = BatchProducer::new(id, epoch, sequence).unwrap();
        let mut messages = texts(payloads);
        let sent = world
            .client
            .send_producer_messages(&world.stream, &world.topic, 0, producer, &mut messages)
            .await?;
        Ok::<u64, IggyError>(sent.confirmations[0].base_offset)
    };
    assert_eq!(send(id, 0, 0, &["a", "b"]).await.unwrap(), 0);
    assert_eq!(send(id, 0, 2, &["c"]).await.unwrap(), 2);
    assert_eq!(
        send(id, 0, 0, &["a", "b"]).await.unwrap(),
        0,
        "the same batch answers with its first offset"
    );
    assert_eq!(code_of(send(id, 0, 9, &["gap"]).await), SEQUENCE_OUT_OF_ORDER);
    assert_eq!(
        send(id, 1, 0, &["d"]).await.unwrap(),
        3,
        "a new epoch starts at sequence 0"
    );
    assert_eq!(code_of(send(id, 0, 3, &["late"]).await), EPOCH_FENCED);
    assert_eq!(code_of(send(id + 1, 0, 5, &["stranger"]).await), PRODUCER_UNKNOWN);
    assert_eq!(world.everything(0).await, ["a", "b", "c", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_server_restart_should_still_recognise_a_batch_of_before() {
    let mut world = World::start().await;
    world.create_topic(&interop::persisted_topic(1)).await;
    let id = world.client.next_producer_id().await.unwrap();
    let producer = BatchProducer::new(id, 0, 0).unwrap();
    let send = async |world: &World| {
        let mut messages = texts(&["a", "b"]);
        let sent = world
            .client
            .send_producer_messages(&world.stream, &world.topic, 0, producer, &mut messages)
            .await;
        sent.unwrap().confirmations[0].base_offset
    };
    assert_eq!(send(&world).await, 0);
    world.server.restart().await.unwrap();
    assert_eq!(soon(send(&world)).await, 0);
    assert_eq!(world.everything(0).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_producer_of_a_missing_stream_should_say_so_when_not_asked_to_create_it() {
    let world = World::start().await;
    let producer = world
        .client
        .producer("orders", "created")
        .unwrap()
        .do_not_create_stream_if_not_exists()
        .build();
    assert!(producer.init().await.is_err());
    world.create_topic(&topic_with(1)).await;
    producer.init().await.unwrap();
    producer.send(numbered(1)).await.unwrap();
    assert_eq!(stored(&world).await, 1);
}
