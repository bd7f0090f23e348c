//! Grouped fetches: one read of many partitions with one primary (wire 7.5).

use bytes::Bytes;
use iggy_protocol::Command;
use iggy_protocol::request::message::FetchMessages;
use tokio::time::{Duration, Instant};

use crate::call::{Call, Target, execute};
use crate::client::IggyClient;
use crate::deferred::{Times, Timing};
use crate::error::IggyError;
use crate::frame_buffer::FrameBuffer;

impl IggyClient {
    /// Asks one node for the partitions it leads; returns the body of the reply. It stores nothing.
    ///
    /// A refusal of the whole fetch is the answer; nothing is sent again, because the partitions may have moved apart.
    ///
    /// # Cancel safety
    /// A dropped call ends the wait at the server and stores nothing.
    pub(crate) async fn fetch_partitions(&self, replica: u8, fetch: &FetchMessages) -> Result<Bytes, IggyError> {
        let began = Instant::now();
        let timeout = Duration::from_micros(fetch.request_timeout_us);
        let mut call = Call::new(Command::FetchMessages, FrameBuffer::of(fetch), began + timeout);
        call.target = Target::Replica(replica);
        call.reply_limit = fetch.reply_limit();
        call.context = Some(iggy_protocol::PartitionContext::ZERO);
        call.timing = Some(Timing {
            times: Times::of_fetch(fetch.targets.len()),
            began,
            wait: Duration::from_micros(fetch.wait_us),
            timeout,
        });
        execute(self.core(), call).await
    }
}
