//! Starts real server processes on free ports, for tests.
//!
//! A [`TestServer`] owns one `iggy-server` process and its data directory. The server binds port 0 and prints the
//! addresses it got on one line, `ready tcp=127.0.0.1:43210 metrics=127.0.0.1:43211`; the test kit waits for that line, so a
//! started server accepts connections. A restart binds the same addresses again, because clients under test reconnect
//! to the address they know.
//!
//! Faults tolerated: a server that never becomes ready, dies while starting, floods its output or ignores SIGTERM.
//! Each ends in an error that carries the end of the server's log, within the deadlines below. Not tolerated: a test
//! process killed with SIGKILL leaves its servers running.
//!
//! [`insist`] drops the futures of a call at each of their points.

mod binary;
mod drops;
mod member;
mod metrics;
mod output;
mod server;

pub use binary::{BINARY_VARIABLE, find_server_binary};
pub use drops::{insist, woken_at_most};
pub use member::MemberProcess;
pub use server::{READY_DEADLINE, STOP_DEADLINE, TestServer, TestServerBuilder};
