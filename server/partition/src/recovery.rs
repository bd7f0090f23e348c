//! Brings a partition back from its directory.
//!
//! The journal says which batches exist and where; segments hold their bytes. Whatever lies in a segment after the last
//! journaled batch was never acknowledged under its policy and is cut.

use crate::Settings;
use crate::aside::{self, Aside, aside_path};
use crate::index::Index;
use crate::operation::PartitionOperation;
use crate::segments::{Mark, Segment, Segments, index_path, log_path};
use crate::state::{LogPosition, PartitionState, SnapshotError};
use bytes::BytesMut;
use iggy_consensus::{Ending, LogEnd, Prepare, PrepareHeader, VsrState};
use iggy_journal::planted::{self, Bug};
use iggy_journal::{BodyLocation, FileNumbers, Policy, Record, Recovered, store_again};
use iggy_protocol::batch::{BatchError, BatchHeader, BatchView};
use iggy_protocol::limits::{HEADER_SIZE, MAX_RECORD_BYTES};
use iggy_storage::image::Image;
use iggy_storage::{Job, Step};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_128;

/// Largest batch that is read back: what a frame limit of 1 GiB lets in.
const BATCH_LEN_MAX: u32 = 1 << 30;
const _: () = assert!(MAX_RECORD_BYTES < BATCH_LEN_MAX as usize);

/// A partition as its directory describes it.
#[derive(Debug)]
pub struct RecoveredPartition {
    /// The journal's part; its `records` are applied and gone.
    pub log: Recovered,
    /// State after every prepare that is known to be committed; in a group of one that is all of them.
    pub state: PartitionState,
    /// Position the state is applied up to.
    pub applied: LogEnd,
    /// Where the log ends at that position.
    pub applied_end: Option<LogPosition>,
    /// The prepares after it.
    pub uncommitted: Vec<Uncommitted>,
    /// Position before the first prepare that is given to the replica, and the prepares from there to the end.
    pub base: LogEnd,
    /// See `base`.
    pub entries: Vec<Prepare>,
    /// Segments.
    pub segments: Segments,
    /// Segments that were put aside, or are now.
    pub aside: Vec<Aside>,
    /// Steps that repair and open the segments, after those of the journal.
    pub open: Job,
    /// Steps that remove segments which the state has dropped. The journal still names batches in them: they may only go
    /// when a checkpoint has replaced it.
    pub dropped: Job,
}

/// A prepare that the journal holds and of which nobody knows here whether it is committed.
#[derive(Clone, Debug)]
pub struct Uncommitted {
    /// The prepare.
    pub prepare: Prepare,
    /// Where the segments end before it.
    pub before: Option<Mark>,
    /// Where they end with it.
    pub end: Option<LogPosition>,
}

/// Why a partition cannot be used. Its directory is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The journal's part.
    #[error(transparent)]
    Journal(#[from] iggy_journal::RecoverError),
    /// The checkpoint.
    #[error("{directory}: {source}")]
    Snapshot {
        /// Directory of the partition.
        directory: String,
        /// Cause.
        source: SnapshotError,
    },
    /// An operation in the journal.
    #[error("{directory}: op {op} of the journal is malformed: {source}")]
    Operation {
        /// Directory of the partition.
        directory: String,
        /// Its position.
        op: u64,
        /// Cause.
        source: rmp_serde::decode::Error,
    },
    /// Reading failed.
    #[error("reading {path}: {source}")]
    Io {
        /// File or directory.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// A segment does not hold the batches it must.
    #[error("{path} is damaged at byte {position}: {source}")]
    Damage {
        /// File.
        path: String,
        /// Where the damage starts.
        position: u64,
        /// What is wrong.
        source: BatchError,
    },
    /// A segment ends before the journal says.
    #[error("{path} has {found} bytes, but batches are journaled up to byte {expected}")]
    Short {
        /// File.
        path: String,
        /// Bytes it has.
        found: u64,
        /// Bytes it must have.
        expected: u64,
    },
    /// A segment ends before the next one begins: it was cut, or one between them is gone.
    #[error(
        "{path} ends before offset {found}, but the next segment begins at offset {expected}: what lies between is missing"
    )]
    Gap {
        /// Last file before the gap.
        path: String,
        /// First offset that is missing.
        found: u64,
        /// First offset after the gap.
        expected: u64,
    },
    /// The first segment is gone.
    #[error(
        "{path} is missing: messages are kept from offset {expected} on, but the first segment begins at offset {found}"
    )]
    Missing {
        /// Where the first segment would be, had no offset been dropped inside it.
        path: String,
        /// First offset there is.
        found: u64,
        /// First offset there must be.
        expected: u64,
    },
}

/// Reads the directory of a partition. A member of a group whose directory is damaged starts with an empty log, and knows
/// that it may have held more; the others have it. `retain_bytes` bounds the bodies of committed prepares that are read.
pub fn recover(
    image: &dyn Image,
    directory: &str,
    fresh: VsrState,
    policy: Policy,
    settings: &Settings,
    retain_bytes: u64,
    numbers: &mut FileNumbers,
) -> Result<RecoveredPartition, RecoverError> {
    let found = recover_whole(image, directory, fresh, policy, settings, retain_bytes, numbers);
    match found {
        Err(error) if fresh.replica_count > 1 && !is_about_identity(&error) => {
            let policy = Policy {
                discard: true,
                ..policy
            };
            recover_whole(image, directory, fresh, policy, settings, retain_bytes, numbers)
        }
        found => found,
    }
}

/// Whether it is unknown whose directory it is: then nobody may write there.
fn is_about_identity(error: &RecoverError) -> bool {
    use iggy_journal::RecoverError::{Foreign, Superblock};
    matches!(error, RecoverError::Journal(Foreign { .. } | Superblock { .. }))
}

fn recover_whole(
    image: &dyn Image,
    directory: &str,
    fresh: VsrState,
    policy: Policy,
    settings: &Settings,
    retain_bytes: u64,
    numbers: &mut FileNumbers,
) -> Result<RecoveredPartition, RecoverError> {
    let mut verify = |header: &PrepareHeader, location: &BodyLocation| is_intact(image, directory, header, location);
    let mut log = iggy_journal::recover(image, directory, fresh, policy, numbers, &mut verify)?;
    let (mut state, mut end) = match &log.checkpoint {
        Some(bytes) => PartitionState::restore(bytes).map_err(|source| RecoverError::Snapshot {
            directory: directory.to_owned(),
            source,
        })?,
        None => (PartitionState::default(), None),
    };
    let checkpoint = log.journal.superblock().checkpoint;
    let mut applied = LogEnd {
        op: checkpoint.op,
        checksum: checkpoint.prepare_checksum,
        timestamp: checkpoint.timestamp,
    };
    let dropped_for_good = state.log_start;
    let records = std::mem::take(&mut log.records);
    let committed = if fresh.replica_count == 1 {
        log.end.op
    } else {
        let known = records.iter().map(|record| record.header.commit.get()).max();
        known.unwrap_or(0).clamp(applied.op, log.end.op)
    };
    let mut journaled: BTreeMap<u64, Range<u64>> = BTreeMap::new();
    let mut last_end = end;
    for record in &records {
        if record.header.op.get() <= committed {
            replay(image, directory, record, &mut state, &mut end)?;
            applied = record.header.end();
        }
        if let iggy_journal::Body::InSegment(location) = &record.body {
            let end = location.position + u64::from(location.length);
            journaled.entry(location.segment).or_insert(location.position..end).end = end;
            last_end = Some(LogPosition {
                segment: location.segment,
                size: end,
            });
        }
    }
    // What does not count here may be what the others have, as long as the log is not whole.
    let keeps_aside = log.journal.superblock().state.ending >= Ending::Damaged;
    let mut aside = find_aside(image, directory)?;
    let removed: Vec<Step> = aside
        .keys()
        .map(|base_offset| Step::Remove(aside_path(directory, *base_offset)))
        .collect();
    let (mut found, mut open) = find_segments(image, directory, end, last_end, &mut aside, keeps_aside)?;
    if !keeps_aside {
        aside.clear();
        open.extend(removed);
    }
    // A state from elsewhere may begin after what was here before it.
    let needed = found.partition_point(|segment| segment.base_offset <= dropped_for_good);
    for segment in found.drain(..needed.saturating_sub(1)) {
        open.push(Step::Remove(index_path(directory, segment.base_offset)));
        open.push(Step::Remove(log_path(directory, segment.base_offset)));
    }
    check_complete(directory, &found, dropped_for_good)?;
    let mut segments = Segments::new(directory, found, settings);
    let mut uncommitted = Vec::new();
    let retain_bytes = if fresh.replica_count == 1 { 0 } else { retain_bytes };
    let (base, entries) = load(image, directory, &records, applied, retain_bytes, &checkpoint)?;
    for record in records.iter().filter(|record| record.header.op.get() > committed) {
        let before = segments.mark();
        let prepare = entries
            .iter()
            .find(|entry| entry.header.checksum == record.header.checksum)
            .cloned();
        if let (iggy_journal::Body::InSegment(location), Some(iggy_consensus::Body::Batch { header, .. })) =
            (&record.body, prepare.as_ref().map(|prepare| &prepare.body))
            && let Ok(header) = BatchHeader::view(header)
        {
            segments.found(*location, header);
        }
        let end = segments.end().map(|(segment, size)| LogPosition { segment, size });
        uncommitted.extend(prepare.map(|prepare| Uncommitted { prepare, before, end }));
    }
    open.extend(segments.open_last(numbers));
    if let (Some(file), Some(end)) = (segments.active_file(), last_end) {
        open.extend([Step::Truncate { file, length: end.size }, Step::Sync(vec![file])]);
    }
    // Since the checkpoint nobody may have synced them, sealed or not, and from now on they count as stored.
    if planted::has(Bug::TrustSealedSegments) {
        journaled.clear();
    }
    for (segment, range) in journaled {
        let file = numbers.take();
        open.push(Step::Open {
            file,
            path: log_path(directory, segment),
            create: false,
        });
        open.extend(store_again(file, range.start, range.end - range.start));
        open.push(Step::Close(file));
    }
    // A crash may have come between the checkpoint and the removal of what it dropped.
    open.extend(segments.remove_before(dropped_for_good));
    open.push(Step::SyncDirectory(directory.to_owned()));
    let dropped = segments.remove_before(state.log_start);
    Ok(RecoveredPartition {
        log,
        state,
        applied,
        applied_end: end,
        uncommitted,
        base,
        entries,
        segments,
        aside: aside
            .into_iter()
            .map(|(base_offset, length)| Aside { base_offset, length })
            .collect(),
        open,
        dropped,
    })
}

/// The newest prepares with their bodies: all after `applied`, and before it as many as fit `retain_bytes`. A group of
/// one has nobody to give them to.
fn load(
    image: &dyn Image,
    directory: &str,
    records: &[Record],
    applied: LogEnd,
    retain_bytes: u64,
    checkpoint: &iggy_journal::Checkpoint,
) -> Result<(LogEnd, Vec<Prepare>), RecoverError> {
    let mut bytes = 0;
    let mut first = records.len();
    for (index, record) in records.iter().enumerate().rev() {
        bytes += u64::from(record.header.body_len.get()) + 256;
        if record.header.op.get() <= applied.op && bytes > retain_bytes {
            break;
        }
        first = index;
    }
    let base = match first.checked_sub(1) {
        Some(before) => records[before].header.end(),
        None => LogEnd {
            op: checkpoint.op,
            checksum: checkpoint.prepare_checksum,
            timestamp: checkpoint.timestamp,
        },
    };
    let mut entries = Vec::with_capacity(records.len() - first);
    for record in &records[first..] {
        let body = match &record.body {
            iggy_journal::Body::Inline(bytes) => iggy_consensus::Body::Inline(bytes.clone()),
            iggy_journal::Body::InSegment(location) => {
                let path = log_path(directory, location.segment);
                let mut bytes = BytesMut::zeroed(location.length as usize);
                let read = image.read(&path, location.position, &mut bytes);
                read.map_err(|source| RecoverError::Io { path, source })?;
                let mut frames = bytes.freeze();
                let header = frames.split_to(HEADER_SIZE);
                iggy_consensus::Body::Batch { header, frames }
            }
        };
        entries.push(Prepare {
            header: record.header.clone(),
            body,
        });
    }
    Ok((base, entries))
}

fn read_batch_header(image: &dyn Image, path: &str, position: u64) -> io::Result<Option<BatchHeader>> {
    let mut bytes = [0; HEADER_SIZE];
    let read = image.read(path, position, &mut bytes)?;
    Ok((read == HEADER_SIZE)
        .then(|| BatchHeader::view(&bytes).copied().ok())
        .flatten())
}

/// Whether the batch of a prepare lies where the journal says, byte for byte.
fn is_intact(image: &dyn Image, directory: &str, prepare: &PrepareHeader, location: &BodyLocation) -> io::Result<bool> {
    let path = log_path(directory, location.segment);
    let reaches = |length: u64| location.position + u64::from(location.length) <= length;
    if location.length > BATCH_LEN_MAX || !image.length(&path)?.is_some_and(reaches) {
        return Ok(false);
    }
    let mut bytes = BytesMut::zeroed(location.length as usize);
    if image.read(&path, location.position, &mut bytes)? != bytes.len() || bytes.len() < HEADER_SIZE {
        return Ok(false);
    }
    let header_fits = xxh3_128(&bytes[..HEADER_SIZE]) == prepare.body_checksum.get();
    Ok(header_fits && BatchView::parse(&bytes).and_then(|batch| batch.verify()).is_ok())
}

fn replay(
    image: &dyn Image,
    directory: &str,
    record: &Record,
    state: &mut PartitionState,
    end: &mut Option<LogPosition>,
) -> Result<(), RecoverError> {
    match &record.body {
        iggy_journal::Body::InSegment(location) => {
            let path = log_path(directory, location.segment);
            let header = read_batch_header(image, &path, location.position);
            let header = header.map_err(|source| RecoverError::Io {
                path: path.clone(),
                source,
            })?;
            let size = location.position + u64::from(location.length);
            let header = header.ok_or(RecoverError::Short {
                path,
                found: location.position,
                expected: size,
            })?;
            state.apply_batch(&record.header, &header);
            *end = Some(LogPosition {
                segment: location.segment,
                size,
            });
        }
        iggy_journal::Body::Inline(bytes) => {
            let op = record.header.op.get();
            let operation = PartitionOperation::decode(bytes).map_err(|source| RecoverError::Operation {
                directory: directory.to_owned(),
                op,
                source,
            })?;
            state.apply(&record.header, operation);
        }
    }
    Ok(())
}

/// The segments up to `end`, with their indexes, and the steps that remove what lies beyond.
///
/// Segments up to `last_end` are left alone: prepares that are not committed have batches there. With `keeps_aside`
/// what lies beyond is put aside, unless more of it is there already.
fn find_segments(
    image: &dyn Image,
    directory: &str,
    end: Option<LogPosition>,
    last_end: Option<LogPosition>,
    aside: &mut BTreeMap<u64, u64>,
    keeps_aside: bool,
) -> Result<(Vec<Segment>, Job), RecoverError> {
    let entries = image.list(directory);
    let entries = entries.map_err(|source| RecoverError::Io {
        path: directory.to_owned(),
        source,
    })?;
    let mut segments = Vec::new();
    let mut job = Vec::new();
    for entry in entries {
        let base = entry
            .name
            .strip_suffix(".log")
            .and_then(|name| name.parse::<u64>().ok());
        let Some(base_offset) = base else { continue };
        let kept = match end {
            Some(end) if base_offset < end.segment => sealed(image, directory, base_offset, entry.length)?,
            Some(end) if base_offset == end.segment => {
                if entry.length < end.size {
                    let path = log_path(directory, base_offset);
                    return Err(RecoverError::Short {
                        path,
                        found: entry.length,
                        expected: end.size,
                    });
                }
                walk(image, directory, base_offset, end.size)?
            }
            _ if last_end.is_some_and(|last| base_offset <= last.segment) => {
                job.extend(stale_index(directory, base_offset));
                continue;
            }
            _ => {
                let path = log_path(directory, base_offset);
                let is_longer = aside.get(&base_offset).is_none_or(|length| *length < entry.length);
                if keeps_aside && is_longer {
                    aside.insert(base_offset, entry.length);
                    let to = aside_path(directory, base_offset);
                    job.push(Step::Rename { from: path, to });
                } else {
                    job.push(Step::Remove(path));
                }
                job.extend(stale_index(directory, base_offset));
                continue;
            }
        };
        if end.is_some_and(|end| base_offset == end.segment) {
            // It may have been longer and sealed once: an index of that time must not be taken for one of what follows.
            job.extend(stale_index(directory, base_offset));
        }
        segments.push(Segment {
            base_offset,
            index: kept,
        });
    }
    if let Some(end) = end
        && segments.last().is_none_or(|last| last.base_offset != end.segment)
    {
        let path = log_path(directory, end.segment);
        return Err(RecoverError::Short {
            path,
            found: 0,
            expected: end.size,
        });
    }
    Ok((segments, job))
}

/// The segments that were put aside, with their lengths, by their first offsets.
fn find_aside(image: &dyn Image, directory: &str) -> Result<BTreeMap<u64, u64>, RecoverError> {
    let entries = image.list(directory).map_err(|source| RecoverError::Io {
        path: directory.to_owned(),
        source,
    })?;
    let named = entries
        .iter()
        .filter_map(|entry| Some((aside::named(&entry.name)?, entry.length)));
    Ok(named.collect())
}

/// Damage is named where it is, instead of at the reader that meets it.
fn check_complete(directory: &str, segments: &[Segment], log_start: u64) -> Result<(), RecoverError> {
    if let Some(first) = segments.first().filter(|first| first.base_offset > log_start) {
        return Err(RecoverError::Missing {
            path: log_path(directory, log_start),
            found: first.base_offset,
            expected: log_start,
        });
    }
    for pair in segments.windows(2) {
        let (found, expected) = (pair[0].index.end_offset, pair[1].base_offset);
        if found != expected {
            return Err(RecoverError::Gap {
                path: log_path(directory, pair[0].base_offset),
                found,
                expected,
            });
        }
    }
    Ok(())
}

fn stale_index(directory: &str, base_offset: u64) -> Option<Step> {
    (!planted::has(Bug::TrustIndex)).then(|| Step::Remove(index_path(directory, base_offset)))
}

fn sealed(image: &dyn Image, directory: &str, base_offset: u64, size: u64) -> Result<Index, RecoverError> {
    let path = index_path(directory, base_offset);
    // Whatever is wrong with an index, the segment itself knows better.
    let kept = image.read_all(&path, 1 << 30).ok().flatten();
    let trusted = |bytes: &[u8]| Index::decode_any(bytes).filter(|_| planted::has(Bug::TrustIndex));
    match kept.and_then(|bytes| trusted(&bytes).or_else(|| Index::decode(&bytes, base_offset, size))) {
        Some(index) => Ok(index),
        None => walk(image, directory, base_offset, size),
    }
}

/// Builds the index of a segment from the batch headers in it.
fn walk(image: &dyn Image, directory: &str, base_offset: u64, size: u64) -> Result<Index, RecoverError> {
    let path = log_path(directory, base_offset);
    let mut index = Index::new(base_offset);
    while index.size < size {
        let position = index.size;
        let damage = |source| RecoverError::Damage {
            path: path.clone(),
            position,
            source,
        };
        let header = read_batch_header(image, &path, position);
        let header = header.map_err(|source| RecoverError::Io {
            path: path.clone(),
            source,
        })?;
        let left = size - position;
        let short = BatchError::Short {
            needed: HEADER_SIZE as u64,
            available: left as usize,
        };
        let header = header.ok_or(short).map_err(damage)?;
        header.validate().map_err(damage)?;
        let length = header.batch_length.get();
        if length > left {
            return Err(damage(BatchError::Short {
                needed: length,
                available: left as usize,
            }));
        }
        if header.base_offset.get() != index.end_offset {
            return Err(damage(BatchError::OffsetDelta));
        }
        index.push(
            index.end_offset,
            header.base_timestamp.get(),
            header.message_count.get(),
            length,
        );
    }
    Ok(index)
}
