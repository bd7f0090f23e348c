//! Polling.

use cucumber::{given, then, when};
use iggy::prelude::*;

use crate::values::{duration, start};
use crate::world::{BddWorld, DEADLINE, Polled};

/// What a poll of a scenario asks for unless it says more.
fn plenty() -> PollOptions {
    PollOptions {
        count: 10_000,
        max_bytes: 16 << 20,
        ..PollOptions::default()
    }
}

impl BddWorld {
    pub async fn poll_by(
        &mut self,
        client: &IggyClient,
        partition: u32,
        consumer: &str,
        from: impl Into<ReadStart>,
        options: PollOptions,
    ) {
        let consumer = Consumer::new(Identifier::named(consumer).unwrap());
        let reply = client
            .poll_messages(&self.stream_id(), &self.topic_id(), partition, &consumer, from, options)
            .await;
        if let Some(reply) = self.keep(reply) {
            self.polled = Some(Polled { partition, reply });
        }
    }

    async fn poll(&mut self, partition: u32, consumer: &str, from: &str, options: PollOptions) {
        let from = start(from, self.noted_time);
        let client = self.client();
        self.poll_by(&client, partition, consumer, from, options).await;
    }

    pub fn polled(&self) -> &Polled {
        self.expect_no_error();
        self.polled.as_ref().expect("a poll")
    }

    /// The messages are those that were sent at these offsets.
    fn check(polled: &Polled, first: u64, last: u64) {
        let offsets: Vec<_> = polled
            .reply
            .messages
            .iter()
            .map(|message| message.header.offset)
            .collect();
        assert_eq!(offsets, (first..=last).collect::<Vec<_>>());
    }
}

#[when(regex = r"^partition (\d+) is polled from (the [a-z ]+|offset \d+)$")]
async fn poll(world: &mut BddWorld, partition: u32, from: String) {
    world.poll(partition, "reader", &from, plenty()).await;
}

#[when(regex = r"^partition (\d+) is polled from (the [a-z ]+|offset \d+) with a count of (\d+)$")]
async fn poll_count(world: &mut BddWorld, partition: u32, from: String, count: u32) {
    let options = PollOptions { count, ..plenty() };
    world.poll(partition, "reader", &from, options).await;
}

#[given(regex = r#"^partition (\d+) was polled by "(.*)" from (the [a-z ]+|offset \d+) with a count of (\d+)$"#)]
#[when(regex = r#"^partition (\d+) is polled by "(.*)" from (the [a-z ]+|offset \d+) with a count of (\d+)$"#)]
async fn poll_by(world: &mut BddWorld, partition: u32, consumer: String, from: String, count: u32) {
    let options = PollOptions { count, ..plenty() };
    world.poll(partition, &consumer, &from, options).await;
}

#[when(
    regex = r#"^partition (\d+) is polled by "(.*)" from (the [a-z ]+) with a count of (\d+) and a commit on read$"#
)]
async fn poll_committing(world: &mut BddWorld, partition: u32, consumer: String, from: String, count: u32) {
    let options = PollOptions {
        count,
        commit: CommitPolicy::OnRead,
        ..plenty()
    };
    world.poll(partition, &consumer, &from, options).await;
}

#[when(regex = r#"^partition (\d+) is polled by "(.*)" with automatic commits$"#)]
async fn poll_counting(world: &mut BddWorld, partition: u32, consumer: String) {
    let options = PollOptions {
        commit: CommitPolicy::Auto(AutoCommit::default()),
        ..plenty()
    };
    world.poll(partition, &consumer, "the next message", options).await;
}

#[when(regex = r"^the same partition is polled from its continuation with a count of (\d+)$")]
async fn poll_on(world: &mut BddWorld, count: u32) {
    let polled = world.polled();
    let (partition, continuation) = (polled.partition, polled.reply.continuation());
    let client = world.client();
    let options = PollOptions { count, ..plenty() };
    world.poll_by(&client, partition, "reader", continuation, options).await;
}

#[when(regex = r"^partition (\d+) is polled from (the [a-z ]+) with a wait of (.*)$")]
async fn poll_waiting(world: &mut BddWorld, partition: u32, from: String, wait: String) {
    let options = PollOptions {
        max_wait: duration(&wait),
        ..plenty()
    };
    world.poll(partition, "reader", &from, options).await;
}

#[when(regex = r"^partition (\d+) is polled from (the [a-z ]+) for at least (\d+) messages with a wait of (.*)$")]
async fn poll_waiting_for(world: &mut BddWorld, partition: u32, from: String, min_count: u32, wait: String) {
    let options = PollOptions {
        max_wait: duration(&wait),
        min_count,
        ..plenty()
    };
    world.poll(partition, "reader", &from, options).await;
}

#[when(regex = r"^partition (\d+) is polled from (the [a-z ]+) with room for (\d+) bytes$")]
async fn poll_bounded(world: &mut BddWorld, partition: u32, from: String, max_bytes: u32) {
    let options = PollOptions { max_bytes, ..plenty() };
    world.poll(partition, "reader", &from, options).await;
}

#[when(
    regex = r"^partition (\d+) is polled with (a count of 0|at least \d+ messages and a count of \d+|a wait of \d+ s|room for \d+ bytes)$"
)]
async fn poll_senseless(world: &mut BddWorld, partition: u32, limits: String) {
    let numbers: Vec<u32> = limits.split(' ').filter_map(|word| word.parse().ok()).collect();
    let mut options = plenty();
    match limits.split(' ').next() {
        Some("at") => (options.min_count, options.count) = (numbers[0], numbers[1]),
        Some("room") => options.max_bytes = numbers[0],
        _ if limits.starts_with("a count") => options.count = numbers[0],
        _ => options.max_wait = IggyDuration::from_secs(u64::from(numbers[0])),
    }
    world.poll(partition, "reader", "the first message", options).await;
}

#[given("the time is noted")]
async fn note_time(world: &mut BddWorld) {
    // The server's clock, not ours: the time of the newest message, and a microsecond more.
    let client = world.client();
    world
        .poll_by(
            &client,
            0,
            "reader",
            PollingStrategy::last(),
            PollOptions { count: 1, ..plenty() },
        )
        .await;
    world.noted_time = world.polled().reply.messages[0].header.timestamp + 1;
}

fn start_waiting(world: &mut BddWorld, partition: u32, consumer: &str, options: PollOptions) {
    let (client, stream, topic) = (world.client(), world.stream_id(), world.topic_id());
    let consumer = Consumer::new(Identifier::named(consumer).unwrap());
    let waiting = tokio::spawn(async move {
        client
            .poll_messages(&stream, &topic, partition, &consumer, PollingStrategy::first(), options)
            .await
    });
    world.waiting = Some((partition, waiting));
}

#[given(regex = r"^a poll of partition (\d+) is waiting for up to ([^f]+)$")]
fn waiting_poll(world: &mut BddWorld, partition: u32, wait: String) {
    let options = PollOptions {
        max_wait: duration(&wait),
        ..plenty()
    };
    start_waiting(world, partition, "reader", options);
}

#[given(regex = r"^a poll of partition (\d+) is waiting for up to (.*) for at least (\d+) messages$")]
fn waiting_poll_for(world: &mut BddWorld, partition: u32, wait: String, min_count: u32) {
    let options = PollOptions {
        max_wait: duration(&wait),
        min_count,
        ..plenty()
    };
    start_waiting(world, partition, "reader", options);
}

#[given(regex = r#"^a poll of partition (\d+) by "(.*)" that stores what it reads is waiting for up to (.*)$"#)]
fn waiting_poll_that_stores(world: &mut BddWorld, partition: u32, consumer: String, wait: String) {
    let options = PollOptions {
        max_wait: duration(&wait),
        commit: CommitPolicy::OnRead,
        ..plenty()
    };
    start_waiting(world, partition, &consumer, options);
}

#[when("the waiting poll is given up")]
async fn give_up(world: &mut BddWorld) {
    let (_, waiting) = world.waiting.take().expect("a waiting poll");
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
}

#[then(regex = r"^the waiting poll returns the messages (\d+) to (\d+)$")]
async fn waiting_returns(world: &mut BddWorld, first: u64, last: u64) {
    world.expect_no_error();
    let (partition, waiting) = world.waiting.take().expect("a waiting poll");
    let reply = tokio::time::timeout(DEADLINE, waiting)
        .await
        .expect("an answer")
        .unwrap()
        .unwrap();
    let polled = Polled { partition, reply };
    BddWorld::check(&polled, first, last);
    world.polled = Some(polled);
}

#[then(regex = r"^the poll returns the messages (\d+) to (\d+)$")]
fn returns(world: &mut BddWorld, first: u64, last: u64) {
    let polled = world.polled();
    BddWorld::check(polled, first, last);
}

#[then("the poll returns no messages")]
fn returns_nothing(world: &mut BddWorld) {
    assert!(world.polled().reply.messages.is_empty());
}

#[then(regex = r"^the poll returns some of the messages from (\d+) on$")]
fn returns_some(world: &mut BddWorld, first: u64) {
    let polled = world.polled();
    let count = polled.reply.messages.len() as u64;
    let all = world.sent[&polled.partition].len() as u64;
    assert!(count > 0 && count < all, "{count} of {all} messages");
    BddWorld::check(polled, first, first + count - 1);
}

#[then(regex = r"^the poll returns messages from later than offset (\d+)$")]
fn returns_later(world: &mut BddWorld, offset: u64) {
    let first = world.polled().reply.messages.first().expect("a message");
    assert!(
        first.header.offset > offset,
        "the poll begins at {}",
        first.header.offset
    );
}

#[then("every message has the payload, the id and the headers it was sent with")]
fn as_sent(world: &mut BddWorld) {
    let polled = world.polled();
    assert!(!polled.reply.messages.is_empty());
    let sent = &world.sent[&polled.partition];
    for message in &polled.reply.messages {
        sent[message.header.offset as usize].check(message);
    }
}

#[then("no payload is readable")]
fn unreadable(world: &mut BddWorld) {
    let polled = world.polled();
    let sent = &world.sent[&polled.partition];
    for message in &polled.reply.messages {
        let payload = &sent[message.header.offset as usize].payload;
        let begins = message.payload.windows(8).any(|window| *window == payload[..8]);
        assert!(!begins, "{:?}", message.payload);
    }
}
