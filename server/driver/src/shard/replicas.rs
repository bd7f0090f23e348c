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
        }
    }

    /// Tells the replica of a partition, or with `None` of the metadata, what an operator or the balance of leaders wants.
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
                        group.step(now, input, &mut self.storage);
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
                    metadata.tick(now, &mut self.storage);
                }
                self.collect_metadata();
            } else {
                if let Some(group) = self.partitions.get_mut(&slot) {
                    group.tick(now, &mut self.storage);
                }
                self.collect(slot);
            }
        }
    }

    /// Makes a partition reachable for messages.
    pub(super) fn start(&mut self, slot: u32) {
        if let Some(group) = self.partitions.get(&slot) {
            self.groups.insert(group.replica().group(), slot);
        }
        self.collect(slot);
    }
}
