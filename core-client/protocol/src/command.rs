//! Every command a client can send, in one table: code, name, operation, permission and the wire section that
//! describes it (wire 3.2). Lists of commands and their permissions elsewhere are made from this table.

use std::fmt;

use crate::operation::Operation;

/// What a caller must be allowed to do for a command to be admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionClass {
    /// Anyone, before login too.
    Anyone,
    /// Any signed-in user.
    SignedIn,
    /// Reading server-wide things.
    ReadServers,
    /// Managing server-wide things.
    ManageServers,
    /// Reading users; one's own account needs nothing.
    ReadUsers,
    /// Managing users.
    ManageUsers,
    /// Managing users; one's own account needs nothing.
    ManageUsersOrSelf,
    /// Tokens of one's own.
    OwnTokens,
    /// Reading all streams.
    ReadStreams,
    /// Reading the named stream.
    ReadStream,
    /// Creating streams.
    ManageStreams,
    /// Managing the named stream.
    ManageStream,
    /// Reading all topics of the named stream.
    ReadTopics,
    /// Reading the named topic.
    ReadTopic,
    /// Creating topics in the named stream.
    ManageTopics,
    /// Managing the named topic.
    ManageTopic,
    /// Polling from the named topic.
    PollMessages,
    /// Sending to the named topic.
    SendMessages,
    /// Polling from or sending to the named topic.
    PollOrSend,
    /// What the scope of the request needs: managing the named stream, topic or user.
    ByScope,
}

macro_rules! commands {
    ($($code:literal $variant:ident $name:literal $operation:ident $permission:ident $section:literal;)*) => {
        /// A command of the protocol. Codes missing here are retired or reserved.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum Command {
            $(#[doc = concat!("`", $name, "` (", $code, "), wire ", $section, ".")] $variant = $code,)*
        }

        impl Command {
            /// Every command, ascending by code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The command of this code, or `None` when this version does not define it.
            pub const fn from_u32(code: u32) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The operation it travels as.
            pub const fn operation(self) -> Operation {
                match self { $(Self::$variant => Operation::$operation,)* }
            }

            /// What its caller must be allowed to do.
            pub const fn permission(self) -> PermissionClass {
                match self { $(Self::$variant => PermissionClass::$permission,)* }
            }

            /// The section of the wire description that defines its bodies.
            pub const fn wire_section(self) -> &'static str {
                match self { $(Self::$variant => $section,)* }
            }
        }
    };
}

commands! {
    1 Ping "ping" NonReplicated Anyone "11.1";
    10 GetStats "stats" NonReplicated ReadServers "11.2";
    11 GetSnapshot "snapshot" NonReplicated ManageServers "11.3";
    12 GetClusterMetadata "cluster.metadata" NonReplicated SignedIn "11.4";
    13 DescribeOptions "options.describe" NonReplicated SignedIn "11.5";
    15 BindSession "session.bind" NonReplicated Anyone "4.5";
    16 UpdateResource "resource.update" UpdateResource ByScope "11.6";
    17 GetMetadataChanges "metadata.changes" NonReplicated ManageServers "12";
    20 GetMe "me" NonReplicated SignedIn "11.7";
    21 GetClient "client.get" NonReplicated ReadServers "11.7";
    22 GetClients "client.list" NonReplicated ReadServers "11.7";
    31 GetUser "user.get" NonReplicated ReadUsers "10";
    32 GetUsers "user.list" NonReplicated ReadUsers "10";
    33 CreateUser "user.create" CreateUser ManageUsers "10";
    34 DeleteUser "user.delete" DeleteUser ManageUsers "10";
    36 UpdatePermissions "user.permissions" UpdatePermissions ManageUsers "10";
    37 ChangePassword "user.password" ChangePassword ManageUsersOrSelf "10";
    38 LegacyLogin "user.login" NonReplicated Anyone "4.3";
    39 Logout "user.logout" Logout SignedIn "4.4";
    40 Login "user.login_register" Register Anyone "4.3";
    41 GetPersonalAccessTokens "personal_access_token.list" NonReplicated OwnTokens "10";
    42 CreatePersonalAccessToken "personal_access_token.create" CreatePersonalAccessToken OwnTokens "10";
    43 DeletePersonalAccessToken "personal_access_token.delete" DeletePersonalAccessToken OwnTokens "10";
    44 LegacyTokenLogin "personal_access_token.login" NonReplicated Anyone "4.3";
    45 LoginWithToken "user.login_register_with_pat" Register Anyone "4.3";
    100 PollMessages "message.poll" NonReplicated PollMessages "7.3";
    101 SendMessages "message.send" SendMessages SendMessages "7.1";
    105 GetPartitionRoute "partition.route" NonReplicated PollOrSend "7.2";
    106 PollMessagesDeferred "message.poll_deferred" NonReplicated PollMessages "7.4";
    108 CancelDeferred "message.cancel_deferred" NonReplicated SignedIn "7.6";
    109 FetchMessages "message.fetch" NonReplicated PollMessages "7.5";
    120 GetConsumerOffset "consumer_offset.get" NonReplicated PollMessages "8.1";
    121 StoreConsumerOffset "consumer_offset.store" StoreConsumerOffset PollMessages "8.1";
    122 DeleteConsumerOffset "consumer_offset.delete" DeleteConsumerOffset PollMessages "8.1";
    200 GetStream "stream.get" NonReplicated ReadStream "9";
    201 GetStreams "stream.list" NonReplicated ReadStreams "9";
    202 CreateStream "stream.create" CreateStream ManageStreams "9";
    203 DeleteStream "stream.delete" DeleteStream ManageStream "9";
    300 GetTopic "topic.get" NonReplicated ReadTopic "9";
    301 GetTopics "topic.list" NonReplicated ReadTopics "9";
    302 CreateTopic "topic.create" CreateTopic ManageTopics "9";
    303 DeleteTopic "topic.delete" DeleteTopic ManageTopic "9";
    402 CreatePartitions "partition.create" CreatePartitions ManageTopic "9";
    403 DeletePartitions "partition.delete" DeletePartitions ManageTopic "9";
    503 DeleteSegments "segment.delete" DeleteSegments ManageTopic "9";
    600 GetConsumerGroup "consumer_group.get" NonReplicated ReadTopic "8.2";
    601 GetConsumerGroups "consumer_group.list" NonReplicated ReadTopic "8.2";
    602 CreateConsumerGroup "consumer_group.create" CreateConsumerGroup ReadTopic "8.2";
    603 DeleteConsumerGroup "consumer_group.delete" DeleteConsumerGroup ReadTopic "8.2";
    604 JoinConsumerGroup "consumer_group.join" JoinConsumerGroup ReadTopic "8.2";
    605 LeaveConsumerGroup "consumer_group.leave" LeaveConsumerGroup ReadTopic "8.2";
    606 SyncConsumerGroup "consumer_group.sync" NonReplicated ReadTopic "8.2";
}

/// Codes that were used once and never will be again.
pub const RETIRED_CODES: &[u32] = &[14, 35, 102, 103, 104, 107, 123, 124, 204, 205, 304, 305];

impl Command {
    /// The code on the wire.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The code as the request header carries it: zero for commands that travel as an operation of their own (wire 3.2).
    pub const fn header_code(self) -> u32 {
        match self.operation() {
            Operation::NonReplicated => self as u32,
            _ => 0,
        }
    }

    /// The command a header names. `Register` names [`Command::Login`]; the body tells it from [`Command::LoginWithToken`].
    pub fn of_header(operation: Operation, code: u32) -> Option<Self> {
        match operation {
            Operation::NonReplicated => {
                Self::from_u32(code).filter(|command| command.operation() == Operation::NonReplicated)
            }
            _ => Self::ALL
                .iter()
                .copied()
                .find(|command| command.operation() == operation),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_the_table_when_listed_should_ascend_and_hold_no_retired_code() {
        assert!(Command::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        for command in Command::ALL {
            assert!(!RETIRED_CODES.contains(&command.code()), "{command}");
            assert_eq!(Command::from_u32(command.code()), Some(*command));
        }
    }

    #[test]
    fn given_a_header_when_a_command_is_looked_up_should_find_the_one_that_was_sent() {
        for command in Command::ALL {
            let found = Command::of_header(command.operation(), command.header_code());
            let expected = if *command == Command::LoginWithToken {
                Command::Login
            } else {
                *command
            };
            assert_eq!(found, Some(expected));
        }
    }
}
