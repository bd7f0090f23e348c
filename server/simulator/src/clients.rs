//! Clients: each has one request at a time, asks again when it does not know the outcome, and elsewhere when it was told
//! so (simulator Q1, Q2, Q5).

use crate::oracle::{Sent, Status};
use bytes::Bytes;
use iggy_driver::request::{Answer, Origin, PartitionRequest, Poll, Reply, Ticket};
use iggy_metadata::PartitionKey;
use iggy_partition::operation::ConsumerKey;
use iggy_protocol::batch::Records;
use iggy_protocol::batch_builder::BatchBuilder;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::RequestHeader;
use iggy_protocol::identifier::Identifier;
use iggy_protocol::limits::POLL_HEAD_BYTES;
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use rand::Rng;
use rand::rngs::StdRng;

/// Session of every client; the partitions do not look further.
const SESSION: u64 = 9;

/// What a client wants.
#[derive(Clone, Debug)]
pub enum Wish {
    /// To send the batch with this number.
    Send(usize),
    /// To store an offset of its consumer.
    Store(u64),
    /// To read from an offset on.
    Poll(u64),
}

/// A request under way.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is wanted.
    pub wish: Wish,
    /// Of which partition.
    pub key: PartitionKey,
    /// Request number.
    pub number: u64,
    /// History the request is for.
    pub incarnation: u64,
    /// Losses of that history.
    pub losses: u64,
    /// Ticket of the newest attempt.
    pub ticket: u64,
    /// When the client asks again.
    pub deadline: u64,
    /// Whether some attempt may have been written.
    pub maybe_written: bool,
    /// Attempts so far.
    pub attempts: u32,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    /// Its identity; its consumer has the same number.
    pub id: u32,
    /// Its newest request number.
    pub number: u64,
    /// Its request, if one is under way.
    pub request: Option<Request>,
    /// The node it asks first.
    pub node: u8,
}

/// What an answer means to a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Answered {
    /// Done.
    Done,
    /// Nothing was written; another node may take it.
    Elsewhere,
    /// It may or may not be written.
    Unknown,
    /// It will never be taken, and was not.
    Never,
    /// It will never be answered: its history is over, or its receipt is gone.
    Lost,
}

impl Client {
    /// A client.
    pub fn new(id: u32) -> Self {
        Self {
            id,
            number: 0,
            request: None,
            node: 0,
        }
    }

    /// The request as a node gets it.
    pub fn origin(&self, request: &Request) -> Origin {
        let operation = match request.wish {
            Wish::Send(_) => Operation::SendMessages,
            Wish::Store(_) => Operation::StoreConsumerOffset,
            Wish::Poll(_) => Operation::NonReplicated,
        };
        let mut header = RequestHeader::new(operation, 0);
        header.client = u128::from(self.id).into();
        header.session = SESSION.into();
        header.request = request.number.into();
        header.request_checksum = (u128::from(self.id) << 64 | u128::from(request.number)).into();
        header.partition_incarnation = request.incarnation.into();
        Origin {
            ticket: Ticket(request.ticket),
            header: Box::new(header),
            user_id: 1,
            connection: self.id,
        }
    }

    /// What is asked of the partition.
    pub fn content(&self, request: &Request, batch: Option<Bytes>) -> PartitionRequest {
        match request.wish {
            Wish::Send(_) => PartitionRequest::Send {
                batch: batch.unwrap_or_default(),
            },
            Wish::Store(offset) => PartitionRequest::StoreOffset {
                consumer: consumer(self.id),
                offset,
            },
            Wish::Poll(offset) => PartitionRequest::Poll(Poll {
                consumer: consumer(self.id),
                strategy: PollingStrategy::Offset(offset),
                count: 20,
                min_count: 1,
                max_bytes: 1 << 20,
                commit: false,
                wait: 0,
                answer: Answer::Messages,
                metadata_op: 1,
            }),
        }
    }
}

/// The consumer of a client.
pub fn consumer(id: u32) -> ConsumerKey {
    ConsumerKey::Consumer(Identifier::numeric(id))
}

/// A batch with messages that nothing else has.
pub fn batch(random: &mut StdRng, number: u128, message_max: usize, wall: u64) -> Sent {
    let count = random.random_range(1..4_u32);
    let mut builder = BatchBuilder::new();
    let mut ids = Vec::new();
    for place in 0..count {
        let id = (number + 1) << 16 | u128::from(place);
        let length = random.random_range(1..=message_max);
        let payload = vec![id as u8 ^ place as u8; length];
        builder
            .push(id, &payload, &[], wall)
            .expect("a message within the limits");
        ids.push(id);
    }
    let bytes = builder.finish(None).expect("a batch within the limits").freeze();
    Sent {
        bytes,
        ids,
        status: Status::Refused,
    }
}

/// What a status means.
pub fn meaning(reply: &Reply) -> Answered {
    let status = reply.header.status.get();
    if status == 0 {
        return Answered::Done;
    }
    match ErrorCode::from_u32(status) {
        ErrorCode::TransientNotCommitted => Answered::Unknown,
        ErrorCode::NotPrimary | ErrorCode::TransientNotAccepted => Answered::Elsewhere,
        ErrorCode::HistoryUnavailable | ErrorCode::PartitionHistoryChanged | ErrorCode::RequestTooOld => Answered::Lost,
        _ => Answered::Never,
    }
}

/// Offsets and ids in the reply to a poll. Every checksum in it is proved.
pub fn messages(reply: &Reply) -> Result<Vec<(u64, u128)>, String> {
    let body = Bytes::from(reply.body.concat());
    let mut found = Vec::new();
    let Some(records) = body.get(POLL_HEAD_BYTES..) else {
        return Ok(found);
    };
    for batch in Records::new(records) {
        let batch = batch.map_err(|error| format!("S13: a reply holds a broken batch: {error}"))?;
        batch
            .verify()
            .map_err(|error| format!("S13: a reply holds a damaged batch: {error}"))?;
        let base = batch.header().base_offset.get();
        for frame in batch.frames() {
            found.push((base + u64::from(frame.offset_delta()), frame.id()));
        }
    }
    Ok(found)
}
