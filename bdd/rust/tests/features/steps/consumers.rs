//! Consumers and members of consumer groups.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use cucumber::{given, then, when};
use iggy::prelude::*;
use iggy_testkit::MemberProcess;

use crate::world::{BddWorld, DEADLINE, Node};

/// What a scenario calls "the consumer".
const THE_CONSUMER: &str = "the consumer";
/// How long a member is listened to before the group is looked at again.
const GLANCE: Duration = Duration::from_millis(20);

/// A consumer and what the application received from it.
#[derive(Debug)]
pub struct Receiver {
    consumer: IggyConsumer,
    received: Vec<ReceivedMessage>,
}

impl Receiver {
    async fn receive(&mut self, count: usize) {
        let wanted = self.received.len() + count;
        while self.received.len() < wanted {
            let next = tokio::time::timeout(DEADLINE, self.consumer.next()).await;
            self.take(next.expect("a message"));
        }
    }

    /// Receives what comes within a moment: a member has to be listened to for the group to settle.
    async fn glance(&mut self) {
        if let Ok(next) = tokio::time::timeout(GLANCE, self.consumer.next()).await {
            self.take(next);
        }
    }

    fn take(&mut self, next: Option<Result<ReceivedMessage, ReadError>>) {
        match next.expect("a consumer that is open") {
            Ok(message) => self.received.push(message),
            // A partition that moved while it was read is read by its new owner.
            Err(error) => assert!(
                error.error.retryable() || error.error.class() == ErrorClass::Stale,
                "{error}"
            ),
        }
    }

    fn last_of_each(&self) -> BTreeMap<u32, &ReceivedMessage> {
        self.received
            .iter()
            .map(|message| (message.partition_id, message))
            .collect()
    }

    pub async fn close(mut self) {
        let _ = self.consumer.shutdown().await;
    }
}

impl BddWorld {
    fn receiver(&mut self, name: &str) -> &mut Receiver {
        self.expect_no_error();
        self.consumers.get_mut(name).unwrap_or_else(|| panic!("no {name}"))
    }

    async fn consume(&mut self, name: &str, consumer: IggyConsumer) {
        let mut consumer = consumer;
        let ready = consumer.init().await;
        if self.keep(ready).is_some() {
            let receiver = Receiver {
                consumer,
                received: Vec::new(),
            };
            self.consumers.insert(name.to_owned(), receiver);
        }
    }

    async fn commit_all(&mut self, name: &str) {
        let receiver = self.receiver(name);
        let mut committed = Ok(());
        let checkpoints: Vec<_> = receiver
            .last_of_each()
            .values()
            .map(|message| message.checkpoint())
            .collect();
        for checkpoint in checkpoints {
            committed = committed.and(receiver.consumer.commit(checkpoint).await);
        }
        self.keep(committed);
    }

    async fn close_consumer(&mut self, name: &str) {
        let mut receiver = self.consumers.remove(name).unwrap_or_else(|| panic!("no {name}"));
        let closed = receiver.consumer.shutdown().await;
        self.keep(closed);
    }
}

fn waiting(commit: CommitPolicy) -> PollOptions {
    PollOptions {
        commit,
        ..PollOptions::wait(IggyDuration::ONE_SECOND)
    }
}

#[given(
    regex = r#"^a consumer "(.*)" of partition (\d+) with (manual commits|commits on read|commits after every (\d+) messages)$"#
)]
async fn a_consumer(world: &mut BddWorld, name: String, partition: u32, commits: String, every: String) {
    let commit = match commits.as_str() {
        "manual commits" => CommitPolicy::Manual,
        "commits on read" => CommitPolicy::OnRead,
        _ => CommitPolicy::Auto(AutoCommit {
            interval: IggyDuration::ZERO,
            every: Some(CommitEvery::Messages(every.parse().unwrap())),
            after: CommitAfter::Processing,
        }),
    };
    let builder = world.client().consumer(&name, &world.stream, &world.topic).unwrap();
    let consumer = builder.partitions([partition]).poll_options(waiting(commit)).build();
    world.consume(THE_CONSUMER, consumer).await;
}

#[when(regex = r"^the consumer receives (\d+) messages$")]
async fn consumer_receives(world: &mut BddWorld, count: usize) {
    world.receiver(THE_CONSUMER).receive(count).await;
}

#[given(regex = r"^the consumer received (\d+) messages and committed the last of them$")]
async fn consumer_received(world: &mut BddWorld, count: usize) {
    world.receiver(THE_CONSUMER).receive(count).await;
    world.commit_all(THE_CONSUMER).await;
}

#[when("the consumer commits the last message it received")]
async fn consumer_commits(world: &mut BddWorld) {
    world.commit_all(THE_CONSUMER).await;
}

#[given("the consumer was closed")]
#[when("the consumer is closed")]
async fn consumer_is_closed(world: &mut BddWorld) {
    world.close_consumer(THE_CONSUMER).await;
}

#[then(regex = r"^the consumer received the messages (\d+) to (\d+)$")]
fn consumer_received_those(world: &mut BddWorld, first: u64, last: u64) {
    let received = &world.receiver(THE_CONSUMER).received;
    let offsets: Vec<_> = received.iter().map(|message| message.message.header.offset).collect();
    assert_eq!(offsets, (first..=last).collect::<Vec<_>>());
}

#[given(regex = r#"^the member "(.*)" of the group "(.*)"$"#)]
async fn a_member(world: &mut BddWorld, name: String, group: String) {
    world.group.clone_from(&group);
    // A member is a client of its own, as it would be in a program of its own.
    let client = BddWorld::connect("iggy:iggy").await.unwrap();
    let builder = client.consumer_group(&group, &world.stream, &world.topic).unwrap();
    let consumer = builder.poll_options(waiting(CommitPolicy::Manual)).build();
    world.clients.insert(name.clone(), client);
    world.consume(&name, consumer).await;
}

#[when(regex = r#"^a member of the group "(.*)" joins without creating it$"#)]
async fn member_does_not_create(world: &mut BddWorld, group: String) {
    let builder = world
        .client()
        .consumer_group(&group, &world.stream, &world.topic)
        .unwrap();
    let consumer = builder.do_not_create_consumer_group_if_not_exists().build();
    world.consume("nobody", consumer).await;
}

/// Partitions by owner as the members see it.
fn owned(world: &BddWorld) -> Vec<BTreeSet<u32>> {
    let members = world.consumers.values();
    members
        .map(|receiver| receiver.consumer.partitions().collect())
        .collect()
}

/// Whether the members and the node agree, and every partition has its owner.
async fn has_settled(world: &BddWorld) -> bool {
    let group = Identifier::named(&world.group).unwrap();
    let client = world.client();
    let found = client
        .get_consumer_group(&world.stream_id(), &world.topic_id(), &group)
        .await;
    let found = found.unwrap().expect("the group");
    let mut by_node: Vec<BTreeSet<u32>> = found
        .members
        .iter()
        .map(|member| member.partitions.iter().copied().collect())
        .collect();
    let mut by_members = owned(world);
    by_node.sort();
    by_members.sort();
    let count: usize = by_node.iter().map(BTreeSet::len).sum();
    by_node == by_members && count == found.group.partitions_count as usize
}

#[given("the members have settled")]
#[when("the members have settled")]
async fn settle(world: &mut BddWorld) {
    world.expect_no_error();
    let settling = async {
        while !has_settled(world).await {
            for receiver in world.consumers.values_mut() {
                receiver.glance().await;
            }
        }
    };
    let settled = tokio::time::timeout(DEADLINE, settling).await;
    assert!(settled.is_ok(), "the members own {:?}", owned(world));
}

#[then(regex = r#"^"(.*)" owns (\d+) partitions$"#)]
fn owns(world: &mut BddWorld, name: String, count: usize) {
    assert_eq!(world.receiver(&name).consumer.partitions().count(), count);
}

#[then(regex = r#"^"(.*)" and "(.*)" own (\d+) partitions each$"#)]
fn own(world: &mut BddWorld, first: String, second: String, count: usize) {
    for name in [first, second] {
        assert_eq!(world.receiver(&name).consumer.partitions().count(), count);
    }
}

#[then("no partition has two owners")]
fn one_owner(world: &mut BddWorld) {
    let owned = owned(world);
    let all: BTreeSet<_> = owned.iter().flatten().collect();
    assert_eq!(all.len(), owned.iter().map(BTreeSet::len).sum::<usize>());
}

#[given(regex = r#"^"(.*)" received (\d+) messages$"#)]
#[when(regex = r#"^"(.*)" receives (\d+) messages$"#)]
async fn member_receives(world: &mut BddWorld, name: String, count: usize) {
    world.receiver(&name).receive(count).await;
}

#[given(regex = r#"^"(.*)" received (\d+) messages and committed them$"#)]
async fn member_received(world: &mut BddWorld, name: String, count: usize) {
    world.receiver(&name).receive(count).await;
    world.commit_all(&name).await;
}

#[given(regex = r#"^"(.*)" left$"#)]
#[when(regex = r#"^"(.*)" leaves$"#)]
async fn member_leaves(world: &mut BddWorld, name: String) {
    world.close_consumer(&name).await;
}

#[when(regex = r#"^the client of "(.*)" signs out$"#)]
async fn member_signs_out(world: &mut BddWorld, name: String) {
    let signed_out = world.client_of(&name).logout_user().await;
    world.consumers.remove(&name);
    world.keep(signed_out);
}

#[given(regex = r#"^a process that is a member of the group "(.*)" of the topic "(.*)" in the stream "(.*)"$"#)]
async fn a_member_process(world: &mut BddWorld, group: String, topic: String, stream: String) {
    let program = Path::new(env!("CARGO_BIN_EXE_iggy-bdd-member"));
    let address = Node::server().await.tcp_address();
    let member = MemberProcess::start(program, address, &stream, &topic, &group).await;
    world.member = Some(member.unwrap());
}

#[when("that process is killed")]
async fn member_process_is_killed(world: &mut BddWorld) {
    world.member.take().expect("a process").kill().await.unwrap();
}

#[then(regex = r#"^"(.*)" and "(.*)" together receive (\d+) messages and none twice$"#)]
async fn together(world: &mut BddWorld, first: String, second: String, count: usize) {
    let receiving = async {
        while world
            .consumers
            .values()
            .map(|receiver| receiver.received.len())
            .sum::<usize>()
            < count
        {
            for name in [&first, &second] {
                world.receiver(name).glance().await;
            }
        }
    };
    tokio::time::timeout(DEADLINE, receiving).await.expect("the messages");
    check_received(world);
}

/// Every partition was read from its start, in order, without a hole and nothing twice, whoever read it.
fn check_received(world: &BddWorld) {
    let mut offsets: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for receiver in world.consumers.values() {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for message in &receiver.received {
            let (partition, offset) = (message.partition_id, message.message.header.offset);
            assert!(
                last.insert(partition, offset).is_none_or(|last| last < offset),
                "the order"
            );
            assert_eq!(message.message.payload, world.sent[&partition][offset as usize].payload);
            offsets.entry(partition).or_default().push(offset);
        }
    }
    for (partition, mut offsets) in offsets {
        offsets.sort_unstable();
        let wanted: Vec<_> = (0..world.sent[&partition].len() as u64).collect();
        assert_eq!(offsets, wanted, "partition {partition}");
    }
}

#[then("every partition was read in order and nothing twice")]
fn read_once(world: &mut BddWorld) {
    world.expect_no_error();
    check_received(world);
}

#[then(regex = r#"^"(.*)" received message (\d+) of every partition$"#)]
fn received_message(world: &mut BddWorld, name: String, offset: u64) {
    let partitions = world.sent.len();
    let received = &world.receiver(&name).received;
    let found: BTreeSet<_> = received.iter().map(|message| message.partition_id).collect();
    assert_eq!(found.len(), partitions);
    assert!(received.iter().all(|message| message.message.header.offset == offset));
}

#[when(regex = r#"^"(.*)" commits a message of a partition that "(.*)" owns$"#)]
async fn commit_lost(world: &mut BddWorld, name: String, other: String) {
    let lost: BTreeSet<u32> = world.receiver(&other).consumer.partitions().collect();
    let receiver = world.receiver(&name);
    let message = receiver
        .received
        .iter()
        .find(|message| lost.contains(&message.partition_id));
    let checkpoint = message.expect("a message of the lost partition").checkpoint();
    let committed = receiver.consumer.commit(checkpoint).await;
    world.keep(committed);
}
