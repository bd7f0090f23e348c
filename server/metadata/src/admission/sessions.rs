//! Logins, binds and the search for sessions that may give way.

use std::fmt;

use iggy_protocol::{ErrorCode, Operation};

use super::Admission;
use crate::change::{Change, UserRef};
use crate::keys::SessionKey;
use crate::limits::SESSION_EVICTION_MARGIN;
use crate::metadata::Metadata;
use crate::model::session::{Session, bind_verifier};
use crate::model::user::UserStatus;
use crate::position::RequestKey;
use crate::receipt::{Outcome, Receipt};

/// What a login by password is checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user, fenced: a login that takes long cannot bind a user id that was given anew meanwhile.
    pub user: UserRef,
    /// Argon2id hash in PHC text form.
    pub password_hash: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Metadata {
    /// What to verify a password against. `None` for an unknown name: verify against a hash of nothing instead, so that
    /// the answer takes as long. Whether the user is active is asked by [`admit_register`](Self::admit_register), after
    /// the password was right.
    pub fn credentials(&self, username: &str) -> Option<Credentials> {
        self.user_by_name(username).map(|user| Credentials {
            user: UserRef::of(user),
            password_hash: user.password_hash.clone(),
        })
    }

    /// The user a personal access token signs in, by the SHA-256 of its text: `InvalidPersonalAccessToken` for an unknown
    /// one, `PersonalAccessTokenExpired` past its expiry. `now` is in microseconds since the Unix epoch.
    pub fn token_user(&self, hash: &[u8; 32], now: u64) -> Result<UserRef, ErrorCode> {
        let (user, token) = self.token(hash).ok_or(ErrorCode::InvalidPersonalAccessToken)?;
        if token.is_expired(now) {
            return Err(ErrorCode::PersonalAccessTokenExpired);
        }
        Ok(UserRef::of(user))
    }

    /// Whether any token is past its expiry, so that `ExpireTokens` is worth proposing.
    pub fn has_expired_tokens(&self, now: u64) -> bool {
        self.users()
            .flat_map(|user| user.tokens.values())
            .any(|token| token.is_expired(now))
    }

    /// Answers a registration that needs no credentials any more: the resend of one that was committed (wire 4.3).
    ///
    /// `Ok(None)` for a new client id, `InvalidClientId` when the id belongs to another registration.
    pub fn registered(
        &self,
        client: u128,
        request_checksum: u128,
        bind_secret: &[u8; 32],
    ) -> Result<Option<Receipt>, ErrorCode> {
        let Some(session) = self.session_of_client(client) else {
            return Ok(None);
        };
        if session.register_checksum == request_checksum && session.is_proved_by(bind_secret) {
            Ok(Some(registration_receipt(session)))
        } else {
            Err(ErrorCode::InvalidClientId)
        }
    }

    /// Admits a registration whose credentials were verified for `user`: `UserInactive` for a disabled user,
    /// `InvalidCredentials` for one that is gone, `TransientNotAccepted` when the table is full of bound sessions.
    ///
    /// `is_bound` says whether a session has a live connection on any node; it is asked only when the table is nearly full.
    pub fn admit_register(
        &self,
        request: &RequestKey,
        user: UserRef,
        bind_secret: &[u8; 32],
        is_bound: impl Fn(SessionKey) -> bool,
    ) -> Admission {
        match self.registered(request.client, request.request_checksum, bind_secret) {
            Ok(Some(receipt)) => return Admission::Replay(receipt),
            Ok(None) => {}
            Err(code) => return Admission::Refused(code),
        }
        match self.user_by_ref(&user) {
            None => return Admission::Refused(ErrorCode::InvalidCredentials),
            Some(user) if user.status == UserStatus::Inactive => return Admission::Refused(ErrorCode::UserInactive),
            Some(_) => {}
        }
        let limit = self.limits.sessions as usize;
        let may_evict: Vec<SessionKey> = if self.sessions.len() + SESSION_EVICTION_MARGIN < limit {
            Vec::new()
        } else {
            let unbound = self.sessions().map(|session| session.key).filter(|key| !is_bound(*key));
            unbound.take(SESSION_EVICTION_MARGIN).collect()
        };
        if may_evict.is_empty() && self.sessions.len() >= limit {
            return Admission::Refused(ErrorCode::TransientNotAccepted);
        }
        Admission::Ready(Change::Register {
            user,
            verifier: bind_verifier(request.client, bind_secret),
            may_evict,
        })
    }

    /// The session a bind names and proves (wire 4.5), or `Unauthenticated`.
    ///
    /// `session` 0 asks for whatever session the client id was registered with. `minimum_op` is the client's watermark:
    /// below it the answer is `TransientNotAccepted`.
    pub fn bind(
        &self,
        client: u128,
        session: u64,
        bind_secret: &[u8; 32],
        minimum_op: u64,
    ) -> Result<&Session, ErrorCode> {
        self.reached(minimum_op)?;
        let found = self.session_of_client(client).ok_or(ErrorCode::Unauthenticated)?;
        let is_named = session == 0 || found.key.session == session;
        if is_named && found.is_proved_by(bind_secret) {
            Ok(found)
        } else {
            Err(ErrorCode::Unauthenticated)
        }
    }

    /// `TransientNotAccepted` while the state has not applied a position a request depends on (wire 4.8).
    pub fn reached(&self, minimum_op: u64) -> Result<(), ErrorCode> {
        if self.applied.op >= minimum_op {
            Ok(())
        } else {
            Err(ErrorCode::TransientNotAccepted)
        }
    }
}

fn registration_receipt(session: &Session) -> Receipt {
    Receipt {
        request: RequestKey {
            client: session.key.client,
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
    }
}
