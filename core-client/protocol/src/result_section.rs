//! The result section that begins the body of framed replies (wire 3.3).

use bytes::{BufMut, BytesMut};

use crate::codec::{DecodeError, Reader};
use crate::error_code::ErrorCode;

/// What a framed reply body says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSection<'a> {
    /// Success; the typed payload.
    Success(&'a [u8]),
    /// A rejection. Numbers this version does not define stay readable.
    Rejected(u32),
}

impl<'a> ResultSection<'a> {
    /// Reads a framed body.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let count = reader.count("result count", 8)?;
        if count == 0 {
            return Ok(Self::Success(reader.rest()));
        }
        reader.u32("result index")?;
        match reader.u32("result code")? {
            0 => Err(DecodeError::value(
                "result code",
                0_u32,
                "a nonzero error code in a rejection",
            )),
            code => Ok(Self::Rejected(code)),
        }
    }
}

/// Begins the body of a success; the payload follows.
pub fn put_success(out: &mut BytesMut) {
    out.put_u32_le(0);
}

/// The whole body of a rejection.
pub fn rejection(code: ErrorCode) -> [u8; 12] {
    let mut body = [0; 12];
    body[0] = 1;
    body[8..].copy_from_slice(&code.code().to_le_bytes());
    body
}
