//! The decision a new view depends on, as a table for groups of every size.

use iggy_consensus::prepare::PrepareHeader;
use iggy_consensus::quorum::{Quorum, REPLICAS_MAX};
use iggy_consensus::vote::{Missing, Verdict, Vote, judge};
use iggy_consensus::{Ending, LogEnd};

#[allow(clippy::unnecessary_wraps)] // As it lies among those that were not cast.
fn vote(log_view: u32, head: u64, ending: Ending) -> Option<Vote> {
    let mut end = LogEnd::default();
    let mut suffix = Vec::new();
    for op in 1..=head {
        let mut header = PrepareHeader::zeroed();
        header.op = op.into();
        header.parent = end.checksum.into();
        header.view = 1.into();
        header.checksum = header.compute_checksum().into();
        end = header.end();
        suffix.push(header);
    }
    Some(Vote {
        log_view,
        history: 0,
        committed: LogEnd::default(),
        commit_max: 0,
        suffix,
        ending,
    })
}

fn quorum(count: usize) -> Quorum {
    Quorum::of(count as u8).expect("a group")
}

/// S7.
#[test]
fn given_any_group_when_fewer_than_a_quorum_have_voted_should_wait() {
    for count in 1..=usize::from(REPLICAS_MAX) {
        let quorum = quorum(count);
        let mut votes = vec![None; count];
        for slot in votes.iter_mut().take(usize::from(quorum.view_change) - 1) {
            *slot = vote(1, 3, Ending::Blank);
        }
        assert_eq!(
            judge(quorum, &votes, false),
            Verdict::Wait(Missing::Votes),
            "{count} replicas"
        );
    }
}

#[test]
fn given_any_group_when_a_quorum_has_voted_should_start_with_the_longest_log() {
    for count in 1..=usize::from(REPLICAS_MAX) {
        let quorum = quorum(count);
        let mut votes = vec![None; count];
        for (index, slot) in votes.iter_mut().take(usize::from(quorum.view_change)).enumerate() {
            *slot = vote(1, index as u64, Ending::Blank);
        }
        let last = usize::from(quorum.view_change) - 1;
        let expected = Verdict::Start {
            source: last as u8,
            head: last as u64,
            lost: false,
        };
        assert_eq!(judge(quorum, &votes, false), expected, "{count} replicas");
    }
}

/// S6.
#[test]
fn given_any_group_when_as_many_are_unsure_as_could_have_committed_should_never_drop_anything_silently() {
    for count in 2..=usize::from(REPLICAS_MAX) {
        let quorum = quorum(count);
        for unsure in 0..=count {
            for cast in usize::from(quorum.view_change)..=count {
                for (ending, may_lose) in [
                    (Ending::Torn, false),
                    (Ending::Volatile, true),
                    (Ending::Damaged, false),
                    (Ending::Amnesia, true),
                ] {
                    let mut votes = vec![None; count];
                    for (index, slot) in votes.iter_mut().take(cast).enumerate() {
                        *slot = vote(1, 2, if index < unsure { ending } else { Ending::Blank });
                    }
                    let sure = cast - unsure.min(cast);
                    let named = format!("{count} replicas, {cast} votes, {unsure} {ending:?}");
                    match judge(quorum, &votes, false) {
                        Verdict::Start { lost: false, .. } => {
                            let torn = ending == Ending::Torn && cast == count;
                            assert!(torn || sure >= usize::from(quorum.nack), "{named}");
                        }
                        Verdict::Start { lost: true, .. } => assert!(may_lose && cast == count, "{named}"),
                        Verdict::Wait(_) => assert!(cast < count && sure < usize::from(quorum.nack), "{named}"),
                        Verdict::Stalled(_) => assert!(cast == count && !may_lose, "{named}"),
                    }
                }
            }
        }
    }
}

#[test]
fn given_a_newer_log_view_when_an_older_log_is_longer_should_prefer_the_newer() {
    let votes = [vote(2, 1, Ending::Blank), vote(1, 5, Ending::Blank), None];
    let expected = Verdict::Start {
        source: 0,
        head: 1,
        lost: false,
    };
    assert_eq!(judge(quorum(3), &votes, false), expected);
}

#[test]
fn given_a_damaged_log_of_the_newest_view_when_no_other_is_whole_should_not_trust_older_views_that_forgot() {
    // The newest view's log lost op 2, which the others acknowledged before that view and lost too.
    let votes = [
        vote(2, 1, Ending::Volatile),
        vote(1, 1, Ending::Volatile),
        vote(1, 1, Ending::Volatile),
    ];
    assert!(matches!(
        judge(quorum(3), &votes, false),
        Verdict::Start { lost: true, .. }
    ));
    let votes = [vote(2, 1, Ending::Volatile), vote(1, 1, Ending::Volatile), None];
    assert_eq!(
        judge(quorum(3), &votes, false),
        Verdict::Wait(Missing::Certainty { op: 2 })
    );
}

#[test]
fn given_a_damaged_log_of_the_newest_view_when_older_ones_hold_what_followed_should_take_it_from_them() {
    let votes = [
        vote(2, 1, Ending::Torn),
        vote(1, 2, Ending::Blank),
        vote(1, 2, Ending::Blank),
    ];
    let expected = Verdict::Start {
        source: 1,
        head: 2,
        lost: false,
    };
    assert_eq!(judge(quorum(3), &votes, false), expected);
}

/// S7.
#[test]
fn given_a_commit_beyond_every_log_when_votes_are_in_should_wait_for_who_has_it() {
    let mut ahead = vote(1, 2, Ending::Blank);
    if let Some(vote) = &mut ahead {
        vote.commit_max = 5;
    }
    let votes = [ahead, vote(1, 2, Ending::Blank), None];
    assert_eq!(
        judge(quorum(3), &votes, false),
        Verdict::Wait(Missing::Committed { op: 3 })
    );
}

#[test]
fn given_an_operator_who_accepts_a_loss_when_votes_do_not_suffice_should_start_and_say_so() {
    let votes = [vote(1, 2, Ending::Damaged), vote(1, 1, Ending::Damaged), None];
    assert!(matches!(
        judge(quorum(3), &votes, true),
        Verdict::Start {
            source: 0,
            head: 2,
            lost: true
        }
    ));
}

#[test]
fn given_replicas_that_forgot_the_views_when_a_loss_is_declared_should_keep_what_one_of_them_wrote() {
    let votes = [
        vote(0, 0, Ending::Amnesia),
        vote(1, 3, Ending::Amnesia),
        vote(1, 1, Ending::Blank),
    ];
    let expected = Verdict::Start {
        source: 1,
        head: 3,
        lost: true,
    };
    assert_eq!(judge(quorum(3), &votes, false), expected);
    let votes = [None, vote(1, 3, Ending::Amnesia), vote(1, 1, Ending::Blank)];
    assert_eq!(
        judge(quorum(3), &votes, true),
        expected,
        "an operator goes on without the third"
    );
}

#[test]
fn given_a_replica_that_forgot_the_views_when_its_log_is_older_than_the_newest_view_should_not_be_followed() {
    let votes = [
        vote(0, 0, Ending::Amnesia),
        vote(1, 3, Ending::Amnesia),
        vote(2, 1, Ending::Blank),
    ];
    let expected = Verdict::Start {
        source: 2,
        head: 1,
        lost: true,
    };
    assert_eq!(
        judge(quorum(3), &votes, false),
        expected,
        "the newest view may have found it dead"
    );
}
