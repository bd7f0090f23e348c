//! Sessions: one logged-in client that outlives its connections.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::keys::{GroupKey, SessionKey};
use crate::position::Position;
use crate::receipt::ReceiptWindow;

/// A registered session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Client id and number.
    pub key: SessionKey,
    /// User it acts for.
    pub user_id: u32,
    /// When that user was created: a reused user id is another user.
    pub user_created_at: u64,
    /// [`bind_verifier`] of the client's secret.
    pub verifier: [u8; 32],
    /// Identity of the registration, which its resends repeat.
    pub register_checksum: u128,
    /// Where the registration was committed, for the answer to its resends.
    pub registered_at: Position,
    /// Groups it is a member of.
    pub memberships: BTreeSet<GroupKey>,
    /// Answers of its metadata writes.
    pub receipts: ReceiptWindow,
}

/// What the state keeps of a bind secret: enough to check a proof, too little to make one.
pub fn bind_verifier(client: u128, secret: &[u8; 32]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(b"session-bind-verifier/1");
    digest.update(client.to_le_bytes());
    digest.update(secret);
    digest.finalize().into()
}

impl Session {
    /// Whether a secret is the one the session was registered with. Takes the same time for every wrong one.
    pub fn is_proved_by(&self, secret: &[u8; 32]) -> bool {
        let offered = bind_verifier(self.key.client, secret);
        offered
            .iter()
            .zip(self.verifier)
            .fold(0u8, |difference, (a, b)| difference | (a ^ b))
            == 0
    }
}
