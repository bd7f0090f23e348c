//! Register, bind and logout on one connection.

use bytes::Bytes;
use iggy_protocol::codec::Decode;
use iggy_protocol::reply::session::LoginReply;
use iggy_protocol::request::session::{BindSecret, BindSession, Credentials, Login};
use iggy_protocol::{Command, ErrorCode, EvictionReason, Operation, RequestHeader, ResultSection};
use rand::RngCore;
use tokio::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::connection::{CloseReason, Connection, ExchangeError, MAX_REPLY_BYTES, Reply};
use crate::core::Core;
use crate::error::IggyError;
use crate::events::DiagnosticEvent;
use crate::frame_buffer::FrameBuffer;
use crate::session::{Bound, Registration, random_id, version_info};

/// How long a bind may take.
const BIND_LIMIT: Duration = Duration::from_secs(10);

/// Why a connection could not be made to serve the session.
#[derive(Debug)]
pub enum SignInError {
    /// Another attempt, on this node or another, may succeed.
    Retry(IggyError),
    /// No attempt will succeed without the caller changing something.
    Final(IggyError),
}

/// What a bind came to.
#[derive(Debug)]
pub enum BindOutcome {
    /// The connection serves the session.
    Bound,
    /// The server does not have the session any more; the connection stays open for a login.
    SessionGone,
}

fn lost(error: &ExchangeError) -> SignInError {
    let reason = match error {
        ExchangeError::NotSent(reason) | ExchangeError::Lost(reason) => reason,
        ExchangeError::Deadline { .. } => {
            return SignInError::Retry(IggyError::new(
                ErrorCode::Disconnected,
                "the server did not answer the sign-in in time",
            ));
        }
    };
    match reason {
        CloseReason::Evicted(header) => {
            let code = header.error();
            let retry = matches!(
                header.reason(),
                Some(EvictionReason::NoSession | EvictionReason::StaleClient)
            );
            let message = if code == ErrorCode::IncompatibleProtocolVersion {
                let packed = |version| iggy_protocol::PackedVersion(version).to_string();
                let (min, max) = (
                    packed(header.server_protocol_version_min.get()),
                    packed(header.server_protocol_version.get()),
                );
                format!(
                    "the server speaks protocol {min} to {max}, this client {}",
                    iggy_protocol::PROTOCOL_VERSION
                )
            } else {
                reason.to_string()
            };
            let error = IggyError::new(code, message);
            if retry {
                SignInError::Retry(error)
            } else {
                SignInError::Final(error)
            }
        }
        other => SignInError::Retry(IggyError::new(ErrorCode::Disconnected, other.to_string())),
    }
}

fn malformed(what: &str) -> SignInError {
    SignInError::Final(IggyError::new(
        ErrorCode::InvalidFormat,
        format!("the server's {what} cannot be read"),
    ))
}

impl Core {
    /// Registers a session on this connection. A registration whose reply was lost is sent again as it was, so that the
    /// server answers with the session it already made.
    pub async fn register(
        &self,
        connection: &Connection,
        credentials: &Credentials,
        deadline: Instant,
    ) -> Result<Bound, SignInError> {
        credentials.check().map_err(|error| SignInError::Final(error.into()))?;
        let registration = self
            .session
            .registration(credentials)
            .unwrap_or_else(|| new_registration(credentials));
        self.session.keep_registration(registration.clone());
        let mut backoff = Backoff::of_call();
        loop {
            let exchange = connection
                .exchange(registration.frame.clone(), MAX_REPLY_BYTES, deadline)
                .await;
            let reply = exchange.map_err(|error| self.refused_credentials(lost(&error)))?;
            match login_reply(&reply) {
                Ok(login) => {
                    let bound = self.session.begin(
                        registration.client_id,
                        registration.secret,
                        login.session,
                        login.user_id,
                    );
                    self.events.publish(DiagnosticEvent::SignedIn);
                    return Ok(bound);
                }
                Err(SignInError::Retry(error)) if Instant::now() >= deadline => return Err(SignInError::Retry(error)),
                Err(SignInError::Retry(_)) => {
                    let pause = Instant::now() + backoff.next_pause();
                    tokio::time::sleep_until(pause.min(deadline)).await;
                }
                Err(error) => return Err(self.refused_credentials(error)),
            }
        }
    }

    /// Refused credentials are forgotten: trying them again could lock the account.
    fn refused_credentials(&self, error: SignInError) -> SignInError {
        if let SignInError::Final(error) = &error {
            self.session.drop_registration();
            let refused = [
                ErrorCode::InvalidCredentials,
                ErrorCode::InvalidPersonalAccessToken,
                ErrorCode::Unauthenticated,
            ];
            if refused.contains(&error.code()) {
                self.session.remember(None);
            }
        }
        error
    }

    /// Binds this connection to the session.
    pub async fn bind(&self, connection: &Connection, bound: &Bound) -> Result<BindOutcome, SignInError> {
        let body = BindSession {
            version: version_info(),
            client_id: bound.client_id,
            session: bound.session,
            metadata_watermark: self.session.watermark(),
            bind_secret: bound.secret,
        };
        let frame = FrameBuffer::of(&body);
        let mut header = RequestHeader::new(Operation::NonReplicated, frame.body_len());
        header.client = bound.client_id.into();
        header.session = bound.session.into();
        header.request = self.session.next_request().map_err(SignInError::Final)?.into();
        header.code = Command::BindSession.code().into();
        let exchange = connection
            .exchange(frame.seal(&header), MAX_REPLY_BYTES, Instant::now() + BIND_LIMIT)
            .await;
        let reply = match exchange {
            Err(ExchangeError::Lost(CloseReason::Evicted(header)))
                if header.reason() == Some(EvictionReason::NoSession) =>
            {
                let message = "the server does not know the session and closed the connection";
                self.end_session();
                return Err(SignInError::Retry(IggyError::new(ErrorCode::Unauthenticated, message)));
            }
            other => other.map_err(|error| lost(&error))?,
        };
        match ErrorCode::from_u32(reply.header.status.get()) {
            _ if reply.header.status.get() == 0 => {
                let login = LoginReply::from_bytes(&reply.body).map_err(|_| malformed("bind reply"))?;
                if login.session == bound.session {
                    Ok(BindOutcome::Bound)
                } else {
                    Err(malformed("bind reply"))
                }
            }
            ErrorCode::Unauthenticated | ErrorCode::TransientNotCommitted => Ok(BindOutcome::SessionGone),
            code => Err(SignInError::Retry(IggyError::new(
                code,
                "the server refused to bind the session",
            ))),
        }
    }

    /// Ends the session at the server (39). Whatever comes of it, the session is over for this client.
    pub async fn log_out(&self, connection: &Connection, bound: &Bound, deadline: Instant) -> Result<(), IggyError> {
        let frame = FrameBuffer::new();
        let mut header = RequestHeader::new(Operation::Logout, 0);
        header.client = bound.client_id.into();
        header.session = bound.session.into();
        header.request = self.session.next_request()?.into();
        header.request_checksum = random_id().into();
        let frame = frame.seal(&header);
        let mut backoff = Backoff::of_call();
        let outcome = loop {
            match connection.exchange(frame.clone(), MAX_REPLY_BYTES, deadline).await {
                Ok(reply) => match reply.header.status.get() {
                    0 => break Ok(()),
                    57 | 58 if Instant::now() < deadline => {
                        let pause = Instant::now() + backoff.next_pause();
                        tokio::time::sleep_until(pause.min(deadline)).await;
                    }
                    code => break Err(IggyError::of(ErrorCode::from_u32(code))),
                },
                Err(error) => {
                    let message = match error {
                        ExchangeError::NotSent(reason) | ExchangeError::Lost(reason) => reason.to_string(),
                        ExchangeError::Deadline { .. } => "the server did not answer the logout in time".to_owned(),
                    };
                    break Err(IggyError::new(ErrorCode::Disconnected, message));
                }
            }
        };
        self.end_session();
        outcome
    }
}

fn new_registration(credentials: &Credentials) -> Registration {
    let mut secret = [0; 32];
    rand::rng().fill_bytes(&mut secret);
    let secret = BindSecret(secret);
    let login = Login {
        version: version_info(),
        bind_secret: secret,
        credentials: credentials.clone(),
        context: None,
    };
    let frame = FrameBuffer::of(&login);
    let client_id = random_id();
    let mut header = RequestHeader::new(Operation::Register, frame.body_len());
    header.client = client_id.into();
    header.request_checksum = random_id().into();
    Registration {
        frame: frame.seal(&header),
        client_id,
        secret,
        credentials: credentials.clone(),
    }
}

fn login_reply(reply: &Reply) -> Result<LoginReply, SignInError> {
    let refuse = |code: u32| {
        let code = ErrorCode::from_u32(code);
        let error = IggyError::new(code, "the server refused the login");
        match code {
            ErrorCode::TransientNotCommitted | ErrorCode::TransientNotAccepted => SignInError::Retry(error),
            _ => SignInError::Final(error),
        }
    };
    match reply.header.status.get() {
        0 if reply.body.is_empty() => Err(malformed("empty login reply")),
        0 => match ResultSection::decode(&reply.body).map_err(|_| malformed("login reply"))? {
            ResultSection::Rejected(code) => Err(refuse(code)),
            ResultSection::Success(payload) => match LoginReply::from_bytes(payload) {
                Ok(login) if login.session != 0 => Ok(login),
                _ => Err(malformed("login reply")),
            },
        },
        code => Err(refuse(code)),
    }
}

/// The frame of a read outside the call machinery: zero context, its own number.
pub fn plain_read(
    core: &Core,
    bound: Option<&Bound>,
    command: Command,
    frame: FrameBuffer,
) -> Result<Bytes, IggyError> {
    let mut header = RequestHeader::new(Operation::NonReplicated, frame.body_len());
    header.code = command.code().into();
    match bound {
        Some(bound) => {
            header.client = bound.client_id.into();
            header.session = bound.session.into();
            header.request = core.session.next_request()?.into();
        }
        None => header.client = core.session.anonymous_id().into(),
    }
    Ok(frame.seal(&header))
}
