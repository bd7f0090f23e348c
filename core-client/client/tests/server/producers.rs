//! Producers, direct, background and idempotent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use iggy::prelude::*;
use iggy_testkit::TestServer;
use tokio::time::Duration;

use crate::{connected, named, read_all, texts, with_topic};

#[tokio::test]
async fn given_a_direct_producer_when_it_sends_should_create_what_is_missing_and_split_batches() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let config = DirectConfig {
        batch_length: 10,
        ..DirectConfig::default()
    };
    let producer = client.producer("orders", "created").unwrap().direct(config).build();
    assert!(producer.send(texts("early", 1)).await.is_err(), "init comes first");
    producer.init().await.unwrap();
    let confirmations = producer.send(texts("m", 25)).await.unwrap();
    assert_eq!(
        confirmations.iter().map(|sent| sent.base_offset).collect::<Vec<_>>(),
        [0, 10, 20]
    );
    producer.shutdown().await.unwrap();
    assert_eq!(
        producer.send(texts("late", 1)).await.unwrap_err().code(),
        ErrorCode::ProducerClosed
    );
    assert_eq!(
        read_all(&client, &named("orders"), &named("created"), 0).await.len(),
        25
    );
}

#[tokio::test]
async fn given_an_idempotent_producer_when_it_sends_should_number_its_batches() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let producer = client.producer("orders", "created").unwrap().idempotent().build();
    producer.init().await.unwrap();
    for round in 0..3 {
        assert_eq!(producer.send(texts("m", 4)).await.unwrap()[0].base_offset, round * 4);
    }
    let (stream, topic) = (named("orders"), named("created"));
    let section = iggy::ProducerSection {
        producer_id: client.next_producer_id().unwrap(),
        epoch: 0,
        base_sequence: 0,
    };
    let batch = texts("twice", 2);
    let first = client
        .send_producer_messages(&stream, &topic, 0, section, &batch)
        .await
        .unwrap();
    let second = client
        .send_producer_messages(&stream, &topic, 0, section, &batch)
        .await
        .unwrap();
    assert_eq!(first, second, "the batch was written once");
    let gap = iggy::ProducerSection {
        base_sequence: 9,
        ..section
    };
    let error = client
        .send_producer_messages(&stream, &topic, 0, gap, &batch)
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProducerSequenceOutOfOrder);
    assert_eq!(read_all(&client, &stream, &topic, 0).await.len(), 14);
}

#[tokio::test]
async fn given_a_background_producer_when_shut_down_should_have_sent_everything_in_order() {
    let server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let failures = Arc::new(AtomicUsize::new(0));
    let config = BackgroundConfig {
        max_buffer_size: 4096,
        error_callback: Arc::new({
            let failures = failures.clone();
            move |_| {
                failures.fetch_add(1, Ordering::Relaxed);
            }
        }),
        ..BackgroundConfig::default()
    };
    let producer = client.producer("orders", "created").unwrap().background(config).build();
    producer.init().await.unwrap();
    for index in 0..500 {
        assert!(
            producer
                .send_one(IggyMessage::new(index.to_string()).unwrap())
                .await
                .unwrap()
                .is_empty()
        );
    }
    let large = IggyMessage::new(vec![0; 5000]).unwrap();
    assert_eq!(
        producer.send_one(large).await.unwrap_err().code(),
        ErrorCode::BackgroundSendBufferOverflow
    );
    producer.shutdown().await.unwrap();
    assert_eq!(failures.load(Ordering::Relaxed), 0);
    let messages = read_all(&client, &named("orders"), &named("created"), 0).await;
    let texts: Vec<_> = messages
        .iter()
        .map(|message| message.payload_as_string().unwrap().to_owned())
        .collect();
    assert_eq!(texts, (0..500).map(|index| index.to_string()).collect::<Vec<_>>());
}

#[derive(Debug)]
struct AlwaysSecond;

impl Partitioner for AlwaysSecond {
    fn calculate_partition_id(&self, _: &Identifier, _: &Identifier, _: &[IggyMessage]) -> Result<u32, IggyError> {
        Ok(1)
    }
}

#[tokio::test]
async fn given_encryption_and_a_partitioner_when_sending_should_keep_the_text_from_the_server() {
    let server = TestServer::start().await.unwrap();
    let plain = connected(&server).await;
    let (stream, topic) = with_topic(&plain, 2).await;
    let client = IggyClient::builder_from_connection_string(&server.connection_string())
        .unwrap()
        .with_encryptor(Arc::new(Aes256GcmEncryptor::new(&[9; 32]).unwrap()))
        .with_partitioner(Arc::new(AlwaysSecond))
        .build();
    client.connect().await.unwrap();
    let sent = client
        .send_messages(&stream, &topic, &Partitioning::balanced(), &texts("secret", 1))
        .await
        .unwrap();
    assert_eq!(sent[0].partition_id, 1);
    let sealed = read_all(&plain, &stream, &topic, 1).await;
    assert_eq!(sealed[0].payload.len(), "secret-0".len() + 28);
    let opened = read_all(&client, &stream, &topic, 1).await;
    assert_eq!(opened[0].payload_as_string().unwrap(), "secret-0");
}

#[tokio::test]
async fn given_a_killed_server_when_a_persisted_producer_goes_on_should_leave_neither_gap_nor_duplicate() {
    let mut server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    client
        .create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap();
    let options = TopicCreateOptions {
        durability: Durability::Persisted,
        ..TopicCreateOptions::default()
    };
    client
        .create_topic(&named("orders"), "created", &options)
        .await
        .unwrap();
    let producer = client.producer("orders", "created").unwrap().idempotent().build();
    producer.init().await.unwrap();
    let sender = tokio::spawn(async move {
        for index in 0..400_u32 {
            producer
                .send_one(IggyMessage::new(index.to_string()).unwrap())
                .await
                .unwrap();
        }
    });
    while read_all(&client, &named("orders"), &named("created"), 0).await.len() < 50 {
        tokio::task::yield_now().await;
    }
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    tokio::time::timeout(Duration::from_mins(2), sender)
        .await
        .expect("the producer goes on")
        .unwrap();
    let messages = read_all(&client, &named("orders"), &named("created"), 0).await;
    let texts: Vec<_> = messages
        .iter()
        .map(|message| message.payload_as_string().unwrap().to_owned())
        .collect();
    assert_eq!(texts, (0..400).map(|index| index.to_string()).collect::<Vec<_>>());
}
