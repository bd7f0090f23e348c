//! Which positions are stored when. Positions only move forward within one history.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};

use crate::poll::{AutoCommit, Checkpoint, CommitAfter, CommitEvery, CommitPolicy, PollOptions};

#[derive(Debug, Default)]
struct Position {
    /// The last message handed out.
    handed_out: Option<Checkpoint>,
    /// What counts as done and is not stored.
    done: Option<Checkpoint>,
    /// The last position stored.
    stored: Option<Checkpoint>,
}

/// The positions of a consumer.
#[derive(Debug)]
pub struct Commits {
    policy: CommitPolicy,
    positions: BTreeMap<u32, Position>,
    /// The message handed out last, not yet done.
    in_hand: Option<(Checkpoint, bool)>,
    /// Messages done since the last store.
    counted: u32,
    batch_done: bool,
    last_store: Instant,
}

impl Commits {
    /// Nothing read yet.
    pub fn new(policy: CommitPolicy) -> Self {
        Self {
            policy,
            positions: BTreeMap::new(),
            in_hand: None,
            counted: 0,
            batch_done: false,
            last_store: Instant::now(),
        }
    }

    fn auto(&self) -> Option<AutoCommit> {
        match self.policy {
            CommitPolicy::Auto(auto) => Some(auto),
            CommitPolicy::Manual | CommitPolicy::OnRead => None,
        }
    }

    /// The options of one poll: automatic commits are the consumer's own business.
    pub fn poll_options(&self, options: PollOptions) -> PollOptions {
        match self.policy {
            CommitPolicy::Auto(_) => PollOptions {
                commit: CommitPolicy::Manual,
                ..options
            },
            _ => options,
        }
    }

    /// A message was handed out.
    pub fn handed_out(&mut self, checkpoint: Checkpoint, last_of_batch: bool) {
        self.positions.entry(checkpoint.partition_id).or_default().handed_out = Some(checkpoint);
        match self.auto().map(|auto| auto.after) {
            Some(CommitAfter::Delivery) => self.done(checkpoint, last_of_batch),
            Some(CommitAfter::Processing) => self.in_hand = Some((checkpoint, last_of_batch)),
            _ => {}
        }
    }

    /// The application asked for the next message: the one before is processed.
    pub fn asked_for_next(&mut self) {
        if let Some((checkpoint, last_of_batch)) = self.in_hand.take() {
            self.done(checkpoint, last_of_batch);
        }
    }

    /// The application marked a message.
    pub fn marked(&mut self, checkpoint: Checkpoint) {
        if self.auto().is_some_and(|auto| auto.after == CommitAfter::Marked) {
            self.done(checkpoint, false);
        }
    }

    fn done(&mut self, checkpoint: Checkpoint, last_of_batch: bool) {
        if self.advances(&checkpoint) {
            self.positions.entry(checkpoint.partition_id).or_default().done = Some(checkpoint);
            self.counted = self.counted.saturating_add(1);
            self.batch_done |= last_of_batch;
        }
    }

    /// Whether a position lies beyond everything stored and done in its history.
    pub fn advances(&self, checkpoint: &Checkpoint) -> bool {
        let Some(position) = self.positions.get(&checkpoint.partition_id) else {
            return true;
        };
        let beyond = |other: &Option<Checkpoint>| {
            other.is_none_or(|other| {
                let newer_history = checkpoint.context.incarnation > other.context.incarnation;
                let same_history = checkpoint.context.incarnation == other.context.incarnation;
                newer_history || (same_history && checkpoint.offset > other.offset)
            })
        };
        beyond(&position.stored)
    }

    /// A position was stored.
    pub fn stored(&mut self, checkpoint: Checkpoint) {
        self.positions.entry(checkpoint.partition_id).or_default().stored = Some(checkpoint);
    }

    /// When positions are stored by time, if there is anything to store.
    pub fn due_at(&self) -> Option<Instant> {
        let auto = self.auto().filter(|auto| !auto.interval.is_zero())?;
        let owed = self.positions.values().any(|position| position.done.is_some());
        owed.then(|| self.last_store + Duration::from(auto.interval))
    }

    /// Takes the positions that are to be stored now; they count as stored from here on.
    pub fn take_due(&mut self, everything: bool) -> Vec<Checkpoint> {
        let Some(auto) = self.auto() else { return Vec::new() };
        let by_count = match auto.every {
            Some(CommitEvery::Message) => self.counted >= 1,
            Some(CommitEvery::Messages(count)) => self.counted >= count,
            Some(CommitEvery::Batch) => self.batch_done,
            None => false,
        };
        let by_time = self.due_at().is_some_and(|due| Instant::now() >= due);
        if !everything && !by_count && !by_time {
            return Vec::new();
        }
        if everything {
            self.in_hand = None;
        }
        self.counted = 0;
        self.batch_done = false;
        self.last_store = Instant::now();
        let take = |position: &mut Position| {
            let done = position.done.take()?;
            position.stored = Some(done);
            Some(done)
        };
        self.positions.values_mut().filter_map(take).collect()
    }

    /// The offset of the last message handed out of a partition.
    pub fn last_handed_out(&self, partition_id: u32) -> Option<u64> {
        self.positions
            .get(&partition_id)?
            .handed_out
            .map(|checkpoint| checkpoint.offset)
    }

    /// A partition is read from somewhere else: what was done before is not stored any more.
    pub fn restarted(&mut self, partition_id: u32) {
        self.positions.remove(&partition_id);
        if self
            .in_hand
            .is_some_and(|(checkpoint, _)| checkpoint.partition_id == partition_id)
        {
            self.in_hand = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iggy_protocol::{IggyDuration, PartitionContext};

    fn at(offset: u64) -> Checkpoint {
        Checkpoint {
            partition_id: 1,
            offset,
            context: PartitionContext::from_route(7, 9),
        }
    }

    fn auto(every: Option<CommitEvery>, after: CommitAfter, seconds: u64) -> Commits {
        Commits::new(CommitPolicy::Auto(AutoCommit {
            interval: IggyDuration::from_secs(seconds),
            every,
            after,
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn given_commits_after_processing_when_the_next_is_asked_for_should_store_the_one_before() {
        let mut commits = auto(Some(CommitEvery::Messages(2)), CommitAfter::Processing, 0);
        commits.handed_out(at(0), false);
        commits.asked_for_next();
        assert_eq!(commits.take_due(false), []);
        commits.handed_out(at(1), false);
        assert_eq!(commits.take_due(false), [], "the second is still in hand");
        commits.asked_for_next();
        assert_eq!(commits.take_due(false), [at(1)]);
        commits.handed_out(at(2), true);
        assert_eq!(
            commits.take_due(true),
            [],
            "what is in hand at shutdown was not processed"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn given_commits_by_time_when_it_comes_should_store_what_is_done() {
        let mut commits = auto(None, CommitAfter::Delivery, 5);
        assert_eq!(commits.due_at(), None, "nothing is owed");
        commits.handed_out(at(4), false);
        assert_eq!(commits.take_due(false), []);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(commits.take_due(false), [at(4)]);
    }

    #[tokio::test(start_paused = true)]
    async fn given_a_position_below_the_last_when_committed_should_not_advance() {
        let mut commits = Commits::new(CommitPolicy::Manual);
        commits.stored(at(10));
        assert!(!commits.advances(&at(10)));
        assert!(commits.advances(&at(11)));
        let recreated = Checkpoint {
            context: PartitionContext::from_route(8, 9),
            ..at(0)
        };
        assert!(commits.advances(&recreated), "a new history starts again");
        let older = Checkpoint {
            context: PartitionContext::from_route(6, 9),
            ..at(99)
        };
        assert!(!commits.advances(&older));
    }
}
