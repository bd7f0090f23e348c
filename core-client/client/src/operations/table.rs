//! Everything this client can be asked for, in one table: what bindings and the lists of what they offer are made from.
//!
//! A test holds the table against the sources, so that nothing is missing from it and nothing in it is missing.

use iggy_protocol::Command;
use iggy_protocol::command::PermissionClass;

/// A group of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Module {
    /// The client itself: connecting, ending, uncertain operations.
    Client,
    /// Signing in and out.
    Sessions,
    /// The server as a whole.
    System,
    /// The nodes.
    Cluster,
    /// Users and what they may do.
    Users,
    /// Personal access tokens.
    PersonalAccessTokens,
    /// Streams.
    Streams,
    /// Topics.
    Topics,
    /// Partitions of topics.
    Partitions,
    /// Segments of partitions.
    Segments,
    /// Consumer groups.
    ConsumerGroups,
    /// Stored offsets.
    ConsumerOffsets,
    /// Sending and reading.
    Messages,
    /// Requests by code.
    Raw,
}

/// One operation of [`crate::IggyClient`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationEntry {
    /// The name of the method.
    pub name: &'static str,
    /// Where it belongs.
    pub module: Module,
    /// The command it sends; `None` when it sends none, or several, or any.
    pub command: Option<Command>,
    /// Whether it waits for something.
    pub is_async: bool,
}

impl OperationEntry {
    /// What its caller must be allowed to do; `None` when it sends no command of its own.
    pub const fn permission(&self) -> Option<PermissionClass> {
        match self.command {
            Some(command) => Some(command.permission()),
            None => None,
        }
    }
}

macro_rules! operations {
    ($($module:ident { $($kind:ident $name:ident $($command:ident)?;)* })*) => {
        /// Every operation of [`crate::IggyClient`], by module.
        pub const OPERATIONS: &[OperationEntry] = &[$($(OperationEntry {
            name: stringify!($name),
            module: Module::$module,
            command: operations!(@command $($command)?),
            is_async: operations!(@kind $kind),
        },)*)*];
    };
    (@command) => { None };
    (@command $command:ident) => { Some(Command::$command) };
    (@kind wait) => { true };
    (@kind call) => { false };
}

operations! {
    Client {
        call from_connection_string;
        call builder_from_connection_string;
        call builder;
        wait connect;
        wait disconnect;
        wait shutdown;
        call subscribe_events;
        call get_connection_info;
        wait resolve_operation;
        call abandon_operation;
        call uncertain_operations;
    }
    Sessions {
        wait login_user Login;
        wait login_with_personal_access_token LoginWithToken;
        wait logout_user Logout;
        call user_id;
    }
    System {
        wait ping Ping;
        call heartbeat_interval;
        wait get_stats GetStats;
        wait describe_options DescribeOptions;
        wait snapshot GetSnapshot;
        wait get_me GetMe;
        wait get_client GetClient;
        wait get_clients GetClients;
        wait get_metadata_changes GetMetadataChanges;
    }
    Cluster {
        wait get_cluster_metadata GetClusterMetadata;
    }
    Users {
        wait get_user GetUser;
        wait get_users GetUsers;
        wait create_user CreateUser;
        wait update_user UpdateResource;
        wait update_permissions UpdatePermissions;
        wait change_password ChangePassword;
        wait delete_user DeleteUser;
    }
    PersonalAccessTokens {
        wait get_personal_access_tokens GetPersonalAccessTokens;
        wait create_personal_access_token CreatePersonalAccessToken;
        wait delete_personal_access_token DeletePersonalAccessToken;
    }
    Streams {
        wait get_stream GetStream;
        wait get_streams GetStreams;
        wait create_stream CreateStream;
        wait update_stream UpdateResource;
        wait delete_stream DeleteStream;
    }
    Topics {
        wait get_topic GetTopic;
        wait get_topics GetTopics;
        wait create_topic CreateTopic;
        wait update_topic UpdateResource;
        wait delete_topic DeleteTopic;
    }
    Partitions {
        wait create_partitions CreatePartitions;
        wait delete_partitions DeletePartitions;
    }
    Segments {
        wait delete_segments DeleteSegments;
    }
    ConsumerGroups {
        wait get_consumer_group GetConsumerGroup;
        wait get_consumer_groups GetConsumerGroups;
        wait create_consumer_group CreateConsumerGroup;
        wait delete_consumer_group DeleteConsumerGroup;
        wait join_consumer_group JoinConsumerGroup;
        wait leave_consumer_group LeaveConsumerGroup;
        wait sync_consumer_group SyncConsumerGroup;
    }
    ConsumerOffsets {
        wait store_consumer_position StoreConsumerOffset;
        wait store_consumer_offset StoreConsumerOffset;
        wait get_consumer_offset GetConsumerOffset;
        wait delete_consumer_offset DeleteConsumerOffset;
        wait delete_consumer_position DeleteConsumerOffset;
    }
    Messages {
        wait poll_messages PollMessagesDeferred;
        wait send_messages SendMessages;
        wait send_producer_messages SendMessages;
        call next_producer_id;
        call producer SendMessages;
        call consumer FetchMessages;
        call consumer_group FetchMessages;
        call reader FetchMessages;
    }
    Raw {
        wait send_binary_request;
        wait send_binary_request_with_deadline;
        wait send_binary_request_to_replica;
        wait send_binary_request_to_replica_with_deadline;
    }
}

/// Commands without an operation of their own, and who sends them.
pub const COMMANDS_WITHOUT_OPERATION: &[(Command, &str)] = &[
    (Command::BindSession, "the client, when it connects again"),
    (Command::LegacyLogin, "nobody: its code is refused"),
    (Command::LegacyTokenLogin, "nobody: its code is refused"),
    (Command::PollMessages, "callers of raw requests"),
    (Command::GetPartitionRoute, "the client, before it asks a partition"),
    (Command::CancelDeferred, "the client, when a read is dropped"),
];

/// The methods of one object that applications hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectEntry {
    /// The name of its type.
    pub name: &'static str,
    /// Its public methods.
    pub methods: &'static [&'static str],
}

macro_rules! objects {
    ($($object:ident { $($method:ident)* })*) => {
        /// The objects an application gets from a client, and the builders that make them.
        pub const OBJECTS: &[ObjectEntry] = &[$(ObjectEntry {
            name: stringify!($object),
            methods: &[$(stringify!($method),)*],
        },)*];
    };
}

objects! {
    IggyClientBuilder {
        with_tcp with_config with_server_address with_auto_sign_in with_tls with_no_delay with_reconnection_max_retries
        with_reconnection_interval with_reestablish_after with_pending_operations with_request_timeout with_encryptor
        with_partitioner build
    }
    IggyProducerBuilder {
        stream topic encryptor without_encryptor partitioning without_partitioning partitioner without_partitioner
        create_stream_if_not_exists do_not_create_stream_if_not_exists create_topic_if_not_exists
        do_not_create_topic_if_not_exists topic_durability idempotent without_idempotence direct background build
    }
    IggyProducer {
        init send send_one send_with_partitioning send_to shutdown stream topic
    }
    IggyConsumerBuilder {
        stream topic partitions polling_strategy poll_options prefetch_bytes prefetch_messages
        create_consumer_group_if_not_exists do_not_create_consumer_group_if_not_exists encryptor without_encryptor
        polling_retry_interval init_retries allow_replay offset_drain_timeout build
    }
    IggyConsumer {
        init next next_batch batches commit mark store_offset delete_offset seek state subscribe_events
        get_last_consumed_offset get_last_stored_offset partition_id partitions stopped name consumer is_group_member
        stream topic shutdown consume_messages
    }
    IggyConsumerState {
        commit subscribe_events mark store_offset delete_offset seek is_current partitions stopped
        get_last_consumed_offset get_last_stored_offset partition_id
    }
    ReaderBuilder {
        partitions start options prefetch_bytes prefetch_messages build
    }
    PartitionReader {
        next commit mark seek partitions stopped state subscribe_events close
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SOURCES: &[&str] = &[
        include_str!("../client.rs"),
        include_str!("../consumer/builder.rs"),
        include_str!("../consumer/handler.rs"),
        include_str!("../consumer/mod.rs"),
        include_str!("../consumer/state.rs"),
        include_str!("../producer/builder.rs"),
        include_str!("../producer/mod.rs"),
        include_str!("../reader/builder.rs"),
        include_str!("../reader/mod.rs"),
        include_str!("groups.rs"),
        include_str!("messages.rs"),
        include_str!("offsets.rs"),
        include_str!("partitions.rs"),
        include_str!("raw.rs"),
        include_str!("sessions.rs"),
        include_str!("streams.rs"),
        include_str!("system.rs"),
        include_str!("tokens.rs"),
        include_str!("topics.rs"),
        include_str!("users.rs"),
    ];

    /// The public methods of a type, and whether each is async.
    fn methods_of(name: &str) -> BTreeSet<(&'static str, bool)> {
        let mut found = BTreeSet::new();
        for source in SOURCES {
            let mut inside = false;
            for line in source.lines() {
                if line.starts_with("impl") {
                    inside = line == format!("impl {name} {{");
                }
                let method = line.strip_prefix("    pub ").filter(|_| inside);
                let method =
                    method.map(|rest| (rest.strip_prefix("async ").unwrap_or(rest), rest.starts_with("async")));
                if let Some((rest, is_async)) = method
                    && let Some(signature) = rest.strip_prefix("fn ")
                {
                    let end = signature.find(['(', '<']).unwrap();
                    found.insert((&signature[..end], is_async));
                }
            }
        }
        found
    }

    #[test]
    fn given_the_sources_when_compared_should_hold_exactly_the_operations_of_the_table() {
        let listed: BTreeSet<_> = OPERATIONS.iter().map(|entry| (entry.name, entry.is_async)).collect();
        assert_eq!(listed, methods_of("IggyClient"));
        assert_eq!(listed.len(), OPERATIONS.len(), "each once");
    }

    #[test]
    fn given_the_sources_when_compared_should_hold_exactly_the_methods_of_each_object() {
        for object in OBJECTS {
            let listed: BTreeSet<_> = object.methods.iter().copied().collect();
            let found: BTreeSet<_> = methods_of(object.name).into_iter().map(|(name, _)| name).collect();
            assert_eq!(listed, found, "{}", object.name);
        }
    }

    #[test]
    fn given_every_command_when_looked_up_should_have_an_operation_or_a_reason() {
        for command in Command::ALL {
            let served = OPERATIONS.iter().any(|entry| entry.command == Some(*command));
            let excused = COMMANDS_WITHOUT_OPERATION.iter().any(|(other, _)| other == command);
            assert!(served != excused, "{command}");
        }
        let poll = OPERATIONS.iter().find(|entry| entry.name == "poll_messages").unwrap();
        assert_eq!(poll.permission(), Some(PermissionClass::PollMessages));
    }
}
