//! Reading the log from a place, and knowing when a place cannot be read from any more.

use super::{ChangeLog, Record, RecordId};
use crate::position::Position;

/// Which records a follower wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    /// Bit `group - 1` for each selected group.
    pub mask: u8,
    /// Earliest time of a record, inclusive.
    pub since: Option<u64>,
    /// Latest time of a record, inclusive.
    pub until: Option<u64>,
    /// Records at most.
    pub limit: usize,
}

impl Filter {
    pub(crate) fn selects(&self, group: u8) -> bool {
        is_selected(self.mask, group)
    }
}

/// Whether a mask of groups contains one.
pub(crate) fn is_selected(mask: u8, group: u8) -> bool {
    (1..=8).contains(&group) && mask & (1 << (group - 1)) != 0
}

/// A page of records.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub records: Vec<(RecordId, &'a Record)>,
    /// Where the next page starts; `None` is the beginning of the log.
    pub next: Option<RecordId>,
    pub has_more: bool,
}

/// From where on a selection of groups is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retained {
    /// Newest place that gave way.
    pub after: Option<RecordId>,
    /// First position that is held as a whole.
    pub oldest_op: u64,
    /// Time from which on every record is held, 0 for always.
    pub since: u64,
}

impl ChangeLog {
    pub(crate) fn retained(&self, mask: u8, head: &Position) -> Retained {
        let dropped = self
            .rings(|group| is_selected(mask, group))
            .filter_map(super::RecordRing::dropped)
            .max_by_key(|dropped| dropped.id);
        match dropped {
            None => Retained {
                after: None,
                oldest_op: head.op.min(1),
                since: 0,
            },
            Some(dropped) => Retained {
                after: Some(dropped.id),
                oldest_op: dropped.id.op + 1,
                since: dropped.timestamp,
            },
        }
    }

    /// Reads records after a place that [`retained`](Self::retained) covers.
    pub(crate) fn scan(&self, from: Option<RecordId>, filter: &Filter, head: &Position) -> Scan<'_> {
        let mut records = Vec::new();
        let mut next = from;
        let is_late = |record: &Record| filter.until.is_some_and(|until| record.timestamp > until);
        let is_wanted = |record: &Record| {
            filter.selects(record.group) && filter.since.is_none_or(|since| record.timestamp >= since)
        };
        let mut rest = self.after(from);
        for (id, record) in rest.by_ref() {
            if is_late(record) {
                return Scan {
                    records,
                    next,
                    has_more: false,
                };
            }
            next = Some(id);
            if is_wanted(record) {
                records.push((id, record));
                if records.len() == filter.limit {
                    let has_more = rest
                        .take_while(|(_, record)| !is_late(record))
                        .any(|(_, record)| is_wanted(record));
                    return Scan {
                        records,
                        next,
                        has_more,
                    };
                }
            }
        }
        // Everything up to the head was read, so the follower need not read it again even if nothing was selected.
        Scan {
            records,
            next: self.head(head),
            has_more: false,
        }
    }

    /// The place after everything there is.
    pub(crate) fn head(&self, head: &Position) -> Option<RecordId> {
        if head.op == 0 {
            return None;
        }
        let last = RecordId {
            op: head.op,
            ordinal: u32::MAX,
        };
        let first = RecordId {
            op: head.op,
            ordinal: 0,
        };
        let ordinal = [&self.resources, &self.activity]
            .into_iter()
            .filter_map(|ring| ring.records.range(first..=last).next_back())
            .map(|(id, _)| id.ordinal)
            .max();
        Some(RecordId {
            op: head.op,
            ordinal: ordinal.unwrap_or(0),
        })
    }
}
