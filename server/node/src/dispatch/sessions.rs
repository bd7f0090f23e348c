//! Sign-in, binding and the version gate (wire 4.2 to 4.5).

use super::Request;
use crate::connection::Bound;
use crate::node::{SERVER_VERSION, wall_micros};
use crate::passwords::{PasswordError, token_hash};
use crate::shard::ShardMessage;
use bytes::{Bytes, BytesMut};
use iggy_metadata::{Admission, Change, Outcome, Receipt, RequestKey, SessionKey, UserRef};
use iggy_protocol::codec::{Decode, Encode, Reader};
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::header::{EvictionHeader, EvictionReason, ReplyHeader};
use iggy_protocol::name::Name;
use iggy_protocol::operation::Operation;
use iggy_protocol::reply::session::LoginReply;
use iggy_protocol::request::session::{BindSession, ClientVersionInfo, Credentials, Login};
use iggy_protocol::result_section;
use iggy_protocol::version::PROTOCOL_VERSION;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Checks the prefix that 40, 45 and 15 share, before the rest is touched.
fn gate(request: &Request) -> Result<(), Box<EvictionHeader>> {
    let client = request.header.client.get();
    let version = ClientVersionInfo::decode(&mut Reader::new(&request.body))
        .map_err(|_| Box::new(EvictionHeader::new(client, EvictionReason::MalformedLogin)))?;
    if version.version() == PROTOCOL_VERSION {
        return Ok(());
    }
    tracing::info!(version = version.protocol_version, sdk = %version.sdk_name, "a client speaks another protocol version");
    Err(Box::new(EvictionHeader::incompatible(
        client,
        PROTOCOL_VERSION.0,
        PROTOCOL_VERSION.0,
    )))
}

fn login_reply(user_id: u32, session: u64) -> Bytes {
    let mut body = BytesMut::new();
    let server_version = Name::new(SERVER_VERSION).expect("a package version is a name");
    LoginReply {
        user_id,
        session,
        server_protocol_version: PROTOCOL_VERSION.0,
        server_version,
    }
    .encode(&mut body);
    body.freeze()
}

/// Registers a session (40 and 45).
pub(super) fn register(request: Request) {
    let client = request.header.client.get();
    if let Err(eviction) = gate(&request) {
        return request.connection.evict(*eviction);
    }
    let Ok(login) = Login::from_bytes(&request.body) else {
        return request
            .connection
            .evict(EvictionHeader::new(client, EvictionReason::MalformedLogin));
    };
    if let Some(bound) = request.connection.bound() {
        return replay_bound(request, bound);
    }
    tokio::task::spawn_local(async move {
        match sign_in(&request, &login).await {
            Ok(receipt) => registered(request, &receipt),
            Err(Refusal::Evict(reason)) => request.connection.evict(EvictionHeader::new(client, reason)),
            Err(Refusal::Retry(code)) => request.refuse(code),
        }
    });
}

/// A connection that is signed in stays who it is (wire 4.3).
fn replay_bound(request: Request, bound: Bound) {
    let metadata = request.connection.node.published.load_full();
    let Some(session) = metadata.session(bound.session) else {
        return request.refuse(ErrorCode::Unauthenticated);
    };
    let receipt = Receipt {
        request: RequestKey {
            client: bound.session.client,
            session: 0,
            request: 0,
            request_checksum: session.register_checksum,
            operation: Operation::Register,
            user_id: session.user_id,
        },
        at: session.registered_at,
        outcome: Outcome::Registered {
            user_id: session.user_id,
        },
    };
    registered(request, &receipt);
}

fn registered(request: Request, receipt: &Receipt) {
    let node = Arc::clone(&request.connection.node);
    match receipt.outcome {
        Outcome::Registered { user_id } => {
            let session = SessionKey {
                client: receipt.request.client,
                session: receipt.at.op,
            };
            request.connection.bind(Some(Bound { session, user_id }));
            let completion = login_reply(user_id, session.session);
            match receipt.body(&completion) {
                Ok(body) => {
                    let header = ReplyHeader::committed(&receipt.committed(node.cluster)).with_body_len(body.len());
                    request.reply.send(Box::new(header), vec![body]);
                }
                Err(code) => request.refuse(code),
            }
        }
        Outcome::Refused(code) => refuse_login(request, code),
        Outcome::Done(_) | Outcome::TokenCreated => request.refuse(ErrorCode::Error),
    }
}

fn refuse_login(request: Request, code: ErrorCode) {
    match eviction_for(code) {
        Some(reason) => {
            request
                .connection
                .evict(EvictionHeader::new(request.header.client.get(), reason));
        }
        None => retry_login(request, code),
    }
}

/// Login refusals that may pass travel in the result section, as a client expects of a register (wire 4.3).
fn retry_login(request: Request, code: ErrorCode) {
    let body = Bytes::copy_from_slice(&result_section::rejection(code));
    let header = ReplyHeader::uncommitted(&request.header, 0).with_body_len(body.len());
    request.reply.send(Box::new(header), vec![body]);
}

enum Refusal {
    Evict(EvictionReason),
    Retry(ErrorCode),
}

fn eviction_for(code: ErrorCode) -> Option<EvictionReason> {
    match code {
        ErrorCode::InvalidCredentials => Some(EvictionReason::InvalidCredentials),
        ErrorCode::InvalidPersonalAccessToken | ErrorCode::PersonalAccessTokenExpired => {
            Some(EvictionReason::InvalidToken)
        }
        ErrorCode::UserInactive => Some(EvictionReason::UserInactive),
        ErrorCode::InvalidClientId => Some(EvictionReason::SessionError),
        _ => None,
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        eviction_for(code).map_or(Self::Retry(code), Self::Evict)
    }
}

impl From<PasswordError> for Refusal {
    fn from(error: PasswordError) -> Self {
        tracing::warn!(%error, "a password could not be checked");
        Self::Retry(ErrorCode::TransientNotAccepted)
    }
}

async fn sign_in(request: &Request, login: &Login) -> Result<Receipt, Refusal> {
    let node = &request.connection.node;
    let (client, checksum) = (request.header.client.get(), request.header.request_checksum.get());
    let secret = &login.bind_secret.0;
    if let Some(receipt) = node.published.load_full().registered(client, checksum, secret)? {
        return Ok(receipt);
    }
    let user = verify(request, &login.credentials).await?;
    let key = RequestKey {
        client,
        session: 0,
        request: 0,
        request_checksum: checksum,
        operation: Operation::Register,
        user_id: user.user_id,
    };
    // The state may have moved on while the password was checked.
    let metadata = node.published.load_full();
    let is_bound = |session| node.connections.is_bound(session);
    match metadata.admit_register(&key, user, secret, is_bound) {
        Admission::Ready(change) => Ok(propose(request, key, change).await?),
        Admission::Replay(receipt) => Ok(receipt),
        Admission::Refused(code) => Err(code.into()),
        _ => Err(Refusal::Retry(ErrorCode::TransientNotAccepted)),
    }
}

async fn verify(request: &Request, credentials: &Credentials) -> Result<UserRef, Refusal> {
    let node = &request.connection.node;
    let metadata = node.published.load_full();
    match credentials {
        Credentials::Token(token) => Ok(metadata.token_user(&token_hash(token.expose()), wall_micros())?),
        Credentials::Password { username, password } => {
            let password = password.expose().as_bytes().to_vec();
            let Some(known) = metadata.credentials(username.as_str()) else {
                // An unknown name takes as long as a wrong password.
                node.passwords.verify_unknown(password).await?;
                return Err(Refusal::Evict(EvictionReason::InvalidCredentials));
            };
            if node.passwords.verify(password, known.password_hash).await? {
                Ok(known.user)
            } else {
                Err(Refusal::Evict(EvictionReason::InvalidCredentials))
            }
        }
    }
}

/// Has a change ordered; its receipt, or why it was not.
pub(super) async fn propose(request: &Request, key: RequestKey, change: Change) -> Result<Receipt, ErrorCode> {
    let (answer, receipt) = oneshot::channel();
    let message = ShardMessage::Change {
        request: key,
        change,
        answer,
    };
    if request.connection.node.metadata_shard().send(message).is_err() {
        return Err(ErrorCode::TransientNotAccepted);
    }
    // A shard that stops drops what it was asked: whether it was written is not known.
    receipt.await.unwrap_or(Err(ErrorCode::TransientNotCommitted))
}

/// Binds the connection to a session that was registered on another one (15).
pub(super) fn bind(request: Request) {
    if let Err(eviction) = gate(&request) {
        return request.connection.evict(*eviction);
    }
    let Ok(bind) = BindSession::from_bytes(&request.body) else {
        let client = request.header.client.get();
        return request
            .connection
            .evict(EvictionHeader::new(client, EvictionReason::MalformedLogin));
    };
    let metadata = request.connection.node.published.load_full();
    let found = metadata.bind(
        bind.client_id,
        bind.session,
        &bind.bind_secret.0,
        bind.metadata_watermark,
    );
    match found.map(|session| (session.key, session.user_id)) {
        Ok((session, user_id)) => {
            request.connection.bind(Some(Bound { session, user_id }));
            request.answer(Ok(login_reply(user_id, session.session)));
        }
        Err(code) => request.refuse(code),
    }
}
