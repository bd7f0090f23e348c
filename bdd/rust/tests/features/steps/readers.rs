//! The partition reader.

use cucumber::{given, then, when};
use iggy::prelude::*;

use crate::values::start;
use crate::world::{BddWorld, DEADLINE, Received};

/// `the partitions 0 to 3`, `the partitions 0 and 9`.
fn partitions(text: &str) -> Vec<u32> {
    if let Some((first, last)) = text.split_once(" to ") {
        (first.parse().unwrap()..=last.parse().unwrap()).collect()
    } else {
        text.split(" and ").map(|id| id.parse().unwrap()).collect()
    }
}

async fn open(world: &mut BddWorld, text: &str, name: &str, count: u32) {
    let consumer = Consumer::new(Identifier::named(name).unwrap());
    let client = world.client();
    let options = PollOptions {
        count,
        ..PollOptions::wait(IggyDuration::ONE_SECOND)
    };
    let reader = client
        .reader(&world.stream_id(), &world.topic_id(), &consumer)
        .partitions(partitions(text))
        .options(options)
        .build()
        .await;
    world.reader = Some(reader.unwrap());
}

#[given(regex = r"^a reader of the partitions (\d+ (?:to|and) \d+)$")]
async fn a_reader(world: &mut BddWorld, text: String) {
    open(world, &text, "reader", 1_000).await;
}

#[given(regex = r#"^a reader of the partitions (\d+ (?:to|and) \d+) named "(.*)"$"#)]
async fn a_named_reader(world: &mut BddWorld, text: String, name: String) {
    open(world, &text, &name, 1_000).await;
}

#[given(regex = r"^a reader of the partitions (\d+ (?:to|and) \d+) with a count of (\d+)$")]
async fn a_counting_reader(world: &mut BddWorld, text: String, count: u32) {
    open(world, &text, "reader", count).await;
}

/// One more batch, or one more report.
async fn read_once(world: &mut BddWorld) {
    let reader = world.reader.as_mut().expect("a reader");
    match tokio::time::timeout(DEADLINE, reader.next()).await.expect("a batch") {
        Ok(batch) => {
            world.checkpoints.extend(batch.checkpoint());
            world.read.extend(batch.messages.iter().map(|message| Received {
                partition: batch.partition_id,
                offset: message.header.offset,
                payload: message.payload.to_vec(),
            }));
        }
        Err(refused) => world.reported.push((refused.partition_id, refused.error)),
    }
}

async fn read_until(world: &mut BddWorld, count: usize) {
    while world.read.len() < count {
        read_once(world).await;
    }
}

#[given(regex = r"^the reader has read (\d+) messages$")]
#[when(regex = r"^the reader has read (\d+) messages$")]
async fn has_read(world: &mut BddWorld, count: usize) {
    read_until(world, count).await;
}

#[when(regex = r"^the reader has read (\d+) more messages$")]
async fn has_read_more(world: &mut BddWorld, count: usize) {
    let count = world.read.len() + count;
    read_until(world, count).await;
}

fn check_partition(world: &BddWorld, partition: u32, count: usize) {
    let of_partition: Vec<_> = world.read.iter().filter(|read| read.partition == partition).collect();
    assert_eq!(of_partition.len(), count, "messages of partition {partition}");
    for (offset, read) in of_partition.iter().enumerate() {
        assert_eq!(read.offset, offset as u64, "the order of partition {partition}");
        assert_eq!(read.payload, world.sent[&partition][offset].payload);
    }
}

#[then(regex = r"^it read (\d+) messages of partition (\d+)$")]
fn read_of(world: &mut BddWorld, count: usize, partition: u32) {
    check_partition(world, partition, count);
}

#[then(regex = r"^it read (\d+) messages of each partition in order$")]
async fn read_of_each(world: &mut BddWorld, count: usize) {
    for partition in 0..world.topic_details().await.topic.partitions_count {
        check_partition(world, partition, count);
    }
}

#[then(regex = r"^the last (\d+) messages are (\d+) to (\d+) of partition (\d+)$")]
fn last_are(world: &mut BddWorld, count: usize, first: u64, last: u64, partition: u32) {
    let tail = &world.read[world.read.len() - count..];
    let found: Vec<_> = tail.iter().map(|read| (read.partition, read.offset)).collect();
    let wanted: Vec<_> = (first..=last).map(|offset| (partition, offset)).collect();
    assert_eq!(found, wanted);
}

#[when("the reader commits what it read")]
async fn commit(world: &mut BddWorld) {
    for checkpoint in std::mem::take(&mut world.checkpoints) {
        let reader = world.reader.as_mut().expect("a reader");
        let committed = reader.commit(checkpoint).await;
        world.keep(committed);
    }
}

#[when(regex = r"^the reader seeks partition (\d+) to (offset \d+|the [a-z ]+)$")]
fn seek(world: &mut BddWorld, partition: u32, to: String) {
    let to = start(&to, world.noted_time);
    let reader = world.reader.as_mut().expect("a reader");
    let sought = reader.seek(partition, to);
    world.keep(sought);
}

#[then(regex = r#"^the reader reported "(\w+)" for partition (\d+)$"#)]
async fn reported(world: &mut BddWorld, code: String, partition: u32) {
    while world.reported.is_empty() {
        read_once(world).await;
    }
    let (found, error) = &world.reported[0];
    assert_eq!(
        (*found, error.code().name()),
        (Some(partition), code.as_str()),
        "{error}"
    );
}

#[then(regex = r#"^the reader stops partition (\d+) with "(\w+)"$"#)]
async fn stops(world: &mut BddWorld, partition: u32, code: String) {
    while !world.reported.iter().any(|(id, _)| *id == Some(partition)) {
        read_once(world).await;
    }
    let (_, error) = world
        .reported
        .iter()
        .rfind(|(id, _)| *id == Some(partition))
        .expect("a report");
    assert_eq!(error.code().name(), code, "{error}");
    let mut stopped = world.reader.as_ref().expect("a reader").stopped();
    assert!(stopped.any(|id| id == partition), "partition {partition} is still read");
}

#[when("the reader is closed")]
async fn close(world: &mut BddWorld) {
    let closed = world.reader.as_mut().expect("a reader").close().await;
    world.keep(closed);
}

#[then(regex = r#"^reading fails with the class "(\w+)"$"#)]
async fn reading_fails(world: &mut BddWorld, class: String) {
    let error = world.reader.as_mut().expect("a reader").next().await.unwrap_err();
    assert_eq!(format!("{:?}", error.error.class()).to_lowercase(), class);
}
