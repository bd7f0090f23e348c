//! Bounds of the metadata state, beside those of [`iggy_protocol::limits`].

/// Consumer groups of one topic.
pub const CONSUMER_GROUPS_PER_TOPIC_MAX: u32 = 1_024;
/// Users, the root user included.
pub const USERS_MAX: u32 = 65_536;
/// Personal access tokens of one user, unless the caller's settings say less.
pub const TOKENS_PER_USER_MAX: u32 = 100;
/// Sessions the table holds before the oldest unbound one gives way.
pub const SESSIONS_MAX: usize = 8_192;
/// How close to the session limit a registration begins to name sessions that may give way.
pub const SESSION_EVICTION_MARGIN: usize = 64;
/// Replies kept per session to answer resends.
pub const RECEIPTS_PER_SESSION_MAX: usize = 16;
/// Bytes of kept reply payloads per session; the oldest payloads give way first.
pub const RECEIPT_BYTES_PER_SESSION_MAX: usize = 256 * 1_024;
/// Records of resource groups the change log keeps.
pub const RESOURCE_RECORDS_MAX: usize = 65_536;
/// Records of activity groups (members and sessions) the change log keeps.
pub const ACTIVITY_RECORDS_MAX: usize = 16_384;
