//! The calls an announcement of this release would show, each run against a server.

use std::error::Error;

use iggy::prelude::*;
use iggy_testkit::TestServer;

use crate::{connected, named, texts};

type Shown = Result<(), Box<dyn Error>>;

async fn with_orders(partitions_count: u32, messages: usize) -> Result<(TestServer, IggyClient), Box<dyn Error>> {
    let server = TestServer::start().await?;
    let client = connected(&server).await;
    client.create_stream("orders", &StreamCreateOptions::default()).await?;
    client
        .create_topic(
            &named("orders"),
            "created",
            &TopicCreateOptions {
                partitions_count: Some(partitions_count),
                replication_factor: Some(1),
                ..TopicCreateOptions::default()
            },
        )
        .await?;
    for partition in (0..partitions_count).filter(|_| messages > 0) {
        client
            .send_messages(
                &named("orders"),
                &named("created"),
                &Partitioning::partition_id(partition),
                &texts("m", messages),
            )
            .await?;
    }
    Ok((server, client))
}

#[tokio::test]
async fn given_a_replication_factor_above_the_nodes_when_a_topic_is_created_should_be_refused() -> Shown {
    let (_server, client) = with_orders(1, 1).await?;
    let options = TopicCreateOptions {
        partitions_count: Some(6),
        replication_factor: Some(3),
        ..TopicCreateOptions::default()
    };
    let error = client
        .create_topic(&named("orders"), "paid", &options)
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.outcome()),
        (ErrorClass::InvalidInput, Outcome::NotApplied)
    );
    Ok(())
}

#[tokio::test]
async fn given_one_poll_when_made_should_bring_messages_a_position_and_a_continuation() -> Shown {
    let (_server, client) = with_orders(1, 5).await?;
    let (stream_id, topic_id) = (named("orders"), named("created"));
    let (partition_id, offset, messages_per_batch) = (0, 1, 3);
    let consumer = Consumer::new(Identifier::named("audit")?);
    let polled = client
        .poll_messages(
            &stream_id,
            &topic_id,
            partition_id,
            &consumer,
            &PollingStrategy::offset(offset),
            PollOptions {
                count: messages_per_batch,
                ..PollOptions::wait(IggyDuration::ONE_SECOND)
            },
        )
        .await?;
    if let Some(checkpoint) = polled.checkpoint() {
        client
            .store_consumer_position(&consumer, &stream_id, &topic_id, &checkpoint)
            .await?;
    }
    let next = polled.continuation();
    let rest = client
        .poll_messages(
            &stream_id,
            &topic_id,
            partition_id,
            &consumer,
            &next,
            PollOptions::default(),
        )
        .await?;
    assert_eq!((polled.count, rest.messages[0].header.offset), (3, 4));
    let stored = client
        .get_consumer_offset(&consumer, &stream_id, &topic_id, partition_id)
        .await?;
    assert_eq!(stored.map(|stored| stored.stored_offset), Some(3));
    Ok(())
}

#[tokio::test]
async fn given_a_group_that_commits_on_read_when_read_should_bring_each_message_once() -> Shown {
    let (_server, client) = with_orders(2, 5).await?;
    let mut consumer = client
        .consumer_group("billing", "orders", "created")?
        .create_consumer_group_if_not_exists()
        .polling_strategy(PollingStrategy::next())
        .poll_options(PollOptions {
            count: 1000,
            commit: CommitPolicy::OnRead,
            ..PollOptions::wait(IggyDuration::ONE_SECOND)
        })
        .build();
    consumer.init().await?;
    let mut places = std::collections::BTreeSet::new();
    while places.len() < 10 {
        let received = consumer.next().await.expect("it is open")?;
        assert!(places.insert((received.partition_id, received.message.header.offset)));
    }
    consumer.shutdown().await?;
    Ok(())
}

#[tokio::test]
async fn given_a_standalone_consumer_when_it_commits_what_it_processed_should_have_it_stored() -> Shown {
    let (_server, client) = with_orders(2, 2).await?;
    let mut consumer = client
        .consumer("audit", "orders", "created")?
        .partitions([0, 1])
        .build();
    consumer.init().await?;
    for _ in 0..4 {
        let received = consumer.next().await.expect("it is open")?;
        consumer.commit(received.checkpoint()).await?;
    }
    assert_eq!(
        (consumer.get_last_stored_offset(0), consumer.get_last_stored_offset(1)),
        (Some(1), Some(1))
    );
    Ok(())
}

#[tokio::test]
async fn given_a_reader_when_it_commits_a_batch_should_have_it_stored() -> Shown {
    let (_server, client) = with_orders(8, 3).await?;
    let (stream, topic) = (named("orders"), named("created"));
    let mut reader = client
        .reader(&stream, &topic, &Consumer::new(Identifier::named("audit")?))
        .partitions(0..8)
        .build()
        .await?;
    let batch = reader.next().await?;
    if let Some(checkpoint) = batch.checkpoint() {
        reader.commit(checkpoint).await?;
    }
    let audit = Consumer::new(named("audit"));
    let stored = client
        .get_consumer_offset(&audit, &stream, &topic, batch.partition_id)
        .await?;
    assert_eq!(stored.map(|stored| stored.stored_offset), Some(2));
    Ok(())
}

#[tokio::test]
async fn given_an_idempotent_producer_when_it_sends_should_have_the_messages_stored_once() -> Shown {
    let (_server, client) = with_orders(1, 0).await?;
    let producer = client.producer("orders", "created")?.idempotent().build();
    producer.init().await?;
    let messages = texts("m", 3);
    producer.send(messages).await?;

    let section = ProducerSection {
        producer_id: client.next_producer_id()?,
        epoch: 0,
        base_sequence: 0,
    };
    let (stream, topic, messages) = (named("orders"), named("created"), texts("n", 2));
    let first = client
        .send_producer_messages(&stream, &topic, 0, section, &messages)
        .await?;
    let again = client
        .send_producer_messages(&stream, &topic, 0, section, &messages)
        .await?;
    assert_eq!((first[0].base_offset, again[0].base_offset), (3, 3));
    Ok(())
}

#[tokio::test]
async fn given_a_chosen_node_when_sent_a_raw_request_should_answer_it_alone() -> Shown {
    let (_server, client) = with_orders(1, 1).await?;
    let stats = client.send_binary_request_to_replica(10, &[], 0).await?;
    assert!(!stats.is_empty());
    let unknown = client.send_binary_request_to_replica(10, &[], 7).await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::InvalidIdentifier);
    for code in [100, 101, 105, 106, 109, 120, 121, 122] {
        let refused = client.send_binary_request_to_replica(code, &[], 0).await;
        assert!(refused.is_err(), "{code} belongs to a primary");
    }
    for code in [38, 39, 40, 44, 45, 108] {
        let refused = client.send_binary_request(code, &[]).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidCommand, "{code}");
    }
    client.send_binary_request(12, &[]).await?;
    Ok(())
}

#[tokio::test]
async fn given_names_alone_when_a_stream_is_built_should_send_and_read() -> Shown {
    let server = TestServer::start().await?;
    let config = IggyStreamConfig::from_stream_topic(
        "orders",
        "created",
        1000,
        IggyDuration::ZERO,
        PollOptions {
            commit: CommitPolicy::Auto(AutoCommit::default()),
            ..PollOptions::wait(IggyDuration::ONE_SECOND)
        },
    );
    let (client, producer, mut consumer) =
        IggyStream::with_client_from_connection_string(&server.connection_string(), &config).await?;
    producer.send(texts("m", 3)).await?;
    for offset in 0..3 {
        let received = consumer.next().await.expect("it is open")?;
        assert_eq!(received.message.header.offset, offset);
    }
    assert!(consumer.is_group_member());
    consumer.shutdown().await?;

    let alone = IggyConsumerConfig::builder("orders", "created", "audit")
        .consumer_kind(ConsumerKind::Consumer)
        .polling_strategy(PollingStrategy::first())
        .build();
    let mut alone = IggyStreamConsumer::build(&client, &alone).await?;
    assert_eq!(alone.next().await.expect("it is open")?.message.header.offset, 0);
    let missing = IggyConsumerConfig::builder("nowhere", "created", "audit").build();
    let error = IggyStreamConsumer::build(&client, &missing).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StreamNameNotFound);
    let created = IggyConsumerConfig::builder("nowhere", "created", "audit")
        .create_stream_if_not_exists(true)
        .create_topic_if_not_exists(true)
        .partitions_count(4_u32)
        .build();
    let consumer = IggyStreamConsumer::build(&client, &created).await?;
    assert_eq!(consumer.partitions().count(), 4);
    Ok(())
}
