//! Makes the own log the one a view starts with: at the new primary before it says so, at a backup after.
//!
//! What the own log has in common with the view's log stays; where the two are known to differ, the own one is cut, and
//! what is missing comes from others. Nothing is cut before it is known to differ: it may be one of the few copies of a
//! committed prepare. Only when all of it is held does the log belong to the view, and that is written down before
//! anything is acknowledged in it.

use super::{Effect, Effects, Now, Replica, Status};
use crate::Ending;
use crate::message::ViewLog;
use crate::planted::{self, Bug};

/// A log that is being completed.
#[derive(Debug)]
pub(super) struct Adoption {
    pub log: ViewLog,
    /// Who has all of it.
    pub source: u8,
    /// Newest position up to which the own log is known to be the view's.
    pub verified: u64,
    /// It is complete, and that is being written down.
    finishing: bool,
}

impl Adoption {
    pub fn new(log: ViewLog, source: u8) -> Self {
        Self {
            log,
            source,
            verified: 0,
            finishing: false,
        }
    }
}

impl Replica {
    pub(super) fn begin_adoption(&mut self, now: Now, mut adoption: Adoption, effects: &mut Effects) {
        adoption.verified = self.committed.min(adoption.log.head());
        self.timers.repair = now.monotonic;
        let diverged = adoption.log.history > self.state.history
            && (self.committed > adoption.log.head()
                || adoption
                    .log
                    .checksum(self.committed)
                    .is_some_and(|checksum| self.log.checksum(self.committed) != Some(checksum)));
        if planted::has(Bug::TruncateCommitted) {
            self.truncate(self.commit, effects);
        }
        let source = adoption.source;
        if self.committed > adoption.log.head() && !diverged {
            // The view has gone further than its log when this was sent, and this replica has more of it.
            return self.recover_view(now, effects);
        }
        self.adoption = Some(adoption);
        if diverged {
            // The group has given up what this replica took for committed.
            return self.start_transfer(now, source, true, effects);
        }
        self.continue_adoption(now, effects);
    }

    /// Takes over what has arrived, and becomes normal once nothing is missing.
    pub(super) fn continue_adoption(&mut self, now: Now, effects: &mut Effects) {
        if self.transfer.is_some() || self.fenced.is_some() {
            return;
        }
        let Some(mut adoption) = self.adoption.take() else {
            return;
        };
        let before = adoption.verified;
        self.verify(&mut adoption, effects);
        if adoption.verified > before {
            self.timers.since = now.monotonic;
        }
        if planted::has(Bug::StartWithoutBodies) && adoption.verified < adoption.log.head() {
            let kept = adoption.verified.saturating_sub(adoption.log.committed.op) as usize;
            adoption.log.suffix.truncate(kept);
            self.truncate(adoption.verified.max(self.commit), effects);
        }
        let committed = adoption.log.committed.op;
        self.commit_max = self.commit_max.max(committed);
        self.committed = self.committed.max(committed.min(adoption.verified));
        self.apply_commit(effects);
        let head = adoption.log.head();
        let complete =
            adoption.verified == head && self.op() == head && self.truncating.is_none() && self.log.held() >= head;
        if complete && !adoption.finishing {
            adoption.finishing = true;
            self.state.log_view = self.state.view;
            self.state.ending = Ending::Blank;
            if adoption.log.history > self.state.history {
                // What the history that ends here had committed after this log is lost: nobody has it to give.
                self.commit_max = self.committed;
                self.state.history = adoption.log.history;
            }
            self.persist(effects);
        }
        let written = self.persisted == self.state || planted::has(Bug::SkipViewPersist);
        if !(adoption.finishing && written) {
            self.adoption = Some(adoption);
            return self.repair_when_due(now, effects);
        }
        // Whoever decided it may not have come to say so.
        if self.state.history > self.told_history {
            self.told_history = self.state.history;
            effects.push(Effect::HistoryLost {
                history: self.state.history,
            });
        }
        self.become_normal(now, effects);
    }

    fn become_normal(&mut self, now: Now, effects: &mut Effects) {
        self.wish = 0;
        self.probes = 0;
        self.timers.primary_heard = now.monotonic;
        self.view_start = self.op();
        self.set_status(now, Status::Normal, effects);
        effects.push(Effect::Role);
        if self.is_primary() {
            self.lead(now, effects);
        } else {
            self.append_stashed(effects);
        }
        self.advance(now, effects);
        self.emit_ack(now, effects);
    }

    /// Compares the own log with the view's, position by position, as far as what is here allows.
    fn verify(&mut self, adoption: &mut Adoption, effects: &mut Effects) {
        let log = &adoption.log;
        let head = log.head();
        let mut verified = adoption.verified.max(self.committed.min(head));
        let committed = log.committed;
        // A prefix is known by its last checksum.
        if committed.op > verified && self.log.checksum(committed.op) == Some(committed.checksum) {
            verified = committed.op;
        }
        while verified < head {
            let op = verified + 1;
            let own = self.log.checksum(op).filter(|_| op <= self.op());
            let wanted = log.checksum(op);
            if let (Some(own), Some(wanted)) = (own, wanted) {
                if own == wanted || planted::has(Bug::MatchByOp) {
                    verified = op;
                    continue;
                }
                if !self.truncate(verified, effects) {
                    break;
                }
            }
            let Some((prepare, known_committed)) = self.stash.take(op) else {
                break;
            };
            let checksum = prepare.header.checksum.get();
            let vouched = wanted.map_or(known_committed, |wanted| wanted == checksum);
            let follows = self.log.checksum(verified) == Some(prepare.header.parent.get());
            if !vouched || !follows {
                break;
            }
            if self.log.checksum(op).filter(|_| op <= self.op()) != Some(checksum) {
                if self.op() >= op && !self.truncate(verified, effects) {
                    break;
                }
                self.append(prepare, effects);
            }
            verified = op;
        }
        if verified == head && self.op() > head {
            self.truncate(head, effects);
        }
        adoption.verified = verified;
        // Prepares of the view itself may already wait behind its log.
        self.stash.forget(verified);
    }

    /// Cuts the log after `op`. False when that would take away what is committed.
    pub(super) fn truncate(&mut self, op: u64, effects: &mut Effects) -> bool {
        if op < self.committed.max(self.commit) && !planted::has(Bug::TruncateCommitted) {
            self.counters.damaged += 1;
            return false;
        }
        let op = op.max(self.commit);
        if self.op() > op {
            self.log.truncate(op);
            self.committed = self.committed.min(op);
            let token = self.token();
            self.truncating = Some(token);
            effects.push(Effect::Truncate { token, op });
        }
        true
    }
}
