//! Keeps links and group memberships alive, and brings a lost link back while nobody calls.

use std::sync::{Arc, Weak};

use futures::future::join_all;
use iggy_protocol::Command;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::MAX_REPLY_BYTES;
use crate::core::{Core, Link};
use crate::frame_buffer::FrameBuffer;
use crate::session::Intent;
use crate::sign_in::plain_read;

/// Pings every link at once and then each interval, until the client ends.
pub async fn run(core: Weak<Core>, ended: CancellationToken) {
    loop {
        let Some(strong) = core.upgrade() else { return };
        let interval = strong.config.heartbeat_interval;
        tokio::select! {
            biased;
            () = ended.cancelled() => return,
            () = round(&strong) => {}
        }
        drop(strong);
        tokio::select! {
            biased;
            () = ended.cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
    }
}

async fn round(core: &Arc<Core>) {
    if core.session.intent() != Intent::Connected {
        return;
    }
    let deadline = Instant::now() + core.config.heartbeat_interval;
    join_all(core.live_links().iter().map(|link| ping(core, link, deadline))).await;
    // A lost link has the time of a call to come back, not what unanswered pings left of the interval.
    if core.live_main().is_none() && core.main_link(core.default_deadline()).await.is_err() {
        return;
    }
    let deadline = core.default_deadline();
    for key in core.memberships.kept() {
        // A group that cannot be read now is read in the next round; its members keep their memberships until then.
        let _ = crate::operations::sync_group(core, key, deadline).await;
    }
}

async fn ping(core: &Core, link: &Link, deadline: Instant) {
    let bound = core.session.bound().filter(|bound| bound.epoch == link.epoch);
    let Ok(frame) = plain_read(core, bound.as_ref(), Command::Ping, FrameBuffer::new()) else {
        return;
    };
    let moved = link.connection.moved();
    let answer = link.connection.exchange(frame, MAX_REPLY_BYTES, deadline).await;
    // A ping waits behind the large frame under way, and its answer behind a large reply: while those move, the peer lives.
    if answer.is_err() && link.connection.moved() == moved {
        link.connection.close("a heartbeat was not answered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ClientConfig, Endpoint};
    use crate::connection::Connection;
    use bytes::BytesMut;
    use iggy_protocol::limits::HEADER_SIZE;
    use iggy_protocol::{Operation, RequestHeader};
    use tokio::io::AsyncReadExt;
    use tokio::time::Duration;

    const INTERVAL: Duration = Duration::from_secs(5);
    const BODY: usize = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn given_a_large_frame_under_way_when_a_ping_waits_behind_it_should_close_only_once_nothing_moves() {
        let core = Core::new(ClientConfig::default());
        let (stream, mut peer) = tokio::io::duplex(1000);
        let link = Link {
            connection: Connection::start(Box::new(stream)),
            epoch: 0,
            replica: None,
            endpoint: Endpoint::new("127.0.0.1".to_owned(), 8090),
            since: Instant::now(),
        };
        let mut header = RequestHeader::new(Operation::NonReplicated, BODY);
        header.request = 1.into();
        let mut frame = BytesMut::from(&header.as_array()[..]);
        frame.resize(HEADER_SIZE + BODY, 0);
        let sending = link.connection.clone();
        let deadline = Instant::now() + Duration::from_mins(10);
        tokio::spawn(async move { sending.exchange(frame.freeze(), MAX_REPLY_BYTES, deadline).await });
        let slow = async {
            let mut taken = [0; 1000];
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                peer.read_exact(&mut taken).await.unwrap();
            }
        };
        tokio::join!(ping(&core, &link, Instant::now() + INTERVAL), slow);
        assert!(!link.connection.is_closed(), "the peer takes the frame, slowly");
        // What the peer made room for last is written meanwhile.
        tokio::time::sleep(INTERVAL).await;
        ping(&core, &link, Instant::now() + INTERVAL).await;
        assert!(link.connection.is_closed(), "the peer takes nothing any more");
    }
}
