//! Sending.

use cucumber::{given, then, when};
use iggy::prelude::*;

use crate::values::Sent;
use crate::world::BddWorld;

impl BddWorld {
    /// The next messages of a partition, numbered on from those that were sent.
    pub fn next_messages(&mut self, partition: u32, count: usize, bytes: usize) -> Vec<Sent> {
        let sent = self.sent.entry(partition).or_default();
        let next = sent.len();
        (next..next + count)
            .map(|index| Sent::numbered(partition, index, bytes))
            .collect()
    }

    pub async fn send_by(
        &mut self,
        client: &IggyClient,
        partition: u32,
        messages: Vec<Sent>,
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        let batch: Result<Vec<_>, _> = messages.iter().map(Sent::message).collect();
        let partitioning = Partitioning::partition_id(partition);
        let confirmations = client
            .send_messages(&self.stream_id(), &self.topic_id(), &partitioning, &batch?)
            .await?;
        self.sent.entry(partition).or_default().extend(messages);
        Ok(confirmations)
    }

    pub async fn send(
        &mut self,
        partition: u32,
        count: usize,
        bytes: usize,
    ) -> Result<Vec<SendConfirmation>, IggyError> {
        let messages = self.next_messages(partition, count, bytes);
        let client = self.client();
        self.send_by(&client, partition, messages).await
    }
}

#[given(regex = r"^(\d+) messages in partition (\d+)$")]
async fn messages_in(world: &mut BddWorld, count: usize, partition: u32) {
    world.send(partition, count, 0).await.unwrap();
}

#[given(regex = r"^(\d+) messages of (\d+) bytes in partition (\d+)$")]
async fn sized_messages_in(world: &mut BddWorld, count: usize, bytes: usize, partition: u32) {
    for _ in 0..count {
        world.send(partition, 1, bytes).await.unwrap();
    }
}

#[given(regex = r"^(\d+) bytes of messages in partition (\d+)$")]
async fn bytes_in(world: &mut BddWorld, bytes: usize, partition: u32) {
    for _ in 0..bytes.div_ceil(100_000) {
        world.send(partition, 10, 10_000).await.unwrap();
    }
}

#[given(regex = r"^(\d+) messages in each partition$")]
#[when(regex = r"^(\d+) messages are sent to each partition$")]
async fn messages_in_each(world: &mut BddWorld, count: usize) {
    for partition in 0..world.topic_details().await.topic.partitions_count {
        world.send(partition, count, 0).await.unwrap();
    }
}

#[when(regex = r"^(\d+) messages are sent to partition (\d+)(?: in one batch)?$")]
async fn send_to(world: &mut BddWorld, count: usize, partition: u32) {
    let sent = world.send(partition, count, 0).await;
    world.confirmation = world
        .keep(sent)
        .and_then(|confirmations| confirmations.first().cloned());
}

#[when(regex = r"^a message of (\d+) bytes is sent to partition (\d+)$")]
async fn send_large(world: &mut BddWorld, bytes: usize, partition: u32) {
    let sent = world.send(partition, 1, bytes).await;
    world.keep(sent);
}

#[when(regex = r"^(\d+) messages are sent balanced, one at a time$")]
async fn send_balanced(world: &mut BddWorld, count: usize) {
    for index in 0..count {
        let message = [Sent::numbered(0, index, 0).message().unwrap()];
        let client = world.client();
        let sent = client
            .send_messages(
                &world.stream_id(),
                &world.topic_id(),
                &Partitioning::balanced(),
                &message,
            )
            .await;
        world.keep(sent);
    }
}

async fn send_with(world: &mut BddWorld, partitioning: Partitioning, count: usize) {
    let messages: Vec<_> = (0..count)
        .map(|index| Sent::numbered(0, index, 0).message().unwrap())
        .collect();
    let client = world.client();
    let sent = client
        .send_messages(&world.stream_id(), &world.topic_id(), &partitioning, &messages)
        .await;
    world.keep(sent);
}

#[when(regex = r#"^(\d+) messages are sent with the key "(.*)"$"#)]
async fn send_with_key(world: &mut BddWorld, count: usize, key: String) {
    send_with(world, Partitioning::messages_key_str(&key).unwrap(), count).await;
}

#[when(regex = r"^(\d+) messages are sent with the key number (\d+)$")]
async fn send_with_number(world: &mut BddWorld, count: usize, key: u64) {
    send_with(world, Partitioning::messages_key_u64(key), count).await;
}

async fn send_with_headers(world: &mut BddWorld, headers: UserHeaders) {
    let mut messages = world.next_messages(0, 1, 0);
    messages[0].headers = headers;
    let client = world.client();
    let sent = world.send_by(&client, 0, messages).await;
    world.keep(sent);
}

#[when(regex = r#"^a message with the header "(.*)" of the kind "(.*)" and the value "(.*)" is sent$"#)]
async fn send_with_header(world: &mut BddWorld, key: String, kind: String, value: String) {
    let mut headers = UserHeaders::new();
    let value = TypedValue::parse(ValueKind::from_name(&kind).unwrap(), &value).unwrap();
    headers.set(&key, value).unwrap();
    send_with_headers(world, headers).await;
}

#[when(regex = r#"^a message with the header "(.*)" of (\d+) bytes is sent$"#)]
async fn send_with_long_header(world: &mut BddWorld, key: String, bytes: usize) {
    let mut headers = UserHeaders::new();
    let made = TypedValue::string("x".repeat(bytes)).map_err(IggyError::from);
    if let Some(value) = world.keep(made) {
        headers.set(&key, value).unwrap();
        send_with_headers(world, headers).await;
    }
}

#[when(regex = r"^a message with (\d+) headers is sent$")]
async fn send_with_many_headers(world: &mut BddWorld, count: u32) {
    let mut headers = UserHeaders::new();
    for index in 0..count {
        headers
            .set(&format!("header-{index}"), TypedValue::uint32(index))
            .unwrap();
    }
    send_with_headers(world, headers).await;
}

#[then(regex = r#"^the header "(.*)" of message (\d+) has the kind "(.*)" and the value "(.*)"$"#)]
fn header_is(world: &mut BddWorld, key: String, index: usize, kind: String, value: String) {
    world.expect_no_error();
    let polled = world.polled.as_ref().expect("a poll");
    let headers = polled.reply.messages[index]
        .user_headers_map()
        .unwrap()
        .expect("headers");
    let wanted = TypedValue::parse(ValueKind::from_name(&kind).unwrap(), &value).unwrap();
    assert_eq!(headers.get_str(&key), Some(&wanted));
}

#[then(regex = r"^the confirmation names partition (\d+) and the base offset (\d+)$")]
fn confirmed(world: &mut BddWorld, partition: u32, base_offset: u64) {
    world.expect_no_error();
    let confirmation = world.confirmation.as_ref().expect("a confirmation");
    assert_eq!(
        (confirmation.partition_id, confirmation.base_offset),
        (partition, base_offset)
    );
}

#[when(regex = r"^(\d+) messages are being sent to partition (\d+)$")]
fn start_sending(world: &mut BddWorld, count: usize, partition: u32) {
    let messages = world.next_messages(partition, count, 0);
    let batch: Vec<_> = messages.iter().map(|sent| sent.message().unwrap()).collect();
    world.sent.entry(partition).or_default().extend(messages);
    let (client, stream, topic) = (world.client(), world.stream_id(), world.topic_id());
    world.sending = Some(tokio::spawn(async move {
        let partitioning = Partitioning::partition_id(partition);
        client.send_messages(&stream, &topic, &partitioning, &batch).await
    }));
}

#[then("the messages being sent arrive once")]
async fn sent_arrives(world: &mut BddWorld) {
    let sending = world.sending.take().expect("messages being sent");
    let confirmations = tokio::time::timeout(crate::world::DEADLINE, sending).await;
    let confirmations = confirmations.expect("an end of the sending").unwrap().unwrap();
    let partition = confirmations[0].partition_id;
    let stored = world.topic_details().await.partitions[partition as usize].messages_count;
    assert_eq!(stored as usize, world.sent[&partition].len());
}
