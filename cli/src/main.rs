//! The iggy command line.
fn main() {}
