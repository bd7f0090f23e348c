//! What happened, as a number to compare two runs by and as a table to read.

use std::fmt::Write;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The events of a run.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    events: u64,
    line: String,
    /// Whether events are printed.
    pub print: bool,
}

impl Trace {
    /// Notes an event: when, where (`None` for the world), what kind, and the details that `detail` writes.
    pub fn event(&mut self, at: u64, node: Option<u8>, kind: &str, detail: std::fmt::Arguments<'_>) {
        self.line.clear();
        let node = node.map_or(-1, i32::from);
        // Writing to a string cannot fail.
        let _ = write!(self.line, "{at:>10} {node:>2} {kind:<20} {detail}");
        self.hash = xxh3_64_with_seed(self.line.as_bytes(), self.hash);
        self.events += 1;
        if self.print {
            println!("{}", self.line);
        }
    }

    /// A number that two runs share only if all their events are the same.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }
}
