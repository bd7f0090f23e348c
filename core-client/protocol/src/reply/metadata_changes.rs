//! A page of metadata changes, or of what exists now (17, wire 12).

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{Decode, DecodeError, Encode, Reader, WriteWire};
use crate::limits::MAX_METADATA_TOKEN_BYTES;
use crate::reply::metadata_record::{Change, Item};
use crate::request::metadata_changes::Cursor;
use crate::request::system::byte_enum;
use crate::wire_struct::{Field, composite_fields, field};

byte_enum! {
    /// How a page came about.
    ChangesStatus "changes status" "0 ok, 1 behind, 2 expired or 3 reset" {
        /// As asked.
        0 Ok "ok",
        /// This node has not applied the cursor yet: ask again or elsewhere.
        1 Behind "behind",
        /// The log no longer holds the position: rebuild from what exists.
        2 Expired "expired",
        /// The log is another one: rebuild.
        3 Reset "reset",
    }
}

byte_enum! {
    /// What a page holds.
    ChangesPhase "changes phase" "0 (changes) or 1 (current)" {
        /// Changes.
        0 Changes "changes",
        /// What exists now.
        1 Current "current",
    }
}

/// One change with its place in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRecord {
    /// The metadata position.
    pub op: u64,
    /// Which record of that position.
    pub ordinal: u32,
    /// Checksum of the entry at that position.
    pub checksum: u128,
    /// When it was committed, in microseconds.
    pub timestamp: u64,
    /// Who did it; `None` when the system did.
    pub actor_user_id: Option<u32>,
    /// What changed.
    pub change: Change,
}

const RECORD_MIN_BYTES: usize = 8 + 4 + 16 + 8 + 1 + 1 + 1 + 4;

impl Field for ChangeRecord {
    fn write(&self, out: &mut BytesMut) {
        out.put_u64_le(self.op);
        out.put_u32_le(self.ordinal);
        out.put_u128_le(self.checksum);
        out.put_u64_le(self.timestamp);
        self.actor_user_id.write(out);
        out.put_u8(self.change.group());
        out.put_u8(self.change.kind());
        put_block(out, |out| self.change.encode_body(out));
    }

    fn read(reader: &mut Reader<'_>, _: &'static str) -> Result<Self, DecodeError> {
        let op = reader.u64("record op")?;
        let ordinal = reader.u32("record ordinal")?;
        let checksum = reader.u128("record checksum")?;
        let timestamp = reader.u64("record timestamp")?;
        let actor_user_id = Option::read(reader, "actor")?;
        let (group, kind) = (reader.u8("record group")?, reader.u8("record kind")?);
        let length = reader.u32("record body length")? as usize;
        let change = Change::decode_body(group, kind, reader.bytes("record body", length)?)?;
        Ok(Self {
            op,
            ordinal,
            checksum,
            timestamp,
            actor_user_id,
            change,
        })
    }
}

impl Field for Item {
    fn write(&self, out: &mut BytesMut) {
        out.put_u8(self.group());
        put_block(out, |out| self.encode_body(out));
    }

    fn read(reader: &mut Reader<'_>, _: &'static str) -> Result<Self, DecodeError> {
        let group = reader.u8("item group")?;
        let length = reader.u32("item body length")? as usize;
        Self::decode_body(group, reader.bytes("item body", length)?)
    }
}

fn put_block(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_u32_le(0);
    write(out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataChanges {
    /// How the page came about.
    pub status: ChangesStatus,
    /// What it holds.
    pub phase: ChangesPhase,
    /// The log.
    pub log_id: Option<u128>,
    /// The oldest position the log holds.
    pub oldest_op: u64,
    /// Time of the oldest record, in microseconds.
    pub retained_since: u64,
    /// The newest position this node applied.
    pub head_op: u64,
    /// Where the next page of changes starts.
    pub next: Option<Cursor>,
    /// Whether there is more at once.
    pub has_more: bool,
    /// Changes; none in a page of what exists.
    pub records: Vec<ChangeRecord>,
    /// What exists; none in a page of changes.
    pub items: Vec<Item>,
    /// Where a scan of what exists continues; absent in a page of changes.
    pub token: Option<Bytes>,
}

impl MetadataChanges {
    fn check(&self) -> Result<(), DecodeError> {
        match self.phase {
            ChangesPhase::Changes if !self.items.is_empty() || self.token.is_some() => {
                Err(DecodeError::rule("changes page", "has neither items nor a token"))
            }
            ChangesPhase::Current if !self.records.is_empty() => {
                Err(DecodeError::rule("current page", "has no change records"))
            }
            _ => Ok(()),
        }
    }
}

impl Encode for MetadataChanges {
    fn encode(&self, out: &mut BytesMut) {
        self.status.encode(out);
        self.phase.encode(out);
        self.log_id.write(out);
        out.put_u64_le(self.oldest_op);
        out.put_u64_le(self.retained_since);
        out.put_u64_le(self.head_op);
        self.next.write(out);
        out.put_flag(self.has_more);
        field::counted::write(&self.records, out);
        field::counted::write(&self.items, out);
        let token = self.token.as_deref().unwrap_or_default();
        out.put_u16_le(token.len() as u16);
        out.put_slice(token);
    }
}

impl<'a> Decode<'a> for MetadataChanges {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let status = ChangesStatus::decode(reader)?;
        let phase = ChangesPhase::decode(reader)?;
        let log_id = Option::read(reader, "log id")?;
        let oldest_op = reader.u64("oldest op")?;
        let retained_since = reader.u64("retained since")?;
        let head_op = reader.u64("head op")?;
        let next: Option<Cursor> = Option::read(reader, "next cursor")?;
        if let Some(cursor) = &next {
            cursor.validate()?;
        }
        let has_more = reader.presence("has more")?;
        let records = read_records(reader)?;
        let items = field::counted::read(reader, "item")?;
        let token_length = usize::from(reader.u16("token length")?);
        if token_length > MAX_METADATA_TOKEN_BYTES {
            return Err(DecodeError::length("token", token_length, "at most 316 bytes"));
        }
        let token = reader.bytes("token", token_length)?;
        let token = (!token.is_empty()).then(|| Bytes::copy_from_slice(token));
        let page = Self {
            status,
            phase,
            log_id,
            oldest_op,
            retained_since,
            head_op,
            next,
            has_more,
            records,
            items,
            token,
        };
        page.check()?;
        Ok(page)
    }
}

fn read_records(reader: &mut Reader<'_>) -> Result<Vec<ChangeRecord>, DecodeError> {
    let count = reader.count("records count", RECORD_MIN_BYTES)?;
    (0..count).map(|_| ChangeRecord::read(reader, "record")).collect()
}
