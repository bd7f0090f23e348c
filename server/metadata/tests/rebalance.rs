//! What a consumer group promises through any series of joins, departures and changes of its topic: an assignment is
//! complete and even, it moves no more partitions than evenness demands, and a generation names one owner for ever.

use iggy_metadata::model::group::Group;
use iggy_metadata::{OwnerChange, SessionKey};
use iggy_protocol::Name;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
enum Act {
    Join(u8),
    Leave(u8),
    Resize(u32),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (0..12_u8).prop_map(Act::Join),
        4 => (0..12_u8).prop_map(Act::Leave),
        1 => (1..40_u32).prop_map(Act::Resize),
    ]
}

fn session(number: u8) -> SessionKey {
    SessionKey {
        client: u128::from(number) + 1,
        session: u64::from(number) + 1,
    }
}

/// The owner of each partition.
fn owners(group: &Group) -> Vec<Option<SessionKey>> {
    let partitions = 0..group.partitions_count();
    partitions
        .map(|partition| group.owner(partition).map(|owner| owner.session))
        .collect()
}

/// Partitions that must leave a member that stays: those beyond what an even assignment lets it keep.
fn moves_demanded(before: &[Option<SessionKey>], after: &Group) -> usize {
    let members: BTreeSet<SessionKey> = after.members().map(|(_, session)| session).collect();
    if members.is_empty() {
        return 0;
    }
    let partitions = after.partitions_count() as usize;
    let mut held: Vec<usize> = members
        .iter()
        .map(|member| {
            before
                .iter()
                .take(partitions)
                .filter(|owner| **owner == Some(*member))
                .count()
        })
        .collect();
    held.sort_unstable_by(|a, b| b.cmp(a));
    let (base, larger) = (partitions / members.len(), partitions % members.len());
    held.iter()
        .enumerate()
        .map(|(rank, held)| held.saturating_sub(base + usize::from(rank < larger)))
        .sum()
}

fn moves(before: &[Option<SessionKey>], after: &Group) -> usize {
    let members: BTreeSet<SessionKey> = after.members().map(|(_, session)| session).collect();
    before
        .iter()
        .zip(owners(after))
        .filter(|(old, new)| old.is_some_and(|old| members.contains(&old)) && **old != *new)
        .count()
}

proptest! {
    #[test]
    fn given_any_history_of_a_group_when_rebalanced_should_be_complete_even_sticky_and_fenced(
        acts in prop::collection::vec(act(), 1..60),
        partitions in 1..40_u32,
    ) {
        let mut group = Group::new(0, Name::new("g").expect("a name"), 1, partitions);
        // Whom each generation of a partition has named.
        let mut named: BTreeMap<(u32, u64), Option<SessionKey>> = BTreeMap::new();
        for (act, op) in acts.into_iter().zip(2..) {
            let before = owners(&group);
            let generations: Vec<u64> = (0..group.partitions_count())
                .map(|partition| group.slot(partition).expect("it exists").owner_generation)
                .collect();
            let changes = match act {
                Act::Join(number) => group.join(session(number), op).map(|joined| joined.changes),
                Act::Leave(number) => group.leave(session(number), op).map(|left| left.changes),
                Act::Resize(partitions) => Some(group.resize(partitions, op)),
            };
            let Some(changes) = changes else {
                prop_assert_eq!(owners(&group), before, "nothing happened");
                continue;
            };
            check_assignment(&group)?;
            prop_assert_eq!(moves(&before, &group), moves_demanded(&before, &group));
            check_generations(&group, op, &before, &generations, &changes, &mut named)?;
        }
    }
}

/// With a member every partition is owned, and members differ by one partition at most.
fn check_assignment(group: &Group) -> Result<(), TestCaseError> {
    let sizes: Vec<usize> = group.assignments().values().map(Vec::len).collect();
    if sizes.is_empty() {
        prop_assert!(owners(group).iter().all(Option::is_none));
        return Ok(());
    }
    prop_assert!(owners(group).iter().all(Option::is_some));
    let (least, most) = (sizes.iter().min(), sizes.iter().max());
    prop_assert!(
        most.zip(least).is_some_and(|(most, least)| most - least <= 1),
        "{:?}",
        sizes
    );
    Ok(())
}

/// A generation is new with each owner and stays with it; what changed is told, and nothing else.
fn check_generations(
    group: &Group,
    op: u64,
    before: &[Option<SessionKey>],
    generations: &[u64],
    changes: &[OwnerChange],
    named: &mut BTreeMap<(u32, u64), Option<SessionKey>>,
) -> Result<(), TestCaseError> {
    let told: BTreeMap<u32, Option<SessionKey>> = changes
        .iter()
        .map(|change| (change.partition_id, change.owner.map(|owner| owner.session)))
        .collect();
    for (partition, owner) in (0..).zip(owners(group)) {
        let generation = group.slot(partition).expect("it exists").owner_generation;
        let at = partition as usize;
        if before.get(at).copied().flatten() == owner && at < before.len() {
            prop_assert_eq!(generation, generations[at], "partition {} did not move", partition);
            prop_assert!(!told.contains_key(&partition));
        } else if owner.is_some() || before.get(at).copied().flatten().is_some() {
            prop_assert_eq!(generation, op);
            prop_assert_eq!(told.get(&partition), Some(&owner));
        }
        let first = *named.entry((partition, generation)).or_insert(owner);
        prop_assert!(generation == 0 || first == owner, "one generation, two owners");
    }
    Ok(())
}
