//! Reads that wait, against everything that can end a wait, in any order: messages, deadlines, cancels, cuts, a new owner,
//! a failed disk, the deletion of the partition, and the end of the node. Each poll is answered exactly once, none is
//! answered with too little before its time, none sleeps through what it waits for, and no place in the bounds is lost.
//! Fetches, which count over two partitions, are told as soon as the sum is enough.

#[path = "crash/node.rs"]
mod node;

#[path = "waits/world.rs"]
mod world;

use iggy_consensus::Durability;
use proptest::prelude::*;
use world::{Action, Start, Wanted, World};

fn start() -> impl Strategy<Value = Start> {
    prop_oneof![
        4 => (0..6_u64).prop_map(Start::Ahead),
        3 => (0..12_u64).prop_map(Start::Behind),
        1 => (0..4_000_u64).prop_map(Start::TimeBehind),
        1 => (0..1_000_u64).prop_map(Start::TimeAhead),
    ]
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let bytes = prop_oneof![3 => Just(1_u32 << 20), 1 => 344..2_000_u32];
    (
        (1..4_u64, start(), 1..12_u32, bytes),
        (0..2_000_u64, any::<bool>(), prop::bool::weighted(0.2)),
    )
        .prop_map(
            |((session, start, min_count, max_bytes), (wait, commit, group))| Wanted {
                session,
                start,
                min_count,
                max_bytes,
                wait,
                commit,
                group,
            },
        )
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        20 => (1..4_u8).prop_map(|messages| Action::Send { messages }),
        6 => (1..4_u8).prop_map(|messages| Action::SendToOther { messages }),
        30 => (1..4_usize).prop_map(|jobs| Action::Complete { jobs }),
        30 => wanted().prop_map(Action::Poll),
        8 => (1..8_u64, 0..6_u64, any::<bool>()).prop_map(|(messages, ahead, group)| Action::Fetch { messages, ahead, group }),
        4 => any::<prop::sample::Index>().prop_map(|which| Action::EndFetch { which }),
        8 => any::<prop::sample::Index>().prop_map(|which| Action::Cancel { which }),
        12 => (0..900_u64).prop_map(|micros| Action::Tick { micros }),
        3 => (0..4_u64).prop_map(|keep| Action::Truncate { keep }),
        4 => (1..4_u64).prop_map(|session| Action::InstallOwner { session }),
        3 => (0..2_u32).prop_map(|connection| Action::Disconnect { connection }),
        1 => Just(Action::FailSync),
        1 => Just(Action::Delete),
        1 => Just(Action::Stop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn given_waiting_reads_when_anything_happens_in_any_order_should_answer_each_exactly_once(
        actions in prop::collection::vec(action(), 1..120),
        persisted in any::<bool>(),
        settle_every in 1..30_usize,
    ) {
        let durability = if persisted { Durability::Persisted } else { Durability::Replicated };
        let mut world = World::new(durability);
        for (count, action) in actions.into_iter().enumerate() {
            world.act(action);
            world.take()?;
            if count % settle_every == 0 {
                world.settle()?;
                world.nobody_oversleeps()?;
            }
        }
        world.settle()?;
        world.end()?;
    }
}

fn cases() -> u32 {
    let asked = std::env::var("IGGY_TEST_SEEDS")
        .ok()
        .and_then(|value| value.parse().ok());
    asked.unwrap_or(600)
}
