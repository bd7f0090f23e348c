//! The end of a group's log in memory: what is not yet committed, and as much before it as helps replicas that lag.

use crate::{LogEnd, Prepare, PrepareHeader};
use iggy_storage::IoToken;
use std::collections::VecDeque;

#[derive(Debug)]
struct Entry {
    prepare: Prepare,
    token: IoToken,
    held: bool,
    /// Bytes of the log up to and with this entry, since the replica started.
    through: u64,
}

/// A run of prepares without gaps, each chained to the one before.
#[derive(Debug)]
pub(crate) struct Log {
    base: LogEnd,
    /// Bytes counted before the first entry.
    base_through: u64,
    entries: VecDeque<Entry>,
    /// Newest position of which everything is held.
    held: u64,
}

impl Log {
    /// A log from `base` on, of which the journal holds everything.
    pub fn recovered(base: LogEnd, entries: Vec<Prepare>) -> Self {
        let mut log = Self {
            base,
            base_through: 0,
            entries: VecDeque::with_capacity(entries.len()),
            held: base.op,
        };
        for prepare in entries {
            log.held = prepare.header.op.get();
            log.push(prepare, IoToken(0));
            if let Some(last) = log.entries.back_mut() {
                last.held = true;
            }
        }
        log
    }

    pub fn base(&self) -> LogEnd {
        self.base
    }

    pub fn head(&self) -> LogEnd {
        self.entries.back().map_or(self.base, |entry| entry.prepare.end())
    }

    fn at(&self, op: u64) -> Option<&Entry> {
        let index = op.checked_sub(self.base.op + 1)?;
        self.entries.get(index as usize)
    }

    pub fn get(&self, op: u64) -> Option<&Prepare> {
        self.at(op).map(|entry| &entry.prepare)
    }

    pub fn header(&self, op: u64) -> Option<&PrepareHeader> {
        self.get(op).map(|prepare| &*prepare.header)
    }

    /// Position and checksum at `op`; `None` where the log does not reach.
    pub fn end_at(&self, op: u64) -> Option<LogEnd> {
        if op == self.base.op {
            return Some(self.base);
        }
        self.header(op).map(PrepareHeader::end)
    }

    pub fn checksum(&self, op: u64) -> Option<u128> {
        self.end_at(op).map(|end| end.checksum)
    }

    /// Bytes of the log up to `op`, for differences.
    pub fn through(&self, op: u64) -> u64 {
        self.at(op).map_or(self.base_through, |entry| entry.through)
    }

    pub fn push(&mut self, prepare: Prepare, token: IoToken) {
        let before = self.entries.back().map_or(self.base_through, |entry| entry.through);
        self.entries.push_back(Entry {
            through: before + prepare.size(),
            prepare,
            token,
            held: false,
        });
    }

    /// Notes that a write is done; the op it was for, unless it was cut meanwhile.
    pub fn mark_held(&mut self, token: IoToken) -> Option<u64> {
        let first = (self.held.max(self.base.op) - self.base.op) as usize;
        let entry = self.entries.range_mut(first..).find(|entry| entry.token == token)?;
        entry.held = true;
        let op = entry.prepare.header.op.get();
        while self.at(self.held + 1).is_some_and(|entry| entry.held) {
            self.held += 1;
        }
        Some(op)
    }

    pub fn op_of(&self, token: IoToken) -> Option<u64> {
        let first = (self.held.max(self.base.op) - self.base.op) as usize;
        let found = self.entries.range(first..).find(|entry| entry.token == token)?;
        Some(found.prepare.header.op.get())
    }

    /// Newest position up to which every write is done.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Forgets everything after `op`.
    pub fn truncate(&mut self, op: u64) {
        let kept = op.saturating_sub(self.base.op) as usize;
        self.entries.truncate(kept);
        self.held = self.held.min(op);
    }

    /// Forgets the oldest prepares up to `op` while the log has more than `bytes`.
    pub fn evict(&mut self, op: u64, bytes: u64) {
        while let Some(first) = self.entries.front() {
            let all = self.entries.back().map_or(0, |last| last.through) - self.base_through;
            if all <= bytes || first.prepare.header.op.get() > op || !first.held {
                break;
            }
            self.base = first.prepare.end();
            self.base_through = first.through;
            self.entries.pop_front();
        }
    }

    /// Starts over after a position whose state came from elsewhere.
    pub fn reset(&mut self, base: LogEnd) {
        self.base_through = self.entries.back().map_or(self.base_through, |entry| entry.through);
        self.entries.clear();
        self.base = base;
        self.held = base.op;
    }
}
