//! One partition of a reader: where it reads next, and whether it may.

use iggy_protocol::reply::message::PartitionRoute;
use iggy_protocol::{PartitionContext, PollingStrategy};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::poll::{Continuation, ReadStart};

/// Lasting refusals in a row after which a partition stops (behaviour 1.1).
const LASTING_REFUSALS: u32 = 6;

/// What a partition is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is under way.
    Idle,
    /// A lookup or a read is under way.
    Busy,
    /// It needs a decision of the application.
    Stopped,
}

#[derive(Debug)]
pub(super) struct ReadPartition {
    pub start: ReadStart,
    /// Whether `start` is the application's, not the end of an earlier read.
    pub chosen: bool,
    /// Counts the seeks: reads begun before one are not for this partition any more.
    pub generation: u64,
    pub state: State,
    pub route: Option<PartitionRoute>,
    /// When it was read last, for taking turns.
    pub turn: u64,
    pub resume_at: Option<Instant>,
    refusals: u32,
    rerouted: u32,
    backoff: Backoff,
}

impl ReadPartition {
    pub fn new(start: ReadStart) -> Self {
        Self {
            start,
            chosen: true,
            generation: 0,
            state: State::Idle,
            route: None,
            turn: 0,
            resume_at: None,
            refusals: 0,
            rerouted: 0,
            backoff: Backoff::of_call(),
        }
    }

    /// Begins anew somewhere else.
    pub fn seek(&mut self, start: ReadStart) {
        let generation = self.generation + 1;
        *self = Self {
            generation,
            turn: self.turn,
            ..Self::new(start)
        };
    }

    /// Whether something can be begun now.
    pub fn is_due(&self, now: Instant) -> bool {
        self.state == State::Idle && self.resume_at.is_none_or(|at| at <= now)
    }

    /// The history and owner to read under.
    pub fn context(&self) -> Option<PartitionContext> {
        self.start
            .context()
            .or_else(|| self.route.as_ref().map(PartitionRoute::context))
    }

    /// Whether it needs a poll of its own: a fetch starts at offsets only.
    pub fn needs_poll(&self) -> bool {
        matches!(
            self.start.strategy(),
            PollingStrategy::Last | PollingStrategy::Timestamp(_)
        )
    }

    /// A read was served; the next one continues here.
    pub fn served(&mut self, next: Continuation) {
        self.start = next.into();
        self.chosen = false;
        self.state = State::Idle;
        self.resume_at = None;
        self.refusals = 0;
        self.rerouted = 0;
        self.backoff.reset();
    }

    /// Asks for the route again; the second time in a row after a pause.
    pub fn reroute(&mut self, now: Instant) {
        self.route = None;
        self.state = State::Idle;
        self.rerouted += 1;
        if self.rerouted > 1 {
            self.resume_at = Some(now + self.backoff.next_doubling());
        }
    }

    /// Tries again after a pause.
    pub fn pause(&mut self, now: Instant) {
        self.state = State::Idle;
        self.resume_at = Some(now + self.backoff.next_doubling());
    }

    /// Was refused for good. True when that was once too often and the partition has stopped.
    pub fn refused(&mut self, now: Instant) -> bool {
        self.refusals += 1;
        self.pause(now);
        if self.refusals >= LASTING_REFUSALS {
            self.state = State::Stopped;
        }
        self.state == State::Stopped
    }
}
