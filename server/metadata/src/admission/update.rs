//! Updates of streams, topics and users: set these options, reset those (wire 11.6).

use iggy_protocol::option_catalog::{Scope, check_update, check_update_shape};
use iggy_protocol::options::Options;
use iggy_protocol::request::system::{Resource, UpdateResource};
use iggy_protocol::{ErrorCode, Name, PermissionClass};

use super::{Admission, Admitted, Settings};
use crate::access::Target;
use crate::change::{Change, StreamRef, UserRef};
use crate::metadata::Metadata;
use crate::model::user::{ROOT_USER_ID, UserStatus};

impl Metadata {
    pub(super) fn admit_update(&self, settings: &Settings, user_id: u32, request: &UpdateResource) -> Admitted {
        match &request.resource {
            Resource::Stream(stream) => {
                let found = self.permitted_stream(user_id, PermissionClass::ManageStream, stream)?;
                let set = checked(Scope::Stream, request)?;
                let Some(name) = text(&set, "name")? else {
                    // A stream has no other option that an update may set, so this is not reached with a valid one.
                    return Err(ErrorCode::InvalidCommand);
                };
                if self.stream_names.get(&name).is_some_and(|id| *id != found.id) {
                    return Err(ErrorCode::StreamNameAlreadyExists);
                }
                Ok(Admission::Ready(Change::UpdateStream {
                    stream: StreamRef::of(found),
                    name,
                }))
            }
            Resource::Topic { stream, topic } => {
                let (stream, topic) = self.permitted_topic(user_id, PermissionClass::ManageTopic, stream, topic)?;
                let mut set = checked(Scope::Topic, request)?;
                // A value that means "server default" was dropped: the key goes back to its default like a reset one.
                let dropped = request.set.iter().map(|(key, _)| key).filter(|key| !set.contains(key));
                let reset: Vec<Name> = request.reset.iter().chain(dropped).cloned().collect();
                let name = text(&set, "name")?;
                set.remove("name");
                if name
                    .as_ref()
                    .and_then(|name| stream.topic_names.get(name))
                    .is_some_and(|id| *id != topic.id)
                {
                    return Err(ErrorCode::TopicNameAlreadyExists);
                }
                topic.options.updated(&set, &reset, &settings.topic_defaults)?;
                let defaults = settings.topic_defaults.iter().filter(|(key, _)| reset.contains(key));
                let defaults = defaults.map(|(key, value)| (key.clone(), value.clone())).collect();
                Ok(Admission::Ready(Change::UpdateTopic {
                    topic: topic.key(stream.id),
                    name,
                    set,
                    reset,
                    defaults,
                }))
            }
            Resource::User(user) => {
                let found = self.permit(user_id, PermissionClass::ManageUsers, self.user(user), |user| {
                    Target::User(user.id)
                })?;
                let set = checked(Scope::User, request)?;
                if found.id == ROOT_USER_ID {
                    return Err(ErrorCode::CannotModifyRootUser);
                }
                let username = text(&set, "username")?;
                if username
                    .as_ref()
                    .and_then(|name| self.user_names.get(name))
                    .is_some_and(|id| *id != found.id)
                {
                    return Err(ErrorCode::UserAlreadyExists);
                }
                let status = text(&set, "status")?.map(|status| match status.as_str() {
                    "active" => Ok(UserStatus::Active),
                    "inactive" => Ok(UserStatus::Inactive),
                    _ => Err(ErrorCode::InvalidUserStatus),
                });
                let status = status.transpose()?;
                Ok(Admission::Ready(Change::UpdateUser {
                    user: UserRef::of(found),
                    username,
                    status,
                }))
            }
        }
    }
}

/// What an update sets, canonical, after every refusal that does not depend on the resource.
fn checked(scope: Scope, request: &UpdateResource) -> Result<Options, ErrorCode> {
    check_update_shape(scope, &request.set, &request.reset).map_err(|error| error.code())?;
    check_update(scope, &request.set, &request.reset).map_err(|error| error.code())
}

/// A text option that names a column.
fn text(options: &Options, key: &str) -> Result<Option<Name>, ErrorCode> {
    let Some(value) = options.get(key) else { return Ok(None) };
    let text = value.as_str().map_err(|_| ErrorCode::InvalidOptionValue)?;
    Name::new(text).map(Some).map_err(|_| ErrorCode::InvalidOptionValue)
}
