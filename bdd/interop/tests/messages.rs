//! Sending with each partitioning and header kind, polling by each strategy, waiting, and histories that end.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use iggy::prelude::*;
use interop::{World, code_of, consumer, number, payloads, soon, texts, topic_with};
use tokio::time::timeout;

const STREAM_ID_NOT_FOUND: u32 = 1009;
const PARTITION_NOT_FOUND: u32 = 3007;
const HISTORY_UNAVAILABLE: u32 = 87;

async fn send(world: &World, partitioning: &Partitioning, payloads: &[&str]) -> (u32, u64) {
    let mut messages = texts(payloads);
    let sent = world
        .client
        .send_messages(&world.stream, &world.topic, partitioning, &mut messages)
        .await
        .unwrap();
    (sent.confirmations[0].partition_id, sent.confirmations[0].base_offset)
}

#[tokio::test(flavor = "multi_thread")]
async fn given_sends_to_one_partition_should_confirm_consecutive_offsets() {
    let world = World::with_topic(3).await;
    assert_eq!(world.send(0, &["a", "b", "c"]).await, 0);
    assert_eq!(world.send(0, &["d"]).await, 3);
    assert_eq!(world.send(1, &["e"]).await, 0);
    assert_eq!(world.everything(0).await, ["a", "b", "c", "d"]);
    assert_eq!(world.everything(1).await, ["e"]);
    assert!(world.everything(2).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_balanced_sends_should_visit_each_partition_in_turn() {
    let world = World::with_topic(3).await;
    let mut visited = Vec::new();
    for _ in 0..6 {
        visited.push(send(&world, &Partitioning::balanced(), &["x"]).await.0);
    }
    assert_eq!(visited, [0, 1, 2, 0, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_keyed_sends_should_keep_each_key_in_one_partition() {
    let world = World::with_topic(8).await;
    let keys = [
        Partitioning::messages_key_str("customer-1").unwrap(),
        Partitioning::messages_key_u32(7),
        Partitioning::messages_key_u64(7),
        Partitioning::messages_key_u128(7),
    ];
    let mut partitions = Vec::new();
    for key in &keys {
        let first = send(&world, key, &["one"]).await;
        let second = send(&world, key, &["two"]).await;
        assert_eq!(first.0, second.0);
        partitions.push(first.0);
    }
    partitions.dedup();
    assert!(
        partitions.len() > 1,
        "keys of several kinds should not all meet in one partition"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_balanced_sends_after_partitions_were_removed_should_choose_again() {
    let world = World::with_topic(3).await;
    for _ in 0..2 {
        send(&world, &Partitioning::balanced(), &["x"]).await;
    }
    world
        .client
        .delete_partitions(&world.stream, &world.topic, 2)
        .await
        .unwrap();
    assert_eq!(send(&world, &Partitioning::balanced(), &["y"]).await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_headers_of_every_kind_and_an_id_should_return_them_unchanged() {
    let world = World::with_topic(1).await;
    let key = |name: &str| HeaderKey::from_str(name).unwrap();
    let headers: BTreeMap<HeaderKey, HeaderValue> = [
        (key("raw"), HeaderValue::try_from(&[0_u8, 255, 7][..]).unwrap()),
        (key("string"), HeaderValue::from_str("value").unwrap()),
        (key("bool"), true.into()),
        (key("int8"), i8::MIN.into()),
        (key("int16"), i16::MIN.into()),
        (key("int32"), i32::MIN.into()),
        (key("int64"), i64::MIN.into()),
        (key("int128"), i128::MIN.into()),
        (key("uint8"), u8::MAX.into()),
        (key("uint16"), u16::MAX.into()),
        (key("uint32"), u32::MAX.into()),
        (key("uint64"), u64::MAX.into()),
        (key("uint128"), u128::MAX.into()),
        (key("float32"), 1.5_f32.into()),
        (key("float64"), (-2.25_f64).into()),
        (
            HeaderKey::from(42_u32),
            HeaderValue::from_str("a key that is a number").unwrap(),
        ),
    ]
    .into();
    let id = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128;
    let mut messages = vec![
        IggyMessage::builder()
            .id(id)
            .payload(Bytes::from_static(b"payload"))
            .user_headers(headers.clone())
            .build()
            .unwrap(),
    ];
    let partitioning = Partitioning::partition_id(0);
    world
        .client
        .send_messages(&world.stream, &world.topic, &partitioning, &mut messages)
        .await
        .unwrap();

    let polled = world
        .poll(0, &consumer("reader"), &PollingStrategy::first(), 1)
        .await
        .unwrap();
    let message = &polled.messages[0];
    assert_eq!(message.header.id, id);
    assert_eq!(message.user_headers_map().unwrap(), Some(headers));
    assert_eq!(message.payload, Bytes::from_static(b"payload"));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_each_strategy_should_start_where_it_says() {
    let world = World::with_topic(1).await;
    world.send(0, &["a", "b", "c"]).await;
    world.send(0, &["d", "e"]).await;
    let reader = consumer("reader");
    let poll = async |strategy: PollingStrategy, count| world.poll(0, &reader, &strategy, count).await.unwrap();
    assert_eq!(payloads(&poll(PollingStrategy::first(), 2).await), ["a", "b"]);
    assert_eq!(payloads(&poll(PollingStrategy::offset(1), 3).await), ["b", "c", "d"]);
    assert_eq!(payloads(&poll(PollingStrategy::last(), 1).await), ["e"]);
    assert_eq!(payloads(&poll(PollingStrategy::last(), 3).await), ["c", "d", "e"]);
    assert_eq!(
        payloads(&poll(PollingStrategy::next(), 10).await),
        ["a", "b", "c", "d", "e"]
    );
    assert_eq!(
        payloads(&poll(PollingStrategy::timestamp(IggyTimestamp::from(0)), 10).await).len(),
        5
    );
    assert!(poll(PollingStrategy::offset(5), 10).await.messages.is_empty());

    let everything = poll(PollingStrategy::first(), 10).await;
    assert_eq!(everything.current_offset, 4);
    let offsets: Vec<_> = everything
        .messages
        .iter()
        .map(|message| message.header.offset)
        .collect();
    assert_eq!(offsets, [0, 1, 2, 3, 4]);
    let later = everything.messages[3].header.timestamp;
    assert!(later >= everything.messages[2].header.timestamp);
    let since = poll(PollingStrategy::timestamp(IggyTimestamp::from(later)), 10).await;
    assert_eq!(payloads(&since).last().unwrap(), "e");
    assert!(since.messages.iter().all(|message| message.header.timestamp >= later));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_batch_cut_by_the_count_should_go_on_at_the_continuation() {
    let world = World::with_topic(1).await;
    world.send(0, &["a", "b", "c", "d", "e"]).await;
    let mut strategy = PollingStrategy::offset(1);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let polled = world.poll(0, &consumer("reader"), &strategy, 2).await.unwrap();
        assert_eq!(polled.messages[0].header.offset, 1 + seen.len() as u64);
        seen.extend(payloads(&polled));
        strategy = polled.continuation();
    }
    assert_eq!(seen, ["b", "c", "d", "e"]);
    let after = world.poll(0, &consumer("reader"), &strategy, 2).await.unwrap();
    assert!(after.messages.is_empty());
    world.send(0, &["f"]).await;
    let resumed = world
        .poll(0, &consumer("reader"), &after.continuation(), 2)
        .await
        .unwrap();
    assert_eq!(payloads(&resumed), ["f"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_on_read_commits_should_store_the_last_offset_of_each_read() {
    let world = World::with_topic(1).await;
    world.send(0, &["a", "b", "c", "d", "e"]).await;
    let reader = consumer("reader");
    let options = |count| PollOptions {
        count,
        commit: CommitPolicy::OnRead,
        ..PollOptions::default()
    };
    let poll = async |count| {
        let next = PollingStrategy::next();
        world
            .client
            .poll_messages(&world.stream, &world.topic, 0, &reader, &next, options(count))
            .await
            .unwrap()
    };
    assert_eq!(payloads(&poll(2).await), ["a", "b"]);
    assert_eq!(payloads(&poll(10).await), ["c", "d", "e"]);
    assert!(poll(10).await.messages.is_empty());
    let stored = world
        .client
        .get_consumer_offset(&reader, &world.stream, &world.topic, Some(0))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((stored.stored_offset, stored.current_offset), (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_message_larger_than_the_reply_limit_should_come_alone() {
    let world = World::with_topic(1).await;
    let large = "x".repeat(3_000_000);
    world.send(0, &[&large]).await;
    world.send(0, &["small"]).await;
    let options = PollOptions {
        count: 10,
        max_bytes: 65_536,
        ..PollOptions::default()
    };
    let first = PollingStrategy::first();
    let polled = world
        .client
        .poll_messages(&world.stream, &world.topic, 0, &consumer("r"), &first, options)
        .await
        .unwrap();
    assert_eq!(polled.messages.len(), 1);
    assert_eq!(polled.messages[0].payload.len(), large.len());
    let options = PollOptions {
        count: 10,
        max_bytes: 65_536,
        ..PollOptions::default()
    };
    let next = polled.continuation();
    let polled = world
        .client
        .poll_messages(&world.stream, &world.topic, 0, &consumer("r"), &next, options)
        .await
        .unwrap();
    assert_eq!(payloads(&polled), ["small"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_many_large_reads_from_disk_should_give_their_memory_back() {
    let world = World::with_topic(1).await;
    let large = "x".repeat(1_000_000);
    for _ in 0..24 {
        world.send(0, &[&large]).await;
    }
    // The first messages are no longer in memory, and each read may reserve 8 MiB of what all reads share.
    for _ in 0..40 {
        let options = PollOptions {
            count: 8,
            max_bytes: 8 << 20,
            ..PollOptions::default()
        };
        let first = PollingStrategy::first();
        let reader = consumer("reader");
        let polled = soon(
            world
                .client
                .poll_messages(&world.stream, &world.topic, 0, &reader, &first, options),
        )
        .await
        .unwrap();
        assert!(!polled.messages.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_wait_without_messages_should_end_empty() {
    let world = World::with_topic(1).await;
    let options = PollOptions::wait(IggyDuration::new(Duration::from_millis(200)));
    let next = PollingStrategy::next();
    let polled = world
        .client
        .poll_messages(&world.stream, &world.topic, 0, &consumer("r"), &next, options)
        .await
        .unwrap();
    assert!(polled.messages.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_wait_for_two_messages_should_end_with_the_second() {
    let world = World::with_topic(1).await;
    let sender = world.another_client().await;
    let options = PollOptions {
        count: 10,
        min_count: 2,
        ..PollOptions::wait(IggyDuration::new(Duration::from_secs(20)))
    };
    let next = PollingStrategy::next();
    let reader = consumer("reader");
    let wait = world
        .client
        .poll_messages(&world.stream, &world.topic, 0, &reader, &next, options);
    let send_both = async {
        for text in ["first", "second"] {
            let partitioning = Partitioning::partition_id(0);
            sender
                .send_messages(&world.stream, &world.topic, &partitioning, &mut texts(&[text]))
                .await
                .unwrap();
        }
    };
    let (polled, ()) = soon(async { tokio::join!(wait, send_both) }).await;
    assert_eq!(payloads(&polled.unwrap()), ["first", "second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_dropped_wait_should_cancel_it_and_lose_nothing() {
    let world = World::with_topic(1).await;
    let reader = consumer("reader");
    for commit in [CommitPolicy::Manual, CommitPolicy::OnRead] {
        let options = PollOptions {
            commit,
            ..PollOptions::wait(IggyDuration::new(Duration::from_secs(20)))
        };
        let next = PollingStrategy::next();
        let wait = world
            .client
            .poll_messages(&world.stream, &world.topic, 0, &reader, &next, options);
        assert!(
            timeout(Duration::from_millis(300), wait).await.is_err(),
            "nothing was sent yet"
        );
    }
    world.send(0, &["after the cancels"]).await;
    let polled = soon(world.poll(0, &reader, &PollingStrategy::next(), 10))
        .await
        .unwrap();
    assert_eq!(payloads(&polled), ["after the cancels"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_topic_made_again_should_refuse_positions_of_the_old_one() {
    let world = World::with_topic(1).await;
    world.send(0, &["old"]).await;
    let reader = consumer("reader");
    let polled = world.poll(0, &reader, &PollingStrategy::first(), 1).await.unwrap();
    let (continuation, checkpoint) = (polled.continuation(), polled.checkpoint().unwrap());

    world.client.delete_topic(&world.stream, &world.topic).await.unwrap();
    world
        .client
        .create_topic(&world.stream, "created", &topic_with(1))
        .await
        .unwrap();
    assert_eq!(
        world.send(0, &["new"]).await,
        0,
        "a send to the new partition starts at once"
    );
    assert_eq!(
        code_of(world.poll(0, &reader, &continuation, 1).await),
        HISTORY_UNAVAILABLE
    );
    let stored = world
        .client
        .store_consumer_position(&reader, &world.stream, &world.topic, &checkpoint)
        .await;
    assert_eq!(code_of(stored), HISTORY_UNAVAILABLE);
    assert_eq!(world.everything(0).await, ["new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_partition_made_again_should_refuse_positions_of_the_old_one() {
    let world = World::with_topic(2).await;
    world.send(1, &["old"]).await;
    let reader = consumer("reader");
    let polled = world.poll(1, &reader, &PollingStrategy::first(), 1).await.unwrap();
    world
        .client
        .delete_partitions(&world.stream, &world.topic, 1)
        .await
        .unwrap();
    world
        .client
        .create_partitions(&world.stream, &world.topic, 1)
        .await
        .unwrap();
    assert_eq!(
        code_of(world.poll(1, &reader, &polled.continuation(), 1).await),
        HISTORY_UNAVAILABLE
    );
    assert!(world.everything(1).await.is_empty());
    assert_eq!(world.send(1, &["new"]).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_requests_for_what_is_not_there_should_refuse_by_code() {
    let world = World::with_topic(1).await;
    let reader = consumer("reader");
    assert_eq!(
        code_of(world.poll(9, &reader, &PollingStrategy::first(), 1).await),
        PARTITION_NOT_FOUND
    );
    let partitioning = Partitioning::partition_id(9);
    let sent = world
        .client
        .send_messages(&world.stream, &world.topic, &partitioning, &mut texts(&["x"]))
        .await;
    assert_eq!(code_of(sent), PARTITION_NOT_FOUND);
    let options = PollOptions::default();
    let first = PollingStrategy::first();
    let polled = world
        .client
        .poll_messages(&number(77), &number(0), 0, &reader, &first, options)
        .await;
    assert_eq!(code_of(polled), STREAM_ID_NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_client_with_a_key_should_store_only_ciphertext() {
    let world = World::with_topic(1).await;
    let encryptor = || std::sync::Arc::new(EncryptorKind::Aes256Gcm(Aes256GcmEncryptor::new(&[7; 32]).unwrap()));
    let sealed = IggyClient::builder_from_connection_string(&world.server.connection_string())
        .unwrap()
        .with_encryptor(encryptor())
        .build()
        .unwrap();
    soon(sealed.connect()).await.unwrap();
    let partitioning = Partitioning::partition_id(0);
    sealed
        .send_messages(&world.stream, &world.topic, &partitioning, &mut texts(&["secret"]))
        .await
        .unwrap();

    let plain = world
        .poll(0, &consumer("plain"), &PollingStrategy::first(), 1)
        .await
        .unwrap();
    assert_eq!(plain.messages[0].payload.len(), 12 + "secret".len() + 16);
    assert!(!plain.messages[0].payload.windows(6).any(|window| window == b"secret"));
    let first = PollingStrategy::first();
    let options = PollOptions::default();
    let opened = sealed
        .poll_messages(&world.stream, &world.topic, 0, &consumer("key"), &first, options)
        .await
        .unwrap();
    assert_eq!(payloads(&opened), ["secret"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_custom_partitioner_should_be_asked_for_every_send() {
    #[derive(Debug)]
    struct Always(u32);
    impl Partitioner for Always {
        fn calculate_partition_id(&self, _: &Identifier, _: &Identifier, _: &[IggyMessage]) -> Result<u32, IggyError> {
            Ok(self.0)
        }
    }
    let world = World::with_topic(3).await;
    let producer = world
        .client
        .producer("orders", "created")
        .unwrap()
        .partitioner(std::sync::Arc::new(Always(2)))
        .build();
    producer.init().await.unwrap();
    let sent = producer.send(texts(&["x"])).await.unwrap();
    assert_eq!(sent.confirmations[0].partition_id, 2);
}
