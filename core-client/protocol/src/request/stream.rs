//! Streams (wire 9).

use crate::identifier::Identifier;
use crate::name::Name;
use crate::options::Options;
use crate::wire_struct::wire_struct;

wire_struct! {
    /// Reads a stream with its topics (200).
    pub struct GetStream {
        /// The stream.
        stream: Identifier,
    }

    /// Creates a stream (202).
    pub struct CreateStream {
        /// Its name.
        name: Name,
        /// Its settings.
        options: Options = options_to_end,
    }

    /// Deletes a stream (203).
    pub struct DeleteStream {
        /// The stream.
        stream: Identifier,
    }
}
