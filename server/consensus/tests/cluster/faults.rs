//! Restarts, losses and damage.

use crate::harness::Cluster;
use iggy_consensus::{Effect, Effects, Ending, FenceReason, Input, ReplicaConfig, Status};

#[test]
fn given_a_restarted_backup_when_the_view_goes_on_should_join_it_again() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.crash(2);
    cluster.write(b"b");
    cluster.start(2, false);
    cluster.pass(500);
    cluster.assert_agree();
    assert_eq!(cluster.replica(0).view(), 0);
}

/// S2.
#[test]
fn given_a_restarted_primary_when_it_comes_back_should_not_lead_its_old_view() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.crash(0);
    cluster.start(0, false);
    assert!(!cluster.replica(0).is_primary());
    cluster.pass(2_000);
    assert!(cluster.replica(0).view() > 0);
    cluster.assert_agree();
}

#[test]
fn given_a_whole_cluster_that_restarts_when_nothing_was_lost_should_go_on_under_the_same_history() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    let log = cluster.log(0);
    for index in 0..3 {
        cluster.crash(index);
    }
    for index in 0..3 {
        cluster.start(index, false);
    }
    cluster.pass(3_000);
    cluster.assert_agree();
    assert_eq!((cluster.log(0), cluster.losses.len()), (log, 0));
}

/// S6, S8.
#[test]
fn given_one_replica_that_forgot_an_acknowledged_write_when_the_other_holder_dies_should_wait_and_not_drop_it() {
    let mut cluster = Cluster::new(3);
    cluster.cut = vec![(0, 2), (2, 0)];
    cluster.write(b"a");
    cluster.cut.clear();
    cluster.packets.clear();
    cluster.crash(0);
    cluster.lose_after(1, 0, Ending::Volatile);
    cluster.start(1, false);
    cluster.pass(5_000);
    assert_eq!(cluster.leader(), None, "1 may have acknowledged what 2 never had");
    cluster.start(0, false);
    cluster.pass(5_000);
    cluster.assert_agree();
    assert_eq!(cluster.log(2).len(), 1);
}

/// D2.
#[test]
fn given_more_replicas_that_forgot_than_the_group_tolerates_when_all_are_back_should_begin_a_new_history() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    for index in 0..3 {
        cluster.lose_after(index, 0, Ending::Volatile);
    }
    cluster.start(0, false);
    cluster.start(1, false);
    cluster.pass(5_000);
    assert_eq!(cluster.leader(), None, "the third may have it");
    cluster.start(2, false);
    cluster.pass(5_000);
    cluster.assert_agree();
    let history = cluster.disks[0].state.history;
    assert!(history > 0);
    assert!((0..3_u8).all(|index| cluster.losses.contains(&(index, history))));
    assert!((0..3_u8).all(|index| cluster.disks[usize::from(index)].state.history == history));
}

/// S7.
#[test]
fn given_damage_on_as_many_replicas_as_hold_a_write_when_all_are_back_should_stall_and_say_so() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.lose_after(0, 0, Ending::Damaged);
    cluster.lose_after(1, 0, Ending::Damaged);
    cluster.lose_after(2, 0, Ending::Blank);
    for index in 0..3 {
        cluster.start(index, false);
    }
    cluster.pass(5_000);
    assert_eq!(cluster.leader(), None);
    assert!((0..3).any(|index| cluster.replica(index).stalled().is_some()));
    for index in 0..3 {
        cluster.step(index, Input::AcceptLoss);
    }
    cluster.pass(2_000);
    cluster.assert_agree();
    assert!(!cluster.losses.is_empty());
}

/// D6.
#[test]
fn given_torn_ends_everywhere_when_every_member_is_back_should_go_on_without_a_loss() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.pass(100);
    for index in 0..3 {
        cluster.lose_after(index, 1, Ending::Torn);
        cluster.start(index, false);
    }
    cluster.pass(5_000);
    cluster.assert_agree();
    assert_eq!((cluster.losses.len(), cluster.log(0).len()), (0, 1));
}

/// S10.
#[test]
fn given_a_wiped_replica_when_it_joins_again_should_get_everything_and_vouch_for_nothing_before() {
    let mut cluster = Cluster::new(3);
    for _ in 0..4 {
        cluster.write(b"body");
    }
    cluster.lose_after(2, 0, Ending::Amnesia);
    cluster.disks[2].state.view = 0;
    cluster.disks[2].state.log_view = 0;
    cluster.start(2, false);
    cluster.pass(1_000);
    cluster.assert_agree();
    assert_eq!(cluster.disks[2].state.ending, Ending::Blank);
}

#[test]
fn given_what_was_forgotten_when_restarted_again_should_still_be_known_to_be_forgotten() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.lose_after(2, 0, Ending::Volatile);
    cluster.isolate(2);
    cluster.start(2, false);
    cluster.pass(200);
    cluster.crash(2);
    cluster.start(2, false);
    assert_eq!(cluster.replica(2).state().ending, Ending::Volatile);
}

/// D4.
#[test]
fn given_a_failed_write_when_the_primary_is_fenced_should_say_that_another_must_lead_and_nothing_more() {
    let mut cluster = Cluster::new(3);
    cluster.holding = vec![0];
    cluster.propose(0, b"a").unwrap();
    let (_, token) = cluster.held[0];
    let mut effects = Effects::new();
    let now = cluster.now;
    cluster
        .replica_mut(0)
        .step(now, Input::IoDone(token, false), &mut effects);
    let [
        Effect::Send { to: 1, message },
        Effect::Send { to: 2, .. },
        Effect::Fence(reason),
    ] = &effects[..]
    else {
        panic!("{effects:?}");
    };
    assert_eq!(*reason, FenceReason::JournalFailed { op: 1 });
    let last_word = message.clone();
    cluster.deliver();
    cluster.sent.clear();
    // It is enough that one of them hears it, and when none does its silence says the same.
    cluster.step(1, Input::Message(last_word));
    cluster.pass(3_000);
    assert!(cluster.sent.iter().all(|(from, ..)| *from != 0));
    assert_eq!(cluster.leader(), Some(1));
    cluster.write(b"b");
}

/// D4.
#[test]
fn given_a_failed_write_when_a_backup_is_fenced_should_say_nothing_more() {
    let mut cluster = Cluster::new(3);
    cluster.holding = vec![2];
    cluster.write(b"a");
    let (_, token) = cluster.held[0];
    cluster.sent.clear();
    cluster.step(2, Input::IoDone(token, false));
    cluster.pass(1_000);
    assert_eq!(cluster.sent.iter().filter(|(from, ..)| *from == 2).count(), 0);
    cluster.write(b"b");
    assert_eq!(cluster.commits[0], 2);
}

/// S10.
#[test]
fn given_a_recovering_replica_when_no_current_answer_came_should_take_no_part() {
    let mut cluster = Cluster::with(3, ReplicaConfig::default());
    cluster.write(b"a");
    cluster.crash(2);
    cluster.dropped = vec!["start-view"];
    cluster.start(2, false);
    cluster.sent.clear();
    cluster.write(b"b");
    assert_eq!(cluster.replica(2).status(), Status::Recovering);
    assert_eq!(cluster.count_sent(2, "prepare-ok"), 0);
}

#[test]
fn given_an_adoption_that_was_cut_short_when_restarted_should_vote_with_the_log_of_its_own_view() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(2);
    cluster.crash(0);
    cluster.start(0, false);
    cluster.pass(3_000);
    cluster.write(b"later");
    let stray = cluster.replica(cluster.leader().unwrap()).prepare(1).unwrap().clone();
    assert!(stray.header.view.get() > 0);
    cluster.crash(2);
    // It was written down here, the view was not.
    cluster.disks[2].log.push(stray);
    cluster.start(2, false);
    assert_eq!(cluster.replica(2).op(), 0);
    cluster.cut.clear();
    cluster.pass(2_000);
    cluster.assert_agree();
}

#[test]
fn given_a_wiped_disk_and_a_damaged_superblock_when_all_are_back_should_keep_what_the_damaged_one_wrote() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.pass(100);
    cluster.isolate(2);
    cluster.write(b"b");
    cluster.write(b"c");
    let log = cluster.log(1);
    assert_eq!((cluster.commits[0], log.len()), (3, 3));
    cluster.lose_after(0, 0, Ending::Amnesia);
    // What it wrote is whole; which views there were is not known.
    cluster.lose_after(1, 3, Ending::Amnesia);
    cluster.crash(2);
    cluster.cut.clear();
    for index in 0..3 {
        cluster.start(index, false);
    }
    cluster.pass(6_000);
    cluster.assert_agree();
    let leader = cluster.leader().unwrap();
    assert_eq!(cluster.log(leader), log);
    assert!(!cluster.losses.is_empty());
}

/// S3.
#[test]
fn given_a_replica_that_forgot_its_newest_view_when_it_starts_should_keep_what_it_wrote_in_it() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.crash(0);
    cluster.pass(3_000);
    cluster.write(b"b");
    let log = cluster.log(1);
    // The copy of the superblock that is left is from before the view.
    cluster.lose_after(1, 2, Ending::Amnesia);
    cluster.disks[1].state.view = 0;
    cluster.disks[1].state.log_view = 0;
    cluster.lose_after(2, 0, Ending::Amnesia);
    for index in 0..3 {
        cluster.start(index, false);
    }
    assert_eq!(cluster.log(1), log, "nothing is cut before it is known to differ");
    cluster.pass(6_000);
    cluster.assert_agree();
    assert_eq!(cluster.log(cluster.leader().unwrap()), log);
}
