//! Messages as applications see them.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use iggy_protocol::batch::check_message;
use iggy_protocol::codec::{Decode, Encode};
use iggy_protocol::limits::MAX_USER_HEADERS_BYTES;
use iggy_protocol::{BatchView, UserHeaders};

use crate::error::IggyError;

/// What accompanies a payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IggyMessageHeader {
    /// XXH3-64 of the stored message; zero before it is sent.
    pub checksum: u64,
    /// The message id; zero is replaced by a random one when the message is sent.
    pub id: u128,
    /// Offset in its partition; zero before it is sent.
    pub offset: u64,
    /// When the server stored it, in microseconds since the Unix epoch; zero before it is sent.
    pub timestamp: u64,
    /// When its producer made it, in microseconds since the Unix epoch.
    pub origin_timestamp: u64,
    /// Bytes of user headers.
    pub user_headers_length: u32,
    /// Bytes of payload.
    pub payload_length: u32,
}

/// A message. Payload and headers of a received one share the memory of the reply it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IggyMessage {
    /// What accompanies the payload.
    pub header: IggyMessageHeader,
    /// The payload: 1..=64000000 bytes.
    pub payload: Bytes,
    /// The encoded user headers: at most 100000 bytes, `None` when there are none.
    pub user_headers: Option<Bytes>,
}

impl IggyMessage {
    /// A message with this payload, made now.
    ///
    /// # Errors
    /// An empty payload, or one above 64000000 bytes.
    pub fn new(payload: impl Into<Bytes>) -> Result<Self, IggyError> {
        IggyMessageBuilder::default().payload(payload).build()
    }

    /// Begins a message.
    pub fn builder() -> IggyMessageBuilder {
        IggyMessageBuilder::default()
    }

    /// The user headers, read.
    ///
    /// # Errors
    /// The block is malformed.
    pub fn user_headers_map(&self) -> Result<Option<UserHeaders>, IggyError> {
        Ok(self.user_headers.as_deref().map(UserHeaders::from_bytes).transpose()?)
    }

    /// The payload as text.
    ///
    /// # Errors
    /// The payload is not UTF-8.
    pub fn payload_as_string(&self) -> Result<&str, std::str::Utf8Error> {
        std::str::from_utf8(&self.payload)
    }

    /// Bytes of payload and headers.
    pub fn size(&self) -> usize {
        self.payload.len() + self.user_headers.as_ref().map_or(0, Bytes::len)
    }
}

impl std::str::FromStr for IggyMessage {
    type Err = IggyError;

    fn from_str(text: &str) -> Result<Self, IggyError> {
        Self::new(Bytes::copy_from_slice(text.as_bytes()))
    }
}

/// Microseconds since the Unix epoch.
pub fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Builds a message.
#[derive(Debug, Clone, Default)]
pub struct IggyMessageBuilder {
    id: u128,
    payload: Bytes,
    user_headers: UserHeaders,
    origin_timestamp: Option<u64>,
}

impl IggyMessageBuilder {
    /// The id; zero, the default, is replaced by a random one when the message is sent.
    #[must_use]
    pub fn id(mut self, id: u128) -> Self {
        self.id = id;
        self
    }

    /// The payload: 1..=64000000 bytes.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// The user headers: at most 100000 bytes encoded.
    #[must_use]
    pub fn user_headers(mut self, headers: UserHeaders) -> Self {
        self.user_headers = headers;
        self
    }

    /// When it was made, in microseconds since the Unix epoch. Default now.
    #[must_use]
    pub fn origin_timestamp(mut self, micros: u64) -> Self {
        self.origin_timestamp = Some(micros);
        self
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// An empty payload, or payload or headers above their limits.
    pub fn build(self) -> Result<IggyMessage, IggyError> {
        let headers_length = self.user_headers.encoded_len();
        check_message(self.payload.len(), headers_length)?;
        debug_assert!(headers_length <= MAX_USER_HEADERS_BYTES);
        let mut headers = BytesMut::with_capacity(headers_length);
        self.user_headers.encode(&mut headers);
        Ok(IggyMessage {
            header: IggyMessageHeader {
                id: self.id,
                origin_timestamp: self.origin_timestamp.unwrap_or_else(now_micros),
                user_headers_length: headers_length as u32,
                payload_length: self.payload.len() as u32,
                ..IggyMessageHeader::default()
            },
            payload: self.payload,
            user_headers: (headers_length > 0).then(|| headers.freeze()),
        })
    }
}

/// Views the messages of a batch that lies in `reply`, without copying their payloads.
pub fn messages_of(reply: &Bytes, batch: &BatchView<'_>, out: &mut Vec<IggyMessage>) {
    let (base, stamped) = (batch.header().base_offset.get(), batch.header().base_timestamp.get());
    let origin = batch.header().origin_timestamp.get();
    out.extend(batch.frames().map(|frame| IggyMessage {
        header: IggyMessageHeader {
            checksum: frame.checksum(),
            id: frame.id(),
            offset: base.saturating_add(u64::from(frame.offset_delta())),
            timestamp: stamped,
            origin_timestamp: origin.saturating_add(u64::from(frame.timestamp_delta())),
            user_headers_length: frame.user_headers().len() as u32,
            payload_length: frame.payload().len() as u32,
        },
        payload: reply.slice_ref(frame.payload()),
        user_headers: (!frame.user_headers().is_empty()).then(|| reply.slice_ref(frame.user_headers())),
    }));
}
