//! The plain consumer.

use std::collections::BTreeSet;

use iggy::prelude::*;
use iggy_testkit::TestServer;

use crate::{connected, named, texts, with_topic};

#[tokio::test]
async fn given_a_consumer_when_it_commits_should_go_on_from_there() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 2).await;
    for partition in 0..2 {
        client
            .send_messages(&stream, &topic, &Partitioning::partition_id(partition), &texts("m", 10))
            .await
            .unwrap();
    }
    let build = |options: PollOptions| {
        client
            .consumer("audit", "orders", "created")
            .unwrap()
            .partitions([0, 1])
            .poll_options(options)
            .build()
    };
    let mut consumer = build(PollOptions::wait(IggyDuration::from_millis(50)));
    consumer.init().await.unwrap();
    let mut received = 0;
    while received < 20 {
        let message = consumer.next().await.unwrap().unwrap();
        received += 1;
        if message.message.header.offset < 5 {
            consumer.commit(message.checkpoint()).await.unwrap();
        }
    }
    consumer.shutdown().await.unwrap();
    assert_eq!(
        client
            .get_consumer_offset(&Consumer::new(named("audit")), &stream, &topic, 0)
            .await
            .unwrap()
            .unwrap()
            .stored_offset,
        4
    );

    let auto = CommitPolicy::Auto(AutoCommit {
        every: Some(CommitEvery::Message),
        after: CommitAfter::Delivery,
        ..AutoCommit::default()
    });
    let mut consumer = build(PollOptions {
        commit: auto,
        ..PollOptions::wait(IggyDuration::from_millis(50))
    });
    consumer.init().await.unwrap();
    let mut offsets = BTreeSet::new();
    for _ in 0..10 {
        let message = consumer.next().await.unwrap().unwrap();
        offsets.insert((message.partition_id, message.message.header.offset));
    }
    assert_eq!(offsets.len(), 10);
    assert!(
        offsets.iter().all(|(_, offset)| *offset >= 5),
        "both partitions go on after the commits"
    );
    consumer.seek(0, PollingStrategy::first()).unwrap();
    let again = consumer.next().await.unwrap().unwrap();
    assert_eq!((again.partition_id, again.message.header.offset), (0, 0));
    consumer.shutdown().await.unwrap();
}

#[tokio::test]
async fn given_what_does_not_fit_together_when_begun_should_be_refused_by_name() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 2).await;
    let sealed = std::sync::Arc::new(Aes256GcmEncryptor::new(&[7; 32]).unwrap());
    let on_read = PollOptions {
        commit: CommitPolicy::OnRead,
        ..PollOptions::wait(IggyDuration::ONE_SECOND)
    };
    let begin = || client.consumer("audit", "orders", "created").unwrap();
    let refusals = [
        (begin(), ErrorCode::NoPartitions),
        (begin().partitions([1, 1]), ErrorCode::InvalidCommand),
        (
            begin().partitions([0]).poll_options(on_read).encryptor(sealed),
            ErrorCode::InvalidConfiguration,
        ),
        (
            begin().partitions([0]).topic(named("nothing")),
            ErrorCode::TopicNameNotFound,
        ),
    ];
    for (builder, expected) in refusals {
        assert_eq!(builder.build().init().await.unwrap_err().code(), expected);
    }
    let external = Consumer::external(named("elsewhere"));
    let refused = client.reader(&stream, &topic, &external).partitions([0]).build().await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::FeatureUnavailable);
    let group = Consumer::group(named("billing"));
    let refused = client.reader(&stream, &topic, &group).partitions([0]).build().await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidCommand);
    let reader = client.reader(&stream, &topic, &group).build().await.unwrap();
    assert!(reader.partitions().eq([0, 1]), "a group assigns them");
}
