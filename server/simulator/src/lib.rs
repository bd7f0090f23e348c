//! Whole clusters in one thread, on a network, disks and clocks that a seed decides.
//!
//! The consensus, journal, partition, metadata and driver code is the one that nodes run; only sockets and disks are
//! replaced. A run is a function of its seed: the same seed gives the same events, so a failure is reproduced by one line.
//!
//! * [`plan`] draws what a run is like: members, partitions, durabilities, which faults and how often.
//! * [`world`] holds the nodes, the packets and the time, and makes one event happen after the other.
//! * [`network`], [`disks`] and [`mishaps`] are the faults (simulator 4); [`faults`] counts them.
//! * [`clients`] write, ask again and remember what they were told; [`oracle`] holds that against what is in the logs.
//! * [`checker`] watches the replicas: one committed chain per group, and equal states at the end.
//!
//! Faults that a group is not built for are injected in the mode for unlimited faults alone, where only agreement
//! between replicas is checked.

pub mod bugs;
pub mod checker;
pub mod clients;
pub mod disks;
pub mod faults;
pub mod metadata;
pub mod mishaps;
pub mod network;
pub mod node;
pub mod oracle;
pub mod outputs;
pub mod plan;
pub mod run;
pub mod trace;
pub mod workload;
pub mod world;

pub use faults::{Fault, Faults};
pub use plan::Mode;
pub use run::{Report, run};
