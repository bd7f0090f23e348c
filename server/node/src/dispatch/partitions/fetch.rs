//! Grouped fetches (wire 7.5): one request, many partitions, one budget.
//!
//! A fetch first counts what each partition has, waits where that is too little, and then reads. The budget is shared by
//! turns: the first partition in turn may use all of it and may exceed it by one message, the others share what is left
//! and stay within. Turns go round from fetch to fetch, so that a busy partition never starves a quiet one.

use super::super::Request;
use super::{Permitted, decode, permitted, reply_bytes};
use crate::connection::{Bound, Connection};
use crate::shard::{ReplyTo, ShardMessage};
use bytes::{Bytes, BytesMut};
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use iggy_driver::request::{Answer, PartitionRequest, Poll, Reply};
use iggy_metadata::{Metadata, PartitionKey};
use iggy_partition::operation::ConsumerKey;
use iggy_protocol::codec::{Decode, Reader};
use iggy_protocol::command::Command;
use iggy_protocol::consumer::ConsumerKind;
use iggy_protocol::context::PartitionContext;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::{ReplyHeader, RequestHeader};
use iggy_protocol::limits::POLL_HEAD_BYTES;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_protocol::reply::message::{FetchSection, PollHead, put_fetch_table};
use iggy_protocol::request::message::{FetchMessages, FetchTarget};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Whose turn it is to be read first.
static TURN: AtomicUsize = AtomicUsize::new(0);

/// A partition of a fetch.
struct Target {
    asked: FetchTarget,
    key: PartitionKey,
    /// Messages it had when it was last counted.
    readable: u32,
    /// Where its read starts, once counted.
    start: Option<u64>,
    section: FetchSection,
    records: Vec<Bytes>,
}

struct Fetch {
    connection: Rc<Connection>,
    header: Box<RequestHeader>,
    bound: Bound,
    asked: FetchMessages,
    consumer: ConsumerKey,
    metadata_op: u64,
    targets: Vec<Target>,
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
        let body = fetch.run(&cancelled).await;
        request.connection.end_fetch(number);
        let length = body.iter().map(Bytes::len).sum();
        let header = ReplyHeader::uncommitted(&request.header, 0).with_body_len(length);
        request.reply.send(Box::new(header), body);
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
        })
    }

    async fn run(mut self, cancelled: &CancellationToken) -> Vec<Bytes> {
        let wait_max = self.connection.node.config.sharding.deferred_poll_max_wait;
        let deadline = Instant::now() + Duration::from_micros(self.asked.wait_us).min(wait_max);
        loop {
            self.count().await;
            let readable: u64 = self.targets.iter().map(|target| u64::from(target.readable)).sum();
            let enough = readable >= u64::from(self.asked.min_count);
            let over = Instant::now() >= deadline || cancelled.is_cancelled();
            let useless = self.targets.iter().all(|target| target.section.status != 0);
            if enough || over || useless {
                break;
            }
            self.wait(deadline, cancelled).await;
        }
        // A cancelled fetch stores nothing, so it reads nothing.
        if !cancelled.is_cancelled() {
            self.read().await;
        }
        self.reply()
    }

    /// Asks a partition; its reply comes later.
    fn ask(&self, target: &Target, poll: Poll) -> Option<oneshot::Receiver<Reply>> {
        let (sender, reply) = oneshot::channel();
        let mut header = self.header.clone();
        header.set_partition_context(PartitionContext {
            incarnation: target.asked.incarnation,
            owner_generation: target.asked.owner_generation,
            metadata_op: 0,
        });
        let message = ShardMessage::Partition {
            key: target.key,
            header,
            user_id: self.bound.user_id,
            connection: self.connection.client_id,
            request: PartitionRequest::Poll(poll),
            reply: ReplyTo::Fetch(sender),
        };
        self.connection
            .node
            .shard_of(&target.key)
            .send(message)
            .is_ok()
            .then_some(reply)
    }

    fn count_poll(&self, target: &Target, min_count: u32, wait: u64) -> Poll {
        Poll {
            consumer: self.consumer.clone(),
            strategy: target.strategy(),
            count: self.asked.count,
            min_count,
            max_bytes: u32::MAX,
            commit: false,
            wait,
            answer: Answer::Count,
            may_park: true,
            metadata_op: self.metadata_op,
        }
    }

    /// Counts what every partition has.
    async fn count(&mut self) {
        let asked: Vec<(usize, Option<oneshot::Receiver<Reply>>)> = self
            .live()
            .map(|index| {
                (
                    index,
                    self.ask(&self.targets[index], self.count_poll(&self.targets[index], 1, 0)),
                )
            })
            .collect();
        for (index, reply) in asked {
            let reply = match reply {
                Some(reply) => reply.await.ok(),
                None => None,
            };
            self.targets[index].counted(reply.as_ref());
        }
    }

    /// Partitions that have not been refused.
    fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.targets.len()).filter(|index| self.targets[*index].section.status == 0)
    }

    /// Waits until some partition has more than it had, or the wait is over.
    async fn wait(&self, deadline: Instant, cancelled: &CancellationToken) {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1);
        let mut waits: FuturesUnordered<_> = self
            .live()
            .filter_map(|index| {
                let target = &self.targets[index];
                self.ask(target, self.count_poll(target, target.readable.saturating_add(1), wait))
            })
            .collect();
        tokio::select! {
            () = cancelled.cancelled() => {}
            _ = waits.next() => {}
        }
        // The others need not wait any longer.
        let (client, session) = (self.bound.session.client, self.bound.session.session);
        let request = self.header.request.get();
        for shard in &self.connection.node.shards {
            let cancel = ShardMessage::Cancel {
                client,
                session,
                request,
            };
            // Were the cancel lost, parked counts would outlive the fetch until its deadline; so it waits for room.
            shard.send_waiting(cancel).await;
        }
        join_all(waits).await;
    }

    /// Reads what was counted, by turns.
    async fn read(&mut self) {
        let mut turns: Vec<usize> = self.live().filter(|index| self.targets[*index].readable > 0).collect();
        if turns.is_empty() {
            return;
        }
        let first = TURN.fetch_add(1, Ordering::Relaxed) % turns.len();
        turns.rotate_left(first);
        let mut count_left = self.asked.count;
        // One reply, however many partitions are in it, is no larger than one read.
        let largest = self.connection.node.config.sharding.deferred_poll_max_read_bytes;
        let mut bytes_left = self.asked.max_bytes.min(u32::try_from(largest).unwrap_or(u32::MAX));
        let others = u32::try_from(turns.len() - 1).unwrap_or(u32::MAX);
        // What the others need at least is kept for them.
        let own = count_left.saturating_sub(others.min(count_left - 1));
        self.read_one(
            turns[0],
            own,
            bytes_left,
            Answer::Messages,
            &mut count_left,
            &mut bytes_left,
        )
        .await;
        for (done, index) in turns.iter().enumerate().skip(1) {
            let sharers = u32::try_from(turns.len() - done).unwrap_or(u32::MAX);
            let (count, bytes) = (count_left.div_ceil(sharers), bytes_left / sharers);
            if count == 0 || (bytes as usize) < RECORD_MIN {
                break;
            }
            self.read_one(
                *index,
                count,
                bytes,
                Answer::WithinBytes,
                &mut count_left,
                &mut bytes_left,
            )
            .await;
        }
    }

    async fn read_one(
        &mut self,
        index: usize,
        count: u32,
        bytes: u32,
        answer: Answer,
        count_left: &mut u32,
        bytes_left: &mut u32,
    ) {
        let target = &self.targets[index];
        let max_bytes = bytes.min(target.asked.max_bytes).saturating_add(POLL_HEAD_BYTES as u32);
        let poll = Poll {
            strategy: target.start.map_or(target.strategy(), PollingStrategy::Offset),
            count,
            max_bytes,
            commit: self.asked.auto_commit,
            answer,
            ..self.count_poll(target, 1, 0)
        };
        let commits = self.asked.auto_commit;
        let (asked, reply) = match self.ask(target, poll) {
            Some(reply) => (true, reply.await.ok()),
            None => (false, None),
        };
        let unknown = asked && reply.is_none() && commits;
        let target = &mut self.targets[index];
        target.read(reply);
        if unknown {
            // The shard stopped with the read in hand: whether it stored the offset is not known.
            target.section.status = ErrorCode::TransientNotCommitted.code();
        }
        *count_left = count_left.saturating_sub(target.section.messages_count);
        *bytes_left = bytes_left.saturating_sub(target.section.records_len);
    }

    fn reply(self) -> Vec<Bytes> {
        let sections: Vec<FetchSection> = self.targets.iter().map(|target| target.section.clone()).collect();
        let mut table = BytesMut::new();
        put_fetch_table(&sections, &mut table);
        let mut body = vec![table.freeze()];
        body.extend(self.targets.into_iter().flat_map(|target| target.records));
        body
    }
}

/// Bytes of the smallest record: a batch of one empty message.
const RECORD_MIN: usize = iggy_protocol::limits::HEADER_SIZE + iggy_protocol::limits::MESSAGE_FRAME_SIZE;

impl Target {
    fn resolve(asked: &FetchTarget, allowed: &Permitted<'_>) -> Self {
        let found = allowed.partition(asked.partition_id).and_then(|located| {
            let current = located.incarnation == asked.incarnation;
            current.then_some(located.key).ok_or(ErrorCode::HistoryUnavailable)
        });
        let missing = PartitionKey {
            stream_id: 0,
            topic_id: 0,
            partition_id: asked.partition_id,
            incarnation: 0,
        };
        let start = match asked.strategy {
            PollingStrategy::Offset(offset) => offset,
            _ => 0,
        };
        Self {
            key: *found.as_ref().unwrap_or(&missing),
            readable: 0,
            start: None,
            section: FetchSection {
                partition_id: asked.partition_id,
                status: found.err().map_or(0, ErrorCode::code),
                current_offset: 0,
                messages_count: 0,
                context: PartitionContext::default(),
                next_offset: start,
                records_len: 0,
            },
            records: Vec::new(),
            asked: asked.clone(),
        }
    }

    fn strategy(&self) -> PollingStrategy {
        self.asked.strategy
    }

    /// Takes the head of a reply, or the refusal.
    fn take_head(&mut self, reply: Option<&Reply>) -> Option<PollHead> {
        let Some(reply) = reply else {
            // The shard had no room or has stopped: nothing was done.
            self.section.status = ErrorCode::TransientNotAccepted.code();
            return None;
        };
        self.section.status = reply.header.status.get();
        let head = reply
            .body
            .first()
            .and_then(|body| PollHead::decode(&mut Reader::new(body)).ok());
        if let Some(head) = &head {
            self.section.current_offset = head.current_offset;
            self.section.context = head.context;
            self.section.next_offset = reply.next_offset.unwrap_or(self.section.next_offset);
        }
        head.filter(|_| self.section.status == 0)
    }

    fn counted(&mut self, reply: Option<&Reply>) {
        let head = self.take_head(reply);
        self.readable = head.map_or(0, |head| head.messages_count);
        self.start = reply.and_then(|reply| reply.next_offset);
    }

    fn read(&mut self, reply: Option<Reply>) {
        let head = self.take_head(reply.as_ref());
        if let (Some(head), Some(reply)) = (head, reply) {
            self.section.messages_count = head.messages_count;
            self.records = reply.body.into_iter().skip(1).collect();
            self.section.records_len = self.records.iter().map(|piece| piece.len() as u32).sum();
        }
    }
}
