//! The segments of a partition: where each batch lies.
//!
//! Positions are decided when a batch is proposed, before it is written, so that many writes can be in flight. What is
//! readable is decided by the replicated state, not here.

use crate::Settings;
use crate::aside::{Aside, aside_path};
use crate::index::Index;
use bytes::Bytes;
use iggy_journal::{BodyLocation, FileNumbers};
use iggy_protocol::batch::BatchHeader;
use iggy_storage::{FileId, Job, Step};

/// A segment and its index.
#[derive(Clone, Debug)]
pub struct Segment {
    /// First offset; names the file.
    pub base_offset: u64,
    /// Batches in it.
    pub index: Index,
}

/// All segments of a partition; the last one takes appends.
#[derive(Debug)]
pub struct Segments {
    directory: String,
    all: Vec<Segment>,
    active: Option<FileId>,
    segment_size: u64,
    /// Bytes to set aside for a new segment.
    reserve: Option<u64>,
    /// Whether a new segment's name must be durable before anything in it counts.
    durable_names: bool,
}

/// Where a batch goes, and the steps that put it there.
#[derive(Debug)]
pub struct Placement {
    /// Its place.
    pub location: BodyLocation,
    /// File it is written to.
    pub file: FileId,
    /// Steps, in order.
    pub steps: Job,
    /// The segment that was sealed because the batch did not fit.
    pub sealed: Option<Sealed>,
}

/// A segment that takes no more appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its first offset.
    pub base_offset: u64,
    /// Its file, still open.
    pub file: FileId,
}

/// Where the segments end, to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    segment: u64,
    size: u64,
    end_offset: u64,
    last_timestamp: u64,
}

/// Bytes of the log to read from disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Segment.
    pub base_offset: u64,
    /// First byte.
    pub position: u64,
    /// Bytes of the segment after `position`.
    pub available: u64,
}

pub(crate) fn log_path(directory: &str, base_offset: u64) -> String {
    format!("{directory}/{base_offset:020}.log")
}

pub(crate) fn index_path(directory: &str, base_offset: u64) -> String {
    format!("{directory}/{base_offset:020}.index")
}

impl Segments {
    /// The segments that recovery found, in the order of their offsets. None of them is open.
    pub(crate) fn new(directory: &str, segments: Vec<Segment>, settings: &Settings) -> Self {
        Self {
            directory: directory.to_owned(),
            all: segments,
            active: None,
            segment_size: settings.segment_size,
            reserve: settings.preallocate.then_some(settings.segment_size),
            durable_names: settings.is_persisted(),
        }
    }

    /// Bytes of all segments.
    pub fn size(&self) -> u64 {
        self.all.iter().map(|segment| segment.index.size).sum()
    }

    /// Segments, the active one included.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// First offset of the oldest segment.
    pub fn first_offset(&self) -> Option<u64> {
        self.all.first().map(|first| first.base_offset)
    }

    /// Sealed segments, oldest first.
    pub fn sealed(&self) -> &[Segment] {
        self.all.split_last().map_or(&[], |(_, sealed)| sealed)
    }

    /// First offset and length in bytes of the segment that takes appends.
    pub fn end(&self) -> Option<(u64, u64)> {
        self.all.last().map(|last| (last.base_offset, last.index.size))
    }

    /// File of the active segment.
    pub fn active_file(&self) -> Option<FileId> {
        self.active
    }

    /// Finds a place for a stamped batch after all placed before.
    pub fn place(
        &mut self,
        header: &BatchHeader,
        header_bytes: Bytes,
        frames: Bytes,
        numbers: &mut FileNumbers,
    ) -> Placement {
        let length = (header_bytes.len() + frames.len()) as u64;
        let offset = header.base_offset.get();
        // What a state from elsewhere leaves out starts a segment as well.
        let fits = |last: &Segment| {
            let follows = last.index.end_offset == offset;
            follows && (last.index.size == 0 || last.index.size + length <= self.segment_size)
        };
        let mut steps = Vec::new();
        let mut sealed = None;
        let file = match (self.active, self.all.last()) {
            (Some(file), Some(last)) if fits(last) => file,
            (active, last) => {
                sealed = active.zip(last).map(|(file, last)| Sealed {
                    base_offset: last.base_offset,
                    file,
                });
                self.start_segment(offset, &mut steps, numbers)
            }
        };
        let last = self.all.last_mut().expect("a segment was just started or is active");
        let location = BodyLocation {
            segment: last.base_offset,
            position: last.index.size,
            length: u32::try_from(length).expect("batches are bounded by the frame limit"),
        };
        last.index
            .push(offset, header.base_timestamp.get(), header.message_count.get(), length);
        steps.push(Step::Write {
            file,
            offset: location.position,
            pieces: vec![header_bytes, frames],
        });
        Placement {
            location,
            file,
            steps,
            sealed,
        }
    }

    /// Where the segments end now; `None` when there are none.
    pub fn mark(&self) -> Option<Mark> {
        self.all.last().map(|last| Mark {
            segment: last.base_offset,
            size: last.index.size,
            end_offset: last.index.end_offset,
            last_timestamp: last.index.last_timestamp,
        })
    }

    /// Takes back every batch placed after `mark`: the steps that cut the files, and the file that takes no more writes,
    /// if there is one. The journal must no longer name those batches when the steps run.
    pub fn cut(&mut self, mark: Option<Mark>, numbers: &mut FileNumbers) -> (Job, Option<FileId>) {
        let mut job: Job = Vec::new();
        if self.mark() == mark {
            return (job, None);
        }
        let kept = |segment: &Segment| mark.is_some_and(|mark| segment.base_offset <= mark.segment);
        let cut = self.all.partition_point(kept);
        let active = self.active.filter(|_| cut == self.all.len());
        for segment in self.all.drain(cut..) {
            job.push(Step::Remove(index_path(&self.directory, segment.base_offset)));
            job.push(Step::Remove(log_path(&self.directory, segment.base_offset)));
        }
        let left = self.active.take().filter(|_| active.is_none());
        self.active = active;
        if let (Some(mark), Some(last)) = (mark, self.all.last_mut()) {
            last.index.cut(mark.size, mark.end_offset, mark.last_timestamp);
            let file = active.unwrap_or_else(|| {
                let file = numbers.take();
                let path = log_path(&self.directory, mark.segment);
                // An index written when it was sealed must not be taken for one of what follows.
                job.push(Step::Remove(index_path(&self.directory, mark.segment)));
                job.push(Step::Open {
                    file,
                    path,
                    create: true,
                });
                file
            });
            job.push(Step::Truncate {
                file,
                length: mark.size,
            });
            self.active = Some(file);
        }
        (job, left)
    }

    /// Puts every segment aside: what each may still be good for, and the steps that give it its other name. The journal
    /// must no longer name their batches when the steps run.
    pub fn put_aside(&mut self) -> (Vec<Aside>, Job, Option<FileId>) {
        let mut job = Job::new();
        let mut aside = Vec::new();
        for segment in self.all.drain(..) {
            let base_offset = segment.base_offset;
            job.push(Step::Remove(index_path(&self.directory, base_offset)));
            job.push(Step::Rename {
                from: log_path(&self.directory, base_offset),
                to: aside_path(&self.directory, base_offset),
            });
            let length = segment.index.size;
            aside.push(Aside { base_offset, length });
        }
        (aside, job, self.active.take())
    }

    /// Directory of the partition.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Adds a batch that recovery found where the journal says, after all others.
    pub(crate) fn found(&mut self, location: BodyLocation, header: &BatchHeader) {
        let base = header.base_offset.get();
        if self.all.last().is_none_or(|last| last.base_offset != location.segment) {
            self.all.push(Segment {
                base_offset: location.segment,
                index: Index::new(location.segment),
            });
        }
        if let Some(last) = self.all.last_mut() {
            let length = u64::from(location.length);
            last.index
                .push(base, header.base_timestamp.get(), header.message_count.get(), length);
        }
    }

    /// Opens the last segment for appends; the steps go after those that repair it.
    pub(crate) fn open_last(&mut self, numbers: &mut FileNumbers) -> Job {
        let Some(last) = self.all.last() else { return Vec::new() };
        let file = numbers.take();
        self.active = Some(file);
        let path = log_path(&self.directory, last.base_offset);
        let open = Step::Open {
            file,
            path,
            create: true,
        };
        std::iter::once(open)
            .chain(self.reserve.map(|length| Step::Reserve { file, length }))
            .collect()
    }

    fn start_segment(&mut self, base_offset: u64, steps: &mut Job, numbers: &mut FileNumbers) -> FileId {
        let file = numbers.take();
        steps.push(Step::Open {
            file,
            path: log_path(&self.directory, base_offset),
            create: true,
        });
        steps.extend(self.reserve.map(|length| Step::Reserve { file, length }));
        if self.durable_names {
            steps.push(Step::SyncDirectory(self.directory.clone()));
        }
        self.all.push(Segment {
            base_offset,
            index: Index::new(base_offset),
        });
        self.active = Some(file);
        file
    }

    /// Steps that keep the index of a sealed segment beside it. They may be lost; they need no order.
    pub fn write_index(&self, sealed: Sealed, numbers: &mut FileNumbers) -> Job {
        let Ok(at) = self
            .all
            .binary_search_by_key(&sealed.base_offset, |segment| segment.base_offset)
        else {
            return Vec::new();
        };
        let file = numbers.take();
        let bytes = self.all[at].index.encode(sealed.base_offset);
        vec![
            Step::Open {
                file,
                path: index_path(&self.directory, sealed.base_offset),
                create: true,
            },
            Step::Truncate { file, length: 0 },
            Step::Write {
                file,
                offset: 0,
                pieces: vec![Bytes::from(bytes)],
            },
            Step::Close(file),
        ]
    }

    /// Forgets sealed segments that end at or before `before`, and the steps that remove their files.
    pub fn remove_before(&mut self, before: u64) -> Job {
        let removed = self
            .sealed()
            .partition_point(|segment| segment.index.end_offset <= before);
        let mut job = Vec::new();
        for segment in self.all.drain(..removed) {
            job.push(Step::Remove(index_path(&self.directory, segment.base_offset)));
            job.push(Step::Remove(log_path(&self.directory, segment.base_offset)));
        }
        job
    }

    /// Where to look for `offset`: its segment, from the nearest indexed batch on.
    pub fn span_of(&self, offset: u64) -> Option<Span> {
        let at = self.all.partition_point(|segment| segment.index.end_offset <= offset);
        self.all
            .get(at)
            .map(|segment| Span::from(segment, segment.index.position_of(offset)))
    }

    /// The same bytes of the log, with what was added to their segment since.
    pub fn span_now(&self, span: Span) -> Option<Span> {
        let at = self
            .all
            .binary_search_by_key(&span.base_offset, |segment| segment.base_offset)
            .ok()?;
        Some(Span::from(&self.all[at], span.position))
    }

    /// Bytes of the log from `offset` on, or up to one step of the index more.
    pub fn bytes_from(&self, offset: u64) -> u64 {
        let first = self.all.partition_point(|segment| segment.index.end_offset <= offset);
        let before = self
            .all
            .get(first)
            .map_or(0, |segment| segment.index.position_of(offset));
        let sizes = self.all[first..].iter().map(|segment| segment.index.size);
        sizes.sum::<u64>() - before
    }

    /// Where to look for the first batch at or after `timestamp`.
    pub fn span_at(&self, timestamp: u64) -> Option<Span> {
        let at = self
            .all
            .partition_point(|segment| segment.index.last_timestamp < timestamp);
        self.all
            .get(at)
            .map(|segment| Span::from(segment, segment.index.position_at(timestamp)))
    }

    /// The segment after the one that starts at `base_offset`, from its start.
    pub fn span_after(&self, base_offset: u64) -> Option<Span> {
        let at = self.all.partition_point(|segment| segment.base_offset <= base_offset);
        self.all.get(at).map(|segment| Span::from(segment, 0))
    }

    /// Broker time of the newest batch; 0 when there is none.
    pub fn last_timestamp(&self) -> u64 {
        self.all
            .iter()
            .rev()
            .map(|segment| segment.index.last_timestamp)
            .find(|at| *at > 0)
            .unwrap_or(0)
    }

    /// Steps that read `length` bytes of a span, through a file number of their own.
    pub fn read(&self, span: Span, length: u32, numbers: &mut FileNumbers) -> Job {
        let file = numbers.take();
        vec![
            Step::Open {
                file,
                path: log_path(&self.directory, span.base_offset),
                create: false,
            },
            Step::Read {
                file,
                offset: span.position,
                length,
            },
            Step::Close(file),
        ]
    }
}

impl Span {
    fn from(segment: &Segment, position: u64) -> Self {
        Self {
            base_offset: segment.base_offset,
            position,
            available: segment.index.size - position,
        }
    }
}
