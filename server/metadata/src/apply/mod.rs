//! Applying committed entries, the same on every replica.
//!
//! An entry was admitted against an older state than the one it meets here, so every rule that depends on the state is
//! checked again; a refusal found here is committed and final (wire 3.3).

mod groups;
mod sessions;
mod streams;
mod topics;
mod users;

use iggy_protocol::ErrorCode;

use crate::change::Change;
use crate::change_log::Fact;
use crate::event::Event;
use crate::keys::SessionKey;
use crate::metadata::Metadata;
use crate::position::{Position, RequestKey};
use crate::receipt::{Outcome, Receipt, Recognition};

/// What applying one entry produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The answer to the request, with the position of the entry that first answered it. Entries of the server's own
    /// have one too; nobody waits for it.
    pub receipt: Receipt,
    /// What the rest of the node has to do, in order.
    pub events: Vec<Event>,
}

/// The entry being applied and what came of it so far.
pub(crate) struct Step {
    pub at: Position,
    pub request: RequestKey,
    pub events: Vec<Event>,
    pub facts: Vec<Fact>,
}

impl Step {
    pub(crate) fn session(&self) -> SessionKey {
        self.request.session_key()
    }
}

/// Result of one change's own rules.
pub(crate) type Ruling = Result<Outcome, ErrorCode>;

impl Metadata {
    /// Applies one committed entry. Entries come in ascending order of their position, each exactly once.
    ///
    /// A request that was applied before, whose resend slipped into the log beside it, gets its first answer again and
    /// changes nothing.
    pub fn apply(&mut self, at: Position, request: RequestKey, change: &Change) -> Applied {
        debug_assert!(at.op > self.applied.op, "entries are applied in order");
        self.applied = at;
        let mut step = Step {
            at,
            request,
            events: Vec::new(),
            facts: Vec::new(),
        };
        if request.keeps_receipt() {
            match self.recognise(&request) {
                Ok(Recognition::New) => {}
                Ok(Recognition::Replay(receipt)) => {
                    return Applied {
                        receipt,
                        events: Vec::new(),
                    };
                }
                Ok(Recognition::Applied) => return step.finish(Outcome::Refused(ErrorCode::RequestAlreadyApplied)),
                Ok(Recognition::TooOld) => return step.finish(Outcome::Refused(ErrorCode::RequestTooOld)),
                Err(code) => return step.finish(Outcome::Refused(code)),
            }
        }
        let outcome = self.run(&mut step, change).unwrap_or_else(Outcome::Refused);
        self.changes
            .append(&at, request.actor(), std::mem::take(&mut step.facts), &self.limits);
        let applied = step.finish(outcome);
        if request.keeps_receipt() {
            // The session may have ended by its own request: a logout, or a user who deletes itself.
            if let Some(session) = self.session_mut(request.session_key()) {
                session.receipts.keep(applied.receipt.clone());
            }
        }
        applied
    }

    /// What the receipts say about a session's request, or `Unauthenticated` when there is no such session.
    pub fn recognise(&self, request: &RequestKey) -> Result<Recognition, ErrorCode> {
        self.session(request.session_key())
            .map(|session| session.receipts.recognise(request.request))
            .ok_or(ErrorCode::Unauthenticated)
    }

    fn run(&mut self, step: &mut Step, change: &Change) -> Ruling {
        match change {
            Change::Bootstrap {
                log_id,
                root_username,
                root_password_hash,
            } => self.bootstrap(step, *log_id, root_username, root_password_hash),
            Change::SetLimits(limits) => {
                self.limits = limits.at_least_one();
                self.changes.trim(&self.limits);
                Ok(Outcome::EMPTY)
            }
            Change::Register {
                user,
                verifier,
                may_evict,
            } => self.register(step, user, verifier, may_evict),
            Change::Logout => self.logout(step),
            Change::ExpireSessions { sessions } => Ok(self.expire_sessions(step, sessions)),
            Change::ExpireTokens => Ok(self.expire_tokens(step)),
            Change::CreateStream { name, explicit } => self.create_stream(step, name, explicit),
            Change::UpdateStream { stream, name } => self.update_stream(step, stream, name),
            Change::DeleteStream { stream } => self.delete_stream(step, stream),
            Change::CreateTopic {
                stream,
                name,
                explicit,
                defaults,
                placement,
            } => self.create_topic(step, stream, name, explicit, defaults, placement),
            Change::UpdateTopic {
                topic,
                name,
                set,
                reset,
                defaults,
            } => self.update_topic(step, topic, name.as_ref(), set, reset, defaults),
            Change::DeleteTopic { topic } => self.delete_topic(step, topic),
            Change::CreatePartitions { topic, placement } => self.create_partitions(step, topic, placement),
            Change::DeletePartitions { topic, count } => self.delete_partitions(step, topic, *count),
            Change::BeginHistory { partition, losses } => self.begin_history(step, partition, *losses),
            Change::TruncatePartition {
                partition,
                before_offset,
            } => self.truncate_partition(step, partition, *before_offset),
            Change::CreateGroup { topic, name } => self.create_group(step, topic, name),
            Change::DeleteGroup { group } => self.delete_group(step, group),
            Change::JoinGroup { group } => self.join_group(step, group),
            Change::LeaveGroup { group } => self.leave_group(step, group),
            Change::CreateUser {
                username,
                password_hash,
                status,
                permissions,
            } => self.create_user(step, username, password_hash, *status, permissions.as_ref()),
            Change::UpdateUser { user, username, status } => self.update_user(step, user, username.as_ref(), *status),
            Change::DeleteUser { user } => self.delete_user(step, user),
            Change::ChangePassword {
                user,
                verified_hash,
                password_hash,
            } => self.change_password(step, user, verified_hash, password_hash),
            Change::UpdatePermissions { user, permissions } => {
                self.update_permissions(step, user, permissions.as_ref())
            }
            Change::CreateToken {
                user,
                name,
                hash,
                lifetime,
                limit,
            } => self.create_token(step, user, name, hash, *lifetime, *limit),
            Change::DeleteToken { user, name } => self.delete_token(step, user, name),
        }
    }
}

impl Step {
    fn finish(self, outcome: Outcome) -> Applied {
        Applied {
            receipt: Receipt {
                request: self.request,
                at: self.at,
                outcome,
            },
            events: self.events,
        }
    }
}

impl RequestKey {
    /// The user a record of the change log names, if a client asked for the entry.
    pub(crate) fn actor(&self) -> Option<u32> {
        (self.client != 0).then_some(self.user_id)
    }
}
