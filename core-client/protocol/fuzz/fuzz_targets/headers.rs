//! Fuzzes the decoders of `iggy_protocol::fuzzing::headers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iggy_protocol::fuzzing::headers(bytes));
