//! Groups in which nothing happens: they say nothing, and yet nobody who is gone is waited for.

use crate::harness::Cluster;
use iggy_consensus::{Input, ReplicaConfig};

/// Between two heartbeats of a group that rests.
const RESTING: u64 = 2_000;

/// A group that has written something, and rests.
fn resting(count: u8) -> Cluster {
    let config = ReplicaConfig {
        resting_heartbeat: RESTING,
        ..ReplicaConfig::default()
    };
    let mut cluster = Cluster::with(count, config);
    cluster.nodes_live = true;
    cluster.write(b"a");
    cluster.pass(200);
    cluster.assert_agree();
    cluster.sent.clear();
    cluster
}

/// G4.
#[test]
fn given_a_group_in_which_nothing_happens_when_its_nodes_live_should_say_next_to_nothing_and_keep_its_view() {
    let mut cluster = resting(3);
    cluster.pass(20 * RESTING);
    let beats = cluster.count_sent(0, "commit");
    assert!((2 * 18..=2 * 20).contains(&beats), "{beats} in twenty rests");
    assert_eq!(
        cluster.sent.len(),
        2 * beats,
        "each has its answer, and nothing else is said"
    );
    assert_eq!(cluster.leader(), Some(0));
    assert_eq!(cluster.replica(0).view(), 0);
}

#[test]
fn given_a_resting_group_when_something_is_written_should_order_it_and_tell_that_it_is_committed() {
    let mut cluster = resting(3);
    cluster.pass(3 * RESTING + 700);
    cluster.write(b"b");
    cluster.pass(100);
    assert_eq!(cluster.commits, [2, 2, 2]);
    cluster.assert_agree();
    assert_eq!(cluster.replica(0).view(), 0);
}

#[test]
fn given_a_resting_group_when_the_process_of_its_primary_ends_should_elect_another() {
    let mut cluster = resting(3);
    cluster.pass(2 * RESTING);
    cluster.crash(0);
    cluster.pass(1_500);
    assert_eq!(cluster.leader(), Some(1));
    cluster.write(b"b");
    cluster.pass(100);
    cluster.assert_agree();
}

#[test]
fn given_a_resting_group_when_the_process_of_its_primary_is_another_should_not_take_its_life_for_the_old_one() {
    let mut cluster = resting(3);
    cluster.crash(0);
    // It lives, and what it asks is lost: only its node is heard.
    cluster.dropped = vec!["request-start-view", "start-view-change"];
    cluster.start(0, false);
    cluster.pass(1_500);
    let (first, second) = (
        cluster.count_sent(1, "start-view-change"),
        cluster.count_sent(2, "start-view-change"),
    );
    assert!(first > 0 && second > 0, "both miss their primary");
    cluster.dropped.clear();
    cluster.pass(2_000);
    cluster.assert_agree();
}

#[test]
fn given_a_resting_group_when_the_view_is_given_up_and_nobody_hears_of_it_should_not_be_waited_for() {
    let mut cluster = resting(3);
    cluster.dropped = vec!["start-view-change"];
    cluster.step(0, Input::HandOver { to: 1 });
    cluster.pass(100);
    cluster.dropped.clear();
    // It says again that it wants to be replaced, and from then on its node's life is not its own.
    cluster.pass(2_000);
    assert!(cluster.leader().is_some_and(|leader| leader != 0));
    cluster.assert_agree();
}

#[test]
fn given_a_primary_that_says_nothing_though_its_node_lives_when_its_rest_should_be_over_should_be_replaced() {
    let mut cluster = resting(3);
    cluster.dropped = vec!["commit"];
    cluster.pass(2 * RESTING);
    assert_eq!(cluster.leader(), Some(0), "a heartbeat or two may be lost");
    cluster.pass(3 * RESTING);
    assert!(cluster.replica(1).view() > 0 && cluster.replica(2).view() > 0);
}

#[test]
fn given_a_backup_that_has_not_heard_the_last_commit_when_the_primary_has_it_all_should_be_told_until_it_has() {
    let mut cluster = resting(3);
    cluster.dropped = vec!["commit"];
    cluster.write(b"b");
    cluster.pass(100);
    assert_eq!(cluster.commits, [2, 1, 1]);
    // What its backup said of the time before is no answer to what came after.
    cluster.sent.clear();
    cluster.dropped.clear();
    cluster.pass(100);
    assert_eq!(cluster.commits, [2, 2, 2]);
    assert!(cluster.count_sent(0, "commit") > 0);
}

#[test]
fn given_a_resting_group_when_a_backup_returns_should_be_heard_by_it_again() {
    let mut cluster = resting(3);
    cluster.crash(2);
    cluster.start(2, false);
    cluster.pass(300);
    cluster.assert_agree();
    assert_eq!(cluster.replica(0).view(), 0);
}

#[test]
fn given_a_primary_whose_nodes_are_all_out_of_reach_when_it_rests_should_step_down() {
    let mut cluster = resting(3);
    cluster.nodes_live = false;
    cluster.isolate(0);
    cluster.pass(600);
    assert!(!cluster.replica(0).is_primary());
}
