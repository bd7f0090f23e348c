//! What nodes have to say, and what their hosts do about it.

use crate::node;
use crate::world::{Event, World};
use iggy_consensus::Status as ReplicaStatus;
use iggy_driver::metadata_group::MetadataNotice;
use iggy_driver::partition_group::PartitionGroup;
use iggy_driver::{Order, Output, PartitionEvent, controller};
use iggy_metadata::{Metadata, PartitionKey};
use std::collections::BTreeSet;

/// Microseconds before a loss in which a doubt may have been the reason for it.
const DOUBT_LASTS: u64 = 2_000_000;

impl World {
    pub(crate) fn output(&mut self, index: u8, output: Output) -> Result<(), String> {
        match output {
            Output::Reply(reply) => {
                if let Some(client) = self.waiting.remove(&reply.ticket.0) {
                    let at = self.now + self.network.delay();
                    let reply = Box::new(reply);
                    self.schedule(at, Event::Answer { client, reply });
                }
                Ok(())
            }
            Output::Metadata(notice) => self.metadata(index, notice),
            Output::HistoryLost { key, losses } => {
                let node = &self.nodes[usize::from(index)];
                if let Some(group) = node.partition(&key) {
                    let head = group.replica().view_start();
                    self.trace.event(
                        self.now,
                        Some(index),
                        "history-lost",
                        format_args!("{key:?} losses {losses} head {head}"),
                    );
                    let told = self.desk.told.entry(key).or_default();
                    // A replica that was just restarted knows that there was a loss, and not where the log went on.
                    if losses > *told && group.is_normal() {
                        *told = losses;
                        self.desk.histories += 1;
                        self.checker.history_lost(group.replica());
                    }
                }
                let known = self.desk.losses.entry(key).or_default();
                *known = (*known).max(losses);
                Ok(())
            }
            Output::Role { key, leads, view } => {
                self.trace.event(
                    self.now,
                    Some(index),
                    "role",
                    format_args!("{key:?} leads {leads} view {view}"),
                );
                if !leads {
                    return Ok(());
                }
                let orders = self.nodes[usize::from(index)].orders_at_start(&self.plan);
                let own = |order: &Order| order.key() == Some(key) && !matches!(order, Order::Open { .. });
                self.give(index, orders.into_iter().filter(own).collect())
            }
            Output::Event(PartitionEvent::Refused(key, error)) => {
                self.trace
                    .event(self.now, Some(index), "refused", format_args!("{key:?} {error}"));
                let node = &mut self.nodes[usize::from(index)];
                node.refused += 1;
                if self.plan.unlimited || self.plan.liars.contains(&index) {
                    return Ok(());
                }
                Err(format!("S20: node {index} does not open {key:?}: {error}"))
            }
            Output::Event(PartitionEvent::Trouble(key, text)) => {
                self.trace
                    .event(self.now, Some(index), "trouble", format_args!("{key:?} {text}"));
                if self.plan.unlimited || self.mishaps.is_hurt(index) {
                    return Ok(());
                }
                Err(format!("trouble without a fault at node {index}: {key:?} {text}"))
            }
            Output::Event(PartitionEvent::Lost(key, loss)) => {
                self.trace
                    .event(self.now, Some(index), "lost", format_args!("{key:?} {loss:?}"));
                // A crash before the loss is on disk may find a larger one at the next start, under the same history.
                if let Some(group) = self.nodes[usize::from(index)].partition(&key)
                    && group.members().count() == 1
                {
                    self.checker.history_lost(group.replica());
                }
                Ok(())
            }
            Output::Send { .. } | Output::SegmentsEnd { .. } | Output::Stopped => Ok(()),
        }
    }

    fn metadata(&mut self, index: u8, notice: MetadataNotice) -> Result<(), String> {
        match notice {
            MetadataNotice::Applied { ticket, applied } => {
                if let Some(ticket) = ticket {
                    let done = !matches!(applied.receipt.outcome, iggy_metadata::Outcome::Refused(_));
                    self.desk.ended(ticket, done);
                }
                let Some(state) = self.nodes[usize::from(index)].metadata().cloned() else {
                    return Ok(());
                };
                let mut orders = controller::orders(&applied.events, &state, &mut node::counters);
                // What was decided before this process came is not new here, whatever its log still has to apply.
                let joined = self.nodes[usize::from(index)]
                    .process
                    .as_ref()
                    .and_then(|process| process.joined);
                for order in &mut orders {
                    if let Order::Open { key, created, .. } = order {
                        *created = joined.is_some_and(|joined| key.incarnation > joined);
                    }
                }
                self.give(index, orders)
            }
            MetadataNotice::Refused { ticket, .. } | MetadataNotice::Uncertain { ticket } => {
                self.desk.ended(ticket, false);
                Ok(())
            }
            MetadataNotice::Role { leads, view } => {
                self.trace.event(
                    self.now,
                    Some(index),
                    "role",
                    format_args!("metadata leads {leads} view {view}"),
                );
                let node = &mut self.nodes[usize::from(index)];
                if let Some(process) = &mut node.process
                    && let Some(group) = process.shard.metadata()
                    && group.replica().status() == ReplicaStatus::Normal
                    && process.joined.is_none()
                {
                    process.joined = Some(group.replica().view_start());
                }
                Ok(())
            }
            MetadataNotice::Replaced => self.follow_replaced(index),
            MetadataNotice::HistoryLost(losses) => {
                self.trace
                    .event(self.now, Some(index), "history-lost", format_args!("metadata {losses}"));
                if self.plan.unlimited || self.doubtful_metadata() >= self.plan.replication() {
                    self.desk.acknowledged.clear();
                    let node = &self.nodes[usize::from(index)];
                    let group = node.process.as_ref().and_then(|process| process.shard.metadata());
                    if let Some(group) = group {
                        self.checker.history_lost(group.replica());
                    }
                    return Ok(());
                }
                Err(format!("D3: node {index} says the metadata lost what was acknowledged"))
            }
            MetadataNotice::Fenced { .. } | MetadataNotice::OpenFailed(_) | MetadataNotice::Trouble(_) => {
                if self.plan.unlimited || self.mishaps.is_hurt(index) {
                    return Ok(());
                }
                Err(format!("trouble without a fault at node {index}: {notice:?}"))
            }
            MetadataNotice::Unreadable(error) => Err(format!("node {index} cannot apply a change: {error}")),
            MetadataNotice::Stopped | MetadataNotice::Send { .. } | MetadataNotice::Deadline(_) => Ok(()),
        }
    }

    /// The whole metadata of a node is new: its partitions become what it says.
    fn follow_replaced(&mut self, index: u8) -> Result<(), String> {
        let node = &self.nodes[usize::from(index)];
        let Some(state) = node.metadata() else { return Ok(()) };
        let wanted: BTreeSet<PartitionKey> = state.partitions().map(|(key, ..)| key).collect();
        let hosted = node.process.iter().flat_map(|process| process.shard.partitions());
        let gone = hosted.map(PartitionGroup::key).filter(|key| !wanted.contains(key));
        let mut orders: Vec<Order> = gone.map(|key| Order::Delete { key }).collect();
        for (key, _, partition) in state.partitions() {
            orders.push(Order::BeginHistory {
                key,
                history: partition.history,
            });
        }
        orders.extend(node.orders_at_start(&self.plan));
        self.give(index, orders)
    }

    /// The metadata as the node that leads it has it.
    pub fn leading_metadata(&self) -> Option<(u8, &Metadata)> {
        self.nodes.iter().find_map(|node| {
            let group = node.process.as_ref()?.shard.metadata()?;
            (group.leads() && node.paused_until <= self.now).then(|| (node.index, group.state()))
        })
    }

    /// Members that did not know lately what of the metadata they may have acknowledged.
    fn doubtful_metadata(&self) -> usize {
        let lately = |at: &&u64| **at + DOUBT_LASTS >= self.now;
        self.doubted.values().filter(lately).count()
    }
}
