//! The state of another member in place of the own log: what stays until it is there, and what ends it.

use crate::harness::{Cluster, message};
use iggy_consensus::message::{Kind, ViewLog};
use iggy_consensus::{Ending, Input, LogEnd, ReplicaConfig, Status};

fn small() -> ReplicaConfig {
    ReplicaConfig {
        retain_bytes: 0,
        ..ReplicaConfig::default()
    }
}

/// Three replicas of which 2 holds op 2, does not know that it is committed, and lacks what followed in another view.
fn behind() -> Cluster {
    let mut cluster = Cluster::with(3, small());
    cluster.write(b"a");
    cluster.write(b"b");
    cluster.isolate(2);
    cluster.step(0, Input::HandOver { to: 1 });
    cluster.pass(300);
    for _ in 0..4 {
        cluster.write(b"body");
    }
    assert_eq!((cluster.replica(2).op(), cluster.commits[2]), (2, 1));
    cluster.cut.clear();
    cluster.pass(400);
    assert_eq!(cluster.fetches[0].0, 2);
    cluster
}

/// The state of whoever is asked takes the place of the log of `index`.
fn install(cluster: &mut Cluster, index: u8) {
    let from = cluster.fetches.last().expect("a state is wanted").1;
    let at = cluster.replica(from).end_at(cluster.commits[usize::from(from)]);
    let place = usize::from(index);
    cluster.commits[place] = at.op;
    cluster.disks[place].base = at;
    cluster.disks[place].log.clear();
    cluster.step(index, Input::StateInstalled { at });
}

#[test]
fn given_a_transfer_when_begun_should_leave_the_own_log_as_it_is() {
    let mut cluster = behind();
    assert_eq!(cluster.log(2).len(), 2);
    assert_eq!(cluster.disks[2].state.ending, Ending::Blank);
    install(&mut cluster, 2);
    cluster.pass(500);
    cluster.write(b"after");
    cluster.pass(200);
    cluster.assert_agree();
}

/// S8.
#[test]
fn given_two_members_when_the_source_of_a_transfer_loses_its_disk_should_keep_what_only_the_other_holds() {
    let mut cluster = Cluster::with(2, small());
    for _ in 0..5 {
        cluster.write(b"body");
    }
    let kept = cluster.log(1)[..3].to_vec();
    // The power takes the end of 1, which does not know how far its log is committed.
    cluster.lose_after(1, 3, Ending::Volatile);
    cluster.disks[1].committed = 1;
    cluster.start(1, false);
    cluster.pass(300);
    assert_eq!(cluster.fetches[0], (1, 0, false));
    cluster.lose_after(0, 0, Ending::Amnesia);
    cluster.disks[0].state.view = 0;
    cluster.disks[0].state.log_view = 0;
    cluster.crash(1);
    cluster.start(0, false);
    cluster.start(1, false);
    cluster.pass(5_000);
    install(&mut cluster, 0);
    cluster.pass(500);
    cluster.assert_agree();
    assert_eq!((cluster.replica(0).op(), cluster.log(1)), (3, kept));
    assert!(!cluster.losses.is_empty());
}

#[test]
fn given_a_state_that_differs_from_some_op_on_when_told_so_should_cut_the_log_there() {
    let mut cluster = behind();
    cluster.step(2, Input::StateDiffers { op: 2 });
    assert_eq!(cluster.log(2).len(), 1);
    assert_eq!(cluster.disks[2].state.ending, Ending::Blank);
    install(&mut cluster, 2);
    cluster.pass(500);
    cluster.assert_agree();
}

/// S5.
#[test]
fn given_a_state_that_differs_where_the_log_is_committed_when_told_so_should_cut_nothing() {
    let mut cluster = behind();
    cluster.step(2, Input::StateDiffers { op: 1 });
    assert_eq!(cluster.log(2).len(), 2);
}

#[test]
fn given_a_source_that_has_what_the_own_log_has_when_told_so_should_commit_it_and_ask_for_the_rest() {
    let mut cluster = behind();
    let fetches = cluster.fetches.len();
    let at = cluster.replica(2).end_at(2);
    cluster.step(2, Input::StateHeld { at });
    assert_eq!(cluster.commits[2], 2);
    cluster.pass(300);
    assert!(cluster.fetches.len() > fetches, "somebody else has the rest");
    install(&mut cluster, 2);
    cluster.pass(500);
    cluster.assert_agree();
}

#[test]
fn given_a_source_with_another_prepare_when_taken_for_what_the_own_log_has_should_commit_nothing() {
    let mut cluster = behind();
    let at = LogEnd {
        checksum: 1,
        ..cluster.replica(2).end_at(2)
    };
    cluster.step(2, Input::StateHeld { at });
    assert_eq!(cluster.commits[2], 1);
}

#[test]
fn given_the_log_of_a_view_that_has_gone_further_when_it_comes_late_should_ask_for_it_again() {
    let mut cluster = Cluster::with(3, small());
    cluster.write(b"a");
    cluster.isolate(2);
    for _ in 0..5 {
        cluster.write(b"body");
    }
    cluster.cut.clear();
    cluster.pass(300);
    assert_eq!(cluster.fetches[0].0, 2);
    let late = ViewLog {
        nonce: u128::MAX,
        history: 0,
        committed: cluster.replica(0).end_at(cluster.commits[0]),
        suffix: Vec::new(),
    };
    cluster.isolate(2);
    cluster.write(b"later");
    cluster.write(b"and later");
    install(&mut cluster, 2);
    assert!(cluster.commits[2] > late.committed.op);
    cluster.step(2, Input::Message(message(0, 0, Kind::StartView(Box::new(late)))));
    cluster.cut.clear();
    cluster.pass(1_000);
    cluster.assert_agree();
}

#[test]
fn given_a_lost_acknowledgement_of_what_is_no_longer_in_memory_when_another_backup_dies_should_go_on() {
    let mut cluster = Cluster::with(3, small());
    cluster.write(b"a");
    cluster.cut = vec![(2, 0)];
    cluster.write(b"b");
    // It is sent again as long as it is in memory.
    cluster.pass(100);
    assert_eq!(cluster.replica(2).op(), 2);
    cluster.cut.clear();
    cluster.crash(1);
    cluster.propose(0, b"c").unwrap();
    cluster.pass(300);
    assert_eq!(cluster.commits[0], 3);
    assert_eq!(cluster.replica(2).status(), Status::Normal);
}

#[test]
fn given_commits_of_a_history_that_has_ended_when_the_view_changes_should_not_wait_for_them() {
    let mut cluster = Cluster::new(3);
    for _ in 0..3 {
        cluster.write(b"body");
    }
    cluster.dropped = vec!["start-view"];
    for index in [1, 2] {
        cluster.lose_after(index, 0, Ending::Volatile);
        cluster.start(index, false);
    }
    // They hear how far the group has committed, and no more.
    cluster.pass(60);
    cluster.lose_after(0, 0, Ending::Volatile);
    cluster.dropped.clear();
    cluster.start(0, false);
    cluster.pass(5_000);
    cluster.assert_agree();
    assert!(!cluster.losses.is_empty());
    let leader = cluster.leader().unwrap();
    cluster.crash(leader);
    cluster.pass(5_000);
    assert!(cluster.leader().is_some_and(|next| next != leader));
    cluster.write(b"after");
    cluster.pass(200);
    cluster.assert_agree();
}
