//! What waiting costs, and what bounds it: an append looks at nobody it cannot serve, idle waits are not looked at, and
//! every limit holds.

#[path = "crash/node.rs"]
#[allow(dead_code)] // Its limits alone are used.
mod node;

#[path = "parking/desk.rs"]
mod desk;

use desk::{Desk, GROUP, alone, key, poll_from};
use iggy_driver::request::{Answer, PartitionRequest, Poll};
use iggy_driver::shard::{Watch, WatchTarget};
use iggy_driver::tally::{Place, Progress, Tally, Wanted, WatchId, Watching};
use iggy_driver::{Order, ShardConfig};
use iggy_partition::operation::ConsumerKey;
use iggy_protocol::context::PartitionContext;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limits that none of the waits meet.
fn roomy() -> ShardConfig {
    let mut config = node::config(1);
    config.partition.tail_bytes_max = 1 << 20;
    config.partition.wal_bytes_max = 1 << 30;
    config.tails_bytes_max = 1 << 30;
    config.parked_max = 1_000_000;
    config.parked_per_session_max = 1_000_000;
    config.parked_wait_max = u64::MAX;
    config
}

#[test]
fn given_ten_thousand_idle_waits_when_others_are_served_should_not_be_looked_at() {
    let mut desk = Desk::new(roomy(), 101);
    for partition in 0..100 {
        for _ in 0..100 {
            desk.poll(key(partition), 1, poll_from(0));
        }
    }
    assert_eq!(desk.shard.parked(), 10_000);
    let busy = key(100);
    let served = desk.poll(busy, 1, poll_from(0));
    for _ in 0..50 {
        desk.send(busy, 1, 10);
    }
    assert_eq!(desk.polled(served), Some(1));
    assert_eq!(desk.visits(busy), 1);
    let looked_at: u64 = (0..100).map(|partition| desk.visits(key(partition))).sum();
    assert_eq!(looked_at, 0);
    assert_eq!(
        desk.shard.next_deadline(),
        Some(1_000_001),
        "nothing is to be done before the first deadline"
    );
    desk.tick(1_000_001);
    assert_eq!((desk.shard.parked(), desk.shard.next_deadline()), (0, None));
}

#[test]
fn given_waits_for_many_messages_when_few_come_should_look_only_at_those_that_have_enough() {
    let mut desk = Desk::new(roomy(), 1);
    let wanting = |min_count| Poll {
        min_count,
        ..poll_from(0)
    };
    let many: Vec<u64> = (0..500).map(|_| desk.poll(key(0), 1, wanting(1_000))).collect();
    let few: Vec<u64> = (1..=20)
        .map(|min_count| desk.poll(key(0), 1, wanting(min_count)))
        .collect();
    for sent in 1..=20_u32 {
        desk.send(key(0), 1, 10);
        let answered = few.iter().filter(|ticket| desk.polled(**ticket).is_some()).count();
        assert_eq!((answered as u32, desk.visits(key(0))), (sent, u64::from(sent)));
        assert_eq!(desk.polled(few[sent as usize - 1]), Some(sent));
    }
    assert!(many.iter().all(|ticket| desk.polled(*ticket).is_none()));
}

#[test]
fn given_byte_limits_when_a_reply_is_full_should_answer_before_there_are_enough_messages() {
    let mut desk = Desk::new(roomy(), 1);
    desk.send(key(0), 2, 100);
    let limited = |max_bytes| Poll {
        min_count: 900,
        max_bytes,
        ..poll_from(0)
    };
    // A batch of one message of 100 bytes has 404 bytes, the first one 552; a further message needs 304 at least.
    let small = desk.poll(key(0), 1, limited(40 + 552 + 404 + 303));
    let large = desk.poll(key(0), 1, limited(40 + 552 + 404 + 304));
    let full = desk.poll(key(0), 1, limited(40 + 552 + 303));
    assert_eq!(desk.polled(full), Some(2), "it was full from the start");
    desk.send(key(0), 1, 100);
    assert_eq!((desk.polled(small), desk.polled(large)), (Some(3), None));
    desk.send(key(0), 1, 100);
    assert_eq!(desk.polled(large), Some(3));
    assert_eq!(desk.visits(key(0)), 2);
}

#[test]
fn given_a_start_beyond_the_end_when_the_log_grows_should_count_only_what_comes_after_it() {
    let mut desk = Desk::new(roomy(), 1);
    let ahead = Poll {
        min_count: 2,
        max_bytes: 1_000,
        ..poll_from(5)
    };
    let ticket = desk.poll(key(0), 1, ahead);
    desk.send(key(0), 5, 1_000);
    desk.send(key(0), 1, 10);
    assert_eq!(desk.polled(ticket), None);
    desk.send(key(0), 1, 10);
    assert_eq!(desk.polled(ticket), Some(2));
}

#[test]
fn given_a_wait_when_messages_before_its_count_are_dropped_should_wait_for_as_many_new_ones() {
    let mut desk = Desk::new(roomy(), 1);
    desk.send(key(0), 3, 10);
    let ticket = desk.poll(
        key(0),
        1,
        Poll {
            min_count: 5,
            ..poll_from(0)
        },
    );
    desk.order(Order::Truncate { key: key(0), before: 3 });
    desk.settle();
    desk.send(key(0), 2, 10);
    assert_eq!(desk.polled(ticket), None, "three of five are gone");
    desk.send(key(0), 3, 10);
    assert_eq!(desk.polled(ticket), Some(5));
}

/// A time that lies before everything in memory was once taken for the start of the log.
#[test]
fn given_a_time_older_than_memory_when_polled_for_more_than_there_is_should_wait_for_it() {
    let mut config = roomy();
    config.partition.tail_bytes_max = 1;
    let mut desk = Desk::new(config, 1);
    for _ in 0..8 {
        desk.send(key(0), 1, 10);
    }
    // Batches lie 10 microseconds apart; this is between the fifth and the sixth.
    let strategy = PollingStrategy::Timestamp(1_000_055);
    let wanting = |min_count| Poll {
        min_count,
        strategy,
        ..poll_from(0)
    };
    let three = desk.poll(key(0), 1, wanting(3));
    let four = desk.poll(key(0), 1, wanting(4));
    let never = desk.poll(key(0), 1, wanting(900));
    desk.settle();
    assert_eq!(desk.polled(three), Some(3));
    assert_eq!(desk.polled(four), None);
    desk.send(key(0), 1, 10);
    assert_eq!(desk.polled(four), Some(4));
    desk.tick(1_000_000);
    assert_eq!(desk.polled(never), Some(4), "an expired wait brings what there is");
}

#[test]
fn given_a_time_to_come_when_older_messages_arrive_should_wait_for_it() {
    let mut desk = Desk::new(roomy(), 1);
    let strategy = PollingStrategy::Timestamp(1_000_035);
    let ticket = desk.poll(
        key(0),
        1,
        Poll {
            strategy,
            ..poll_from(0)
        },
    );
    for _ in 0..3 {
        desk.send(key(0), 1, 10);
    }
    assert_eq!((desk.polled(ticket), desk.visits(key(0))), (None, 0));
    desk.send(key(0), 1, 10);
    assert_eq!(desk.polled(ticket), Some(1));
    assert_eq!(desk.head(ticket).expect("answered").current_offset, 3);
}

#[test]
fn given_messages_on_disk_when_polled_should_read_on_until_there_are_enough_and_stop_at_the_budget() {
    let mut config = roomy();
    config.partition.tail_bytes_max = 1;
    config.partition.read_bytes_max = 70_000;
    let mut desk = Desk::new(config, 1);
    for _ in 0..40 {
        desk.send(key(0), 1, 5_000);
    }
    let wanting = |min_count| Poll {
        min_count,
        ..poll_from(0)
    };
    let within = desk.poll(key(0), 1, wanting(10));
    let beyond = desk.poll(key(0), 1, wanting(40));
    desk.settle();
    assert!(desk.polled(within) >= Some(10));
    // The reply is no larger than one read, and comes at once: waiting would not make it larger.
    let messages = desk.polled(beyond).expect("the prefix that fits");
    assert!((10..=13).contains(&messages), "{messages} messages in 70,000 bytes");
}

#[test]
fn given_long_waits_when_parked_should_be_shortened_to_the_limit() {
    let mut config = roomy();
    config.parked_wait_max = 30_000_000;
    let mut desk = Desk::new(config, 1);
    let ticket = desk.poll(
        key(0),
        1,
        Poll {
            wait: 600_000_000,
            ..poll_from(0)
        },
    );
    assert_eq!(desk.shard.next_deadline(), Some(30_000_001));
    desk.tick(29_999_999);
    assert_eq!(desk.polled(ticket), None);
    desk.tick(1);
    assert_eq!(desk.polled(ticket), Some(0));
}

#[test]
fn given_full_bounds_when_another_wait_comes_should_be_refused_until_one_ends() {
    let mut config = roomy();
    config.parked_max = 5;
    config.parked_per_session_max = 3;
    let mut desk = Desk::new(config, 2);
    let refused = Some(ErrorCode::DeferredPollCapacityExceeded.code());
    let mine: Vec<u64> = (0..4).map(|_| desk.poll(key(0), 1, poll_from(0))).collect();
    assert_eq!(desk.status(mine[3]), refused, "a session parks three");
    let others: Vec<u64> = (0..3).map(|_| desk.poll(key(1), 2, poll_from(0))).collect();
    assert_eq!(desk.status(others[2]), refused, "a shard parks five");
    let at_once = desk.poll(
        key(1),
        2,
        Poll {
            wait: 0,
            ..poll_from(0)
        },
    );
    assert_eq!(desk.polled(at_once), Some(0), "who does not wait needs no place");
    desk.shard.disconnected(1);
    desk.take();
    assert_eq!(desk.polled(mine[0]), Some(0));
    let again = desk.poll(key(0), 1, poll_from(0));
    assert_eq!(desk.status(again), None, "places of those that left are free");
}

#[test]
fn given_a_wait_for_the_end_of_all_offsets_when_messages_come_should_wait_on() {
    let mut desk = Desk::new(roomy(), 1);
    let ticket = desk.poll(key(0), 1, poll_from(u64::MAX));
    desk.send(key(0), 2, 10);
    assert_eq!(desk.polled(ticket), None);
    desk.tick(1_000_000);
    assert_eq!(desk.polled(ticket), Some(0));
}

#[test]
fn given_waiting_readers_when_a_message_comes_should_answer_the_first_of_them_before_its_producer() {
    let mut desk = Desk::new(roomy(), 1);
    let readers: Vec<u64> = (0..20).map(|_| desk.poll(key(0), 1, poll_from(0))).collect();
    let producer = desk.send(key(0), 1, 10);
    assert_eq!(desk.order[..16], readers[..16]);
    assert_eq!(desk.order[16], producer, "a crowd does not hold it up");
    assert_eq!(desk.order[17..], readers[16..]);
}

#[test]
fn given_a_session_that_waits_on_two_shards_should_be_bounded_on_both_together() {
    let mut config = roomy();
    config.parked_per_session_max = 3;
    let sessions = Arc::default();
    let mut one = Desk::sharing(config, 1, Arc::clone(&sessions));
    let mut two = Desk::sharing(config, 1, sessions);
    let refused = Some(ErrorCode::DeferredPollCapacityExceeded.code());
    one.poll(key(0), 1, poll_from(0));
    one.poll(key(0), 1, poll_from(0));
    two.poll(key(0), 1, poll_from(0));
    let (fourth, of_another) = (two.poll(key(0), 1, poll_from(0)), two.poll(key(0), 2, poll_from(0)));
    assert_eq!((two.status(fourth), two.status(of_another)), (refused, None));
    one.shard.disconnected(1);
    one.take();
    let again = two.poll(key(0), 1, poll_from(0));
    assert_eq!(
        two.status(again),
        None,
        "a place that is free on one shard is free on the other"
    );
}

#[test]
fn given_polls_that_wait_for_an_owner_when_it_is_installed_should_still_meet_the_bounds() {
    let mut config = roomy();
    config.parked_max = 2;
    let mut desk = Desk::new(config, 1);
    let install = Order::InstallOwner {
        key: key(0),
        group: GROUP,
        generation: 7,
        member: Some(iggy_partition::operation::Member { client: 1, session: 1 }),
    };
    desk.order(install);
    let group = Poll {
        consumer: ConsumerKey::Group(GROUP),
        ..poll_from(0)
    };
    let tickets: Vec<u64> = (0..4).map(|_| desk.poll(key(0), 1, group.clone())).collect();
    desk.settle();
    let refused = Some(ErrorCode::DeferredPollCapacityExceeded.code());
    let statuses: Vec<Option<u32>> = tickets.iter().map(|ticket| desk.status(*ticket)).collect();
    assert_eq!(statuses, [None, None, refused, refused]);
    assert_eq!(desk.shard.parked(), 2);
}

/// Reads wait for room in the order in which they came: a large one is not overtaken for ever by small ones.
#[test]
fn given_little_room_for_reads_when_many_come_should_read_them_in_turn_within_it() {
    let mut config = roomy();
    config.partition.tail_bytes_max = 1;
    config.read_bytes_max = 150_000;
    let mut desk = Desk::new(config, 1);
    for _ in 0..40 {
        desk.send(key(0), 1, 5_000);
    }
    let sized = |max_bytes| Poll {
        max_bytes,
        wait: 0,
        ..poll_from(0)
    };
    let answered_before = desk.order.len();
    let sizes = [20_000, 200_000, 20_000, 100_000, 20_000, 200_000, 20_000];
    let tickets: Vec<u64> = sizes.iter().map(|size| desk.poll(key(0), 1, sized(*size))).collect();
    assert!(desk.shard.reading() <= 150_000);
    let mut most = 0;
    for _ in 0..40 {
        desk.shard.complete(desk.now);
        most = most.max(desk.shard.reading());
        desk.take();
    }
    assert_eq!(desk.order[answered_before..], tickets);
    // A single read may always run, whatever its size.
    assert!(most <= 300_000, "{most} bytes were read at once");
    assert_eq!(desk.shard.reading(), 0);
}

#[test]
fn given_a_group_when_its_partition_changes_hands_should_end_the_waits_of_the_former_owner() {
    let mut desk = Desk::new(roomy(), 1);
    desk.install_owner(key(0), 7, 1);
    let group = Poll {
        consumer: ConsumerKey::Group(GROUP),
        ..poll_from(0)
    };
    let former = desk.poll(key(0), 1, group.clone());
    let plain = desk.poll(key(0), 1, poll_from(0));
    desk.install_owner(key(0), 8, 2);
    assert_eq!(
        desk.status(former),
        Some(ErrorCode::ConsumerGroupPartitionNotOwned.code())
    );
    let current = desk.poll(key(0), 2, group);
    desk.send(key(0), 1, 10);
    assert_eq!((desk.polled(current), desk.polled(plain)), (Some(1), Some(1)));
    assert_eq!(desk.head(current).expect("answered").context.owner_generation, 8);
}

/// A hand-over is an entry of the partition's log: what its owner wrote before it counts, and nothing after it.
#[test]
fn given_a_partition_that_changes_hands_when_the_former_owner_commits_should_store_what_came_before_and_refuse_the_rest()
 {
    let mut desk = Desk::new(roomy(), 1);
    let group = ConsumerKey::Group(GROUP);
    desk.send(key(0), 9, 10);
    desk.install_owner(key(0), 7, 1);
    let store = |offset| PartitionRequest::StoreOffset {
        consumer: ConsumerKey::Group(GROUP),
        offset,
    };
    let read = Poll {
        consumer: group.clone(),
        count: 4,
        commit: true,
        wait: 0,
        ..poll_from(0)
    };
    let in_time = desk.ask(key(0), 1, store(2));
    desk.order(Order::InstallOwner {
        key: key(0),
        group: GROUP,
        generation: 8,
        member: Some(iggy_partition::operation::Member { client: 2, session: 2 }),
    });
    // It comes while the hand-over is being written, and waits for it.
    let between = desk.ask(key(0), 1, store(5));
    desk.settle();
    let fenced = Some(ErrorCode::ConsumerGroupPartitionNotOwned.code());
    assert_eq!((desk.status(in_time), desk.status(between)), (Some(0), fenced));
    assert_eq!(desk.stored(key(0), &group), Some(2));
    let late = [
        desk.ask(key(0), 1, store(6)),
        desk.poll(key(0), 1, read.clone()),
        desk.ask(
            key(0),
            1,
            PartitionRequest::DeleteOffset {
                consumer: group.clone(),
            },
        ),
    ];
    desk.settle();
    for ticket in late {
        assert_eq!(desk.status(ticket), fenced);
    }
    assert_eq!(desk.stored(key(0), &group), Some(2));
    let next = Poll {
        strategy: PollingStrategy::Next,
        ..read
    };
    let current = desk.poll(key(0), 2, next);
    desk.settle();
    assert_eq!((desk.polled(current), desk.stored(key(0), &group)), (Some(4), Some(6)));
}

fn watch(desk: &mut Desk, id: u64, partitions: u32, wait: u64, wanted: Wanted) -> (Arc<Tally>, Arc<AtomicUsize>) {
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    let tally = Arc::new(Tally::new(wanted, move || {
        count.fetch_add(1, Ordering::Relaxed);
    }));
    let origin = desk.origin(key(0), Operation::NonReplicated, 1);
    let targets = (0..partitions).map(|partition| WatchTarget {
        key: key(partition),
        context: PartitionContext {
            incarnation: key(partition).incarnation,
            ..PartitionContext::default()
        },
        watching: Watching {
            watch: WatchId(id),
            place: partition as usize,
            tally: Arc::clone(&tally),
            consumer: alone(),
            strategy: PollingStrategy::Next,
            waits: wait > 0,
            metadata_op: 1,
        },
    });
    let watch = Watch {
        id: WatchId(id),
        origin,
        targets: targets.collect(),
        tally: Arc::clone(&tally),
        wait,
    };
    desk.shard.watch(desk.now, watch);
    (tally, woken)
}

fn wanted(partitions: u32, messages: u64) -> Wanted {
    Wanted {
        messages,
        bytes: 1 << 20,
        bytes_each: vec![1 << 20; partitions as usize],
    }
}

#[test]
fn given_a_fetch_over_a_thousand_idle_partitions_when_it_waits_should_cost_nothing_until_messages_come() {
    let mut desk = Desk::new(roomy(), 1_001);
    let (tally, woken) = watch(&mut desk, 1, 1_000, 1_000_000, wanted(1_000, 2));
    assert_eq!((tally.progress(), woken.load(Ordering::Relaxed)), (Progress::Short, 1));
    for _ in 0..100 {
        desk.send(key(1_000), 1, 10);
    }
    let visits = |desk: &Desk| (0..1_000).map(|partition| desk.visits(key(partition))).sum::<u64>();
    assert_eq!(visits(&desk), 0);
    desk.send(key(3), 1, 10);
    assert_eq!((visits(&desk), tally.progress()), (1, Progress::Short));
    desk.send(key(900), 1, 10);
    assert_eq!((visits(&desk), tally.progress()), (2, Progress::Ready));
    assert_eq!(woken.load(Ordering::Relaxed), 2);
    assert!(tally.close());
    desk.shard.unwatch(WatchId(1));
    desk.send(key(3), 1, 10);
    assert_eq!(visits(&desk), 2, "nobody counts for a fetch that is over");
    assert_eq!((desk.shard.parked(), desk.shard.next_deadline()), (0, None));
}

#[test]
fn given_a_fetch_when_a_partition_is_deleted_or_changes_hands_should_count_the_others() {
    let mut desk = Desk::new(roomy(), 3);
    let (tally, _) = watch(&mut desk, 1, 3, 1_000_000, wanted(3, 2));
    desk.order(Order::Delete { key: key(1) });
    desk.settle();
    assert_eq!(tally.places()[1], Place::Refused(ErrorCode::HistoryUnavailable));
    desk.send(key(0), 1, 10);
    desk.send(key(2), 1, 10);
    assert_eq!(tally.progress(), Progress::Ready);
}

#[test]
fn given_full_bounds_when_a_fetch_has_enough_should_serve_it_and_otherwise_say_so() {
    let mut config = roomy();
    config.parked_per_session_max = 1;
    let mut desk = Desk::new(config, 2);
    desk.poll(key(0), 1, poll_from(0));
    let (tally, _) = watch(&mut desk, 1, 2, 1_000_000, wanted(2, 1));
    assert!(tally.has_no_room() && tally.progress() == Progress::Short);
    assert!(!tally.close(), "nothing goes on counting");
    desk.send(key(1), 1, 10);
    let (tally, _) = watch(&mut desk, 2, 2, 1_000_000, wanted(2, 1));
    assert_eq!(tally.progress(), Progress::Ready);
    assert_eq!(desk.shard.parked(), 1, "the poll waits on");
}

#[test]
fn given_commit_policies_when_read_should_store_the_last_offset_or_nothing() {
    let mut desk = Desk::new(roomy(), 1);
    desk.send(key(0), 5, 10);
    let next = |commit| Poll {
        strategy: PollingStrategy::Next,
        count: 3,
        commit,
        wait: 1_000,
        ..poll_from(0)
    };
    for _ in 0..2 {
        let manual = desk.poll(key(0), 1, next(false));
        assert_eq!((desk.polled(manual), desk.stored(key(0), &alone())), (Some(3), None));
    }
    let on_read = desk.poll(key(0), 1, next(true));
    assert_eq!(
        desk.polled(on_read),
        None,
        "it is answered after its offset is committed"
    );
    desk.settle();
    assert_eq!(
        (desk.polled(on_read), desk.stored(key(0), &alone())),
        (Some(3), Some(2))
    );
    let rest = desk.poll(key(0), 1, next(true));
    desk.settle();
    assert_eq!((desk.polled(rest), desk.stored(key(0), &alone())), (Some(2), Some(4)));
    let empty = desk.poll(key(0), 1, next(true));
    desk.tick(1_000);
    assert_eq!((desk.polled(empty), desk.stored(key(0), &alone())), (Some(0), Some(4)));
    let cancelled = desk.poll(key(0), 1, next(true));
    desk.shard.cancel(1, 1, cancelled);
    desk.take();
    assert_eq!(
        (desk.polled(cancelled), desk.stored(key(0), &alone())),
        (Some(0), Some(4))
    );
}

#[test]
fn given_a_position_of_a_deleted_partition_when_used_on_the_new_one_should_be_refused_and_change_nothing() {
    let mut desk = Desk::new(roomy(), 1);
    desk.send(key(0), 5, 10);
    let old = key(0);
    let new = iggy_metadata::PartitionKey { incarnation: 9, ..old };
    desk.order(Order::Delete { key: old });
    desk.open(new);
    desk.settle();
    desk.send(new, 5, 10);
    let store = desk.ask(
        new,
        1,
        PartitionRequest::StoreOffset {
            consumer: alone(),
            offset: 1,
        },
    );
    desk.settle();
    assert_eq!(desk.status(store), Some(0));
    let stale = [
        PartitionRequest::Poll(Poll {
            commit: true,
            ..poll_from(3)
        }),
        PartitionRequest::Poll(Poll {
            commit: true,
            wait: 0,
            answer: Answer::WithinBytes,
            ..poll_from(3)
        }),
        PartitionRequest::StoreOffset {
            consumer: alone(),
            offset: 3,
        },
        PartitionRequest::DeleteOffset { consumer: alone() },
        PartitionRequest::GetOffset { consumer: alone() },
    ];
    let refused = Some(ErrorCode::HistoryUnavailable.code());
    for request in stale {
        // Resolved before the partition was deleted, and after it was created again under the old position.
        let before = desk.ask(old, 1, request.clone());
        let mut origin = desk.origin(new, Operation::NonReplicated, 1);
        origin.header.partition_incarnation = old.incarnation.into();
        let after = origin.ticket.0;
        desk.shard.request(desk.now, new, origin, request);
        desk.settle();
        assert_eq!((desk.status(before), desk.status(after)), (refused, refused));
        assert_eq!(desk.stored(new, &alone()), Some(1));
    }
    let (tally, _) = watch(&mut desk, 1, 1, 1_000, wanted(1, 1));
    assert_eq!(tally.places(), [Place::Refused(ErrorCode::HistoryUnavailable)]);
    assert_eq!(tally.progress(), Progress::Ready, "there is nothing to wait for");
}
