//! The nodes, the packets and the time: one event after the other.

use crate::checker::Checker;
use crate::clients::Client;
use crate::faults::{Fault, Faults};
use crate::metadata::Desk;
use crate::mishaps::Mishaps;
use crate::network::Network;
use crate::node::{self, Node};
use crate::oracle::Oracle;
use crate::plan::{Plan, stream};
use crate::trace::Trace;
use bytes::Bytes;
use iggy_consensus::message::Kind;
use iggy_consensus::{Ending, GroupId, VsrState, codec};
use iggy_driver::metadata_group::MetadataGroup;
use iggy_driver::partition_group::PartitionGroup;
use iggy_driver::request::{Reply, Ticket};
use iggy_driver::{Order, Output};
use iggy_metadata::{PartitionKey, RequestKey};
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;

/// Microseconds between two looks of the metadata desk.
const DESK_PERIOD: u64 = 8_000;
/// Microseconds between two rounds of mishaps.
const MISHAP_PERIOD: u64 = 40_000;
/// Microseconds a client waits for an answer.
pub(crate) const PATIENCE: u64 = 400_000;

/// Something that will happen.
#[derive(Debug)]
pub enum Event {
    /// A packet arrives.
    Deliver {
        /// Where.
        to: u8,
        /// What.
        bytes: Bytes,
    },
    /// A disk ends a job.
    Disk {
        /// Of which node.
        node: u8,
        /// In which life.
        life: u64,
    },
    /// A deadline of a node comes.
    Tick {
        /// Of which node.
        node: u8,
        /// In which life.
        life: u64,
    },
    /// A client acts.
    Client(usize),
    /// A request reaches a node.
    Request {
        /// Which node.
        node: u8,
        /// Whose.
        client: usize,
        /// Its ticket.
        ticket: u64,
    },
    /// An answer reaches a client.
    Answer {
        /// Which client.
        client: usize,
        /// The answer.
        reply: Box<Reply>,
    },
    /// The metadata desk looks.
    Desk,
    /// Something goes wrong, perhaps.
    Mishap,
    /// A process starts.
    Start(u8),
    /// A process says that it lives, and will again.
    Pulse {
        /// Of which node.
        node: u8,
        /// In which life.
        life: u64,
    },
}

/// See the module's page.
pub struct World {
    /// What the run is like.
    pub plan: Plan,
    /// Microseconds since it began.
    pub now: u64,
    /// Injected so far.
    pub faults: Faults,
    /// What happened.
    pub trace: Trace,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The network.
    pub network: Network,
    /// The replicas' watcher.
    pub checker: Checker,
    /// The clients' memory.
    pub oracle: Oracle,
    /// The metadata's.
    pub desk: Desk,
    /// What goes wrong.
    pub mishaps: Mishaps,
    /// Times a replica left its view.
    pub view_changes: u64,
    /// Times a replica asked for a whole state.
    pub state_transfers: u64,
    /// Batches of such a state that did not travel, because they were there.
    pub batches_kept: u64,
    /// When each node last did not know what of the metadata it may have acknowledged.
    pub doubted: BTreeMap<u8, u64>,
    /// Whether writes were acknowledged and did not happen where they should.
    pub wrote_elsewhere: bool,
    /// Whether faults still happen and clients still begin something new.
    pub chaos: bool,
    queue: BTreeMap<(u64, u64), Event>,
    next_event: u64,
    pub(crate) clients: Vec<Client>,
    random: StdRng,
    pub(crate) workload: StdRng,
    disk_time: StdRng,
    pub(crate) next_ticket: u64,
    pub(crate) next_batch: u128,
    /// Clients by ticket.
    pub(crate) waiting: BTreeMap<u64, usize>,
    /// The node that led a partition last, as far as clients know.
    pub(crate) leaders: BTreeMap<PartitionKey, u8>,
    last_seed: u64,
}

impl World {
    /// A cluster that was never started.
    pub fn new(plan: Plan, print: bool) -> Self {
        let seed = plan.seed;
        let mut world = Self {
            now: 0,
            faults: Faults::default(),
            trace: Trace::default(),
            nodes: (0..plan.members).map(Node::new).collect(),
            network: Network::new(&plan),
            checker: Checker::default(),
            oracle: Oracle::default(),
            desk: Desk::default(),
            mishaps: Mishaps::new(&plan),
            view_changes: 0,
            state_transfers: 0,
            batches_kept: 0,
            doubted: BTreeMap::new(),
            wrote_elsewhere: false,
            chaos: true,
            queue: BTreeMap::new(),
            next_event: 0,
            clients: (0..plan.clients).map(|id| Client::new(id as u32 + 1)).collect(),
            random: stream(seed, "scheduler"),
            workload: stream(seed, "workload"),
            disk_time: stream(seed, "disk"),
            next_ticket: 0,
            next_batch: 0,
            waiting: BTreeMap::new(),
            leaders: BTreeMap::new(),
            last_seed: seed,
            plan,
        };
        world.trace.print = print;
        for node in 0..world.plan.members {
            let at = world.random.random_range(0..2_000);
            world.schedule(at, Event::Start(node));
        }
        world.schedule(5_000, Event::Desk);
        world.schedule(200_000, Event::Mishap);
        for client in 0..world.clients.len() {
            world.schedule(30_000 + client as u64, Event::Client(client));
        }
        world
    }

    /// Makes something happen at a time.
    pub fn schedule(&mut self, at: u64, event: Event) {
        self.next_event += 1;
        self.queue.insert((at.max(self.now), self.next_event), event);
    }

    /// A number that was not handed out before.
    pub fn seed(&mut self) -> u64 {
        self.last_seed = self.last_seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.last_seed
    }

    /// Lets events happen until a time. `Err` is what must never be.
    pub fn run_until(&mut self, until: u64) -> Result<(), String> {
        while let Some(entry) = self.queue.first_entry() {
            let (at, _) = *entry.key();
            if at > until {
                break;
            }
            let event = entry.remove();
            self.now = at;
            self.happen(event)?;
        }
        self.now = until;
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        let node = match &event {
            Event::Deliver { to: node, .. }
            | Event::Disk { node, .. }
            | Event::Tick { node, .. }
            | Event::Pulse { node, .. }
            | Event::Request { node, .. } => Some(*node),
            _ => None,
        };
        if let Some(node) = node {
            let paused = self.nodes[usize::from(node)].paused_until;
            if paused > self.now {
                self.schedule(paused, event);
                return Ok(());
            }
        }
        match event {
            Event::Deliver { to, bytes } => self.deliver(to, bytes),
            Event::Disk { node, life } => self.disk(node, life),
            Event::Tick { node, life } => self.tick(node, life),
            Event::Client(client) => {
                self.client(client);
                Ok(())
            }
            Event::Request { node, client, ticket } => self.request(node, client, ticket),
            Event::Answer { client, reply } => self.answer(client, &reply),
            Event::Desk => self.desk(),
            Event::Mishap => {
                if self.chaos {
                    self.schedule(self.now + MISHAP_PERIOD, Event::Mishap);
                    self.mishap()?;
                }
                Ok(())
            }
            Event::Start(node) => self.start(node),
            Event::Pulse { node, life } => {
                self.pulse(node, life);
                Ok(())
            }
        }
    }

    fn deliver(&mut self, to: u8, bytes: Bytes) -> Result<(), String> {
        let sender = codec::beats_sender(&bytes);
        let messages = match codec::decode(bytes.clone()) {
            Ok(message) => vec![message],
            Err(_) => match codec::decode_beats(bytes) {
                Ok(messages) => {
                    self.hear(to, sender);
                    messages
                }
                // Damaged on the way: nothing of it may be believed.
                Err(error) => {
                    self.trace
                        .event(self.now, Some(to), "undecodable", format_args!("{error}"));
                    return Ok(());
                }
            },
        };
        for message in messages {
            let node = &mut self.nodes[usize::from(to)];
            let now = node.now(self.now);
            let Some(process) = &mut node.process else {
                return Ok(());
            };
            self.trace.event(
                self.now,
                Some(to),
                message.kind.name(),
                format_args!(
                    "from {} group {:x} view {}{}",
                    message.from,
                    message.group.namespace,
                    message.view,
                    detail(&message.kind)
                ),
            );
            process.shard.receive(now, message);
            self.settle(to)?;
        }
        Ok(())
    }

    /// A node has heard another one.
    fn hear(&mut self, index: u8, sender: Option<(u8, u64)>) {
        let node = &self.nodes[usize::from(index)];
        if let (Some(process), Some((from, life))) = (&node.process, sender) {
            process.heard.note(from, life, node.now(self.now).monotonic);
        }
    }

    /// What a node says to the others for all its groups that rest.
    fn pulse(&mut self, index: u8, life: u64) {
        let node = &self.nodes[usize::from(index)];
        if node.process.is_none() || node.life != life {
            return;
        }
        for to in (0..self.plan.members).filter(|to| *to != index) {
            let bytes = codec::encode_beats(node::CLUSTER, index, life, &[]);
            self.transmit(index, to, "beats", None, bytes);
        }
        let next = self.now + self.plan.timing.heartbeat;
        self.schedule(next, Event::Pulse { node: index, life });
    }

    fn disk(&mut self, index: u8, life: u64) -> Result<(), String> {
        let node = &mut self.nodes[usize::from(index)];
        let now = node.now(self.now);
        let Some(process) = node.process.as_mut().filter(|_| node.life == life) else {
            return Ok(());
        };
        process.disk_scheduled = false;
        process.storage.run_one();
        if node.disk.is_dead() {
            self.faults.count(Fault::CrashInWrite);
            let power = self.random.random();
            return self.crash(index, power, true);
        }
        process.shard.complete(now);
        self.settle(index)
    }

    fn tick(&mut self, index: u8, life: u64) -> Result<(), String> {
        let node = &mut self.nodes[usize::from(index)];
        let now = node.now(self.now);
        let Some(process) = node.process.as_mut().filter(|_| node.life == life) else {
            return Ok(());
        };
        process.tick_at = None;
        process.shard.tick(now);
        self.settle(index)
    }

    /// Starts a process, unless one runs.
    pub fn start(&mut self, index: u8) -> Result<(), String> {
        let seed = self.seed();
        let plan = self.plan.clone();
        let node = &mut self.nodes[usize::from(index)];
        if node.process.is_some() || node.is_dead {
            return Ok(());
        }
        let started = node.start(&plan, seed);
        let life = node.life;
        self.trace
            .event(self.now, Some(index), "start", format_args!("life {life} {started:?}"));
        if let Err(error) = started {
            node.refused += 1;
            return if self.plan.unlimited || self.plan.liars.contains(&index) {
                Ok(())
            } else {
                Err(format!("S20: node {index} does not start: {error}"))
            };
        }
        let orders = node.orders_at_start(&plan);
        if plan.resting_heartbeat > 0 {
            self.schedule(self.now, Event::Pulse { node: index, life });
        }
        self.give(index, orders)?;
        self.settle(index)?;
        Checker::restarted(&self.nodes[usize::from(index)])
    }

    /// Ends a process, and with the power what was not synced.
    pub fn crash(&mut self, index: u8, power: bool, restarts: bool) -> Result<(), String> {
        let seed = self.seed();
        self.count_replicas(index);
        let node = &mut self.nodes[usize::from(index)];
        node.process = None;
        node.disk.heal();
        if power {
            node.disk.lose_power(seed);
            node.boot += 1;
        } else {
            node.disk.crash();
        }
        self.trace
            .event(self.now, Some(index), "crash", format_args!("power {power}"));
        if restarts {
            let pause = self.random.random_range(1_000..400_000);
            self.schedule(self.now + pause, Event::Start(index));
        }
        Ok(())
    }

    /// Adds what the replicas of a process have counted.
    pub fn count_replicas(&mut self, index: u8) {
        let Some(process) = &self.nodes[usize::from(index)].process else {
            return;
        };
        let metadata = process.shard.metadata().map(MetadataGroup::replica);
        let partitions = process.shard.partitions().map(PartitionGroup::replica);
        for replica in metadata.into_iter().chain(partitions) {
            self.view_changes += replica.counters().view_changes;
            self.state_transfers += replica.counters().state_transfers;
        }
    }

    /// Gives orders to a node's partitions.
    pub(crate) fn give(&mut self, index: u8, orders: Vec<Order>) -> Result<(), String> {
        for mut order in orders {
            node::fit(&mut order, &self.plan);
            let node = &mut self.nodes[usize::from(index)];
            let now = node.now(self.now);
            let disk = node.disk.clone();
            let Some(process) = &mut node.process else {
                return Ok(());
            };
            process.shard.order(now, order, &disk);
            self.settle(index)?;
        }
        Ok(())
    }

    /// Takes what a node has to say, and sees to it that it is woken when it has to be.
    pub fn settle(&mut self, index: u8) -> Result<(), String> {
        let mut outputs = Vec::new();
        let mut beats: BTreeMap<u8, Vec<iggy_consensus::message::Beat>> = BTreeMap::new();
        loop {
            if let Some(process) = &mut self.nodes[usize::from(index)].process {
                process.shard.outputs(&mut outputs);
            }
            if outputs.is_empty() {
                break;
            }
            self.observe(index)?;
            for output in std::mem::take(&mut outputs) {
                match output {
                    Output::Send { to, message } => {
                        let life = self.nodes[usize::from(index)].life;
                        if message.incarnation != life {
                            return Err(format!(
                                "S11: node {index} speaks as in life {} and lives for the {life}th time",
                                message.incarnation
                            ));
                        }
                        self.note_spoken(index, &message);
                        match message.as_beat() {
                            Some(beat) => beats.entry(to).or_default().push(beat),
                            None => self.send(index, to, &message),
                        }
                    }
                    other => self.output(index, other)?,
                }
            }
        }
        for (to, beats) in beats {
            let life = self.nodes[usize::from(index)].life;
            let bytes = codec::encode_beats(node::CLUSTER, index, life, &beats);
            self.transmit(index, to, "beats", None, bytes);
        }
        self.observe(index)?;
        self.wake(index);
        Ok(())
    }

    fn observe(&mut self, index: u8) -> Result<(), String> {
        let node = &self.nodes[usize::from(index)];
        let doubts = |state: &VsrState| state.group == GroupId::METADATA && state.ending != Ending::Blank;
        if node.durable_states().first().is_some_and(doubts) {
            self.doubted.insert(index, self.now);
        }
        if let Some(process) = &node.process {
            let kept = process.shard.retained_bytes();
            if kept > self.plan.repair_bytes_max {
                return Err(format!(
                    "S17: node {index} keeps {kept} bytes for members that miss them"
                ));
            }
        }
        let observed = self.checker.observe(node);
        // A disk that acknowledges writes and forgets them makes its replica promise what it cannot keep.
        if self.wrote_elsewhere { Ok(()) } else { observed }
    }

    fn note_spoken(&mut self, index: u8, message: &iggy_consensus::message::Message) {
        let promises = matches!(
            message.kind,
            Kind::Prepare(_)
                | Kind::PrepareOk { .. }
                | Kind::Commit { .. }
                | Kind::DoViewChange(_)
                | Kind::StartView(_)
        );
        if promises {
            let spoken = &mut self.nodes[usize::from(index)].spoken;
            let view = spoken.entry(message.group).or_default();
            *view = (*view).max(message.view);
        }
    }

    fn send(&mut self, from: u8, to: u8, message: &iggy_consensus::message::Message) {
        if let Kind::Batches { same, .. } = &message.kind {
            self.batches_kept += same.len() as u64;
        }
        let kind = message.kind.name();
        let namespace = message.group.namespace;
        let bytes = Bytes::from(codec::encode(message).concat());
        self.transmit(from, to, kind, Some(namespace), bytes);
    }

    fn transmit(&mut self, from: u8, to: u8, kind: &'static str, namespace: Option<u64>, bytes: Bytes) {
        let arrivals = self
            .network
            .send(self.now, from, to, kind, namespace, bytes, &mut self.faults);
        for arrival in arrivals {
            let event = Event::Deliver {
                to: arrival.to,
                bytes: arrival.bytes,
            };
            self.schedule(arrival.at, event);
        }
    }

    fn wake(&mut self, index: u8) {
        let node = &mut self.nodes[usize::from(index)];
        let life = node.life;
        let deadline = node.process.as_ref().and_then(|process| process.shard.next_deadline());
        let deadline = deadline.map(|deadline| node.deadline(deadline).max(self.now + 1));
        let slowness = node.slowness;
        let Some(process) = &mut node.process else { return };
        let ticks = deadline.filter(|at| process.tick_at.is_none_or(|scheduled| *at < scheduled));
        if ticks.is_some() {
            process.tick_at = ticks;
        }
        let works = !process.storage.is_idle() && !process.disk_scheduled;
        process.disk_scheduled |= works;
        if let Some(at) = ticks {
            self.schedule(at, Event::Tick { node: index, life });
        }
        if works {
            let time = self.disk_time.random_range(1..=2 * self.plan.disk_delay) * slowness;
            self.schedule(self.now + time, Event::Disk { node: index, life });
        }
    }

    fn desk(&mut self) -> Result<(), String> {
        self.schedule(self.now + DESK_PERIOD, Event::Desk);
        if self.desk.open.as_ref().is_some_and(|(_, _, until)| *until < self.now) {
            self.desk.open = None;
        }
        let Some((leader, state)) = self.leading_metadata() else {
            return Ok(());
        };
        if self.desk.open.is_some() {
            return Ok(());
        }
        let state = state.clone();
        let wanted = self.desk.next(&self.plan, &state);
        let wanted = match wanted {
            Some(wanted) => wanted,
            None if self.chaos && self.workload.random_ratio(1, 8) => self.desk.marker(),
            None => return Ok(()),
        };
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        self.desk.open = Some((ticket, wanted.1, self.now + PATIENCE));
        let node = &mut self.nodes[usize::from(leader)];
        let now = node.now(self.now);
        if let Some(process) = &mut node.process {
            process
                .shard
                .change(now, Ticket(ticket), RequestKey::INTERNAL, wanted.0);
        }
        self.settle(leader)
    }
}

fn detail(kind: &Kind) -> String {
    match kind {
        Kind::Prepare(prepare) => format!(" op {} commit {}", prepare.header.op, prepare.header.commit),
        Kind::RepairPrepare { prepare, committed } => format!(" op {} committed {committed}", prepare.header.op),
        Kind::PrepareOk { op, .. } => format!(" op {op}"),
        Kind::Commit { commit, last } => format!(" commit {commit}{}", if *last { ", all there is" } else { "" }),
        Kind::StartViewChange { proposed, .. } => format!(" proposed {proposed}"),
        Kind::DoViewChange(vote) => format!(
            " log view {} committed {} head {} ending {:?} commit {}",
            vote.log_view,
            vote.committed.op,
            vote.head(),
            vote.ending,
            vote.commit_max
        ),
        Kind::StartView(log) => format!(" committed {} head {}", log.committed.op, log.head()),
        Kind::RequestPrepares { from_op, to_op } => format!(" {from_op}..={to_op}"),
        Kind::RangeEvicted { oldest_op } => format!(" oldest {oldest_op}"),
        Kind::State(manifest) => format!(" at {} messages {}", manifest.at.op, manifest.next_offset),
        Kind::RequestBatches { offset, held, .. } => format!(" offset {offset} holds {}", held.len()),
        Kind::Batches { offset, same, bytes } => {
            format!(" offset {offset} same {} bytes {}", same.len(), bytes.len())
        }
        Kind::Heard { .. } | Kind::RequestStartView { .. } | Kind::RequestState => String::new(),
    }
}
