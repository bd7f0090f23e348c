//! Cuts what a poll returns out of a stored batch without copying or hashing its payloads (wire 7.3).
//!
//! A slice keeps base offset, times and frames as they are, so that its first frame may have a delta above zero; only
//! length, count and batch checksum of the header change.

use std::ops::Range;

use crate::batch::{BatchError, BatchView, Frames};
use crate::limits::HEADER_SIZE;

/// A part of a stored batch: a header of its own and a range of the stored bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchSlice {
    /// The header to send.
    pub header: [u8; HEADER_SIZE],
    /// Where the frames to send stand, counted from the start of the stored batch.
    pub body: Range<usize>,
    /// Messages in the slice.
    pub message_count: u32,
    /// Offset of its first message.
    pub first_offset: u64,
    /// Offset of its last message.
    pub last_offset: u64,
}

impl BatchSlice {
    /// Bytes of header and frames.
    pub fn len(&self) -> usize {
        HEADER_SIZE + self.body.len()
    }

    /// Whether there is nothing in it; never so for one that [`slice()`] returned.
    pub fn is_empty(&self) -> bool {
        self.message_count == 0
    }
}

/// The messages of `batch` from `from_offset` on, at most `count` and `max_bytes` (header included). With `at_least_one`
/// the first message comes even if it alone is larger. `None` when nothing qualifies. `batch` must hold one stored batch
/// exactly; its frames are trusted to tile it.
pub fn slice(
    batch: &[u8],
    from_offset: u64,
    count: u32,
    max_bytes: usize,
    at_least_one: bool,
) -> Result<Option<BatchSlice>, BatchError> {
    let (view, rest) = BatchView::split_first_unwalked(batch)?;
    if !rest.is_empty() {
        return Err(BatchError::Trailing(rest.len()));
    }
    let (first, last) = (view.first_offset(), view.last_offset());
    if count == 0 || from_offset > last {
        return Ok(None);
    }
    if from_offset <= first && view.message_count() <= count && batch.len() <= max_bytes {
        let header = *view.header().as_array();
        let body = HEADER_SIZE..batch.len();
        return Ok(Some(BatchSlice {
            header,
            body,
            message_count: view.message_count(),
            first_offset: first,
            last_offset: last,
        }));
    }
    let base = view.header().base_offset.get();
    let mut position = HEADER_SIZE;
    let mut body = 0..0;
    let mut taken = 0_u32;
    let mut offsets = (0, 0);
    for frame in view.frames() {
        let end = position + frame.bytes().len();
        let offset = base.saturating_add(u64::from(frame.offset_delta()));
        if offset >= from_offset {
            let start = if taken == 0 { position } else { body.start };
            let fits = HEADER_SIZE + (end - start) <= max_bytes || (taken == 0 && at_least_one);
            if taken == count || !fits {
                break;
            }
            offsets = (if taken == 0 { offset } else { offsets.0 }, offset);
            body = start..end;
            taken += 1;
        }
        position = end;
    }
    if taken == 0 {
        return Ok(None);
    }
    let mut header = *view.header();
    header.batch_length = ((HEADER_SIZE + body.len()) as u64).into();
    header.message_count = taken.into();
    header.batch_checksum = header
        .computed_checksum(Frames::new(&batch[body.clone()]).map(|frame| frame.checksum()))
        .into();
    Ok(Some(BatchSlice {
        header: *header.as_array(),
        body,
        message_count: taken,
        first_offset: offsets.0,
        last_offset: offsets.1,
    }))
}
