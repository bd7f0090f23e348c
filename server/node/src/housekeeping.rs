//! What a node does by the clock: ends forgotten sessions, expired tokens and expired messages.

use crate::dispatch;
use crate::node::{Node, wall_micros};
use crate::shard::ShardMessage;
use iggy_metadata::Change;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// A session without a connection lives this long: it covers a client that reconnects, and no more.
const SESSION_LEASE: Duration = Duration::from_secs(36);
/// How often sessions are looked at.
const SESSION_LOOK: Duration = Duration::from_secs(2);

/// Runs until `stop`.
pub async fn run(node: Arc<Node>, stop: CancellationToken) {
    let tokens = &node.config.personal_access_token.cleaner;
    let messages = &node.config.data_maintenance;
    let work = async {
        tokio::join!(
            every(SESSION_LOOK, || end_sessions(&node)),
            async {
                if tokens.enabled {
                    every(tokens.interval, || expire_tokens(&node)).await;
                }
            },
            async {
                if messages.cleaner_enabled {
                    every(messages.interval, || retain(&node)).await;
                }
            },
        );
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

async fn every<F: Future<Output = ()>>(period: Duration, mut work: impl FnMut() -> F) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        work().await;
    }
}

async fn propose(node: &Node, change: Change) {
    let (message, answer) = dispatch::internal(change);
    if node.metadata_shard().send_waiting(message).await {
        // Whatever the answer is, the next round looks again.
        let _ = answer.await;
    }
}

async fn end_sessions(node: &Node) {
    let metadata = node.published.load_full();
    // Whoever acts for a session that is gone must sign in again.
    for entry in node.connections.list() {
        if let Some(session) = entry.session.filter(|session| metadata.session(*session).is_none()) {
            node.connections.end_session(session);
        }
    }
    let sessions = metadata.sessions().map(|session| session.key);
    let expired = node.connections.expired(sessions, SESSION_LEASE);
    if !expired.is_empty() {
        tracing::info!(sessions = expired.len(), "ending sessions that no connection uses");
        propose(node, Change::ExpireSessions { sessions: expired }).await;
    }
}

async fn expire_tokens(node: &Node) {
    if node.published.load_full().has_expired_tokens(wall_micros()) {
        propose(node, Change::ExpireTokens).await;
    }
}

async fn retain(node: &Node) {
    for shard in &node.shards {
        shard.send_waiting(ShardMessage::Retain).await;
    }
}
