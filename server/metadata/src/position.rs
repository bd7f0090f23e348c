//! Where a committed entry stands and which request asked for it.

use iggy_protocol::Operation;
use serde::{Deserialize, Serialize};

use crate::keys::SessionKey;

/// Place of one committed entry in the metadata log, with what a reply made from it must repeat on every replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Position {
    /// Position in the log, from 1; 0 is "before the first entry".
    pub op: u64,
    /// Microseconds since the Unix epoch, assigned by the primary that prepared the entry.
    pub timestamp: u64,
    /// Checksum of the entry, which tells two histories apart.
    pub checksum: u128,
    /// View in which the entry was prepared.
    pub view: u32,
    /// Replica that prepared the entry.
    pub replica: u8,
}

/// The request an entry answers. An entry the server proposes by itself carries [`RequestKey::INTERNAL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    /// Client id of the request header, 0 for an entry of the server's own.
    pub client: u128,
    /// Session number of the request header, 0 for a registration.
    pub session: u64,
    /// Request number, 0 for a registration.
    pub request: u64,
    /// Random identity of the request (wire 4.6), echoed by every answer to it.
    pub request_checksum: u128,
    /// Operation of the committed reply (wire 3.1), rewritten where the server rewrites it.
    #[serde(with = "operation_byte")]
    pub operation: Operation,
    /// Authenticated user on whose behalf the entry was made.
    pub user_id: u32,
}

impl RequestKey {
    /// The key of an entry no client asked for.
    pub const INTERNAL: Self = Self {
        client: 0,
        session: 0,
        request: 0,
        request_checksum: 0,
        operation: Operation::CompleteLifecycle,
        user_id: 0,
    };

    /// The session the request speaks for.
    pub const fn session_key(&self) -> SessionKey {
        SessionKey {
            client: self.client,
            session: self.session,
        }
    }

    /// Whether a client's session asked for the entry, so that its result is kept for a resend.
    pub const fn keeps_receipt(&self) -> bool {
        self.client != 0 && self.session != 0 && self.request != 0
    }
}

/// Operations travel and rest as their byte.
mod operation_byte {
    use iggy_protocol::Operation;
    use serde::de::{Error, Unexpected};
    use serde::{Deserialize, Deserializer, Serializer};

    // The signature is serde's.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn serialize<S: Serializer>(operation: &Operation, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(operation.code())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Operation, D::Error> {
        let byte = u8::deserialize(deserializer)?;
        let unknown = || D::Error::invalid_value(Unexpected::Unsigned(byte.into()), &"an operation of the protocol");
        Operation::from_u8(byte).ok_or_else(unknown)
    }
}
