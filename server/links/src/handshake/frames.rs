//! The three frames of a handshake, and the proofs in them.
//!
//! ```text
//! hello      command u8 = 14 | version u8 = 1 | dialer u8 | listener u8 | link u16 | links u16 | nodes u8 |
//!            proven u8 | zero [6] | cluster u128 | incarnation u64 | release [24] | nonce [32] | proof [32]
//! challenge  command u8 = 15 | version u8 = 1 | verdict u8 | proven u8 | zero [4] | incarnation u64 | zero [16] |
//!            release [24] | zero [8] | nonce [32] | proof [32]
//! finish     command u8 = 16 | zero [31] | proof [32]
//! ```
//!
//! Numbers are little-endian. A proof is the BLAKE3 MAC of everything said so far, the frame at hand up to the proof, and
//! what TLS knows of the connection, under a key derived from the secret of the cluster. Without a secret it is zero.

use std::fmt;

/// Bytes of a hello.
pub const HELLO_LEN: usize = 128;
/// Bytes of a challenge.
pub const CHALLENGE_LEN: usize = 128;
/// Bytes of a finish.
pub const FINISH_LEN: usize = 64;
/// Bytes of a proof.
pub const PROOF_LEN: usize = 32;
/// What TLS knows of a connection that nobody else does; zero without TLS.
pub type Channel = [u8; 32];

const VERSION: u8 = 1;
const RELEASE_LEN: usize = 24;
const KEY_CONTEXT: &str = "iggy replica link handshake 1";

/// A key derived from a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a secret.
    pub fn of(secret: &[u8]) -> Self {
        Self(blake3::derive_key(KEY_CONTEXT, secret))
    }

    /// The proof for what was said.
    pub fn proof(&self, said: &[&[u8]], channel: &Channel) -> [u8; PROOF_LEN] {
        *self.hash(said, channel).as_bytes()
    }

    /// Whether a proof is the one for what was said. Takes the same time for each wrong one.
    pub fn fits(&self, proof: &[u8; PROOF_LEN], said: &[&[u8]], channel: &Channel) -> bool {
        // blake3 compares hashes in constant time.
        self.hash(said, channel) == blake3::Hash::from_bytes(*proof)
    }

    fn hash(&self, said: &[&[u8]], channel: &Channel) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in said {
            // Every part has one length for its command, which stands first: no two series of parts are the same bytes.
            hasher.update(part);
        }
        hasher.update(channel).finalize()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}

/// Why bytes are no frame of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Another frame, or none.
    #[error("the handshake has command {found} where {wanted} was due")]
    Command {
        /// The command that was due.
        wanted: u8,
        /// The command there was.
        found: u8,
    },
    /// Another version of the handshake.
    #[error("the handshake of version {0} is not spoken here, only version {VERSION}")]
    Version(u8),
    /// A field has a value it cannot have.
    #[error("{0} of the handshake has a value it cannot have")]
    Field(&'static str),
}

/// The version of a program, as both sides compare it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Release([u8; RELEASE_LEN]);

impl Release {
    /// The first 24 bytes of a version.
    pub fn of(version: &str) -> Self {
        let mut bytes = [0; RELEASE_LEN];
        for (place, byte) in bytes.iter_mut().zip(version.bytes()) {
            *place = byte;
        }
        Self(bytes)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(RELEASE_LEN);
        write!(formatter, "{}", self.0[..end].escape_ascii())
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// What the dialer says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Node that dials.
    pub dialer: u8,
    /// Node it wants to reach.
    pub listener: u8,
    /// Index of this link.
    pub link: u16,
    /// Links between two nodes, as the dialer is configured.
    pub links: u16,
    /// Nodes of the cluster, as the dialer is configured.
    pub nodes: u8,
    /// Whether the dialer has a secret.
    pub proven: bool,
    /// Cluster.
    pub cluster: u128,
    /// Start of the dialer's process.
    pub incarnation: u64,
    /// Version of the dialer's program.
    pub release: Release,
    /// Bytes that were never used before.
    pub nonce: [u8; 32],
}

impl Hello {
    /// The bytes up to the proof.
    pub fn encode(&self) -> [u8; HELLO_LEN - PROOF_LEN] {
        let mut bytes = [0; HELLO_LEN - PROOF_LEN];
        bytes[0] = 14;
        bytes[1] = VERSION;
        bytes[2] = self.dialer;
        bytes[3] = self.listener;
        bytes[4..6].copy_from_slice(&self.link.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.links.to_le_bytes());
        bytes[8] = self.nodes;
        bytes[9] = u8::from(self.proven);
        bytes[16..32].copy_from_slice(&self.cluster.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[40..64].copy_from_slice(&self.release.0);
        bytes[64..96].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads the bytes up to the proof.
    pub fn decode(bytes: &[u8; HELLO_LEN - PROOF_LEN]) -> Result<Self, FrameError> {
        expect(bytes[0], 14, bytes[1])?;
        zero(&bytes[10..16])?;
        Ok(Self {
            dialer: bytes[2],
            listener: bytes[3],
            link: u16::from_le_bytes(array(bytes, 4)),
            links: u16::from_le_bytes(array(bytes, 6)),
            nodes: bytes[8],
            proven: flag(bytes[9])?,
            cluster: u128::from_le_bytes(array(bytes, 16)),
            incarnation: u64::from_le_bytes(array(bytes, 32)),
            release: Release(array(bytes, 40)),
            nonce: array(bytes, 64),
        })
    }
}

/// What a listener finds of a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The cluster has another name.
    #[error("it belongs to a cluster of another name (cluster.name)")]
    Cluster,
    /// One of the two is not who the other one thinks.
    #[error("it is not the node that the roster has at this address (cluster.nodes)")]
    Node,
    /// The rosters have different lengths.
    #[error("its roster has another number of nodes (cluster.nodes)")]
    Roster,
    /// The numbers of links differ.
    #[error("it has another number of links to a peer (cluster.coordinator.replica_connections_per_peer)")]
    Links,
    /// The secrets differ, or only one side has one.
    #[error("it does not share the secret (cluster.auth)")]
    Secret,
    /// The programs differ.
    #[error("it runs another release; all nodes of a cluster run the same")]
    Release,
}

impl Refusal {
    const ALL: [Self; 6] = [
        Self::Cluster,
        Self::Node,
        Self::Roster,
        Self::Links,
        Self::Secret,
        Self::Release,
    ];

    fn code(verdict: Option<Self>) -> u8 {
        let place = verdict.and_then(|verdict| Self::ALL.iter().position(|one| *one == verdict));
        place.map_or(0, |place| place as u8 + 1)
    }

    fn from_code(code: u8) -> Result<Option<Self>, FrameError> {
        let Some(place) = code.checked_sub(1) else {
            return Ok(None);
        };
        let refusal = Self::ALL.get(usize::from(place)).copied();
        refusal.map(Some).ok_or(FrameError::Field("the verdict"))
    }
}

/// What the listener answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Why there will be no link, if there will be none.
    pub verdict: Option<Refusal>,
    /// Whether the listener has a secret.
    pub proven: bool,
    /// Start of the listener's process.
    pub incarnation: u64,
    /// Version of the listener's program.
    pub release: Release,
    /// Bytes that were never used before.
    pub nonce: [u8; 32],
}

impl Challenge {
    /// The bytes up to the proof.
    pub fn encode(&self) -> [u8; CHALLENGE_LEN - PROOF_LEN] {
        let mut bytes = [0; CHALLENGE_LEN - PROOF_LEN];
        bytes[0] = 15;
        bytes[1] = VERSION;
        bytes[2] = Refusal::code(self.verdict);
        bytes[3] = u8::from(self.proven);
        bytes[8..16].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[32..56].copy_from_slice(&self.release.0);
        bytes[64..96].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads the bytes up to the proof.
    pub fn decode(bytes: &[u8; CHALLENGE_LEN - PROOF_LEN]) -> Result<Self, FrameError> {
        expect(bytes[0], 15, bytes[1])?;
        zero(&bytes[4..8])?;
        zero(&bytes[16..32])?;
        zero(&bytes[56..64])?;
        Ok(Self {
            verdict: Refusal::from_code(bytes[2])?,
            proven: flag(bytes[3])?,
            incarnation: u64::from_le_bytes(array(bytes, 8)),
            release: Release(array(bytes, 32)),
            nonce: array(bytes, 64),
        })
    }
}

/// The bytes of a finish up to the proof.
pub fn finish() -> [u8; FINISH_LEN - PROOF_LEN] {
    let mut bytes = [0; FINISH_LEN - PROOF_LEN];
    bytes[0] = 16;
    bytes
}

/// Reads the bytes of a finish up to the proof.
pub fn decode_finish(bytes: &[u8; FINISH_LEN - PROOF_LEN]) -> Result<(), FrameError> {
    expect(bytes[0], 16, VERSION)?;
    zero(&bytes[1..])
}

fn expect(found: u8, wanted: u8, version: u8) -> Result<(), FrameError> {
    if found != wanted {
        return Err(FrameError::Command { wanted, found });
    }
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    Ok(())
}

fn flag(byte: u8) -> Result<bool, FrameError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(FrameError::Field("whether there is a secret")),
    }
}

fn zero(bytes: &[u8]) -> Result<(), FrameError> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    Err(FrameError::Field("a reserved byte"))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    // Callers pass places within frames of fixed length.
    let mut found = [0; N];
    found.copy_from_slice(&bytes[at..at + N]);
    found
}
