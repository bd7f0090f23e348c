//! The first eight bytes of a connection: which link it wants to be, so that it gets to its thread before anything else
//! is spoken (behaviour 9.1). They prove nothing; the handshake repeats them.

/// Bytes of a preamble.
pub const LEN: usize = 8;
const MAGIC: [u8; 4] = *b"IGRL";
const VERSION: u8 = 1;

/// Who dials, and for which of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// Node that dialed.
    pub dialer: u8,
    /// Index of the link among those of the two nodes.
    pub link: u16,
}

/// Why bytes are no preamble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreambleError {
    /// Something else than a node of a cluster.
    #[error("the connection does not begin as a link between nodes does")]
    Magic,
    /// Another version.
    #[error("links of version {0} are not spoken here, only version {VERSION}")]
    Version(u8),
}

impl Preamble {
    /// The bytes.
    pub fn encode(self) -> [u8; LEN] {
        let [low, high] = self.link.to_le_bytes();
        let [a, b, c, d] = MAGIC;
        [a, b, c, d, VERSION, self.dialer, low, high]
    }

    /// Reads the bytes.
    pub fn decode(bytes: [u8; LEN]) -> Result<Self, PreambleError> {
        let [a, b, c, d, version, dialer, low, high] = bytes;
        if [a, b, c, d] != MAGIC {
            return Err(PreambleError::Magic);
        }
        if version != VERSION {
            return Err(PreambleError::Version(version));
        }
        Ok(Self {
            dialer,
            link: u16::from_le_bytes([low, high]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_preamble_when_encoded_should_have_the_documented_bytes() {
        let preamble = Preamble { dialer: 3, link: 258 };
        assert_eq!(preamble.encode(), *b"IGRL\x01\x03\x02\x01");
        assert_eq!(Preamble::decode(preamble.encode()), Ok(preamble));
    }

    #[test]
    fn given_other_bytes_when_decoded_should_say_what_is_wrong() {
        assert_eq!(Preamble::decode(*b"GET / HT"), Err(PreambleError::Magic));
        assert_eq!(
            Preamble::decode(*b"IGRL\x02\x00\x00\x00"),
            Err(PreambleError::Version(2))
        );
    }
}
