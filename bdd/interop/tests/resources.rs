//! Streams, topics, partitions and segments: every call, and what the server refuses.

use std::collections::{BTreeMap, BTreeSet};

use iggy::prelude::*;
use interop::{World, code_of, named, number, persisted_topic, soon, topic_with};

const STREAM_ID_NOT_FOUND: u32 = 1009;
const STREAM_NAME_NOT_FOUND: u32 = 1010;
const STREAM_NAME_ALREADY_EXISTS: u32 = 1012;
const TOPIC_ID_NOT_FOUND: u32 = 2010;
const TOPIC_NAME_NOT_FOUND: u32 = 2011;
const TOPIC_NAME_ALREADY_EXISTS: u32 = 2013;
const PARTITION_RESIZE_DISABLED: u32 = 2023;
const PARTITION_NOT_FOUND: u32 = 3007;
const UNSUPPORTED_OPTION_KEY: u32 = 4041;
const OPTION_NOT_UPDATABLE: u32 = 4103;
const OPTION_NOT_RESETTABLE: u32 = 4104;

fn raw(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_stream_should_be_found_by_id_and_name_until_deleted() {
    let world = World::start().await;
    let created = world
        .client
        .create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap();
    assert_eq!(
        (created.name.as_str(), created.topics_count, created.messages_count),
        ("orders", 0, 0)
    );
    for id in [number(created.id), named("orders")] {
        let found = world.client.get_stream(&id).await.unwrap().expect("the stream exists");
        assert_eq!((found.id, found.name.as_str()), (created.id, "orders"));
    }
    let listed = world.client.get_streams().await.unwrap();
    assert_eq!(
        listed.iter().map(|stream| stream.name.as_str()).collect::<Vec<_>>(),
        ["orders"]
    );

    let rename = StreamUpdateOptions {
        name: Some("sales".to_owned()),
        ..StreamUpdateOptions::default()
    };
    world.client.update_stream(&named("orders"), &rename).await.unwrap();
    assert!(world.client.get_stream(&named("orders")).await.unwrap().is_none());
    assert_eq!(
        world.client.get_stream(&named("sales")).await.unwrap().unwrap().id,
        created.id
    );

    world.client.delete_stream(&named("sales")).await.unwrap();
    assert!(world.client.get_streams().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_stream_requests_that_cannot_be_should_refuse_by_code() {
    let world = World::with_topic(1).await;
    let client = &world.client;
    let again = client.create_stream("orders", &StreamCreateOptions::default()).await;
    assert_eq!(code_of(again), STREAM_NAME_ALREADY_EXISTS);
    assert_eq!(
        code_of(client.delete_stream(&named("nope")).await),
        STREAM_NAME_NOT_FOUND
    );
    assert_eq!(code_of(client.delete_stream(&number(99)).await), STREAM_ID_NOT_FOUND);
    let unknown = StreamUpdateOptions {
        raw: raw("foo", "bar"),
        ..StreamUpdateOptions::default()
    };
    assert_eq!(
        code_of(client.update_stream(&world.stream, &unknown).await),
        UNSUPPORTED_OPTION_KEY
    );
    let reset = StreamUpdateOptions {
        raw_reset: BTreeSet::from(["name".to_owned()]),
        ..StreamUpdateOptions::default()
    };
    assert_eq!(
        code_of(client.update_stream(&world.stream, &reset).await),
        OPTION_NOT_RESETTABLE
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_topic_should_show_what_it_was_created_with() {
    let world = World::start().await;
    let options = TopicCreateOptions {
        message_expiry: Some(IggyExpiry::ExpireDuration(IggyDuration::new_from_secs(3600))),
        max_topic_size: Some(MaxTopicSize::Custom(IggyByteSize::new(3 << 30))),
        segment_size: Some(IggyByteSize::new(1 << 20)),
        partition_resize_policy: Some(PartitionResizePolicy::Fixed),
        ..persisted_topic(3)
    };
    world.create_topic(&options).await;
    let details = world
        .client
        .get_topic(&world.stream, &world.topic)
        .await
        .unwrap()
        .expect("the topic exists");
    assert_eq!((details.name.as_str(), details.partitions_count), ("created", 3));
    assert_eq!(
        details
            .partitions
            .iter()
            .map(|partition| partition.id)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert!(details.partitions.iter().all(|partition| partition.members == [0]));
    let effective = details.resolved_options();
    assert_eq!(
        effective.message_expiry,
        IggyExpiry::ExpireDuration(IggyDuration::new_from_secs(3600))
    );
    assert_eq!(
        effective.max_topic_size,
        MaxTopicSize::Custom(IggyByteSize::new(3 << 30))
    );
    assert_eq!(effective.partition_resize_policy, PartitionResizePolicy::Fixed);
    assert_eq!(effective.runtime.segment_size, Some(IggyByteSize::new(1 << 20)));
    assert!(effective.runtime.durability.is_persisted());
    assert!(effective.runtime.consumer_offset_durability.is_persisted());

    let listed = world.client.get_topics(&world.stream).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, details.id);
    assert_eq!(
        world
            .client
            .get_stream(&world.stream)
            .await
            .unwrap()
            .unwrap()
            .topics_count,
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_topic_updates_should_set_and_reset_options() {
    let world = World::with_topic(1).await;
    let hour = IggyExpiry::ExpireDuration(IggyDuration::new_from_secs(3600));
    let update = TopicUpdateOptions {
        name: Some("shipped".to_owned()),
        message_expiry: Some(hour),
        max_topic_size: Some(MaxTopicSize::Custom(IggyByteSize::new(3 << 30))),
        ..TopicUpdateOptions::default()
    };
    world
        .client
        .update_topic(&world.stream, &world.topic, &update)
        .await
        .unwrap();
    assert!(
        world
            .client
            .get_topic(&world.stream, &world.topic)
            .await
            .unwrap()
            .is_none()
    );
    let topic = named("shipped");
    let details = world.client.get_topic(&world.stream, &topic).await.unwrap().unwrap();
    assert_eq!(details.resolved_options().message_expiry, hour);

    let reset = TopicUpdateOptions {
        reset: BTreeSet::from([OptionKey::MessageExpiry]),
        ..TopicUpdateOptions::default()
    };
    world.client.update_topic(&world.stream, &topic, &reset).await.unwrap();
    let details = world.client.get_topic(&world.stream, &topic).await.unwrap().unwrap();
    assert_eq!(details.resolved_options().message_expiry, IggyExpiry::NeverExpire);
    let kept = MaxTopicSize::Custom(IggyByteSize::new(3 << 30));
    assert_eq!(details.resolved_options().max_topic_size, kept);

    let fixed = TopicUpdateOptions {
        raw: raw("segment_size", "2097152"),
        ..TopicUpdateOptions::default()
    };
    assert_eq!(
        code_of(world.client.update_topic(&world.stream, &topic, &fixed).await),
        OPTION_NOT_UPDATABLE
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_topic_requests_that_cannot_be_should_refuse_by_code() {
    let world = World::with_topic(1).await;
    let client = &world.client;
    let again = client.create_topic(&world.stream, "created", &topic_with(1)).await;
    assert_eq!(code_of(again), TOPIC_NAME_ALREADY_EXISTS);
    assert_eq!(
        code_of(client.create_topic(&named("nope"), "t", &topic_with(1)).await),
        STREAM_NAME_NOT_FOUND
    );
    assert_eq!(code_of(client.get_topics(&named("nope")).await), STREAM_NAME_NOT_FOUND);
    assert_eq!(
        code_of(client.delete_topic(&world.stream, &named("nope")).await),
        TOPIC_NAME_NOT_FOUND
    );
    assert_eq!(
        code_of(client.delete_topic(&world.stream, &number(99)).await),
        TOPIC_ID_NOT_FOUND
    );
    assert!(client.get_topic(&world.stream, &named("nope")).await.unwrap().is_none());
    let unknown = TopicCreateOptions {
        raw: raw("foo", "bar"),
        ..topic_with(1)
    };
    assert_eq!(
        code_of(client.create_topic(&world.stream, "other", &unknown).await),
        UNSUPPORTED_OPTION_KEY
    );
    client.delete_topic(&world.stream, &world.topic).await.unwrap();
    assert!(client.get_topics(&world.stream).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_partitions_added_and_removed_should_count_them_from_the_top() {
    let world = World::with_topic(3).await;
    world
        .client
        .create_partitions(&world.stream, &world.topic, 2)
        .await
        .unwrap();
    let ids = async || {
        let details = world
            .client
            .get_topic(&world.stream, &world.topic)
            .await
            .unwrap()
            .unwrap();
        details
            .partitions
            .iter()
            .map(|partition| partition.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids().await, [0, 1, 2, 3, 4]);
    assert_eq!(world.send(4, &["in the newest partition"]).await, 0);
    world
        .client
        .delete_partitions(&world.stream, &world.topic, 2)
        .await
        .unwrap();
    assert_eq!(ids().await, [0, 1, 2]);
    let gone = world
        .poll(4, &interop::consumer("reader"), &PollingStrategy::first(), 1)
        .await;
    assert_eq!(code_of(gone), PARTITION_NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_fixed_topic_should_refuse_to_resize() {
    let world = World::start().await;
    let fixed = TopicCreateOptions {
        raw: raw("partition_resize_policy", "fixed"),
        ..topic_with(1)
    };
    world.create_topic(&fixed).await;
    let added = world.client.create_partitions(&world.stream, &world.topic, 1).await;
    assert_eq!(code_of(added), PARTITION_RESIZE_DISABLED);
    let removed = world.client.delete_partitions(&world.stream, &world.topic, 1).await;
    assert_eq!(code_of(removed), PARTITION_RESIZE_DISABLED);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_sealed_segments_when_deleted_should_keep_the_newer_messages() {
    let world = World::start().await;
    let small = TopicCreateOptions {
        segment_size: Some(IggyByteSize::new(1 << 20)),
        ..topic_with(1)
    };
    world.create_topic(&small).await;
    let payload = "x".repeat(300_000);
    for _ in 0..12 {
        world.send(0, &[&payload]).await;
    }
    let segments = async || {
        let details = world
            .client
            .get_topic(&world.stream, &world.topic)
            .await
            .unwrap()
            .unwrap();
        details.partitions[0].segments_count
    };
    let before = segments().await;
    assert!(before > 1, "the topic should have sealed segments, it has {before}");
    world
        .client
        .delete_segments(&world.stream, &world.topic, 0, 1)
        .await
        .unwrap();
    // The reply says that the deletion is decided; the partition carries it out after that.
    soon(async { while segments().await != before - 1 {} }).await;
    let polled = world
        .poll(0, &interop::consumer("reader"), &PollingStrategy::first(), 1)
        .await
        .unwrap();
    assert!(polled.messages[0].header.offset > 0);
    assert_eq!(polled.current_offset, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_each_scope_should_describe_its_options() {
    let world = World::start().await;
    for (scope, key) in [
        (OptionsScope::Topic, "message_expiry"),
        (OptionsScope::Stream, "name"),
        (OptionsScope::User, "status"),
    ] {
        let described = world.client.describe_options(scope).await.unwrap();
        assert!(
            described.iter().any(|option| option.key == key),
            "{key} is not among {described:?}"
        );
        assert!(described.iter().all(|option| !option.description.is_empty()));
    }
}
