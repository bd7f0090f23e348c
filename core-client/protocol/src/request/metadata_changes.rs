//! Asking for metadata changes (17, wire 12).

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{Decode, DecodeError, Encode, Problem, Reader};
use crate::limits::{MAX_METADATA_PAGE, MAX_METADATA_TOKEN_BYTES};
use crate::wire_struct::{Field, field, wire_struct};

wire_struct! {
    /// A position in the change log. Position 0 is its beginning and has neither checksum nor ordinal.
    pub struct Cursor {
        /// The log.
        log_id: u128,
        /// The metadata position.
        op: u64,
        /// Checksum of the entry at that position.
        checksum: u128,
        /// Which record of that entry.
        ordinal: u32,
    }
}

impl Eq for Cursor {}
impl Copy for Cursor {}

impl Cursor {
    /// All zero: what requests carry when they name no position.
    pub const ZERO: Self = Self {
        log_id: 0,
        op: 0,
        checksum: 0,
        ordinal: 0,
    };

    /// Checks that position 0 has neither checksum nor ordinal.
    pub fn validate(&self) -> Result<(), DecodeError> {
        if self.op == 0 && (self.checksum != 0 || self.ordinal != 0) {
            return Err(DecodeError::rule(
                "cursor",
                "position 0 has neither checksum nor ordinal",
            ));
        }
        Ok(())
    }
}

/// Where a page starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesStart {
    /// At the oldest change the log holds.
    Earliest,
    /// After the newest change.
    Latest,
    /// After this position.
    After(Cursor),
    /// With what exists now; the token continues a scan.
    Current(Option<Bytes>),
}

/// Asks for a page of changes, or of what exists now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetMetadataChanges {
    /// Where the page starts.
    pub start: ChangesStart,
    /// Only changes not before this time, in microseconds.
    pub since: Option<u64>,
    /// Only changes not after this time, in microseconds.
    pub until: Option<u64>,
    /// Most records: 1..=1000.
    pub limit: u32,
    /// Groups wanted; none means all.
    pub groups: Vec<u8>,
}

/// For each group 1..=8 the groups it belongs under, which a scan must include.
const PARENTS: [(u8, &[u8]); 8] = [
    (1, &[]),
    (2, &[1]),
    (3, &[1, 2]),
    (4, &[1, 2]),
    (5, &[1, 2, 4]),
    (6, &[]),
    (7, &[6]),
    (8, &[6]),
];

impl GetMetadataChanges {
    /// Checks the rules of wire 12.
    pub fn validate(&self) -> Result<(), DecodeError> {
        if self.limit == 0 || self.limit > MAX_METADATA_PAGE {
            return Err(DecodeError::value("limit", self.limit, "1..=1000"));
        }
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since > until
        {
            return Err(DecodeError::rule("since", "must not be after until"));
        }
        let bounded = self.since.is_some() || self.until.is_some();
        match &self.start {
            ChangesStart::Latest | ChangesStart::Current(_) if bounded => {
                return Err(DecodeError::rule(
                    "since and until",
                    "are allowed with earliest and after only",
                ));
            }
            ChangesStart::After(cursor) => cursor.validate()?,
            ChangesStart::Current(Some(token)) if token.is_empty() || token.len() > MAX_METADATA_TOKEN_BYTES => {
                return Err(DecodeError::length("page token", token.len(), "1..=316 bytes"));
            }
            _ => {}
        }
        self.check_groups()
    }

    fn check_groups(&self) -> Result<(), DecodeError> {
        for (index, group) in self.groups.iter().enumerate() {
            if self.groups[..index].contains(group) {
                return Err(DecodeError::new("groups", Problem::Duplicate(format!("group {group}"))));
            }
            let known = PARENTS.iter().find(|(known, _)| known == group);
            let Some((_, parents)) = known else {
                return Err(DecodeError::value("group", *group, "1..=8"));
            };
            let scan = matches!(self.start, ChangesStart::Current(_));
            if scan && !parents.iter().all(|parent| self.groups.contains(parent)) {
                return Err(DecodeError::rule(
                    "groups",
                    "a scan of what exists includes the parents of each group",
                ));
            }
        }
        Ok(())
    }
}

impl Encode for GetMetadataChanges {
    fn encode(&self, out: &mut BytesMut) {
        let (code, cursor, token) = match &self.start {
            ChangesStart::Earliest => (0, &Cursor::ZERO, None),
            ChangesStart::Latest => (1, &Cursor::ZERO, None),
            ChangesStart::After(cursor) => (2, cursor, None),
            ChangesStart::Current(token) => (3, &Cursor::ZERO, token.as_deref()),
        };
        out.put_u8(code);
        cursor.encode(out);
        self.since.write(out);
        self.until.write(out);
        out.put_u32_le(self.limit);
        field::short_counted::write(&self.groups, out);
        let token = token.unwrap_or_default();
        out.put_u16_le(token.len() as u16);
        out.put_slice(token);
    }
}

impl<'a> Decode<'a> for GetMetadataChanges {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let code = reader.u8("start")?;
        let cursor = Cursor::decode(reader)?;
        let since = Option::read(reader, "since")?;
        let until = Option::read(reader, "until")?;
        let limit = reader.u32("limit")?;
        let groups = field::short_counted::read(reader, "group")?;
        let token_length = usize::from(reader.u16("token length")?);
        let token = reader.bytes("token", token_length)?;
        if code != 2 && cursor != Cursor::ZERO {
            return Err(DecodeError::rule(
                "cursor",
                "must be zero unless the page starts after it",
            ));
        }
        if code != 3 && !token.is_empty() {
            return Err(DecodeError::rule("token", "is allowed in a scan of what exists only"));
        }
        let start = match code {
            0 => ChangesStart::Earliest,
            1 => ChangesStart::Latest,
            2 => ChangesStart::After(cursor),
            3 => ChangesStart::Current((!token.is_empty()).then(|| Bytes::copy_from_slice(token))),
            other => {
                return Err(DecodeError::value(
                    "start",
                    other,
                    "0 earliest, 1 latest, 2 after or 3 current",
                ));
            }
        };
        let request = Self {
            start,
            since,
            until,
            limit,
            groups,
        };
        request.validate()?;
        Ok(request)
    }
}

/// Where a scan of what exists continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageToken {
    /// Where the log stood when the scan began: changes after it complete the picture.
    pub anchor: Cursor,
    /// The metadata position a node must have applied to continue the scan.
    pub required_head: u64,
    /// Bit n-1 for each group n of the scan.
    pub groups_mask: u8,
    /// The group the scan stands in.
    pub group: u8,
    /// The last key of that group that was returned.
    pub last_key: Bytes,
}

impl PageToken {
    fn check(&self) -> Result<(), DecodeError> {
        self.anchor.validate()?;
        if self.required_head < self.anchor.op {
            return Err(DecodeError::rule(
                "page token",
                "its required head is not before its anchor",
            ));
        }
        let in_mask = (1..=8).contains(&self.group) && self.groups_mask & (1 << (self.group - 1)) != 0;
        if !in_mask {
            return Err(DecodeError::rule("page token", "its group is one of its groups"));
        }
        let length = self.last_key.len();
        let fits = match self.group {
            1 | 6 => length == 4,
            2 | 3 | 8 => length == 8,
            4 => length == 12,
            5 => length == 16,
            _ => (5..=4 + 255).contains(&length),
        };
        fits.then_some(())
            .ok_or_else(|| DecodeError::length("page token key", length, "the key length of its group"))
    }
}

impl Encode for PageToken {
    fn encode(&self, out: &mut BytesMut) {
        self.anchor.encode(out);
        out.put_u64_le(self.required_head);
        out.put_u8(self.groups_mask);
        out.put_u8(self.group);
        out.put_u16_le(self.last_key.len() as u16);
        out.put_slice(&self.last_key);
    }
}

impl<'a> Decode<'a> for PageToken {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let anchor = Cursor::decode(reader)?;
        let required_head = reader.u64("required head")?;
        let groups_mask = reader.u8("groups mask")?;
        let group = reader.u8("group")?;
        let length = usize::from(reader.u16("key length")?);
        let last_key = Bytes::copy_from_slice(reader.bytes("last key", length)?);
        let token = Self {
            anchor,
            required_head,
            groups_mask,
            group,
            last_key,
        };
        token.check()?;
        Ok(token)
    }
}
