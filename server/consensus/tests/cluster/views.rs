//! From one view to the next.

use crate::harness::{Cluster, message};
use iggy_consensus::message::Kind;
use iggy_consensus::{Input, Refusal, Status};

/// S8, L1.
#[test]
fn given_a_dead_primary_when_its_silence_is_noticed_should_elect_the_next_and_keep_what_was_acknowledged() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    let log = cluster.log(0);
    cluster.crash(0);
    cluster.pass(2_000);
    assert_eq!(cluster.leader(), Some(1));
    assert_eq!(cluster.log(1), log);
    cluster.write(b"b");
    cluster.pass(100);
    cluster.assert_agree();
}

/// L1.
#[test]
fn given_groups_of_all_sizes_when_the_primary_dies_should_go_on_wherever_a_quorum_is_left() {
    for count in 3..=32 {
        let mut cluster = Cluster::new(count);
        cluster.write(b"a");
        cluster.crash(0);
        cluster.pass(6_000);
        assert!(cluster.leader().is_some(), "{count} replicas");
        cluster.write(b"b");
        cluster.pass(200);
        cluster.assert_agree();
    }
}

/// S9.
#[test]
fn given_two_replicas_when_one_dies_should_stop_and_never_commit_alone() {
    let mut cluster = Cluster::new(2);
    cluster.write(b"a");
    cluster.crash(1);
    cluster.pass(3_000);
    assert_eq!(cluster.leader(), None);
    cluster.start(1, false);
    cluster.pass(3_000);
    cluster.assert_agree();
}

/// S8.
#[test]
fn given_a_write_held_by_one_backup_when_the_primary_dies_should_survive() {
    let mut cluster = Cluster::new(3);
    cluster.cut = vec![(0, 1)];
    cluster.write(b"a");
    assert_eq!(cluster.commits[0], 1);
    cluster.cut.clear();
    cluster.crash(0);
    cluster.pass(2_000);
    assert_eq!(cluster.log(1).len(), 1);
    cluster.assert_agree();
}

#[test]
fn given_a_write_nobody_else_holds_when_its_primary_returns_should_be_dropped_everywhere() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(0);
    cluster.propose(0, b"lost").unwrap();
    cluster.deliver();
    cluster.pass(3_000);
    let leader = cluster.leader().unwrap();
    cluster.write(b"kept");
    cluster.cut.clear();
    cluster.pass(3_000);
    cluster.assert_agree();
    assert_eq!(cluster.log(0), cluster.log(leader));
    assert_eq!(cluster.log(0).len(), 1);
}

#[test]
fn given_a_primary_that_hears_nobody_when_its_timeout_has_passed_should_step_down() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(0);
    cluster.pass(600);
    assert!(!cluster.replica(0).is_primary());
    assert_eq!(cluster.propose(0, b"a"), Err(Refusal::NotPrimary { primary: 0 }));
    assert_eq!(cluster.replica(0).counters().steps_down, 1);
}

#[test]
fn given_a_replica_that_can_send_and_not_hear_when_it_asks_for_views_should_change_nothing() {
    let mut cluster = Cluster::new(3);
    cluster.cut = vec![(0, 2), (1, 2)];
    cluster.pass(5_000);
    assert_eq!((cluster.replica(0).view(), cluster.replica(1).view()), (0, 0));
    assert!(cluster.replica(0).is_primary());
    cluster.cut.clear();
    cluster.pass(2_000);
    cluster.assert_agree();
}

/// L1.
#[test]
fn given_a_primary_that_can_send_and_not_hear_when_time_passes_should_be_replaced() {
    let mut cluster = Cluster::new(3);
    cluster.cut = vec![(1, 0), (2, 0)];
    cluster.pass(4_000);
    assert!(cluster.replica(1).view() > 0);
    assert!(cluster.leader().is_some_and(|leader| leader != 0));
}

#[test]
fn given_one_broken_link_when_both_ends_see_a_third_should_settle_in_one_view() {
    let mut cluster = Cluster::new(3);
    cluster.cut = vec![(0, 1), (1, 0)];
    cluster.pass(20_000);
    cluster.write(b"a");
    let leader = cluster.leader().unwrap();
    assert_eq!(cluster.commits[usize::from(leader)], 1);
}

/// S3.
#[test]
fn given_a_new_view_when_its_state_is_not_written_should_not_vote_nor_speak_in_it() {
    let mut cluster = Cluster::new(3);
    cluster.holding = vec![2];
    cluster.crash(0);
    cluster.pass(1_500);
    assert_eq!(cluster.count_sent(2, "do-view-change"), 0);
    assert_eq!(cluster.leader(), None);
    cluster.release(2);
    cluster.pass(1_500);
    cluster.assert_agree();
}

#[test]
fn given_a_replica_alone_in_a_later_view_when_the_others_were_content_should_be_joined() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    let wish = Kind::StartViewChange {
        proposed: 4,
        hand_over: false,
    };
    // It hears one wish, has its own, and nobody hears it.
    cluster.cut = vec![(2, 0), (2, 1), (0, 2), (1, 2)];
    cluster.pass(900);
    cluster.step(2, Input::Message(message(1, 0, wish)));
    assert_eq!(cluster.replica(2).status(), Status::ViewChange);
    cluster.cut.clear();
    cluster.pass(4_000);
    cluster.assert_agree();
}

#[test]
fn given_a_wish_that_expired_when_another_comes_much_later_should_not_make_a_quorum() {
    let mut cluster = Cluster::new(3);
    let wish = |proposed| Kind::StartViewChange {
        proposed,
        hand_over: false,
    };
    cluster.step(0, Input::Message(message(1, 0, wish(1))));
    cluster.pass(700);
    cluster.step(0, Input::Message(message(2, 0, wish(1))));
    assert_eq!(cluster.replica(0).view(), 0);
}

#[test]
fn given_a_hand_over_when_the_successor_has_everything_should_make_it_lead_without_losing_a_write() {
    let mut cluster = Cluster::new(5);
    cluster.write(b"a");
    cluster.step(0, Input::HandOver { to: 3 });
    cluster.deliver();
    cluster.pass(300);
    assert_eq!(cluster.leader(), Some(3));
    cluster.write(b"b");
    cluster.pass(100);
    cluster.assert_agree();
}

#[test]
fn given_a_hand_over_when_something_is_in_flight_should_wait_for_it_and_take_nothing_new() {
    let mut cluster = Cluster::new(3);
    cluster.dropped = vec!["prepare-ok"];
    cluster.propose(0, b"a").unwrap();
    cluster.step(0, Input::HandOver { to: 1 });
    cluster.deliver();
    assert!(cluster.replica(0).is_primary());
    assert!(cluster.propose(0, b"b").is_err());
    cluster.dropped.clear();
    cluster.pass(150);
    assert_eq!(cluster.leader(), Some(1));
    assert_eq!(cluster.log(1).len(), 1);
}

#[test]
fn given_a_hand_over_when_the_successor_does_not_answer_should_go_on_leading() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(2);
    cluster.write(b"a");
    cluster.step(0, Input::HandOver { to: 2 });
    cluster.pass(300);
    assert!(cluster.replica(0).is_primary());
    cluster.write(b"b");
}

#[test]
fn given_a_search_that_is_put_off_when_nobody_else_searches_should_not_begin() {
    let mut cluster = Cluster::new(3);
    cluster.put_off = vec![1, 2];
    cluster.crash(0);
    cluster.pass(3_000);
    assert_eq!(cluster.count_sent(1, "start-view-change"), 0);
    assert!(cluster.replica(1).is_about_to_search(cluster.now));
    assert!(!cluster.replica(1).is_unsettled());
}

#[test]
fn given_a_search_that_is_put_off_when_another_member_searches_should_go_along() {
    let mut cluster = Cluster::new(3);
    cluster.put_off = vec![1];
    cluster.crash(0);
    cluster.pass(3_000);
    assert_eq!(cluster.leader(), Some(1));
    assert!(!cluster.replica(1).is_unsettled());
}

#[test]
fn given_a_search_that_is_put_off_when_the_primary_is_heard_again_should_be_forgotten() {
    let mut cluster = Cluster::new(3);
    cluster.put_off = vec![1];
    cluster.cut = vec![(0, 1)];
    cluster.pass(900);
    assert!(cluster.replica(1).is_about_to_search(cluster.now));
    cluster.cut.clear();
    cluster.pass(60);
    assert!(!cluster.replica(1).is_about_to_search(cluster.now));
    assert_eq!((cluster.leader(), cluster.replica(0).view()), (Some(0), 0));
}

#[test]
fn given_a_restarted_replica_when_its_search_is_put_off_should_ask_nobody() {
    let mut cluster = Cluster::new(3);
    cluster.crash(2);
    cluster.put_off = vec![2];
    cluster.dropped = vec!["start-view", "commit", "prepare"];
    cluster.start(2, false);
    cluster.pass(100);
    assert_eq!(cluster.count_sent(2, "request-start-view"), 0);
    cluster.put_off.clear();
    cluster.dropped.clear();
    cluster.pass(500);
    cluster.assert_agree();
}

/// S13.
#[test]
fn given_a_message_of_an_old_primary_when_received_should_be_answered_and_not_obeyed() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(0);
    cluster.pass(2_000);
    cluster.sent.clear();
    let before = cluster.commits[1];
    cluster.step(
        1,
        Input::Message(message(0, 0, Kind::Commit { commit: 9, last: false })),
    );
    assert_eq!(cluster.commits[1], before);
    assert_eq!(cluster.count_sent(1, "heard"), 1);
}
