//! The client core for C: opaque objects, calls that end in a callback, and bytes that are copied at most once.
//!
//! What it exports is declared in `include/iggy/iggy.h`, which is made from these sources; its first comment has the rules
//! that hold for all of it. Everything built on C, the C++ layer first, needs nothing but that.
//!
//! Faults tolerated: a panic of the core becomes a failure, and so does a null object, text that is not UTF-8, a callback
//! object that was made before a fork. Not tolerated: what C cannot say, such as an object that was freed.
#![allow(
    unsafe_code,
    reason = "exported names are unsafe by nature; what reads memory of C is in boundary alone"
)]
#![allow(clippy::unnecessary_box_returns, reason = "a box is what C has as a pointer")]

mod boundary;
mod call;
mod client;
mod consumer;
mod events;
mod failure;
mod headers;
mod hooks;
mod message;
mod position;
mod producer;
mod reader;
mod table;
mod value;
