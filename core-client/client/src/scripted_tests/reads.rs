//! Readers and consumers against a peer whose partitions misbehave on demand.

use iggy_protocol::codec::Decode;
use iggy_protocol::request::message::FetchMessages;
use iggy_protocol::request::offset::StoreConsumerOffset;
use iggy_protocol::{Command, Consumer, ErrorCode, Identifier, IggyDuration, PollingStrategy};
use tokio::time::Duration;

use crate::consumer::{IggyConsumer, ReceivedMessage};
use crate::error::{IggyError, Outcome};
use crate::events::{Events, ReaderEvent};
use crate::poll::{AutoCommit, CommitAfter, CommitEvery, CommitPolicy, PollOptions, PolledMessages, ReadStart};
use crate::reader::{PartitionReader, ReadError};
use crate::scripted_tests::LONG;
use crate::scripted_tests::peer::{Peer, Seen, Step, id};

const PATIENCE: Duration = Duration::from_secs(30);

fn on_read() -> PollOptions {
    PollOptions {
        commit: CommitPolicy::OnRead,
        ..PollOptions::wait(IggyDuration::from_secs(5))
    }
}

async fn peer_with(messages: usize) -> Peer {
    let peer = Peer::connected(LONG).await;
    append(&peer, 0, 0..messages);
    peer
}

fn append(peer: &Peer, partition: u32, numbers: std::ops::Range<usize>) {
    peer.store(|store| numbers.for_each(|number| store.append(partition, &format!("m{number}"))));
}

async fn reader(peer: &Peer, partitions: &[u32], start: impl Into<ReadStart>, options: PollOptions) -> PartitionReader {
    let consumer = Consumer::new(id(9));
    let builder = peer.client.reader(&id(1), &id(2), &consumer);
    let builder = builder
        .partitions(partitions.iter().copied())
        .start(start)
        .options(options);
    builder.build().await.unwrap()
}

async fn member(peer: &Peer, options: PollOptions) -> IggyConsumer {
    let builder = peer.client.consumer_group("billing", "orders", "created").unwrap();
    let mut consumer = builder.poll_options(options).build();
    consumer.init().await.unwrap();
    consumer
}

async fn next(reader: &mut PartitionReader) -> Result<PolledMessages, ReadError> {
    tokio::time::timeout(PATIENCE, reader.next())
        .await
        .expect("nothing came")
}

async fn received(consumer: &mut IggyConsumer) -> ReceivedMessage {
    let next = tokio::time::timeout(PATIENCE, consumer.next()).await;
    next.expect("nothing came").expect("it is open").unwrap()
}

fn offsets(polled: &PolledMessages) -> Vec<u64> {
    polled.messages.iter().map(|message| message.header.offset).collect()
}

async fn until(events: &mut Events<ReaderEvent>, wanted: &ReaderEvent) {
    let all = async { while events.next().await.as_ref() != Some(wanted) {} };
    tokio::time::timeout(PATIENCE, all)
        .await
        .unwrap_or_else(|_| panic!("no {wanted:?} came"));
}

fn fetch_of(seen: &Seen) -> FetchMessages {
    FetchMessages::from_bytes(&seen.frame[256..]).unwrap()
}

#[tokio::test]
async fn given_a_lost_reply_of_a_read_that_stores_offsets_when_read_on_should_read_what_it_skipped_without_storing() {
    let mut peer = peer_with(3).await;
    peer.store(|store| store.store(0, Some(0)));
    peer.script(Command::FetchMessages, [Step::Lose]);
    let mut reader = reader(&peer, &[0], PollingStrategy::next(), on_read()).await;
    let mut events = reader.subscribe_events();
    let batch = next(&mut reader).await.unwrap();
    assert_eq!(offsets(&batch), [1, 2], "nothing is lost");
    assert_eq!(
        events.next().await,
        Some(ReaderEvent::ReadUncertain { partition_id: 0 })
    );
    let (lost, again) = (
        fetch_of(&peer.until(Command::FetchMessages).await),
        fetch_of(&peer.until(Command::FetchMessages).await),
    );
    assert_eq!((lost.auto_commit, again.auto_commit), (true, false));
    assert_eq!(again.targets[0].strategy, PollingStrategy::Offset(1));
    assert_eq!(peer.client.uncertain_operations(), [], "the operation was abandoned");

    append(&peer, 0, 3..5);
    assert_eq!(offsets(&next(&mut reader).await.unwrap()), [3, 4]);
    assert!(fetch_of(&peer.until(Command::FetchMessages).await).auto_commit);
    reader.close().await.unwrap();
    assert_eq!(peer.store(|store| store.stored(0)), Some(4));
}

#[tokio::test]
async fn given_a_lost_reply_when_more_came_since_should_not_hand_out_unstored_messages_by_the_repeated_read() {
    let peer = peer_with(2).await;
    peer.script(Command::FetchMessages, [Step::Lose]);
    // More comes between the lost read and the repeated one.
    peer.script(Command::BindSession, [Step::Refuse(ErrorCode::TransientNotAccepted)]);
    let mut reader = reader(&peer, &[0], PollingStrategy::first(), on_read()).await;
    let mut events = reader.subscribe_events();
    let (batch, ()) = tokio::join!(next(&mut reader), async {
        until(&mut events, &ReaderEvent::ReadUncertain { partition_id: 0 }).await;
        append(&peer, 0, 2..4);
    });
    assert_eq!(offsets(&batch.unwrap()), [0, 1], "as far as the lost read had stored");
    assert_eq!(offsets(&next(&mut reader).await.unwrap()), [2, 3]);
    assert_eq!(peer.store(|store| store.stored(0)), Some(3));
}

#[tokio::test]
async fn given_a_read_that_stores_offsets_when_nobody_waits_should_be_cancelled_and_lose_nothing() {
    let mut peer = peer_with(0).await;
    let mut reader = reader(&peer, &[0], PollingStrategy::next(), on_read()).await;
    {
        let waiting = std::pin::pin!(reader.next());
        let parked = peer.until(Command::FetchMessages);
        assert!(matches!(
            futures::future::select(waiting, std::pin::pin!(parked)).await,
            futures::future::Either::Right(_)
        ));
    }
    peer.until(Command::CancelDeferred).await;
    append(&peer, 0, 0..2);
    assert_eq!(peer.store(|store| store.stored(0)), None, "nobody asked");
    assert_eq!(offsets(&next(&mut reader).await.unwrap()), [0, 1]);
}

#[tokio::test]
async fn given_messages_that_were_not_handed_out_when_closed_should_move_the_stored_offset_back() {
    let peer = peer_with(5).await;
    peer.store(|store| store.store(0, Some(0)));
    let builder = peer.client.consumer("audit", "orders", "created").unwrap();
    let mut consumer = builder.partitions([0]).poll_options(on_read()).build();
    consumer.init().await.unwrap();
    for offset in 1..3 {
        let received = received(&mut consumer).await;
        assert_eq!(received.message.header.offset, offset);
        let error = consumer.commit(received.checkpoint()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidCommand);
    }
    assert_eq!(
        peer.store(|store| store.stored(0)),
        Some(4),
        "the read stored all it returned"
    );
    consumer.shutdown().await.unwrap();
    assert_eq!(peer.store(|store| store.stored(0)), Some(2));
    assert!(consumer.next().await.is_none());
}

#[tokio::test]
async fn given_a_read_that_nobody_took_when_closed_should_restore_what_was_stored_before() {
    for before in [None, Some(1)] {
        let mut peer = peer_with(4).await;
        peer.store(|store| store.store(0, before));
        peer.script(Command::FetchMessages, [Step::Lose]);
        let mut reader = reader(&peer, &[0], PollingStrategy::next(), on_read()).await;
        {
            let waiting = std::pin::pin!(reader.next());
            let lost = peer.until(Command::FetchMessages);
            let _ = futures::future::select(waiting, std::pin::pin!(lost)).await;
        }
        reader.close().await.unwrap();
        assert_eq!(peer.store(|store| store.stored(0)), before);
    }
}

#[tokio::test]
async fn given_a_poll_by_time_when_its_reply_is_lost_should_stop_the_partition_until_a_seek() {
    let peer = peer_with(2).await;
    peer.script(Command::PollMessagesDeferred, [Step::Lose]);
    let mut reader = reader(&peer, &[0], PollingStrategy::timestamp(1), on_read()).await;
    let error = next(&mut reader).await.unwrap_err();
    assert_eq!(
        (error.error.code(), error.error.outcome()),
        (ErrorCode::FetchProgressUncertain, Outcome::Unknown)
    );
    assert!(reader.stopped().eq([0]));
    assert_eq!(
        next(&mut reader).await.unwrap_err().error.code(),
        ErrorCode::NoPartitions
    );
    reader.seek(0, PollingStrategy::first()).unwrap();
    assert_eq!(offsets(&next(&mut reader).await.unwrap()), [0, 1]);
}

#[tokio::test]
async fn given_refused_sections_when_read_should_tell_a_passing_refusal_once_and_a_moved_partition_never() {
    let peer = peer_with(1).await;
    append(&peer, 1, 0..1);
    peer.store(|store| {
        store.refuse(0, [ErrorCode::TransientNotAccepted; 3]);
        store.refuse(1, [ErrorCode::NotPrimary, ErrorCode::HistoryUnavailable]);
    });
    let mut reader = reader(&peer, &[0, 1], PollingStrategy::first(), PollOptions::default()).await;
    let mut told = Vec::new();
    let mut read = std::collections::BTreeSet::new();
    let first = next(&mut reader).await.unwrap_err();
    told.push((first.partition_id, first.error.code(), first.is_lasting_refusal()));
    // The node leads again, in a later view: the one it refused in is over.
    peer.lead(0, 5);
    while read.len() < 2 {
        match next(&mut reader).await {
            Ok(batch) => drop(read.insert(batch.partition_id)),
            Err(error) => told.push((error.partition_id, error.error.code(), error.is_lasting_refusal())),
        }
    }
    assert_eq!(told, [(Some(0), ErrorCode::TransientNotAccepted, false)]);
}

#[tokio::test]
async fn given_six_lasting_refusals_when_read_should_stop_the_partition_and_say_so() {
    let peer = peer_with(1).await;
    append(&peer, 1, 0..1);
    peer.store(|store| store.refuse(1, [ErrorCode::Unauthorized; 6]));
    let mut reader = reader(&peer, &[0, 1], PollingStrategy::first(), PollOptions::default()).await;
    let mut events = reader.subscribe_events();
    let mut refusals = 0;
    while refusals < 6 {
        if let Err(error) = next(&mut reader).await {
            assert!(error.is_lasting_refusal());
            refusals += 1;
        }
    }
    let stopped = ReaderEvent::Stopped {
        partition_id: 1,
        code: ErrorCode::Unauthorized,
    };
    until(&mut events, &stopped).await;
    assert!(reader.stopped().eq([1]));
    append(&peer, 0, 1..2);
    assert_eq!(next(&mut reader).await.unwrap().partition_id, 0, "the other goes on");
    reader.seek(1, PollingStrategy::first()).unwrap();
    assert_eq!(next(&mut reader).await.unwrap().partition_id, 1);
}

#[tokio::test]
async fn given_a_record_that_is_no_batch_when_read_should_deliver_those_before_and_offer_to_skip_it() {
    let peer = peer_with(4).await;
    peer.store(|store| store.broken_from = Some(2));
    let mut reader = reader(&peer, &[0], PollingStrategy::first(), PollOptions::default()).await;
    assert_eq!(offsets(&next(&mut reader).await.unwrap()), [0, 1]);
    let error = next(&mut reader).await.unwrap_err();
    assert_eq!((error.partition_id, error.offset), (Some(0), Some(2)));
    assert!(error.record.unwrap().iter().all(|byte| *byte == 0xa5));
    peer.store(|store| store.broken_from = None);
    append(&peer, 0, 4..5);
    reader.seek(0, error.skip.unwrap()).unwrap();
    assert_eq!(offsets(&next(&mut reader).await.unwrap()), [4]);
}

#[tokio::test]
async fn given_a_partition_that_went_and_came_back_when_refused_should_begin_a_new_ordering() {
    let mut peer = peer_with(2).await;
    peer.store(|store| store.owner_generation = 40);
    peer.assign(5, &[0]);
    let mut consumer = member(&peer, PollOptions::wait(IggyDuration::from_secs(5))).await;
    let mut events = consumer.subscribe_events().unwrap();
    let first = received(&mut consumer).await;
    let second = received(&mut consumer).await;
    peer.until(Command::FetchMessages).await;
    peer.until(Command::FetchMessages).await;
    // Another member owned it for a while, and stored an offset.
    peer.assign(7, &[0]);
    peer.store(|store| {
        store.owner_generation = 70;
        store.store(0, Some(0));
        store.refuse(0, [ErrorCode::ConsumerGroupPartitionNotOwned]);
    });
    let gained = ReaderEvent::Assigned {
        generation: 7,
        partitions: vec![0],
    };
    until(&mut events, &gained).await;
    append(&peer, 0, 2..3);
    let third = received(&mut consumer).await;
    assert_eq!(third.message.header.offset, 2, "the second was handed out already");
    consumer.commit(second.checkpoint()).await.unwrap();
    assert_eq!(
        peer.store(|store| store.stored(0)),
        Some(0),
        "a position of the ordering before stores nothing"
    );
    consumer.commit(third.checkpoint()).await.unwrap();
    assert_eq!(peer.store(|store| store.stored(0)), Some(2));
    assert_eq!(first.checkpoint().context.owner_generation, 40);
    assert_eq!(third.checkpoint().context.owner_generation, 70);
}

#[tokio::test]
async fn given_an_uncertain_join_when_built_again_should_be_blocked_until_it_is_settled() {
    let peer = Peer::connected(Duration::from_millis(300)).await;
    peer.script(Command::JoinConsumerGroup, [Step::Ignore]);
    let build = || {
        let group = Consumer::group(Identifier::named("billing").unwrap());
        peer.client.reader(&id(1), &id(2), &group).build()
    };
    let error = build().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::OperationUncertain);
    let blocked = build().await.unwrap_err();
    assert_eq!(
        (blocked.code(), blocked.operation()),
        (ErrorCode::LaneBlocked, error.operation())
    );
    peer.client
        .resolve_operation(error.operation().unwrap(), LONG)
        .await
        .unwrap();
    assert!(build().await.unwrap().partitions().eq([0]));
}

#[tokio::test]
async fn given_a_waiting_consumer_when_nothing_comes_should_cost_one_request_per_wait() {
    let mut peer = peer_with(0).await;
    let mut reader = reader(
        &peer,
        &[0, 1, 2],
        PollingStrategy::next(),
        PollOptions::wait(IggyDuration::from_secs(5)),
    )
    .await;
    let waiting = tokio::spawn(async move { reader.next().await.map(|batch| batch.partition_id) });
    let mut fetched = peer.until(Command::FetchMessages).await;
    while fetch_of(&fetched).targets.len() < 3 {
        fetched = peer.until(Command::FetchMessages).await;
    }
    // Everything that is asked from here on belongs to the message that comes.
    append(&peer, 2, 0..1);
    assert_eq!(waiting.await.unwrap().unwrap(), 2);
    let fetches = std::iter::from_fn(|| peer.seen_so_far()).filter(|seen| seen.command == Command::FetchMessages);
    assert!(fetches.count() <= 1, "only the read ahead");
}

#[tokio::test]
async fn given_a_stored_position_when_it_or_an_earlier_one_is_committed_should_ask_nobody() {
    let mut peer = peer_with(3).await;
    let mut reader = reader(&peer, &[0], PollingStrategy::first(), PollOptions::default()).await;
    let batch = next(&mut reader).await.unwrap();
    reader.commit(batch.checkpoint_at(1).unwrap()).await.unwrap();
    reader.commit(batch.checkpoint_at(1).unwrap()).await.unwrap();
    reader.commit(batch.checkpoint_at(0).unwrap()).await.unwrap();
    reader.commit(batch.checkpoint_at(2).unwrap()).await.unwrap();
    for offset in [1, 2] {
        let seen = peer.until(Command::StoreConsumerOffset).await;
        let stored = StoreConsumerOffset::from_bytes(&seen.frame[256..]).unwrap();
        assert_eq!(stored.offset, offset);
    }
    let more = std::iter::from_fn(|| peer.seen_so_far()).any(|seen| seen.command == Command::StoreConsumerOffset);
    assert!(!more, "positions only move forward");
}

fn auto(interval: u64, every: Option<CommitEvery>, after: CommitAfter) -> PollOptions {
    PollOptions {
        commit: CommitPolicy::Auto(AutoCommit {
            interval: IggyDuration::from_millis(interval),
            every,
            after,
        }),
        ..PollOptions::wait(IggyDuration::from_secs(5))
    }
}

#[tokio::test]
async fn given_commits_by_time_when_the_application_is_busy_should_be_stored_meanwhile() {
    let mut peer = peer_with(3).await;
    let mut consumer = member(&peer, auto(10, None, CommitAfter::Processing)).await;
    received(&mut consumer).await;
    received(&mut consumer).await;
    // The application works on the second message; the first is processed.
    peer.until(Command::StoreConsumerOffset).await;
    assert_eq!(peer.store(|store| store.stored(0)), Some(0));
    received(&mut consumer).await;
    peer.until(Command::StoreConsumerOffset).await;
    assert_eq!(peer.store(|store| store.stored(0)), Some(1));
}

#[tokio::test]
async fn given_commits_after_marks_when_marked_from_elsewhere_should_store_the_marked_position() {
    let mut peer = peer_with(4).await;
    let mut consumer = member(&peer, auto(0, Some(CommitEvery::Messages(2)), CommitAfter::Marked)).await;
    let state = consumer.state().unwrap();
    let mut positions = Vec::new();
    for _ in 0..3 {
        positions.push(received(&mut consumer).await.checkpoint());
    }
    let marking = tokio::spawn(async move {
        for position in positions {
            state.mark(position).unwrap();
        }
    });
    marking.await.unwrap();
    peer.until(Command::StoreConsumerOffset).await;
    consumer.shutdown().await.unwrap();
    assert_eq!(peer.store(|store| store.stored(0)), Some(2));

    let mut manual = member(&peer, PollOptions::wait(IggyDuration::from_secs(5))).await;
    let received = received(&mut manual).await;
    assert_eq!(received.message.header.offset, 3);
    let error = manual.mark(received.checkpoint()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidCommand, "nothing would come of it");
    let foreign = consumer.commit(received.checkpoint()).await.unwrap_err();
    assert_eq!(foreign.code(), ErrorCode::InvalidCommand);
}

#[tokio::test]
async fn given_a_refused_commit_when_stored_automatically_should_tell_and_try_again() {
    let peer = peer_with(3).await;
    peer.script(
        Command::StoreConsumerOffset,
        [Step::Reject(ErrorCode::TooManyConsumerOffsets)],
    );
    let mut consumer = member(&peer, auto(0, Some(CommitEvery::Message), CommitAfter::Delivery)).await;
    received(&mut consumer).await;
    let mut told = Vec::new();
    let mut received = 1;
    while told.is_empty() || received < 3 {
        match consumer.next().await.unwrap() {
            Ok(_) => {
                received += 1;
                if received == 3 {
                    peer.store(|store| store.append(0, "more"));
                }
            }
            Err(error) => told.push((error.partition_id, error.error.code())),
        }
    }
    assert_eq!(told, [(Some(0), ErrorCode::TooManyConsumerOffsets)]);
    consumer.shutdown().await.unwrap();
    assert!(peer.store(|store| store.stored(0)) >= Some(2));
}

#[tokio::test]
async fn given_a_handler_that_fails_when_called_again_should_get_its_message_again() {
    let peer = peer_with(3).await;
    let mut consumer = member(&peer, auto(0, Some(CommitEvery::Message), CommitAfter::Processing)).await;
    let seen = std::sync::Mutex::new(Vec::new());
    let failing = async |received: ReceivedMessage| {
        let offset = received.message.header.offset;
        seen.lock().unwrap().push(offset);
        if offset == 1 {
            return Err(IggyError::new(ErrorCode::Error, "not today"));
        }
        Ok(())
    };
    let error = consumer
        .consume_messages(&failing, std::future::pending::<()>())
        .await
        .unwrap_err();
    assert_eq!(error.message(), "not today");
    assert_eq!(consumer.get_last_consumed_offset(0), Some(0));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stop = std::sync::Mutex::new(Some(stop));
    let patient = async |received: ReceivedMessage| {
        let offset = received.message.header.offset;
        seen.lock().unwrap().push(offset);
        if offset == 2 {
            drop(stop.lock().unwrap().take());
        }
        Ok(())
    };
    consumer.consume_messages(&patient, stopped).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [0, 1, 1, 2]);
    consumer.shutdown().await.unwrap();
    assert_eq!(
        peer.store(|store| store.stored(0)),
        Some(1),
        "the last one may not be processed"
    );
}

#[tokio::test]
async fn given_a_rebalance_when_a_read_had_stored_an_offset_should_hand_out_what_it_brought() {
    let mut peer = peer_with(0).await;
    peer.store(|store| store.owner_generation = 40);
    peer.assign(5, &[0]);
    let mut consumer = member(&peer, on_read()).await;
    let mut events = consumer.subscribe_events().unwrap();
    {
        let waiting = std::pin::pin!(consumer.next());
        let parked = peer.until(Command::FetchMessages);
        let _ = futures::future::select(waiting, std::pin::pin!(parked)).await;
    }
    peer.until(Command::CancelDeferred).await;
    append(&peer, 0, 0..2);
    let first = received(&mut consumer).await;
    // The second is read and counts as consumed; then the partition goes to another member.
    peer.assign(6, &[]);
    peer.client
        .sync_consumer_group(
            &Identifier::named("orders").unwrap(),
            &Identifier::named("created").unwrap(),
            consumer.name(),
        )
        .await
        .unwrap();
    until(&mut events, &ReaderEvent::Revoked { partitions: vec![0] }).await;
    let second = received(&mut consumer).await;
    assert_eq!((first.message.header.offset, second.message.header.offset), (0, 1));
    assert_eq!(peer.store(|store| store.stored(0)), Some(1));
}
