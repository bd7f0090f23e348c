//! How a new primary decides which log its view starts with, from the votes it has.
//!
//! A committed prepare is held by a replication quorum whose members had the view of the log in which it was committed.
//! So the log to start with is the longest among the votes with the newest log view, and it may be started with as soon
//! as a nack quorum of voters is sure never to have acknowledged anything after its end. A voter that cannot be sure
//! is not counted (simulator S6, S7):
//!
//! | ending of a vote | older log view, and one whole log of the newest | otherwise |
//! |---|---|---|
//! | blank | sure | sure, unless its log is longer |
//! | torn | sure | not sure; sure once every member has voted |
//! | volatile | sure | not sure; once every member has voted, a reason for a new history |
//! | damaged | sure | never sure |
//! | amnesia | as otherwise | not sure; once every member has voted, a reason for a new history |
//!
//! A vote with an older log view acknowledged nothing in the newest one. What it acknowledged before is in the log with
//! which the newest view began, or was found dead then; but only a voter of that view whose log is whole proves what that
//! log was.
//!
//! When every member has voted and only tears are in the way, a committed prepare would have been damaged on as many
//! disks as hold it, which is more than the group is built for. When what was promised to survive in memory alone may be
//! gone from too many members, the group goes on under a new history, and says so. Even then it keeps what a member wrote
//! that has forgotten the views and not the writes of the newest one.

use crate::planted::{self, Bug};
use crate::quorum::Quorum;
use crate::{Ending, LogEnd, PrepareHeader};

/// What one replica knows when a view changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    /// View of its log.
    pub log_view: u32,
    /// Times the group has lost acknowledged writes, as far as it knows.
    pub history: u64,
    /// Newest position of its log that it knows to be committed.
    pub committed: LogEnd,
    /// Newest position it knows to be committed, in its log or not.
    pub commit_max: u64,
    /// Its log after `committed`.
    pub suffix: Vec<PrepareHeader>,
    /// What may have followed.
    pub ending: Ending,
}

impl Vote {
    /// Newest position of the log.
    pub fn head(&self) -> u64 {
        self.committed.op + self.suffix.len() as u64
    }

    /// Position and checksum of the prepare at `op`, where the vote tells it.
    fn end_at(&self, op: u64) -> Option<LogEnd> {
        if op == self.committed.op {
            return Some(self.committed);
        }
        let at = op.checked_sub(self.committed.op + 1)?;
        self.suffix.get(at as usize).map(PrepareHeader::end)
    }

    /// Whether the log has this prepare.
    fn holds(&self, end: LogEnd) -> bool {
        self.end_at(end.op).is_some_and(|own| own.checksum == end.checksum)
    }

    /// View of the newest prepare after the committed ones.
    fn last_view(&self) -> u32 {
        let newest = self.suffix.last().filter(|_| !planted::has(Bug::IgnoreLogView));
        newest.map_or(0, |header| header.view.get())
    }
}

/// Why a view cannot start yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Too few have voted.
    Votes,
    /// A position that was committed is in none of the logs.
    Committed {
        /// That position.
        op: u64,
    },
    /// Whether something was committed at this position cannot be told.
    Certainty {
        /// That position.
        op: u64,
    },
}

/// What the votes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not enough is known; another vote may help.
    Wait(Missing),
    /// Every member has voted, and an acknowledged write may be lost beyond what the group promises. Only an operator
    /// can go on from here.
    Stalled(Missing),
    /// The log of this voter is the one to start with.
    Start {
        /// The voter.
        source: u8,
        /// End of the log to start with; lower than the voter's own end when only its committed part counts.
        head: u64,
        /// Whether acknowledged writes may be lost, so that a new history begins.
        lost: bool,
    },
}

/// Judges the votes of a group; `votes[i]` is the vote of replica `i`. With `accept_loss` an operator has decided to go
/// on with what the voters have.
pub fn judge(quorum: Quorum, votes: &[Option<Vote>], accept_loss: bool) -> Verdict {
    let cast = || {
        votes
            .iter()
            .enumerate()
            .filter_map(|(index, vote)| Some((index, vote.as_ref()?)))
    };
    let count = cast().count();
    if count < usize::from(quorum.view_change) {
        return Verdict::Wait(Missing::Votes);
    }
    // What a replica without memory says about views is not known to be true; when nobody has a memory, there was none.
    let log_view = cast()
        .filter(|(_, vote)| vote.ending != Ending::Amnesia)
        .map(|(_, vote)| vote.log_view)
        .max()
        .unwrap_or(0);
    // What is committed somewhere belongs to the log, also where the newest log has lost it.
    let (known, committed) = cast()
        .map(|(index, vote)| (index, vote.committed))
        .max_by_key(|(index, committed)| (committed.op, usize::MAX - index))
        .unwrap_or_default();
    let newest = |vote: &Vote| vote.ending != Ending::Amnesia && vote.log_view == log_view;
    let (mut source, mut head) = cast()
        .filter(|(_, vote)| newest(vote) && vote.holds(committed))
        .max_by_key(|(index, vote)| (vote.last_view(), vote.head(), usize::MAX - index))
        .map_or((known, committed.op), |(index, vote)| (index, vote.head()));
    let all = count == votes.len();
    // One whole log of the newest view has all that was committed before that view.
    let whole = cast().any(|(_, vote)| newest(vote) && vote.ending == Ending::Blank);
    let members = cast().filter(|(_, vote)| newest(vote)).count();
    if all && !whole && members < usize::from(quorum.replication) {
        // Too few have ever had the newest view to commit anything in it. What follows its damaged log in an older one
        // may be what it lost.
        let end = votes[source].as_ref().and_then(|vote| vote.end_at(head));
        let longer = cast()
            .filter(|(_, vote)| end.is_some_and(|end| vote.holds(end)) && vote.head() > head)
            .max_by_key(|(index, vote)| (vote.last_view(), vote.head(), usize::MAX - index));
        if let Some((index, vote)) = longer {
            (source, head) = (index, vote.head());
        }
    }
    let commit_max = cast().map(|(_, vote)| vote.commit_max).max().unwrap_or(0);
    // Who has never had the newest view acknowledged nothing in it; what it acknowledged before is in a whole log.
    let settled = |vote: &Vote| whole && vote.ending != Ending::Amnesia && vote.log_view < log_view;
    let with = |ending: Ending| {
        cast()
            .filter(|(_, vote)| !settled(vote) && vote.ending == ending)
            .count()
    };
    let sure = cast()
        .filter(|(_, vote)| settled(vote) || (vote.ending == Ending::Blank && vote.head() <= head))
        .count();
    let nack = usize::from(quorum.nack);
    let start = || Verdict::Start {
        source: source as u8,
        head,
        lost: false,
    };
    let missing = if commit_max > head {
        Missing::Committed { op: head + 1 }
    } else {
        Missing::Certainty { op: head + 1 }
    };
    let faulty = planted::has(Bug::NackWhenFaulty);
    if commit_max <= head && (faulty || sure >= nack || (all && sure + with(Ending::Torn) >= nack)) {
        return start();
    }
    let forgotten = with(Ending::Torn) + with(Ending::Volatile) + with(Ending::Amnesia);
    if accept_loss || (all && sure + forgotten >= nack) {
        let end = votes[source].as_ref().and_then(|vote| vote.end_at(head));
        let (source, head) = end
            .and_then(|end| remembered(votes, end, log_view))
            .unwrap_or((source, head));
        return Verdict::Start {
            source: source as u8,
            head,
            lost: true,
        };
    }
    if all {
        Verdict::Stalled(missing)
    } else {
        Verdict::Wait(missing)
    }
}

/// The longest log that follows `end` at a replica that has forgotten which views there were, and not what it wrote in
/// the newest of them. A group that goes on whatever it may have lost need not lose this as well.
fn remembered(votes: &[Option<Vote>], end: LogEnd, log_view: u32) -> Option<(usize, u64)> {
    let cast = votes
        .iter()
        .enumerate()
        .filter_map(|(index, vote)| Some((index, vote.as_ref()?)));
    let longer = |vote: &Vote| vote.holds(end) && vote.head() > end.op && vote.last_view() >= log_view;
    cast.filter(|(_, vote)| vote.ending == Ending::Amnesia && longer(vote))
        .max_by_key(|(index, vote)| (vote.last_view(), vote.head(), usize::MAX - index))
        .map(|(index, vote)| (index, vote.head()))
}
