//! The metadata group under the same deaths. It is always persisted: what was answered is there after any of them.

use crate::history::Death;
use crate::node::Node;
use crate::oracle::Broken;
use iggy_consensus::Now;
use iggy_driver::Output;
use iggy_driver::metadata_group::MetadataNotice;
use iggy_driver::request::Ticket;
use iggy_metadata::{Change, Outcome, Position, Receipt, RequestKey, UserRef};
use iggy_protocol::{Name, Operation};
use iggy_storage::memory::MemoryDisk;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const CLIENT: u128 = 50;
const ROOT: UserRef = UserRef {
    user_id: 0,
    created_at: 0,
};
/// Bytes of a change that is there to fill the journal; some of them make a checkpoint due.
const FILLER: usize = 900_000;

pub struct MetadataHistory {
    disk: MemoryDisk,
    node: Option<Node>,
    random: StdRng,
    now: Now,
    boot: u128,
    session: u64,
    next_request: u64,
    next_ticket: u64,
    waiting: BTreeMap<u64, u64>,
    /// Requests to create a stream of their number, with their first answer.
    requests: BTreeMap<u64, Option<(Position, Outcome)>>,
    faulty: bool,
    fenced: bool,
}

fn stream(request: u64) -> Name {
    Name::new(format!("stream-{request}")).expect("a valid name")
}

impl MetadataHistory {
    pub fn new(seed: u64) -> Result<Self, Broken> {
        let mut history = Self {
            disk: MemoryDisk::new(),
            node: None,
            random: StdRng::seed_from_u64(seed),
            now: Now {
                monotonic: 1_000,
                wall: 1_700_000_000_000_000,
            },
            boot: 1,
            session: 0,
            next_request: 1,
            next_ticket: 1,
            waiting: BTreeMap::new(),
            requests: BTreeMap::new(),
            faulty: false,
            fenced: false,
        };
        history.start()?;
        let bootstrap = Change::Bootstrap {
            log_id: 1,
            root_username: Name::new("iggy").expect("a valid name"),
            root_password_hash: "hash".into(),
        };
        history.change(RequestKey::INTERNAL, bootstrap)?;
        history.settle()?;
        let node = history.node.as_ref().expect("a node runs");
        let state = node.shard.metadata().expect("metadata is hosted").state();
        let user = state.credentials("iggy").expect("root is there").user;
        let register = Change::Register {
            user,
            verifier: [7; 32],
            may_evict: Vec::new(),
        };
        let key = RequestKey {
            client: CLIENT,
            operation: Operation::Register,
            ..RequestKey::INTERNAL
        };
        history.change(key, register)?;
        history.settle()?;
        history.session = history
            .with_state(|state| state.session_of_client(CLIENT).map(|session| session.key.session))
            .ok_or("the session was not registered")?;
        Ok(history)
    }

    fn with_state<T>(&self, read: impl FnOnce(&iggy_metadata::Metadata) -> T) -> T {
        let node = self.node.as_ref().expect("a node runs");
        read(node.shard.metadata().expect("metadata is hosted").state())
    }

    pub fn start(&mut self) -> Result<(), Broken> {
        let mut node = Node::start(&self.disk, self.random.random(), self.boot);
        node.shard
            .open_metadata(8, true, &self.disk)
            .map_err(|error| format!("metadata recovery refused: {error}"))?;
        self.node = Some(node);
        Ok(())
    }

    pub fn die_after(&mut self, most: u64) {
        self.disk.die_after(self.random.random_range(0..most));
    }

    pub fn die(&mut self) {
        let death = if self.random.random() {
            Death::Crash
        } else {
            Death::Power
        };
        self.node = None;
        self.waiting.clear();
        self.faulty = false;
        self.fenced = false;
        self.disk.fail_next_sync(0);
        match death {
            Death::Crash => self.disk.crash(),
            Death::Power => {
                self.disk.lose_power(self.random.random());
                self.boot += 1;
            }
        }
    }

    fn change(&mut self, key: RequestKey, change: Change) -> Result<(), Broken> {
        self.next_ticket += 1;
        self.waiting.insert(self.next_ticket, key.request);
        let (now, ticket) = (self.now, Ticket(self.next_ticket));
        let node = self.node.as_mut().expect("a node runs");
        node.shard.change(now, ticket, key, change);
        self.take_outputs()
    }

    fn ask(&mut self, request: u64) -> Result<(), Broken> {
        self.requests.entry(request).or_insert(None);
        let key = RequestKey {
            client: CLIENT,
            session: self.session,
            request,
            request_checksum: u128::from(request) + 1_000,
            operation: Operation::CreateStream,
            user_id: ROOT.user_id,
        };
        let change = Change::CreateStream {
            name: stream(request),
            explicit: iggy_protocol::options::Options::default(),
        };
        self.change(key, change)
    }

    pub fn act(&mut self) -> Result<(), Broken> {
        self.now.monotonic += 10;
        self.now.wall += 10;
        match self.random.random_range(0..10) {
            0..3 => {
                self.next_request += 1;
                self.ask(self.next_request)
            }
            3 => {
                let request = self.random.random_range(1..=self.next_request);
                if self.requests.contains_key(&request) {
                    self.ask(request)?;
                }
                Ok(())
            }
            4 => {
                let filler = Change::ChangePassword {
                    user: ROOT,
                    verified_hash: "x".repeat(FILLER),
                    password_hash: String::new(),
                };
                self.change(RequestKey::INTERNAL, filler)
            }
            5 if self.random.random_ratio(1, 100) => {
                self.faulty = true;
                self.disk.fail_next_sync(1);
                Ok(())
            }
            _ => {
                let (now, jobs) = (self.now, self.random.random_range(1..3));
                self.node.as_mut().expect("a node runs").complete(now, jobs);
                self.take_outputs()
            }
        }
    }

    pub fn settle(&mut self) -> Result<(), Broken> {
        let now = self.now;
        while !self.node.as_ref().expect("a node runs").is_idle() && !self.disk.is_dead() {
            self.node.as_mut().expect("a node runs").complete(now, 4);
            self.take_outputs()?;
        }
        Ok(())
    }

    pub fn is_dead(&self) -> bool {
        self.disk.is_dead()
    }

    fn take_outputs(&mut self) -> Result<(), Broken> {
        let mut outputs = Vec::new();
        self.node.as_mut().expect("a node runs").shard.outputs(&mut outputs);
        for output in outputs {
            match output {
                Output::Metadata(MetadataNotice::Applied { ticket, applied }) => {
                    if self.fenced {
                        return Err("the group is fenced and answered".into());
                    }
                    let ticket = ticket.ok_or("a change that nobody asked for")?;
                    let request = self.waiting.remove(&ticket.0).ok_or("a ticket was answered twice")?;
                    self.answered(request, &applied.receipt)?;
                }
                Output::Metadata(MetadataNotice::Refused { ticket, .. } | MetadataNotice::Uncertain { ticket }) => {
                    self.waiting.remove(&ticket.0).ok_or("a ticket was answered twice")?;
                }
                Output::Metadata(notice @ (MetadataNotice::Fenced { .. } | MetadataNotice::OpenFailed(_))) => {
                    if !self.faulty {
                        return Err(format!("trouble without a fault: {notice:?}"));
                    }
                    self.fenced = true;
                }
                other => return Err(format!("unexpected: {other:?}")),
            }
        }
        Ok(())
    }

    fn answered(&mut self, request: u64, receipt: &Receipt) -> Result<(), Broken> {
        let Some(first) = self.requests.get_mut(&request) else {
            return Ok(());
        };
        match (&first, &receipt.outcome) {
            (Some((at, outcome)), _) if *at == receipt.at && *outcome == receipt.outcome => {}
            // Its receipt was pushed out, or a newer request came before it.
            (_, Outcome::Refused(code)) if code.code() == 85 || code.code() == 59 => {}
            (None, Outcome::Done(_)) => *first = Some((receipt.at, receipt.outcome.clone())),
            (first, now) => return Err(format!("request {request} was answered {first:?} and then {now:?}")),
        }
        Ok(())
    }

    /// Holds the state against the answers.
    pub fn inspect(&self) -> Result<(), Broken> {
        self.with_state(|state| {
            let names: Vec<String> = state.streams().map(|stream| stream.name.to_string()).collect();
            let unique: BTreeSet<&String> = names.iter().collect();
            if unique.len() != names.len() {
                return Err("a stream is there twice".into());
            }
            for (request, answer) in &self.requests {
                let there = unique.contains(&stream(*request).to_string());
                if answer.is_some() && !there {
                    return Err(format!("stream {request} was created and is gone"));
                }
            }
            let asked: BTreeSet<String> = self
                .requests
                .keys()
                .map(|request| stream(*request).to_string())
                .collect();
            match names.iter().find(|name| !asked.contains(*name)) {
                Some(name) => Err(format!("{name} was never asked for")),
                None => Ok(()),
            }
        })
    }
}
