//! Messages to send, and messages that came. A batch crosses at once; a payload is copied when it is asked for.

use std::sync::Arc;

use bytes::Bytes;
use ext_php_rs::binary::Binary;
use ext_php_rs::convert::FromZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};
use ext_php_rs::zend::ce;
use iggy::{IggyMessage, UserHeaders};

use crate::failure::{OrThrow, invalid};
use crate::headers;
use crate::position::{Checkpoint, Continuation};
use crate::value::{bytes, bytes_of, list, number, number64, object, wide};

/// A message.
#[php_class]
#[php(name = "Iggy\\Message")]
pub struct Message(pub IggyMessage);

impl Message {
    fn user_headers(&self) -> PhpResult<UserHeaders> {
        Ok(self.0.user_headers_map().or_throw()?.unwrap_or_default())
    }
}

fn made(
    payload: &[u8],
    build: impl FnOnce(iggy::IggyMessageBuilder) -> iggy::IggyMessageBuilder,
) -> PhpResult<IggyMessage> {
    // Copied here, so that no thread of the client holds memory of PHP.
    let builder = IggyMessage::builder().payload(Bytes::copy_from_slice(payload));
    build(builder).build().or_throw()
}

#[php_impl]
impl Message {
    pub fn __construct(
        payload: &Zval,
        headers: Option<&ZendHashTable>,
        id: Option<&Zval>,
        origin_timestamp: Option<&Zval>,
    ) -> PhpResult<Self> {
        let headers = headers.map(headers::from_array).transpose()?;
        let given = |value: Option<&'_ Zval>| value.filter(|value| !value.is_null()).map(Zval::shallow_clone);
        let id = match given(id) {
            Some(id) => Some(number::<u128>("the id of a message", "a number of 128 bits", &id)?),
            None => None,
        };
        let timestamp = match given(origin_timestamp) {
            Some(timestamp) => Some(number64("the origin timestamp", &timestamp)?),
            None => None,
        };
        made(bytes_of("a payload", payload)?, |mut builder| {
            if let Some(headers) = headers.filter(|headers| !headers.is_empty()) {
                builder = builder.user_headers(headers);
            }
            if let Some(id) = id {
                builder = builder.id(id);
            }
            match timestamp {
                Some(timestamp) => builder.origin_timestamp(timestamp),
                None => builder,
            }
        })
        .map(Self)
    }

    #[php(getter)]
    pub fn get_payload(&self) -> Zval {
        bytes(&self.0.payload)
    }

    #[php(getter)]
    pub fn get_id(&self) -> PhpResult<Zval> {
        wide(self.0.header.id)
    }

    #[php(getter)]
    pub fn get_offset(&self) -> PhpResult<Zval> {
        wide(self.0.header.offset)
    }

    #[php(getter)]
    pub fn get_timestamp(&self) -> PhpResult<Zval> {
        wide(self.0.header.timestamp)
    }

    #[php(getter)]
    pub fn get_origin_timestamp(&self) -> PhpResult<Zval> {
        wide(self.0.header.origin_timestamp)
    }

    #[php(getter)]
    pub fn get_checksum(&self) -> PhpResult<Zval> {
        wide(self.0.header.checksum)
    }

    #[php(getter)]
    pub fn get_headers(&self) -> PhpResult<Zval> {
        headers::by_key(&self.user_headers()?)
    }

    pub fn header_pairs(&self) -> PhpResult<Zval> {
        headers::pairs(&self.user_headers()?)
    }

    #[php(name = "__toString")]
    pub fn text(&self) -> Binary<u8> {
        Binary::new(self.0.payload.to_vec())
    }
}

/// Messages as an application passes them: objects, or strings as payloads.
pub fn messages_of(given: &ZendHashTable) -> PhpResult<Vec<IggyMessage>> {
    let mut messages = Vec::with_capacity(given.len());
    for each in given.values() {
        messages.push(match <&Message>::from_zval(each) {
            Some(message) => message.0.clone(),
            None if each.is_string() => made(bytes_of("a payload", each)?, |builder| builder)?,
            None => return Err(invalid("messages are an array of Message objects and strings")),
        });
    }
    Ok(messages)
}

/// What one read returned.
#[php_class]
#[php(name = "Iggy\\PolledMessages")]
#[php(implements(ce = ce::aggregate, stub = "\\IteratorAggregate"))]
#[php(implements(ce = ce::countable, stub = "\\Countable"))]
#[php(implements(ce = ce::arrayaccess, stub = "\\ArrayAccess"))]
pub struct PolledMessages(pub Arc<iggy::PolledMessages>);

impl PolledMessages {
    fn at(&self, index: &Zval) -> Option<Message> {
        let index = usize::try_from(index.long()?).ok()?;
        self.0.messages.get(index).cloned().map(Message)
    }
}

#[php_impl]
impl PolledMessages {
    #[php(getter)]
    pub fn get_partition_id(&self) -> i64 {
        self.0.partition_id.into()
    }

    #[php(getter)]
    pub fn get_current_offset(&self) -> PhpResult<Zval> {
        wide(self.0.current_offset)
    }

    pub fn messages(&self) -> PhpResult<Zval> {
        list(self.0.messages.iter().cloned().map(Message))
    }

    pub fn continuation(&self) -> Continuation {
        Continuation(self.0.continuation())
    }

    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.0.checkpoint().map(Checkpoint)
    }

    pub fn checkpoint_at(&self, index: i64) -> Option<Checkpoint> {
        let index = usize::try_from(index).ok()?;
        self.0.checkpoint_at(index).map(Checkpoint)
    }

    pub fn count(&self) -> i64 {
        i64::try_from(self.0.messages.len()).unwrap_or(i64::MAX)
    }

    pub fn get_iterator(&self) -> MessageIterator {
        MessageIterator {
            batch: Arc::clone(&self.0),
            index: 0,
        }
    }

    pub fn offset_exists(&self, offset: &Zval) -> bool {
        self.at(offset).is_some()
    }

    pub fn offset_get(&self, offset: &Zval) -> PhpResult<Zval> {
        let count = self.0.messages.len();
        let found = self.at(offset);
        found.map_or_else(
            || Err(invalid(format!("there is no such message among {count}"))),
            object,
        )
    }

    pub fn offset_set(&self, _offset: &Zval, _value: &Zval) -> PhpResult<()> {
        Err(invalid("what was read cannot be changed"))
    }

    pub fn offset_unset(&self, _offset: &Zval) -> PhpResult<()> {
        Err(invalid("what was read cannot be changed"))
    }
}

/// Goes through the messages of a batch.
#[php_class]
#[php(name = "Iggy\\MessageIterator")]
#[php(implements(ce = ce::iterator, stub = "\\Iterator"))]
pub struct MessageIterator {
    batch: Arc<iggy::PolledMessages>,
    index: usize,
}

#[php_impl]
impl MessageIterator {
    pub fn current(&self) -> PhpResult<Zval> {
        let found = self.batch.messages.get(self.index).cloned();
        found.map_or_else(|| Ok(Zval::null()), |message| object(Message(message)))
    }

    pub fn key(&self) -> i64 {
        i64::try_from(self.index).unwrap_or(i64::MAX)
    }

    pub fn next(&mut self) {
        self.index += 1;
    }

    pub fn rewind(&mut self) {
        self.index = 0;
    }

    pub fn valid(&self) -> bool {
        self.index < self.batch.messages.len()
    }
}

/// What a read brought, as an object.
pub fn polled(found: Arc<iggy::PolledMessages>) -> PhpResult<Zval> {
    object(PolledMessages(found))
}

/// A message as a consumer hands it out.
#[php_class]
#[php(name = "Iggy\\ReceivedMessage")]
pub struct ReceivedMessage(pub iggy::ReceivedMessage);

#[php_impl]
impl ReceivedMessage {
    #[php(getter)]
    pub fn get_message(&self) -> PhpResult<Zval> {
        object(Message(self.0.message.clone()))
    }

    #[php(getter)]
    pub fn get_partition_id(&self) -> i64 {
        self.0.partition_id.into()
    }

    #[php(getter)]
    pub fn get_current_offset(&self) -> PhpResult<Zval> {
        wide(self.0.current_offset)
    }

    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.0.checkpoint())
    }
}
