//! Producers and encryption.

use std::sync::Arc;

use cucumber::{given, when};
use iggy::prelude::*;

use crate::values::Sent;
use crate::world::{BddWorld, Node};

/// Says the same partition whatever it is given.
#[derive(Debug)]
struct Always(u32);

impl Partitioner for Always {
    fn calculate_partition_id(&self, _: &Identifier, _: &Identifier, _: &[IggyMessage]) -> Result<u32, IggyError> {
        Ok(self.0)
    }
}

impl BddWorld {
    fn producer_builder(&self) -> IggyProducerBuilder {
        self.client().producer(&self.stream, &self.topic).unwrap()
    }

    async fn use_producer(&mut self, producer: IggyProducer) {
        let ready = producer.init().await;
        if self.keep(ready).is_some() {
            self.producer = Some(producer);
        }
    }
}

#[given(regex = r#"^a producer with the key "(.*)"$"#)]
async fn keyed(world: &mut BddWorld, key: String) {
    let partitioning = Partitioning::messages_key_str(&key).unwrap();
    let producer = world.producer_builder().partitioning(partitioning).build();
    world.use_producer(producer).await;
}

#[given(regex = r"^a producer whose partitioner always says (\d+)$")]
async fn partitioned(world: &mut BddWorld, partition: u32) {
    let producer = world
        .producer_builder()
        .partitioner(Arc::new(Always(partition)))
        .build();
    world.use_producer(producer).await;
}

#[given(regex = r#"^a producer for the stream "(.*)" and the topic "(.*)"$"#)]
async fn creating(world: &mut BddWorld, stream: String, topic: String) {
    (world.stream, world.topic) = (stream, topic);
    let producer = world.producer_builder().build();
    world.use_producer(producer).await;
}

#[when(regex = r#"^a producer for the stream "(.*)" and the topic "(.*)" starts without creating them$"#)]
async fn not_creating(world: &mut BddWorld, stream: String, topic: String) {
    (world.stream, world.topic) = (stream, topic);
    let producer = world
        .producer_builder()
        .do_not_create_stream_if_not_exists()
        .do_not_create_topic_if_not_exists()
        .build();
    world.use_producer(producer).await;
}

#[given(regex = r"^a producer with batches of (\d+) messages$")]
async fn batching(world: &mut BddWorld, batch_length: u32) {
    let config = DirectConfig {
        batch_length,
        ..DirectConfig::default()
    };
    let producer = world.producer_builder().direct(config).build();
    world.use_producer(producer).await;
}

#[given("a producer in the background")]
async fn background(world: &mut BddWorld) {
    let producer = world.producer_builder().background(BackgroundConfig::default()).build();
    world.use_producer(producer).await;
}

#[given("an idempotent producer")]
async fn idempotent(world: &mut BddWorld) {
    let producer = world.producer_builder().idempotent().build();
    world.use_producer(producer).await;
}

impl BddWorld {
    /// Numbered as if they all went to partition 0, where those scenarios look that care.
    fn for_producer(&mut self, count: usize) -> Vec<IggyMessage> {
        let messages = self.next_messages(0, count, 0);
        let batch = messages.iter().map(|sent| sent.message().unwrap()).collect();
        self.sent.entry(0).or_default().extend(messages);
        batch
    }
}

#[when(regex = r"^the producer sends (\d+) messages$")]
async fn send(world: &mut BddWorld, count: usize) {
    let messages = world.for_producer(count);
    let producer = world.producer.clone().expect("a producer");
    let sent = producer.send(messages).await;
    world.keep(sent);
}

#[when(regex = r"^the producer sends (\d+) messages one by one$")]
async fn send_singly(world: &mut BddWorld, count: usize) {
    let producer = world.producer.clone().expect("a producer");
    for message in world.for_producer(count) {
        let sent = producer.send_one(message).await;
        world.keep(sent);
    }
}

#[when("the producer is closed")]
async fn close(world: &mut BddWorld) {
    let producer = world.producer.clone().expect("a producer");
    let closed = producer.shutdown().await;
    world.keep(closed);
}

#[given(regex = r#"^a client that encrypts with (AES-256-GCM|AES-256-GCM-SIV) and the key "(.*)"$"#)]
async fn encrypting(world: &mut BddWorld, cipher: String, key: String) {
    let encryptor: Arc<dyn Encryptor> = match cipher.as_str() {
        "AES-256-GCM" => Arc::new(Aes256GcmEncryptor::new(key.as_bytes()).unwrap()),
        _ => Arc::new(Aes256GcmSivEncryptor::new(key.as_bytes()).unwrap()),
    };
    let text = Node::connection_string("iggy:iggy").await;
    let builder = IggyClient::builder_from_connection_string(&text).unwrap();
    let client = builder.with_encryptor(encryptor).build();
    client.connect().await.unwrap();
    world.clients.insert("encrypting".to_owned(), client);
}

#[when(regex = r"^the encrypting client sends (\d+) messages to partition (\d+)$")]
async fn send_encrypted(world: &mut BddWorld, count: usize, partition: u32) {
    let client = world.client_of("encrypting");
    let messages: Vec<Sent> = world.next_messages(partition, count, 0);
    let sent = world.send_by(&client, partition, messages).await;
    world.keep(sent);
}

#[when(regex = r"^the encrypting client polls partition (\d+)$")]
async fn poll_encrypted(world: &mut BddWorld, partition: u32) {
    let client = world.client_of("encrypting");
    let options = PollOptions::default();
    world
        .poll_by(&client, partition, "reader", PollingStrategy::first(), options)
        .await;
}
