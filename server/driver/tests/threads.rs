//! Reads that wait, across threads: shards with their inboxes, a fetch that counts on two of them, clients that poll,
//! cancel and vanish, all interleaved in every order a scheduler can find. The shards and the tally are those of the
//! node; inboxes, timers and sockets stand for themselves.
//!
//! A lost wake-up shows as a deadlock: nobody is left who would run.

#[path = "crash/node.rs"]
#[allow(dead_code)] // Its limits alone are used.
mod node;

#[path = "parking/desk.rs"]
#[allow(dead_code)] // Its requests alone are used.
mod desk;

use desk::{alone, key, poll_from};
use iggy_consensus::{Durability, Now};
use iggy_driver::partition_group::PartitionGroup;
use iggy_driver::request::{Origin, PartitionRequest, Ticket};
use iggy_driver::shard::{Watch, WatchTarget};
use iggy_driver::tally::{Progress, Tally, Wanted, WatchId, Watching};
use iggy_driver::{Order, Output, Shard};
use iggy_metadata::model::topic::History;
use iggy_partition::Settings;
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::context::PartitionContext;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::RequestHeader;
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_storage::memory::MemoryDisk;
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Schedules per test.
fn schedules() -> usize {
    let asked = std::env::var("IGGY_TEST_SEEDS").ok();
    asked.and_then(|value| value.parse().ok()).unwrap_or(1_500)
}

/// Session whose polls and fetches wait.
const READER: u64 = 1;

enum Message {
    Send { partition: u32, ticket: u64 },
    Poll { partition: u32, ticket: u64 },
    Watch(Box<Watch>),
    Unwatch(WatchId),
    Cancel(u64),
    Disconnected,
    Delete { partition: u32 },
    Tick(u64),
    Stop,
}

/// A bounded inbox: whoever cannot wait is turned away when it is full.
struct Inbox {
    messages: Mutex<VecDeque<Message>>,
    changed: Condvar,
    places: usize,
}

impl Inbox {
    fn new(places: usize) -> Arc<Self> {
        Arc::new(Self {
            messages: Mutex::new(VecDeque::new()),
            changed: Condvar::new(),
            places,
        })
    }

    fn send(&self, message: Message) -> Result<(), Message> {
        let mut messages = self.messages.lock().unwrap();
        if messages.len() >= self.places {
            return Err(message);
        }
        messages.push_back(message);
        self.changed.notify_all();
        Ok(())
    }

    fn send_waiting(&self, message: Message) {
        let mut messages = self.messages.lock().unwrap();
        while messages.len() >= self.places {
            messages = self.changed.wait(messages).unwrap();
        }
        messages.push_back(message);
        self.changed.notify_all();
    }

    fn receive(&self) -> Message {
        let mut messages = self.messages.lock().unwrap();
        loop {
            if let Some(message) = messages.pop_front() {
                self.changed.notify_all();
                return message;
            }
            messages = self.changed.wait(messages).unwrap();
        }
    }
}

/// Answers by ticket; each request is answered once.
#[derive(Default)]
struct Answers {
    statuses: Mutex<BTreeMap<u64, u32>>,
    changed: Condvar,
}

impl Answers {
    fn put(&self, ticket: u64, status: u32) {
        let before = self.statuses.lock().unwrap().insert(ticket, status);
        assert!(before.is_none(), "request {ticket} was answered twice");
        self.changed.notify_all();
    }

    fn wait_for(&self, ticket: u64) -> u32 {
        let mut statuses = self.statuses.lock().unwrap();
        loop {
            if let Some(status) = statuses.get(&ticket) {
                return *status;
            }
            statuses = self.changed.wait(statuses).unwrap();
        }
    }
}

fn origin(ticket: u64, session: u64, operation: Operation) -> Origin {
    let mut header = RequestHeader::new(operation, 0);
    header.client = u128::from(session).into();
    header.session = session.into();
    header.request = ticket.into();
    header.request_checksum = u128::from(ticket).into();
    header.partition_incarnation = key(0).incarnation.into();
    Origin {
        ticket: Ticket(ticket),
        header: Box::new(header),
        user_id: 0,
        connection: session as u32,
    }
}

fn batch() -> bytes::Bytes {
    let mut builder = BatchBuilder::new();
    builder.push(1, b"payload", &[], 5).expect("a message");
    builder.finish(None).expect("a batch").freeze()
}

/// Runs a shard with one partition until it is told to stop.
fn run_shard(partition: u32, inbox: &Inbox, answers: &Answers) {
    let disk = MemoryDisk::new();
    let mut shard = Shard::new(node::config(1), disk.storage(1));
    let mut now = Now {
        monotonic: 1,
        wall: 1_000_000,
    };
    let open = Order::Open {
        key: key(partition),
        members: iggy_driver::Members::all(1),
        settings: Settings {
            partition_id: partition,
            segment_size: 1 << 20,
            preallocate: false,
            durability: Durability::Replicated,
            consumer_offset_durability: Durability::Replicated,
            message_expiry: u64::MAX,
            size_max: u64::MAX,
        },
        history: History {
            losses: 0,
            incarnation: key(partition).incarnation,
        },
        created: true,
        counters: Arc::default(),
    };
    shard.order(now, open, &disk);
    let mut outputs = Vec::new();
    loop {
        let message = inbox.receive();
        let stops = matches!(message, Message::Stop);
        match message {
            Message::Send { partition, ticket } => {
                let origin = origin(ticket, ticket, Operation::SendMessages);
                shard.request(now, key(partition), origin, PartitionRequest::Send { batch: batch() });
            }
            Message::Poll { partition, ticket } => {
                let origin = origin(ticket, READER, Operation::NonReplicated);
                let poll = PartitionRequest::Poll(poll_from(0));
                shard.request(now, key(partition), origin, poll);
            }
            Message::Watch(watch) => shard.watch(now, *watch),
            Message::Unwatch(watch) => shard.unwatch(watch),
            Message::Cancel(request) => shard.cancel(READER.into(), READER, request),
            Message::Disconnected => shard.disconnected(READER as u32),
            Message::Delete { partition } => shard.order(now, Order::Delete { key: key(partition) }, &disk),
            Message::Tick(micros) => {
                now.monotonic += micros;
                shard.tick(now);
            }
            Message::Stop => {}
        }
        for _ in 0..4 {
            shard.complete(now);
        }
        shard.outputs(&mut outputs);
        for output in outputs.drain(..) {
            if let Output::Reply(reply) = output {
                answers.put(reply.ticket.0, reply.header.status.get());
            }
        }
        if stops {
            break;
        }
    }
    assert_eq!(shard.parked(), 0, "a wait was left behind");
    let watchers: usize = shard.partitions().map(PartitionGroup::watchers).sum();
    assert_eq!(watchers, 0, "a fetch is still counted for");
}

/// What wakes a fetch: its tally, its deadline, or its client.
#[derive(Default)]
struct Alarm {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Alarm {
    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// A fetch over one partition of each shard, as the node runs it. `over` tells that its time has come.
fn run_fetch(id: u64, messages: u64, shards: &[Arc<Inbox>], alarm: &Arc<Alarm>, over: &Mutex<bool>) -> Progress {
    let rung = Arc::clone(alarm);
    let wanted = Wanted {
        messages,
        bytes: 1 << 20,
        bytes_each: vec![1 << 20; shards.len()],
    };
    let tally = Arc::new(Tally::new(wanted, move || rung.ring()));
    let mut asked = Vec::new();
    for (place, shard) in shards.iter().enumerate() {
        let partition = key(place as u32);
        let watching = Watching {
            watch: WatchId(id),
            place,
            tally: Arc::clone(&tally),
            consumer: alone(),
            strategy: PollingStrategy::Offset(0),
            waits: true,
            metadata_op: 1,
        };
        let watch = Watch {
            id: WatchId(id),
            origin: origin(u64::MAX, READER, Operation::NonReplicated),
            targets: vec![WatchTarget {
                key: partition,
                context: PartitionContext {
                    incarnation: partition.incarnation,
                    ..PartitionContext::default()
                },
                watching,
            }],
            tally: Arc::clone(&tally),
            wait: 1_000,
        };
        match shard.send(Message::Watch(Box::new(watch))) {
            Ok(()) => asked.push(shard),
            Err(Message::Watch(watch)) => watch.refuse(ErrorCode::TransientNotAccepted),
            Err(_) => unreachable!("it comes back as it was"),
        }
    }
    while tally.progress() != Progress::Ready && !*over.lock().unwrap() {
        alarm.wait();
    }
    let progress = tally.progress();
    if tally.close() {
        for shard in asked {
            shard.send_waiting(Message::Unwatch(WatchId(id)));
        }
    }
    progress
}

struct Node {
    shards: Vec<Arc<Inbox>>,
    answers: Arc<Answers>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Node {
    fn start(places: usize) -> Self {
        let answers = Arc::new(Answers::default());
        let shards = vec![Inbox::new(places), Inbox::new(places)];
        let threads = shards.iter().enumerate().map(|(partition, inbox)| {
            let (inbox, answers) = (Arc::clone(inbox), Arc::clone(&answers));
            thread::spawn(move || run_shard(partition as u32, &inbox, &answers))
        });
        let threads = threads.collect();
        Self {
            shards,
            answers,
            threads,
        }
    }

    fn send(&self, partition: u32, ticket: u64) -> thread::JoinHandle<()> {
        let (inbox, answers) = (Arc::clone(&self.shards[partition as usize]), Arc::clone(&self.answers));
        thread::spawn(move || {
            inbox.send_waiting(Message::Send { partition, ticket });
            answers.wait_for(ticket);
        })
    }

    fn tell(&self, shard: u32, message: impl FnOnce() -> Message + Send + 'static) -> thread::JoinHandle<()> {
        let inbox = Arc::clone(&self.shards[shard as usize]);
        thread::spawn(move || inbox.send_waiting(message()))
    }

    fn stop(self) {
        for inbox in &self.shards {
            inbox.send_waiting(Message::Stop);
        }
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// Nothing but messages ends this wait: were the last of them missed, the fetch would sleep for ever.
#[test]
fn given_a_fetch_over_two_shards_when_messages_come_at_any_moment_should_always_hear_of_them() {
    shuttle::check_random(
        || {
            let node = Node::start(8);
            let alarm = Arc::new(Alarm::default());
            let fetch = {
                let shards = node.shards.clone();
                thread::spawn(move || run_fetch(1, 3, &shards, &alarm, &Mutex::new(false)))
            };
            let sends = [node.send(0, 10), node.send(1, 11), node.send(1, 12)];
            for send in sends {
                send.join().unwrap();
            }
            assert_eq!(fetch.join().unwrap(), Progress::Ready);
            node.stop();
        },
        schedules(),
    );
}

/// Whatever ends the fetch first, and whether or not its shards have room for it, nothing is left of it.
#[test]
fn given_a_fetch_when_it_ends_while_its_shards_count_and_lose_a_partition_should_leave_nothing_behind() {
    shuttle::check_random(
        || {
            let node = Node::start(2);
            let alarm = Arc::new(Alarm::default());
            let over = Arc::new(Mutex::new(false));
            let fetch = {
                let (shards, alarm, over) = (node.shards.clone(), Arc::clone(&alarm), Arc::clone(&over));
                thread::spawn(move || run_fetch(1, 2, &shards, &alarm, &over))
            };
            let others = [
                node.send(1, 10),
                node.tell(0, || Message::Delete { partition: 0 }),
                node.tell(1, || Message::Disconnected),
                node.tell(1, || Message::Tick(2_000)),
                thread::spawn(move || {
                    *over.lock().unwrap() = true;
                    alarm.ring();
                }),
            ];
            for other in others {
                other.join().unwrap();
            }
            fetch.join().unwrap();
            node.stop();
        },
        schedules(),
    );
}

/// A cancel, a lost connection, a deadline, messages and a deletion race for each poll, and one of them has it.
/// L4.
#[test]
fn given_polls_when_everything_that_ends_them_races_should_answer_each_exactly_once() {
    shuttle::check_random(
        || {
            let node = Node::start(3);
            let polls: Vec<_> = [20_u64, 21, 22]
                .into_iter()
                .map(|ticket| {
                    let partition = u32::from(ticket == 22);
                    let (inbox, answers) = (Arc::clone(&node.shards[partition as usize]), Arc::clone(&node.answers));
                    thread::spawn(move || {
                        if inbox.send(Message::Poll { partition, ticket }).is_err() {
                            // As the node does for a client whose request finds no place.
                            answers.put(ticket, ErrorCode::TransientNotAccepted.code());
                        }
                        answers.wait_for(ticket)
                    })
                })
                .collect();
            let enders = [
                node.send(0, 10),
                node.tell(0, || Message::Cancel(20)),
                node.tell(0, || Message::Disconnected),
                node.tell(1, || Message::Tick(2_000_000)),
                node.tell(1, || Message::Delete { partition: 1 }),
            ];
            for ender in enders {
                ender.join().unwrap();
            }
            // What came after all of them ends with the time.
            for inbox in &node.shards {
                inbox.send_waiting(Message::Tick(2_000_000));
            }
            let mut rounds = 0;
            while node.answers.statuses.lock().unwrap().range(20..).count() < 3 {
                rounds += 1;
                assert!(rounds < 1_000, "a poll was never answered");
                for inbox in &node.shards {
                    inbox.send_waiting(Message::Tick(2_000_000));
                }
                thread::yield_now();
            }
            for poll in polls {
                poll.join().unwrap();
            }
            node.stop();
        },
        schedules(),
    );
}
