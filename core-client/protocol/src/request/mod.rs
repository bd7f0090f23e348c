//! Request bodies, one module per area and one struct per command.

pub mod group;
pub mod message;
pub mod metadata_changes;
pub mod offset;
pub mod partition;
pub mod segment;
pub mod session;
pub mod stream;
pub mod system;
pub mod token;
pub mod topic;
pub mod user;

use bytes::BytesMut;

use crate::codec::{Decode, DecodeError, Encode, Reader};

/// The body of commands that carry nothing: ping, logout, lists and cancel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Empty;

impl Encode for Empty {
    fn encode(&self, _: &mut BytesMut) {}
}

impl<'a> Decode<'a> for Empty {
    fn decode(_: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}
