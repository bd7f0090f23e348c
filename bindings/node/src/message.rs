//! Messages to send, and messages that came: a batch crosses at once, and each payload is copied once.

use bytes::Bytes;
use iggy::{IggyError, IggyMessage, PolledMessages, UserHeaders};
use iggy_protocol::codec::Decode;
use napi::bindgen_prelude::{Array, BigInt, BufferSlice, Either, Object};

use crate::failure::{OrThrow, invalid};
use crate::headers;
use crate::position::{Checkpoint, Continuation};
use crate::value::{Js, wide};

/// What a payload may be in JavaScript. It is copied here, so that no thread of the client holds memory of JavaScript.
fn payload(given: &Object<'_>) -> napi::Result<Bytes> {
    let given: Option<Either<String, BufferSlice<'_>>> = given.get("payload")?;
    match given {
        Some(Either::A(text)) => Ok(Bytes::from(text)),
        Some(Either::B(bytes)) => Ok(Bytes::copy_from_slice(&bytes)),
        None => Err(invalid("a message has no payload")),
    }
}

/// The headers: a list of values, or the block of a message that was read.
fn user_headers(given: &Object<'_>) -> napi::Result<UserHeaders> {
    if let Some(block) = given.get::<BufferSlice<'_>>("block")? {
        return UserHeaders::from_bytes(&block).map_err(IggyError::from).or_throw();
    }
    given
        .get::<Object<'_>>("entries")?
        .map_or_else(|| Ok(UserHeaders::new()), |list| headers::from_list(&list))
}

fn message(given: &Object<'_>) -> napi::Result<IggyMessage> {
    let mut builder = IggyMessage::builder().payload(payload(given)?);
    if let Some(id) = given.get::<BigInt>("id")? {
        let (false, id, true) = id.get_u128() else {
            return Err(invalid("the id of a message is a BigInt of 0 to 2^128 - 1"));
        };
        builder = builder.id(id);
    }
    if let Some(timestamp) = given.get::<BigInt>("originTimestamp")? {
        builder = builder.origin_timestamp(wide("the origin timestamp", &timestamp)?);
    }
    let headers = user_headers(given)?;
    if !headers.is_empty() {
        builder = builder.user_headers(headers);
    }
    builder.build().or_throw()
}

/// Messages as the package passes them.
pub fn messages_of(given: &Array<'_>) -> napi::Result<Vec<IggyMessage>> {
    let mut messages = Vec::with_capacity(given.len() as usize);
    for index in 0..given.len() {
        let each = given.get::<Object<'_>>(index)?;
        messages.push(message(&each.ok_or_else(|| invalid("a message is missing"))?)?);
    }
    Ok(messages)
}

fn low(number: u128) -> u64 {
    number as u64
}

/// Messages in columns, of which the package makes its objects: six numbers, the payload and the headers of each.
pub fn columns(messages: &[IggyMessage]) -> Vec<(String, Js)> {
    let mut numbers = Vec::with_capacity(messages.len() * 6);
    for message in messages {
        let header = &message.header;
        let id = [low(header.id), low(header.id >> 64)];
        numbers.extend(id);
        numbers.extend([
            header.offset,
            header.timestamp,
            header.origin_timestamp,
            header.checksum,
        ]);
    }
    let block = |message: &IggyMessage| message.user_headers.clone().map_or(Js::Null, Js::Bytes);
    let payloads = messages.iter().map(|message| Js::Bytes(message.payload.clone()));
    let some_headers = messages.iter().any(|message| message.user_headers.is_some());
    vec![
        ("numbers".to_owned(), Js::Numbers(numbers)),
        ("payloads".to_owned(), Js::List(payloads.collect())),
        (
            "blocks".to_owned(),
            if some_headers {
                Js::List(messages.iter().map(block).collect())
            } else {
                Js::Null
            },
        ),
    ]
}

/// What one read returned.
pub fn polled(polled: &PolledMessages) -> Js {
    let checkpoint = polled
        .checkpoint()
        .map_or(Js::Null, |position| Js::Checkpoint(Checkpoint(position)));
    let mut members = columns(&polled.messages);
    members.extend([
        ("partitionId".to_owned(), Js::Number(polled.partition_id.into())),
        ("currentOffset".to_owned(), Js::Big(polled.current_offset)),
        ("checkpoint".to_owned(), checkpoint),
        (
            "continuation".to_owned(),
            Js::Continuation(Continuation(polled.continuation())),
        ),
    ]);
    Js::Record(members)
}

/// A message as a consumer hands it out.
#[allow(clippy::needless_pass_by_value, reason = "the form of every conversion")]
pub fn received(received: iggy::ReceivedMessage) -> Js {
    let checkpoint = Js::Checkpoint(Checkpoint(received.checkpoint()));
    let mut members = columns(std::slice::from_ref(&received.message));
    members.extend([
        ("partitionId".to_owned(), Js::Number(received.partition_id.into())),
        ("currentOffset".to_owned(), Js::Big(received.current_offset)),
        ("checkpoint".to_owned(), checkpoint),
    ]);
    Js::Record(members)
}
