//! Which positions are stored when. Positions only move forward within one ordering of one history.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};

use crate::poll::{AutoCommit, Checkpoint, CommitAfter, CommitEvery, CommitPolicy};

#[derive(Debug, Default)]
struct Position {
    /// The ordering its messages are handed out in.
    generation: u64,
    /// The last message handed out.
    handed_out: Option<u64>,
    /// What counts as done and is not stored.
    done: Option<Checkpoint>,
    /// The last position stored in this ordering.
    stored: Option<Checkpoint>,
}

/// The positions of a reader or consumer.
#[derive(Debug)]
pub struct Commits {
    policy: CommitPolicy,
    positions: BTreeMap<u32, Position>,
    /// What was handed out last and is not done: the position, its messages, and whether it ends a batch.
    in_hand: Option<(Checkpoint, u32, bool)>,
    /// Messages done since the last store.
    counted: u32,
    batch_done: bool,
    /// Whether something is owed that nobody has looked at.
    unseen: bool,
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
            unseen: false,
            last_store: Instant::now(),
        }
    }

    fn auto(&self) -> Option<AutoCommit> {
        match self.policy {
            CommitPolicy::Auto(auto) => Some(auto),
            CommitPolicy::Manual | CommitPolicy::OnRead => None,
        }
    }

    /// Whether positions are stored after marks.
    pub fn takes_marks(&self) -> bool {
        self.auto().is_some_and(|auto| auto.after == CommitAfter::Marked)
    }

    /// A new ordering of a partition begins: what is left of the one before is not stored any more.
    pub fn begin(&mut self, partition_id: u32, generation: u64) {
        let position = Position {
            generation,
            ..Position::default()
        };
        self.positions.insert(partition_id, position);
        self.forget_in_hand(partition_id);
    }

    /// A partition is not read any more; what it owes is taken away.
    pub fn end(&mut self, partition_id: u32) -> Option<Checkpoint> {
        self.forget_in_hand(partition_id);
        self.positions.remove(&partition_id)?.done
    }

    fn forget_in_hand(&mut self, partition_id: u32) {
        self.in_hand
            .take_if(|(checkpoint, ..)| checkpoint.partition_id == partition_id);
    }

    /// Messages up to this one were handed out.
    pub fn handed_out(&mut self, checkpoint: Checkpoint, messages: u32, last_of_batch: bool) {
        self.positions.entry(checkpoint.partition_id).or_default().handed_out = Some(checkpoint.offset);
        match self.auto().map(|auto| auto.after) {
            Some(CommitAfter::Delivery) => self.done(checkpoint, messages, last_of_batch),
            Some(CommitAfter::Processing) => self.in_hand = Some((checkpoint, messages, last_of_batch)),
            _ => {}
        }
    }

    /// The application asked for the next message: the one before is processed.
    pub fn asked_for_next(&mut self) {
        if let Some((checkpoint, messages, last_of_batch)) = self.in_hand.take() {
            self.done(checkpoint, messages, last_of_batch);
        }
    }

    /// The application could not process what it was handed last.
    pub fn taken_back(&mut self, partition_id: u32, before: Option<u64>) {
        self.forget_in_hand(partition_id);
        if let Some(position) = self.positions.get_mut(&partition_id) {
            position.handed_out = before;
        }
    }

    /// The application marked a message.
    pub fn marked(&mut self, checkpoint: Checkpoint) {
        if self.takes_marks() {
            let before = self.positions.get(&checkpoint.partition_id);
            let before = before.and_then(|position| position.done.or(position.stored));
            let messages = before.map_or(1, |before| checkpoint.offset.saturating_sub(before.offset));
            self.done(checkpoint, u32::try_from(messages).unwrap_or(u32::MAX), true);
        }
    }

    fn done(&mut self, checkpoint: Checkpoint, messages: u32, last_of_batch: bool) {
        let owed = |position: &Position| position.done.is_none_or(|done| beyond(&checkpoint, &done));
        if self.advances(&checkpoint) && self.positions.get(&checkpoint.partition_id).is_some_and(owed) {
            let position = self.positions.entry(checkpoint.partition_id).or_default();
            self.unseen |= position.done.replace(checkpoint).is_none();
            self.counted = self.counted.saturating_add(messages);
            self.batch_done |= last_of_batch;
        }
    }

    /// Whether a position belongs to the present ordering and lies beyond everything stored in it.
    pub fn advances(&self, checkpoint: &Checkpoint) -> bool {
        let Some(position) = self.positions.get(&checkpoint.partition_id) else {
            return true;
        };
        let of_now = checkpoint.ordering.generation == 0 || checkpoint.ordering.generation == position.generation;
        of_now && position.stored.is_none_or(|stored| beyond(checkpoint, &stored))
    }

    /// A position was stored.
    pub fn stored(&mut self, checkpoint: Checkpoint) {
        let Some(position) = self.positions.get_mut(&checkpoint.partition_id) else {
            return;
        };
        let of_now = checkpoint.ordering.generation == 0 || checkpoint.ordering.generation == position.generation;
        if of_now && position.stored.is_none_or(|stored| beyond(&checkpoint, &stored)) {
            position.stored = Some(checkpoint);
            position.done.take_if(|done| !beyond(done, &checkpoint));
        }
    }

    /// A position that was due could not be stored: it is owed again, unless its ordering is over.
    pub fn not_stored(&mut self, checkpoint: Checkpoint) {
        if let Some(position) = self.positions.get_mut(&checkpoint.partition_id)
            && position.generation == checkpoint.ordering.generation
        {
            position.done.get_or_insert(checkpoint);
        }
    }

    /// When positions are stored by time, if there is anything to store.
    pub fn due_at(&self) -> Option<Instant> {
        let auto = self.auto().filter(|auto| !auto.interval.is_zero())?;
        let owed = self.positions.values().any(|position| position.done.is_some());
        owed.then(|| self.last_store + Duration::from(auto.interval))
    }

    /// Whether the task should look: something became due, or is owed that was not owed before.
    pub fn needs_attention(&self) -> bool {
        self.unseen || self.is_due_by_count()
    }

    fn is_due_by_count(&self) -> bool {
        match self.auto().and_then(|auto| auto.every) {
            Some(CommitEvery::Message) => self.counted >= 1,
            Some(CommitEvery::Messages(count)) => self.counted >= count,
            Some(CommitEvery::Batch) => self.batch_done,
            None => false,
        }
    }

    /// Takes the positions that are to be stored now.
    pub fn take_due(&mut self, everything: bool) -> Vec<Checkpoint> {
        self.unseen = false;
        if self.auto().is_none() {
            return Vec::new();
        }
        let by_count = self.is_due_by_count();
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
        let owed = self.positions.values_mut().filter_map(|position| position.done.take());
        owed.collect()
    }

    /// The offset of the last message handed out of a partition.
    pub fn last_handed_out(&self, partition_id: u32) -> Option<u64> {
        self.positions.get(&partition_id)?.handed_out
    }

    /// The offset stored last for a partition.
    pub fn last_stored(&self, partition_id: u32) -> Option<u64> {
        Some(self.positions.get(&partition_id)?.stored?.offset)
    }
}

/// Whether a position lies beyond another: in a newer history, or further on in the same.
fn beyond(checkpoint: &Checkpoint, other: &Checkpoint) -> bool {
    let (new, old) = (checkpoint.context.incarnation, other.context.incarnation);
    new > old || (new == old && checkpoint.offset > other.offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::Ordering;
    use iggy_protocol::{IggyDuration, PartitionContext};

    fn at(offset: u64) -> Checkpoint {
        in_generation(offset, 1)
    }

    fn in_generation(offset: u64, generation: u64) -> Checkpoint {
        Checkpoint {
            ordering: Ordering { reader: 1, generation },
            ..Checkpoint::new(1, offset, PartitionContext::from_route(7, 9))
        }
    }

    fn auto(every: Option<CommitEvery>, after: CommitAfter, seconds: u64) -> Commits {
        let mut commits = Commits::new(CommitPolicy::Auto(AutoCommit {
            interval: IggyDuration::from_secs(seconds),
            every,
            after,
        }));
        commits.begin(1, 1);
        commits
    }

    #[tokio::test(start_paused = true)]
    async fn given_commits_after_processing_when_the_next_is_asked_for_should_store_the_one_before() {
        let mut commits = auto(Some(CommitEvery::Messages(2)), CommitAfter::Processing, 0);
        commits.handed_out(at(0), 1, false);
        commits.asked_for_next();
        assert_eq!(commits.take_due(false), []);
        commits.handed_out(at(1), 1, false);
        assert_eq!(commits.take_due(false), [], "the second is still in hand");
        commits.asked_for_next();
        assert_eq!(commits.take_due(false), [at(1)]);
        commits.handed_out(at(2), 1, true);
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
        commits.handed_out(at(4), 5, false);
        assert_eq!(commits.take_due(false), []);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(commits.take_due(false), [at(4)]);
    }

    #[tokio::test(start_paused = true)]
    async fn given_marks_when_they_come_out_of_order_should_store_the_furthest() {
        let mut commits = auto(Some(CommitEvery::Messages(5)), CommitAfter::Marked, 0);
        commits.handed_out(at(9), 10, true);
        commits.marked(at(3));
        commits.marked(at(1));
        assert_eq!(commits.take_due(false), [], "two marks, of four messages at most");
        commits.marked(at(8));
        assert_eq!(commits.take_due(false), [at(8)]);
    }

    #[tokio::test(start_paused = true)]
    async fn given_a_position_below_the_last_when_committed_should_not_advance() {
        let mut commits = Commits::new(CommitPolicy::Manual);
        commits.begin(1, 1);
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

    #[tokio::test(start_paused = true)]
    async fn given_a_new_ordering_when_it_begins_should_drop_positions_of_the_one_before() {
        let mut commits = auto(Some(CommitEvery::Message), CommitAfter::Delivery, 0);
        commits.handed_out(at(50), 1, true);
        commits.begin(1, 2);
        assert_eq!(commits.take_due(true), []);
        assert!(!commits.advances(&at(51)), "of the ordering before");
        assert!(commits.advances(&in_generation(0, 2)));
        commits.not_stored(at(50));
        assert_eq!(commits.take_due(true), []);
        commits.not_stored(in_generation(3, 2));
        assert_eq!(commits.take_due(true), [in_generation(3, 2)], "owed again");
    }
}
