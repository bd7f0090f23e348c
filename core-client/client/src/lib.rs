//! The client core: connection, session, router, operations, producer and consumer.
