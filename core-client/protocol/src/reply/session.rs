//! The reply to a login and to a bind (wire 4.3 and 4.5).

use crate::name::Name;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// Who the client is now.
    pub struct LoginReply {
        /// The user.
        user_id: u32,
        /// The session: the log position of the registration, never zero.
        session: u64,
        /// The packed version the server speaks.
        server_protocol_version: u32,
        /// The version of the server.
        server_version: Name,
    }
}
