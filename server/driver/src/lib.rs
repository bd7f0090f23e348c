//! Hosts consensus groups and runs their effects over storage. No tokio, no sockets.
