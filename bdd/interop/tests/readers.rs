//! The published reader and consumers, which read several partitions with grouped fetches.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use iggy::prelude::*;
use interop::{World, consumer, soon, texts};

async fn fill(world: &World, partitions: u32, each: usize) {
    for partition in 0..partitions {
        let payloads: Vec<_> = (0..each).map(|number| format!("{partition}/{number}")).collect();
        world
            .send(partition, &payloads.iter().map(String::as_str).collect::<Vec<_>>())
            .await;
    }
}

fn in_order(seen: &BTreeMap<u32, Vec<u64>>) -> bool {
    seen.values()
        .all(|offsets| offsets.iter().copied().eq(0..offsets.len() as u64))
}

async fn read(reader: &mut PartitionReader, count: usize) -> BTreeMap<u32, Vec<u64>> {
    let mut seen: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    while seen.values().map(Vec::len).sum::<usize>() < count {
        let polled = soon(reader.next()).await.unwrap();
        let offsets = polled.messages.iter().map(|message| message.header.offset);
        seen.entry(polled.partition_id).or_default().extend(offsets);
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_reader_of_three_partitions_should_read_each_in_order() {
    let world = World::with_topic(3).await;
    fill(&world, 3, 5).await;
    let mut reader = world
        .client
        .reader(&world.stream, &world.topic, &consumer("reader"))
        .partitions(0..3)
        .start(PollingStrategy::first())
        .build()
        .await
        .unwrap();
    let seen = read(&mut reader, 15).await;
    assert_eq!(seen.len(), 3);
    assert!(in_order(&seen), "{seen:?}");
    soon(reader.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_reader_that_commits_on_read_should_leave_its_offsets_behind() {
    let world = World::with_topic(3).await;
    fill(&world, 3, 5).await;
    let options = PollOptions {
        commit: CommitPolicy::OnRead,
        ..PollOptions::wait(IggyDuration::new(Duration::from_secs(5)))
    };
    let reading = consumer("reader");
    let mut reader = world
        .client
        .reader(&world.stream, &world.topic, &reading)
        .partitions(0..3)
        .options(options)
        .build()
        .await
        .unwrap();
    assert!(in_order(&read(&mut reader, 15).await));
    soon(reader.close()).await.unwrap();
    for partition in 0..3 {
        let found = world
            .client
            .get_consumer_offset(&reading, &world.stream, &world.topic, Some(partition))
            .await;
        assert_eq!(found.unwrap().unwrap().stored_offset, 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_standalone_consumer_should_receive_what_comes_while_it_waits() {
    let world = World::with_topic(1).await;
    let mut receiving = world
        .client
        .consumer("reader", "orders", "created")
        .unwrap()
        .partitions([0])
        .polling_strategy(PollingStrategy::first())
        .build();
    soon(receiving.init()).await.unwrap();
    for number in 0..10 {
        world.send(0, &[&format!("{number}")]).await;
    }
    for number in 0..10 {
        let received = soon(receiving.next()).await.unwrap().unwrap();
        assert_eq!(received.message.payload_as_string().unwrap(), format!("{number}"));
    }
    soon(receiving.shutdown()).await.unwrap();
}

async fn member(client: &IggyClient) -> IggyConsumer {
    let every_message = AutoCommit {
        every: Some(CommitEvery::Message),
        after: CommitAfter::Processing,
        ..AutoCommit::default()
    };
    let options = PollOptions {
        commit: CommitPolicy::Auto(every_message),
        ..PollOptions::wait(IggyDuration::new(Duration::from_secs(1)))
    };
    let mut member = client
        .consumer_group("billing", "orders", "created")
        .unwrap()
        .poll_options(options)
        .build();
    soon(member.init()).await.unwrap();
    member
}

#[tokio::test(flavor = "multi_thread")]
async fn given_two_group_consumers_should_together_receive_everything_and_one_take_over() {
    let world = World::with_topic(4).await;
    let other = world.another_client().await;
    let mut a = member(&world.client).await;
    let mut b = member(&other).await;
    let sender = world.another_client().await;
    for partition in 0..4 {
        let partitioning = Partitioning::partition_id(partition);
        sender
            .send_messages(&world.stream, &world.topic, &partitioning, &mut texts(&["1", "2", "3"]))
            .await
            .unwrap();
    }
    let mut seen = std::collections::BTreeSet::new();
    soon(async {
        while seen.len() < 12 {
            let received = tokio::select! {
                received = a.next() => received,
                received = b.next() => received,
            };
            let received = received.unwrap().unwrap();
            seen.insert((received.partition_id, received.message.header.offset));
        }
    })
    .await;
    soon(b.shutdown()).await.unwrap();
    for partition in 0..4 {
        let partitioning = Partitioning::partition_id(partition);
        sender
            .send_messages(&world.stream, &world.topic, &partitioning, &mut texts(&["4"]))
            .await
            .unwrap();
    }
    let mut taken = std::collections::BTreeSet::new();
    soon(async {
        while taken.len() < 4 {
            let received = a.next().await.unwrap().unwrap();
            if received.message.header.offset == 3 {
                taken.insert(received.partition_id);
            }
        }
    })
    .await;
    soon(a.shutdown()).await.unwrap();
}
