//! What the shard does for groups that have other members: their messages and their clocks.

use super::Shard;
use iggy_consensus::message::Message;
use iggy_consensus::{GroupId, Input, Now};
use iggy_metadata::PartitionKey;
use iggy_storage::Storage;
use std::cmp::Reverse;

impl<S: Storage> Shard<S> {
    /// Takes what another node says to one of its groups here. Messages for groups that are not here are dropped: the
    /// sender repeats what matters.
    pub fn receive(&mut self, now: Now, message: Message) {
        if message.group == GroupId::METADATA {
            if let Some(metadata) = &mut self.metadata {
                metadata.receive(now, message, &mut self.storage);
            }
            return self.collect_metadata();
        }
        let slot = self.groups.get(&message.group).copied();
        if let Some(slot) = slot {
            if let Some(group) = self.partitions.get_mut(&slot) {
                group.receive(now, message, &mut self.storage);
            }
            self.collect(slot);
            self.begin_searches(now);
        }
    }

    /// Tells the replica of a partition, or with `None` of the metadata, what an operator or the balance of leaders wants.
    /// Whoever is to lead is named by its node.
    pub fn instruct(&mut self, now: Now, key: Option<&PartitionKey>, input: Input) {
        match key {
            None => {
                if let Some(metadata) = &mut self.metadata {
                    metadata.step(now, input, &mut self.storage);
                }
                self.collect_metadata();
            }
            Some(key) => {
                if let Some(slot) = self.slots.get(key).copied() {
                    if let Some(group) = self.partitions.get_mut(&slot) {
                        match input {
                            Input::HandOver { to } => group.hand_over(now, to, &mut self.storage),
                            other => group.step(now, other, &mut self.storage),
                        }
                    }
                    self.collect(slot);
                }
            }
        }
    }

    /// Steps the replicas whose deadline has come.
    pub(super) fn tick_replicas(&mut self, now: Now) {
        while let Some(Reverse((deadline, slot))) = self.replica_deadlines.peek().copied() {
            if deadline > now.monotonic {
                break;
            }
            self.replica_deadlines.pop();
            if slot == 0 {
                if let Some(metadata) = &mut self.metadata {
                    metadata.vouch(&self.heard);
                    metadata.tick(now, &mut self.storage);
                }
                self.collect_metadata();
            } else {
                self.tick_partition(now, slot);
            }
        }
        self.begin_searches(now);
    }

    /// Steps the replica of a partition, unless that would begin a search while too many are under way.
    fn tick_partition(&mut self, now: Now, slot: u32) {
        let patience = self.config.partition.consensus.timing.view_change_status;
        let Some(group) = self.partitions.get_mut(&slot) else {
            return;
        };
        group.vouch(&self.heard);
        let searches = group.replica().is_about_to_search(now);
        if searches && !self.searches.begin(slot, now.monotonic, patience) {
            // Whoever settles makes room; nobody may.
            let again = now.monotonic.saturating_add(patience);
            return self.replica_deadlines.push(Reverse((again, slot)));
        }
        group.tick(now, &mut self.storage);
        self.collect(slot);
    }

    /// Lets those begin for whom there is room now.
    pub(super) fn begin_searches(&mut self, now: Now) {
        let patience = self.config.partition.consensus.timing.view_change_status;
        while let Some(slot) = self.searches.next(now.monotonic, patience) {
            self.tick_partition(now, slot);
        }
    }

    /// Partitions whose search for a view was begun here and still counts.
    pub fn searching(&self) -> usize {
        self.searches.count()
    }

    /// Makes a partition reachable for messages.
    pub(super) fn start(&mut self, slot: u32) {
        if let Some(group) = self.partitions.get(&slot) {
            self.groups.insert(group.replica().group(), slot);
        }
        self.collect(slot);
    }
}
