//! One other node: what waits for it, through which links it goes, and what is counted.
//!
//! Senders look at a slot, and either put a frame into its bounded queue or drop it. Nothing here waits.

use crate::beats::Beats;
use crate::handshake::Met;
use crate::status::PeerStatus;
use arc_swap::{ArcSwapOption, Guard};
use bytes::Bytes;
use iggy_consensus::GroupId;
use iggy_consensus::message::Beat;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64;

/// A message, ready to be written.
pub struct Frame {
    /// Its bytes, in pieces.
    pub pieces: Vec<Bytes>,
    /// How many there are.
    pub length: usize,
}

/// A link that is up, as senders see it.
pub struct Slot {
    frames: mpsc::Sender<Frame>,
    /// Ends the link.
    pub end: CancellationToken,
}

/// Numbers of a peer.
#[derive(Default)]
pub struct Counts {
    /// Frames and bytes that wait.
    pub queued: AtomicU64,
    /// Bytes of them.
    pub queued_bytes: AtomicU64,
    /// Frames sent.
    pub sent: AtomicU64,
    /// Bytes of them.
    pub sent_bytes: AtomicU64,
    /// Frames received.
    pub received: AtomicU64,
    /// Bytes of them.
    pub received_bytes: AtomicU64,
    /// Messages that were dropped.
    pub dropped: AtomicU64,
    /// Messages that were not believed.
    pub refused: AtomicU64,
}

/// See the module's page.
pub struct Peer {
    replica: u8,
    slots: Vec<ArcSwapOption<Slot>>,
    /// Heartbeats that wait.
    pub beats: Beats,
    /// Rung when heartbeats wait. Any link of the peer takes them.
    pub bell: Notify,
    /// What is counted.
    pub counts: Counts,
    incarnation: AtomicU64,
    trouble: Mutex<Option<String>>,
    queue_max: usize,
    queue_bytes_max: u64,
}

impl Peer {
    /// A peer without links.
    pub fn new(replica: u8, links: u16, queue_max: usize, queue_bytes_max: usize) -> Self {
        Self {
            replica,
            slots: (0..links).map(|_| ArcSwapOption::empty()).collect(),
            beats: Beats::default(),
            bell: Notify::new(),
            counts: Counts::default(),
            incarnation: AtomicU64::new(0),
            trouble: Mutex::new(None),
            queue_max,
            queue_bytes_max: queue_bytes_max as u64,
        }
    }

    /// Queues a heartbeat, or drops it.
    pub fn beat(&self, beat: Beat) {
        let is_up = self.slots.iter().any(|slot| slot.load().is_some());
        if is_up && self.beats.add(beat) {
            self.bell.notify_one();
        } else {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Queues a frame of a group, or drops it. All frames of a group take the same link while it is up.
    pub fn push(&self, group: &GroupId, frame: Frame) {
        let length = frame.length as u64;
        let taken = self.slot_for(group).is_some_and(|slot| {
            // Two senders may pass the bound together, by a frame each.
            let room = self.counts.queued_bytes.load(Relaxed) + length <= self.queue_bytes_max;
            if !room {
                return false;
            }
            // Before it is queued: the link takes it off as soon as it is.
            self.counts.queued.fetch_add(1, Relaxed);
            self.counts.queued_bytes.fetch_add(length, Relaxed);
            let sent = slot.frames.try_send(frame).is_ok();
            if !sent {
                self.unqueue(1, length);
            }
            sent
        });
        if !taken {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    fn slot_for(&self, group: &GroupId) -> Option<Arc<Slot>> {
        let count = self.slots.len();
        let mut name = [0; 16];
        name[..8].copy_from_slice(&group.namespace.to_le_bytes());
        name[8..].copy_from_slice(&group.incarnation.to_le_bytes());
        let first = (xxh3_64(&name) % count as u64) as usize;
        (0..count).find_map(|step| Guard::into_inner(self.slots[(first + step) % count].load()))
    }

    /// Takes frames that left a queue off the count.
    pub fn unqueue(&self, frames: u64, bytes: u64) {
        self.counts.queued.fetch_sub(frames, Relaxed);
        self.counts.queued_bytes.fetch_sub(bytes, Relaxed);
    }

    /// A link is up; an older one in its place ends. Gives what waits for it.
    pub fn join(&self, met: &Met, end: CancellationToken) -> (Arc<Slot>, mpsc::Receiver<Frame>) {
        let (frames, queue) = mpsc::channel(self.queue_max);
        let slot = Arc::new(Slot { frames, end });
        if let Some(older) = self.slots[usize::from(met.link)].swap(Some(Arc::clone(&slot))) {
            older.end.cancel();
        }
        self.incarnation.fetch_max(met.incarnation, Relaxed);
        self.trouble(None);
        (slot, queue)
    }

    /// A link is no longer up.
    pub fn leave(&self, link: u16, slot: &Arc<Slot>) {
        slot.end.cancel();
        let place = &self.slots[usize::from(link)];
        // Unless a newer one has taken its place.
        place.compare_and_swap(slot, None);
    }

    /// Remembers why there is no link.
    pub fn trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// What can be said of it.
    pub fn status(&self) -> PeerStatus {
        let read = |number: &AtomicU64| number.load(Relaxed);
        let up = self.slots.iter().filter(|slot| slot.load().is_some()).count();
        PeerStatus {
            replica: self.replica,
            links_up: up as u16,
            links: self.slots.len() as u16,
            incarnation: read(&self.incarnation),
            queued: read(&self.counts.queued),
            queued_bytes: read(&self.counts.queued_bytes),
            sent: read(&self.counts.sent),
            sent_bytes: read(&self.counts.sent_bytes),
            received: read(&self.counts.received),
            received_bytes: read(&self.counts.received_bytes),
            dropped: read(&self.counts.dropped),
            refused: read(&self.counts.refused),
            trouble: self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
