//! Starts real server processes on free ports, for tests.
