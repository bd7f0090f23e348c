//! A cluster of replicas without hosts: messages wait until a test lets them pass, writes are done at once unless a test
//! holds them.

use bytes::Bytes;
use iggy_consensus::message::{Kind, Message};
use iggy_consensus::{
    Barrier, Body, Effect, Effects, Ending, GroupId, Input, LogEnd, Now, Prepare, Proposal, RecoveredLog, Refusal,
    Replica, ReplicaConfig, Status, Timing, VsrState,
};
use iggy_storage::IoToken;

pub const CLUSTER: u128 = 7;
pub const GROUP: GroupId = GroupId::METADATA;

/// What a replica's disk holds.
#[derive(Clone, Debug)]
pub struct Disk {
    pub state: VsrState,
    pub log: Vec<Prepare>,
    pub base: LogEnd,
    pub committed: u64,
}

pub struct Cluster {
    pub replicas: Vec<Option<Replica>>,
    pub disks: Vec<Disk>,
    pub lives: Vec<u64>,
    pub now: Now,
    pub packets: Vec<(u8, Message)>,
    pub cut: Vec<(u8, u8)>,
    pub dropped: Vec<&'static str>,
    /// Replicas whose writes wait, and the writes.
    pub holding: Vec<u8>,
    pub held: Vec<(u8, IoToken)>,
    pub commits: Vec<u64>,
    pub fetches: Vec<(u8, u8, bool)>,
    pub losses: Vec<(u8, u64)>,
    pub sent: Vec<(u8, u8, &'static str)>,
    /// Whether the nodes of those that run are heard by all that no cut keeps from it.
    pub nodes_live: bool,
    /// Replicas whose searches for a view are put off.
    pub put_off: Vec<u8>,
    pub config: ReplicaConfig,
}

pub const TIMING: Timing = Timing {
    heartbeat: 50,
    heartbeat_timeout: 500,
    prepare_retransmit: 30,
    view_change_retransmit: 60,
    view_change_status: 600,
    request_start_view: 100,
    repair_retry: 50,
    drain: 200,
};

impl Cluster {
    pub fn new(count: u8) -> Self {
        Self::with(count, ReplicaConfig::default())
    }

    pub fn with(count: u8, config: ReplicaConfig) -> Self {
        let disk = |index| Disk {
            state: VsrState::new(CLUSTER, GROUP, index, count),
            log: Vec::new(),
            base: LogEnd::default(),
            committed: 0,
        };
        let mut cluster = Self {
            replicas: (0..count).map(|_| None).collect(),
            disks: (0..count).map(disk).collect(),
            lives: vec![0; usize::from(count)],
            now: Now {
                monotonic: 1_000,
                wall: 1_000_000,
            },
            packets: Vec::new(),
            cut: Vec::new(),
            dropped: Vec::new(),
            holding: Vec::new(),
            held: Vec::new(),
            commits: vec![0; usize::from(count)],
            fetches: Vec::new(),
            losses: Vec::new(),
            sent: Vec::new(),
            nodes_live: false,
            put_off: Vec::new(),
            config: ReplicaConfig {
                timing: TIMING,
                ..config
            },
        };
        for index in 0..count {
            cluster.start(index, true);
        }
        cluster
    }

    pub fn start(&mut self, index: u8, created: bool) {
        let place = usize::from(index);
        self.lives[place] += 1;
        let disk = self.disks[place].clone();
        let config = ReplicaConfig {
            incarnation: self.lives[place],
            ..self.config
        };
        let log = RecoveredLog {
            applied: disk.base,
            base: disk.base,
            committed: disk.committed,
            entries: disk.log,
            created,
        };
        self.replicas[place] = Some(Replica::recover(config, disk.state, log).expect("a disk that makes sense"));
        self.commits[place] = disk.base.op;
        let mut effects = Effects::new();
        let now = self.now;
        self.replica_mut(index).start(now, &mut effects);
        self.run(index, effects);
        if !created && !self.put_off.contains(&index) {
            self.step(index, Input::Tick);
        }
    }

    pub fn crash(&mut self, index: u8) {
        self.replicas[usize::from(index)] = None;
        self.held.retain(|(node, _)| *node != index);
        self.packets.retain(|(to, _)| *to != index);
    }

    /// The process ends, and with the power what was not synced after `op`.
    pub fn lose_after(&mut self, index: u8, op: u64, ending: Ending) {
        self.crash(index);
        let disk = &mut self.disks[usize::from(index)];
        disk.log.retain(|prepare| prepare.header.op.get() <= op);
        disk.committed = disk.committed.min(op);
        disk.state.ending = ending;
    }

    pub fn replica(&self, index: u8) -> &Replica {
        self.replicas[usize::from(index)].as_ref().expect("it runs")
    }

    pub fn replica_mut(&mut self, index: u8) -> &mut Replica {
        self.replicas[usize::from(index)].as_mut().expect("it runs")
    }

    pub fn step(&mut self, index: u8, input: Input) {
        let now = self.now;
        let mut effects = Effects::new();
        self.replica_mut(index).step(now, input, &mut effects);
        self.run(index, effects);
    }

    fn run(&mut self, index: u8, effects: Effects) {
        let place = usize::from(index);
        for effect in effects {
            match effect {
                Effect::Append { token, prepare, .. } => {
                    let disk = &mut self.disks[place];
                    disk.committed = disk.committed.max(prepare.header.commit.get());
                    disk.log.push(prepare);
                    self.written(index, token);
                }
                Effect::Truncate { token, op } => {
                    self.disks[place].log.retain(|prepare| prepare.header.op.get() <= op);
                    self.written(index, token);
                }
                Effect::PersistState { token, state } => {
                    self.disks[place].state = state;
                    self.written(index, token);
                }
                Effect::Commit { op } => {
                    assert!(op > self.commits[place], "a commit goes forward");
                    self.commits[place] = op;
                }
                Effect::Send { to, message } => {
                    self.sent.push((index, to, message.kind.name()));
                    let lost = self.cut.contains(&(index, to)) || self.dropped.contains(&message.kind.name());
                    if !lost && self.replicas[usize::from(to)].is_some() {
                        self.packets.push((to, message));
                    }
                }
                Effect::FetchState { from, from_scratch } => self.fetches.push((index, from, from_scratch)),
                Effect::HistoryLost { history } => self.losses.push((index, history)),
                Effect::Refuse(_) | Effect::Role | Effect::Fence(_) => {}
            }
        }
    }

    fn written(&mut self, index: u8, token: IoToken) {
        if self.holding.contains(&index) {
            self.held.push((index, token));
        } else {
            self.step(index, Input::IoDone(token, true));
        }
    }

    pub fn release(&mut self, index: u8) {
        self.holding.retain(|held| *held != index);
        let held: Vec<IoToken> = self
            .held
            .iter()
            .filter(|(node, _)| *node == index)
            .map(|(_, token)| *token)
            .collect();
        self.held.retain(|(node, _)| *node != index);
        for token in held {
            self.step(index, Input::IoDone(token, true));
        }
    }

    /// Lets every message pass, and those that follow from it.
    pub fn deliver(&mut self) {
        for _ in 0..10_000 {
            if self.packets.is_empty() {
                return;
            }
            let (to, message) = self.packets.remove(0);
            if self.replicas[usize::from(to)].is_some() {
                self.step(to, Input::Message(message));
            }
        }
        panic!("the messages never end");
    }

    /// Lets time pass, with ticks when they are wanted and messages in between.
    pub fn pass(&mut self, micros: u64) {
        let until = self.now.monotonic + micros;
        while self.now.monotonic < until {
            self.now.monotonic += 10;
            self.now.wall += 10;
            for index in 0..self.replicas.len() as u8 {
                let due = self.replicas[usize::from(index)]
                    .as_ref()
                    .and_then(Replica::next_deadline);
                if due.is_some_and(|due| due <= self.now.monotonic) {
                    self.vouch(index);
                    let searches = self.replica(index).is_about_to_search(self.now);
                    if !(searches && self.put_off.contains(&index)) {
                        self.step(index, Input::Tick);
                    }
                }
            }
            self.deliver();
        }
    }

    /// Tells a replica which nodes live.
    fn vouch(&mut self, index: u8) {
        let at = self.now.monotonic;
        for other in 0..self.replicas.len() as u8 {
            let reaches = self.replicas[usize::from(other)].is_some() && !self.cut.contains(&(other, index));
            if self.nodes_live && other != index && reaches {
                let life = self.lives[usize::from(other)];
                self.replica_mut(index).vouch(other, life, at);
            }
        }
    }

    pub fn propose(&mut self, index: u8, body: &'static [u8]) -> Result<(), Refusal> {
        let now = self.now;
        let replica = self.replica(index);
        replica.admits()?;
        let proposal = Proposal {
            client: 1,
            request_checksum: 2,
            session: 3,
            request: 4,
            user_id: 5,
            owner_generation: 0,
            operation: 128,
            timestamp: replica.next_timestamp(now),
            body: Body::Inline(Bytes::from_static(body)),
            barrier: Barrier::Sync,
        };
        self.step(index, Input::Propose(proposal));
        Ok(())
    }

    /// Proposes at whoever leads, and lets everything follow.
    pub fn write(&mut self, body: &'static [u8]) {
        let leader = self.leader().expect("somebody leads");
        self.propose(leader, body).expect("the leader takes it");
        self.deliver();
    }

    pub fn leader(&self) -> Option<u8> {
        let leads = |index: &u8| {
            self.replicas[usize::from(*index)]
                .as_ref()
                .is_some_and(Replica::is_primary)
        };
        (0..self.replicas.len() as u8)
            .filter(leads)
            .max_by_key(|index| self.replica(*index).view())
    }

    pub fn isolate(&mut self, index: u8) {
        for other in 0..self.replicas.len() as u8 {
            if other != index {
                self.cut.extend([(index, other), (other, index)]);
            }
        }
    }

    pub fn log(&self, index: u8) -> Vec<u128> {
        let disk = &self.disks[usize::from(index)];
        disk.log.iter().map(|prepare| prepare.header.checksum.get()).collect()
    }

    /// All that run are normal, in one view, with one log that is committed.
    pub fn assert_agree(&self) {
        let leader = self.leader().expect("somebody leads");
        let (view, op) = (self.replica(leader).view(), self.replica(leader).op());
        for replica in self.replicas.iter().flatten() {
            assert_eq!(replica.status(), Status::Normal, "replica {}", replica.index());
            assert_eq!(
                (replica.view(), replica.op(), replica.commit()),
                (view, op, op),
                "replica {}",
                replica.index()
            );
            assert_eq!(replica.end_at(op), self.replica(leader).end_at(op));
        }
    }

    pub fn count_sent(&self, from: u8, name: &str) -> usize {
        self.sent
            .iter()
            .filter(|(node, _, kind)| *node == from && *kind == name)
            .count()
    }
}

/// A message of replica `from`, in its first life.
pub fn message(from: u8, view: u32, kind: Kind) -> Message {
    Message {
        cluster: CLUSTER,
        group: GROUP,
        from,
        incarnation: 1,
        view,
        kind,
    }
}
