//! Calls dropped at each of their points: nothing is lost, nothing comes twice.

use std::pin::pin;

use iggy_protocol::{Command, Consumer, IggyDuration, Partitioning, PollingStrategy};
use iggy_testkit::insist;

use crate::error::Outcome;
use crate::message::IggyMessage;
use crate::poll::{AutoCommit, Checkpoint, CommitAfter, CommitEvery, CommitPolicy, PollOptions};
use crate::scripted_tests::LONG;
use crate::scripted_tests::peer::{Peer, Step, id};

fn policies() -> [CommitPolicy; 3] {
    let auto = AutoCommit {
        interval: IggyDuration::ZERO,
        every: Some(CommitEvery::Messages(3)),
        after: CommitAfter::Processing,
    };
    [CommitPolicy::Manual, CommitPolicy::Auto(auto), CommitPolicy::OnRead]
}

#[tokio::test]
async fn given_a_reader_when_its_calls_are_dropped_at_every_point_should_deliver_each_message_once() {
    for commit in policies() {
        let peer = Peer::connected(LONG).await;
        let options = PollOptions {
            count: 3,
            commit,
            ..PollOptions::wait(IggyDuration::from_secs(5))
        };
        let builder = async || {
            let reader = peer.client.reader(&id(1), &id(2), &Consumer::new(id(9)));
            reader.partitions([0, 1]).options(options).build().await.unwrap()
        };
        let mut reader = insist(builder).await;
        let mut seen = [Vec::new(), Vec::new()];
        for round in 0..20_u64 {
            let partition = (round % 2) as u32;
            peer.store(|store| store.append(partition, "m"));
            while (seen[0].len() + seen[1].len()) as u64 <= round {
                let batch = insist(async || reader.next().await.unwrap()).await;
                let offsets = batch.messages.iter().map(|message| message.header.offset);
                seen[batch.partition_id as usize].extend(offsets);
                if commit == CommitPolicy::Manual {
                    let checkpoint = batch.checkpoint().unwrap();
                    insist(async || reader.commit(checkpoint).await.unwrap()).await;
                    assert_eq!(
                        peer.store(|store| store.stored(batch.partition_id)),
                        Some(checkpoint.offset)
                    );
                }
            }
        }
        for offsets in &seen {
            assert!(offsets.iter().copied().eq(0..10), "{commit:?}: {offsets:?}");
        }
        insist(async || reader.close().await.unwrap()).await;
        let stored = peer.store(|store| [store.stored(0), store.stored(1)]);
        match commit {
            // The batch that was handed out last was not processed.
            CommitPolicy::Auto(_) => assert!(stored.iter().flatten().sum::<u64>() >= 17, "{stored:?}"),
            CommitPolicy::Manual | CommitPolicy::OnRead => assert_eq!(stored, [Some(9), Some(9)]),
        }
    }
}

#[tokio::test]
async fn given_a_consumer_when_replies_are_lost_and_calls_dropped_should_hand_out_each_message_once() {
    for commit in policies() {
        let peer = Peer::connected(LONG).await;
        let lossy = [Step::Serve, Step::Lose, Step::Close, Step::Serve];
        peer.script(Command::FetchMessages, lossy.into_iter().cycle().take(40));
        let group = peer.client.consumer_group("billing", "orders", "created").unwrap();
        let mut consumer = group
            .poll_options(PollOptions {
                count: 3,
                commit,
                ..PollOptions::wait(IggyDuration::from_secs(5))
            })
            .build();
        insist(async || consumer.init().await.unwrap()).await;
        for offset in 0..30 {
            peer.store(|store| store.append(0, "m"));
            let received = insist(async || consumer.next().await.unwrap().unwrap()).await;
            assert_eq!(received.message.header.offset, offset, "{commit:?}");
        }
        insist(async || consumer.shutdown().await.unwrap()).await;
        let stored = peer.store(|store| store.stored(0));
        let expected = match commit {
            CommitPolicy::Manual => None,
            // The last message is in hand and may not be processed.
            CommitPolicy::Auto(_) => Some(28),
            CommitPolicy::OnRead => Some(29),
        };
        assert_eq!(stored, expected, "{commit:?}");
    }
}

#[tokio::test]
async fn given_single_calls_when_dropped_at_every_point_should_come_through_and_leave_nothing_behind() {
    let peer = Peer::connected(LONG).await;
    let client = &peer.client;
    let consumer = Consumer::new(id(9));
    for number in 0..4 {
        peer.store(|store| store.append(0, &number.to_string()));
        let polled = insist(async || {
            client
                .poll_messages(
                    &id(1),
                    &id(2),
                    0,
                    &consumer,
                    PollingStrategy::first(),
                    PollOptions::default(),
                )
                .await
                .unwrap()
        })
        .await;
        assert_eq!(polled.messages.len(), number + 1);
        let checkpoint: Checkpoint = polled.checkpoint().unwrap();
        insist(async || {
            let (stream, topic) = (id(1), id(2));
            let stored = client.store_consumer_position(&consumer, &stream, &topic, &checkpoint);
            stored.await.unwrap();
        })
        .await;
        assert_eq!(peer.store(|store| store.stored(0)), Some(number as u64));
        insist(async || {
            let message = IggyMessage::new("payload").unwrap();
            let partitioning = Partitioning::partition_id(0);
            client
                .send_messages(&id(1), &id(2), &partitioning, &[message])
                .await
                .unwrap()
        })
        .await;
        insist(async || client.connect().await.unwrap()).await;
    }
    assert_eq!(client.uncertain_operations(), []);
}

#[tokio::test]
async fn given_a_poll_that_stores_an_offset_when_dropped_should_settle_by_the_reply_to_its_cancel() {
    let mut peer = Peer::connected(LONG).await;
    peer.store(|_| ());
    let consumer = Consumer::new(id(9));
    let options = PollOptions {
        commit: CommitPolicy::OnRead,
        ..PollOptions::wait(IggyDuration::from_secs(5))
    };
    {
        let client = peer.client.clone();
        let poll = async {
            client
                .poll_messages(&id(1), &id(2), 0, &consumer, PollingStrategy::next(), options)
                .await
        };
        let parked = peer.until(Command::PollMessagesDeferred);
        let _ = futures::future::select(pin!(poll), pin!(parked)).await;
    }
    peer.until(Command::CancelDeferred).await;
    peer.store(|store| store.append(0, "m"));
    let polled = peer
        .client
        .poll_messages(&id(1), &id(2), 0, &consumer, PollingStrategy::next(), options)
        .await
        .map_err(|error| (error.code(), error.outcome() == Outcome::Unknown))
        .unwrap();
    assert_eq!(polled.messages[0].header.offset, 0);
}
