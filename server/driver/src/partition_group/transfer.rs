//! The state of another member in place of the own: when what is missing is no longer in the memory of anybody.
//!
//! The applied state comes whole; the batches it stands on come from the first one that is not applied here. What was
//! committed here is the same there, byte for byte, so it is kept. What is in flight here is compared: where it is the
//! same it is kept as well, and where it is known to differ the log is cut. Everything else goes behind the own log, which
//! counts until the new checkpoint does: whoever gives the state may be lost before, and a restart then finds here what it
//! found before.

use super::PartitionGroup;
use super::salvage::{Salvage, Wanted, compare};
use super::writes::Pending;
use bytes::Bytes;
use iggy_consensus::message::{Kind, Message, StateManifest};
use iggy_consensus::{Input, LogEnd, Now};
use iggy_partition::segments::{Mark, Span};
use iggy_partition::state::{LogPosition, PartitionState};
use iggy_protocol::batch::BatchView;
use iggy_protocol::limits::HEADER_SIZE;
use iggy_storage::{Storage, StorageError};

/// Bytes of batches in one message, unless one batch alone is larger.
const CHUNK_BYTES: u64 = 256 << 10;
/// Reminders without progress after which another member is asked.
const REMINDERS_MAX: u32 = 3;
/// Writes of batches under way beyond which no more batches are asked for.
const WRITES_MAX: usize = 16;
/// Members served from disk at once.
const SERVING_MAX: usize = 64;

/// A state on its way here.
#[derive(Debug)]
pub(super) struct Incoming {
    from: u8,
    from_scratch: bool,
    manifest: Option<StateManifest>,
    next_offset: u64,
    /// Whether the batches at `next_offset` were asked for.
    asked: bool,
    installing: bool,
    reminders: u32,
    /// What is here already.
    salvage: Salvage,
}

/// Where the own segments ended before a transfer placed anything; nothing of them is kept without a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept(Option<Mark>);

/// A read for a member that lacks batches.
#[derive(Debug)]
pub(super) struct Serving {
    to: u8,
    offset: u64,
    until: u64,
    held: Vec<u128>,
    span: Span,
    length: u64,
}

impl PartitionGroup {
    pub(super) fn fetch_state(&mut self, now: Now, from: u8, from_scratch: bool, storage: &mut dyn Storage) {
        match &mut self.incoming {
            Some(incoming) if incoming.from == from && incoming.from_scratch == from_scratch => {
                // The disk is behind, nobody else.
                if incoming.installing || self.log.writes() > 0 {
                    return;
                }
                incoming.reminders += 1;
                if incoming.reminders > REMINDERS_MAX {
                    self.incoming = None;
                    return self.step(now, Input::StateFailed, storage);
                }
            }
            Some(incoming) if incoming.installing => return,
            _ => {
                // What an attempt before this one has placed is void.
                let Kept(mark) = *self.kept.get_or_insert_with(|| Kept(self.segments.mark()));
                self.cut_segments(mark, storage);
                self.incoming = Some(Incoming {
                    from,
                    from_scratch,
                    manifest: None,
                    next_offset: 0,
                    asked: false,
                    installing: false,
                    reminders: 0,
                    salvage: Salvage::of(&self.aside),
                });
            }
        }
        self.ask_for_more(storage);
    }

    fn cut_segments(&mut self, mark: Option<Mark>, storage: &mut dyn Storage) {
        let (job, left) = self.segments.cut(mark, &mut self.log.numbers);
        if let Some(left) = left {
            self.log.retire(left);
        }
        if !job.is_empty() {
            self.log.write(job, Vec::new(), storage);
        }
    }

    fn say(&mut self, to: u8, kind: Kind) {
        let message = self.log.replica().message(kind);
        self.send(to, message);
    }

    /// Asks for whatever comes next, once it is known what of it is here.
    fn ask_for_more(&mut self, storage: &mut dyn Storage) {
        let number = self.number();
        let Some(incoming) = &mut self.incoming else { return };
        incoming.asked = true;
        let from = incoming.from;
        let next = incoming.next_offset;
        let kind = match &incoming.manifest {
            None => Kind::RequestState,
            Some(manifest) if next < manifest.next_offset => {
                if incoming.salvage.is_reading() {
                    return;
                }
                if let Some(Wanted {
                    segment,
                    position,
                    length,
                }) = incoming.salvage.wanted(next)
                {
                    incoming.salvage.begin_reading(number);
                    let directory = self.segments.directory();
                    let job = segment.read(directory, position, length, &mut self.log.numbers);
                    return self.log.read(number, job, storage);
                }
                let (until, held) = incoming.salvage.offer(next);
                Kind::RequestBatches {
                    offset: next,
                    until,
                    held,
                }
            }
            Some(_) => return,
        };
        self.say(from, kind);
    }

    /// A part of a segment that was put aside is read, if that is what the number stands for.
    pub(super) fn aside_read(
        &mut self,
        number: u64,
        result: &Result<Vec<Bytes>, StorageError>,
        storage: &mut dyn Storage,
    ) -> bool {
        let bytes = result.as_ref().ok().and_then(|chunks| chunks.first());
        let taken = self
            .incoming
            .as_mut()
            .is_some_and(|incoming| incoming.salvage.read(number, bytes));
        if taken {
            self.ask_for_more(storage);
        }
        taken
    }

    pub(super) fn transfer_message(&mut self, now: Now, message: Message, storage: &mut dyn Storage) {
        let own = self.log.replica().state();
        let ours = message.cluster == own.cluster && message.group == own.group;
        if !ours || message.from == own.replica {
            return;
        }
        match message.kind {
            Kind::RequestState => self.give_state(message.from),
            Kind::RequestBatches { offset, until, held } => {
                self.give_batches(message.from, offset, until, held, storage);
            }
            Kind::State(manifest) => self.take_state(now, message.from, *manifest, storage),
            Kind::Batches { same, bytes, .. } => self.take_batches(now, message.from, &same, &bytes, storage),
            _ => {}
        }
    }

    fn give_state(&mut self, to: u8) {
        // Half a state is of no use to anybody.
        if self.incoming.is_some() || !self.opened || self.fenced().is_some() {
            return;
        }
        let first = self.segments.first_offset().unwrap_or(self.state.next_offset);
        let manifest = StateManifest {
            at: self.applied,
            history: self.log.history(),
            first_offset: first,
            next_offset: self.state.next_offset,
            state: Bytes::from(self.state.snapshot(self.applied_end)),
        };
        self.say(to, Kind::State(Box::new(manifest)));
    }

    fn give_batches(&mut self, to: u8, offset: u64, until: u64, held: Vec<u128>, storage: &mut dyn Storage) {
        if self.incoming.is_some() || offset >= self.state.next_offset || self.serving.len() >= SERVING_MAX {
            return;
        }
        let mut bytes = Vec::new();
        if let Some(batches) = self.tail.from(offset) {
            for batch in batches {
                bytes.extend_from_slice(&batch.header);
                bytes.extend_from_slice(&batch.frames);
                if bytes.len() as u64 >= CHUNK_BYTES {
                    break;
                }
            }
        }
        if !bytes.is_empty() {
            return self.say_batches(to, offset, until, &held, &Bytes::from(bytes));
        }
        let Some(span) = self.segments.span_of(offset) else {
            return self.say_batches(to, offset, until, &held, &Bytes::new());
        };
        let serving = Serving {
            to,
            offset,
            until,
            held,
            span,
            length: CHUNK_BYTES,
        };
        self.read_batches(serving, storage);
    }

    /// Sends batches, without those that the other member has as well.
    fn say_batches(&mut self, to: u8, offset: u64, until: u64, held: &[u128], bytes: &Bytes) {
        let (same, start, end) = compare(bytes, held, until);
        let bytes = bytes.slice(start..end);
        let same = held[..same].to_vec();
        self.say(to, Kind::Batches { offset, same, bytes });
    }

    fn read_batches(&mut self, mut serving: Serving, storage: &mut dyn Storage) {
        serving.length = self.committed_bytes(serving.span).min(serving.length);
        if serving.length == 0 {
            return;
        }
        let number = self.number();
        let (span, length) = (serving.span, serving.length as u32);
        self.serving.insert(number, serving);
        let job = self.segments.read(span, length, &mut self.log.numbers);
        self.log.read(number, job, storage);
    }

    /// Bytes of a span that are committed, and so are surely written.
    fn committed_bytes(&self, span: Span) -> u64 {
        match self.applied_end {
            Some(end) if end.segment == span.base_offset => end.size.saturating_sub(span.position),
            _ => span.available,
        }
    }

    pub(super) fn batches_read(
        &mut self,
        serving: Serving,
        result: Result<Vec<Bytes>, StorageError>,
        storage: &mut dyn Storage,
    ) {
        let offset = serving.offset;
        let chunk = result.ok().and_then(|mut chunks| chunks.pop()).unwrap_or_default();
        let mut whole = 0;
        let mut first = None;
        while let Ok((batch, rest)) = BatchView::split_first(&chunk[whole..]) {
            if batch.last_offset() >= offset && first.is_none() {
                first = Some(whole);
            }
            whole = chunk.len() - rest.len();
        }
        if first.is_none() && !chunk.is_empty() && serving.length < self.committed_bytes(serving.span) {
            // One batch alone is larger, or the index led to one far before.
            let length = 4 * serving.length;
            return self.read_batches(Serving { length, ..serving }, storage);
        }
        let bytes = first.map_or_else(Bytes::new, |first| chunk.slice(first..whole));
        self.say_batches(serving.to, offset, serving.until, &serving.held, &bytes);
    }

    fn take_state(&mut self, now: Now, from: u8, manifest: StateManifest, storage: &mut dyn Storage) {
        let next = self.state.next_offset;
        let applied = self.applied.op;
        let Some(incoming) = self.incoming.as_mut().filter(|incoming| incoming.from == from) else {
            return;
        };
        if incoming.manifest.is_some() {
            return;
        }
        if PartitionState::restore(&manifest.state).is_err() {
            self.incoming = None;
            return self.step(now, Input::StateFailed, storage);
        }
        let at = manifest.at;
        let held = at.op <= applied || self.pending.iter().any(|pending| pending.header.end() == at);
        // What is of another history here is not kept.
        let nothing_kept = self.kept == Some(Kept(None));
        if held && !incoming.from_scratch {
            self.incoming = None;
            if nothing_kept && next > 0 {
                return self.step(now, Input::StateFailed, storage);
            }
            // The transfer is over: what it has placed is void, and the log goes on from where it was.
            if let Some(Kept(mark)) = self.kept.take() {
                self.cut_segments(mark, storage);
            }
            return self.step(now, Input::StateHeld { at }, storage);
        }
        let fresh = incoming.from_scratch || nothing_kept || next > manifest.next_offset;
        let end = manifest.next_offset;
        // What was dropped there is not needed here.
        incoming.next_offset = if fresh {
            manifest.first_offset
        } else {
            next.max(manifest.first_offset)
        };
        incoming.reminders = 0;
        incoming.manifest = Some(manifest);
        let beyond = |pending: &&Pending| pending.header.op.get() >= at.op || pending.end_offset() > end;
        let beyond = |pending: &&Pending| fresh || beyond(pending);
        let beyond = self.pending.iter().find(beyond).map(|pending| pending.header.op.get());
        if let Some(op) = beyond
            && !self.cut_own_log(now, op, storage)
        {
            return;
        }
        if fresh {
            self.tail.clear();
            self.kept = Some(Kept(None));
            self.put_aside(storage);
        }
        self.ask_for_more(storage);
        self.install_when_complete(storage);
    }

    /// Gives the own segments up, and keeps what of them may be the same elsewhere.
    fn put_aside(&mut self, storage: &mut dyn Storage) {
        let (aside, job, left) = self.segments.put_aside();
        if let Some(left) = left {
            self.log.retire(left);
        }
        if !job.is_empty() {
            self.log.write(job, Vec::new(), storage);
        }
        // What lay there under the same name is no more.
        self.aside
            .retain(|old| aside.iter().all(|new| new.base_offset != old.base_offset));
        self.aside.extend(aside);
        self.aside.sort_unstable_by_key(|segment| segment.base_offset);
        if let Some(incoming) = &mut self.incoming {
            incoming.salvage = Salvage::of(&self.aside);
        }
    }

    /// Takes the batches that are here, and that the other member has as well. False when the transfer is over.
    fn take_same(&mut self, now: Now, from: u8, same: &[u128], storage: &mut dyn Storage) -> bool {
        for known_by in same {
            let Some(incoming) = self.incoming.as_mut().filter(|incoming| incoming.from == from) else {
                return false;
            };
            let next = incoming.next_offset;
            // An answer that comes again, or late, finds them gone.
            let Some(raw) = incoming.salvage.take(next, *known_by) else {
                break;
            };
            let Ok((batch, _)) = BatchView::split_first_unwalked(&raw) else {
                break;
            };
            if !self.take_batch(now, &batch, &raw, storage) {
                return false;
            }
            self.took(&batch);
        }
        true
    }

    /// Notes that a batch of the state is here.
    fn took(&mut self, batch: &BatchView<'_>) {
        if let Some(incoming) = &mut self.incoming {
            incoming.next_offset = batch.last_offset() + 1;
            incoming.asked = false;
            incoming.reminders = 0;
        }
    }

    fn take_batches(&mut self, now: Now, from: u8, same: &[u128], bytes: &Bytes, storage: &mut dyn Storage) {
        if !self.take_same(now, from, same, storage) {
            return;
        }
        let Some(incoming) = self.incoming.as_mut().filter(|incoming| incoming.from == from) else {
            return;
        };
        let Some(end) = incoming.manifest.as_ref().map(|manifest| manifest.next_offset) else {
            return;
        };
        if same.is_empty() && bytes.is_empty() && incoming.next_offset < end {
            // Dropped there meanwhile: another state will stand on what is left.
            self.incoming = None;
            return self.step(now, Input::StateFailed, storage);
        }
        let mut next = incoming.next_offset;
        let mut position = 0;
        while let Ok((batch, rest)) = BatchView::split_first(&bytes[position..]) {
            let length = bytes.len() - position - rest.len();
            let wanted = next < end && batch.header().base_offset.get() == next;
            if wanted && batch.verify().is_ok() {
                let raw = bytes.slice(position..position + length);
                if !self.take_batch(now, &batch, &raw, storage) {
                    return;
                }
                next = batch.last_offset() + 1;
                self.took(&batch);
            }
            position += length;
        }
        self.go_on(storage);
    }

    /// Takes the next batch of the state; `raw` are its bytes. False when the transfer is over.
    fn take_batch(&mut self, now: Now, batch: &BatchView<'_>, raw: &Bytes, storage: &mut dyn Storage) -> bool {
        let header = *batch.header();
        let offset = header.base_offset.get();
        let own = self.pending.iter().find(|pending| pending.end_offset() > offset);
        if let Some(own) = own {
            // The header has the checksum of what follows it.
            if own.batch_bytes().is_some_and(|bytes| raw.starts_with(bytes)) {
                return true;
            }
            let op = own.header.op.get();
            if !self.cut_own_log(now, op, storage) {
                return false;
            }
        }
        let (head, frames) = (raw.slice(..HEADER_SIZE), raw.slice(HEADER_SIZE..));
        let placement = self.segments.place(&header, head, frames, &mut self.log.numbers);
        let mut files = vec![placement.file];
        if let Some(sealed) = placement.sealed {
            files.push(sealed.file);
            self.log.retire(sealed.file);
        }
        self.log.write(placement.steps, files, storage);
        true
    }

    /// Cuts the own log from `op` on, where it is known to differ from the state. False when it cannot be: what is
    /// committed here and there is not the same, and another member is asked.
    fn cut_own_log(&mut self, now: Now, op: u64, storage: &mut dyn Storage) -> bool {
        self.step(now, Input::StateDiffers { op }, storage);
        self.kept = Some(Kept(self.segments.mark()));
        let is_cut = self.pending.back().is_none_or(|pending| pending.header.op.get() < op);
        if !is_cut {
            self.incoming = None;
            self.step(now, Input::StateFailed, storage);
        }
        is_cut
    }

    pub(super) fn batches_written(&mut self, storage: &mut dyn Storage) {
        self.go_on(storage);
    }

    /// Asks for the next batches, unless the disk is too far behind.
    fn go_on(&mut self, storage: &mut dyn Storage) {
        let room = self.log.writes() < WRITES_MAX;
        if room && self.incoming.as_ref().is_some_and(|incoming| !incoming.asked) {
            self.ask_for_more(storage);
        }
        self.install_when_complete(storage);
    }

    fn install_when_complete(&mut self, storage: &mut dyn Storage) {
        let end = self.segments.end().map(|(segment, size)| LogPosition { segment, size });
        let writing = self.log.writes() > 0;
        let Some(incoming) = &mut self.incoming else { return };
        let Some(manifest) = &incoming.manifest else { return };
        if incoming.installing || writing || incoming.next_offset < manifest.next_offset {
            return;
        }
        let Ok((state, _)) = PartitionState::restore(&manifest.state) else {
            return;
        };
        incoming.installing = true;
        let at = manifest.at;
        self.log.install(at, state.snapshot(end), storage);
    }

    pub(super) fn state_installed(&mut self, now: Now, at: LogEnd, storage: &mut dyn Storage) {
        let manifest = self.incoming.take().and_then(|incoming| incoming.manifest);
        let restored = manifest.map(|manifest| PartitionState::restore(&manifest.state));
        if let Some(Ok((state, _))) = restored {
            self.state = state;
            self.kept = None;
            let directory = self.segments.directory();
            let job = self
                .aside
                .drain(..)
                .flat_map(|segment| segment.remove(directory))
                .collect();
            self.log.in_background(job, storage);
            // What was in flight is in the state, or never was committed.
            let waiters = self.pending.drain(..).map(|pending| pending.waiter);
            self.truncated_waiters.extend(waiters);
            self.applied = at;
            self.applied_end = self.segments.end().map(|(segment, size)| LogPosition { segment, size });
            self.tail.clear();
            self.publish_counters();
        }
        self.step(now, Input::StateInstalled { at }, storage);
        self.remove_dropped(storage);
    }
}
