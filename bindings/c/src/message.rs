//! Messages to send, and messages that came. Each payload is copied once when it is sent, and lies in the reply it came
//! in until its batch is freed.

use std::slice;
use std::sync::Arc;

use bytes::Bytes;
use iggy::{IggyError, IggyMessage, PolledMessages, ReceivedMessage, UserHeaders};
use iggy_protocol::codec::Decode;

use crate::boundary::{IggyBytes, Place, given, guarded};
use crate::failure::IggyFailure;
use crate::headers::IggyHeaders;
use crate::position::{IggyCheckpoint, IggyStart};

/// A message to send.
#[repr(C)]
pub struct IggyNewMessage<'a> {
    /// 1 to 64000000 bytes; copied.
    payload: IggyBytes,
    /// The lower half of its id; the client makes an id when both halves are 0.
    id_low: u64,
    /// The upper half of its id.
    id_high: u64,
    /// When it was made, in microseconds since the Unix epoch; 0 for now.
    origin_timestamp: u64,
    /// Its headers, copied; NULL for none.
    headers: Option<&'a IggyHeaders>,
    /// The headers of a message that was read, as they came, instead.
    headers_block: IggyBytes,
}

/// Messages to send, in order.
pub struct IggyMessages(pub(crate) Vec<IggyMessage>);

/// A message as it is. What it points to lives as long as what it was asked of.
#[repr(C)]
pub struct IggyMessageView {
    /// The payload.
    payload: IggyBytes,
    /// Its headers, to be decoded; empty for none.
    headers_block: IggyBytes,
    /// The lower half of its id.
    id_low: u64,
    /// The upper half of its id.
    id_high: u64,
    /// Its place in its partition; 0 before it was sent, as the members that follow.
    offset: u64,
    /// When the server took it: microseconds since the Unix epoch.
    timestamp: u64,
    /// When the sender made it: microseconds since the Unix epoch.
    origin_timestamp: u64,
    /// Of the frame.
    checksum: u64,
}

impl IggyMessageView {
    fn of(message: &IggyMessage) -> Self {
        let header = &message.header;
        Self {
            payload: IggyBytes::of(&message.payload),
            headers_block: message.user_headers.as_deref().map_or(IggyBytes::NONE, IggyBytes::of),
            id_low: header.id as u64,
            id_high: (header.id >> 64) as u64,
            offset: header.offset,
            timestamp: header.timestamp,
            origin_timestamp: header.origin_timestamp,
            checksum: header.checksum,
        }
    }
}

fn view(messages: &[IggyMessage], index: usize, place: Place<IggyMessageView>) -> bool {
    let Some(message) = messages.get(index) else {
        return false;
    };
    place.put(IggyMessageView::of(message));
    true
}

/// The most room that is made for messages that are not there yet.
const MOST_RESERVED: usize = 65_536;

/// No messages, and room for so many.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_messages_new(capacity: usize) -> Box<IggyMessages> {
    Box::new(IggyMessages(Vec::with_capacity(capacity.min(MOST_RESERVED))))
}

/// Frees messages that were not sent.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_messages_free(messages: Option<Box<IggyMessages>>) {
    drop(messages);
}

/// Adds a message at the end. Returns false, and why, when it breaks a limit.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_messages_add(
    messages: Option<&mut IggyMessages>,
    message: Option<&IggyNewMessage<'_>>,
    failure: *mut *mut IggyFailure,
) -> bool {
    let added = guarded(|| {
        let (messages, message) = (given("messages", messages)?, given("the message", message)?);
        let mut builder = IggyMessage::builder()
            .id(u128::from(message.id_high) << 64 | u128::from(message.id_low))
            .payload(Bytes::copy_from_slice(message.payload.read()));
        if message.origin_timestamp != 0 {
            builder = builder.origin_timestamp(message.origin_timestamp);
        }
        match (message.headers, message.headers_block.read()) {
            (Some(headers), _) => builder = builder.user_headers(headers.0.clone()),
            (None, []) => {}
            (None, block) => {
                builder = builder.user_headers(UserHeaders::from_bytes(block).map_err(IggyError::from)?);
            }
        }
        messages.0.push(builder.build()?);
        Ok(())
    });
    Place::at(failure).settle(added).is_some()
}

/// How many messages there are.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_messages_count(messages: Option<&IggyMessages>) -> usize {
    messages.map_or(0, |messages| messages.0.len())
}

/// Messages that a partitioner looks at.
pub struct IggyMessageList {
    messages: *const IggyMessage,
    count: usize,
}

impl IggyMessageList {
    /// Of messages that outlive the call it is an argument of.
    pub fn of(messages: &[IggyMessage]) -> Self {
        Self {
            messages: messages.as_ptr(),
            count: messages.len(),
        }
    }
}

/// How many messages there are.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_message_list_count(list: Option<&IggyMessageList>) -> usize {
    list.map_or(0, |list| list.count)
}

/// A message by its place; false beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_message_list_view(
    list: Option<&IggyMessageList>,
    index: usize,
    place: *mut IggyMessageView,
) -> bool {
    list.is_some_and(|list| {
        // SAFETY: made of a slice that lives as long as the call that C got the list in.
        let messages = unsafe { slice::from_raw_parts(list.messages, list.count) };
        view(messages, index, Place::at(place))
    })
}

/// Messages of one partition that were read, in order.
pub enum IggyBatch {
    Polled(Arc<PolledMessages>),
    Received(ReceivedMessage),
}

impl IggyBatch {
    fn messages(&self) -> &[IggyMessage] {
        match self {
            Self::Polled(polled) => &polled.messages,
            Self::Received(received) => slice::from_ref(&received.message),
        }
    }
}

/// Frees messages that were read, and what their views point to.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_batch_free(batch: Option<Box<IggyBatch>>) {
    drop(batch);
}

/// How many messages there are.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_batch_count(batch: Option<&IggyBatch>) -> usize {
    batch.map_or(0, |batch| batch.messages().len())
}

/// A message by its place; false beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_batch_view(batch: Option<&IggyBatch>, index: usize, place: *mut IggyMessageView) -> bool {
    batch.is_some_and(|batch| view(batch.messages(), index, Place::at(place)))
}

/// The partition.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_batch_partition_id(batch: Option<&IggyBatch>) -> u32 {
    match batch {
        Some(IggyBatch::Polled(polled)) => polled.partition_id,
        Some(IggyBatch::Received(received)) => received.partition_id,
        None => 0,
    }
}

/// The newest offset of the partition.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_batch_current_offset(batch: Option<&IggyBatch>) -> u64 {
    match batch {
        Some(IggyBatch::Polled(polled)) => polled.current_offset,
        Some(IggyBatch::Received(received)) => received.current_offset,
        None => 0,
    }
}

/// The position after the message of this place, to be freed; NULL beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_batch_checkpoint(batch: Option<&IggyBatch>, index: usize) -> Option<Box<IggyCheckpoint>> {
    let checkpoint = match batch? {
        IggyBatch::Polled(polled) => polled.checkpoint_at(index)?,
        IggyBatch::Received(received) if index == 0 => received.checkpoint(),
        IggyBatch::Received(_) => return None,
    };
    Some(Box::new(IggyCheckpoint(checkpoint)))
}

/// Where the next read of the partition starts; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_batch_continuation(batch: Option<&IggyBatch>, start: *mut IggyStart) -> bool {
    match batch {
        Some(IggyBatch::Polled(polled)) => Place::at(start).put(IggyStart::of(&polled.continuation())),
        Some(IggyBatch::Received(received)) => {
            let after = Box::new(IggyCheckpoint(received.checkpoint()));
            return crate::position::iggy_checkpoint_continuation(Some(&after), start);
        }
        None => return false,
    }
    true
}
