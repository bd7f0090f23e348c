//! What is missing, and where it comes from.

use crate::harness::{Cluster, message};
use iggy_consensus::message::Kind;
use iggy_consensus::{Input, ReplicaConfig, Status};

fn small() -> ReplicaConfig {
    ReplicaConfig {
        retain_bytes: 0,
        ..ReplicaConfig::default()
    }
}

#[test]
fn given_a_backup_that_missed_prepares_when_it_hears_of_a_commit_should_ask_for_them() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(2);
    for _ in 0..5 {
        cluster.write(b"body");
    }
    cluster.cut.clear();
    cluster.dropped = vec!["prepare"];
    cluster.pass(300);
    cluster.assert_agree();
    assert!(cluster.count_sent(2, "request-prepares") > 0);
}

/// L3.
#[test]
fn given_a_gap_below_what_the_others_keep_when_asked_for_should_lead_to_a_state_transfer() {
    let mut cluster = Cluster::with(3, small());
    cluster.isolate(2);
    for _ in 0..5 {
        cluster.write(b"body");
    }
    cluster.cut.clear();
    cluster.pass(300);
    assert!(
        cluster
            .sent
            .iter()
            .any(|(_, to, kind)| *to == 2 && *kind == "range-evicted")
    );
    let (node, from, from_scratch) = cluster.fetches[0];
    assert_eq!((node, from_scratch), (2, false));
    let at = cluster.replica(from).end_at(cluster.commits[usize::from(from)]);
    cluster.commits[2] = at.op;
    cluster.disks[2].base = at;
    cluster.disks[2].log.clear();
    cluster.step(2, Input::StateInstalled { at });
    cluster.pass(500);
    cluster.write(b"after");
    cluster.pass(200);
    cluster.assert_agree();
}

#[test]
fn given_a_state_that_cannot_be_had_when_told_so_should_ask_another_member() {
    let mut cluster = Cluster::with(3, small());
    cluster.isolate(2);
    for _ in 0..5 {
        cluster.write(b"body");
    }
    cluster.cut.clear();
    cluster.pass(300);
    let first = cluster.fetches[0].1;
    cluster.step(2, Input::StateFailed);
    cluster.pass(100);
    assert_ne!(cluster.fetches.last().unwrap().1, first);
}

#[test]
fn given_a_new_primary_that_misses_bodies_when_its_votes_are_in_should_fetch_them_before_it_starts() {
    let mut cluster = Cluster::new(3);
    cluster.cut = vec![(0, 1)];
    for body in [b"a", b"b", b"c"] {
        cluster.write(body);
    }
    cluster.cut.clear();
    cluster.dropped = vec!["repair-prepare", "prepare"];
    cluster.crash(0);
    cluster.pass(1_400);
    assert_eq!(cluster.leader(), None, "it must not start without them");
    cluster.dropped.clear();
    cluster.pass(3_000);
    assert_eq!(cluster.log(cluster.leader().unwrap()).len(), 3);
    cluster.assert_agree();
}

/// S4, S5.
#[test]
fn given_a_log_that_ends_below_the_known_commit_when_promoted_should_look_below_it_and_commit_without_gaps() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.cut = vec![(0, 1)];
    for body in [b"b", b"c", b"d"] {
        cluster.write(body);
    }
    cluster.cut.clear();
    // Replica 1 knows that 4 is committed, and has 1.
    cluster.step(
        1,
        Input::Message(message(0, 0, Kind::Commit { commit: 4, last: false })),
    );
    assert_eq!(cluster.commits[1], 1);
    cluster.packets.clear();
    cluster.crash(0);
    cluster.pass(3_000);
    assert_eq!(cluster.commits[1], 4);
    cluster.assert_agree();
}

/// S10.
#[test]
fn given_a_view_that_starts_with_a_longer_log_when_adopted_should_not_acknowledge_before_all_of_it_is_here() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(2);
    cluster.write(b"a");
    cluster.write(b"b");
    cluster.dropped = vec!["repair-prepare"];
    cluster.cut.clear();
    cluster.crash(0);
    cluster.pass(2_500);
    assert_eq!(cluster.replica(2).status(), Status::Adopting);
    assert_eq!(cluster.count_sent(2, "prepare-ok"), 0);
    cluster.dropped.clear();
    cluster.pass(1_000);
    cluster.assert_agree();
}

/// S12.
#[test]
fn given_a_repaired_prepare_of_an_older_view_when_nothing_vouches_for_it_should_not_be_taken() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(0);
    cluster.propose(0, b"dead").unwrap();
    cluster.deliver();
    let dead = cluster.replica(0).prepare(1).unwrap().clone();
    cluster.pass(3_000);
    let leader = cluster.leader().unwrap();
    let backup = 3 - leader;
    let stray = Kind::RepairPrepare {
        prepare: dead,
        committed: false,
    };
    cluster.step(backup, Input::Message(message(0, 0, stray)));
    assert_eq!(cluster.replica(backup).op(), 0);
}

#[test]
fn given_a_new_primary_that_misses_what_the_others_have_committed_and_kept_when_promoted_should_get_it_from_them() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.cut = vec![(0, 1)];
    for body in [b"b", b"c", b"d"] {
        cluster.write(body);
    }
    cluster.pass(60);
    // Nothing of it is in flight any more: it is what replica 2 keeps of the committed.
    assert_eq!((cluster.commits[2], cluster.replica(1).op()), (4, 1));
    cluster.cut.clear();
    cluster.packets.clear();
    cluster.crash(0);
    cluster.pass(3_000);
    assert_eq!(cluster.log(1), cluster.log(2));
    cluster.assert_agree();
    assert_eq!(cluster.fetches.len(), 0);
}

/// S4.
#[test]
fn given_a_gap_in_the_log_when_a_later_commit_is_known_should_commit_up_to_the_gap_alone() {
    let mut cluster = Cluster::new(3);
    cluster.dropped = vec!["repair-prepare"];
    cluster.write(b"a");
    cluster.cut = vec![(0, 2)];
    cluster.propose(0, b"b").unwrap();
    cluster.deliver();
    cluster.cut.clear();
    cluster.write(b"c");
    cluster.write(b"d");
    cluster.step(
        2,
        Input::Message(message(0, 0, Kind::Commit { commit: 4, last: false })),
    );
    assert_eq!((cluster.replica(2).op(), cluster.commits[2]), (1, 1));
    cluster.dropped.clear();
    cluster.pass(200);
    assert_eq!(cluster.commits[2], 4);
}

#[test]
fn given_a_gap_that_the_others_still_keep_when_it_is_asked_for_should_not_lead_to_a_state_transfer() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(2);
    for _ in 0..9 {
        cluster.write(b"body");
    }
    cluster.cut.clear();
    cluster.pass(400);
    cluster.assert_agree();
    assert_eq!(cluster.fetches.len(), 0);
    assert!(cluster.sent.iter().all(|(_, _, kind)| *kind != "range-evicted"));
}

#[test]
fn given_an_adopted_log_that_is_longer_than_what_is_asked_for_at_once_when_bodies_are_missing_should_ask_on() {
    let config = ReplicaConfig {
        repair_chunk: 2,
        ..ReplicaConfig::default()
    };
    let mut cluster = Cluster::with(3, config);
    cluster.isolate(2);
    for _ in 0..7 {
        cluster.write(b"body");
    }
    cluster.cut.clear();
    cluster.dropped = vec!["prepare"];
    cluster.crash(0);
    cluster.pass(4_000);
    assert_eq!(cluster.log(2), cluster.log(1));
    assert!(cluster.count_sent(2, "request-prepares") >= 4);
}
