//! Partition readers: grouped fetches, positions, seeks, errors of one partition, drops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use iggy::prelude::*;
use iggy_testkit::TestServer;

use crate::{connected, named, texts, with_topic};

const PATIENCE: Duration = Duration::from_mins(1);

async fn send(client: &IggyClient, partition: u32, prefix: &str, count: usize) {
    let partitioning = Partitioning::partition_id(partition);
    let messages = texts(prefix, count);
    client
        .send_messages(&named("orders"), &named("created"), &partitioning, &messages)
        .await
        .unwrap();
}

fn reader(client: &IggyClient) -> ReaderBuilder {
    let consumer = Consumer::new(named("audit"));
    client
        .reader(&named("orders"), &named("created"), &consumer)
        .start(PollingStrategy::first())
}

async fn next(reader: &mut PartitionReader) -> Result<PolledMessages, ReadError> {
    tokio::time::timeout(PATIENCE, reader.next())
        .await
        .expect("nothing came")
}

/// Reads `count` messages; the offsets of each partition.
async fn read(reader: &mut PartitionReader, count: usize) -> BTreeMap<u32, Vec<u64>> {
    let mut seen: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    while seen.values().map(Vec::len).sum::<usize>() < count {
        let batch = next(reader).await.unwrap();
        let offsets = batch.messages.iter().map(|message| message.header.offset);
        seen.entry(batch.partition_id).or_default().extend(offsets);
    }
    seen
}

fn in_order(seen: &BTreeMap<u32, Vec<u64>>) -> bool {
    seen.values()
        .all(|offsets| offsets.iter().copied().eq(0..offsets.len() as u64))
}

#[tokio::test]
async fn given_many_partitions_when_read_should_bring_each_in_order_and_wait_for_more() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 4).await;
    for partition in 0..4 {
        send(&client, partition, "m", 25).await;
    }
    let options = PollOptions {
        count: 10,
        ..PollOptions::wait(IggyDuration::from_secs(5))
    };
    let mut reader = reader(&client).partitions(0..4).options(options).build().await.unwrap();
    let seen = read(&mut reader, 100).await;
    assert!(seen.len() == 4 && in_order(&seen), "{seen:?}");

    // Nothing is left: the reader waits at the server until something comes.
    let (batch, ()) = tokio::join!(next(&mut reader), send(&client, 2, "late", 1));
    let batch = batch.unwrap();
    assert_eq!((batch.partition_id, batch.messages[0].header.offset), (2, 25));
    reader.close().await.unwrap();
    assert_eq!(
        next(&mut reader).await.unwrap_err().error.code(),
        ErrorCode::ClientShutdown
    );
}

#[tokio::test]
async fn given_a_committed_position_when_another_reader_starts_should_go_on_after_it() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 2).await;
    send(&client, 0, "m", 10).await;
    let mut first = reader(&client).partitions([0, 1]).build().await.unwrap();
    let batch = next(&mut first).await.unwrap();
    first.commit(batch.checkpoint_at(3).unwrap()).await.unwrap();
    // An older position stores nothing.
    first.commit(batch.checkpoint_at(1).unwrap()).await.unwrap();
    first.close().await.unwrap();

    let mut second = reader(&client)
        .partitions([0, 1])
        .start(PollingStrategy::next())
        .build()
        .await
        .unwrap();
    assert_eq!(next(&mut second).await.unwrap().messages[0].header.offset, 4);
}

#[tokio::test]
async fn given_automatic_commits_when_closed_should_have_stored_what_was_processed_and_no_more() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    send(&client, 0, "m", 20).await;
    let auto = AutoCommit {
        interval: IggyDuration::ZERO,
        every: Some(CommitEvery::Messages(1_000)),
        ..AutoCommit::default()
    };
    let options = PollOptions {
        count: 10,
        commit: CommitPolicy::Auto(auto),
        ..PollOptions::wait(IggyDuration::from_secs(5))
    };
    let mut reader = reader(&client).partitions([0]).options(options).build().await.unwrap();
    assert_eq!(next(&mut reader).await.unwrap().messages.len(), 10);
    assert_eq!(next(&mut reader).await.unwrap().messages.len(), 10);
    reader.close().await.unwrap();
    let consumer = Consumer::new(named("audit"));
    let stored = client
        .get_consumer_offset(&consumer, &stream, &topic, 0)
        .await
        .unwrap()
        .unwrap();
    // The second batch was handed out, and nothing says that it was processed.
    assert_eq!(stored.stored_offset, 9);
}

#[tokio::test]
async fn given_a_partition_that_was_created_again_when_read_on_should_stop_it_until_a_seek_and_go_on_with_the_others() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 2).await;
    send(&client, 0, "a", 3).await;
    send(&client, 1, "b", 3).await;
    let mut reader = reader(&client).partitions([0, 1]).build().await.unwrap();
    read(&mut reader, 6).await;
    client.delete_partitions(&stream, &topic, 1).await.unwrap();
    client.create_partitions(&stream, &topic, 1).await.unwrap();
    send(&client, 1, "new", 2).await;
    let stopped = next(&mut reader).await.unwrap_err();
    assert_eq!(
        (stopped.partition_id, stopped.error.code()),
        (Some(1), ErrorCode::HistoryUnavailable)
    );
    assert_eq!(reader.stopped().collect::<Vec<_>>(), [1]);

    send(&client, 0, "more", 1).await;
    assert_eq!(next(&mut reader).await.unwrap().partition_id, 0);
    reader.seek(1, PollingStrategy::first()).unwrap();
    let batch = next(&mut reader).await.unwrap();
    assert_eq!((batch.partition_id, batch.messages.len()), (1, 2));
}

#[tokio::test]
async fn given_a_partition_that_is_not_there_when_read_should_tell_it_and_read_the_others() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 1).await;
    send(&client, 0, "m", 5).await;
    let mut reader = reader(&client).partitions([0, 7]).build().await.unwrap();
    let (mut messages, mut refusals) = (0, 0);
    while messages < 5 || refusals < 6 {
        match next(&mut reader).await {
            Ok(batch) => messages += batch.messages.len(),
            Err(error) => {
                assert_eq!(
                    (error.partition_id, error.error.code()),
                    (Some(7), ErrorCode::PartitionNotFound)
                );
                refusals += 1;
            }
        }
    }
    assert_eq!(reader.stopped().collect::<Vec<_>>(), [7]);
}

#[tokio::test]
async fn given_a_message_that_cannot_be_decrypted_when_read_should_deliver_those_before_and_offer_to_skip_it() {
    let server = TestServer::start().await.unwrap();
    let plain = connected(&server).await;
    with_topic(&plain, 1).await;
    let encryptor = Arc::new(Aes256GcmEncryptor::new(&[7; 32]).unwrap());
    let sealed = IggyClient::builder_from_connection_string(&server.connection_string())
        .unwrap()
        .with_encryptor(encryptor)
        .build();
    sealed.connect().await.unwrap();
    send(&sealed, 0, "good", 2).await;
    send(&plain, 0, "in the clear, and long enough to look sealed", 1).await;
    send(&sealed, 0, "better", 1).await;
    let mut reader = reader(&sealed).partitions([0]).build().await.unwrap();
    assert_eq!(next(&mut reader).await.unwrap().messages.len(), 2);
    let unreadable = next(&mut reader).await.unwrap_err();
    assert_eq!(
        (unreadable.offset, unreadable.error.code()),
        (Some(2), ErrorCode::CannotDecryptData)
    );
    assert!(unreadable.record.unwrap().starts_with(b"in the clear"));
    reader.seek(0, unreadable.skip.unwrap()).unwrap();
    assert_eq!(next(&mut reader).await.unwrap().messages[0].header.offset, 3);
}

#[tokio::test]
async fn given_calls_dropped_at_any_point_when_read_should_lose_and_repeat_nothing() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 3).await;
    let options = PollOptions {
        count: 7,
        ..PollOptions::wait(IggyDuration::from_secs(5))
    };
    let mut reader = reader(&client).partitions(0..3).options(options).build().await.unwrap();
    let sending = async {
        for round in 0..40 {
            send(&client, round % 3, "m", 5).await;
        }
    };
    let reading = async {
        let mut seen: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut patience = 0;
        while seen.values().map(Vec::len).sum::<usize>() < 200 {
            // Dropped after so many polls of the future, then asked again.
            patience = (patience + 1) % 9;
            if let Some(batch) = polled_at_most(reader.next(), patience).await {
                let batch = batch.unwrap();
                let offsets = batch.messages.iter().map(|message| message.header.offset);
                seen.entry(batch.partition_id).or_default().extend(offsets);
            }
        }
        seen
    };
    let both = Box::pin(async { tokio::join!(reading, sending) });
    let (seen, ()) = tokio::time::timeout(PATIENCE, both).await.unwrap();
    assert!(in_order(&seen), "{seen:?}");
}

/// Polls a future at most so many times, then drops it.
async fn polled_at_most<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            // Lets the reads in the background go on before the next try.
            context.waker().wake_by_ref();
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test]
async fn given_a_server_that_restarts_when_read_should_go_on_where_it_was() {
    let mut server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    with_topic(&client, 2).await;
    send(&client, 0, "m", 5).await;
    let mut reader = reader(&client).partitions(0..2).build().await.unwrap();
    read(&mut reader, 5).await;
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    send(&client, 0, "after", 5).await;
    let seen = read(&mut reader, 5).await;
    assert_eq!(seen[&0], [5, 6, 7, 8, 9]);
}
