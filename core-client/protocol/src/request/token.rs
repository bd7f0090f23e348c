//! Personal access tokens (wire 10).

use crate::name::Name;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// Creates a token (42).
    pub struct CreatePersonalAccessToken {
        /// Its name, 3..=30 bytes.
        name: Name,
        /// Lifetime in microseconds; 0 is the server's default, 2^64-1 never.
        expiry: u64,
    }

    /// Deletes a token (43).
    pub struct DeletePersonalAccessToken {
        /// Its name.
        name: Name,
    }
}
