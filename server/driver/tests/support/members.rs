//! Several nodes that host the same partitions, step by step: what one says the others hear at once, unless a way is cut.

#![allow(dead_code)] // Each test binary uses the part it needs.

#[path = "../crash/node.rs"]
mod node;

use bytes::Bytes;
use iggy_consensus::message::{Kind, Message};
use iggy_consensus::{Durability, Now, Timing};
use iggy_driver::partition_group::{PartitionGroup, directory};
use iggy_driver::request::{Origin, PartitionRequest, Ticket};
use iggy_driver::{NodesHeard, Order, Output, Shard, ShardConfig};
use iggy_metadata::PartitionKey;
use iggy_metadata::model::topic::History;
use iggy_partition::Settings;
use iggy_protocol::batch::BatchView;
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::header::RequestHeader;
use iggy_protocol::operation::Operation;
use iggy_storage::image::Image;
use iggy_storage::memory::{MemoryDisk, MemoryStorage};
use iggy_storage::{FileId, IoToken, LaneId, Step, Storage};
use std::collections::VecDeque;
use std::sync::Arc;

/// Microseconds between two looks at the clocks.
const STEP: u64 = 50_000;

pub fn key(partition_id: u32) -> PartitionKey {
    PartitionKey {
        stream_id: 1,
        topic_id: 1,
        partition_id,
        incarnation: 3,
    }
}

pub fn settings() -> Settings {
    Settings {
        partition_id: 0,
        segment_size: 3_000,
        preallocate: false,
        durability: Durability::Replicated,
        consumer_offset_durability: Durability::Replicated,
        message_expiry: u64::MAX,
        size_max: u64::MAX,
    }
}

/// Nodes and the ways between them.
pub struct Members {
    pub shards: Vec<Option<Shard<MemoryStorage>>>,
    pub disks: Vec<MemoryDisk>,
    pub heard: Vec<Arc<NodesHeard>>,
    /// Counters of the partitions of each node.
    pub counters: Vec<Vec<Arc<iggy_driver::counters::PartitionCounters>>>,
    pub now: Now,
    /// Ways on which nothing passes, from and to.
    pub cut: Vec<(usize, usize)>,
    /// Nodes whose disks do nothing.
    pub holding: Vec<usize>,
    /// Everything that was said: from, to and what.
    pub said: Vec<(usize, usize, Message)>,
    pub answers: Vec<(u64, bool)>,
    pub events: Vec<String>,
    /// What every message is made of.
    pub filling: u8,
    lives: Vec<u64>,
    next: u64,
    packets: VecDeque<(usize, Message)>,
    change: fn(&mut ShardConfig),
    searches: usize,
    /// Nodes of each partition.
    placement: Vec<iggy_driver::Members>,
}

impl Members {
    /// So many nodes with so many partitions each; `change` adapts what a shard is given.
    pub fn new(count: usize, partitions: u32, searches: usize, change: fn(&mut ShardConfig)) -> Self {
        let placement = vec![(0..count as u8).collect(); partitions as usize];
        Self::placed(count, placement, searches, change)
    }

    /// So many nodes, and for each partition the nodes that hold it.
    pub fn placed(count: usize, placement: Vec<Vec<u8>>, searches: usize, change: fn(&mut ShardConfig)) -> Self {
        let mut members = Self {
            shards: (0..count).map(|_| None).collect(),
            disks: (0..count).map(|_| MemoryDisk::new()).collect(),
            heard: (0..count).map(|_| Arc::default()).collect(),
            counters: vec![Vec::new(); count],
            now: Now {
                monotonic: 1_000,
                wall: 1_000_000,
            },
            cut: Vec::new(),
            holding: Vec::new(),
            said: Vec::new(),
            answers: Vec::new(),
            events: Vec::new(),
            filling: 0,
            lives: vec![0; count],
            next: 0,
            packets: VecDeque::new(),
            change,
            searches,
            placement: placement.into_iter().map(iggy_driver::Members::new).collect(),
        };
        for index in 0..count {
            members.start(index, true);
        }
        members.settle();
        members
    }

    pub fn timing() -> Timing {
        Timing::default()
    }

    /// Starts a process on the disk of a node.
    pub fn start(&mut self, index: usize, created: bool) {
        self.lives[index] += 1;
        let mut config = node::config(1);
        config.partition.replica = index as u8;
        config.partition.replica_count = self.shards.len() as u8;
        config.partition.consensus.incarnation = self.lives[index];
        (self.change)(&mut config);
        self.heard[index] = Arc::default();
        let disk = self.disks[index].clone();
        let mut shard = Shard::new(config, disk.storage(index as u64))
            .searching_at_most(self.searches)
            .hearing(Arc::clone(&self.heard[index]));
        self.counters[index] = self.placement.iter().map(|_| Arc::default()).collect();
        for (partition, nodes) in (0..).zip(&self.placement) {
            let key = key(partition);
            let open = Order::Open {
                key,
                members: nodes.clone(),
                settings: settings(),
                history: History {
                    losses: 0,
                    incarnation: key.incarnation,
                },
                created,
                counters: Arc::clone(&self.counters[index][partition as usize]),
            };
            shard.order(self.now, open, &disk);
        }
        self.shards[index] = Some(shard);
    }

    /// The process of a node ends; what it wrote stays.
    pub fn crash(&mut self, index: usize) {
        self.shards[index] = None;
        self.disks[index].crash();
        self.packets.retain(|(to, _)| *to != index);
    }

    pub fn isolate(&mut self, index: usize) {
        for other in (0..self.shards.len()).filter(|other| *other != index) {
            self.cut.extend([(index, other), (other, index)]);
        }
    }

    /// Lets disks and messages do all they have to do now.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut quiet = true;
            for index in 0..self.shards.len() {
                quiet &= !self.work(index);
            }
            if let Some((to, message)) = self.packets.pop_front() {
                quiet = false;
                if let Some(shard) = &mut self.shards[to] {
                    shard.receive(self.now, message);
                }
            }
            if quiet {
                return;
            }
        }
        panic!("the messages never end");
    }

    fn work(&mut self, index: usize) -> bool {
        let Some(shard) = &mut self.shards[index] else {
            return false;
        };
        if !self.holding.contains(&index) {
            shard.complete(self.now);
        }
        let mut outputs = Vec::new();
        shard.outputs(&mut outputs);
        let worked = !outputs.is_empty();
        for output in outputs {
            match output {
                Output::Send { to, message } => {
                    let to = usize::from(to);
                    self.said.push((index, to, message.clone()));
                    if !self.cut.contains(&(index, to)) {
                        self.packets.push_back((to, message));
                    }
                }
                Output::Reply(reply) => self.answers.push((reply.ticket.0, reply.header.committed == 1)),
                Output::Event(event) => self.events.push(format!("node {index}: {event:?}")),
                _ => {}
            }
        }
        worked
    }

    /// Lets time pass.
    pub fn pass(&mut self, micros: u64) {
        let until = self.now.monotonic + micros;
        while self.now.monotonic < until {
            self.now.monotonic += STEP;
            self.now.wall += STEP;
            for index in 0..self.shards.len() {
                if let Some(shard) = &mut self.shards[index]
                    && shard.next_deadline().is_some_and(|due| due <= self.now.monotonic)
                {
                    shard.tick(self.now);
                }
            }
            self.settle();
        }
    }

    /// Lets a seed decide in which order the disk of a node does what waits for it.
    pub fn order_disk(&mut self, index: usize, seed: u64) {
        if let Some(shard) = &mut self.shards[index] {
            shard.storage_mut().reseed(seed);
        }
    }

    /// Notes at every node that those live which a way leads from.
    pub fn pulse(&mut self) {
        for to in 0..self.shards.len() {
            for from in (0..self.shards.len()).filter(|from| *from != to && !self.cut.contains(&(*from, to))) {
                if self.shards[from].is_some() {
                    self.heard[to].note(from as u8, self.lives[from], self.now.monotonic);
                }
            }
        }
    }

    pub fn partition(&self, index: usize, partition: u32) -> &PartitionGroup {
        let mut groups = self.shards[index].as_ref().expect("it runs").partitions();
        groups
            .find(|group| group.key() == key(partition))
            .expect("it is hosted")
    }

    /// The segments of a partition on a disk, one behind the other.
    pub fn bytes(&self, index: usize, partition: u32) -> Vec<u8> {
        let directory = directory(&key(partition));
        let mut paths = self.files(index, ".log");
        paths.retain(|path| path.starts_with(&directory));
        paths.sort();
        let read = |path: &String| self.disks[index].read_all(path, 1 << 30).ok().flatten();
        paths.iter().filter_map(read).flatten().collect()
    }

    /// Offset up to which a disk holds the batches of a partition whole, without a gap.
    pub fn whole(&self, index: usize, partition: u32) -> u64 {
        let directory = directory(&key(partition));
        let mut paths = self.files(index, ".log");
        paths.retain(|path| path.starts_with(&directory));
        paths.sort();
        let mut next = 0;
        for path in paths {
            let bytes = self.disks[index]
                .read_all(&path, 1 << 30)
                .ok()
                .flatten()
                .unwrap_or_default();
            let mut rest = &bytes[..];
            while let Ok((batch, after)) = BatchView::split_first(rest) {
                if batch.verify().is_ok() && batch.header().base_offset.get() == next {
                    next = batch.last_offset() + 1;
                }
                rest = after;
            }
        }
        next
    }

    /// Bytes of the first batch of a partition on a disk.
    pub fn batch_length(&self, index: usize, partition: u32) -> u64 {
        let path = format!("{}/{:020}.log", directory(&key(partition)), 0);
        let bytes = self.disks[index]
            .read_all(&path, 1 << 30)
            .ok()
            .flatten()
            .expect("a segment");
        BatchView::split_first(&bytes).expect("a batch").0.bytes().len() as u64
    }

    /// Puts other bytes in a file of a node that is down.
    pub fn overwrite(&self, index: usize, path: &str, bytes: Bytes) {
        let file = FileId(1);
        let job = vec![
            Step::Open {
                file,
                path: path.to_owned(),
                create: true,
            },
            Step::Write {
                file,
                offset: 0,
                pieces: vec![bytes],
            },
        ];
        let mut storage = self.disks[index].storage(1);
        storage.submit(LaneId(1), IoToken(1), job);
        storage.completions(&mut Vec::new());
    }

    /// Files of a disk whose names end so.
    pub fn files(&self, index: usize, ending: &str) -> Vec<String> {
        let mut paths = self.disks[index].paths();
        paths.retain(|path| path.strip_suffix(ending).is_some());
        paths
    }

    /// Takes a file away from a node that is down.
    pub fn remove(&self, index: usize, path: &str) {
        let mut storage = self.disks[index].storage(1);
        storage.submit(LaneId(1), IoToken(1), vec![Step::Remove(path.to_owned())]);
        storage.completions(&mut Vec::new());
    }

    pub fn leader(&self, partition: u32) -> Option<usize> {
        let running = (0..self.shards.len()).filter(|index| self.shards[*index].is_some());
        running
            .filter(|index| self.partition(*index, partition).leads())
            .max_by_key(|index| self.partition(*index, partition).replica().view())
    }

    /// Sends a batch with one message of this length to a node; nothing waits for the answer.
    pub fn send(&mut self, index: usize, partition: u32, length: usize) -> u64 {
        self.next += 1;
        self.now.wall += 3;
        let mut builder = BatchBuilder::new();
        let payload = vec![self.filling; length];
        builder
            .push(u128::from(self.next), &payload, &[], 5)
            .expect("a message");
        let batch: Bytes = builder.finish(None).expect("a batch").freeze();
        let mut header = RequestHeader::new(Operation::SendMessages, 0);
        header.client = 1.into();
        header.session = 1.into();
        header.request = self.next.into();
        header.partition_incarnation = key(partition).incarnation.into();
        let origin = Origin {
            ticket: Ticket(self.next),
            header: Box::new(header),
            user_id: 0,
            connection: 0,
        };
        let shard = self.shards[index].as_mut().expect("it runs");
        shard.request(self.now, key(partition), origin, PartitionRequest::Send { batch });
        self.next
    }

    /// Sends to whoever leads, and lets everything follow; true when it was acknowledged.
    pub fn write(&mut self, partition: u32, length: usize) -> bool {
        let leader = self.leader(partition).expect("somebody leads");
        let ticket = self.send(leader, partition, length);
        self.settle();
        self.answers.contains(&(ticket, true))
    }

    /// Messages of this kind from a node.
    pub fn count(&self, from: usize, name: &str) -> usize {
        let kinds = self
            .said
            .iter()
            .filter(|(node, _, message)| *node == from && message.kind.name() == name);
        kinds.count()
    }

    /// Bytes of batches that came to a node.
    pub fn travelled(&self, to: usize) -> usize {
        let bytes = self.said.iter().filter(|(_, node, _)| *node == to);
        bytes
            .map(|(_, _, message)| match &message.kind {
                Kind::Batches { bytes, .. } => bytes.len(),
                _ => 0,
            })
            .sum()
    }
}
