//! Brings a partition back from its directory.
//!
//! The journal says which batches exist and where; segments hold their bytes. Whatever lies in a segment after the last
//! journaled batch was never acknowledged under its policy and is cut.

use crate::Settings;
use crate::index::Index;
use crate::operation::PartitionOperation;
use crate::segments::{Segment, Segments, index_path, log_path};
use crate::state::{LogPosition, PartitionState, SnapshotError};
use bytes::BytesMut;
use iggy_consensus::{PrepareHeader, VsrState};
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
    /// State after every journaled prepare.
    pub state: PartitionState,
    /// Segments.
    pub segments: Segments,
    /// Steps that repair and open the segments, after those of the journal.
    pub open: Job,
    /// Steps that remove segments which the state has dropped. The journal still names batches in them: they may only go
    /// when a checkpoint has replaced it.
    pub dropped: Job,
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

/// Reads the directory of a partition.
pub fn recover(
    image: &dyn Image,
    directory: &str,
    fresh: VsrState,
    policy: Policy,
    settings: &Settings,
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
    let dropped_for_good = state.log_start;
    let mut journaled: BTreeMap<u64, Range<u64>> = BTreeMap::new();
    for record in log.records.drain(..) {
        replay(image, directory, &record, &mut state, &mut end)?;
        if let iggy_journal::Body::InSegment(location) = &record.body {
            let end = location.position + u64::from(location.length);
            journaled.entry(location.segment).or_insert(location.position..end).end = end;
        }
    }
    let (found, mut open) = find_segments(image, directory, end)?;
    check_complete(directory, &found, dropped_for_good)?;
    let (mut segments, steps) = Segments::new(directory, found, settings, numbers);
    open.extend(steps);
    if let (Some(file), Some(end)) = (segments.active_file(), end) {
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
        segments,
        open,
        dropped,
    })
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
fn find_segments(
    image: &dyn Image,
    directory: &str,
    end: Option<LogPosition>,
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
            _ => {
                job.push(Step::Remove(log_path(directory, base_offset)));
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
