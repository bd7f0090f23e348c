//! A started view.

use crate::harness::{Cluster, message};
use iggy_consensus::message::Kind;
use iggy_consensus::{Input, Refusal, ReplicaConfig};

#[test]
fn given_three_replicas_when_one_backup_acknowledges_should_commit_and_tell_the_others() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(2);
    cluster.write(b"a");
    assert_eq!(cluster.commits[0], 1);
    cluster.pass(60);
    assert_eq!(cluster.commits[1], 1);
}

#[test]
fn given_no_backup_when_written_should_not_commit() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(0);
    cluster.propose(0, b"a").unwrap();
    cluster.deliver();
    assert_eq!(cluster.commits, [0, 0, 0]);
}

/// D10.
#[test]
fn given_a_backup_whose_write_is_not_done_when_asked_should_not_acknowledge() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(2);
    cluster.holding = vec![1];
    cluster.write(b"a");
    assert_eq!((cluster.commits[0], cluster.count_sent(1, "prepare-ok")), (0, 0));
    cluster.release(1);
    cluster.deliver();
    assert_eq!(cluster.commits[0], 1);
}

/// D10.
#[test]
fn given_a_primary_whose_own_write_is_late_when_backups_have_it_should_answer_only_once_it_is_done() {
    let mut cluster = Cluster::new(3);
    cluster.holding = vec![0];
    cluster.write(b"a");
    assert_eq!(cluster.commits[0], 0);
    cluster.release(0);
    assert_eq!(cluster.commits[0], 1);
}

/// S11.
#[test]
fn given_an_acknowledgement_that_comes_twice_when_counted_should_count_once() {
    let mut cluster = Cluster::new(5);
    cluster.dropped = vec!["prepare-ok"];
    cluster.propose(0, b"a").unwrap();
    cluster.deliver();
    let checksum = cluster.replica(0).log_end().checksum;
    for _ in 0..3 {
        let ok = message(1, 0, Kind::PrepareOk { op: 1, checksum });
        cluster.step(0, Input::Message(ok));
    }
    assert_eq!(cluster.commits[0], 0);
}

/// S11.
#[test]
fn given_an_acknowledgement_of_another_prepare_when_counted_should_be_ignored() {
    let mut cluster = Cluster::new(3);
    cluster.isolate(0);
    cluster.propose(0, b"a").unwrap();
    let ok = message(1, 0, Kind::PrepareOk { op: 1, checksum: 99 });
    cluster.step(0, Input::Message(ok));
    assert_eq!(cluster.commits[0], 0);
}

/// S11.
#[test]
fn given_an_acknowledgement_of_an_earlier_life_when_counted_should_be_ignored() {
    let mut cluster = Cluster::new(3);
    cluster.dropped = vec!["prepare-ok"];
    cluster.propose(0, b"a").unwrap();
    cluster.deliver();
    let checksum = cluster.replica(0).log_end().checksum;
    cluster.crash(1);
    cluster.start(1, false);
    cluster.deliver();
    let old = message(1, 0, Kind::PrepareOk { op: 1, checksum });
    cluster.step(0, Input::Message(old));
    assert_eq!((cluster.commits[0], cluster.replica(0).counters().outdated), (0, 1));
}

#[test]
fn given_a_lost_prepare_when_time_passes_should_be_sent_again() {
    let mut cluster = Cluster::new(3);
    cluster.dropped = vec!["prepare"];
    cluster.write(b"a");
    assert_eq!(cluster.commits[0], 0);
    cluster.dropped.clear();
    cluster.pass(100);
    cluster.assert_agree();
}

#[test]
fn given_a_lost_acknowledgement_when_the_prepare_comes_again_should_be_given_again() {
    let mut cluster = Cluster::new(3);
    cluster.dropped = vec!["prepare-ok"];
    cluster.write(b"a");
    cluster.dropped.clear();
    cluster.pass(100);
    cluster.assert_agree();
}

#[test]
fn given_prepares_out_of_order_when_received_should_be_journaled_in_order() {
    let mut cluster = Cluster::new(3);
    for body in [b"a", b"b", b"c"] {
        cluster.propose(0, body).unwrap();
    }
    cluster.packets.reverse();
    cluster.deliver();
    cluster.pass(100);
    cluster.assert_agree();
    assert_eq!(cluster.log(1), cluster.log(0));
}

/// S17.
#[test]
fn given_a_full_pipeline_when_proposed_should_refuse_and_write_nothing() {
    let config = ReplicaConfig {
        pipeline_max: 2,
        ..ReplicaConfig::default()
    };
    let mut cluster = Cluster::with(3, config);
    cluster.isolate(0);
    cluster.propose(0, b"a").unwrap();
    cluster.propose(0, b"b").unwrap();
    assert_eq!(cluster.propose(0, b"c"), Err(Refusal::PipelineFull { limit: 2 }));
}

/// S17, L3.
#[test]
fn given_a_backup_that_acknowledges_nothing_when_its_credit_is_used_up_should_be_sent_no_more_and_hold_up_nobody() {
    let config = ReplicaConfig {
        credit_bytes: 300,
        ..ReplicaConfig::default()
    };
    let mut cluster = Cluster::with(3, config);
    cluster.holding = vec![2];
    for _ in 0..10 {
        cluster.write(b"body");
    }
    assert_eq!(cluster.commits[0], 10);
    let to_slow = cluster.sent.iter().filter(|sent| **sent == (0, 2, "prepare")).count();
    assert_eq!(to_slow, 1);
    cluster.release(2);
    cluster.pass(500);
    cluster.assert_agree();
}

/// G2.
#[test]
fn given_a_backup_when_proposed_to_should_name_the_primary() {
    let mut cluster = Cluster::new(3);
    assert_eq!(cluster.propose(2, b"a"), Err(Refusal::NotPrimary { primary: 0 }));
}

/// S16.
#[test]
fn given_a_wall_clock_that_goes_back_when_written_should_give_rising_timestamps() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    let first = cluster.replica(0).log_end().timestamp;
    cluster.now.wall = 5;
    cluster.write(b"b");
    assert!(cluster.replica(0).log_end().timestamp > first);
    cluster.crash(0);
    cluster.pass(3_000);
    cluster.write(b"c");
    let leader = cluster.leader().unwrap();
    assert!(cluster.replica(leader).log_end().timestamp > first + 1);
}

#[test]
fn given_an_idle_group_when_time_passes_should_send_heartbeats_and_their_answers_alone() {
    let mut cluster = Cluster::new(3);
    cluster.write(b"a");
    cluster.pass(100);
    cluster.sent.clear();
    cluster.pass(1_000);
    assert!(
        cluster
            .sent
            .iter()
            .all(|(_, _, kind)| ["commit", "heard"].contains(kind))
    );
    assert!(cluster.sent.len() <= 2 * 2 * 21);
}
