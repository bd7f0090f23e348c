//! Turning a client's request into a change for the log, on the primary.
//!
//! Admission recognises resends, checks permissions, resolves names to ids and refuses what cannot succeed, all against
//! the applied state. What it lets through is checked again when it applies. It does no work that takes long: hashing
//! and verifying passwords, making tokens and asking a partition for an offset are handed back as pending steps, each
//! finished by one call that returns the change.

mod groups;
mod pending;
mod resources;
mod sessions;
mod update;
mod users;

use iggy_protocol::option_catalog::{OptionError, Scope, check_create};
use iggy_protocol::options::Options;
use iggy_protocol::{Command, Decode, ErrorCode, Operation, PermissionClass};

use crate::access::Target;
use crate::change::Change;
use crate::limits::TOKENS_PER_USER_MAX;
use crate::metadata::Metadata;
use crate::options::catalog_defaults;
use crate::placement::Place;
use crate::position::RequestKey;
use crate::receipt::{Receipt, Recognition};

pub use pending::{PendingPassword, PendingToken, PendingTruncation, PendingUser};
pub use sessions::Credentials;

/// What the primary's configuration and the cluster say about new resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    topic_defaults: Options,
    places: Vec<Place>,
    /// Personal access tokens one user may have. Default 100.
    pub tokens_per_user: u32,
}

fn places(nodes: Vec<u8>) -> Vec<Place> {
    let place = |node| Place {
        node,
        rack: None,
        is_ready: true,
    };
    nodes.into_iter().map(place).collect()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            topic_defaults: catalog_defaults(1),
            places: places(vec![0]),
            tokens_per_user: TOKENS_PER_USER_MAX,
        }
    }
}

impl Settings {
    /// Settings of a server on `nodes`, the replica ids that may store partitions.
    ///
    /// `topic_defaults` are topic options whose value differs from the catalogue's when a client leaves them out, text or
    /// canonical; a bad one is refused as in a create.
    pub fn new(nodes: Vec<u8>, replication_factor: u32, topic_defaults: &Options) -> Result<Self, OptionError> {
        let mut defaults = catalog_defaults(replication_factor);
        for (key, value) in check_create(Scope::Topic, topic_defaults)?.iter() {
            defaults.insert(key.clone(), value.clone());
        }
        Ok(Self {
            topic_defaults: defaults,
            places: places(nodes),
            ..Self::default()
        })
    }

    /// Names the rack of each node: copies of a partition go to different racks as far as there are so many.
    ///
    /// All nodes have one or none has: `None` when `racks` are not as many as the nodes.
    pub fn with_racks(mut self, racks: Vec<String>) -> Option<Self> {
        if racks.len() != self.places.len() {
            return None;
        }
        for (place, rack) in self.places.iter_mut().zip(racks) {
            place.rack = Some(rack);
        }
        Some(self)
    }

    /// Says which nodes are ready to lead something new; in the beginning all are.
    pub fn set_ready(&mut self, ready: &[u8]) {
        for place in &mut self.places {
            place.is_ready = ready.contains(&place.node);
        }
    }
}

/// Answer to a request for a metadata write.
#[derive(Debug)]
pub enum Admission {
    /// Propose this change under the request's key; its receipt is the answer.
    Ready(Change),
    /// Applied before: answer with this receipt, its original position included.
    Replay(Receipt),
    /// Refused before commit: answer with this status and an empty body.
    Refused(ErrorCode),
    /// Hash this password (Argon2id), then propose [`PendingUser::finish`].
    HashPassword(PendingUser),
    /// Verify the current password, hash the new one, then propose [`PendingPassword::finish`].
    VerifyPassword(PendingPassword),
    /// Make a random token, propose [`PendingToken::finish`], and append the token to the reply of the first commit.
    MintToken(PendingToken),
    /// Ask the partition's primary where its oldest sealed segments end, then propose [`PendingTruncation::finish`].
    ResolveSegments(PendingTruncation),
}

/// What one command's own rules say: a change or a pending step, or a refusal.
pub(crate) type Admitted = Result<Admission, ErrorCode>;

impl Metadata {
    /// Admits a metadata write or a logout of a signed-in session.
    ///
    /// `request` is the request's key with the authenticated user; before the change is proposed its operation is set to
    /// [`committed_operation`]. Reads and registrations are refused with `InvalidCommand`: they have functions of their
    /// own.
    pub fn admit(&self, settings: &Settings, request: &RequestKey, command: Command, body: &[u8]) -> Admission {
        match self.recognise(request) {
            Ok(Recognition::New) => {}
            // The number belongs to another request: its receipt would say nothing about this one.
            Ok(Recognition::Replay(receipt)) if receipt.request.operation.as_requested() != command.operation() => {
                return Admission::Refused(ErrorCode::InvalidCommand);
            }
            Ok(Recognition::Replay(receipt)) => return Admission::Replay(receipt),
            Ok(Recognition::Applied) => return Admission::Refused(ErrorCode::RequestAlreadyApplied),
            Ok(Recognition::TooOld) => return Admission::Refused(ErrorCode::RequestTooOld),
            Err(code) => return Admission::Refused(code),
        }
        self.admit_new(settings, request, command, body)
            .unwrap_or_else(Admission::Refused)
    }

    fn admit_new(&self, settings: &Settings, request: &RequestKey, command: Command, body: &[u8]) -> Admitted {
        let user_id = request.user_id;
        match command {
            Command::Logout if body.is_empty() => Ok(Admission::Ready(Change::Logout)),
            Command::CreateStream => self.admit_create_stream(user_id, decode(body)?),
            Command::DeleteStream => self.admit_delete_stream(user_id, &decode(body)?),
            Command::CreateTopic => self.admit_create_topic(settings, user_id, decode(body)?),
            Command::DeleteTopic => self.admit_delete_topic(user_id, &decode(body)?),
            Command::CreatePartitions => self.admit_create_partitions(settings, user_id, &decode(body)?),
            Command::DeletePartitions => self.admit_delete_partitions(user_id, &decode(body)?),
            Command::DeleteSegments => self.admit_delete_segments(user_id, &decode(body)?),
            Command::UpdateResource => self.admit_update(settings, user_id, &decode(body)?),
            Command::CreateConsumerGroup => self.admit_create_group(user_id, decode(body)?),
            Command::DeleteConsumerGroup => self.admit_delete_group(user_id, &decode(body)?),
            Command::JoinConsumerGroup => self.admit_join_group(user_id, &decode(body)?),
            Command::LeaveConsumerGroup => self.admit_leave_group(user_id, request.session_key(), &decode(body)?),
            Command::CreateUser => self.admit_create_user(user_id, decode(body)?),
            Command::DeleteUser => self.admit_delete_user(user_id, &decode(body)?),
            Command::UpdatePermissions => self.admit_update_permissions(user_id, decode(body)?),
            Command::ChangePassword => self.admit_change_password(user_id, decode(body)?),
            Command::CreatePersonalAccessToken => self.admit_create_token(settings, user_id, decode(body)?),
            Command::DeletePersonalAccessToken => self.admit_delete_token(user_id, decode(body)?),
            _ => Err(ErrorCode::InvalidCommand),
        }
    }

    /// Checks a permission on something that was looked up. A missing thing is told only to those who may see any.
    pub(crate) fn permit<T>(
        &self,
        user_id: u32,
        class: PermissionClass,
        found: Result<T, ErrorCode>,
        target: impl FnOnce(&T) -> Target,
    ) -> Result<T, ErrorCode> {
        let target = found.as_ref().map_or(Target::Nothing, target);
        self.authorize_class(user_id, class, target)?;
        found
    }
}

/// Reads a body that must end exactly; a malformed one is answered with the code its field calls for.
pub(crate) fn decode<'a, T: Decode<'a>>(body: &'a [u8]) -> Result<T, ErrorCode> {
    T::from_bytes(body).map_err(|error| error.code())
}

/// Operation of the committed reply to a command: some are rewritten before they are logged (wire 3.1 and 3.3).
pub const fn committed_operation(command: Command, change: &Change) -> Operation {
    match change {
        Change::CreateTopic { .. } => Operation::CreateTopicWithAssignments,
        Change::CreatePartitions { .. } => Operation::CreatePartitionsWithAssignments,
        Change::TruncatePartition { .. } => Operation::TruncatePartition,
        Change::UpdateStream { .. } => Operation::UpdateStreamResolved,
        Change::UpdateTopic { .. } => Operation::UpdateTopicResolved,
        Change::UpdateUser { .. } => Operation::UpdateUserResolved,
        _ => command.operation(),
    }
}
