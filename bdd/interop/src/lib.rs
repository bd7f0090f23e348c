//! Black boxes against our server: the published Rust client and the published command line, unmodified.
//!
//! Each test starts a server of its own through the test kit and holds one statement about the wire that both sides
//! must agree on. What the clients do inside is none of our business; only calls, results and error codes count.

mod published_cli;
mod world;

pub use published_cli::{Outcome, PublishedCli};
pub use world::{World, code_of, consumer, group, named, number, payloads, persisted_topic, soon, texts, topic_with};
