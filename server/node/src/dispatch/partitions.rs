//! Requests to partitions: names are resolved and permissions checked here, the rest is the owning shard's.

mod fetch;

pub(crate) use fetch::Turns;

use super::Request;
use crate::connection::Bound;
use crate::shard::{ReplyTo, ShardMessage};
use bytes::{Bytes, BytesMut};
use iggy_driver::request::{Answer, PartitionRequest, Poll};
use iggy_metadata::model::topic::Topic;
use iggy_metadata::{Metadata, PartitionKey, Target};
use iggy_partition::operation::ConsumerKey;
use iggy_protocol::codec::{Decode, Encode};
use iggy_protocol::command::Command;
use iggy_protocol::consumer::{Consumer, ConsumerKind};
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::identifier::Identifier;
use iggy_protocol::partitioning::Partitioning;
use iggy_protocol::reply::message::PartitionRoute;
use iggy_protocol::request::message::{DeferredPoll, GetPartitionRoute, PollMessages, SendMessages};
use iggy_protocol::request::offset::{ACK_QUORUM, DeleteConsumerOffset, GetConsumerOffset, StoreConsumerOffset};

/// Reads a body that must end exactly.
fn decode<'a, T: Decode<'a>>(body: &'a [u8]) -> Result<T, ErrorCode> {
    T::from_bytes(body).map_err(|error| {
        tracing::debug!(%error, "a request body is malformed");
        error.code()
    })
}

/// A partition and the history its clients must name.
struct Located {
    key: PartitionKey,
    incarnation: u64,
}

/// A topic a user may do something with.
struct Permitted<'a> {
    topic: &'a Topic,
    stream_id: u32,
}

fn permitted<'a>(
    metadata: &'a Metadata,
    bound: Bound,
    command: Command,
    stream: &Identifier,
    topic: &Identifier,
) -> Result<Permitted<'a>, ErrorCode> {
    let found = metadata.topic(stream, topic);
    let target = match &found {
        Ok((stream, topic)) => Target::Topic {
            stream_id: stream.id,
            topic_id: topic.id,
        },
        Err(_) => Target::Nothing,
    };
    // That something is missing is told only to those who may see it.
    metadata.authorize(bound.user_id, command, target)?;
    let (stream, topic) = found?;
    Ok(Permitted {
        topic,
        stream_id: stream.id,
    })
}

impl Permitted<'_> {
    fn partition(&self, partition_id: u32) -> Result<Located, ErrorCode> {
        let found = self
            .topic
            .partition(partition_id)
            .zip(self.topic.partition_key(self.stream_id, partition_id));
        let (partition, key) = found.ok_or(ErrorCode::PartitionNotFound)?;
        Ok(Located {
            key,
            incarnation: partition.history.incarnation,
        })
    }

    /// The name an offset is stored under: groups of the topic by their number.
    fn consumer(&self, metadata: &Metadata, consumer: &Consumer) -> Result<ConsumerKey, ErrorCode> {
        Ok(match consumer.kind {
            ConsumerKind::Consumer => ConsumerKey::standalone(consumer),
            ConsumerKind::Group => ConsumerKey::Group(metadata.group(self.topic, &consumer.id)?.id),
            ConsumerKind::External => ConsumerKey::External(consumer.id.clone()),
        })
    }
}

/// A consumer of its own may leave the partition out and means partition 0; a group must name it.
fn partition_of(partition_id: Option<u32>, consumer: &Consumer) -> Result<u32, ErrorCode> {
    match (partition_id, consumer.kind) {
        (Some(id), _) => Ok(id),
        (None, ConsumerKind::Group) => Err(ErrorCode::PartitionNotFound),
        (None, _) => Ok(0),
    }
}

/// Largest reply of a read of at most `max_bytes`.
fn reply_bytes(request: &Request, max_bytes: u32) -> usize {
    let largest = request.connection.node.config.sharding.deferred_poll_max_read_bytes;
    usize::try_from(u64::from(max_bytes).min(largest)).unwrap_or(usize::MAX)
}

pub(super) fn serve(mut request: Request, bound: Bound, command: Command, metadata: &Metadata) {
    if command == Command::FetchMessages {
        return fetch::serve(request, bound, metadata);
    }
    match resolve(&request, bound, command, metadata) {
        Ok((key, asked)) => {
            if let PartitionRequest::Poll(poll) = &asked {
                let bytes = reply_bytes(&request, poll.max_bytes);
                request.reply.expect_read(bytes, poll.wait > 0, poll.commit);
            }
            forward(request, bound, key, asked);
        }
        Err(code) => request.refuse(code),
    }
}

fn forward(request: Request, bound: Bound, key: PartitionKey, asked: PartitionRequest) {
    let Request {
        connection,
        header,
        reply,
        ..
    } = request;
    let shard = connection.node.shard_of(&key);
    let reply = ReplyTo::Client(reply);
    let message = ShardMessage::Partition {
        key,
        header,
        user_id: bound.user_id,
        connection: connection.client_id,
        request: asked,
        reply,
    };
    if let Err(message) = shard.send(message)
        && let ShardMessage::Partition {
            header,
            reply: ReplyTo::Client(reply),
            ..
        } = *message
    {
        tracing::debug!("the inbox of a shard is full");
        Request {
            connection,
            header,
            body: Bytes::new(),
            reply,
        }
        .refuse(ErrorCode::TransientNotAccepted);
    }
}

/// The partition a request is for and what to do there, or why not.
fn resolve(
    request: &Request,
    bound: Bound,
    command: Command,
    metadata: &Metadata,
) -> Result<(PartitionKey, PartitionRequest), ErrorCode> {
    let body = &request.body;
    let permitted = |stream: &_, topic: &_| permitted(metadata, bound, command, stream, topic);
    let metadata_op = metadata.applied().op;
    let (located, asked) = match command {
        Command::SendMessages => {
            let send: SendMessages<'_> = decode(body)?;
            let Partitioning::PartitionId(partition_id) = send.target.partitioning else {
                // Binary clients choose the partition: a retry under another choice would be another write.
                return Err(producer_partition(&send));
            };
            let permitted = permitted(&send.target.stream, &send.target.topic)?;
            let located = permitted.partition(partition_id)?;
            let batch = send.batch().and_then(|batch| batch.verify());
            batch.map_err(|error| {
                tracing::debug!(%error, "a batch is malformed");
                error.code()
            })?;
            (
                located,
                PartitionRequest::Send {
                    batch: body.slice(send.batch_range),
                },
            )
        }
        Command::PollMessages => {
            let poll: PollMessages = decode_prefix(body)?;
            let permitted = permitted(&poll.stream, &poll.topic)?;
            let located = permitted.partition(partition_of(poll.partition_id, &poll.consumer)?)?;
            let consumer = permitted.consumer(metadata, &poll.consumer)?;
            (
                located,
                PartitionRequest::Poll(poll_of(&poll, consumer, metadata_op, 1, u32::MAX, 0)),
            )
        }
        Command::PollMessagesDeferred => {
            request.connection.note_wait();
            let deferred: DeferredPoll = decode(body)?;
            let poll = &deferred.poll;
            let permitted = permitted(&poll.stream, &poll.topic)?;
            let located = permitted.partition(partition_of(poll.partition_id, &poll.consumer)?)?;
            let consumer = permitted.consumer(metadata, &poll.consumer)?;
            let (min_count, max_bytes) = (deferred.min_count, deferred.max_bytes);
            (
                located,
                PartitionRequest::Poll(poll_of(
                    poll,
                    consumer,
                    metadata_op,
                    min_count,
                    max_bytes,
                    deferred.wait_us,
                )),
            )
        }
        Command::GetConsumerOffset => {
            let get: GetConsumerOffset = decode(body)?;
            let permitted = permitted(&get.stream, &get.topic)?;
            let located = permitted.partition(partition_of(get.partition_id, &get.consumer)?)?;
            (
                located,
                PartitionRequest::GetOffset {
                    consumer: permitted.consumer(metadata, &get.consumer)?,
                },
            )
        }
        Command::StoreConsumerOffset => {
            let store: StoreConsumerOffset = decode(body)?;
            check_ack(store.ack)?;
            let permitted = permitted(&store.stream, &store.topic)?;
            let located = permitted.partition(partition_of(store.partition_id, &store.consumer)?)?;
            let consumer = permitted.consumer(metadata, &store.consumer)?;
            (
                located,
                PartitionRequest::StoreOffset {
                    consumer,
                    offset: store.offset,
                },
            )
        }
        Command::DeleteConsumerOffset => {
            let delete: DeleteConsumerOffset = decode(body)?;
            check_ack(delete.ack)?;
            let permitted = permitted(&delete.stream, &delete.topic)?;
            let located = permitted.partition(partition_of(delete.partition_id, &delete.consumer)?)?;
            (
                located,
                PartitionRequest::DeleteOffset {
                    consumer: permitted.consumer(metadata, &delete.consumer)?,
                },
            )
        }
        _ => return Err(ErrorCode::InvalidCommand),
    };
    // The history the request was made for, or none at all (wire 4.8).
    if request.header.partition_incarnation.get() != located.incarnation {
        return Err(ErrorCode::HistoryUnavailable);
    }
    Ok((located.key, asked))
}

fn producer_partition(send: &SendMessages<'_>) -> ErrorCode {
    match send.batch() {
        Ok(batch) if batch.header().producer().is_some() => ErrorCode::ProducerPartitionRequired,
        Ok(_) => ErrorCode::FeatureUnavailable,
        Err(error) => error.code(),
    }
}

fn check_ack(ack: u8) -> Result<(), ErrorCode> {
    // Without replicas there is nothing to wait for less: both are answered by the commit.
    if ack <= ACK_QUORUM {
        Ok(())
    } else {
        Err(ErrorCode::InvalidCommand)
    }
}

/// A plain poll, after which anything may follow (wire 7.3).
fn decode_prefix<'a, T: Decode<'a>>(body: &'a [u8]) -> Result<T, ErrorCode> {
    T::decode(&mut iggy_protocol::codec::Reader::new(body)).map_err(|error| error.code())
}

fn poll_of(
    poll: &PollMessages,
    consumer: ConsumerKey,
    metadata_op: u64,
    min_count: u32,
    max_bytes: u32,
    wait: u64,
) -> Poll {
    Poll {
        consumer,
        strategy: poll.strategy,
        count: poll.count,
        min_count,
        max_bytes,
        commit: poll.auto_commit,
        wait,
        answer: Answer::Messages,
        metadata_op,
    }
}

/// Answers a route lookup (105): one node leads every partition.
pub(super) fn route(request: &Request, bound: Bound, metadata: &Metadata) -> Result<Bytes, ErrorCode> {
    let asked: GetPartitionRoute = decode(&request.body)?;
    let route = metadata.route(bound.user_id, &asked.stream, &asked.topic, asked.partition_id)?;
    let mut body = BytesMut::new();
    PartitionRoute {
        incarnation: route.incarnation,
        metadata_op: route.metadata_op,
        view: 0,
        partitions_count: route.partitions_count,
        primary_replica: 0,
    }
    .encode(&mut body);
    Ok(body.freeze())
}

/// Ends the wait of a deferred poll (108). It has no reply of its own.
pub(super) fn cancel(request: &Request, bound: Bound) {
    let number = request.header.request.get();
    let (client, session) = (bound.session.client, bound.session.session);
    request.connection.cancel_fetch(number);
    for shard in &request.connection.node.shards {
        // A full inbox loses a cancel; the poll then ends with its wait.
        let _ = shard.send(ShardMessage::Cancel {
            client,
            session,
            request: number,
        });
    }
}
