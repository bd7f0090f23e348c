//! From one view to the next, by quorum only.
//!
//! A replica that misses its primary asks for the next view and stays where it is; a replica that cannot hear anybody
//! changes nothing by asking. Once a view-change quorum asks, each of them leaves its view, writes that down, and sends its
//! vote to the primary of the new view, which judges them ([`vote`](crate::vote)).

use super::adoption::Adoption;
use super::{Effects, Now, Replica, Status, Wish};
use crate::message::{Kind, ViewLog};
use crate::planted::{self, Bug};
use crate::vote::{Verdict, Vote, judge};
use crate::{Ending, LogEnd, PrepareHeader};

impl Replica {
    /// When the replica wants to be stepped without an input, in microseconds of [`Now::monotonic`]. A group of one waits
    /// for nothing but its disk.
    pub fn next_deadline(&self) -> Option<u64> {
        if self.state.replica_count == 1 || self.fenced.is_some() {
            return None;
        }
        let timing = &self.config.timing;
        let mut next = u64::MAX;
        let mut at = |deadline: u64| next = next.min(deadline);
        if self.is_primary() {
            at(self.silence_deadline());
            let head = self.op();
            let me = usize::from(self.state.replica);
            for (_, peer) in self.peers.iter().enumerate().filter(|(index, _)| *index != me) {
                at(peer.beat);
                if let Some(since) = peer.waits_since(head) {
                    at(since.saturating_add(timing.prepare_retransmit));
                }
            }
            if let Some(hand_over) = self.hand_over {
                at(hand_over.deadline);
            }
            return Some(next);
        }
        if self.wish != 0 || self.status == Status::ViewChange {
            at(self.timers.retransmit);
        }
        match self.status {
            Status::Normal | Status::Adopting => at(self.silence_deadline()),
            Status::ViewChange => {
                let timeout = timing.view_change_status;
                at(self.timers.since + timeout + self.jitter(timeout));
            }
            Status::Recovering => at(self.timers.probe),
        }
        if self.wants_repair() || self.is_fetching() {
            at(self.timers.repair);
        }
        Some(next)
    }

    /// When a primary has heard too few others, or a backup nothing of its primary, for too long.
    fn silence_deadline(&self) -> u64 {
        let timeout = self.config.timing.heartbeat_timeout;
        if !self.is_primary() {
            let last = self.timers.primary_heard.max(self.timers.since);
            return if self.wish == 0 {
                last + timeout + self.jitter(timeout)
            } else {
                u64::MAX
            };
        }
        let me = usize::from(self.state.replica);
        let mut heard = [u64::MAX; crate::quorum::REPLICAS_MAX as usize];
        for (index, peer) in self.peers.iter().enumerate() {
            heard[index] = if index == me { u64::MAX } else { peer.heard };
        }
        let count = self.peers.len();
        heard[..count].sort_unstable_by(|a, b| b.cmp(a));
        heard[usize::from(self.quorum.replication) - 1].saturating_add(timeout)
    }

    /// Whether a backup has heard nothing of its primary for too long, and does not yet want another.
    pub(super) fn misses_primary(&self, now: Now) -> bool {
        let waits = matches!(self.status, Status::Normal | Status::Adopting) && self.wish == 0;
        waits && !self.is_primary() && now.monotonic >= self.silence_deadline()
    }

    pub(super) fn tick(&mut self, now: Now, effects: &mut Effects) {
        if self.state.replica_count == 1 {
            return;
        }
        if self.is_primary() {
            return self.tick_primary(now, effects);
        }
        match self.status {
            Status::Normal | Status::Adopting => {
                if self.misses_primary(now) {
                    self.wish_for(now, self.state.view + 1, effects);
                }
            }
            Status::ViewChange => {
                let timeout = self.config.timing.view_change_status;
                if now.monotonic >= self.timers.since + timeout + self.jitter(timeout) {
                    self.timers.since = now.monotonic;
                    self.wish_for(now, self.state.view + 1, effects);
                }
            }
            Status::Recovering => {
                if now.monotonic >= self.timers.probe {
                    self.probe(now, effects);
                }
            }
        }
        if (self.wish != 0 || self.status == Status::ViewChange) && now.monotonic >= self.timers.retransmit {
            self.ask_again(now, effects);
        }
        self.repair_when_due(now, effects);
        self.transfer_when_due(now, effects);
    }

    fn ask_again(&mut self, now: Now, effects: &mut Effects) {
        self.timers.retransmit = now.monotonic + self.config.timing.view_change_retransmit;
        let proposed = if self.wish == 0 { self.state.view } else { self.wish };
        let kind = Kind::StartViewChange {
            proposed,
            hand_over: false,
        };
        self.broadcast(&kind, effects);
        if self.status == Status::ViewChange {
            self.send_vote(now, effects);
        }
        self.count_wishes(now, effects);
    }

    /// Asks for a view, together with whoever else asks for one.
    pub(super) fn wish_for(&mut self, now: Now, view: u32, effects: &mut Effects) {
        let newest = self.peers.iter().map(|peer| peer.wish.view).max().unwrap_or(0);
        // Wishes that have gone further are joined; otherwise replicas would run after one another.
        self.wish = self.wish.max(view).max(newest);
        self.ask_again(now, effects);
    }

    pub(super) fn on_start_view_change(
        &mut self,
        now: Now,
        from: u8,
        view: u32,
        proposed: u32,
        hand_over: bool,
        effects: &mut Effects,
    ) {
        self.peers[usize::from(from)].wish = Wish {
            view: proposed,
            at: now.monotonic,
        };
        let follows = hand_over
            && view == self.state.view
            && from == self.primary_of(view)
            && self.status == Status::Normal
            && proposed > view;
        if from == self.primary_of(self.state.view) && proposed > self.state.view {
            // It wants to be replaced: it does not rest.
            self.rests_until = 0;
        }
        if follows {
            return self.wish_for(now, proposed, effects);
        }
        if view > self.state.view {
            // A quorum has left for that view, and the sender cannot come back: without company it would be lost.
            return self.enter_view_change(now, view, effects);
        }
        if proposed <= self.state.view {
            // It has missed that the view it wants, or a later one, has started.
            if self.is_primary() && proposed > 0 {
                self.send_start_view(from, 0, effects);
            }
            return;
        }
        if self.misses_primary(now) {
            // Its own search was put off; with company it goes on.
            return self.wish_for(now, proposed, effects);
        }
        self.count_wishes(now, effects);
    }

    /// Leaves the view once a quorum wants a later one.
    pub(super) fn count_wishes(&mut self, now: Now, effects: &mut Effects) {
        let expires = self
            .config
            .timing
            .heartbeat_timeout
            .max(2 * self.config.timing.view_change_retransmit);
        let mut wishes = [0; crate::quorum::REPLICAS_MAX as usize];
        for (index, peer) in self.peers.iter().enumerate() {
            let own = index == usize::from(self.state.replica);
            let fresh = now.monotonic < peer.wish.at.saturating_add(expires);
            let wish = if own { self.wish } else { peer.wish.view };
            wishes[index] = if own || fresh { wish } else { 0 };
        }
        let count = self.peers.len();
        wishes[..count].sort_unstable_by(|a, b| b.cmp(a));
        let wanted = wishes[usize::from(self.quorum.view_change) - 1];
        if wanted > self.state.view {
            self.enter_view_change(now, wanted, effects);
        }
    }

    fn enter_view_change(&mut self, now: Now, view: u32, effects: &mut Effects) {
        self.counters.view_changes += 1;
        self.state.view = view;
        self.leave_view();
        self.votes.fill(None);
        self.missing = None;
        self.stalled = false;
        if self.wish <= view {
            self.wish = 0;
        }
        self.set_status(now, Status::ViewChange, effects);
        self.timers.retransmit = now.monotonic + self.config.timing.view_change_retransmit;
        self.persist(effects);
        // Others may not have a quorum of wishes yet.
        let kind = Kind::StartViewChange {
            proposed: view,
            hand_over: false,
        };
        self.broadcast(&kind, effects);
        if self.view_is_durable() {
            self.send_vote(now, effects);
        }
    }

    /// Forgets what belonged to one view alone.
    pub(super) fn leave_view(&mut self) {
        self.adoption = None;
        self.hand_over = None;
        self.abdicated = false;
        self.rests_until = 0;
        self.stash.clear();
    }

    /// What this replica knows, for the primary of its view.
    fn vote(&self) -> Vote {
        let forgot_views = self.state.ending == Ending::Amnesia;
        let own = |header: &&PrepareHeader| forgot_views || header.view.get() <= self.state.log_view;
        let suffix = (self.committed + 1..=self.op())
            .map_while(|op| self.log.header(op))
            .take_while(own);
        let mut ending = self.state.ending;
        if planted::has(Bug::ForgetEnding) {
            ending = Ending::Blank;
        }
        let mut log_view = self.state.log_view;
        if planted::has(Bug::IgnoreLogView) {
            log_view = 0;
        }
        Vote {
            log_view,
            history: self.state.history,
            committed: self.committed_end(),
            commit_max: self.commit_max,
            suffix: suffix.copied().collect(),
            ending,
        }
    }

    pub(super) fn send_vote(&mut self, now: Now, effects: &mut Effects) {
        if self.status != Status::ViewChange || !self.view_is_durable() || self.adoption.is_some() {
            return;
        }
        let vote = self.vote();
        let primary = self.primary_of(self.state.view);
        if primary == self.state.replica {
            self.votes[usize::from(primary)] = Some(vote);
            self.judge(now, effects);
        } else {
            self.send(primary, Kind::DoViewChange(Box::new(vote)), effects);
        }
    }

    pub(super) fn on_do_view_change(&mut self, now: Now, from: u8, view: u32, vote: Vote, effects: &mut Effects) {
        if self.primary_of(view) != self.state.replica {
            self.counters.misrouted += 1;
            return;
        }
        if view > self.state.view {
            // A vote is only cast once a quorum wants the view.
            self.enter_view_change(now, view, effects);
        }
        if view < self.state.view {
            return;
        }
        if self.is_primary() {
            return self.send_start_view(from, 0, effects);
        }
        if self.status == Status::ViewChange && self.adoption.is_none() {
            self.votes[usize::from(from)] = Some(vote);
            self.judge(now, effects);
        }
    }

    pub(super) fn judge(&mut self, now: Now, effects: &mut Effects) {
        let leads = self.primary_of(self.state.view) == self.state.replica;
        let own = self.votes[usize::from(self.state.replica)].is_some();
        if !leads || !own || self.status != Status::ViewChange || self.adoption.is_some() {
            return;
        }
        match judge(self.quorum, &self.votes, self.accept_loss) {
            Verdict::Wait(missing) => self.missing = Some(missing),
            Verdict::Stalled(missing) => {
                self.missing = Some(missing);
                self.stalled = true;
            }
            Verdict::Start { source, head, lost } => {
                let history = self.votes.iter().flatten().map(|vote| vote.history).max().unwrap_or(0);
                let Some(vote) = self.votes[usize::from(source)].take() else {
                    return;
                };
                let kept = head.saturating_sub(vote.committed.op) as usize;
                let mut suffix = vote.suffix;
                suffix.truncate(kept);
                let log = ViewLog {
                    nonce: 0,
                    // Named after the view, which decides once: who decided before and is gone may have taken the next.
                    history: if lost {
                        (history + 1).max(u64::from(self.state.view))
                    } else {
                        history
                    },
                    committed: vote.committed,
                    suffix,
                };
                self.missing = None;
                self.stalled = false;
                self.accept_loss = false;
                self.begin_adoption(now, Adoption::new(log, source), effects);
            }
        }
    }

    /// The state is on disk: what waited for it may be said now.
    pub(super) fn state_persisted(&mut self, now: Now, effects: &mut Effects) {
        if self.persisted.view == self.state.view && self.status == Status::ViewChange {
            self.send_vote(now, effects);
        }
        self.begin_transfer(now, effects);
        self.continue_adoption(now, effects);
        self.emit_ack(now, effects);
    }

    /// Tells a backup the log of this view.
    pub(super) fn send_start_view(&self, to: u8, nonce: u128, effects: &mut Effects) {
        let committed = self.committed_end();
        let suffix = (committed.op + 1..=self.op()).filter_map(|op| self.log.header(op));
        let log = ViewLog {
            nonce,
            history: self.state.history,
            committed,
            suffix: suffix.copied().collect(),
        };
        self.send(to, Kind::StartView(Box::new(log)), effects);
    }

    pub(super) fn on_request_start_view(&mut self, now: Now, from: u8, nonce: u128, effects: &mut Effects) {
        self.peers[usize::from(from)].rests = false;
        if self.is_primary() && self.is_whole() {
            self.send_start_view(from, nonce, effects);
        } else if self.status == Status::Normal && from == self.primary_of(self.state.view) && self.wish == 0 {
            // The primary asks who leads: it was restarted, and does not.
            self.wish_for(now, self.state.view + 1, effects);
        }
    }

    pub(super) fn on_start_view(&mut self, now: Now, from: u8, view: u32, log: ViewLog, effects: &mut Effects) {
        if from != self.primary_of(view) {
            self.counters.misrouted += 1;
            return;
        }
        let known = view == self.state.view && self.status == Status::Normal && self.persisted.log_view == view;
        if view < self.state.view {
            return;
        }
        if known {
            self.timers.primary_heard = now.monotonic;
            return self.emit_ack(now, effects);
        }
        // A replica that may have forgotten what it acknowledged in this very view needs an answer younger than itself.
        if view == self.state.log_view && log.nonce <= self.nonce_floor {
            return;
        }
        if view == self.state.view && self.adoption.as_ref().is_some_and(|own| own.log.head() >= log.head()) {
            return;
        }
        self.state.view = view;
        self.leave_view();
        self.wish = 0;
        self.timers.primary_heard = now.monotonic;
        self.set_status(now, Status::Adopting, effects);
        self.persist(effects);
        self.begin_adoption(now, Adoption::new(log, from), effects);
    }

    /// A later view exists: asks its primary for the log.
    pub(super) fn ask_for_view(&mut self, now: Now, view: u32, effects: &mut Effects) {
        if now.monotonic < self.timers.probe && self.status != Status::Recovering {
            return;
        }
        self.timers.probe = now.monotonic + self.config.timing.request_start_view / 4;
        let primary = self.primary_of(view);
        if primary != self.state.replica {
            self.nonce += 1;
            self.send(primary, Kind::RequestStartView { nonce: self.nonce }, effects);
        }
    }

    /// A restarted replica asks everybody for the current view; when nobody answers, it wants the next one.
    pub(super) fn probe(&mut self, now: Now, effects: &mut Effects) {
        self.timers.probe = now.monotonic + self.config.timing.request_start_view;
        self.nonce += 1;
        self.broadcast(&Kind::RequestStartView { nonce: self.nonce }, effects);
        self.probes += 1;
        if self.probes > self.config.view_probes && self.wish <= self.state.view {
            self.wish_for(now, self.state.view + 1, effects);
        }
    }

    /// Begins to ask for the current view again, as after a restart.
    pub(super) fn recover_view(&mut self, now: Now, effects: &mut Effects) {
        self.leave_view();
        self.probes = 0;
        self.nonce_floor = self.nonce;
        self.set_status(now, Status::Recovering, effects);
        self.probe(now, effects);
    }

    /// Position, checksum and timestamp of the newest prepare of the log.
    pub fn log_end(&self) -> LogEnd {
        self.log.head()
    }
}
