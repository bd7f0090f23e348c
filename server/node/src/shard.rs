//! A shard's thread: brings requests, disk completions and the time to the driver, and its outputs to their owners.

use crate::connection::outgoing::ReplySender;
use crate::dispatch;
use crate::node::{Node, wall_micros};
use iggy_consensus::Now;
use iggy_driver::metadata_group::MetadataNotice;
use iggy_driver::request::{Origin, PartitionRequest, Reply, Ticket};
use iggy_driver::shard::Watch;
use iggy_driver::tally::WatchId;
use iggy_driver::{Order, Output, PartitionEvent, Shard, controller};
use iggy_metadata::{Change, Outcome, PartitionKey, Receipt, RequestKey};
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::RequestHeader;
use iggy_storage::file::FileStorage;
use iggy_storage::image::FileImage;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, oneshot};

/// Pause before the metadata is asked again for a new history.
const BEGIN_HISTORY_PAUSE: Duration = Duration::from_millis(100);
/// Pause before orders that found their shard's queue full are sent again.
const BACKLOG_PAUSE: Duration = Duration::from_millis(1);
/// Requests a shard takes before it looks after its disk again.
const TURN: usize = 64;
/// Orders that may wait for a shard; while more do, no metadata change is admitted.
pub const ORDERS_MAX: usize = 4096;

/// Answer to a proposed metadata change.
pub type ChangeAnswer = Result<Receipt, ErrorCode>;

/// Where the reply of a partition goes.
pub enum ReplyTo {
    /// To the client.
    Client(ReplySender),
    /// To a fetch, which puts several together.
    Fetch(oneshot::Sender<Reply>),
}

impl ReplyTo {
    fn send(self, reply: Reply) {
        match self {
            Self::Client(sender) => sender.send(reply.header, reply.body),
            // A fetch that is gone has answered already.
            Self::Fetch(sender) => drop(sender.send(reply)),
        }
    }
}

/// What reaches a shard.
pub enum ShardMessage {
    /// A request to a partition.
    Partition {
        /// Partition.
        key: PartitionKey,
        /// Request header.
        header: Box<RequestHeader>,
        /// Authenticated user.
        user_id: u32,
        /// Connection it came on.
        connection: u32,
        /// What to do.
        request: PartitionRequest,
        /// Where the reply goes.
        reply: ReplyTo,
    },
    /// A metadata change.
    Change {
        /// Request it answers; `RequestKey::INTERNAL` for the node's own.
        request: RequestKey,
        /// The change.
        change: Change,
        /// Where the receipt goes.
        answer: oneshot::Sender<ChangeAnswer>,
    },
    /// Count for a fetch, and go on while it waits.
    Watch(Box<Watch>),
    /// Count for a fetch no longer.
    Unwatch(WatchId),
    /// A client no longer wants a deferred poll.
    Cancel {
        /// Client identity.
        client: u128,
        /// Session.
        session: u64,
        /// Request number.
        request: u64,
    },
    /// A connection with deferred polls is gone.
    Disconnected(u32),
    /// Where the oldest sealed segments of a partition end.
    SegmentsEnd {
        /// Partition.
        key: PartitionKey,
        /// Segments to pass.
        count: u32,
        /// First offset after them.
        answer: oneshot::Sender<Result<u64, ErrorCode>>,
    },
    /// Drop what has expired.
    Retain,
    /// Stop in order.
    Stop,
}

/// The way to a shard.
#[derive(Clone)]
pub struct ShardHandle {
    inbox: mpsc::Sender<ShardMessage>,
    orders: mpsc::Sender<Order>,
}

/// The other end of a [`ShardHandle`].
pub struct ShardInbox {
    inbox: mpsc::Receiver<ShardMessage>,
    orders: mpsc::Receiver<Order>,
}

impl ShardHandle {
    /// A handle and its other end; `capacity` requests may wait.
    pub fn new(capacity: usize) -> (Self, ShardInbox) {
        let (inbox, inbox_end) = mpsc::channel(capacity);
        let (orders, orders_end) = mpsc::channel(ORDERS_MAX);
        (
            Self { inbox, orders },
            ShardInbox {
                inbox: inbox_end,
                orders: orders_end,
            },
        )
    }

    /// Hands a request over; gives it back when the inbox is full or the shard has stopped.
    pub fn send(&self, message: ShardMessage) -> Result<(), Box<ShardMessage>> {
        self.inbox.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(message) | mpsc::error::TrySendError::Closed(message) => Box::new(message),
        })
    }

    /// As [`send`](Self::send), but waits for room.
    pub async fn send_waiting(&self, message: ShardMessage) -> bool {
        self.inbox.send(message).await.is_ok()
    }
}

enum Waiter {
    Reply(ReplyTo),
    Change(oneshot::Sender<ChangeAnswer>),
    Segments(oneshot::Sender<Result<u64, ErrorCode>>),
}

/// A shard and what it needs to run.
pub struct ShardRunner {
    node: Arc<Node>,
    shard: Shard<FileStorage>,
    image: FileImage,
    wake: Arc<Notify>,
    started: Instant,
    tickets: Slab<Waiter>,
    /// Orders for shards whose queue was full.
    backlog: VecDeque<Order>,
    outputs: Vec<Output>,
    stopped: bool,
}

impl ShardRunner {
    /// Runs `shard`, whose storage lies below `image` and calls `wake` after each completion.
    pub fn new(node: Arc<Node>, shard: Shard<FileStorage>, image: FileImage, wake: Arc<Notify>) -> Self {
        Self {
            node,
            shard,
            image,
            wake,
            started: Instant::now(),
            tickets: Slab::new(),
            backlog: VecDeque::new(),
            outputs: Vec::new(),
            stopped: false,
        }
    }

    fn now(&self) -> Now {
        let monotonic = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now {
            monotonic,
            wall: wall_micros(),
        }
    }

    /// Opens the partitions of this shard.
    pub fn open(&mut self, orders: Vec<Order>) {
        let now = self.now();
        for order in orders {
            self.shard.order(now, order, &self.image);
        }
        self.deliver();
    }

    /// Runs until every group has stopped, or every handle is gone.
    pub async fn run(mut self, inbox: ShardInbox) {
        let ShardInbox { mut inbox, mut orders } = inbox;
        while !self.stopped {
            let deadline = self.shard.next_deadline();
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.take_turn(message, &mut inbox, &mut orders),
                    None => return,
                },
                Some(order) = orders.recv() => self.take_order(order),
                () = self.wake.notified() => {}
                () = sleep_until(self.started, deadline), if deadline.is_some() => {}
                () = tokio::time::sleep(BACKLOG_PAUSE), if !self.backlog.is_empty() => {}
            }
            let now = self.now();
            self.shard.tick(now);
            self.shard.complete(now);
            self.deliver();
        }
    }

    fn take_turn(
        &mut self,
        first: ShardMessage,
        inbox: &mut mpsc::Receiver<ShardMessage>,
        orders: &mut mpsc::Receiver<Order>,
    ) {
        let mut next = Some(first);
        for _ in 0..TURN {
            let Some(message) = next else { return };
            // An order given before a request was sent comes first: a client that saw a topic created may already be
            // sending to it.
            while let Ok(order) = orders.try_recv() {
                self.take_order(order);
            }
            self.take(message);
            next = inbox.try_recv().ok();
        }
        if let Some(message) = next {
            self.take(message);
        }
    }

    fn take_order(&mut self, order: Order) {
        let now = self.now();
        self.shard.order(now, order, &self.image);
    }

    fn take(&mut self, message: ShardMessage) {
        let now = self.now();
        match message {
            ShardMessage::Partition {
                key,
                header,
                user_id,
                connection,
                request,
                reply,
            } => {
                let ticket = self.ticket(Waiter::Reply(reply));
                self.shard.request(
                    now,
                    key,
                    Origin {
                        ticket,
                        header,
                        user_id,
                        connection,
                    },
                    request,
                );
            }
            ShardMessage::Change { answer, .. } if !self.backlog.is_empty() => {
                let _ = answer.send(Err(ErrorCode::TransientNotAccepted));
            }
            ShardMessage::Change {
                request,
                change,
                answer,
            } => {
                let ticket = self.ticket(Waiter::Change(answer));
                self.shard.change(now, ticket, request, change);
            }
            ShardMessage::Watch(watch) => self.shard.watch(now, *watch),
            ShardMessage::Unwatch(watch) => self.shard.unwatch(watch),
            ShardMessage::Cancel {
                client,
                session,
                request,
            } => self.shard.cancel(client, session, request),
            ShardMessage::SegmentsEnd { key, count, answer } => {
                let ticket = self.ticket(Waiter::Segments(answer));
                self.shard.segments_end(ticket, &key, count);
            }
            ShardMessage::Disconnected(connection) => self.shard.disconnected(connection),
            ShardMessage::Retain => self.shard.retain(now),
            ShardMessage::Stop => self.shard.stop(),
        }
    }

    fn ticket(&mut self, waiter: Waiter) -> Ticket {
        Ticket(self.tickets.insert(waiter) as u64)
    }

    fn waiter(&mut self, ticket: Ticket) -> Option<Waiter> {
        self.tickets.try_remove(ticket.0 as usize)
    }

    fn deliver(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        self.shard.outputs(&mut outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Reply(reply) => {
                    if let Some(Waiter::Reply(sender)) = self.waiter(reply.ticket) {
                        sender.send(reply);
                    }
                }
                Output::Metadata(notice) => self.metadata(notice),
                Output::SegmentsEnd { ticket, before } => {
                    if let Some(Waiter::Segments(answer)) = self.waiter(ticket) {
                        let _ = answer.send(before);
                    }
                }
                Output::HistoryLost { key, losses } => begin_history(Arc::clone(&self.node), key, losses),
                Output::Event(event) => report(&event),
                Output::Stopped => self.stopped = true,
                // Groups of one have nobody to talk to, and are led here from the start.
                Output::Send { .. } | Output::Role { .. } => {}
            }
        }
        self.outputs = outputs;
        self.send_orders();
    }

    fn metadata(&mut self, notice: MetadataNotice) {
        let answer = |runner: &mut Self, ticket, answer: ChangeAnswer| {
            if let Some(Waiter::Change(sender)) = runner.waiter(ticket) {
                let _ = sender.send(answer);
            }
        };
        match notice {
            MetadataNotice::Applied { ticket, applied } => {
                let Some(metadata) = self.shard.metadata() else { return };
                let state = metadata.state().clone();
                let node = Arc::clone(&self.node);
                let mut counters = |key| node.counters.of_partition(key);
                self.backlog
                    .extend(controller::orders(&applied.events, &state, &mut counters));
                self.node.published.store(Arc::new(state));
                // Before the answer: what its client does next must find the partitions told.
                self.send_orders();
                if let Outcome::Refused(code) = applied.receipt.outcome {
                    self.node.metrics.refusals(code.name()).inc();
                }
                if let Some(ticket) = ticket {
                    answer(self, ticket, Ok(applied.receipt));
                }
            }
            MetadataNotice::Refused { ticket, refusal } => {
                tracing::debug!(%refusal, "a metadata change was not taken");
                answer(self, ticket, Err(ErrorCode::TransientNotAccepted));
            }
            MetadataNotice::Uncertain { ticket } => answer(self, ticket, Err(ErrorCode::TransientNotCommitted)),
            MetadataNotice::Fenced { reason, cause } => {
                tracing::error!(%reason, %cause, "the metadata group takes no more writes; restart after mending the disk");
            }
            MetadataNotice::Trouble(error) => {
                tracing::warn!(%error, "work of the metadata group failed that nobody waits for");
            }
            MetadataNotice::OpenFailed(error) => tracing::error!(%error, "the metadata directory cannot be used"),
            MetadataNotice::Unreadable(error) => {
                tracing::error!(%error, "the metadata log holds a change that this release cannot apply");
            }
            // Groups of one talk to nobody, never change their leader and lose nothing they do not report themselves.
            MetadataNotice::Stopped
            | MetadataNotice::Send { .. }
            | MetadataNotice::Role { .. }
            | MetadataNotice::Replaced
            | MetadataNotice::HistoryLost(_)
            | MetadataNotice::Deadline(_) => {}
        }
    }

    /// Sends orders to their shards, in order, as far as there is room.
    fn send_orders(&mut self) {
        while let Some(order) = self.backlog.front() {
            let sent = match order.key() {
                Some(key) => self.node.shard_of(&key).orders.try_send(order.clone()).is_ok(),
                None => self.send_to_all(order),
            };
            if !sent {
                return;
            }
            if let Some(Order::Delete { key }) = self.backlog.pop_front() {
                self.node.counters.forget(&key);
            }
        }
    }

    /// All or none, so that an order is never given twice to one shard and not at all to another.
    fn send_to_all(&self, order: &Order) -> bool {
        let room = self
            .node
            .shards
            .iter()
            .all(|shard| shard.orders.capacity() > 0 || shard.orders.is_closed());
        if room {
            for shard in &self.node.shards {
                let _ = shard.orders.try_send(order.clone());
            }
        }
        room
    }
}

/// Has the metadata begin a new history of a partition, and asks again until it has.
fn begin_history(node: Arc<Node>, partition: PartitionKey, losses: u64) {
    tokio::task::spawn_local(async move {
        loop {
            let (message, answer) = dispatch::internal(Change::BeginHistory { partition, losses });
            if !node.metadata_shard().send_waiting(message).await {
                return;
            }
            match answer.await {
                Ok(Ok(receipt)) => {
                    tracing::warn!(
                        ?partition,
                        losses,
                        op = receipt.at.op,
                        "a new history of a partition began"
                    );
                    return;
                }
                Ok(Err(_)) => tokio::time::sleep(BEGIN_HISTORY_PAUSE).await,
                Err(_) => return,
            }
        }
    });
}

async fn sleep_until(started: Instant, deadline: Option<u64>) {
    let Some(deadline) = deadline else { return };
    tokio::time::sleep_until((started + Duration::from_micros(deadline)).into()).await;
}

fn report(event: &PartitionEvent) {
    match event {
        PartitionEvent::Refused(key, error) => {
            tracing::error!(?key, %error, "a partition cannot be used; its files are left as they are");
        }
        PartitionEvent::Lost(key, loss) => tracing::error!(
            ?key,
            from_op = loss.from_op,
            proved_op = loss.proved_op,
            "the machine went down before replicated writes of a partition reached its disk: acknowledged messages may be lost"
        ),
        PartitionEvent::Trouble(key, text) => tracing::error!(?key, "{text}"),
    }
}
