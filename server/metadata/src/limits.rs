//! Bounds of the metadata state, beside those of [`iggy_protocol::limits`].

use serde::{Deserialize, Serialize};

/// Consumer groups of one topic.
pub const CONSUMER_GROUPS_PER_TOPIC_MAX: u32 = 1_024;
/// Users, the root user included.
pub const USERS_MAX: u32 = 65_536;
/// Personal access tokens of one user, unless the caller's settings say otherwise.
pub const TOKENS_PER_USER_MAX: u32 = 100;
/// How close to the session limit a registration begins to name sessions that may give way.
pub const SESSION_EVICTION_MARGIN: usize = 64;
/// Replies kept per session to answer resends.
pub const RECEIPTS_PER_SESSION_MAX: usize = 16;
/// Bytes of kept reply payloads per session; the oldest payloads give way first.
pub const RECEIPT_BYTES_PER_SESSION_MAX: usize = 256 * 1_024;

/// Bounds an operator may choose. They decide what gives way, so they are part of the state and change through the log:
/// every replica drops the same things whatever its own configuration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Sessions the table holds before the oldest unbound one gives way. At least 1, default 8192.
    pub sessions: u32,
    /// Records of resource groups the change log keeps. At least 1, default 65536.
    pub resource_records: u32,
    /// Records of activity groups (members and sessions) the change log keeps. At least 1, default 16384.
    pub activity_records: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 8_192,
            resource_records: 65_536,
            activity_records: 16_384,
        }
    }
}

impl Limits {
    /// The limits with a zero read as the least that works.
    #[must_use]
    pub(crate) fn at_least_one(self) -> Self {
        Self {
            sessions: self.sessions.max(1),
            resource_records: self.resource_records.max(1),
            activity_records: self.activity_records.max(1),
        }
    }
}
