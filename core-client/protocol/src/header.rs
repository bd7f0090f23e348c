//! The 256-byte headers of requests, replies and evictions, viewed in place (wire 2).
//!
//! Nothing is copied to read a header: the structs have the layout of the wire, any bytes are a valid value, and
//! `validate` says what an admitted header must look like.

use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::context::PartitionContext;
use crate::error_code::ErrorCode;
use crate::limits::HEADER_SIZE;
use crate::operation::Operation;

/// Command byte of a request.
pub const COMMAND_REQUEST: u8 = 5;
/// Command byte of a reply.
pub const COMMAND_REPLY: u8 = 8;
/// Command byte of an eviction.
pub const COMMAND_EVICTION: u8 = 13;

/// The part every header starts with (wire 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Prefix {
    /// Unused towards clients: zero.
    pub checksum: U128,
    /// Unused towards clients: zero.
    pub checksum_body: U128,
    /// The cluster that answered, or zero.
    pub cluster: U128,
    /// Bytes of the whole frame, header included.
    pub size: U32,
    /// View of the answer.
    pub view: U32,
    /// Unused: zero.
    pub release: U32,
    /// What the frame is.
    pub command: u8,
    /// The replica that answered.
    pub replica: u8,
    /// Zero.
    pub reserved: [u8; 66],
}

/// A request from a client (wire 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RequestHeader {
    /// The common part.
    pub prefix: Prefix,
    /// The session identity the client chose; never zero.
    pub client: U128,
    /// A random identity of the request; zero for partition operations and reads.
    pub request_checksum: U128,
    /// Zero from our client; echoed by replies that commit nothing.
    pub timestamp: U64,
    /// The request number.
    pub request: U64,
    /// What is asked for: [`Operation`].
    pub operation: u8,
    /// Zero.
    pub padding: [u8; 7],
    /// The session of the login reply; zero before login.
    pub session: U64,
    /// Stamped by the server; what arrives here is never trusted.
    pub user_id: U32,
    /// The command code when the operation is `NonReplicated`, zero otherwise.
    pub code: U32,
    /// The history of the partition.
    pub partition_incarnation: U64,
    /// The group ownership the request was made under.
    pub owner_generation: U64,
    /// The metadata position an answering node must have applied.
    pub minimum_metadata_op: U64,
    /// Zero.
    pub reserved: [u8; 32],
}

/// A reply (wire 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ReplyHeader {
    /// The common part.
    pub prefix: Prefix,
    /// The identity of the original request.
    pub request_checksum: U128,
    /// Zero.
    pub context: U128,
    /// The client; reliable on a committed reply only.
    pub client: U128,
    /// Log position of the commit, or zero.
    pub op: U64,
    /// Equals `op` on a committed reply, zero otherwise.
    pub commit: U64,
    /// Time of the commit, or the echo of the request.
    pub timestamp: U64,
    /// The request number: what matches a reply to its request.
    pub request: U64,
    /// The operation, possibly the internal one the request was rewritten to.
    pub operation: u8,
    /// Zero.
    pub padding: [u8; 7],
    /// Zero, or the code of a refusal before commit.
    pub status: U32,
    /// 1 for a final committed result.
    pub committed: u8,
    /// Zero.
    pub reserved_flags: [u8; 3],
    /// The history of the partition, echoed.
    pub partition_incarnation: U64,
    /// Zero.
    pub reserved: [u8; 24],
}

/// The end of a session or of a connection's binding (wire 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EvictionHeader {
    /// The common part.
    pub prefix: Prefix,
    /// The evicted client.
    pub client: U128,
    /// Newest accepted version, for an incompatible protocol only.
    pub server_protocol_version: U32,
    /// Oldest accepted version, for an incompatible protocol only.
    pub server_protocol_version_min: U32,
    /// Zero.
    pub reserved: [u8; 103],
    /// Why: [`EvictionReason`].
    pub reason: u8,
}

macro_rules! assert_layout {
    ($type:ident: $($field:ident = $offset:literal),*) => {
        const _: () = {
            assert!(size_of::<$type>() == HEADER_SIZE);
            $(assert!(std::mem::offset_of!($type, $field) == $offset);)*
        };
    };
}

const _: () = assert!(size_of::<Prefix>() == 128);
const _: () = assert!(std::mem::offset_of!(Prefix, size) == 48 && std::mem::offset_of!(Prefix, command) == 60);
assert_layout!(RequestHeader: client = 128, request_checksum = 144, timestamp = 160, request = 168, operation = 176, session = 184,
    user_id = 192, code = 196, partition_incarnation = 200, owner_generation = 208, minimum_metadata_op = 216, reserved = 224);
assert_layout!(ReplyHeader: request_checksum = 128, context = 144, client = 160, op = 176, commit = 184, timestamp = 192, request = 200,
    operation = 208, status = 216, committed = 220, partition_incarnation = 224, reserved = 232);
assert_layout!(EvictionHeader: client = 128, server_protocol_version = 144, server_protocol_version_min = 148, reserved = 152, reason = 255);

/// A header that may not be admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Fewer bytes than a header has.
    #[error("a header has 256 bytes, {0} are here")]
    Short(usize),
    /// The size field is below the header's own.
    #[error("frame size {0} is below the 256 bytes of a header")]
    SizeBelowHeader(u32),
    /// The size field is above the limit.
    #[error("frame size {size} is above the limit of {limit} bytes")]
    SizeAboveLimit {
        /// The size received.
        size: u32,
        /// The limit.
        limit: u32,
    },
    /// A command that may not arrive here.
    #[error("command {found} may not arrive here, expected {expected}")]
    Command {
        /// The byte received.
        found: u8,
        /// What may arrive.
        expected: &'static str,
    },
    /// The client is zero.
    #[error("client is zero")]
    ZeroClient,
    /// An operation this version does not define, or zero.
    #[error("operation {0} is not defined")]
    UnknownOperation(u8),
    /// An operation only the server may derive.
    #[error("operation {0} may not be sent by a client")]
    InternalOperation(Operation),
    /// The session does not fit the operation.
    #[error("{operation} must carry {rule} session, not {found}")]
    Session {
        /// The operation.
        operation: Operation,
        /// What the session must be.
        rule: &'static str,
        /// The session received.
        found: u64,
    },
    /// The request number does not fit the operation.
    #[error("{operation} must carry {rule} request number, not {found}")]
    RequestNumber {
        /// The operation.
        operation: Operation,
        /// What the number must be.
        rule: &'static str,
        /// The number received.
        found: u64,
    },
    /// Bytes that must be zero are not.
    #[error("{0} must be zero")]
    Reserved(&'static str),
}

impl HeaderError {
    /// The code a server answers with.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::InvalidCommand
    }

    /// Whether the byte stream can no longer be followed, so that the connection must be closed.
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::Short(_) | Self::SizeBelowHeader(_) | Self::SizeAboveLimit { .. } | Self::Command { .. }
        )
    }
}

/// The size of the frame that starts with `header`, bounded by `max_frame` before anything is allocated for it.
pub fn frame_size(header: &[u8; HEADER_SIZE], max_frame: u32) -> Result<u32, HeaderError> {
    let (prefix, _) = Prefix::ref_from_prefix(header).map_err(|_| HeaderError::Short(header.len()))?;
    match prefix.size.get() {
        size if (size as usize) < HEADER_SIZE => Err(HeaderError::SizeBelowHeader(size)),
        size if size > max_frame => Err(HeaderError::SizeAboveLimit { size, limit: max_frame }),
        size => Ok(size),
    }
}

/// The command byte of a header.
pub fn command_of(header: &[u8; HEADER_SIZE]) -> u8 {
    header[60]
}

macro_rules! view {
    ($type:ident) => {
        impl $type {
            /// Views the first 256 bytes of a frame without copying them.
            pub fn view(frame: &[u8]) -> Result<&Self, HeaderError> {
                Self::ref_from_prefix(frame)
                    .map(|(header, _)| header)
                    .map_err(|_| HeaderError::Short(frame.len()))
            }

            /// The bytes of this header.
            pub fn as_array(&self) -> &[u8; HEADER_SIZE] {
                zerocopy::transmute_ref!(self)
            }

            /// Bytes of the body, as the size field says.
            pub fn body_len(&self) -> usize {
                (self.prefix.size.get() as usize).saturating_sub(HEADER_SIZE)
            }
        }
    };
}

view!(RequestHeader);
view!(ReplyHeader);
view!(EvictionHeader);

fn prefix(command: u8, body_len: usize) -> Prefix {
    let mut prefix = Prefix::new_zeroed();
    prefix.command = command;
    prefix.size = ((HEADER_SIZE + body_len) as u32).into();
    prefix
}

impl RequestHeader {
    /// A header of this operation with everything else zero.
    pub fn new(operation: Operation, body_len: usize) -> Self {
        let mut header = Self::new_zeroed();
        header.prefix = prefix(COMMAND_REQUEST, body_len);
        header.operation = operation.code();
        header
    }

    /// The operation, or `None` when this version does not define the byte.
    pub fn operation(&self) -> Option<Operation> {
        Operation::from_u8(self.operation)
    }

    /// The partition context the request was made under.
    pub fn partition_context(&self) -> PartitionContext {
        PartitionContext {
            incarnation: self.partition_incarnation.get(),
            owner_generation: self.owner_generation.get(),
            metadata_op: self.minimum_metadata_op.get(),
        }
    }

    /// Puts a partition context into the header.
    pub fn set_partition_context(&mut self, context: PartitionContext) {
        self.partition_incarnation = context.incarnation.into();
        self.owner_generation = context.owner_generation.into();
        self.minimum_metadata_op = context.metadata_op.into();
    }

    /// Applies the rules a server checks before anything else (wire 2.2) and returns the operation.
    pub fn validate(&self) -> Result<Operation, HeaderError> {
        if self.prefix.command != COMMAND_REQUEST {
            return Err(HeaderError::Command {
                found: self.prefix.command,
                expected: "5 (request)",
            });
        }
        if (self.prefix.size.get() as usize) < HEADER_SIZE {
            return Err(HeaderError::SizeBelowHeader(self.prefix.size.get()));
        }
        if self.client.get() == 0 {
            return Err(HeaderError::ZeroClient);
        }
        let operation = self.operation().ok_or(HeaderError::UnknownOperation(self.operation))?;
        if operation.is_internal() {
            return Err(HeaderError::InternalOperation(operation));
        }
        let (session, request) = (self.session.get(), self.request.get());
        match operation {
            Operation::NonReplicated => {}
            Operation::Register => {
                if session != 0 {
                    return Err(HeaderError::Session {
                        operation,
                        rule: "no",
                        found: session,
                    });
                }
                if request != 0 {
                    return Err(HeaderError::RequestNumber {
                        operation,
                        rule: "no",
                        found: request,
                    });
                }
            }
            _ => {
                if session == 0 {
                    return Err(HeaderError::Session {
                        operation,
                        rule: "a nonzero",
                        found: session,
                    });
                }
                if request == 0 {
                    return Err(HeaderError::RequestNumber {
                        operation,
                        rule: "a nonzero",
                        found: request,
                    });
                }
            }
        }
        Ok(operation)
    }
}

/// What a committed entry says about its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The cluster.
    pub cluster: u128,
    /// The view the entry was committed in.
    pub view: u32,
    /// The primary that took the request.
    pub replica: u8,
    /// The identity of the original request.
    pub request_checksum: u128,
    /// The client.
    pub client: u128,
    /// Log position of the entry.
    pub op: u64,
    /// Time of the commit in microseconds.
    pub timestamp: u64,
    /// The request number.
    pub request: u64,
    /// The operation, possibly internal.
    pub operation: Operation,
    /// The history of the partition, or zero.
    pub partition_incarnation: u64,
}

impl ReplyHeader {
    /// A reply that commits nothing: it echoes the request and carries `status` (wire 2.3).
    pub fn uncommitted(request: &RequestHeader, status: u32) -> Self {
        let mut header = Self::new_zeroed();
        header.prefix = prefix(COMMAND_REPLY, 0);
        header.prefix.cluster = request.prefix.cluster;
        header.prefix.view = request.prefix.view;
        header.prefix.replica = request.prefix.replica;
        header.request_checksum = request.request_checksum;
        header.client = request.client;
        header.timestamp = request.timestamp;
        header.request = request.request;
        header.operation = request.operation;
        header.status = status.into();
        header.partition_incarnation = request.partition_incarnation;
        header
    }

    /// The final reply of a committed entry: everything comes from the entry, so every replica makes the same bytes.
    pub fn committed(entry: &Committed) -> Self {
        let mut header = Self::new_zeroed();
        header.prefix = prefix(COMMAND_REPLY, 0);
        header.prefix.cluster = entry.cluster.into();
        header.prefix.view = entry.view.into();
        header.prefix.replica = entry.replica;
        header.request_checksum = entry.request_checksum.into();
        header.client = entry.client.into();
        header.op = entry.op.into();
        header.commit = entry.op.into();
        header.timestamp = entry.timestamp.into();
        header.request = entry.request.into();
        header.operation = entry.operation.code();
        header.committed = 1;
        header.partition_incarnation = entry.partition_incarnation.into();
        header
    }

    /// The same reply with a body of this length.
    #[must_use]
    pub fn with_body_len(mut self, body_len: usize) -> Self {
        self.prefix.size = ((HEADER_SIZE + body_len) as u32).into();
        self
    }

    /// The operation, or `None` when this version does not define the byte.
    pub fn operation(&self) -> Option<Operation> {
        Operation::from_u8(self.operation)
    }

    /// Whether the committed byte is proof that exactly this request was committed (wire 3.3).
    pub fn proves_commit_of(&self, request: &RequestHeader) -> bool {
        self.committed == 1
            && self.client == request.client
            && self.request_checksum == request.request_checksum
            && self.operation().map(|operation| operation.as_requested().code()) == Some(request.operation)
            && self.partition_incarnation == request.partition_incarnation
            && self.op.get() != 0
            && self.op == self.commit
    }
}

macro_rules! eviction_reasons {
    ($($code:literal $name:ident $error:ident;)*) => {
        /// Why a session or a connection's binding ended (wire 2.4).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum EvictionReason {
            $(#[doc = concat!("Reason ", $code, ".")] $name = $code,)*
        }

        impl EvictionReason {
            /// Every reason, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The reason of this byte, or `None` when this version does not define it.
            pub const fn from_u8(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }

            /// The error a client surfaces.
            pub const fn error(self) -> ErrorCode {
                match self { $(Self::$name => ErrorCode::$error,)* }
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

eviction_reasons! {
    1 NoSession Unauthenticated;
    2 ClientReleaseTooLow InvalidCommand;
    3 ClientReleaseTooHigh InvalidCommand;
    4 InvalidRequestOperation InvalidCommand;
    5 InvalidRequestBody InvalidCommand;
    6 InvalidRequestBodySize InvalidCommand;
    7 SessionTooLow Unauthenticated;
    8 SessionReleaseMismatch Unauthenticated;
    9 InvalidCredentials InvalidCredentials;
    10 InvalidToken InvalidPersonalAccessToken;
    11 UserInactive Unauthenticated;
    12 SessionError Unauthenticated;
    13 StaleClient StaleClient;
    14 IncompatibleProtocol IncompatibleProtocolVersion;
    15 MalformedLogin InvalidFormat;
}

impl EvictionHeader {
    /// An eviction of `client`.
    pub fn new(client: u128, reason: EvictionReason) -> Self {
        let mut header = Self::new_zeroed();
        header.prefix = prefix(COMMAND_EVICTION, 0);
        header.client = client.into();
        header.reason = reason as u8;
        header
    }

    /// An eviction that names the versions this server accepts, both inclusive and packed.
    pub fn incompatible(client: u128, oldest: u32, newest: u32) -> Self {
        let mut header = Self::new(client, EvictionReason::IncompatibleProtocol);
        header.server_protocol_version = newest.into();
        header.server_protocol_version_min = oldest.into();
        header
    }

    /// The reason, or `None` when this version does not define the byte.
    pub fn reason(&self) -> Option<EvictionReason> {
        EvictionReason::from_u8(self.reason)
    }

    /// The error a client surfaces: unknown reasons and an empty version window are `Unauthenticated` (wire 2.4).
    pub fn error(&self) -> ErrorCode {
        let (min, max) = (
            self.server_protocol_version_min.get(),
            self.server_protocol_version.get(),
        );
        match self.reason() {
            Some(EvictionReason::IncompatibleProtocol) if min == 0 || max < min => ErrorCode::Unauthenticated,
            Some(reason) => reason.error(),
            None => ErrorCode::Unauthenticated,
        }
    }

    /// Applies the rules a client checks: header only, a client and a reason, reserved bytes zero.
    pub fn validate(&self) -> Result<(), HeaderError> {
        if self.prefix.command != COMMAND_EVICTION {
            return Err(HeaderError::Command {
                found: self.prefix.command,
                expected: "13 (eviction)",
            });
        }
        match self.prefix.size.get() {
            256 => {}
            size if size < 256 => return Err(HeaderError::SizeBelowHeader(size)),
            size => return Err(HeaderError::SizeAboveLimit { size, limit: 256 }),
        }
        if self.client.get() == 0 {
            return Err(HeaderError::ZeroClient);
        }
        if self.prefix.reserved != [0; 66] || self.reserved != [0; 103] {
            return Err(HeaderError::Reserved("the reserved part of an eviction"));
        }
        Ok(())
    }
}
