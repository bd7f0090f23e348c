//! The superblock: who a group on this disk is, how far it is checkpointed, and whether it stopped in order.

use iggy_consensus::{Ending, GroupId, VsrState};
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

pub const SUPERBLOCK_LEN: usize = 512;
const MAGIC: [u8; 8] = *b"SUPERBLK";
const FORMAT: u32 = 1;

/// Names one boot of the machine. Under the same boot no written byte was lost, whatever happened to the process.
pub type BootId = u128;

/// The applied state that a checkpoint file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Position it was taken at; 0 for none.
    pub op: u64,
    /// Checksum of the prepare at that position.
    pub prepare_checksum: u128,
    /// Timestamp of that prepare, in microseconds since the epoch.
    pub timestamp: u64,
    /// XXH3-128 of the file.
    pub state_checksum: u128,
    /// Bytes of the file.
    pub length: u64,
}

/// Content of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Rises with every write; its parity picks the copy.
    pub sequence: u64,
    /// The replica.
    pub state: VsrState,
    /// The newest checkpoint.
    pub checkpoint: Checkpoint,
    /// Oldest journal generation that is still needed.
    pub generation: u64,
    /// Boot in which it was written.
    pub boot: BootId,
    /// Whether everything was synced and nothing written after.
    pub clean: bool,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    checksum: U128,
    magic: [u8; 8],
    format: U32,
    replica: u8,
    replica_count: u8,
    clean: u8,
    ending: u8,
    sequence: U64,
    cluster: U128,
    namespace: U64,
    incarnation: U64,
    view: U32,
    log_view: U32,
    history: U64,
    checkpoint_op: U64,
    checkpoint_prepare: U128,
    checkpoint_timestamp: U64,
    checkpoint_state: U128,
    checkpoint_length: U64,
    generation: U64,
    boot: U128,
    tail: [u8; 344],
}

const _: () = assert!(size_of::<Layout>() == SUPERBLOCK_LEN);

impl Superblock {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut layout = Layout::new_zeroed();
        layout.magic = MAGIC;
        layout.format = U32::new(FORMAT);
        layout.replica = self.state.replica;
        layout.replica_count = self.state.replica_count;
        layout.clean = u8::from(self.clean);
        layout.ending = self.state.ending.code();
        layout.sequence = U64::new(self.sequence);
        layout.cluster = U128::new(self.state.cluster);
        layout.namespace = U64::new(self.state.group.namespace);
        layout.incarnation = U64::new(self.state.group.incarnation);
        layout.view = U32::new(self.state.view);
        layout.log_view = U32::new(self.state.log_view);
        layout.history = U64::new(self.state.history);
        layout.checkpoint_op = U64::new(self.checkpoint.op);
        layout.checkpoint_prepare = U128::new(self.checkpoint.prepare_checksum);
        layout.checkpoint_timestamp = U64::new(self.checkpoint.timestamp);
        layout.checkpoint_state = U128::new(self.checkpoint.state_checksum);
        layout.checkpoint_length = U64::new(self.checkpoint.length);
        layout.generation = U64::new(self.generation);
        layout.boot = U128::new(self.boot);
        layout.checksum = U128::new(xxh3_128(&layout.as_bytes()[16..]));
        layout.as_bytes().to_vec()
    }

    /// `None` for anything but an intact superblock of a known format.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let layout = Layout::read_from_bytes(bytes.get(..SUPERBLOCK_LEN)?).ok()?;
        let intact = layout.magic == MAGIC
            && layout.format.get() == FORMAT
            && layout.checksum.get() == xxh3_128(&layout.as_bytes()[16..]);
        let group = GroupId {
            namespace: layout.namespace.get(),
            incarnation: layout.incarnation.get(),
        };
        let ending = Ending::from_code(layout.ending).filter(|_| intact)?;
        Some(Self {
            sequence: layout.sequence.get(),
            state: VsrState {
                cluster: layout.cluster.get(),
                group,
                replica: layout.replica,
                replica_count: layout.replica_count,
                view: layout.view.get(),
                log_view: layout.log_view.get(),
                history: layout.history.get(),
                ending,
            },
            checkpoint: Checkpoint {
                op: layout.checkpoint_op.get(),
                prepare_checksum: layout.checkpoint_prepare.get(),
                timestamp: layout.checkpoint_timestamp.get(),
                state_checksum: layout.checkpoint_state.get(),
                length: layout.checkpoint_length.get(),
            },
            generation: layout.generation.get(),
            boot: layout.boot.get(),
            clean: layout.clean == 1,
        })
    }
}
