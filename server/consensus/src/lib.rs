//! The sans-IO Viewstamped Replication replica.
