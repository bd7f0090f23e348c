//! The partition state machine: segments, indexes, offsets, receipts, producers, retention.
