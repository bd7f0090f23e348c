//! What a server answers, as JSON: one form for the command line and for every binding.
//!
//! Names are those of the protocol in `snake_case`. Numbers are numbers, those of 128 bits are hexadecimal text. What is
//! absent is `null`.

pub mod changes;
pub mod permissions;
pub mod resources;
