//! Packed protocol versions and the window a server accepts (wire 4.1).

use std::fmt;

/// The version this crate speaks: 0.12.2, packed.
pub const PROTOCOL_VERSION: PackedVersion = PackedVersion(12_290);

/// A semantic version in 30 bits: `major << 20 | minor << 10 | patch`. Integer order is version order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackedVersion(pub u32);

impl PackedVersion {
    /// Packs three numbers, each below 1024.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Option<Self> {
        if major < 1024 && minor < 1024 && patch < 1024 {
            Some(Self(major << 20 | minor << 10 | patch))
        } else {
            None
        }
    }

    /// Packs the first three numbers of a text such as `0.12.2` or `0.12.2-edge.1`.
    pub fn parse(text: &str) -> Option<Self> {
        let core = text.split(['-', '+']).next()?;
        let mut parts = core.split('.').map(str::parse);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => Self::new(major, minor, patch),
            _ => None,
        }
    }

    /// Whether a server of this generation accepts a client of this version: exactly its own.
    pub fn is_accepted(self) -> bool {
        self == PROTOCOL_VERSION
    }
}

impl fmt::Display for PackedVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.0 >> 20, self.0 >> 10 & 0x3ff, self.0 & 0x3ff)
    }
}
