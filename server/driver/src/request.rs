//! What reaches a group, and what leaves it.

use crate::tally::Watching;
use bytes::Bytes;
use iggy_partition::operation::{ConsumerKey, Member};
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::{Committed, ReplyHeader, RequestHeader};
use iggy_protocol::operation::Operation;
use iggy_protocol::polling_strategy::PollingStrategy;
use iggy_protocol::result_section;

/// Names a request until its reply; the sender chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Who asks, and where the answer goes.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Names the request.
    pub ticket: Ticket,
    /// Header as it came.
    pub header: Box<RequestHeader>,
    /// Authenticated user.
    pub user_id: u32,
    /// Connection it came on; its waits end with it.
    pub connection: u32,
}

impl Origin {
    /// Session of the request.
    pub fn member(&self) -> Member {
        Member {
            client: self.header.client.get(),
            session: self.header.session.get(),
        }
    }
}

/// How a read is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// With messages; a first message above the byte limit comes alone.
    #[default]
    Messages,
    /// With messages that fit the byte limit, or none.
    WithinBytes,
}

/// A read of messages.
#[derive(Clone, Debug)]
pub struct Poll {
    /// Who reads; a group is resolved to its number.
    pub consumer: ConsumerKey,
    /// Where to start.
    pub strategy: PollingStrategy,
    /// Messages at most.
    pub count: u32,
    /// Messages that end a wait.
    pub min_count: u32,
    /// Bytes of the reply at most, its 40-byte head included.
    pub max_bytes: u32,
    /// Whether the offset of the last message is stored as part of the read.
    pub commit: bool,
    /// Microseconds to wait for `min_count` messages; 0 answers at once.
    pub wait: u64,
    /// How the read is answered.
    pub answer: Answer,
    /// Metadata position the request was resolved at; part of the reply's context.
    pub metadata_op: u64,
}

/// A request to a partition, resolved and permitted.
#[derive(Clone, Debug)]
pub enum PartitionRequest {
    /// Append a batch. Its frames were verified; the header is as the client sent it.
    Send {
        /// Header and frames.
        batch: Bytes,
    },
    /// Store an offset.
    StoreOffset {
        /// For whom.
        consumer: ConsumerKey,
        /// Last processed message.
        offset: u64,
    },
    /// Forget an offset.
    DeleteOffset {
        /// For whom.
        consumer: ConsumerKey,
    },
    /// Read a stored offset.
    GetOffset {
        /// Of whom.
        consumer: ConsumerKey,
    },
    /// Read messages.
    Poll(Poll),
    /// Count for a fetch, and tell it of what comes. It is answered through its tally, never by a reply.
    Watch(Watching),
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Request answered.
    pub ticket: Ticket,
    /// Reply header, its size included.
    pub header: Box<ReplyHeader>,
    /// Body, in pieces that share memory with the log.
    pub body: Vec<Bytes>,
    /// After a read, the offset at which the next one of the partition starts.
    pub next_offset: Option<u64>,
}

impl Reply {
    /// An answer that is no proof of a commit: a read.
    pub fn read(origin: &Origin, body: Vec<Bytes>) -> Self {
        Self::with(origin.ticket, ReplyHeader::uncommitted(&origin.header, 0), body)
    }

    /// A refusal before anything was written.
    pub fn refused(origin: &Origin, code: ErrorCode) -> Self {
        Self::with(
            origin.ticket,
            ReplyHeader::uncommitted(&origin.header, code.code()),
            Vec::new(),
        )
    }

    /// An answer to a committed write.
    pub fn committed(ticket: Ticket, entry: &Committed, body: Vec<Bytes>) -> Self {
        Self::with(ticket, ReplyHeader::committed(entry), body)
    }

    /// Turns the reply of a read into a refusal: nothing was read.
    #[must_use]
    pub fn into_refusal(mut self, code: ErrorCode) -> Self {
        *self.header = ReplyHeader {
            status: code.code().into(),
            ..*self.header
        }
        .with_body_len(0);
        self.body.clear();
        self.next_offset = None;
        self
    }

    fn with(ticket: Ticket, header: ReplyHeader, body: Vec<Bytes>) -> Self {
        let length = body.iter().map(Bytes::len).sum();
        Self {
            ticket,
            header: Box::new(header.with_body_len(length)),
            body,
            next_offset: None,
        }
    }
}

/// The body of a result-framed reply that refuses.
pub fn rejection(code: ErrorCode) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(&result_section::rejection(code))]
}

/// The operation byte a committed entry answers with; entries of an unknown operation never reach a log.
pub fn operation_of(byte: u8) -> Operation {
    Operation::from_u8(byte).unwrap_or(Operation::NonReplicated)
}
