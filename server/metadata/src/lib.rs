//! The metadata state machine: streams, topics, users, groups, options, sessions, change log.
