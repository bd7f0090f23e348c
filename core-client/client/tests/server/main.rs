//! The client against a real server process.

mod announcement;
mod consumers;
mod drops;
mod faults;
mod groups;
mod messages;
mod pressure;
mod producers;
mod readers;
mod resources;
mod sessions;
mod shared_groups;
mod waits;

use iggy::prelude::*;
use iggy_testkit::TestServer;

async fn connected(server: &TestServer) -> IggyClient {
    let client = IggyClient::from_connection_string(&server.connection_string()).unwrap();
    client.connect().await.unwrap();
    client
}

fn named(name: &str) -> Identifier {
    Identifier::named(name).unwrap()
}

async fn with_topic(client: &IggyClient, partitions_count: u32) -> (Identifier, Identifier) {
    client
        .create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap();
    let options = TopicCreateOptions {
        partitions_count: Some(partitions_count),
        ..TopicCreateOptions::default()
    };
    client
        .create_topic(&named("orders"), "created", &options)
        .await
        .unwrap();
    (named("orders"), named("created"))
}

fn texts(prefix: &str, count: usize) -> Vec<IggyMessage> {
    (0..count)
        .map(|index| IggyMessage::new(format!("{prefix}-{index}")).unwrap())
        .collect()
}

async fn read_all(client: &IggyClient, stream: &Identifier, topic: &Identifier, partition: u32) -> Vec<IggyMessage> {
    let consumer = Consumer::new(named("reader"));
    let mut start = ReadStart::from(PollingStrategy::first());
    let mut messages = Vec::new();
    loop {
        let polled = client
            .poll_messages(stream, topic, partition, &consumer, start, PollOptions::default())
            .await
            .unwrap();
        if polled.is_empty() {
            return messages;
        }
        start = polled.continuation().into();
        messages.extend(polled.messages);
    }
}
