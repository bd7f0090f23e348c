//! The steps, by what they talk about.

pub mod consumers;
mod messages;
mod node;
mod offsets;
mod outcomes;
mod polls;
mod producers;
mod readers;
mod resources;
mod users;
