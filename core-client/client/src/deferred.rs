//! Deferred polls: waits that shrink with the time a call has taken, and their cancellation (wire 7.4 and 7.6).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use iggy_protocol::limits::{HEADER_SIZE, MIN_REPLY_MARGIN_MICROS};
use iggy_protocol::{Command, Operation, RequestHeader};
use tokio::time::{Duration, Instant};

use crate::connection::Connection;

/// Where the two times of a waiting read stand, counted from the end of its body, and what they must keep between them.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    wait_from_end: usize,
    timeout_from_end: usize,
    /// Whether the margin is due without a wait too.
    margin_always: bool,
}

impl Times {
    /// In a deferred poll (wire 7.4).
    pub const POLL: Self = Self {
        wait_from_end: 24,
        timeout_from_end: 8,
        margin_always: false,
    };

    /// In a grouped fetch of so many targets: counts, limits, flag and the table follow the times (wire 7.5).
    pub const fn of_fetch(targets: usize) -> Self {
        let after = 4 + 4 + 4 + 1 + 4 + 33 * targets;
        Self {
            wait_from_end: after + 16,
            timeout_from_end: after + 8,
            margin_always: true,
        }
    }
}

/// The waits of a deferred poll as its caller asked for them.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Where the times stand in the frame.
    pub times: Times,
    /// When the call began.
    pub began: Instant,
    /// How long to wait for messages.
    pub wait: Duration,
    /// When the caller stops listening, counted from the beginning.
    pub timeout: Duration,
}

impl Timing {
    /// The frame with the waits that are left. Number and header stay the same.
    pub fn shrink(&self, frame: &Bytes) -> Bytes {
        let elapsed = self.began.elapsed();
        let wait = micros(self.wait.saturating_sub(elapsed));
        // A wait needs its margin, and without a wait one microsecond is the least.
        let margin = wait > 0 || self.times.margin_always;
        let least = if margin { wait + MIN_REPLY_MARGIN_MICROS } else { 1 };
        let timeout = micros(self.timeout.saturating_sub(elapsed)).max(least);
        let mut shrunk = BytesMut::from(&frame[..]);
        let end = shrunk.len();
        for (from_end, micros) in [(self.times.wait_from_end, wait), (self.times.timeout_from_end, timeout)] {
            shrunk[end - from_end..end - from_end + 8].copy_from_slice(&micros.to_le_bytes());
        }
        shrunk.freeze()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The cancel (108) of a request: the same client, session and number, nothing else.
pub fn cancel_frame(frame: &Bytes) -> Bytes {
    let mut header = RequestHeader::new(Operation::NonReplicated, 0);
    if let Ok(request) = RequestHeader::view(frame) {
        header.client = request.client;
        header.session = request.session;
        header.request = request.request;
    }
    header.code = Command::CancelDeferred.code().into();
    Bytes::copy_from_slice(&header.as_array()[..HEADER_SIZE])
}

/// Cancels a read that commits nothing when its future is dropped before the reply.
pub struct CancelGuard<'a> {
    connection: &'a Arc<Connection>,
    cancel: Option<Bytes>,
    number: u64,
}

impl<'a> CancelGuard<'a> {
    /// A guard of the request of this number.
    pub fn new(connection: &'a Arc<Connection>, cancel: Bytes, number: u64) -> Self {
        Self {
            connection,
            cancel: Some(cancel),
            number,
        }
    }

    /// The request was answered.
    pub fn disarm(mut self) {
        self.cancel = None;
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            // Without room for the cancel the slot stays taken until the wait ends by itself.
            if self.connection.send_unanswered(cancel) {
                self.connection.forget(self.number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_buffer::FrameBuffer;
    use iggy_protocol::codec::Decode;
    use iggy_protocol::request::message::{DeferredPoll, PollMessages};
    use iggy_protocol::{Consumer, Identifier, PollingStrategy};

    #[tokio::test(start_paused = true)]
    async fn given_time_that_passed_when_a_poll_is_sent_again_should_wait_for_less() {
        let poll = DeferredPoll {
            poll: PollMessages {
                consumer: Consumer::new(Identifier::numeric(1)),
                stream: Identifier::numeric(1),
                topic: Identifier::numeric(1),
                partition_id: Some(0),
                strategy: PollingStrategy::Next,
                count: 10,
                auto_commit: false,
            },
            wait_us: 5_000_000,
            min_count: 1,
            max_bytes: 1024,
            request_timeout_us: 15_000_000,
        };
        let frame = FrameBuffer::of(&poll).seal(&RequestHeader::new(Operation::NonReplicated, 0));
        let timing = Timing {
            times: Times::POLL,
            began: Instant::now(),
            wait: Duration::from_secs(5),
            timeout: Duration::from_secs(15),
        };
        for (seconds, wait_us, timeout_us) in [(2, 3_000_000, 13_000_000), (4, 0, 9_000_000), (9, 0, 1)] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            let shrunk = timing.shrink(&frame);
            let read = DeferredPoll::from_bytes(&shrunk[HEADER_SIZE..]).unwrap();
            assert_eq!((read.wait_us, read.request_timeout_us), (wait_us, timeout_us));
            assert_eq!(read.max_bytes, 1024);
        }
    }
}
