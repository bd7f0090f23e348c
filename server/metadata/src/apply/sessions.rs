//! Registrations, logouts and sessions that run out.

use std::collections::BTreeSet;
use std::sync::Arc;

use iggy_protocol::reply::metadata_record::LeaveReason;
use iggy_protocol::{ErrorCode, Name};

use super::{Ruling, Step};
use crate::change::UserRef;
use crate::change_log::{Fact, UserKey, fact};
use crate::event::{Event, SessionEnd};
use crate::keys::SessionKey;
use crate::metadata::Metadata;
use crate::model::session::Session;
use crate::model::user::{ROOT_USER_ID, User, UserStatus};
use crate::receipt::{Outcome, ReceiptWindow};

impl Metadata {
    pub(super) fn bootstrap(&mut self, step: &mut Step, log_id: u128, username: &Name, password_hash: &str) -> Ruling {
        if self.is_bootstrapped() {
            return Err(ErrorCode::InvalidCommand);
        }
        self.log_id = log_id;
        let root = User {
            id: ROOT_USER_ID,
            created_at: step.at.timestamp,
            username: username.clone(),
            password_hash: password_hash.to_owned(),
            status: UserStatus::Active,
            permissions: Some(Arc::new(iggy_protocol::Permissions::root())),
            tokens: std::collections::BTreeMap::new(),
        };
        step.facts.push(Fact::UserCreated(fact::user_body(&root)));
        self.user_names.insert(username.clone(), ROOT_USER_ID);
        self.users.insert(ROOT_USER_ID, Arc::new(root));
        Ok(Outcome::EMPTY)
    }

    pub(super) fn register(
        &mut self,
        step: &mut Step,
        user: &UserRef,
        verifier: &[u8; 32],
        may_evict: &[SessionKey],
    ) -> Ruling {
        if let Some(session) = self.session_of_client(step.request.client) {
            // A resend that went into the log beside the first copy: the same session, not a second one.
            if session.register_checksum == step.request.request_checksum && session.verifier == *verifier {
                step.at = session.registered_at;
                return Ok(Outcome::Registered {
                    user_id: session.user_id,
                });
            }
            return Err(ErrorCode::InvalidClientId);
        }
        let found = self.user_by_ref(user).ok_or(ErrorCode::Unauthenticated)?;
        if found.status == UserStatus::Inactive {
            return Err(ErrorCode::UserInactive);
        }
        let mut candidates = may_evict.iter();
        while self.sessions.len() >= self.limits.sessions as usize {
            // Nobody may give way: the login is refused and may be tried again.
            let oldest = candidates.next().ok_or(ErrorCode::TransientNotAccepted)?;
            self.end_session(step, *oldest, SessionEnd::Expired);
        }
        let key = SessionKey {
            client: step.request.client,
            session: step.at.op,
        };
        self.session_order.insert(key.session, key.client);
        self.sessions.insert(
            key.client,
            Arc::new(Session {
                key,
                user_id: user.user_id,
                user_created_at: user.created_at,
                verifier: *verifier,
                register_checksum: step.request.request_checksum,
                registered_at: step.at,
                memberships: BTreeSet::new(),
                receipts: ReceiptWindow::default(),
            }),
        );
        let user_key = UserKey {
            user_id: user.user_id,
            user_created_at: user.created_at,
        };
        step.facts
            .push(Fact::SessionRegistered(fact::session_body(user_key, key)));
        step.events.push(Event::SessionOpened {
            session: key,
            user_id: user.user_id,
        });
        Ok(Outcome::Registered { user_id: user.user_id })
    }

    pub(super) fn logout(&mut self, step: &mut Step) -> Ruling {
        if self.end_session(step, step.session(), SessionEnd::Logout) {
            Ok(Outcome::EMPTY)
        } else {
            Err(ErrorCode::Unauthenticated)
        }
    }

    pub(super) fn expire_sessions(&mut self, step: &mut Step, sessions: &[SessionKey]) -> Outcome {
        for session in sessions {
            self.end_session(step, *session, SessionEnd::Expired);
        }
        Outcome::EMPTY
    }

    /// Ends every session of a user, oldest first.
    pub(super) fn end_sessions_of(&mut self, step: &mut Step, user_id: u32) {
        let sessions: Vec<SessionKey> = self
            .sessions()
            .filter(|session| session.user_id == user_id)
            .map(|session| session.key)
            .collect();
        for session in sessions {
            self.end_session(step, session, SessionEnd::Revoked);
        }
    }

    /// Ends one session and its memberships. Returns whether there was such a session.
    fn end_session(&mut self, step: &mut Step, key: SessionKey, reason: SessionEnd) -> bool {
        let Some(session) = self.session(key) else { return false };
        let user = fact::user_key_of_session(session);
        for group in session.memberships.clone() {
            self.end_membership(step, &group, key, LeaveReason::SessionEnded);
        }
        self.sessions.remove(&key.client);
        self.session_order.remove(&key.session);
        step.facts.push(fact::session_closed(user, key, reason));
        step.events.push(Event::SessionEnded { session: key, reason });
        true
    }
}
