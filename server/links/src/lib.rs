//! Links between the nodes of a cluster: TCP connections that carry what replicas say to each other.
//!
//! Between two nodes there are as many links as the configuration says; the node with the lower number dials. A link
//! begins with a preamble, TLS where it is configured, and a handshake ([`handshake`]) in which both sides show that they
//! belong to this cluster, are who they say, run the same release and, where a secret is configured, know it.
//!
//! Whoever sends never waits: what finds no link or a full queue is dropped and counted, and the replicas repeat what
//! matters. What one group says goes through one link, in order. Heartbeats of all groups share frames.
//!
//! Faults tolerated: peers that are gone, stand still, close, or send what is no frame; connections of strangers;
//! messages in the name of another node. None of them takes memory beyond the bounds in [`Limits`], or time beyond its
//! deadlines.

mod beats;
mod config;
mod dialing;
mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod handshake;
mod lane;
mod link;
mod listening;
mod peer;
mod preamble;
mod status;
mod switchboard;
mod tls;

pub use config::{Identity, Inbound, Limits, LinksConfig, Secrets};
pub use lane::Lane;
pub use preamble::{Preamble, PreambleError};
pub use status::PeerStatus;
pub use switchboard::Links;
pub use tls::{LinkTls, TlsError};
