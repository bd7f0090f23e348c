//! Partitions with other members: what their shard does for them besides the protocol.

#[path = "support/members.rs"]
mod members;

use iggy_consensus::GroupId;
use members::Members;
use std::collections::BTreeSet;

/// Groups for which a node has asked for another view.
fn searched(members: &Members, node: usize) -> BTreeSet<GroupId> {
    let wishes = members
        .said
        .iter()
        .filter(|(from, _, message)| *from == node && message.kind.name() == "start-view-change");
    wishes.map(|(_, _, message)| message.group).collect()
}

#[test]
fn given_many_groups_when_their_primary_dies_should_search_for_few_views_at_once_and_find_all() {
    let mut members = Members::new(3, 40, 4, |_| {});
    members.pass(1_000_000);
    assert!((0..40).all(|partition| members.leader(partition) == Some(0)));
    members.crash(0);
    members.cut = vec![(1, 2), (2, 1)];
    members.said.clear();
    // All of them miss it by now, and no search can end.
    members.pass(8_000_000);
    assert_eq!((searched(&members, 1).len(), searched(&members, 2).len()), (4, 4));
    members.cut.clear();
    members.pass(20_000_000);
    assert!((0..40).all(|partition| members.leader(partition).is_some()));
    assert_eq!(searched(&members, 1).len(), 40);
    assert!((1..3).all(|node| {
        members.shards[node]
            .as_ref()
            .is_some_and(|shard| shard.searching() == 0)
    }));
}

#[test]
fn given_searches_that_cannot_end_when_they_have_had_their_time_should_let_others_begin() {
    let mut members = Members::new(3, 12, 4, |_| {});
    members.pass(1_000_000);
    members.crash(0);
    members.crash(2);
    members.said.clear();
    members.pass(8_000_000);
    assert_eq!(searched(&members, 1).len(), 4);
    members.pass(20_000_000);
    assert_eq!(searched(&members, 1).len(), 12);
}

#[test]
fn given_groups_that_rest_when_their_nodes_live_should_be_led_as_before_and_say_nothing() {
    let mut members = Members::new(3, 20, 64, |config| {
        config.partition.consensus.resting_heartbeat = 30_000_000;
    });
    for partition in 0..20 {
        assert!(members.write(partition, 20));
    }
    members.pass(2_000_000);
    members.said.clear();
    for _ in 0..40 {
        members.pulse();
        members.pass(500_000);
    }
    assert_eq!(members.said.len(), 0, "{:?}", members.said.first());
    assert!((0..20).all(|partition| members.leader(partition) == Some(0)));
    members.crash(0);
    for _ in 0..40 {
        members.pulse();
        members.pass(500_000);
    }
    assert!((0..20).all(|partition| members.write(partition, 20)));
}

#[test]
fn given_a_write_that_fails_while_a_state_stands_on_it_when_the_state_is_complete_should_not_take_it() {
    for seed in 0..16 {
        let mut members = Members::new(3, 1, 64, |config| {
            config.partition.wal_bytes_max = 1 << 20;
        });
        assert!(members.write(0, 50));
        members.pass(1_000_000);
        // It is told of writes, more than a segment of them, and its disk has not yet written them.
        members.holding = vec![2];
        for _ in 0..10 {
            assert!(members.write(0, 50));
        }
        members.isolate(2);
        for _ in 0..10 {
            assert!(members.write(0, 50));
        }
        members.cut.clear();
        members.pass(1_000_000);
        assert!(members.travelled(2) > 0, "what it lacks comes as a state");
        members.order_disk(2, seed);
        members.disks[2].fail_next_writes(1);
        members.holding.clear();
        members.pass(1_000_000);
        members.crash(2);
        members.start(2, false);
        members.settle();
        let known = members.partition(2, 0).state().next_offset;
        assert!(members.whole(2, 0) >= known, "seed {seed}: {known} messages are known");
        members.pass(5_000_000);
        assert_eq!(members.partition(2, 0).state(), members.partition(0, 0).state());
        assert_eq!(members.whole(2, 0), members.partition(2, 0).state().next_offset);
    }
}
