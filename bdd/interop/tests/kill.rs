//! A server that is killed again and again under an idempotent producer.
//!
//! Proves recovery, receipts and producer state; not durability, because the page cache survives a killed process.

use std::time::{Duration, Instant};

use iggy::prelude::*;
use interop::{World, consumer, persisted_topic, soon};
use tokio::sync::watch;

const MESSAGES: u64 = 1_000_000;
const BATCH: u64 = 1_000;
const KILLS: u64 = 20;

/// After how many acknowledged messages to kill, and how long after that.
fn kill_points(seed: u64) -> Vec<(u64, Duration)> {
    let mut state = seed;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut points: Vec<_> = (0..KILLS)
        .map(|_| (random() % (MESSAGES - BATCH), Duration::from_micros(random() % 8_000)))
        .collect();
    points.sort_unstable();
    points
}

fn payload(number: u64) -> String {
    format!("message {number:07}")
}

#[tokio::test(flavor = "multi_thread")]
async fn given_twenty_kills_during_a_million_messages_should_keep_each_exactly_once() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut world = World::start().await;
    world.create_topic(&persisted_topic(1)).await;
    let producer = world
        .client
        .producer("orders", "created")
        .unwrap()
        .direct(
            DirectConfig::builder()
                .batch_length(u32::try_from(BATCH).unwrap())
                .build(),
        )
        .idempotent()
        .build();
    producer.init().await.unwrap();

    let (acknowledged, mut progress) = watch::channel(0);
    let killing = async {
        for (point, pause) in kill_points(seed) {
            progress.wait_for(|count| *count >= point).await.unwrap();
            // Not a wait for anything: at which step of the next batch the kill falls is what is random.
            tokio::time::sleep(pause).await;
            world.server.kill().await.unwrap();
            world.server.restart().await.unwrap();
        }
    };
    let sending = async {
        let began = Instant::now();
        for base in (0..MESSAGES).step_by(usize::try_from(BATCH).unwrap()) {
            let messages = (base..base + BATCH)
                .map(|number| IggyMessage::from(payload(number)))
                .collect();
            let sent = soon(producer.send(messages)).await.unwrap();
            assert_eq!(
                sent.confirmations[0].base_offset, base,
                "a batch was lost or stored twice"
            );
            acknowledged.send_replace(base + BATCH);
        }
        println!(
            "sent {MESSAGES} messages through {KILLS} kills in {:?}",
            began.elapsed()
        );
    };
    tokio::join!(killing, sending);

    let mut expected = 0;
    let mut start = PollingStrategy::first();
    let reader = consumer("reader");
    while expected < MESSAGES {
        let options = PollOptions {
            count: 10_000,
            max_bytes: 8 << 20,
            ..PollOptions::default()
        };
        let polled = soon(
            world
                .client
                .poll_messages(&world.stream, &world.topic, 0, &reader, &start, options),
        );
        let polled = polled.await.unwrap();
        assert!(!polled.messages.is_empty(), "the partition ends at {expected}");
        // The client has checked each message's checksum.
        for message in &polled.messages {
            assert_eq!(message.header.offset, expected);
            assert_eq!(message.payload_as_string().unwrap(), payload(expected));
            expected += 1;
        }
        start = polled.continuation();
    }
    let after = world.poll(0, &reader, &start, 1).await.unwrap();
    assert!(after.messages.is_empty(), "there is more than was sent");
}
