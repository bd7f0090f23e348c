//! Grouped fetches: one read of many partitions with one primary (wire 7.5).

use bytes::Bytes;
use iggy_protocol::Command;
use iggy_protocol::request::message::FetchMessages;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::answer::CallKind;
use crate::call::{Call, Target, execute};
use crate::client::IggyClient;
use crate::deferred::{Times, Timing};
use crate::error::IggyError;
use crate::frame_buffer::FrameBuffer;
use crate::lanes::LaneKey;
use crate::routes::RouteKey;

impl IggyClient {
    /// Asks one node for the partitions it leads; returns the body of the reply.
    ///
    /// A refusal of the whole fetch is the answer; nothing is sent again, because the partitions may have moved apart.
    /// One that commits takes its turn with whatever else moves the position of its consumer. `cancel` ends its wait, and
    /// its reply says what was stored all the same.
    ///
    /// # Cancel safety
    /// A dropped call ends the wait at the server. One that commits may have stored offsets.
    pub(crate) async fn fetch_partitions(
        &self,
        replica: u8,
        fetch: &FetchMessages,
        cancel: CancellationToken,
    ) -> Result<Bytes, IggyError> {
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
        if fetch.auto_commit {
            call.kind = CallKind::CommittingRead;
            call.cancel = Some(cancel);
            call.gates = progress_gates(fetch);
        }
        execute(self.core(), call).await
    }
}

/// The turns a fetch that commits takes, in ascending order of its partitions.
pub(super) fn progress_gates(fetch: &FetchMessages) -> Vec<LaneKey> {
    let mut partitions: Vec<u32> = fetch.targets.iter().map(|target| target.partition_id).collect();
    partitions.sort_unstable();
    let gate = |partition_id| LaneKey::Progress {
        partition: RouteKey {
            stream: fetch.stream.clone(),
            topic: fetch.topic.clone(),
            partition_id,
        },
        consumer: fetch.consumer.clone(),
    };
    partitions.into_iter().map(gate).collect()
}
