//! What a prepare costs in memory once a group runs: the prepare itself, and nothing beside it.

#![allow(unsafe_code)] // An allocator that counts is one that implements `GlobalAlloc`.

use bytes::Bytes;
use iggy_consensus::{
    Barrier, Body, Effect, Effects, GroupId, Input, LogEnd, Now, Proposal, RecoveredLog, Replica, ReplicaConfig,
    VsrState,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count of what each thread asked of it.
struct Counting;

fn count() {
    // A thread that is ending has no count any more.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call goes on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NOW: Now = Now {
    monotonic: 1,
    wall: 1_000,
};

fn group(count: u8) -> Vec<Replica> {
    let config = ReplicaConfig {
        retain_bytes: 64 << 10,
        ..ReplicaConfig::default()
    };
    let recover = |index| {
        let state = VsrState::new(7, GroupId::METADATA, index, count);
        let log = RecoveredLog {
            created: true,
            ..RecoveredLog::from(LogEnd::default())
        };
        Replica::recover(config, state, log).expect("a new group")
    };
    (0..count).map(recover).collect()
}

/// Orders one write and lets everything follow.
fn write(replicas: &mut [Replica], body: &Bytes, work: &mut Vec<(u8, Input)>, effects: &mut Effects) {
    let proposal = Proposal {
        client: 1,
        request_checksum: 2,
        session: 3,
        request: 4,
        user_id: 5,
        owner_generation: 0,
        operation: 160,
        timestamp: replicas[0].next_timestamp(NOW),
        body: Body::Inline(body.clone()),
        barrier: Barrier::Sync,
    };
    work.push((0, Input::Propose(proposal)));
    while let Some((index, input)) = work.pop() {
        replicas[usize::from(index)].step(NOW, input, effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Append { token, .. } => work.push((index, Input::IoDone(token, true))),
                Effect::Send { to, message } => work.push((to, Input::Message(message))),
                _ => {}
            }
        }
    }
}

/// S17.
#[test]
fn given_groups_that_run_when_they_order_writes_should_allocate_one_header_for_each_and_nothing_else() {
    for members in [1, 2, 3, 5] {
        let mut replicas = group(members);
        let body = Bytes::from(vec![7; 512]);
        let (mut work, mut effects) = (Vec::new(), Effects::new());
        // Until every buffer has its size.
        for _ in 0..1_000 {
            write(&mut replicas, &body, &mut work, &mut effects);
        }
        let committed = replicas[0].commit();
        let before = ALLOCATIONS.get();
        for _ in 0..1_000 {
            write(&mut replicas, &body, &mut work, &mut effects);
        }
        let allocations = ALLOCATIONS.get() - before;
        assert_eq!(replicas[0].commit() - committed, 1_000);
        assert_eq!(allocations, 1_000, "in a group of {members}");
    }
}
