//! Reads: from memory at once, from disk by one or a few bounded reads.

use super::parked::{Until, Verdict};
use super::{Notice, PartitionGroup};
use crate::request::{Answer, Origin, Poll, Reply};
use crate::tally::{Counted, Watching};
use bytes::{Bytes, BytesMut};
use iggy_consensus::Now;
use iggy_journal::planted::{self, Bug};
use iggy_partition::index::GRANULARITY;
use iggy_partition::operation::ConsumerKey;
use iggy_partition::read::{Gathered, Limits, RECORD_MIN};
use iggy_partition::segments::Span;
use iggy_protocol::codec::Encode;
use iggy_protocol::context::PartitionContext;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::limits::{HEADER_SIZE, POLL_HEAD_BYTES};
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_protocol::reply::message::PollHead;
use iggy_protocol::reply::offset::ConsumerOffset;
use iggy_storage::{Storage, StorageError};
use std::cmp::Ordering;

/// Where a read starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At this offset.
    Offset(u64),
    /// At the first batch of this broker time or later.
    Timestamp(u64),
}

/// A poll bound to an owner.
#[derive(Debug)]
pub(super) struct Served {
    pub poll: Poll,
    pub generation: u64,
    /// Microsecond of the monotonic clock at which it is answered with what there is.
    pub deadline: u64,
}

/// A poll whose bytes are being read.
#[derive(Debug)]
pub(super) struct DiskRead {
    origin: Origin,
    served: Served,
    gathered: Gathered,
    from_timestamp: Option<u64>,
    span: Span,
    /// Bytes of the read that is wanted or running.
    length: u32,
    /// Bytes of the reads before it.
    spent: u64,
}

impl PartitionGroup {
    pub(super) fn poll(&mut self, now: Now, origin: Origin, poll: Poll, storage: &mut dyn Storage) {
        if matches!(poll.consumer, ConsumerKey::External(_)) {
            return self.reply(Reply::refused(&origin, ErrorCode::FeatureUnavailable));
        }
        let captured = origin.header.owner_generation.get();
        let generation = match self.state.bind_owner(&poll.consumer, origin.member(), captured) {
            Ok(generation) => generation,
            Err(code) => return self.reply(Reply::refused(&origin, code)),
        };
        let start = self.start_of(&poll);
        let verdict = if poll.wait > 0 {
            self.judge(&poll, start)
        } else {
            Verdict::Serve(start)
        };
        let deadline = now.monotonic.saturating_add(poll.wait);
        let served = Served {
            poll,
            generation,
            deadline,
        };
        match verdict {
            Verdict::Serve(start) => self.serve(now, origin, served, start, storage),
            Verdict::Wait(start, until) => self.park(origin, served, start, until),
        }
    }

    /// Whether a read that may wait has enough. Where only the disk can tell, it is read.
    pub(super) fn judge(&self, poll: &Poll, start: Start) -> Verdict {
        let end = self.state.next_offset;
        let offset = match start {
            Start::Offset(offset) => offset.max(self.state.log_start),
            Start::Timestamp(timestamp) => match self.tail.offset_at(timestamp) {
                Some(offset) if offset < end => offset.max(self.state.log_start),
                None if self.last_timestamp() >= timestamp => return Verdict::Serve(start),
                _ => {
                    let timestamp = Some(timestamp);
                    return Verdict::Wait(
                        start,
                        Until {
                            timestamp,
                            ..Until::default()
                        },
                    );
                }
            },
        };
        let start = Start::Offset(offset);
        let Some(readable) = end.checked_sub(offset) else {
            // What fills the reply can be told only once the log has reached its start.
            let first = Some(offset.saturating_add(1));
            return Verdict::Wait(
                start,
                Until {
                    offset: first,
                    ..Until::default()
                },
            );
        };
        if readable >= u64::from(poll.min_count) {
            return Verdict::Serve(start);
        }
        let full = self.bytes_of_a_full_reply(poll);
        let bytes = match self.tail.bytes_from(offset) {
            _ if readable == 0 => 0,
            Some(bytes) => bytes,
            None => self.segments.bytes_from(offset),
        };
        if bytes >= full {
            return Verdict::Serve(start);
        }
        Verdict::Wait(start, self.until(poll, offset, bytes))
    }

    /// What ends the wait of a poll that starts at `offset` and finds `bytes` of records there.
    fn until(&self, poll: &Poll, offset: u64, bytes: u64) -> Until {
        let full = self.bytes_of_a_full_reply(poll);
        Until {
            offset: Some(offset.saturating_add(poll.min_count.into())),
            // Where one message is enough, bytes say nothing more.
            bytes: (poll.min_count > 1).then(|| self.tail.pushed().saturating_add(full.saturating_sub(bytes).max(1))),
            timestamp: None,
        }
    }

    /// Bytes of records after which no further message fits.
    fn bytes_of_a_full_reply(&self, poll: &Poll) -> u64 {
        let max_bytes = u64::from(poll.max_bytes.min(self.config.read_bytes_max));
        max_bytes.saturating_sub((POLL_HEAD_BYTES + RECORD_MIN) as u64) + 1
    }

    /// Broker time of the newest batch; where none is in memory, of one that may still be in flight.
    fn last_timestamp(&self) -> u64 {
        self.tail
            .last_timestamp()
            .unwrap_or_else(|| self.segments.last_timestamp())
    }

    /// What a partition has for a fetch from `start` on. `bytes` is what it returned the last time.
    pub(super) fn count(
        &self,
        start: u64,
        generation: u64,
        bytes: Option<(u64, u64)>,
        watching: &Watching,
    ) -> (Counted, Option<(u64, u64)>) {
        let (end, pushed) = (self.state.next_offset, self.tail.pushed());
        let from = start.max(self.state.log_start);
        let bytes = match bytes {
            Some(bytes) => Some(bytes),
            None if start > end => None,
            None if start == end => Some((0, pushed)),
            None => {
                let known = self.tail.bytes_from(from);
                Some((known.unwrap_or_else(|| self.segments.bytes_from(from)), pushed))
            }
        };
        let messages = end.saturating_sub(from);
        let counted = Counted {
            start: from,
            current_offset: self.state.current_offset(),
            messages,
            bytes: bytes
                .filter(|_| messages > 0)
                .map_or(0, |(bytes, then)| bytes + pushed - then),
            context: PartitionContext {
                incarnation: self.history.incarnation,
                owner_generation: generation,
                metadata_op: watching.metadata_op,
            },
        };
        (counted, bytes)
    }

    pub(super) fn get_offset(&mut self, origin: &Origin, consumer: &ConsumerKey) {
        if let Err(code) = self
            .state
            .bind_owner(consumer, origin.member(), origin.header.owner_generation.get())
        {
            return self.reply(Reply::refused(origin, code));
        }
        let body = self.state.offsets.get(consumer).map(|stored| {
            let mut body = BytesMut::new();
            ConsumerOffset {
                partition_id: self.key.partition_id,
                current_offset: self.state.current_offset(),
                stored_offset: *stored,
            }
            .encode(&mut body);
            body.freeze()
        });
        self.reply(Reply::read(origin, body.into_iter().collect()));
    }

    fn start_of(&self, poll: &Poll) -> Start {
        self.start_at(poll.strategy, &poll.consumer, poll.count)
    }

    pub(super) fn start_at(&self, strategy: PollingStrategy, consumer: &ConsumerKey, count: u32) -> Start {
        let state = &self.state;
        let offset = match strategy {
            PollingStrategy::Timestamp(timestamp) => return Start::Timestamp(timestamp),
            PollingStrategy::Offset(offset) => offset,
            PollingStrategy::First => state.log_start,
            PollingStrategy::Last => state.next_offset.saturating_sub(u64::from(count)),
            PollingStrategy::Next => state.offsets.get(consumer).map_or(0, |stored| stored.saturating_add(1)),
        };
        Start::Offset(offset.max(state.log_start))
    }

    pub(super) fn serve(&mut self, now: Now, origin: Origin, served: Served, start: Start, storage: &mut dyn Storage) {
        let max_bytes = served.poll.max_bytes.min(self.config.read_bytes_max) as usize;
        let limits = Limits {
            count: served.poll.count,
            max_bytes: max_bytes.saturating_sub(POLL_HEAD_BYTES),
        };
        let (from, from_timestamp) = match start {
            // What was removed since the poll came is gone; reading goes on after it.
            Start::Offset(offset) => (offset.max(self.state.log_start), None),
            Start::Timestamp(timestamp) => match self.tail.offset_at(timestamp) {
                Some(offset) => (offset.max(self.state.log_start), None),
                None => (self.state.log_start, Some(timestamp)),
            },
        };
        let mut gathered = Gathered::new(from, limits, served.poll.answer == Answer::Messages);
        if from_timestamp.is_none() && self.gather_from_memory(&mut gathered) {
            return self.finish(now, origin, served, gathered, from_timestamp, storage);
        }
        let span = match from_timestamp {
            Some(timestamp) => self.segments.span_at(timestamp),
            None => self.segments.span_of(from),
        };
        let span = span.and_then(|span| self.written(span));
        match span.filter(|_| gathered.next_offset() < self.state.next_offset) {
            Some(span) => {
                let read = DiskRead {
                    origin,
                    served,
                    gathered,
                    from_timestamp,
                    span,
                    length: 0,
                    spent: 0,
                };
                self.want_read(read, 0);
            }
            None => self.finish(now, origin, served, gathered, from_timestamp, storage),
        }
    }

    /// The part of a span whose batches are applied. What comes after was placed and may not be written yet.
    fn written(&self, span: Span) -> Option<Span> {
        let end = self.applied_end?;
        let available = match span.base_offset.cmp(&end.segment) {
            _ if planted::has(Bug::ReadUnwritten) => span.available,
            Ordering::Less => span.available,
            Ordering::Equal => span.available.min(end.size.saturating_sub(span.position)),
            Ordering::Greater => 0,
        };
        (available > 0).then_some(Span { available, ..span })
    }

    /// Gathers from the tail; false when it does not reach back far enough.
    fn gather_from_memory(&mut self, gathered: &mut Gathered) -> bool {
        let end = self.state.next_offset;
        self.tail_used = true;
        let Some(batches) = self.tail.from(gathered.next_offset()) else {
            return false;
        };
        for batch in batches {
            if gathered.is_full() {
                break;
            }
            if let Err(error) = gathered.take_stored(batch, end) {
                self.notices.push(Notice::Damaged(error.to_string()));
                break;
            }
        }
        true
    }

    /// Wants the next bytes of the span: at least `needed`, at most what the reply can use.
    fn want_read(&mut self, mut read: DiskRead, needed: u64) {
        let useful = read.gathered.bytes_left() as u64 + GRANULARITY + HEADER_SIZE as u64;
        let length = useful
            .min(u64::from(self.config.read_bytes_max))
            .max(needed)
            .min(read.span.available);
        read.length = u32::try_from(length).unwrap_or(u32::MAX);
        self.wanted_reads.push_back(read);
        self.notices.push(Notice::ReadWanted);
    }

    /// Bytes of the read that [`start_read`](Self::start_read) starts next.
    pub fn next_read(&self) -> u64 {
        self.wanted_reads.front().map_or(0, |read| u64::from(read.length))
    }

    /// Starts the read that has waited longest. [`Notice::ReadEnded`] gives its bytes back.
    pub fn start_read(&mut self, storage: &mut dyn Storage) {
        let Some(read) = self.wanted_reads.pop_front() else {
            return;
        };
        let number = self.number();
        let job = self.segments.read(read.span, read.length, &mut self.log.numbers);
        self.reads.insert(number, read);
        self.log.read(number, job, storage);
    }

    /// Answers every read whose bytes are not there yet: the partition is going away.
    pub(super) fn refuse_reads(&mut self) {
        for read in std::mem::take(&mut self.wanted_reads) {
            self.reply(Reply::refused(&read.origin, ErrorCode::HistoryUnavailable));
        }
        for read in std::mem::take(&mut self.reads).into_values() {
            self.notices.push(Notice::ReadEnded {
                bytes: u64::from(read.length),
            });
            self.reply(Reply::refused(&read.origin, ErrorCode::HistoryUnavailable));
        }
    }

    /// Lets no read park that finds less than its poll asked for.
    pub(super) fn end_waits_of_reads(&mut self, unwanted: impl Fn(&Origin) -> bool) {
        let reads = self.reads.values_mut().chain(&mut self.wanted_reads);
        for read in reads.filter(|read| unwanted(&read.origin)) {
            read.served.deadline = 0;
        }
    }

    pub(super) fn read_done(
        &mut self,
        now: Now,
        number: u64,
        result: Result<Vec<Bytes>, StorageError>,
        storage: &mut dyn Storage,
    ) {
        let Some(mut read) = self.reads.remove(&number) else {
            return;
        };
        self.notices.push(Notice::ReadEnded {
            bytes: u64::from(read.length),
        });
        let chunk = match result.map(|mut chunks| chunks.pop()) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => Bytes::new(),
            Err(error) => return self.read_failed(now, read, &error, storage),
        };
        let end = self.state.next_offset;
        let walked = read
            .gathered
            .take_chunk(&chunk, end, read.from_timestamp, self.config.verify_reads);
        let walked = match walked {
            Ok(walked) => walked,
            Err(error) => {
                self.notices
                    .push(Notice::Damaged(format!("segment {}: {error}", read.span.base_offset)));
                return self.reply(Reply::refused(&read.origin, ErrorCode::CannotReadMessage));
            }
        };
        let passed = walked.passed as u64;
        read.spent += u64::from(read.length);
        read.span = Span {
            position: read.span.position + passed,
            available: read.span.available - passed,
            ..read.span
        };
        if read.gathered.messages > 0 && !read.gathered.is_full() {
            // The rest of the reply may be in memory.
            self.gather_from_memory(&mut read.gathered);
        }
        self.read_on(now, read, walked.needs, storage);
    }

    /// Reads the rest of the segment, then the next one, until the poll has what it waits for. One that has something
    /// gets no more than one read's worth of bytes from disk: more is left to the next poll.
    fn read_on(&mut self, now: Now, mut read: DiskRead, needs: Option<u64>, storage: &mut dyn Storage) {
        let gathered = &read.gathered;
        let enough = gathered.messages >= read.served.poll.min_count || gathered.is_full();
        let spent = gathered.messages > 0 && read.spent >= u64::from(self.config.read_bytes_max);
        if spent {
            return self.answer(now, &read.origin, read.served, read.gathered, storage);
        }
        if gathered.next_offset() >= self.state.next_offset || enough {
            return self.finish(
                now,
                read.origin,
                read.served,
                read.gathered,
                read.from_timestamp,
                storage,
            );
        }
        let same = self.segments.span_now(read.span).and_then(|span| self.written(span));
        let after = || self.segments.span_after(read.span.base_offset);
        let Some(span) = same.or_else(|| after().and_then(|span| self.written(span))) else {
            return self.finish(
                now,
                read.origin,
                read.served,
                read.gathered,
                read.from_timestamp,
                storage,
            );
        };
        read.span = span;
        let needs = needs.unwrap_or(0);
        if needs > read.span.available {
            // Asking again would bring the same bytes for ever.
            self.notices.push(Notice::Damaged(format!(
                "segment {}: the batch at byte {} has {needs} bytes, and {} are left",
                read.span.base_offset, read.span.position, read.span.available
            )));
            return self.reply(Reply::refused(&read.origin, ErrorCode::CannotReadMessage));
        }
        self.want_read(read, needs);
    }

    fn read_failed(&mut self, now: Now, read: DiskRead, error: &StorageError, storage: &mut dyn Storage) {
        // Retention may have removed the segment meanwhile; then the log starts later now.
        if read.gathered.messages == 0 && read.gathered.next_offset() < self.state.log_start {
            let start = read
                .from_timestamp
                .map_or(Start::Offset(self.state.log_start), Start::Timestamp);
            return self.serve(now, read.origin, read.served, start, storage);
        }
        self.notices.push(Notice::BackgroundFailed(error.clone()));
        self.reply(Reply::refused(&read.origin, ErrorCode::CannotReadMessage));
    }

    /// Answers a read that has come to the end of the log, or parks it when it may wait for more.
    fn finish(
        &mut self,
        now: Now,
        origin: Origin,
        served: Served,
        gathered: Gathered,
        from_timestamp: Option<u64>,
        storage: &mut dyn Storage,
    ) {
        let enough = gathered.messages >= served.poll.min_count || gathered.is_full();
        let nothing_new = from_timestamp.is_some() && gathered.messages == 0;
        let at_end = nothing_new || gathered.next_offset() >= self.state.next_offset;
        if enough || !at_end || served.deadline <= now.monotonic || self.stopping || self.unusable {
            return self.answer(now, &origin, served, gathered, storage);
        }
        let (start, until) = match (gathered.last_offset, from_timestamp) {
            (None, Some(timestamp)) => {
                let until = Until {
                    timestamp: Some(timestamp),
                    ..Until::default()
                };
                (Start::Timestamp(timestamp), until)
            }
            (last, _) => {
                let first = last.map_or(gathered.next_offset(), |last| last + 1 - u64::from(gathered.messages));
                let until = self.until(&served.poll, first, gathered.bytes as u64);
                (Start::Offset(first), until)
            }
        };
        self.park(origin, served, start, until);
    }

    fn answer(&mut self, now: Now, origin: &Origin, served: Served, gathered: Gathered, storage: &mut dyn Storage) {
        if let ConsumerKey::Group(group) = &served.poll.consumer
            && self.state.owners.get(group).map(|owner| owner.generation) != Some(served.generation)
        {
            // The partition changed hands while the bytes were read.
            return self.reply(Reply::refused(origin, ErrorCode::ConsumerGroupPartitionNotOwned));
        }
        let last_offset = gathered.last_offset;
        self.counters.count_polled(gathered.messages);
        let next_offset = gathered.next_offset();
        let reply = self.poll_reply(origin, &served, gathered.messages, gathered.pieces, next_offset);
        match last_offset.filter(|_| served.poll.commit) {
            Some(offset) => {
                let (consumer, generation) = (served.poll.consumer, served.generation);
                self.propose_read_offset(now, origin, consumer, offset, generation, reply, storage);
            }
            None => self.reply(reply),
        }
    }

    pub(super) fn answer_empty(&mut self, origin: &Origin, served: &Served) {
        let next_offset = match self.start_of(&served.poll) {
            Start::Offset(offset) => offset,
            Start::Timestamp(_) => self.state.next_offset,
        };
        let reply = self.poll_reply(origin, served, 0, Vec::new(), next_offset);
        self.reply(reply);
    }

    fn poll_reply(
        &self,
        origin: &Origin,
        served: &Served,
        messages: u32,
        pieces: Vec<Bytes>,
        next_offset: u64,
    ) -> Reply {
        let head = PollHead {
            partition_id: self.key.partition_id,
            current_offset: self.state.current_offset(),
            messages_count: messages,
            context: PartitionContext {
                incarnation: self.history.incarnation,
                owner_generation: served.generation,
                metadata_op: served.poll.metadata_op,
            },
        };
        let mut bytes = BytesMut::with_capacity(POLL_HEAD_BYTES);
        head.encode(&mut bytes);
        let mut body = Vec::with_capacity(pieces.len() + 1);
        body.push(bytes.freeze());
        body.extend(pieces);
        Reply {
            next_offset: Some(next_offset),
            ..Reply::read(origin, body)
        }
    }
}
