//! Finds who serves a request.
//!
//! Everything that needs no waiting is answered here, on the shard the connection lives on, from the published metadata.
//! Requests to partitions go to the shard that owns them as they came; metadata changes go to the shard that orders them.

mod changes;
mod partitions;
mod sessions;
mod system;

pub(crate) use changes::internal;
pub(crate) use partitions::Turns;

use crate::connection::frames::FrameError;
use crate::connection::outgoing::ReplySender;
use crate::connection::{Bound, Connection};
use bytes::Bytes;
use iggy_metadata::{Metadata, RequestKey};
use iggy_protocol::command::Command;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::{EvictionHeader, EvictionReason, ReplyHeader, RequestHeader};
use iggy_protocol::operation::{Operation, Plane};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// A request and the way back to its client.
pub(crate) struct Request {
    pub connection: Rc<Connection>,
    pub header: Box<RequestHeader>,
    pub body: Bytes,
    pub reply: ReplySender,
}

impl Request {
    /// Answers a read, or refuses it.
    pub fn answer(self, result: Result<Bytes, ErrorCode>) {
        match result {
            Ok(body) => {
                let header = ReplyHeader::uncommitted(&self.header, 0).with_body_len(body.len());
                self.reply.send(Box::new(header), vec![body]);
            }
            Err(code) => self.refuse(code),
        }
    }

    /// Refuses it; nothing was written.
    pub fn refuse(self, code: ErrorCode) {
        tracing::debug!(
            client_id = self.connection.client_id,
            operation = self.header.operation,
            code = self.header.code.get(),
            error = code.name(),
            "refused a request"
        );
        self.connection.node.metrics.refusals(code.name()).inc();
        self.reply.send(
            Box::new(ReplyHeader::uncommitted(&self.header, code.code())),
            Vec::new(),
        );
    }

    /// The request as the metadata group knows it.
    pub fn key(&self, bound: Bound, operation: Operation) -> RequestKey {
        RequestKey {
            client: bound.session.client,
            session: bound.session.session,
            request: self.header.request.get(),
            request_checksum: self.header.request_checksum.get(),
            operation,
            user_id: bound.user_id,
        }
    }
}

/// Serves one request. An error ends the connection.
pub(crate) fn dispatch(
    connection: &Rc<Connection>,
    header: RequestHeader,
    body: Bytes,
    permit: OwnedSemaphorePermit,
) -> Result<(), FrameError> {
    let reply = connection.reply_sender(permit);
    let request = Request {
        connection: Rc::clone(connection),
        header: Box::new(header),
        body,
        reply,
    };
    let operation = match header.validate() {
        Ok(operation) => operation,
        Err(error) if error.is_fatal() => return Err(error.into()),
        Err(error) => {
            tracing::debug!(client_id = connection.client_id, %error, "refused a request header");
            request.refuse(error.code());
            return Ok(());
        }
    };
    let Some(command) = Command::of_header(operation, header.code.get()) else {
        request.refuse(ErrorCode::InvalidCommand);
        return Ok(());
    };
    connection.node.metrics.requests(command.name()).inc();
    match command {
        Command::Ping => request.answer(Ok(Bytes::new())),
        Command::Login | Command::LoginWithToken => sessions::register(request),
        Command::LegacyLogin | Command::LegacyTokenLogin => {
            let client = header.client.get();
            connection.evict(EvictionHeader::new(client, EvictionReason::MalformedLogin));
        }
        Command::BindSession => sessions::bind(request),
        _ => signed_in(request, command, operation),
    }
    Ok(())
}

fn signed_in(request: Request, command: Command, operation: Operation) {
    let node = Arc::clone(&request.connection.node);
    let metadata = node.published.load_full();
    let bound = match authenticate(&request, &metadata) {
        Ok(bound) => bound,
        Err(code) => return request.refuse(code),
    };
    // A client that saw a change must not be answered from a state before it.
    if let Err(code) = metadata.reached(request.header.minimum_metadata_op.get()) {
        return request.refuse(code);
    }
    match (command, operation.plane()) {
        (Command::CancelDeferred, _) => partitions::cancel(&request, bound),
        (Command::Logout, _) | (_, Plane::Metadata) => changes::change(request, bound, command, &metadata),
        (
            Command::SendMessages
            | Command::PollMessages
            | Command::PollMessagesDeferred
            | Command::FetchMessages
            | Command::GetConsumerOffset
            | Command::StoreConsumerOffset
            | Command::DeleteConsumerOffset,
            _,
        ) => partitions::serve(request, bound, command, &metadata),
        (Command::GetPartitionRoute, _) => {
            let result = partitions::route(&request, bound, &metadata);
            request.answer(result);
        }
        (
            Command::GetStats
            | Command::GetSnapshot
            | Command::GetClusterMetadata
            | Command::GetMe
            | Command::GetClient
            | Command::GetClients,
            _,
        ) => system::serve(request, bound, command, &metadata),
        _ => {
            let result = metadata.query(bound.user_id, bound.session, command, &request.body, &node.counters);
            request.answer(result);
        }
    }
}

/// Who a request is from: the session its connection is bound to, which the metadata must still know.
fn authenticate(request: &Request, metadata: &Metadata) -> Result<Bound, ErrorCode> {
    let bound = request.connection.bound().ok_or(ErrorCode::Unauthenticated)?;
    let header = &request.header;
    let own = header.client.get() == bound.session.client && header.session.get() == bound.session.session;
    if !own || metadata.session(bound.session).is_none() {
        return Err(ErrorCode::Unauthenticated);
    }
    Ok(bound)
}
