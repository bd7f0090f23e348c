//! The client-facing binary protocol 0.12.2: frames, batches, commands, errors. Pure: no I/O.
