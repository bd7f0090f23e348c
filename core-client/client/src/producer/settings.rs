//! How producers send: every setting with its unit and default.

use std::sync::Arc;

use iggy_protocol::IggyDuration;

use crate::error::IggyError;

/// Sending from the calling task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectConfig {
    /// Most messages of one request; a longer send is split. 0 is as many as fit. Default 1000.
    pub batch_length: u32,
    /// Least time between two sends of this producer. Default none.
    pub linger_time: IggyDuration,
}

impl Default for DirectConfig {
    fn default() -> Self {
        Self {
            batch_length: 1000,
            linger_time: IggyDuration::ZERO,
        }
    }
}

/// Which worker takes a send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharding {
    /// The same for each stream and topic: order per topic.
    #[default]
    Ordered,
    /// Each in turn: no order.
    Balanced,
}

/// What a send does when the buffer is full. A send above the whole buffer is always refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackpressureMode {
    /// It waits.
    #[default]
    Block,
    /// It waits so long, then fails with [`iggy_protocol::ErrorCode::BackgroundSendTimeout`].
    BlockWithTimeout(IggyDuration),
    /// It fails at once with [`iggy_protocol::ErrorCode::BackgroundSendBufferOverflow`].
    FailImmediately,
}

/// Called with each background send that failed; the error's source is a [`crate::SendFailed`].
pub type ErrorCallback = Arc<dyn Fn(IggyError) + Send + Sync>;

/// Sending in the background.
#[derive(Clone)]
pub struct BackgroundConfig {
    /// Workers. Default 1.
    pub num_shards: usize,
    /// Which worker takes a send. Default the same for each topic.
    pub sharding: Sharding,
    /// Bytes that are sent without waiting for more; 0 for no such threshold. Default 1 MiB.
    pub batch_size: usize,
    /// Sends that are sent without waiting for more; 0 for no such threshold. Default 1000.
    pub batch_length: usize,
    /// How long a worker waits for more. Default 1 ms.
    pub linger_time: IggyDuration,
    /// Bytes all buffered sends may take; 0 for no limit but the queues, 256 sends each. Default 32 MiB.
    pub max_buffer_size: usize,
    /// What a send does when the buffer is full. Default it waits.
    pub failure_mode: BackpressureMode,
    /// Requests a worker has under way at once; above 1 their order is not kept. Default 1.
    pub max_in_flight: usize,
    /// Called with each send that failed. Default it is logged and dropped.
    pub error_callback: ErrorCallback,
}

impl Default for BackgroundConfig {
    fn default() -> Self {
        Self {
            num_shards: 1,
            sharding: Sharding::Ordered,
            batch_size: 1 << 20,
            batch_length: 1000,
            linger_time: IggyDuration::from_millis(1),
            max_buffer_size: 32 << 20,
            failure_mode: BackpressureMode::Block,
            max_in_flight: 1,
            error_callback: Arc::new(
                |error| tracing::error!(%error, "a background send failed, its messages are dropped"),
            ),
        }
    }
}

impl std::fmt::Debug for BackgroundConfig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BackgroundConfig")
            .field("num_shards", &self.num_shards)
            .field("sharding", &self.sharding)
            .field("batch_size", &self.batch_size)
            .field("batch_length", &self.batch_length)
            .field("linger_time", &self.linger_time)
            .field("max_buffer_size", &self.max_buffer_size)
            .field("failure_mode", &self.failure_mode)
            .field("max_in_flight", &self.max_in_flight)
            .finish_non_exhaustive()
    }
}
