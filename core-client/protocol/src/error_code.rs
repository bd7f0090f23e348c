//! Error codes: what they are called and what a caller may do about each (wire 13).

use std::fmt;

pub use crate::error_code_table::ErrorCode;

/// Who produces an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaisedBy {
    /// A server sends it on the wire.
    Server,
    /// A client produces it locally.
    Client,
}

/// What a caller may do after an error code (wire 13 and 14.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryClass {
    /// Asking again cannot help.
    Never,
    /// The identical frame may be sent again.
    SameFrame,
    /// The identical frame may be sent again once a new route is known.
    AfterReroute,
    /// The identical frame may be sent again once the link is up and bound again.
    AfterReconnect,
    /// The session is bound anew first; an unbound client signs in.
    AfterRebind,
    /// The call may be repeated as a new request with a new number.
    NewRequest,
    /// Worth asking again only when a replica other than the metadata primary said so.
    UnlessMetadataPrimary,
    /// A local buffer was full; there is room again after it drained.
    WhenDrained,
}

impl ErrorCode {
    /// The code of a number received from outside. Numbers this version does not define become [`ErrorCode::Error`] (wire 13).
    pub const fn from_u32(code: u32) -> Self {
        match Self::known(code) {
            Some(code) => code,
            None => Self::Error,
        }
    }

    /// The number on the wire.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// Whether the same call may succeed later without the caller changing anything.
    pub const fn is_retryable(self) -> bool {
        !matches!(self.retry_class(), RetryClass::Never)
    }

    /// The code of this text form, or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.name(), self.code())
    }
}

impl std::error::Error for ErrorCode {}

impl From<ErrorCode> for u32 {
    fn from(code: ErrorCode) -> Self {
        code.code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_any_number_when_read_should_never_yield_another_known_code() {
        for number in 0..20_000 {
            let code = ErrorCode::from_u32(number);
            assert!(code.code() == number || (code == ErrorCode::Error && ErrorCode::known(number).is_none()));
        }
    }

    #[test]
    fn given_the_table_when_listed_should_ascend_and_have_unique_names() {
        assert!(ErrorCode::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_name(code.name()), Some(*code));
        }
    }
}
