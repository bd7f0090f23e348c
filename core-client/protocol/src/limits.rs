//! The numbers every part agrees on (wire 16), each with its unit.

/// Bytes of a frame header, and of a batch header.
pub const HEADER_SIZE: usize = 256;
/// Bytes of a message frame before its payload.
pub const MESSAGE_FRAME_SIZE: usize = 48;
/// Largest number of bytes in a name, a string identifier, an option key or an option value.
pub const MAX_NAME_BYTES: usize = 255;
/// Largest payload of one message, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64_000_000;
/// Largest user header block of one message, in bytes.
pub const MAX_USER_HEADERS_BYTES: usize = 100_000;
/// Largest single stored record: a batch of one message of the largest size, in bytes.
pub const MAX_RECORD_BYTES: usize = HEADER_SIZE + MESSAGE_FRAME_SIZE + MAX_PAYLOAD_BYTES + MAX_USER_HEADERS_BYTES;
/// Largest options block, in bytes.
pub const MAX_OPTIONS_BYTES: usize = 100_000;
/// Most entries of an options block.
pub const MAX_OPTIONS: usize = 1024;
/// Most streams of a cluster.
pub const MAX_STREAMS: u32 = 1_048_576;
/// Most topics of one stream.
pub const MAX_TOPICS_PER_STREAM: u32 = 4096;
/// Partition ids of one topic lie below this number.
pub const MAX_PARTITIONS_PER_TOPIC: u32 = 1_000_000;
/// Most partitions one create, add, remove or fetch request may name.
pub const MAX_PARTITIONS_PER_REQUEST: u32 = 1000;
/// Most replicas of a partition, and most nodes of a cluster.
pub const MAX_REPLICAS: usize = 32;
/// Largest page of metadata changes.
pub const MAX_METADATA_PAGE: u32 = 1000;
/// Page of metadata changes when the caller names none.
pub const DEFAULT_METADATA_PAGE: u32 = 100;
/// Largest page token of metadata changes, in bytes.
pub const MAX_METADATA_TOKEN_BYTES: usize = 316;
/// Longest wait a deferred poll or fetch may ask for, in microseconds.
pub const MAX_DEFERRED_WAIT_MICROS: u64 = 600_000_000;
/// Longest request timeout of a deferred poll or fetch, in microseconds.
pub const MAX_DEFERRED_TIMEOUT_MICROS: u64 = 630_000_000;
/// Smallest distance between the wait and the request timeout, in microseconds.
pub const MIN_REPLY_MARGIN_MICROS: u64 = 1_000_000;
/// Smallest `max_bytes` of a deferred poll or fetch: poll head, batch header and one message frame.
pub const MIN_REPLY_BYTES: u32 = 344;
/// Bytes of the head of a poll reply.
pub const POLL_HEAD_BYTES: usize = 40;
/// Bytes of one entry in the section table of a fetch reply.
pub const FETCH_SECTION_BYTES: usize = 56;
/// Wait a server grants by default, in microseconds.
pub const DEFAULT_SERVER_WAIT_MICROS: u64 = 30_000_000;
/// Requests one shard parks by default.
pub const DEFAULT_PARKED_PER_SHARD: usize = 1024;
/// Requests one session may have parked by default.
pub const DEFAULT_PARKED_PER_SESSION: usize = 64;
/// Largest disk read and largest reply of one parked request by default, in bytes.
pub const DEFAULT_PARKED_READ_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of reads for parked requests one shard may have under way by default.
pub const DEFAULT_SHARD_READ_BYTES: usize = 64 * 1024 * 1024;
/// Largest frame a server accepts by default, in bytes, header included.
pub const DEFAULT_MAX_FRAME_BYTES: u32 = 64 * 1024 * 1024;
/// Unanswered requests one connection may have.
pub const MAX_IN_FLIGHT: usize = 256;
/// User names: fewest bytes.
pub const MIN_USERNAME_BYTES: usize = 3;
/// User names: most bytes.
pub const MAX_USERNAME_BYTES: usize = 50;
/// Passwords: fewest bytes.
pub const MIN_PASSWORD_BYTES: usize = 3;
/// Passwords: most bytes.
pub const MAX_PASSWORD_BYTES: usize = 100;
/// Names of personal access tokens: fewest bytes.
pub const MIN_TOKEN_NAME_BYTES: usize = 3;
/// Names of personal access tokens: most bytes.
pub const MAX_TOKEN_NAME_BYTES: usize = 30;
/// Largest producer id (wire 6.1): the top bit stays zero.
pub const MAX_PRODUCER_ID: u64 = i64::MAX as u64;
/// Largest producer epoch.
pub const MAX_PRODUCER_EPOCH: u16 = 32_767;
/// Largest sequence; the one after it is zero.
pub const MAX_SEQUENCE: u32 = 0x7fff_ffff;
/// `message_expiry` and token expiry that mean never.
pub const NEVER: u64 = u64::MAX;
/// `max_topic_size` that means unlimited.
pub const UNLIMITED: u64 = u64::MAX;
