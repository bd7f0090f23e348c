//! Consumer groups: members, and which member owns which partition.
//!
//! The assignment is even (two members differ by at most one partition), complete (with a member, every partition is
//! owned exactly once) and sticky (a partition moves only where evenness demands it). It depends on nothing but the
//! group itself, so every replica computes the same one.

use std::collections::BTreeMap;

use iggy_protocol::Name;
use serde::{Deserialize, Serialize};

use crate::event::{Owner, OwnerChange};
use crate::keys::SessionKey;

/// A consumer group of one topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Id within the topic.
    pub id: u32,
    /// Name, unique within the topic.
    pub name: Name,
    /// Position that created it.
    pub created_op: u64,
    /// Position of the last rebalance; rises with each (wire 8.2).
    pub generation: u64,
    next_member_id: u32,
    members: BTreeMap<u32, SessionKey>,
    /// Owner of partition `i` at index `i`.
    owners: Vec<Slot>,
}

/// Ownership of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The owning member, if the group has any.
    pub member_id: Option<u32>,
    /// Position that last changed the owner; 0 when there never was one.
    pub owner_generation: u64,
}

const VACANT: Slot = Slot {
    member_id: None,
    owner_generation: 0,
};

impl Group {
    /// A group without members over the given number of partitions.
    pub fn new(id: u32, name: Name, created_op: u64, partitions_count: u32) -> Self {
        Self {
            id,
            name,
            created_op,
            generation: created_op,
            next_member_id: 0,
            members: BTreeMap::new(),
            owners: vec![VACANT; partitions_count as usize],
        }
    }

    /// Members in ascending order of their id.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (u32, SessionKey)> + '_ {
        self.members.iter().map(|(id, session)| (*id, *session))
    }

    /// Member id of a session.
    pub fn member_of(&self, session: SessionKey) -> Option<u32> {
        self.members
            .iter()
            .find(|(_, member)| **member == session)
            .map(|(id, _)| *id)
    }

    /// Number of partitions the group shares out.
    pub fn partitions_count(&self) -> u32 {
        self.owners.len() as u32
    }

    /// Partitions of one member in ascending order.
    pub fn partitions_of(&self, member_id: u32) -> Vec<u32> {
        self.owners
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.member_id == Some(member_id))
            .map(|(partition_id, _)| partition_id as u32)
            .collect()
    }

    /// Partitions of every member, each list ascending, in one pass over the group.
    pub fn assignments(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut assignments: BTreeMap<u32, Vec<u32>> = self.members.keys().map(|id| (*id, Vec::new())).collect();
        for (partition_id, slot) in self.owners.iter().enumerate() {
            if let Some(list) = slot.member_id.and_then(|id| assignments.get_mut(&id)) {
                list.push(partition_id as u32);
            }
        }
        assignments
    }

    /// Ownership of one partition, or `None` for a partition the topic does not have.
    pub fn slot(&self, partition_id: u32) -> Option<Slot> {
        self.owners.get(partition_id as usize).copied()
    }

    /// The member that owns a partition, with its session.
    pub fn owner(&self, partition_id: u32) -> Option<Owner> {
        let member_id = self.slot(partition_id)?.member_id?;
        self.members.get(&member_id).map(|session| Owner {
            member_id,
            session: *session,
        })
    }

    /// Adds a session as a member and shares the partitions out anew. `None` if it is a member already.
    pub fn join(&mut self, session: SessionKey, op: u64) -> Option<Joined> {
        if self.member_of(session).is_some() {
            return None;
        }
        let member_id = self.next_member_id;
        // 2^32 joins of one group take decades at any rate the log can carry; saturating keeps ids unique until then.
        self.next_member_id = self.next_member_id.saturating_add(1);
        self.members.insert(member_id, session);
        let changes = self.rebalance(op);
        Some(Joined { member_id, changes })
    }

    /// Removes a member and shares its partitions out. `None` if the session is no member.
    pub fn leave(&mut self, session: SessionKey, op: u64) -> Option<Left> {
        let member_id = self.member_of(session)?;
        self.members.remove(&member_id);
        let changes = self.rebalance(op);
        Some(Left { member_id, changes })
    }

    /// Follows a change of the topic's partitions. Returns the owners that changed among those that remain or are new.
    pub fn resize(&mut self, partitions_count: u32, op: u64) -> Vec<OwnerChange> {
        self.owners.resize(partitions_count as usize, VACANT);
        if self.members.is_empty() {
            return Vec::new();
        }
        self.rebalance(op)
    }

    fn rebalance(&mut self, op: u64) -> Vec<OwnerChange> {
        self.generation = op;
        let before = self.owners.clone();
        let quotas = self.quotas();
        let mut held: BTreeMap<u32, usize> = self.members.keys().map(|id| (*id, 0)).collect();
        let mut free = Vec::new();
        for (partition_id, slot) in self.owners.iter_mut().enumerate() {
            let keeps = slot
                .member_id
                .is_some_and(|id| match (held.get_mut(&id), quotas.get(&id)) {
                    (Some(count), Some(quota)) if *count < *quota => {
                        *count += 1;
                        true
                    }
                    _ => false,
                });
            if !keeps {
                slot.member_id = None;
                free.push(partition_id);
            }
        }
        let mut free = free.into_iter();
        for (member_id, quota) in &quotas {
            let missing = quota - held.get(member_id).copied().unwrap_or(0);
            for partition_id in free.by_ref().take(missing) {
                self.owners[partition_id].member_id = Some(*member_id);
            }
        }
        self.changes_since(&before, op)
    }

    /// How many partitions each member gets: those who hold most keep the remainder, so that the fewest partitions move.
    fn quotas(&self) -> BTreeMap<u32, usize> {
        let members = self.members.len();
        if members == 0 {
            return BTreeMap::new();
        }
        let base = self.owners.len() / members;
        let remainder = self.owners.len() % members;
        let mut by_held: Vec<(usize, u32)> = self
            .assignments()
            .into_iter()
            .map(|(id, partitions)| (partitions.len(), id))
            .collect();
        by_held.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        by_held
            .into_iter()
            .enumerate()
            .map(|(rank, (_, id))| (id, base + usize::from(rank < remainder)))
            .collect()
    }

    fn changes_since(&mut self, before: &[Slot], op: u64) -> Vec<OwnerChange> {
        let mut changes = Vec::new();
        for (partition_id, slot) in self.owners.iter_mut().enumerate() {
            if before
                .get(partition_id)
                .is_some_and(|old| old.member_id == slot.member_id)
            {
                continue;
            }
            slot.owner_generation = op;
            let owner = slot.member_id.and_then(|id| {
                self.members.get(&id).map(|session| Owner {
                    member_id: id,
                    session: *session,
                })
            });
            changes.push(OwnerChange {
                partition_id: partition_id as u32,
                owner_generation: op,
                owner,
            });
        }
        changes
    }
}

/// Result of [`Group::join`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Id of the new member.
    pub member_id: u32,
    /// Partitions whose owner changed.
    pub changes: Vec<OwnerChange>,
}

/// Result of [`Group::leave`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Id the member had.
    pub member_id: u32,
    /// Partitions whose owner changed.
    pub changes: Vec<OwnerChange>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        Name::new("g").expect("a valid name")
    }

    fn session(client: u128) -> SessionKey {
        SessionKey {
            client,
            session: client as u64,
        }
    }

    #[test]
    fn given_a_second_member_when_joining_should_move_only_half() {
        let mut group = Group::new(0, name(), 1, 4);
        let first = group.join(session(1), 2).expect("new member");
        assert_eq!(first.changes.len(), 4);
        let second = group.join(session(2), 3).expect("new member");
        assert_eq!(second.changes.len(), 2);
        assert_eq!(group.partitions_of(0), vec![0, 1]);
        assert_eq!(group.partitions_of(1), vec![2, 3]);
        assert_eq!(
            group.slot(0).expect("exists").owner_generation,
            2,
            "an unmoved partition keeps its generation"
        );
        assert_eq!(group.slot(2).expect("exists").owner_generation, 3);
    }

    #[test]
    fn given_a_member_when_joining_again_should_change_nothing() {
        let mut group = Group::new(0, name(), 1, 4);
        group.join(session(1), 2);
        let before = group.clone();
        assert_eq!(group.join(session(1), 3), None);
        assert_eq!(group, before);
    }

    #[test]
    fn given_the_last_member_when_leaving_should_leave_partitions_without_owner() {
        let mut group = Group::new(0, name(), 1, 2);
        group.join(session(1), 2);
        let left = group.leave(session(1), 3).expect("a member");
        assert_eq!(left.changes.len(), 2);
        assert!(
            left.changes
                .iter()
                .all(|change| change.owner.is_none() && change.owner_generation == 3)
        );
        assert_eq!(group.leave(session(1), 4), None);
    }

    #[test]
    fn given_more_members_than_partitions_when_joining_should_leave_some_with_none() {
        let mut group = Group::new(0, name(), 1, 1);
        group.join(session(1), 2);
        let joined = group.join(session(2), 3).expect("new member");
        assert!(joined.changes.is_empty(), "the only partition stays where it is");
        assert!(group.partitions_of(joined.member_id).is_empty());
        assert_eq!(group.generation, 3);
    }

    #[test]
    fn given_members_when_partitions_are_removed_should_stay_even() {
        let mut group = Group::new(0, name(), 1, 6);
        group.join(session(1), 2);
        group.join(session(2), 3);
        group.resize(3, 4);
        let sizes: Vec<usize> = group.assignments().values().map(Vec::len).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 3);
        assert!(sizes.iter().all(|size| (1..=2).contains(size)));
    }

    #[test]
    fn given_a_removed_and_added_partition_when_owned_again_should_have_a_newer_generation() {
        let mut group = Group::new(0, name(), 1, 2);
        group.join(session(1), 2);
        group.resize(1, 3);
        let changes = group.resize(2, 4);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].partition_id, 1);
        assert_eq!(changes[0].owner_generation, 4);
    }
}
