//! Who may do what (behaviour of permissions, wire 5.6).
//!
//! One function answers for every command. Managing something implies reading it; managing or reading streams implies
//! the same for topics; reading a topic implies polling from it. Nothing but its own flag implies sending. The root user
//! may do everything.

use iggy_protocol::{Command, ErrorCode, GlobalPermissions, PermissionClass, Permissions};

use crate::metadata::Metadata;
use crate::model::user::{ROOT_USER_ID, UserStatus};

/// What a command is about, as far as permissions ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Nothing in particular, or a resource that does not exist: only global permissions count, so that a user without
    /// them learns nothing about names.
    Nothing,
    /// A user.
    User(u32),
    /// A stream.
    Stream(u32),
    /// A topic.
    Topic {
        /// Id of its stream.
        stream_id: u32,
        /// Id within the stream.
        topic_id: u32,
    },
}

impl Metadata {
    /// Whether a signed-in user may use a command on a target; `Unauthorized` when not, `Unauthenticated` when there is
    /// no such active user.
    pub fn authorize(&self, user_id: u32, command: Command, target: Target) -> Result<(), ErrorCode> {
        self.authorize_class(user_id, command.permission(), target)
    }

    /// As [`authorize`](Self::authorize), for a class of permission rather than the class of a command.
    pub fn authorize_class(&self, user_id: u32, class: PermissionClass, target: Target) -> Result<(), ErrorCode> {
        let user = self.user_by_id(user_id).ok_or(ErrorCode::Unauthenticated)?;
        if user.status != UserStatus::Active {
            return Err(ErrorCode::Unauthenticated);
        }
        let is_self = target == Target::User(user_id);
        if user_id == ROOT_USER_ID || allows(user.permissions.as_deref(), is_self, class, target) {
            Ok(())
        } else {
            Err(ErrorCode::Unauthorized)
        }
    }
}

/// What a user may do with one topic and around it, every implication drawn.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    read_stream: bool,
    manage_stream: bool,
    read_topics: bool,
    manage_topics: bool,
    read_topic: bool,
    manage_topic: bool,
    poll: bool,
    send: bool,
}

fn reach(permissions: Option<&Permissions>, target: Target) -> Reach {
    let Some(permissions) = permissions else {
        return Reach::default();
    };
    let global = &permissions.global;
    let (stream_id, topic_id) = match target {
        Target::Stream(stream_id) => (Some(stream_id), None),
        Target::Topic { stream_id, topic_id } => (Some(stream_id), Some(topic_id)),
        Target::Nothing | Target::User(_) => (None, None),
    };
    let stream = stream_id.and_then(|id| permissions.streams.get(&id));
    let flags = stream.map(|stream| stream.flags).unwrap_or_default();
    let topic = topic_id
        .and_then(|id| stream?.topics.get(&id))
        .copied()
        .unwrap_or_default();

    let manage_stream = global.manage_streams || flags.manage_stream;
    let read_stream = manage_stream || global.read_streams || flags.read_stream;
    let manage_topics = manage_stream || global.manage_topics || flags.manage_topics;
    let read_topics = manage_topics || read_stream || global.read_topics || flags.read_topics;
    let manage_topic = manage_topics || topic.manage_topic;
    let read_topic = manage_topic || read_topics || topic.read_topic;
    Reach {
        read_stream,
        manage_stream,
        read_topics,
        manage_topics,
        read_topic,
        manage_topic,
        poll: read_topic || global.poll_messages || flags.poll_messages || topic.poll_messages,
        send: global.send_messages || flags.send_messages || topic.send_messages,
    }
}

fn allows(permissions: Option<&Permissions>, is_self: bool, class: PermissionClass, target: Target) -> bool {
    let global = permissions.map_or_else(GlobalPermissions::default, |permissions| permissions.global);
    let reach = reach(permissions, target);
    match class {
        PermissionClass::Anyone | PermissionClass::SignedIn | PermissionClass::OwnTokens => true,
        PermissionClass::ReadServers => global.manage_servers || global.read_servers,
        PermissionClass::ManageServers => global.manage_servers,
        PermissionClass::ReadUsers => is_self || global.manage_users || global.read_users,
        PermissionClass::ManageUsers => global.manage_users,
        // The request's scope decides; without one, only somebody who may manage every scope passes.
        PermissionClass::ByScope => match target {
            Target::Stream(_) => reach.manage_stream,
            Target::Topic { .. } => reach.manage_topic,
            Target::User(_) => global.manage_users,
            Target::Nothing => global.manage_users && global.manage_streams,
        },
        PermissionClass::ManageUsersOrSelf => is_self || global.manage_users,
        PermissionClass::ReadStreams => global.manage_streams || global.read_streams,
        PermissionClass::ManageStreams => global.manage_streams,
        PermissionClass::ReadStream => reach.read_stream,
        PermissionClass::ManageStream => reach.manage_stream,
        PermissionClass::ReadTopics => reach.read_topics,
        PermissionClass::ManageTopics => reach.manage_topics,
        PermissionClass::ReadTopic => reach.read_topic,
        PermissionClass::ManageTopic => reach.manage_topic,
        PermissionClass::PollMessages => reach.poll,
        PermissionClass::SendMessages => reach.send,
        PermissionClass::PollOrSend => reach.poll || reach.send,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iggy_protocol::{StreamFlags, StreamPermissions, TopicPermissions};

    use super::*;

    const TOPIC: Target = Target::Topic {
        stream_id: 1,
        topic_id: 2,
    };
    const OTHER_TOPIC: Target = Target::Topic {
        stream_id: 1,
        topic_id: 3,
    };
    const STREAM: Target = Target::Stream(1);
    const OTHER_STREAM: Target = Target::Stream(9);
    const ME: Target = Target::User(5);
    const OTHER_USER: Target = Target::User(6);

    fn global(set: impl FnOnce(&mut GlobalPermissions)) -> Permissions {
        let mut permissions = Permissions::default();
        set(&mut permissions.global);
        permissions
    }

    fn on_stream(set: impl FnOnce(&mut StreamFlags)) -> Permissions {
        let mut stream = StreamPermissions::default();
        set(&mut stream.flags);
        Permissions {
            streams: BTreeMap::from([(1, stream)]),
            ..Permissions::default()
        }
    }

    fn on_topic(set: impl FnOnce(&mut TopicPermissions)) -> Permissions {
        let mut topic = TopicPermissions::default();
        set(&mut topic);
        let stream = StreamPermissions {
            topics: BTreeMap::from([(2, topic)]),
            ..StreamPermissions::default()
        };
        Permissions {
            streams: BTreeMap::from([(1, stream)]),
            ..Permissions::default()
        }
    }

    fn may(permissions: &Permissions, command: Command, target: Target) -> bool {
        allows(Some(permissions), target == ME, command.permission(), target)
    }

    #[test]
    fn given_one_flag_when_asking_for_commands_should_allow_what_it_implies_and_nothing_else() {
        use Command as C;
        type Uses = Vec<(Command, Target)>;
        let cases: Vec<(&str, Permissions, Uses, Uses)> = vec![
            (
                "manage servers",
                global(|p| p.manage_servers = true),
                vec![
                    (C::GetStats, Target::Nothing),
                    (C::GetSnapshot, Target::Nothing),
                    (C::GetMetadataChanges, Target::Nothing),
                ],
                vec![(C::GetUsers, Target::Nothing), (C::GetStreams, Target::Nothing)],
            ),
            (
                "read servers",
                global(|p| p.read_servers = true),
                vec![(C::GetStats, Target::Nothing), (C::GetClients, Target::Nothing)],
                vec![
                    (C::GetSnapshot, Target::Nothing),
                    (C::GetMetadataChanges, Target::Nothing),
                ],
            ),
            (
                "manage users",
                global(|p| p.manage_users = true),
                vec![
                    (C::GetUsers, Target::Nothing),
                    (C::CreateUser, Target::Nothing),
                    (C::ChangePassword, OTHER_USER),
                    (C::UpdatePermissions, OTHER_USER),
                    (C::UpdateResource, OTHER_USER),
                ],
                vec![
                    (C::GetStats, Target::Nothing),
                    (C::CreateStream, Target::Nothing),
                    (C::UpdateResource, STREAM),
                ],
            ),
            (
                "read users",
                global(|p| p.read_users = true),
                vec![(C::GetUser, OTHER_USER), (C::GetUsers, Target::Nothing)],
                vec![(C::CreateUser, Target::Nothing), (C::ChangePassword, OTHER_USER)],
            ),
            (
                "manage streams",
                global(|p| p.manage_streams = true),
                vec![
                    (C::CreateStream, Target::Nothing),
                    (C::DeleteStream, STREAM),
                    (C::UpdateResource, STREAM),
                    (C::CreateTopic, STREAM),
                    (C::DeleteTopic, TOPIC),
                    (C::GetStreams, Target::Nothing),
                    (C::PollMessages, TOPIC),
                    (C::JoinConsumerGroup, TOPIC),
                ],
                vec![(C::SendMessages, TOPIC), (C::CreateUser, Target::Nothing)],
            ),
            (
                "read streams",
                global(|p| p.read_streams = true),
                vec![
                    (C::GetStream, STREAM),
                    (C::GetTopics, STREAM),
                    (C::GetTopic, TOPIC),
                    (C::PollMessagesDeferred, TOPIC),
                    (C::CreateConsumerGroup, TOPIC),
                ],
                vec![
                    (C::CreateStream, Target::Nothing),
                    (C::CreateTopic, STREAM),
                    (C::CreatePartitions, TOPIC),
                    (C::SendMessages, TOPIC),
                ],
            ),
            (
                "manage topics",
                global(|p| p.manage_topics = true),
                vec![
                    (C::CreateTopic, STREAM),
                    (C::DeleteSegments, TOPIC),
                    (C::UpdateResource, TOPIC),
                    (C::FetchMessages, TOPIC),
                ],
                vec![
                    (C::GetStream, STREAM),
                    (C::DeleteStream, STREAM),
                    (C::UpdateResource, STREAM),
                    (C::SendMessages, TOPIC),
                ],
            ),
            (
                "poll",
                global(|p| p.poll_messages = true),
                vec![
                    (C::PollMessages, TOPIC),
                    (C::StoreConsumerOffset, TOPIC),
                    (C::GetPartitionRoute, TOPIC),
                ],
                vec![
                    (C::GetTopic, TOPIC),
                    (C::JoinConsumerGroup, TOPIC),
                    (C::SendMessages, TOPIC),
                    (C::GetStreams, Target::Nothing),
                ],
            ),
            (
                "send",
                global(|p| p.send_messages = true),
                vec![(C::SendMessages, TOPIC), (C::GetPartitionRoute, TOPIC)],
                vec![
                    (C::PollMessages, TOPIC),
                    (C::GetConsumerOffset, TOPIC),
                    (C::GetTopic, TOPIC),
                ],
            ),
            (
                "manage one stream",
                on_stream(|p| p.manage_stream = true),
                vec![
                    (C::DeleteStream, STREAM),
                    (C::CreateTopic, STREAM),
                    (C::CreatePartitions, TOPIC),
                    (C::PollMessages, TOPIC),
                ],
                vec![
                    (C::GetStream, OTHER_STREAM),
                    (C::CreateStream, Target::Nothing),
                    (C::GetStreams, Target::Nothing),
                    (C::SendMessages, TOPIC),
                ],
            ),
            (
                "send to one stream",
                on_stream(|p| p.send_messages = true),
                vec![(C::SendMessages, TOPIC), (C::SendMessages, OTHER_TOPIC)],
                vec![
                    (
                        C::SendMessages,
                        Target::Topic {
                            stream_id: 9,
                            topic_id: 2,
                        },
                    ),
                    (C::PollMessages, TOPIC),
                ],
            ),
            (
                "read topics of one stream",
                on_stream(|p| p.read_topics = true),
                vec![
                    (C::GetTopics, STREAM),
                    (C::GetTopic, OTHER_TOPIC),
                    (C::PollMessages, TOPIC),
                ],
                vec![(C::GetStream, STREAM), (C::CreateTopic, STREAM)],
            ),
            (
                "manage one topic",
                on_topic(|p| p.manage_topic = true),
                vec![
                    (C::DeleteTopic, TOPIC),
                    (C::GetConsumerGroups, TOPIC),
                    (C::PollMessages, TOPIC),
                ],
                vec![
                    (C::GetTopics, STREAM),
                    (C::GetTopic, OTHER_TOPIC),
                    (C::SendMessages, TOPIC),
                ],
            ),
            (
                "poll from one topic",
                on_topic(|p| p.poll_messages = true),
                vec![(C::PollMessages, TOPIC), (C::DeleteConsumerOffset, TOPIC)],
                vec![(C::PollMessages, OTHER_TOPIC), (C::GetTopic, TOPIC)],
            ),
        ];
        for (name, permissions, allowed, denied) in cases {
            for (command, target) in allowed {
                assert!(
                    may(&permissions, command, target),
                    "'{name}' allows {command} on {target:?}"
                );
            }
            for (command, target) in denied {
                assert!(
                    !may(&permissions, command, target),
                    "'{name}' denies {command} on {target:?}"
                );
            }
        }
    }

    #[test]
    fn given_no_permissions_when_asking_for_any_command_should_allow_only_what_concerns_oneself() {
        use Command as C;
        let open = [
            C::Ping,
            C::GetClusterMetadata,
            C::DescribeOptions,
            C::BindSession,
            C::GetMe,
            C::LegacyLogin,
            C::Logout,
            C::Login,
            C::GetPersonalAccessTokens,
            C::CreatePersonalAccessToken,
            C::DeletePersonalAccessToken,
            C::LegacyTokenLogin,
            C::LoginWithToken,
            C::CancelDeferred,
        ];
        for command in Command::ALL {
            let is_allowed = allows(None, false, command.permission(), TOPIC);
            assert_eq!(is_allowed, open.contains(command), "{command}");
        }
        assert!(may(&Permissions::default(), C::GetUser, ME));
        assert!(may(&Permissions::default(), C::ChangePassword, ME));
        assert!(!may(&Permissions::default(), C::UpdatePermissions, ME));
        assert!(!may(&Permissions::default(), C::UpdateResource, ME));
    }
}
