//! What one actor measures while it works.

use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Width of a point of the curve of throughput.
pub const POINT: Duration = Duration::from_millis(500);

/// Bytes that all actors have moved, for the progress bar.
pub type Moved = Arc<AtomicU64>;

/// Batches, their sizes and their latencies.
pub struct Recorder {
    moved: Moved,
    began: Instant,
    ended: Instant,
    /// Nanoseconds.
    latencies: Histogram<u64>,
    bytes: u64,
    messages: u64,
    /// Bytes in each [`POINT`] since the beginning.
    points: Vec<u64>,
}

/// Latencies from a microsecond to ten minutes, in nanoseconds, to three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 600_000_000_000, 3).expect("bounds and digits that are allowed")
}

/// What an actor has measured.
pub struct Record {
    /// From its first request to its last answer.
    pub took: Duration,
    /// Latency of each batch, in nanoseconds.
    pub latencies: Histogram<u64>,
    /// Bytes of payload.
    pub bytes: u64,
    /// Messages.
    pub messages: u64,
    /// Bytes in each [`POINT`] since the beginning.
    pub points: Vec<u64>,
}

impl Recorder {
    /// Begins now.
    pub fn start(moved: Moved) -> Self {
        let now = Instant::now();
        Self {
            moved,
            began: now,
            ended: now,
            latencies: histogram(),
            bytes: 0,
            messages: 0,
            points: Vec::new(),
        }
    }

    /// Counts a batch that ends now.
    pub fn batch(&mut self, asked: Instant, messages: u64, bytes: u64) {
        self.ended = Instant::now();
        let nanos = (self.ended - asked).as_nanos();
        self.latencies
            .saturating_record(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.bytes += bytes;
        self.messages += messages;
        let point = (self.ended - self.began).as_nanos() / POINT.as_nanos();
        let point = usize::try_from(point).unwrap_or(usize::MAX);
        if self.points.len() <= point {
            self.points.resize(point + 1, 0);
        }
        self.points[point] += bytes;
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was measured.
    pub fn end(self) -> Record {
        Record {
            took: self.ended - self.began,
            latencies: self.latencies,
            bytes: self.bytes,
            messages: self.messages,
            points: self.points,
        }
    }
}
