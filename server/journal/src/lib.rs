//! The prepare log, the two-copy superblock and snapshots.
