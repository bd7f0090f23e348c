//! Grouped fetches (wire 7.5): one request, many partitions, one budget.
//!
//! Each shard counts into a tally what its partitions have, and goes on counting while the fetch waits; when there is
//! enough, the partitions that have something are read, within their [shares](shares).
//!
//! Faults tolerated: a partition that is refused, or whose shard is full, slow or stopping, costs its own section alone.

mod section;
mod shares;

pub(crate) use shares::Turns;

use super::super::Request;
use super::{decode, permitted, reply_bytes};
use crate::connection::{Bound, Connection};
use crate::shard::{ReplyTo, ShardMessage};
use bytes::{Bytes, BytesMut};
use iggy_driver::request::{Answer, Origin, PartitionRequest, Poll, Ticket};
use iggy_driver::shard::{Watch, WatchTarget};
use iggy_driver::tally::{Progress, Tally, Wanted, WatchId, Watching};
use iggy_metadata::{Metadata, PartitionKey};
use iggy_partition::operation::ConsumerKey;
use iggy_protocol::codec::Encode;
use iggy_protocol::command::Command;
use iggy_protocol::consumer::ConsumerKind;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::{ReplyHeader, RequestHeader};
use iggy_protocol::limits::POLL_HEAD_BYTES;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_protocol::reply::message::put_fetch_table;
use iggy_protocol::request::message::FetchMessages;
use section::{ReadEnd, Target};
use shares::{Share, holds_a_message};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Names the next fetch of this process.
static NEXT_WATCH: AtomicU64 = AtomicU64::new(1);
/// Partitions are given this long to count, whatever the wait.
const COUNT_TIME: Duration = Duration::from_secs(1);
/// Time before the client stops listening in which no read is waited for any longer (wire 7.5).
const READ_MARGIN: Duration = Duration::from_millis(400);

struct Fetch {
    connection: Rc<Connection>,
    header: Box<RequestHeader>,
    bound: Bound,
    asked: FetchMessages,
    consumer: ConsumerKey,
    metadata_op: u64,
    targets: Vec<Target>,
    /// When its waits are counted from.
    came: Instant,
}

pub(super) fn serve(mut request: Request, bound: Bound, metadata: &Metadata) {
    let fetch = match Fetch::resolve(&request, bound, metadata) {
        Ok(fetch) => fetch,
        Err(code) => return request.refuse(code),
    };
    let bytes = reply_bytes(&request, fetch.asked.max_bytes);
    request
        .reply
        .expect_read(bytes, fetch.asked.wait_us > 0, fetch.asked.auto_commit);
    tokio::task::spawn_local(async move {
        let number = request.header.request.get();
        let cancelled = request.connection.start_fetch(number);
        let answer = fetch.run(&cancelled).await;
        request.connection.end_fetch(number);
        match answer {
            Ok(body) => {
                let length = body.iter().map(Bytes::len).sum();
                let header = ReplyHeader::uncommitted(&request.header, 0).with_body_len(length);
                request.reply.send(Box::new(header), body);
            }
            Err(code) => request.refuse(code),
        }
    });
}

impl Fetch {
    fn resolve(request: &Request, bound: Bound, metadata: &Metadata) -> Result<Self, ErrorCode> {
        let asked: FetchMessages = decode(&request.body)?;
        let allowed = permitted(metadata, bound, Command::FetchMessages, &asked.stream, &asked.topic)?;
        if asked.consumer.kind == ConsumerKind::External {
            return Err(ErrorCode::FeatureUnavailable);
        }
        let consumer = allowed.consumer(metadata, &asked.consumer)?;
        let targets = asked
            .targets
            .iter()
            .map(|target| Target::resolve(target, &allowed))
            .collect();
        Ok(Self {
            connection: Rc::clone(&request.connection),
            header: request.header.clone(),
            bound,
            asked,
            consumer,
            metadata_op: metadata.applied().op,
            targets,
            came: Instant::now(),
        })
    }

    async fn run(mut self, cancelled: &CancellationToken) -> Result<Vec<Bytes>, ErrorCode> {
        let patience = Duration::from_micros(self.asked.request_timeout_us);
        let reads_end = self.came + patience.saturating_sub(READ_MARGIN);
        self.wait(reads_end, cancelled).await?;
        // A cancelled fetch stores nothing, so it reads nothing.
        if !cancelled.is_cancelled() {
            self.read(reads_end, cancelled).await;
        }
        Ok(self.reply())
    }

    /// Bytes of records of the reply at most. One reply, however many partitions are in it, is no larger than one read.
    fn bytes_max(&self) -> u64 {
        let largest = self.connection.node.config.sharding.deferred_poll_max_read_bytes;
        u64::from(self.asked.max_bytes).min(largest)
    }

    /// Has every partition counted, and waits until there is enough or the time is over.
    async fn wait(&mut self, reads_end: Instant, cancelled: &CancellationToken) -> Result<(), ErrorCode> {
        let wait_max = self.connection.node.config.sharding.deferred_poll_max_wait;
        let wait = Duration::from_micros(self.asked.wait_us).min(wait_max);
        let deadline = self.came + wait;
        let woken = Arc::new(Notify::new());
        let wake = Arc::clone(&woken);
        let places: Vec<usize> = (0..self.targets.len())
            .filter(|place| self.targets[*place].key.is_some())
            .collect();
        let bytes_each = places.iter().map(|place| self.targets[*place].asked.max_bytes.into());
        let wanted = Wanted {
            messages: self.asked.min_count.into(),
            bytes: self.bytes_max(),
            bytes_each: bytes_each.collect(),
        };
        let tally = Arc::new(Tally::new(wanted, move || wake.notify_one()));
        let id = WatchId(NEXT_WATCH.fetch_add(1, Ordering::Relaxed));
        let shards = self.start_counting(id, &tally, &places, wait);
        loop {
            let until = match tally.progress() {
                Progress::Ready => break,
                Progress::Counting => deadline.max(self.came + COUNT_TIME).min(reads_end),
                Progress::Short if wait.is_zero() || tally.has_no_room() => break,
                Progress::Short => deadline,
            };
            tokio::select! {
                () = woken.notified() => {}
                () = tokio::time::sleep_until(until) => break,
                () = cancelled.cancelled() => break,
            }
        }
        if tally.close() {
            for shard in shards {
                // Were this lost, the shard would go on counting until the deadline; so it waits for room.
                self.connection.node.shards[shard]
                    .send_waiting(ShardMessage::Unwatch(id))
                    .await;
            }
        }
        if tally.progress() == Progress::Short && tally.has_no_room() && !cancelled.is_cancelled() {
            return Err(ErrorCode::DeferredPollCapacityExceeded);
        }
        for (place, found) in places.into_iter().zip(tally.places()) {
            self.targets[place].take_count(found);
        }
        Ok(())
    }

    /// Asks every shard to count, once for all its partitions. Returns the shards asked.
    fn start_counting(&self, id: WatchId, tally: &Arc<Tally>, places: &[usize], wait: Duration) -> Vec<usize> {
        let node = &self.connection.node;
        let mut by_shard: BTreeMap<usize, Vec<WatchTarget>> = BTreeMap::new();
        for (place, at) in places.iter().enumerate() {
            let target = &self.targets[*at];
            let Some(key) = target.key else { continue };
            let watching = Watching {
                watch: id,
                place,
                tally: Arc::clone(tally),
                consumer: self.consumer.clone(),
                strategy: target.asked.strategy,
                waits: !wait.is_zero(),
                metadata_op: self.metadata_op,
            };
            by_shard.entry(node.shard_index(&key)).or_default().push(WatchTarget {
                key,
                context: target.context(),
                watching,
            });
        }
        let mut shards = Vec::with_capacity(by_shard.len());
        for (shard, targets) in by_shard {
            let watch = Watch {
                id,
                origin: Origin {
                    // It is answered through the tally.
                    ticket: Ticket(u64::MAX),
                    header: self.header.clone(),
                    user_id: self.bound.user_id,
                    connection: self.connection.client_id,
                },
                targets,
                tally: Arc::clone(tally),
                wait: u64::try_from(wait.as_micros()).unwrap_or(u64::MAX),
            };
            match node.shards[shard].send(ShardMessage::Watch(Box::new(watch))) {
                Ok(()) => shards.push(shard),
                Err(message) => {
                    if let ShardMessage::Watch(watch) = *message {
                        watch.refuse(ErrorCode::TransientNotAccepted);
                    }
                }
            }
        }
        shards
    }

    /// Reads what was counted, by turns.
    async fn read(&mut self, reads_end: Instant, cancelled: &CancellationToken) {
        let mut ready: BTreeMap<u32, (usize, Share)> = BTreeMap::new();
        for (at, target) in self.targets.iter().enumerate() {
            if let Some(counted) = target.counted.filter(|counted| counted.messages > 0) {
                let bytes = counted.bytes.min(target.asked.max_bytes.into());
                let want = Share {
                    count: counted.messages,
                    bytes,
                };
                ready.insert(target.asked.partition_id, (at, want));
            }
        }
        let mut turns: Vec<u32> = ready.keys().copied().collect();
        if turns.is_empty() {
            return;
        }
        let reader = self.reader();
        self.connection.fetch_turns.borrow().order(&reader, &mut turns);
        let total = Share {
            count: self.asked.count.into(),
            bytes: self.bytes_max(),
        };
        let wants: Vec<Share> = turns.iter().map(|partition| ready[partition].1).collect();
        let mut parts = shares::shares(total, &wants);
        let mut spare = Share { count: 0, bytes: 0 };
        for (turn, partition) in turns.iter().enumerate() {
            if cancelled.is_cancelled() {
                break;
            }
            // What those before have not used.
            let share = Share {
                count: parts[turn].count + spare.count,
                bytes: parts[turn].bytes + spare.bytes,
            };
            spare = share;
            if turn > 0 && !holds_a_message(share) {
                continue;
            }
            let (at, _) = ready[partition];
            self.read_one(at, share, turn == 0, reads_end).await;
            let (messages, bytes) = self.targets[at].read();
            let (messages, bytes) = (u64::from(messages), u64::from(bytes));
            if bytes > share.bytes {
                // One large message: the others share what it has left.
                let left = Share {
                    count: total.count.saturating_sub(messages),
                    bytes: total.bytes.saturating_sub(bytes),
                };
                parts.splice(1.., shares::shares(left, &wants[1..]));
            }
            spare.count = spare.count.saturating_sub(messages);
            spare.bytes = spare.bytes.saturating_sub(bytes);
        }
        self.connection.fetch_turns.borrow_mut().note(&reader, turns[0]);
    }

    /// Names the reader whose turns are kept.
    fn reader(&self) -> Vec<u8> {
        let mut name = BytesMut::new();
        self.asked.consumer.encode(&mut name);
        self.asked.stream.encode(&mut name);
        self.asked.topic.encode(&mut name);
        name.to_vec()
    }

    async fn read_one(&mut self, at: usize, share: Share, first: bool, reads_end: Instant) {
        let target = &self.targets[at];
        let Some((key, counted)) = target.key.zip(target.counted) else {
            return;
        };
        // Only the first may exceed the limits, by one message; so something is always read.
        let answer = if first { Answer::Messages } else { Answer::WithinBytes };
        let bytes = share.bytes.min(target.asked.max_bytes.into());
        let max_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let poll = Poll {
            consumer: self.consumer.clone(),
            strategy: PollingStrategy::Offset(counted.start),
            count: u32::try_from(share.count).unwrap_or(u32::MAX),
            min_count: 1,
            max_bytes: max_bytes.saturating_add(POLL_HEAD_BYTES as u32),
            commit: self.asked.auto_commit,
            wait: 0,
            answer,
            metadata_op: self.metadata_op,
        };
        let end = match self.ask(key, target, poll) {
            None => ReadEnd::NotBegun,
            Some(reply) => match timeout_at(reads_end, reply).await {
                Ok(Ok(reply)) => ReadEnd::Answered(reply),
                Ok(Err(_)) | Err(_) => ReadEnd::Lost,
            },
        };
        self.targets[at].take_read(end, self.asked.auto_commit);
    }

    /// Asks a partition; its reply comes later.
    fn ask(
        &self,
        key: PartitionKey,
        target: &Target,
        poll: Poll,
    ) -> Option<oneshot::Receiver<iggy_driver::request::Reply>> {
        let (sender, reply) = oneshot::channel();
        let mut header = self.header.clone();
        header.set_partition_context(target.context());
        let message = ShardMessage::Partition {
            key,
            header,
            user_id: self.bound.user_id,
            connection: self.connection.client_id,
            request: PartitionRequest::Poll(poll),
            reply: ReplyTo::Fetch(sender),
        };
        let sent = self.connection.node.shard_of(&key).send(message);
        sent.is_ok().then_some(reply)
    }

    fn reply(self) -> Vec<Bytes> {
        let (sections, records): (Vec<_>, Vec<_>) = self.targets.into_iter().filter_map(Target::into_section).unzip();
        let mut table = BytesMut::new();
        put_fetch_table(&sections, &mut table);
        let mut body = vec![table.freeze()];
        body.extend(records.into_iter().flatten());
        body
    }
}
