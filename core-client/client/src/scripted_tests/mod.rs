//! What the client does when the server misbehaves, against a peer that follows a script per request.

mod cluster;
mod drops;
mod peer;
mod reads;
mod store;

use iggy_protocol::{Command, Consumer, ErrorCode, EvictionReason, IggyDuration, PollingStrategy};
use tokio::time::Duration;

use crate::error::{ErrorClass, Outcome};
use crate::events::DiagnosticEvent;
use crate::lanes::Resolution;
use crate::poll::{CommitPolicy, PollOptions};
use crate::resource_options::StreamCreateOptions;
use crate::scripted_tests::peer::{Peer, Step, id};

pub const LONG: Duration = Duration::from_secs(30);
/// A deadline that is meant to pass.
const SHORT: Duration = Duration::from_millis(300);

/// C2, C3.
#[tokio::test]
async fn given_a_lost_reply_when_sending_should_bind_again_and_send_the_identical_frame() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::SendMessages, [Step::Close]);
    let confirmations = peer.send().await.unwrap();
    assert_eq!(confirmations[0].base_offset, 5);
    let first = peer.until(Command::SendMessages).await;
    let bind = peer.until(Command::BindSession).await;
    assert_eq!((bind.connection, bind.header().session.get()), (2, 77));
    let again = peer.until(Command::SendMessages).await;
    assert_eq!(again.frame, first.frame, "a frame that may have been applied is frozen");
    assert_eq!(again.connection, 2);
}

#[tokio::test]
async fn given_success_without_proof_after_a_lost_reply_when_sending_should_ask_until_it_is_proven() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(
        Command::SendMessages,
        [
            Step::Close,
            Step::ServeUnproven,
            Step::Refuse(ErrorCode::TransientNotCommitted),
        ],
    );
    peer.send().await.unwrap();
    let first = peer.until(Command::SendMessages).await;
    for _ in 0..3 {
        assert_eq!(peer.until(Command::SendMessages).await.frame, first.frame);
    }
}

#[tokio::test]
async fn given_no_answer_when_the_deadline_passes_should_hold_the_lane_until_resolved() {
    let mut peer = Peer::connected(SHORT).await;
    peer.script(Command::SendMessages, [Step::Ignore]);
    let error = peer.send().await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::OperationUncertain, Outcome::Unknown)
    );
    assert!(!error.retryable());
    let operation = error.operation().unwrap();
    assert_eq!(peer.client.uncertain_operations(), [operation]);
    let blocked = peer.send().await.unwrap_err();
    assert_eq!(
        (blocked.code(), blocked.operation()),
        (ErrorCode::LaneBlocked, Some(operation))
    );
    let first = peer.until(Command::SendMessages).await;

    assert_eq!(
        peer.client.resolve_operation(operation, LONG).await.unwrap(),
        Resolution::Applied
    );
    assert_eq!(peer.until(Command::SendMessages).await.frame, first.frame);
    assert_eq!(
        peer.client.resolve_operation(operation, LONG).await.unwrap(),
        Resolution::Applied,
        "remembered"
    );
    peer.send().await.unwrap();
}

#[tokio::test]
async fn given_an_uncertain_write_when_abandoned_should_free_its_lane() {
    let peer = Peer::connected(SHORT).await;
    peer.script(Command::CreateStream, [Step::Ignore]);
    let options = StreamCreateOptions::default();
    let error = peer.client.create_stream("a", &options).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Uncertain);
    peer.client.abandon_operation(error.operation().unwrap()).unwrap();
    let gone = peer
        .client
        .resolve_operation(error.operation().unwrap(), LONG)
        .await
        .unwrap_err();
    assert_eq!(gone.code(), ErrorCode::OperationNotRetained);
    peer.client.delete_stream(&id(1)).await.unwrap();
}

/// C5.
#[tokio::test]
async fn given_a_replaced_session_when_a_write_was_sent_should_end_unknown_and_block_nothing() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::SendMessages, [Step::Close]);
    peer.script(Command::BindSession, [Step::Refuse(ErrorCode::Unauthenticated)]);
    let error = peer.send().await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::OperationUncertain, Outcome::Unknown)
    );
    peer.send().await.unwrap();
    let first = peer.until(Command::SendMessages).await;
    let login = peer.until(Command::Login).await;
    assert_eq!(
        login.connection, 2,
        "the login goes over the connection whose bind was refused"
    );
    let second = peer.until(Command::SendMessages).await;
    assert_ne!(second.header().client, first.header().client);
    assert!(
        second.header().request.get() > first.header().request.get(),
        "numbers go on"
    );
}

#[tokio::test]
async fn given_a_busy_lifecycle_when_writing_should_begin_anew_under_a_new_number() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::DeleteStream, [Step::Refuse(ErrorCode::LifecycleBusy)]);
    peer.client.delete_stream(&id(1)).await.unwrap();
    let (first, second) = (
        peer.until(Command::DeleteStream).await,
        peer.until(Command::DeleteStream).await,
    );
    assert!(second.header().request.get() > first.header().request.get());
    assert_ne!(second.header().request_checksum, first.header().request_checksum);
}

#[tokio::test]
async fn given_a_transient_refusal_when_writing_should_send_the_identical_frame() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(
        Command::DeleteStream,
        [
            Step::Refuse(ErrorCode::TransientNotAccepted),
            Step::Reject(ErrorCode::StreamIdNotFound),
        ],
    );
    let error = peer.client.delete_stream(&id(1)).await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::StreamIdNotFound, Outcome::NotApplied)
    );
    let first = peer.until(Command::DeleteStream).await;
    assert_eq!(peer.until(Command::DeleteStream).await.frame, first.frame);
}

#[tokio::test]
async fn given_a_history_that_ended_when_sending_without_a_position_should_restart_once() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(
        Command::SendMessages,
        [
            Step::Refuse(ErrorCode::HistoryUnavailable),
            Step::Refuse(ErrorCode::HistoryUnavailable),
        ],
    );
    let error = peer.send().await.unwrap_err();
    assert_eq!(
        (error.code(), error.class()),
        (ErrorCode::HistoryUnavailable, ErrorClass::Stale)
    );
    let (first, second) = (
        peer.until(Command::SendMessages).await,
        peer.until(Command::SendMessages).await,
    );
    assert!(second.header().request.get() > first.header().request.get());
    peer.send().await.unwrap();
}

#[tokio::test]
async fn given_a_dropped_poll_when_it_waits_should_be_cancelled_by_its_number() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::PollMessagesDeferred, [Step::Ignore]);
    let client = peer.client.clone();
    let poll = tokio::spawn(async move {
        let consumer = Consumer::new(id(9));
        let options = PollOptions::wait(IggyDuration::from_secs(5));
        client
            .poll_messages(&id(1), &id(2), 0, &consumer, PollingStrategy::first(), options)
            .await
    });
    let polled = peer.until(Command::PollMessagesDeferred).await;
    poll.abort();
    let cancel = peer.until(Command::CancelDeferred).await;
    assert_eq!(cancel.header().request, polled.header().request);
    assert_eq!(cancel.header().session, polled.header().session);
    assert_eq!(cancel.frame.len(), 256);
}

#[tokio::test]
async fn given_a_lost_committing_read_when_it_was_sent_should_hold_the_progress_of_its_consumer() {
    let peer = Peer::connected(LONG).await;
    peer.script(Command::PollMessagesDeferred, [Step::Close]);
    let consumer = Consumer::new(id(9));
    let options = PollOptions {
        commit: CommitPolicy::OnRead,
        ..PollOptions::default()
    };
    let poll = |consumer: Consumer| {
        let client = peer.client.clone();
        async move {
            client
                .poll_messages(&id(1), &id(2), 0, &consumer, PollingStrategy::next(), options)
                .await
        }
    };
    let error = poll(consumer.clone()).await.unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::FetchProgressUncertain, Outcome::Unknown)
    );
    let blocked = poll(consumer.clone()).await.unwrap_err();
    assert_eq!(blocked.code(), ErrorCode::PartitionLaneBlocked);
    poll(Consumer::new(id(10))).await.unwrap();
    let replay = peer
        .client
        .resolve_operation(error.operation().unwrap(), LONG)
        .await
        .unwrap_err();
    assert_eq!(replay.code(), ErrorCode::FetchProgressUncertain);
    peer.client.abandon_operation(error.operation().unwrap()).unwrap();
    poll(consumer).await.unwrap();
}

#[tokio::test]
async fn given_a_reply_above_what_was_asked_for_when_polling_should_give_up_the_connection() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::PollMessagesDeferred, [Step::Flood(64_300_000)]);
    let consumer = Consumer::new(id(9));
    let options = PollOptions {
        max_bytes: 344,
        ..PollOptions::default()
    };
    peer.client
        .poll_messages(&id(1), &id(2), 0, &consumer, PollingStrategy::first(), options)
        .await
        .unwrap();
    assert_eq!(
        peer.until(Command::BindSession).await.connection,
        2,
        "the poll was asked again over a new connection"
    );
}

#[tokio::test]
async fn given_a_logout_under_way_when_others_use_the_client_should_let_nobody_sign_in_again() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::Logout, [Step::Ignore]);
    let client = peer.client.clone();
    let logout = tokio::spawn(async move { client.logout_user().await });
    peer.until(Command::Logout).await;
    assert!(
        peer.client.core().session.credentials().is_none(),
        "forgotten before anybody can hear that the session is over"
    );
    // The connection is lost while the logout waits for its answer. Whoever calls now waits for its end.
    peer.script(Command::GetStats, [Step::Close]);
    let refused = peer.client.get_stats().await.unwrap_err();
    assert_eq!(logout.await.unwrap().unwrap_err().code(), ErrorCode::Disconnected);
    assert_eq!(refused.class(), ErrorClass::Authentication);
    while let Some(seen) = peer.seen_so_far() {
        assert!(
            !matches!(seen.command, Command::Login | Command::BindSession),
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn given_refused_credentials_when_connecting_should_say_so_and_not_try_again() {
    let mut peer = Peer::start(LONG).await;
    peer.script(Command::Login, [Step::Evict(EvictionReason::InvalidCredentials)]);
    let error = peer.client.connect().await.unwrap_err();
    assert_eq!(
        (error.code(), error.class()),
        (ErrorCode::InvalidCredentials, ErrorClass::Authentication)
    );
    let error = peer.client.get_streams().await.unwrap_err();
    assert_eq!(
        error.code(),
        ErrorCode::Unauthenticated,
        "refused credentials are forgotten"
    );
    peer.client.ping().await.unwrap();
    peer.client.login_user("iggy", "iggy").await.unwrap();
    peer.client.get_streams().await.unwrap();
    peer.until(Command::GetStreams).await;
}

#[tokio::test]
async fn given_a_lost_login_reply_when_connecting_should_send_the_identical_registration() {
    let mut peer = Peer::start(LONG).await;
    peer.script(
        Command::Login,
        [Step::Close, Step::Refuse(ErrorCode::TransientNotAccepted)],
    );
    peer.client.connect().await.unwrap();
    let first = peer.until(Command::Login).await;
    let (second, third) = (peer.until(Command::Login).await, peer.until(Command::Login).await);
    assert_eq!(
        (second.connection, &second.frame, &third.frame),
        (2, &first.frame, &first.frame)
    );
}

#[tokio::test]
async fn given_another_protocol_when_connecting_should_name_the_versions() {
    let peer = Peer::start(LONG).await;
    peer.script(Command::Login, [Step::Evict(EvictionReason::IncompatibleProtocol)]);
    // Without a window the server says nothing of its versions: the client is simply not let in.
    assert_eq!(
        peer.client.connect().await.unwrap_err().code(),
        ErrorCode::Unauthenticated
    );
}

#[tokio::test]
async fn given_a_closed_client_when_called_should_say_what_closed_it() {
    let peer = Peer::start(LONG).await;
    assert_eq!(
        peer.client.get_streams().await.unwrap_err().code(),
        ErrorCode::NotConnected
    );
    peer.client.connect().await.unwrap();
    peer.client.disconnect().await.unwrap();
    assert_eq!(peer.client.ping().await.unwrap_err().code(), ErrorCode::NotConnected);
    peer.client.connect().await.unwrap();
    peer.client.shutdown().await.unwrap();
    assert_eq!(peer.client.ping().await.unwrap_err().code(), ErrorCode::ClientShutdown);
    assert_eq!(
        peer.client.connect().await.unwrap_err().code(),
        ErrorCode::ClientShutdown
    );
}

#[tokio::test]
async fn given_many_calls_when_made_at_once_should_each_get_its_own_answer() {
    let peer = Peer::connected(LONG).await;
    let calls = (0..600).map(|_| peer.client.get_cluster_metadata());
    for roster in futures::future::join_all(calls).await {
        assert_eq!(roster.unwrap().nodes.len(), 1);
    }
}

#[tokio::test]
async fn given_a_dropped_write_when_under_way_should_finish_in_the_background() {
    let mut peer = Peer::connected(LONG).await;
    peer.script(Command::SendMessages, [Step::Refuse(ErrorCode::TransientNotAccepted)]);
    {
        let send = peer.send();
        tokio::pin!(send);
        // Polled once, the write has begun; then its future is dropped.
        assert!(futures::poll!(send.as_mut()).is_pending());
    }
    peer.until(Command::SendMessages).await;
    peer.until(Command::SendMessages).await;
    peer.send().await.unwrap();
    assert_eq!(peer.client.uncertain_operations(), []);
}

#[tokio::test]
async fn given_an_unanswered_heartbeat_when_nobody_calls_should_bind_a_new_link_and_keep_up_memberships() {
    let mut peer = Peer::start_cluster(1, LONG, Duration::from_millis(50)).await;
    peer.client.connect().await.unwrap();
    peer.client
        .sync_consumer_group(&id(1), &id(2), &id(3))
        .await
        .unwrap()
        .unwrap();
    peer.until(Command::SyncConsumerGroup).await;
    peer.script(Command::Ping, [Step::Ignore]);
    assert_eq!(peer.until(Command::BindSession).await.connection, 2);
    peer.until(Command::SyncConsumerGroup).await;
    peer.client.leave_consumer_group(&id(1), &id(2), &id(3)).await.unwrap();
    peer.until(Command::LeaveConsumerGroup).await;
    peer.until(Command::Ping).await;
    peer.until(Command::Ping).await;
    let synced = std::iter::from_fn(|| peer.seen_so_far()).any(|seen| seen.command == Command::SyncConsumerGroup);
    assert!(!synced, "a group that was left is not kept up");
}

#[tokio::test]
async fn given_a_subscriber_when_the_client_comes_and_goes_should_hear_of_it_in_order() {
    let peer = Peer::start(LONG).await;
    let mut events = peer.client.subscribe_events();
    peer.client.connect().await.unwrap();
    peer.client.disconnect().await.unwrap();
    peer.client.shutdown().await.unwrap();
    let expected = [
        DiagnosticEvent::SignedIn,
        DiagnosticEvent::Connected,
        DiagnosticEvent::SignedOut,
        DiagnosticEvent::Disconnected,
        DiagnosticEvent::Shutdown,
    ];
    for event in expected {
        assert_eq!(events.next().await, Some(event));
    }
}
