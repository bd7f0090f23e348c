//! Groups of several replicas, step by step. Each test is a story that a rule of the protocol was made for.

mod codec;
mod faults;
mod harness;
mod normal;
mod repair;
mod rest;
mod transfers;
mod views;
mod votes;
