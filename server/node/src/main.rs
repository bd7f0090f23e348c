//! The Iggy server.
#![allow(missing_docs)]
fn main() {}
