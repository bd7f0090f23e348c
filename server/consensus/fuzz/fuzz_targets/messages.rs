//! Fuzzes the decoders of what replicas say to each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iggy_consensus::fuzzing::messages(bytes));
