//! One partition of an intake: where it is read next, and whether it may be.

use iggy_protocol::reply::message::PartitionRoute;
use iggy_protocol::{PartitionContext, PollingStrategy};
use tokio::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::poll::{Continuation, ReadStart};

/// Lasting refusals in a row after which a partition stops (behaviour 1.1).
pub const LASTING_REFUSALS: u32 = 6;

/// What a partition is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Nothing is under way.
    Idle,
    /// A lookup or a read is under way.
    Busy,
    /// Its owner has changed: it waits for the group's assignment.
    Fenced,
    /// It needs a decision of the application.
    Stopped,
}

/// What the stored offset of the consumer is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// To begin: a read that stores offsets must know what it moves, and a partition that was gained goes on after what
    /// its owner before stored.
    Begin,
    /// To go on after a read that may have stored an offset.
    Recover,
}

/// What reads have done to the stored offset of the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// Nothing.
    Not,
    /// It is this, in this history.
    To(u64, PartitionContext),
    /// It may be anything from here on.
    Unknown,
}

/// The stored offset of a consumer whose reads store it.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// What was stored before the first read.
    pub origin: Option<u64>,
    /// The last message the application was given.
    pub delivered: Option<u64>,
    /// What reads have stored.
    pub moved: Moved,
    /// Up to this offset messages are read without storing anything: a lost reply has stored it already.
    pub skipped_to: Option<u64>,
}

/// One partition.
#[derive(Debug)]
pub struct Cursor {
    /// Where it is read next.
    pub start: ReadStart,
    /// Whether `start` is the application's, not the end of an earlier read.
    pub chosen: bool,
    /// The ordering of its messages: reads begun in an earlier one are not for it any more.
    pub generation: u64,
    /// The ordering it was taken up in.
    pub since: u64,
    /// What it is doing.
    pub activity: Activity,
    /// What must be looked up before it is read.
    pub lookup: Option<Lookup>,
    /// Where it is served.
    pub route: Option<PartitionRoute>,
    /// When it was read last, for taking turns.
    pub turn: u64,
    /// The end of a pause.
    pub resume_at: Option<Instant>,
    /// What reads did to the stored offset.
    pub progress: Progress,
    /// Whether a refusal of this row was told.
    told: bool,
    refusals: u32,
    rerouted: u32,
    backoff: Backoff,
    longest_pause: Duration,
}

impl Cursor {
    /// A partition that is read from `start`.
    pub fn new(start: ReadStart, generation: u64, longest_pause: Duration) -> Self {
        Self {
            start,
            chosen: true,
            generation,
            since: generation,
            activity: Activity::Idle,
            lookup: None,
            route: None,
            turn: 0,
            resume_at: None,
            progress: Progress {
                origin: None,
                delivered: None,
                moved: Moved::Not,
                skipped_to: None,
            },
            told: false,
            refusals: 0,
            rerouted: 0,
            backoff: Backoff::of_call(),
            longest_pause,
        }
    }

    /// Begins anew somewhere else, in another ordering.
    pub fn seek(&mut self, start: ReadStart, generation: u64) {
        let begun = self.lookup != Some(Lookup::Begin);
        *self = Self {
            turn: self.turn,
            since: self.since,
            lookup: self.lookup.filter(|_| !begun),
            progress: Progress {
                skipped_to: None,
                ..self.progress
            },
            ..Self::new(start, generation, self.longest_pause)
        };
    }

    /// Whether something can be begun now.
    pub fn is_due(&self, now: Instant) -> bool {
        self.activity == Activity::Idle && self.resume_at.is_none_or(|at| at <= now)
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
        self.activity = Activity::Idle;
        self.resume_at = None;
        self.told = false;
        self.refusals = 0;
        self.rerouted = 0;
        self.backoff.reset();
    }

    /// Asks for the route again; the second time in a row after a pause.
    pub fn reroute(&mut self, now: Instant) {
        self.route = None;
        self.activity = Activity::Idle;
        self.rerouted += 1;
        if self.rerouted > 1 {
            self.resume_at = Some(now + self.next_pause());
        }
    }

    /// Tries again after a pause. True the first time in a row.
    pub fn pause(&mut self, now: Instant) -> bool {
        self.activity = Activity::Idle;
        self.resume_at = Some(now + self.next_pause());
        !std::mem::replace(&mut self.told, true)
    }

    fn next_pause(&mut self) -> Duration {
        self.backoff.next_doubling().min(self.longest_pause)
    }

    /// Was refused for good. True when that was once too often and the partition has stopped.
    pub fn refused(&mut self, now: Instant) -> bool {
        self.refusals += 1;
        self.pause(now);
        if self.refusals >= LASTING_REFUSALS {
            self.activity = Activity::Stopped;
        }
        self.activity == Activity::Stopped
    }
}
