//! Fuzzes everything that a stranger may send to the door for other nodes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| iggy_links::fuzzing::bytes(bytes));
