//! Gets what is missing: single prepares from the memory of others, and when they no longer have them, a whole state.

use super::{Effect, Effects, Now, Replica, Status};
use crate::message::Kind;
use crate::prepare::Prepare;
use crate::{Ending, LogEnd};
use std::collections::BTreeMap;

/// Prepares kept aside because others before them are missing.
pub(super) const STASH_MAX: usize = 1024;

/// Prepares that cannot be appended yet.
#[derive(Debug, Default)]
pub(super) struct Stash {
    kept: BTreeMap<u64, (Prepare, bool)>,
}

impl Stash {
    /// Keeps a prepare after `floor`; `committed` says that its sender knows it to be committed.
    pub fn keep(&mut self, prepare: Prepare, committed: bool, floor: u64) {
        let op = prepare.header.op.get();
        if op <= floor || op > floor + STASH_MAX as u64 {
            return;
        }
        let kept = self.kept.get(&op);
        if kept.is_none_or(|(known, known_committed)| {
            !known_committed && (committed || known.header.view.get() <= prepare.header.view.get())
        }) {
            self.kept.insert(op, (prepare, committed));
        }
    }

    pub fn take(&mut self, op: u64) -> Option<(Prepare, bool)> {
        self.kept.remove(&op)
    }

    /// Forgets what is at or before `op`.
    pub fn forget(&mut self, op: u64) {
        while let Some(first) = self.kept.first_entry() {
            if *first.key() > op {
                break;
            }
            first.remove();
        }
    }

    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// Oldest position kept.
    pub fn first(&self) -> Option<u64> {
        self.kept.keys().next().copied()
    }
}

/// A whole state on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    from: u8,
    from_scratch: bool,
    /// Whether the host was told. Before that, it must be on disk that the log here is no longer complete.
    fetching: bool,
}

impl Replica {
    /// First position that is missing, and the last one that may be asked for; `None` when nothing is.
    fn missing_range(&self) -> Option<(u64, u64)> {
        if self.transfer.is_some() {
            return None;
        }
        if let Some(adoption) = &self.adoption {
            let head = adoption.log.head();
            return (adoption.verified < head).then_some((adoption.verified + 1, head));
        }
        if self.status != Status::Normal || self.is_primary() {
            return None;
        }
        let next = self.op() + 1;
        let newest = self.stash.first().map_or(0, |first| first - 1).max(self.commit_max);
        (newest >= next).then_some((next, newest))
    }

    pub(super) fn wants_repair(&self) -> bool {
        self.missing_range().is_some()
    }

    pub(super) fn repair_when_due(&mut self, now: Now, effects: &mut Effects) {
        let Some((first, last)) = self.missing_range() else {
            return;
        };
        if now.monotonic < self.timers.repair {
            return;
        }
        self.timers.repair = now.monotonic + self.config.timing.repair_retry;
        self.repair_attempts = self.repair_attempts.wrapping_add(1);
        let to = self.repair_source();
        let kind = Kind::RequestPrepares {
            from_op: first,
            to_op: last.min(first + self.config.repair_chunk - 1),
        };
        self.send(to, kind, effects);
    }

    /// Whom to ask: whoever surely has it every other time, and the rest in turn.
    fn repair_source(&self) -> u8 {
        let known = match &self.adoption {
            Some(adoption) => adoption.source,
            None => self.primary_of(self.state.view),
        };
        let attempt = self.repair_attempts;
        if attempt % 2 == 1 && known != self.state.replica {
            return known;
        }
        let others = u32::from(self.state.replica_count) - 1;
        let step = 1 + (attempt / 2) % others;
        ((u32::from(self.state.replica) + step) % u32::from(self.state.replica_count)) as u8
    }

    pub(super) fn on_request_prepares(&mut self, from: u8, from_op: u64, to_op: u64, effects: &mut Effects) {
        let base = self.log.base().op;
        if from_op <= base {
            // Below what is in memory there is only the state.
            return self.send(from, Kind::RangeEvicted { oldest_op: base + 1 }, effects);
        }
        let last = to_op
            .min(self.op())
            .min(from_op.saturating_add(self.config.repair_chunk - 1));
        let mut bytes = 0;
        for op in from_op..=last {
            let Some(prepare) = self.log.get(op) else { break };
            bytes += prepare.size();
            if op > from_op && bytes > self.config.credit_bytes {
                break;
            }
            self.counters.repaired += 1;
            let kind = Kind::RepairPrepare {
                prepare: prepare.clone(),
                committed: op <= self.committed,
            };
            self.send(from, kind, effects);
        }
    }

    pub(super) fn on_repair_prepare(
        &mut self,
        now: Now,
        from: u8,
        view: u32,
        prepare: Prepare,
        committed: bool,
        effects: &mut Effects,
    ) {
        if !self.fits_group(&prepare) {
            self.counters.damaged += 1;
            return;
        }
        let before = self.missing_range();
        if let Some(adoption) = &self.adoption {
            let verified = adoption.verified;
            self.stash.keep(prepare, committed, verified);
            self.continue_adoption(now, effects);
        } else if self.status == Status::Normal && !self.is_primary() {
            // Of what is not committed, only the primary of this very view knows whether it belongs here.
            if !committed && (view != self.state.view || from != self.primary_of(view)) {
                return;
            }
            self.stash.keep(prepare, committed, self.op());
            self.append_stashed(effects);
            self.advance(now, effects);
        } else {
            return;
        }
        // The next part is asked for as soon as this one is here.
        let after = self.missing_range();
        let chunk = self.config.repair_chunk;
        if let (Some((old, _)), Some((new, _))) = (before, after)
            && old / chunk != new / chunk
        {
            self.timers.repair = now.monotonic;
            self.repair_when_due(now, effects);
        }
    }

    pub(super) fn on_range_evicted(&mut self, now: Now, from: u8, oldest_op: u64, effects: &mut Effects) {
        if self.missing_range().is_some_and(|(first, _)| first < oldest_op) {
            self.start_transfer(now, from, false, effects);
        }
    }

    /// Asks for the state of another member. The own log stays until that state has taken its place: the other member may
    /// be lost before, and with it whatever only the two of them hold. Where the group has given the own log up, it is
    /// written down first that this replica vouches for nothing any more.
    pub(super) fn start_transfer(&mut self, now: Now, from: u8, from_scratch: bool, effects: &mut Effects) {
        self.counters.state_transfers += 1;
        self.transfer = Some(Transfer {
            from,
            from_scratch,
            fetching: false,
        });
        if from_scratch {
            self.state.ending = self.state.ending.max(Ending::Damaged);
        }
        if self.status == Status::Normal {
            self.recover_view(now, effects);
        }
        self.persist(effects);
        self.begin_transfer(now, effects);
    }

    pub(super) fn begin_transfer(&mut self, now: Now, effects: &mut Effects) {
        let Some(transfer) = self.transfer.as_mut().filter(|transfer| !transfer.fetching) else {
            return;
        };
        if self.persisted.ending != self.state.ending {
            return;
        }
        transfer.fetching = true;
        let Transfer { from, from_scratch, .. } = *transfer;
        if from_scratch {
            self.committed = self.commit;
            self.truncate(self.commit, effects);
        }
        self.timers.repair = now.monotonic + self.config.timing.repair_retry;
        effects.push(Effect::FetchState { from, from_scratch });
    }

    pub(super) fn is_fetching(&self) -> bool {
        self.transfer.is_some_and(|transfer| transfer.fetching)
    }

    /// Reminds the host of a state that has not come. A host that makes progress goes on with what it does.
    pub(super) fn transfer_when_due(&mut self, now: Now, effects: &mut Effects) {
        let Some(transfer) = self.transfer.filter(|transfer| transfer.fetching) else {
            return;
        };
        if now.monotonic >= self.timers.repair {
            self.timers.repair = now.monotonic + self.config.timing.repair_retry;
            effects.push(Effect::FetchState {
                from: transfer.from,
                from_scratch: transfer.from_scratch,
            });
        }
    }

    pub(super) fn state_failed(&mut self, now: Now) {
        let count = self.state.replica_count;
        let me = self.state.replica;
        if let Some(transfer) = &mut self.transfer {
            transfer.from = (transfer.from + 1) % count;
            if transfer.from == me {
                transfer.from = (transfer.from + 1) % count;
            }
            self.timers.repair = now.monotonic;
        }
    }

    /// The state on its way has another write where the own log has `op`: that one and what follows never were committed.
    pub(super) fn state_differs(&mut self, op: u64, effects: &mut Effects) {
        if self.is_fetching() && op > 0 {
            self.truncate(op - 1, effects);
        }
    }

    /// What the other member has applied is held here, and now known to be committed. What is still missing is asked for
    /// as if there had been no transfer: somebody else has it.
    pub(super) fn state_held(&mut self, now: Now, at: LogEnd, effects: &mut Effects) {
        if at.op > self.commit && self.log.checksum(at.op) != Some(at.checksum) {
            return self.state_failed(now);
        }
        self.transfer = None;
        self.committed = self.committed.max(at.op);
        self.commit_max = self.commit_max.max(at.op);
        self.timers.repair = now.monotonic;
        self.apply_commit(effects);
        self.go_on_after_transfer(now, effects);
    }

    fn go_on_after_transfer(&mut self, now: Now, effects: &mut Effects) {
        if self.adoption.is_some() {
            return self.continue_adoption(now, effects);
        }
        match self.status {
            Status::Recovering => self.probe(now, effects),
            // What was said of the log is no longer all there is to say.
            Status::ViewChange => self.send_vote(now, effects),
            Status::Normal | Status::Adopting => {}
        }
    }

    pub(super) fn state_installed(&mut self, now: Now, at: LogEnd, effects: &mut Effects) {
        let Some(transfer) = self.transfer else { return };
        if at.op < self.commit && !transfer.from_scratch {
            return self.state_failed(now);
        }
        self.transfer = None;
        self.log.reset(at);
        self.truncating = None;
        self.committed = at.op;
        self.commit = at.op;
        self.commit_max = self.commit_max.max(at.op);
        self.timestamp = self.timestamp.max(at.timestamp);
        self.stash.forget(at.op);
        self.timers.repair = now.monotonic;
        match &mut self.adoption {
            // The view has gone further than its log when this replica heard of it.
            Some(adoption) if at.op > adoption.log.head() => return self.recover_view(now, effects),
            Some(adoption) => adoption.verified = at.op,
            None => {}
        }
        self.go_on_after_transfer(now, effects);
    }
}
