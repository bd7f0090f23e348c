//! Users, permissions and personal access tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use iggy_protocol::reply::metadata_record::{PermissionsReason, TokenDeletedBody, TokenReason};
use iggy_protocol::{ErrorCode, Name, Permissions};

use super::{Ruling, Step};
use crate::change::UserRef;
use crate::change_log::{Fact, fact};
use crate::event::Event;
use crate::metadata::{Metadata, TokenOwner};
use crate::model::user::{ROOT_USER_ID, Token, User, UserStatus};
use crate::queries::encode;
use crate::receipt::Outcome;

impl Metadata {
    pub(super) fn create_user(
        &mut self,
        step: &mut Step,
        username: &Name,
        password_hash: &str,
        status: UserStatus,
        permissions: Option<&Permissions>,
    ) -> Ruling {
        if self.user_names.contains_key(username) {
            return Err(ErrorCode::UserAlreadyExists);
        }
        let users = &self.users;
        let id = self
            .user_ids
            .take(|id| users.contains_key(&id))
            .ok_or(ErrorCode::UsersLimitReached)?;
        let user = User {
            id,
            created_at: step.at.timestamp,
            username: username.clone(),
            password_hash: password_hash.to_owned(),
            status,
            permissions: permissions.cloned().map(Arc::new),
            tokens: BTreeMap::new(),
        };
        let payload = encode::user_details(&user);
        step.facts.push(Fact::UserCreated(fact::user_body(&user)));
        self.user_names.insert(username.clone(), id);
        self.users.insert(id, Arc::new(user));
        Ok(Outcome::Done(payload))
    }

    pub(super) fn update_user(
        &mut self,
        step: &mut Step,
        user: &UserRef,
        username: Option<&Name>,
        status: Option<UserStatus>,
    ) -> Ruling {
        let found = self.user_by_ref(user).ok_or(ErrorCode::ResourceNotFound)?;
        if found.id == ROOT_USER_ID {
            return Err(ErrorCode::CannotModifyRootUser);
        }
        let old_name = found.username.clone();
        let is_disabled = found.status == UserStatus::Active && status == Some(UserStatus::Inactive);
        if let Some(username) = username {
            if self.user_names.get(username).is_some_and(|id| *id != user.user_id) {
                return Err(ErrorCode::UserAlreadyExists);
            }
            self.user_names.remove(&old_name);
            self.user_names.insert(username.clone(), user.user_id);
        }
        if let Some(found) = self.user_mut(user.user_id) {
            if let Some(username) = username {
                found.username = username.clone();
            }
            if let Some(status) = status {
                found.status = status;
            }
            step.facts.push(Fact::UserUpdated(fact::user_body(found)));
        }
        if is_disabled {
            self.end_sessions_of(step, user.user_id);
            step.events.push(Event::UserRevoked { user_id: user.user_id });
        }
        Ok(Outcome::EMPTY)
    }

    pub(super) fn delete_user(&mut self, step: &mut Step, user: &UserRef) -> Ruling {
        let found = self.user_by_ref(user).ok_or(ErrorCode::ResourceNotFound)?;
        if found.id == ROOT_USER_ID {
            return Err(ErrorCode::CannotDeleteUser);
        }
        let name = found.username.clone();
        let hashes: Vec<[u8; 32]> = found.tokens.values().map(|token| token.hash).collect();
        let deleted = Fact::UserDeleted(fact::user_named(found));
        self.end_sessions_of(step, user.user_id);
        for hash in hashes {
            self.tokens.remove(&hash);
        }
        self.user_names.remove(&name);
        self.users.remove(&user.user_id);
        step.facts.push(deleted);
        step.events.push(Event::UserRevoked { user_id: user.user_id });
        Ok(Outcome::EMPTY)
    }

    pub(super) fn change_password(
        &mut self,
        step: &mut Step,
        user: &UserRef,
        verified_hash: &str,
        password_hash: &str,
    ) -> Ruling {
        let found = self.user_by_ref(user).ok_or(ErrorCode::ResourceNotFound)?;
        if found.password_hash != verified_hash {
            return Err(ErrorCode::InvalidCredentials);
        }
        let changed = Fact::UserPasswordChanged(fact::user_named(found));
        if let Some(found) = self.user_mut(user.user_id) {
            password_hash.clone_into(&mut found.password_hash);
        }
        step.facts.push(changed);
        Ok(Outcome::EMPTY)
    }

    pub(super) fn update_permissions(
        &mut self,
        step: &mut Step,
        user: &UserRef,
        permissions: Option<&Permissions>,
    ) -> Ruling {
        let found = self.user_by_ref(user).ok_or(ErrorCode::ResourceNotFound)?;
        if found.id == ROOT_USER_ID {
            return Err(ErrorCode::CannotChangePermissions);
        }
        if let Some(found) = self.user_mut(user.user_id) {
            found.permissions = permissions.cloned().map(Arc::new);
            step.facts
                .push(fact::permissions_updated(found, PermissionsReason::Updated));
        }
        Ok(Outcome::EMPTY)
    }

    pub(super) fn create_token(
        &mut self,
        step: &mut Step,
        user: &UserRef,
        name: &Name,
        hash: &[u8; 32],
        lifetime: Option<u64>,
        limit: u32,
    ) -> Ruling {
        let found = self.user_by_ref(user).ok_or(ErrorCode::Unauthenticated)?;
        // A hash that exists would let one token open two accounts; random tokens never collide, a reused one is refused.
        if found.tokens.contains_key(name) || self.tokens.contains_key(hash) {
            return Err(ErrorCode::PersonalAccessTokenAlreadyExists);
        }
        if found.tokens.len() >= limit as usize {
            return Err(ErrorCode::PersonalAccessTokensLimitReached);
        }
        let expiry_at = match lifetime {
            None => 0,
            Some(lifetime) => step
                .at
                .timestamp
                .checked_add(lifetime)
                .ok_or(ErrorCode::InvalidPersonalAccessTokenExpiry)?,
        };
        let token = Token { hash: *hash, expiry_at };
        step.facts
            .push(Fact::PersonalAccessTokenCreated(fact::token_body(found, name, &token)));
        if let Some(found) = self.user_mut(user.user_id) {
            found.tokens.insert(name.clone(), token);
        }
        self.tokens.insert(
            *hash,
            TokenOwner {
                user_id: user.user_id,
                name: name.clone(),
            },
        );
        Ok(Outcome::TokenCreated)
    }

    pub(super) fn delete_token(&mut self, step: &mut Step, user: &UserRef, name: &Name) -> Ruling {
        self.user_by_ref(user).ok_or(ErrorCode::Unauthenticated)?;
        if self.remove_token(step, user.user_id, name, TokenReason::Deleted) {
            Ok(Outcome::EMPTY)
        } else {
            Err(ErrorCode::ResourceNotFound)
        }
    }

    pub(super) fn expire_tokens(&mut self, step: &mut Step) -> Outcome {
        let now = step.at.timestamp;
        let expired: Vec<(u32, Name)> = self
            .users()
            .flat_map(|user| user.tokens.iter().map(move |(name, token)| (user.id, name, token)))
            .filter(|(_, _, token)| token.is_expired(now))
            .map(|(user_id, name, _)| (user_id, name.clone()))
            .collect();
        for (user_id, name) in expired {
            self.remove_token(step, user_id, &name, TokenReason::Expired);
        }
        Outcome::EMPTY
    }

    fn remove_token(&mut self, step: &mut Step, user_id: u32, name: &Name, reason: TokenReason) -> bool {
        let Some(user) = self.user_mut(user_id) else {
            return false;
        };
        let Some(token) = user.tokens.remove(name) else {
            return false;
        };
        step.facts.push(Fact::PersonalAccessTokenDeleted(TokenDeletedBody {
            user: fact::user_key(user),
            name: name.clone(),
            reason,
        }));
        self.tokens.remove(&token.hash);
        true
    }

    /// Takes permissions on a deleted stream away, so that its id can never give them on another stream.
    pub(super) fn prune_stream_permissions(&mut self, step: &mut Step, stream_id: u32) {
        self.prune_permissions(step, |permissions| permissions.streams.remove(&stream_id).is_some());
    }

    /// Takes permissions on a deleted topic away, so that its id can never give them on another topic.
    pub(super) fn prune_topic_permissions(&mut self, step: &mut Step, stream_id: u32, topic_id: u32) {
        self.prune_permissions(step, |permissions| {
            permissions
                .streams
                .get_mut(&stream_id)
                .is_some_and(|stream| stream.topics.remove(&topic_id).is_some())
        });
    }

    fn prune_permissions(&mut self, step: &mut Step, remove: impl Fn(&mut Permissions) -> bool) {
        let mut pruned = Vec::new();
        for user in self.users() {
            let Some(permissions) = &user.permissions else { continue };
            let mut permissions = Permissions::clone(permissions);
            if remove(&mut permissions) {
                pruned.push((user.id, permissions));
            }
        }
        for (user_id, permissions) in pruned {
            if let Some(user) = self.user_mut(user_id) {
                user.permissions = Some(Arc::new(permissions));
                step.facts
                    .push(fact::permissions_updated(user, PermissionsReason::ResourceDeleted));
            }
        }
    }
}
