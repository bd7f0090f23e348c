//! Partitions with other members: what their shard does for them besides the protocol.

#[path = "support/members.rs"]
mod members;

use iggy_consensus::{GroupId, Input};
use iggy_driver::partition_group::PartitionGroup;
use iggy_storage::image::Image;
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

/// G4.
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

/// Three nodes with forty batches, of which node 2 has just gone down. Every batch is some 350 bytes long.
fn forty() -> Members {
    forty_of(7)
}

fn forty_of(filling: u8) -> Members {
    let mut members = Members::new(3, 1, 64, |_| {});
    members.filling = filling;
    for _ in 0..40 {
        assert!(members.write(0, 50));
        members.pass(100_000);
    }
    members.pass(1_000_000);
    assert_eq!(members.whole(2, 0), 40);
    members.crash(2);
    members.said.clear();
    members
}

/// Starts node 2 again and lets it get what it lacks; the bytes of batches that came to it.
fn rejoin(members: &mut Members) -> usize {
    members.start(2, false);
    members.pass(5_000_000);
    assert_eq!(members.partition(2, 0).state(), members.partition(0, 0).state());
    assert_eq!(members.whole(2, 0), members.partition(0, 0).state().next_offset);
    assert_eq!(members.bytes(2, 0), members.bytes(0, 0));
    let left = members.files(2, ".aside");
    assert_eq!(left.len(), 0, "what was put aside is gone once it is of no more use");
    members.travelled(2)
}

fn damage(members: &Members, wanted: &str, offset: u64) {
    let paths = members.disks[2].paths();
    let path = paths.iter().find(|path| path.contains(wanted)).expect("a file");
    assert!(members.disks[2].flip_bit(path, offset, 3));
}

#[test]
fn given_a_member_whose_checkpoint_is_damaged_when_it_takes_a_state_should_be_sent_no_batch_it_has() {
    let mut members = forty();
    damage(&members, "/checkpoint.", 20);
    assert_eq!(rejoin(&mut members), 0);
}

#[test]
fn given_a_segment_with_a_damaged_batch_when_a_state_is_taken_should_be_sent_that_batch_alone() {
    let mut members = forty();
    damage(&members, "/checkpoint.", 20);
    // In the frames of the second batch of the second segment.
    let batch = members.batch_length(2, 0);
    damage(&members, "/00000000000000000008.log", batch + 300);
    assert_eq!(rejoin(&mut members), batch as usize);
}

#[test]
fn given_a_batch_whose_length_is_damaged_when_a_state_is_taken_should_be_sent_the_rest_of_its_segment_alone() {
    let mut members = forty();
    damage(&members, "/checkpoint.", 20);
    let batch = members.batch_length(2, 0);
    // Its length, so that nobody knows where the next one begins.
    damage(&members, "/00000000000000000008.log", 5 * batch + 33);
    assert_eq!(rejoin(&mut members), 3 * batch as usize);
}

#[test]
fn given_batches_that_were_written_meanwhile_when_a_state_is_taken_should_be_sent_what_is_new_alone() {
    let mut members = forty();
    damage(&members, "/checkpoint.", 20);
    for _ in 0..10 {
        assert!(members.write(0, 50));
    }
    let batch = members.batch_length(0, 0) as usize;
    assert_eq!(rejoin(&mut members), 10 * batch);
}

#[test]
fn given_a_transfer_that_was_cut_short_when_it_begins_again_should_be_sent_nothing_twice() {
    for steps in 0..60 {
        let mut members = forty();
        damage(&members, "/checkpoint.", 20);
        members.disks[2].die_after(steps);
        members.start(2, false);
        members.pass(3_000_000);
        members.crash(2);
        members.disks[2].heal();
        assert_eq!(rejoin(&mut members), 0, "dead after {steps} steps");
    }
}

#[test]
fn given_a_member_without_segments_when_a_state_is_taken_should_be_sent_everything() {
    let mut members = forty();
    damage(&members, "/checkpoint.", 20);
    for path in members.files(2, ".log") {
        members.remove(2, &path);
    }
    let all = 40 * members.batch_length(0, 0) as usize;
    assert_eq!(rejoin(&mut members), all);
}

/// S21.
#[test]
fn given_batches_of_another_history_in_the_same_places_when_a_state_is_taken_should_be_sent_the_true_ones() {
    let mut members = forty();
    damage(&members, "/checkpoint.", 20);
    let other = forty_of(8);
    let path = &members.files(2, "00016.log")[0];
    let bytes = other.disks[2].read_all(path, 1 << 30).unwrap().unwrap();
    members.overwrite(2, path, bytes.into());
    let batch = members.batch_length(0, 0) as usize;
    assert_eq!(rejoin(&mut members), 8 * batch);
}

/// Whether a node hosts a partition, and whether it leads it.
fn role(members: &Members, node: usize, partition: u32) -> Option<bool> {
    let shard = members.shards[node].as_ref()?;
    let group = shard
        .partitions()
        .find(|group| group.key() == members::key(partition))?;
    Some(group.leads())
}

#[test]
fn given_members_in_any_order_when_started_should_be_led_by_the_first_and_held_by_nobody_else() {
    let mut members = Members::placed(4, vec![vec![2, 0, 3], vec![3, 1], vec![1]], 64, |_| {});
    members.pass(1_000_000);
    let roles = |partition| [0, 1, 2, 3].map(|node| role(&members, node, partition));
    assert_eq!(roles(0), [Some(false), None, Some(true), Some(false)]);
    assert_eq!(roles(1), [None, Some(false), None, Some(true)]);
    assert_eq!(roles(2), [None, Some(true), None, None]);
    for (node, partition, is_taken) in [(2, 0, true), (0, 0, false), (1, 0, false), (3, 1, true), (1, 2, true)] {
        let ticket = members.send(node, partition, 50);
        members.pass(500_000);
        assert_eq!(
            members.answers.pop(),
            Some((ticket, is_taken)),
            "partition {partition} at node {node}"
        );
    }
    assert!(
        members
            .said
            .iter()
            .all(|(from, _, message)| *from == usize::from(message.from))
    );
}

#[test]
fn given_members_in_any_order_when_the_leader_hands_over_should_let_the_named_node_lead() {
    let mut members = Members::placed(4, vec![vec![2, 0, 3]], 64, |_| {});
    members.pass(1_000_000);
    let (now, key) = (members.now, members::key(0));
    for (node, leader) in [(1, 2), (3, 3)] {
        if let Some(shard) = &mut members.shards[2] {
            shard.instruct(now, Some(&key), Input::HandOver { to: node });
        }
        members.pass(3_000_000);
        assert_eq!(role(&members, leader, 0), Some(true), "asked for node {node}");
    }
}

#[test]
fn given_the_only_member_when_its_disk_is_lost_should_begin_a_new_history() {
    let mut members = Members::placed(2, vec![vec![1]], 64, |_| {});
    members.pass(1_000_000);
    members.crash(1);
    members.disks[1] = iggy_storage::memory::MemoryDisk::new();
    members.start(1, false);
    members.pass(1_000_000);
    let shard = members.shards[1].as_ref().expect("it was started");
    let losses: Vec<_> = shard.partitions().map(PartitionGroup::unknown_losses).collect();
    assert_eq!(losses, [Some(1)]);
}

#[test]
fn given_a_member_that_is_cut_off_when_time_passes_should_be_in_sync_no_longer_until_it_returns() {
    let mut members = Members::placed(4, vec![vec![2, 0, 3], vec![1]], 64, |_| {});
    members.pass(1_000_000);
    let in_sync = |members: &Members, partition: usize| {
        [0, 1, 2, 3].map(|node: usize| members.counters[node][partition].in_sync())
    };
    assert_eq!(in_sync(&members, 0), [vec![], vec![], vec![0, 2, 3], vec![]]);
    assert_eq!(in_sync(&members, 1), [vec![], vec![1], vec![], vec![]]);
    members.isolate(3);
    members.pass(10_000_000);
    assert_eq!(in_sync(&members, 0), [vec![], vec![], vec![0, 2], vec![]]);
    members.cut.clear();
    members.pass(20_000_000);
    let after = in_sync(&members, 0);
    assert_eq!(after.concat(), [0, 2, 3], "{after:?}");
}
