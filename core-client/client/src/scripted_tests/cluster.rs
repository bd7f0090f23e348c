//! Routing among several nodes.

use iggy_protocol::{Command, ErrorCode};
use tokio::time::Duration;

use crate::error::Outcome;
use crate::scripted_tests::LONG;
use crate::scripted_tests::peer::{Peer, Step, id};

async fn cluster() -> Peer {
    let mut peer = Peer::start_cluster(3, LONG, Duration::from_hours(1)).await;
    peer.client.connect().await.unwrap();
    peer.until(Command::Ping).await;
    peer
}

#[tokio::test]
async fn given_another_primary_when_sending_should_bind_a_link_to_it_and_keep_it() {
    let mut peer = cluster().await;
    peer.lead(2, 1);
    peer.send().await.unwrap();
    let bind = peer.until(Command::BindSession).await;
    assert_eq!((bind.node, bind.header().session.get()), (2, 77));
    assert_eq!(peer.until(Command::SendMessages).await.node, 2);
    peer.send().await.unwrap();
    let again = peer.until(Command::SendMessages).await;
    assert_eq!((again.node, again.connection), (2, 1), "over the same link");
}

#[tokio::test]
async fn given_a_moved_primary_when_refused_should_send_the_identical_frame_to_the_new_one() {
    let mut peer = cluster().await;
    peer.lead(1, 1);
    peer.send().await.unwrap();
    peer.until(Command::SendMessages).await;
    peer.lead(2, 2);
    peer.send().await.unwrap();
    let refused = peer.until(Command::SendMessages).await;
    let accepted = peer.until(Command::SendMessages).await;
    assert_eq!((refused.node, accepted.node), (1, 2));
    assert_eq!(refused.frame, accepted.frame);
}

#[tokio::test]
async fn given_a_lost_reply_from_one_node_when_sending_should_bind_a_new_link_to_it() {
    let mut peer = cluster().await;
    peer.lead(1, 1);
    peer.send().await.unwrap();
    let before = peer.until(Command::SendMessages).await;
    peer.script(Command::SendMessages, [Step::Close]);
    peer.send().await.unwrap();
    let lost = peer.until(Command::SendMessages).await;
    let found = peer.until(Command::SendMessages).await;
    assert_eq!((before.node, lost.node, found.node), (1, 1, 1));
    assert_eq!(lost.frame, found.frame);
    assert_eq!(found.connection, 2, "a new link was bound");
}

#[tokio::test]
async fn given_metadata_writes_when_made_should_go_to_the_metadata_primary() {
    let mut peer = cluster().await;
    peer.lead(2, 1);
    peer.send().await.unwrap();
    peer.client.delete_stream(&id(1)).await.unwrap();
    assert_eq!(peer.until(Command::DeleteStream).await.node, 0);
}

#[tokio::test]
async fn given_one_chosen_node_when_asked_should_take_its_refusal_as_the_answer() {
    let mut peer = cluster().await;
    peer.script(Command::GetStats, [Step::Refuse(ErrorCode::TransientNotAccepted)]);
    let error = peer
        .client
        .send_binary_request_to_replica(10, &[], 1)
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.outcome()),
        (ErrorCode::TransientNotAccepted, Outcome::NotApplied)
    );
    assert_eq!(peer.until(Command::GetStats).await.node, 1);
    let unknown = peer
        .client
        .send_binary_request_to_replica(10, &[], 9)
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::InvalidIdentifier);
}
