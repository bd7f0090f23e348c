//! One function per command, on [`IggyClient`], and the [table](OPERATIONS) of them all.

mod fetch;
mod groups;
mod messages;
mod offsets;
mod partitions;
mod raw;
mod sessions;
mod streams;
mod system;
mod table;
mod tokens;
mod topics;
mod users;

pub(crate) use groups::sync_group;
pub use sessions::IdentityInfo;
pub use table::{COMMANDS_WITHOUT_OPERATION, Module, OBJECTS, OPERATIONS, ObjectEntry, OperationEntry};

use iggy_protocol::codec::Decode;
use iggy_protocol::{Command, Encode, ErrorCode, Name};

use crate::client::IggyClient;
use crate::error::IggyError;

/// A name for something new; what is wrong with it is said with the code of that kind of thing.
fn resource_name(text: &str, invalid: ErrorCode) -> Result<Name, IggyError> {
    Name::new(text).map_err(|error| IggyError::new(invalid, error.to_string()).with_source(error))
}

/// Reads a payload that must fill the reply exactly.
pub(crate) fn read_payload<T: for<'a> Decode<'a>>(payload: &[u8]) -> Result<T, IggyError> {
    T::from_bytes(payload).map_err(|error| {
        IggyError::new(
            ErrorCode::InvalidBytesResponse,
            format!("the reply cannot be read: {error}"),
        )
        .with_source(error)
    })
}

impl IggyClient {
    /// Asks and reads the payload.
    async fn fetch<T: for<'a> Decode<'a>>(&self, command: Command, body: &impl Encode) -> Result<T, IggyError> {
        read_payload(&self.ask(command, body).await?)
    }

    /// Asks and reads the payload; an empty one means that there is nothing of that name.
    async fn fetch_optional<T: for<'a> Decode<'a>>(
        &self,
        command: Command,
        body: &impl Encode,
    ) -> Result<Option<T>, IggyError> {
        let payload = self.ask(command, body).await?;
        if payload.is_empty() {
            Ok(None)
        } else {
            read_payload(&payload).map(Some)
        }
    }
}
