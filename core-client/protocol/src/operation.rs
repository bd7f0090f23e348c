//! The operation byte of a request: what kind of work it is and which state machine it belongs to (wire 3.1).

use std::fmt;

/// The part of the system an operation belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plane {
    /// Session life: register and logout, committed by the metadata group.
    Session,
    /// Reads and other work that commits nothing.
    Read,
    /// Committed by the metadata group.
    Metadata,
    /// Committed by the group of one partition.
    Partition,
}

macro_rules! operations {
    ($($code:literal $name:ident $plane:ident $from:ident;)*) => {
        /// What a request asks for. Numbers missing here are retired or reserved.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Operation {
            $(#[doc = concat!("Operation ", $code, ".")] $name = $code,)*
        }

        impl Operation {
            /// Every operation, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The operation of this byte, or `None` when this version does not define it (zero included).
            pub const fn from_u8(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }

            /// The part of the system it belongs to.
            pub const fn plane(self) -> Plane {
                match self { $(Self::$name => Plane::$plane,)* }
            }

            /// Whether a client may send it; the others are derived by the server.
            pub const fn client_may_send(self) -> bool {
                match self { $(Self::$name => operations!(@ $from),)* }
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
    (@ client) => { true };
    (@ internal) => { false };
}

operations! {
    1 Register Session client;
    2 NonReplicated Read client;
    3 Logout Session client;
    64 CreateTopicWithAssignments Metadata internal;
    65 CreatePartitionsWithAssignments Metadata internal;
    66 RemoveConsumerGroupMember Metadata internal;
    67 CompleteConsumerGroupRevocation Metadata internal;
    68 TruncatePartition Metadata internal;
    70 FinalizeSession Metadata internal;
    71 CompleteLifecycle Metadata internal;
    72 UpdateStreamResolved Metadata internal;
    73 UpdateTopicResolved Metadata internal;
    74 UpdateUserResolved Metadata internal;
    75 RewrapStreamKeys Metadata internal;
    128 CreateStream Metadata client;
    130 DeleteStream Metadata client;
    132 CreateTopic Metadata client;
    134 DeleteTopic Metadata client;
    136 CreatePartitions Metadata client;
    137 DeletePartitions Metadata client;
    138 DeleteSegments Metadata client;
    139 CreateConsumerGroup Metadata client;
    140 DeleteConsumerGroup Metadata client;
    141 CreateUser Metadata client;
    143 DeleteUser Metadata client;
    144 ChangePassword Metadata client;
    145 UpdatePermissions Metadata client;
    146 CreatePersonalAccessToken Metadata client;
    147 DeletePersonalAccessToken Metadata client;
    148 JoinConsumerGroup Metadata client;
    149 LeaveConsumerGroup Metadata client;
    150 UpdateResource Metadata client;
    160 SendMessages Partition client;
    161 StoreConsumerOffset Partition client;
    162 DeleteConsumerOffset Partition client;
    166 RetireSession Partition internal;
    167 InstallConsumerGroupOwner Partition internal;
    168 TransitionPartitionHistory Partition internal;
    169 RetireConsumerGroupOwners Partition internal;
}

impl Operation {
    /// The byte on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether the server derives it.
    pub const fn is_internal(self) -> bool {
        !self.client_may_send()
    }

    /// Whether a successful reply body begins with a result section (wire 3.3). Register does so only when its body is not empty.
    pub const fn is_result_framed(self) -> bool {
        match self {
            Self::Register | Self::StoreConsumerOffset | Self::DeleteConsumerOffset => true,
            _ => matches!(self.plane(), Plane::Metadata),
        }
    }

    /// Whether requests with it carry a random identity that the committed reply echoes (wire 4.6).
    pub const fn has_request_identity(self) -> bool {
        matches!(self.plane(), Plane::Metadata | Plane::Session)
    }

    /// The client's operation behind one that a reply may carry: internal rewrites map back, others are themselves (wire 3.3).
    #[must_use]
    pub const fn as_requested(self) -> Self {
        match self {
            Self::CreateTopicWithAssignments => Self::CreateTopic,
            Self::CreatePartitionsWithAssignments => Self::CreatePartitions,
            Self::UpdateStreamResolved | Self::UpdateTopicResolved | Self::UpdateUserResolved => Self::UpdateResource,
            Self::TruncatePartition => Self::DeleteSegments,
            other => other,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_every_byte_when_classified_should_follow_the_ranges_of_the_protocol() {
        for byte in 0..=u8::MAX {
            let Some(operation) = Operation::from_u8(byte) else {
                continue;
            };
            assert_eq!(operation.code(), byte);
            if (64..128).contains(&byte) {
                assert!(operation.is_internal());
            }
            if byte >= 160 {
                assert_eq!(operation.plane(), Plane::Partition);
            }
        }
        for retired in [0, 129, 131, 133, 135, 142, 163, 164, 165] {
            assert_eq!(Operation::from_u8(retired), None);
        }
    }

    #[test]
    fn given_a_rewritten_operation_when_mapped_back_should_be_one_a_client_sends() {
        assert_eq!(
            Operation::CreateTopicWithAssignments.as_requested(),
            Operation::CreateTopic
        );
        assert_eq!(Operation::UpdateUserResolved.as_requested(), Operation::UpdateResource);
        assert_eq!(Operation::TruncatePartition.as_requested(), Operation::DeleteSegments);
        assert_eq!(Operation::SendMessages.as_requested(), Operation::SendMessages);
    }
}
