//! A started view: the primary orders writes, its backups hold them.
//!
//! The primary sends prepares to each backup on its own, as far as that backup's credit reaches, so that a slow one holds
//! up nobody. A backup's log has no gaps: what comes too early is kept aside.

use super::repair::STASH_MAX;
use super::{Effect, Effects, HandOver, Now, Proposal, Replica, Status};
use crate::message::Kind;
use crate::planted::{self, Bug};
use crate::prepare::{Prepare, PrepareHeader};
use crate::{Barrier, LogEnd};
use zerocopy::little_endian::{U32, U64, U128};

/// Prepares a backup may have been sent and not acknowledged, whatever their size: it bounds what a vote must list.
const UNACKNOWLEDGED_MAX: u64 = 512;
/// Heartbeats of a resting group that may be missed before its backups no longer believe that it rests.
const RESTS_MISSED_MAX: u64 = 3;

/// What a replica knows of another one.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    pub incarnation: u64,
    /// Last sign of life.
    pub heard: u64,
    /// The view it wants, and when it said so.
    pub wish: super::Wish,
    /// Whether it has acknowledged something in this view: until then it may not have its log.
    active: bool,
    acked: u64,
    /// Next position to send.
    next: u64,
    /// When it last acknowledged something new, or was sent something again.
    progress: u64,
    /// When it is due to hear that the primary lives.
    pub beat: u64,
    /// Whether it has said that it has everything, and that all of it is committed.
    pub rests: bool,
}

impl Peer {
    /// Since when it has not acknowledged what there is; `None` when it has.
    pub fn waits_since(&self, head: u64) -> Option<u64> {
        (!self.active || self.acked < head).then_some(self.progress)
    }

    pub fn restarted(&mut self, incarnation: u64) {
        *self = Self {
            incarnation,
            heard: self.heard,
            next: 1,
            ..Self::default()
        };
    }
}

impl Replica {
    /// Everybody has the log of a group that is being created, or this primary has nothing to send yet.
    pub(super) fn start_peers(&mut self) {
        let head = self.op();
        for peer in &mut self.peers {
            peer.active = head == 0;
            peer.acked = 0;
            peer.next = head + 1;
            peer.rests = false;
        }
    }

    pub(super) fn propose(&mut self, now: Now, proposal: Proposal, effects: &mut Effects) {
        debug_assert!(
            proposal.timestamp > self.log.head().timestamp,
            "timestamps rise with the log"
        );
        let parent = self.log.head();
        let header = PrepareHeader {
            parent: U128::new(parent.checksum),
            cluster: U128::new(self.state.cluster),
            client: U128::new(proposal.client),
            request_checksum: U128::new(proposal.request_checksum),
            namespace: U64::new(self.state.group.namespace),
            incarnation: U64::new(self.state.group.incarnation),
            op: U64::new(parent.op + 1),
            commit: U64::new(self.committed),
            timestamp: U64::new(proposal.timestamp),
            session: U64::new(proposal.session),
            request: U64::new(proposal.request),
            owner_generation: U64::new(proposal.owner_generation),
            view: U32::new(self.state.view),
            user_id: U32::new(proposal.user_id),
            operation: proposal.operation,
            replica: self.state.replica,
            persisted: u8::from(proposal.barrier == Barrier::Sync),
            ..PrepareHeader::zeroed()
        };
        let prepare = Prepare::seal(header, proposal.body);
        self.wake(now);
        self.append(prepare, effects);
        for to in self.others() {
            self.pump(now, to, effects);
        }
    }

    /// Adds a prepare to the log and has it written.
    pub(super) fn append(&mut self, prepare: Prepare, effects: &mut Effects) {
        let token = self.token();
        self.timestamp = self.timestamp.max(prepare.header.timestamp.get());
        let barrier = prepare.barrier();
        self.log.push(prepare.clone(), token);
        effects.push(Effect::Append {
            token,
            prepare,
            barrier,
        });
        if planted::has(Bug::AckBeforeWrite) && self.state.replica_count > 1 {
            self.log.mark_held(token);
        }
    }

    /// Sends a backup what it lacks, as far as its credit reaches.
    pub(super) fn pump(&mut self, now: Now, to: u8, effects: &mut Effects) {
        if !self.is_primary() {
            return;
        }
        let head = self.op();
        loop {
            let peer = &self.peers[usize::from(to)];
            let next = peer.next;
            let sent = self.log.through(next - 1).saturating_sub(self.log.through(peer.acked));
            let idle = next == peer.acked + 1;
            if !peer.active || next > head || (!idle && next > peer.acked + UNACKNOWLEDGED_MAX) {
                return;
            }
            // What is no longer in memory the backup asks for itself.
            let Some(prepare) = self.log.get(next) else { return };
            if !idle && sent + prepare.size() > self.config.credit_bytes {
                return;
            }
            let kind = Kind::Prepare(prepare.clone());
            self.send(to, kind, effects);
            let peer = &mut self.peers[usize::from(to)];
            if idle {
                peer.progress = now.monotonic;
            }
            peer.next = next + 1;
        }
    }

    pub(super) fn on_prepare(&mut self, now: Now, from: u8, view: u32, prepare: Prepare, effects: &mut Effects) {
        if !self.is_from_primary(now, from, view, effects) {
            return;
        }
        if !self.fits_group(&prepare) || prepare.header.view.get() > view {
            self.counters.damaged += 1;
            return;
        }
        self.commit_max = self.commit_max.max(prepare.header.commit.get());
        self.rests_until = 0;
        let op = prepare.header.op.get();
        let head = self.log.head();
        if self.status != Status::Normal || self.adoption.is_some() {
            return self.stash.keep(prepare, false, self.committed);
        }
        if op <= head.op {
            // It came before, and its acknowledgement may be lost.
            self.advance(now, effects);
            return self.emit_ack(now, effects);
        }
        if op > head.op + 1 {
            self.stash.keep(prepare, false, head.op);
            return self.repair_when_due(now, effects);
        }
        if prepare.header.parent.get() != head.checksum && !planted::has(Bug::MatchByOp) {
            self.counters.damaged += 1;
            return;
        }
        let prepare = restamped(now, prepare);
        self.append(prepare, effects);
        self.append_stashed(effects);
        self.advance(now, effects);
        if planted::has(Bug::AckBeforeWrite) {
            self.emit_ack(now, effects);
        }
    }

    /// Appends what came too early and now follows the log.
    pub(super) fn append_stashed(&mut self, effects: &mut Effects) {
        let view = self.state.view;
        while let Some((prepare, committed)) = self.stash.take(self.op() + 1) {
            let follows = prepare.header.parent.get() == self.log.head().checksum;
            if !follows || !(committed || prepare.header.view.get() == view) {
                break;
            }
            self.append(prepare, effects);
        }
        self.stash.forget(self.op());
    }

    /// Whether a message of a view's primary counts here. One of the past is told so; one of the future is asked for its
    /// log.
    fn is_from_primary(&mut self, now: Now, from: u8, view: u32, effects: &mut Effects) -> bool {
        if from != self.primary_of(view) {
            self.counters.misrouted += 1;
            return false;
        }
        if view < self.state.view {
            if self.view_is_durable() {
                self.send(from, Kind::Heard { rests_at: None }, effects);
            }
            return false;
        }
        if view > self.state.view {
            self.ask_for_view(now, view, effects);
            return false;
        }
        if matches!(self.status, Status::Normal | Status::Adopting) {
            self.timers.primary_heard = now.monotonic;
            if self.wish <= view + 1 {
                self.wish = 0;
            }
        }
        true
    }

    pub(super) fn fits_group(&self, prepare: &Prepare) -> bool {
        let header = &prepare.header;
        header.cluster.get() == self.state.cluster
            && header.namespace.get() == self.state.group.namespace
            && header.incarnation.get() == self.state.group.incarnation
            && prepare.is_intact()
    }

    pub(super) fn on_prepare_ok(
        &mut self,
        now: Now,
        from: u8,
        view: u32,
        op: u64,
        checksum: u128,
        effects: &mut Effects,
    ) {
        if view != self.state.view || !self.is_primary() || op > self.op() {
            return;
        }
        // Another prepare at this position is none of this log.
        if self.log.checksum(op).is_some_and(|own| own != checksum) && !planted::has(Bug::MatchByOp) {
            self.counters.damaged += 1;
            return;
        }
        let peer = &mut self.peers[usize::from(from)];
        if op > peer.acked || !peer.active {
            peer.progress = now.monotonic;
        }
        if !peer.active {
            peer.next = op + 1;
        }
        peer.active = true;
        peer.acked = peer.acked.max(op);
        peer.next = peer.next.max(peer.acked + 1);
        if planted::has(Bug::CountDuplicateAcks) {
            // As if a counter per prepare were raised by every acknowledgement.
            self.committed = self.committed.max(op.min(self.op()));
        }
        self.advance(now, effects);
        self.pump(now, from, effects);
    }

    /// The one place where an acknowledgement leaves a replica, or counts at its primary: everything up to the position
    /// is held as its durability demands, in a log that is whole.
    pub(super) fn emit_ack(&mut self, now: Now, effects: &mut Effects) {
        if self.fenced.is_some() || !self.is_whole() {
            return;
        }
        let held = self.log.held();
        if self.is_primary() {
            self.peers[usize::from(self.state.replica)].acked = held;
            return self.advance(now, effects);
        }
        let primary = self.primary_of(self.state.view);
        if primary == self.state.replica {
            return;
        }
        if let Some(checksum) = self.log.checksum(held) {
            self.send(primary, Kind::PrepareOk { op: held, checksum }, effects);
        }
    }

    /// Moves the commit forward: at a primary by what a quorum holds, at a backup by what the primary said.
    pub(super) fn advance(&mut self, now: Now, effects: &mut Effects) {
        if self.is_primary() {
            let mut acked = [0; crate::quorum::REPLICAS_MAX as usize];
            let count = self.peers.len();
            for (slot, peer) in acked.iter_mut().zip(&self.peers) {
                *slot = peer.acked;
            }
            acked[..count].sort_unstable_by(|a, b| b.cmp(a));
            let mut replication = usize::from(self.quorum.replication);
            if planted::has(Bug::SmallQuorum) {
                replication = (replication - 1).max(1);
            }
            self.committed = self.committed.max(acked[replication - 1].min(self.op()));
            self.commit_max = self.commit_max.max(self.committed);
        } else if self.status == Status::Normal && self.is_whole() {
            self.committed = self.committed.max(self.commit_max.min(self.op()));
        }
        self.apply_commit(effects);
        self.finish_hand_over(now, effects);
    }

    /// Hands out what is committed and held here.
    pub(super) fn apply_commit(&mut self, effects: &mut Effects) {
        // A state on its way stands on what is applied now.
        if self.fenced.is_some() || self.is_fetching() {
            return;
        }
        let commit = self.committed.min(self.log.held());
        if commit > self.commit {
            self.commit = commit;
            effects.push(Effect::Commit { op: commit });
            self.log.evict(commit, self.config.retain_bytes);
        }
    }

    pub(super) fn on_commit(&mut self, now: Now, from: u8, view: u32, commit: u64, last: bool, effects: &mut Effects) {
        if !self.is_from_primary(now, from, view, effects) {
            return;
        }
        self.commit_max = self.commit_max.max(commit);
        if self.status == Status::Normal {
            self.advance(now, effects);
        }
        let rests = last
            && self.config.resting_heartbeat > 0
            && self.is_whole()
            && (self.op(), self.commit) == (commit, commit);
        self.rests_until = if rests {
            now.monotonic
                .saturating_add(RESTS_MISSED_MAX * self.config.resting_heartbeat)
        } else {
            0
        };
        if self.view_is_durable() {
            let rests_at = rests.then_some(commit);
            self.send(from, Kind::Heard { rests_at }, effects);
        }
        if self.status == Status::Normal && commit > self.op() {
            self.repair_when_due(now, effects);
        }
    }

    pub(super) fn on_heard(&mut self, now: Now, from: u8, view: u32, rests_at: Option<u64>, effects: &mut Effects) {
        if view > self.state.view {
            return self.ask_for_view(now, view, effects);
        }
        let rests = rests_at == Some(self.op()) && view == self.state.view && self.may_rest(from);
        if rests {
            let peer = &mut self.peers[usize::from(from)];
            peer.rests = true;
            peer.beat = now.monotonic + self.config.resting_heartbeat;
        }
    }

    /// Whether nothing is left to tell a backup.
    fn may_rest(&self, backup: u8) -> bool {
        let peer = &self.peers[usize::from(backup)];
        let everything = peer.active && peer.acked >= self.op() && self.commit == self.op();
        self.config.resting_heartbeat > 0 && self.is_primary() && everything && self.hand_over.is_none()
    }

    /// Something happens in the group: from now on its backups answer for themselves again.
    fn wake(&mut self, now: Now) {
        for peer in self.peers.iter_mut().filter(|peer| peer.rests) {
            peer.rests = false;
            peer.heard = peer.heard.max(now.monotonic);
            peer.beat = now.monotonic + self.config.timing.heartbeat;
        }
    }

    /// The process in which this member lived with that incarnation was alive at `at`. Whoever runs many replicas hears
    /// it once for all of them. It counts where the group rests, and nowhere else: then a member that lives has nothing
    /// to say.
    pub fn vouch(&mut self, member: u8, incarnation: u64, at: u64) {
        let Some(peer) = self.peers.get_mut(usize::from(member)) else {
            return;
        };
        if peer.incarnation != incarnation {
            return;
        }
        if peer.rests {
            peer.heard = peer.heard.max(at);
        }
        if member == self.primary_of(self.state.view) {
            self.timers.primary_heard = self.timers.primary_heard.max(at.min(self.rests_until));
        }
    }

    /// As primary: the members that live and lack no more of what is committed than may be in flight, this one included.
    /// Whoever does not lead cannot tell, and names nobody.
    pub fn in_sync(&self, now: Now) -> impl Iterator<Item = u8> + '_ {
        let timeout = self.config.timing.heartbeat_timeout;
        let enough = self.committed.saturating_sub(self.config.pipeline_max as u64);
        let follows = move |peer: &Peer| {
            peer.active && peer.acked >= enough && now.monotonic < peer.heard.saturating_add(timeout)
        };
        let leads = self.is_primary();
        let members = (0..).zip(&self.peers);
        let counts = members.filter(move |(index, peer)| leads && (*index == self.state.replica || follows(peer)));
        counts.map(|(index, _)| index)
    }

    /// What a primary does from time to time.
    pub(super) fn tick_primary(&mut self, now: Now, effects: &mut Effects) {
        let timing = self.config.timing;
        let heard = |peer: &Peer| now.monotonic < peer.heard.saturating_add(timing.heartbeat_timeout);
        let me = usize::from(self.state.replica);
        let others = self.peers.iter().enumerate().filter(|(index, _)| *index != me);
        let alive = 1 + others.filter(|(_, peer)| heard(peer)).count();
        if alive < usize::from(self.quorum.replication) && !planted::has(Bug::SmallQuorum) {
            return self.abdicate(now, effects);
        }
        for to in self.others() {
            self.beat(now, to, effects);
            self.send_again(now, to, effects);
        }
        if self
            .hand_over
            .is_some_and(|hand_over| now.monotonic >= hand_over.deadline)
        {
            self.hand_over = None;
        }
    }

    /// Tells a backup that the primary lives, and how far it has committed.
    fn beat(&mut self, now: Now, to: u8, effects: &mut Effects) {
        if now.monotonic < self.peers[usize::from(to)].beat {
            return;
        }
        self.peers[usize::from(to)].beat = now.monotonic + self.config.timing.heartbeat;
        let commit = self.committed;
        let last = self.may_rest(to);
        self.send(to, Kind::Commit { commit, last }, effects);
    }

    /// Sends again what a backup has not acknowledged for too long.
    fn send_again(&mut self, now: Now, to: u8, effects: &mut Effects) {
        let head = self.op();
        let retransmit = self.config.timing.prepare_retransmit;
        let peer = &mut self.peers[usize::from(to)];
        let due = |since: u64| now.monotonic >= since.saturating_add(retransmit);
        if !peer.waits_since(head).is_some_and(due) {
            return;
        }
        peer.progress = now.monotonic;
        let next = peer.acked + 1;
        // What is no longer in memory may have arrived, and its acknowledgement may be lost: the backup says what it has
        // when it hears of the view again, and asks for what it lacks.
        if peer.active && (next > head || self.log.get(next).is_some()) {
            peer.next = next;
            self.pump(now, to, effects);
        } else {
            self.send_start_view(to, 0, effects);
        }
    }

    /// Too few others answer: another primary may already lead them, and nothing said here would commit.
    fn abdicate(&mut self, now: Now, effects: &mut Effects) {
        self.counters.steps_down += 1;
        self.abdicated = true;
        self.hand_over = None;
        effects.push(Effect::Role);
        self.wish_for(now, self.state.view + 1, effects);
    }

    pub(super) fn begin_hand_over(&mut self, now: Now, to: u8, effects: &mut Effects) {
        if !self.is_primary() || to >= self.state.replica_count || to == self.state.replica {
            return effects.push(Effect::Refuse(super::Refusal::NotPrimary {
                primary: self.primary_of(self.state.view),
            }));
        }
        self.hand_over = Some(HandOver {
            to,
            deadline: now.monotonic + self.config.timing.drain,
        });
        self.finish_hand_over(now, effects);
    }

    /// Once nothing is in flight and the successor has everything, asks for the next view that it leads.
    fn finish_hand_over(&mut self, now: Now, effects: &mut Effects) {
        let Some(HandOver { to, .. }) = self.hand_over else {
            return;
        };
        if self.commit < self.op() || self.peers[usize::from(to)].acked < self.op() {
            return;
        }
        self.hand_over = None;
        let count = u32::from(self.state.replica_count);
        let distance = (u32::from(to) + count - u32::from(self.state.replica)) % count;
        let proposed = self.state.view + distance;
        self.abdicated = true;
        effects.push(Effect::Role);
        self.wish = proposed;
        self.timers.retransmit = now.monotonic + self.config.timing.view_change_retransmit;
        let kind = Kind::StartViewChange {
            proposed,
            hand_over: true,
        };
        self.broadcast(&kind, effects);
        self.count_wishes(now, effects);
    }

    /// Starts over as the primary of a view whose log is complete here.
    pub(super) fn lead(&mut self, now: Now, effects: &mut Effects) {
        let head = self.op();
        for peer in &mut self.peers {
            peer.active = false;
            peer.acked = 0;
            peer.next = head + 1;
            peer.progress = now.monotonic;
            peer.heard = now.monotonic;
            peer.rests = false;
            peer.beat = now.monotonic + self.config.timing.heartbeat;
        }
        for to in self.others() {
            self.send_start_view(to, 0, effects);
        }
    }

    /// Position and checksum of the newest prepare known to be committed here.
    pub(super) fn committed_end(&self) -> LogEnd {
        self.log.end_at(self.committed).unwrap_or_else(|| self.log.base())
    }
}

const _: () = assert!(STASH_MAX as u64 >= UNACKNOWLEDGED_MAX);

fn restamped(now: Now, prepare: Prepare) -> Prepare {
    if !planted::has(Bug::RestampTime) {
        return prepare;
    }
    let header = PrepareHeader {
        timestamp: U64::new(now.wall.max(prepare.header.timestamp.get() + 1)),
        ..*prepare.header
    };
    // The checksum is kept, as by code that stamps after it has verified.
    Prepare {
        header: std::sync::Arc::new(header),
        body: prepare.body,
    }
}
