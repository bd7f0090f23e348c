//! Pages of metadata changes (wire 12): follow the log, or read what is there now and then follow.
//!
//! A scan of the current state reads whatever state the page meets, so items may be newer than its anchor; following the
//! log from the anchor makes the picture whole, because records repeat the resource they are about.

use bytes::Bytes;
use iggy_protocol::reply::metadata_changes::{ChangeRecord, ChangesPhase, ChangesStatus, MetadataChanges};
use iggy_protocol::reply::metadata_record::Change as WireChange;
use iggy_protocol::request::metadata_changes::{ChangesStart, Cursor, GetMetadataChanges, PageToken};
use iggy_protocol::{Encode, ErrorCode};

use super::current::Place;
use crate::admission::decode;
use crate::change_log::{Filter, Record, RecordId};
use crate::metadata::Metadata;

/// Every group of wire 12, which an empty list of groups means.
const ALL_GROUPS: u8 = u8::MAX;

impl Metadata {
    /// Answers one page. The caller checked the permission.
    pub(crate) fn metadata_changes(&self, request: &GetMetadataChanges) -> Result<MetadataChanges, ErrorCode> {
        let mask = mask_of(&request.groups);
        let filter = Filter {
            mask,
            since: request.since,
            until: request.until,
            limit: request.limit as usize,
        };
        match &request.start {
            ChangesStart::Earliest => {
                let from = self.changes.retained(mask, &self.applied).after;
                Ok(self.changes_page(from, &filter))
            }
            ChangesStart::Latest => {
                let mut page = self.empty_page(mask, ChangesStatus::Ok, ChangesPhase::Changes);
                page.next = Some(self.head_cursor());
                Ok(page)
            }
            ChangesStart::After(cursor) => Ok(match self.standing(cursor, mask) {
                ChangesStatus::Ok => self.changes_page(place(cursor), &filter),
                status => self.empty_page(mask, status, ChangesPhase::Changes),
            }),
            ChangesStart::Current(None) => Ok(self.current_page(self.head_cursor(), None, mask, filter.limit)),
            ChangesStart::Current(Some(token)) => self.continued_page(token, &filter),
        }
    }

    fn continued_page(&self, token: &Bytes, filter: &Filter) -> Result<MetadataChanges, ErrorCode> {
        let token: PageToken = decode(token)?;
        if token.groups_mask != filter.mask {
            return Err(ErrorCode::InvalidCommand);
        }
        let status = match self.standing(&token.anchor, filter.mask) {
            ChangesStatus::Ok if token.required_head > self.applied.op => ChangesStatus::Behind,
            status => status,
        };
        if status != ChangesStatus::Ok {
            return Ok(self.empty_page(filter.mask, status, ChangesPhase::Current));
        }
        let last = Place {
            group: token.group,
            key: token.last_key,
        };
        Ok(self.current_page(token.anchor, Some(&last), filter.mask, filter.limit))
    }

    fn changes_page(&self, from: Option<RecordId>, filter: &Filter) -> MetadataChanges {
        let scan = self.changes.scan(from, filter, &self.applied);
        let mut page = self.empty_page(filter.mask, ChangesStatus::Ok, ChangesPhase::Changes);
        page.records = scan
            .records
            .into_iter()
            .map(|(id, record)| wire_record(id, record))
            .collect();
        page.next = Some(self.cursor_at(scan.next));
        page.has_more = scan.has_more;
        page
    }

    fn current_page(&self, anchor: Cursor, after: Option<&Place>, mask: u8, limit: usize) -> MetadataChanges {
        let mut items = self.current_items(mask, after);
        let mut last = None;
        let mut page = self.empty_page(mask, ChangesStatus::Ok, ChangesPhase::Current);
        for (place, item) in items.by_ref().take(limit) {
            page.items.push(item);
            last = Some(place);
        }
        page.has_more = items.next().is_some();
        if let Some(last) = last.filter(|_| page.has_more) {
            let token = PageToken {
                anchor,
                required_head: self.applied.op,
                groups_mask: mask,
                group: last.group,
                last_key: last.key,
            };
            page.token = Some(token.to_bytes().freeze());
        }
        page.next = Some(anchor);
        page
    }

    fn empty_page(&self, mask: u8, status: ChangesStatus, phase: ChangesPhase) -> MetadataChanges {
        let retained = self.changes.retained(mask, &self.applied);
        MetadataChanges {
            status,
            phase,
            log_id: self.is_bootstrapped().then_some(self.log_id),
            oldest_op: retained.oldest_op,
            retained_since: retained.since,
            head_op: self.applied.op,
            next: None,
            has_more: false,
            records: Vec::new(),
            items: Vec::new(),
            token: None,
        }
    }

    /// Whether the log can be followed from a cursor.
    fn standing(&self, cursor: &Cursor, mask: u8) -> ChangesStatus {
        if cursor.log_id != self.log_id {
            return ChangesStatus::Reset;
        }
        if cursor.op > self.applied.op {
            return ChangesStatus::Behind;
        }
        let known = if cursor.op == self.applied.op {
            Some(self.applied.checksum)
        } else {
            self.changes.checksum_of(cursor.op)
        };
        if cursor.op != 0 && known.is_some_and(|checksum| checksum != cursor.checksum) {
            return ChangesStatus::Reset;
        }
        if place(cursor) < self.changes.retained(mask, &self.applied).after {
            return ChangesStatus::Expired;
        }
        ChangesStatus::Ok
    }

    fn head_cursor(&self) -> Cursor {
        self.cursor_at(self.changes.head(&self.applied))
    }

    fn cursor_at(&self, place: Option<RecordId>) -> Cursor {
        let Some(RecordId { op, ordinal }) = place else {
            return Cursor {
                log_id: self.log_id,
                ..Cursor::ZERO
            };
        };
        let checksum = if op == self.applied.op {
            Some(self.applied.checksum)
        } else {
            self.changes.checksum_of(op)
        };
        Cursor {
            log_id: self.log_id,
            op,
            checksum: checksum.unwrap_or_default(),
            ordinal,
        }
    }
}

fn mask_of(groups: &[u8]) -> u8 {
    if groups.is_empty() {
        return ALL_GROUPS;
    }
    groups
        .iter()
        .filter(|group| (1..=8).contains(*group))
        .fold(0, |mask, group| mask | 1 << (group - 1))
}

/// The place a cursor names; the beginning is before every record.
fn place(cursor: &Cursor) -> Option<RecordId> {
    (cursor.op != 0).then_some(RecordId {
        op: cursor.op,
        ordinal: cursor.ordinal,
    })
}

/// A record for the wire; its body was written when it was kept.
fn wire_record(id: RecordId, record: &Record) -> ChangeRecord {
    ChangeRecord {
        op: id.op,
        ordinal: id.ordinal,
        checksum: record.checksum,
        timestamp: record.timestamp,
        actor_user_id: record.actor,
        change: WireChange::Unknown {
            group: record.group,
            kind: record.kind,
            body: record.body.clone(),
        },
    }
}
