//! Metadata writes: admitted here against the published state, ordered and applied by the metadata shard.

use super::{Request, sessions::propose};
use crate::connection::Bound;
use crate::passwords::{PasswordError, new_token, token_hash};
use crate::shard::ShardMessage;
use bytes::{Bytes, BytesMut};
use iggy_metadata::{Admission, Change, Metadata, Outcome, Receipt, committed_operation};
use iggy_protocol::codec::WriteWire;
use iggy_protocol::command::Command;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::ReplyHeader;
use iggy_protocol::name::Name;
use tokio::sync::oneshot;

pub(super) fn change(request: Request, bound: Bound, command: Command, metadata: &Metadata) {
    let key = request.key(bound, command.operation());
    let settings = &request.connection.node.settings;
    let admission = metadata.admit(settings, &key, command, &request.body);
    match admission {
        Admission::Refused(code) => request.refuse(code),
        Admission::Replay(receipt) => answer(request, &receipt.replayed(), &[]),
        admission => {
            tokio::task::spawn_local(async move {
                match run(&request, bound, command, admission).await {
                    Ok((receipt, completion)) => {
                        if command == Command::Logout {
                            request.connection.bind(None);
                        }
                        answer(request, &receipt, &completion);
                    }
                    Err(code) => request.refuse(code),
                }
            });
        }
    }
}

/// Does what the admission left to do, and has the change ordered. The bytes complete the reply of a new token.
async fn run(
    request: &Request,
    bound: Bound,
    command: Command,
    admission: Admission,
) -> Result<(Receipt, Bytes), ErrorCode> {
    let node = &request.connection.node;
    let mut completion = Bytes::new();
    let change = match admission {
        Admission::Ready(change) => change,
        Admission::HashPassword(pending) => {
            let password = pending.password.expose().as_bytes().to_vec();
            let hash = node.passwords.hash(password).await.map_err(|error| busy(&error))?;
            pending.finish(hash)
        }
        Admission::VerifyPassword(pending) => {
            let current = pending.current.expose().as_bytes().to_vec();
            if !node
                .passwords
                .verify(current, pending.current_hash.clone())
                .await
                .map_err(|error| busy(&error))?
            {
                return Err(ErrorCode::InvalidCredentials);
            }
            let new = pending.new.expose().as_bytes().to_vec();
            let hash = node.passwords.hash(new).await.map_err(|error| busy(&error))?;
            pending.finish(hash)
        }
        Admission::MintToken(pending) => {
            let token = new_token().map_err(|error| busy(&error))?;
            let hash = token_hash(&token);
            let mut bytes = BytesMut::new();
            bytes.put_name(&Name::new(&token).map_err(|_| ErrorCode::Error)?);
            completion = bytes.freeze();
            pending.finish(hash)
        }
        Admission::ResolveSegments(pending) => {
            let (sender, before) = oneshot::channel();
            let message = ShardMessage::SegmentsEnd {
                key: pending.partition,
                count: pending.segments_count,
                answer: sender,
            };
            let shard = node.shard_of(&pending.partition);
            shard.send(message).map_err(|_| ErrorCode::TransientNotAccepted)?;
            pending.finish(before.await.unwrap_or(Err(ErrorCode::TransientNotAccepted))?)
        }
        Admission::Replay(receipt) => return Ok((receipt.replayed(), completion)),
        Admission::Refused(code) => return Err(code),
    };
    let key = request.key(bound, committed_operation(command, &change));
    let receipt = propose(request, key, change).await?;
    Ok((receipt, completion))
}

fn busy(error: &PasswordError) -> ErrorCode {
    tracing::warn!(%error, "a secret could not be made or checked");
    ErrorCode::TransientNotAccepted
}

fn answer(request: Request, receipt: &Receipt, completion: &[u8]) {
    if let Outcome::Refused(code) = receipt.outcome {
        request.connection.node.metrics.refusals(code.name()).inc();
    }
    match receipt.body(completion) {
        Ok(body) => {
            let committed = receipt.committed(request.connection.node.cluster);
            let header = ReplyHeader::committed(&committed).with_body_len(body.len());
            request.reply.send(Box::new(header), vec![body]);
        }
        Err(code) => request.refuse(code),
    }
}

/// A change of the node's own.
pub(crate) fn internal(change: Change) -> (ShardMessage, oneshot::Receiver<crate::shard::ChangeAnswer>) {
    let (answer, receipt) = oneshot::channel();
    (
        ShardMessage::Change {
            request: iggy_metadata::RequestKey::INTERNAL,
            change,
            answer,
        },
        receipt,
    )
}
