//! One buffer per request: room for the header in front, the body behind it, so that a body is written once.

use bytes::{BufMut, Bytes, BytesMut};
use iggy_protocol::limits::HEADER_SIZE;
use iggy_protocol::{Encode, RequestHeader};

/// A request body with room for its header.
#[derive(Debug)]
pub struct FrameBuffer(BytesMut);

impl FrameBuffer {
    /// A buffer with an empty body.
    pub fn new() -> Self {
        let mut buffer = BytesMut::with_capacity(HEADER_SIZE + 64);
        buffer.put_bytes(0, HEADER_SIZE);
        Self(buffer)
    }

    /// A buffer with this body.
    pub fn of(body: &impl Encode) -> Self {
        let mut buffer = Self::new();
        body.encode(&mut buffer.0);
        buffer
    }

    /// A buffer with these bytes as its body.
    pub fn of_bytes(body: &[u8]) -> Self {
        let mut buffer = Self::new();
        buffer.0.put_slice(body);
        buffer
    }

    /// Takes a buffer whose first 256 bytes are room for a header.
    pub fn from_reserved(buffer: BytesMut) -> Self {
        debug_assert!(buffer.len() >= HEADER_SIZE, "room for the header");
        Self(buffer)
    }

    /// The buffer itself, to append to.
    pub fn into_inner(self) -> BytesMut {
        self.0
    }

    /// Bytes of the frame.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of the body.
    pub fn body_len(&self) -> usize {
        self.0.len() - HEADER_SIZE
    }

    /// Puts the header in front and freezes the frame: from here on its bytes never change.
    pub fn seal(mut self, header: &RequestHeader) -> Bytes {
        self.0[..HEADER_SIZE].copy_from_slice(header.as_array());
        self.0.freeze()
    }

    /// Takes a frame that was never sent apart again. Copies only when somebody else still holds it.
    pub fn reopen(frame: Bytes) -> Self {
        Self(
            frame
                .try_into_mut()
                .unwrap_or_else(|shared| BytesMut::from(&shared[..])),
        )
    }
}
