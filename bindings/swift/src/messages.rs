//! Batches of messages, each one block of memory whose place is all that crosses.
//!
//! To send, Swift asks for a block and writes every message into it, which is the only copy. What came lies in the reply it
//! came in; Swift gets a table of where, and keeps the batch for as long as it looks.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use iggy::{IggyMessage, PolledMessages, ReceivedMessage};
use iggy_ffi::reading::Read;
use iggy_ffi::{Failure, call};

use crate::failure::NativeError;
use crate::headers;
use crate::position::{NativeCheckpoint, NativeContinuation};

/// Before each message in a block: its id as two halves, the lower first; when it was made in microseconds, 0 for now; the
/// lengths of its headers and of its payload, which follow in this order. All of it lowest byte first.
const PREFIX: usize = 32;

/// Room for messages to send.
#[derive(uniffi::Object)]
pub struct NativeOutgoing {
    block: Mutex<Option<Vec<u8>>>,
    address: u64,
    count: u32,
}

#[uniffi::export]
impl NativeOutgoing {
    /// Room for so many messages that take so many bytes in all. It is written to before it is sent, and not after.
    #[uniffi::constructor]
    pub fn new(count: u32, size: u64) -> Result<Arc<Self>, NativeError> {
        let mut block = Vec::new();
        let room = usize::try_from(size)
            .ok()
            .and_then(|size| block.try_reserve_exact(size).ok());
        room.ok_or_else(|| Failure::invalid(format!("there is no memory for messages of {size} bytes in all")))?;
        block.resize(size as usize, 0);
        let address = block.as_mut_ptr().expose_provenance() as u64;
        let block = Mutex::new(Some(block));
        Ok(Arc::new(Self { block, address, count }))
    }

    /// Where the room is.
    pub fn address(&self) -> u64 {
        self.address
    }
}

fn one(block: &mut Bytes) -> Result<IggyMessage, Failure> {
    let cut = || Failure::invalid("the messages are cut off");
    if block.remaining() < PREFIX {
        return Err(cut());
    }
    let (low, high, made) = (block.get_u64_le(), block.get_u64_le(), block.get_u64_le());
    let (of_headers, of_payload) = (block.get_u32_le() as usize, block.get_u32_le() as usize);
    if block.remaining() < of_headers.saturating_add(of_payload) {
        return Err(cut());
    }
    let (headers, payload) = (block.split_to(of_headers), block.split_to(of_payload));
    let mut builder = IggyMessage::builder()
        .id(u128::from(high) << 64 | u128::from(low))
        .payload(payload);
    if made != 0 {
        builder = builder.origin_timestamp(made);
    }
    if !headers.is_empty() {
        builder = builder.user_headers(headers::read(&headers)?);
    }
    Ok(builder.build()?)
}

impl NativeOutgoing {
    /// The messages, once.
    pub fn take(&self) -> Result<Vec<IggyMessage>, Failure> {
        let block = self.block.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut block = Bytes::from(block.ok_or_else(|| Failure::invalid("these messages were sent already"))?);
        (0..self.count).map(|_| one(&mut block)).collect()
    }
}

enum Content {
    Polled(Arc<PolledMessages>),
    Received(ReceivedMessage),
    /// Of a send, for a partitioner.
    Offered(Vec<IggyMessage>),
}

impl Content {
    fn messages(&self) -> &[IggyMessage] {
        match self {
            Self::Polled(polled) => &polled.messages,
            Self::Received(received) => std::slice::from_ref(&received.message),
            Self::Offered(messages) => messages,
        }
    }
}

/// Where a message lies: payload, its length, the lower and the upper half of the id, offset, when the server took it, when
/// the sender made it, checksum, and the length of the headers.
type Row = [u64; 9];

fn row(message: &IggyMessage) -> Row {
    let header = &message.header;
    [
        message.payload.as_ptr().expose_provenance() as u64,
        message.payload.len() as u64,
        header.id as u64,
        (header.id >> 64) as u64,
        header.offset,
        header.timestamp,
        header.origin_timestamp,
        header.checksum,
        message.user_headers.as_ref().map_or(0, |block| block.len() as u64),
    ]
}

/// Messages that came, kept for as long as Swift looks at them.
#[derive(uniffi::Object)]
pub struct NativeMessages {
    content: Content,
    #[expect(dead_code, reason = "Swift reads it by its address")]
    table: Vec<Row>,
}

#[uniffi::export]
impl NativeMessages {
    /// The headers of a message by its place; none beyond the end.
    pub fn headers(&self, index: u64) -> Result<Vec<u8>, NativeError> {
        let found = usize::try_from(index)
            .ok()
            .and_then(|index| self.content.messages().get(index));
        let block = found.and_then(|message| message.user_headers.as_deref());
        Ok(call::enter(|| block.map_or(Ok(Vec::new()), headers::write))?)
    }

    /// The position after the message of this place; none beyond the end.
    pub fn checkpoint(&self, index: u64) -> Option<Arc<NativeCheckpoint>> {
        let found = match &self.content {
            Content::Polled(polled) => polled.checkpoint_at(usize::try_from(index).ok()?)?,
            Content::Received(received) if index == 0 => received.checkpoint(),
            Content::Received(_) | Content::Offered(_) => return None,
        };
        Some(Arc::new(NativeCheckpoint(found)))
    }

    /// Where the next read of the partition starts; none for messages of a send.
    pub fn continuation(&self) -> Option<NativeContinuation> {
        match &self.content {
            Content::Polled(polled) => Some(polled.continuation().into()),
            Content::Received(received) => Some(NativeCheckpoint(received.checkpoint()).continuation()),
            Content::Offered(_) => None,
        }
    }
}

/// A batch: where its messages lie, and what keeps them there.
#[derive(uniffi::Record)]
pub struct NativeBatch {
    pub messages: Arc<NativeMessages>,
    /// Of the table, whose rows are nine numbers of 64 bits.
    pub address: u64,
    pub count: u64,
    pub partition_id: u32,
    pub current_offset: u64,
}

impl From<Content> for NativeBatch {
    fn from(content: Content) -> Self {
        let table: Vec<_> = content.messages().iter().map(row).collect();
        let (partition_id, current_offset) = match &content {
            Content::Polled(polled) => (polled.partition_id, polled.current_offset),
            Content::Received(received) => (received.partition_id, received.current_offset),
            Content::Offered(_) => (0, 0),
        };
        Self {
            address: table.as_ptr().expose_provenance() as u64,
            count: table.len() as u64,
            messages: Arc::new(NativeMessages { content, table }),
            partition_id,
            current_offset,
        }
    }
}

impl From<Arc<PolledMessages>> for NativeBatch {
    fn from(polled: Arc<PolledMessages>) -> Self {
        Content::Polled(polled).into()
    }
}

impl NativeBatch {
    /// Of a consumer; none at its end.
    pub fn of_read(read: Read) -> Option<Self> {
        match read {
            Read::Message(message) => Some(Content::Received(message).into()),
            Read::Batch(batch) => Some(batch.into()),
            Read::End => None,
        }
    }

    /// Of a send. Payloads are shared, not copied.
    pub fn of_send(messages: &[IggyMessage]) -> Self {
        Content::Offered(messages.to_vec()).into()
    }
}
