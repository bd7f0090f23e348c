//! The scenarios of `bdd/features` in Rust: see `tests/features`. Nothing is here for others to use,
//! except the program `iggy-bdd-member`.
