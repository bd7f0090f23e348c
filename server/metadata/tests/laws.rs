//! What holds whatever happens: replicas agree, snapshots lose nothing, assignments are even, and no bytes panic.

mod support;

use std::collections::BTreeSet;

use iggy_metadata::{
    Applied, Change, Metadata, RequestKey, SNAPSHOT_FORMAT, SessionKey, SnapshotError, committed_operation,
};
use iggy_protocol::options::Options;
use iggy_protocol::request::Empty;
use iggy_protocol::request::group::{CreateConsumerGroup, DeleteConsumerGroup, JoinConsumerGroup, LeaveConsumerGroup};
use iggy_protocol::request::partition::{CreatePartitions, DeletePartitions};
use iggy_protocol::request::segment::DeleteSegments;
use iggy_protocol::request::stream::{CreateStream, DeleteStream};
use iggy_protocol::request::system::{Resource, UpdateResource};
use iggy_protocol::request::token::{CreatePersonalAccessToken, DeletePersonalAccessToken};
use iggy_protocol::request::topic::{CreateTopic, DeleteTopic};
use iggy_protocol::request::user::{ChangePassword, CreateUser, DeleteUser, UpdatePermissions};
use iggy_protocol::secret::Secret;
use iggy_protocol::typed_value::TypedValue;
use iggy_protocol::{Command, Encode, Permissions};
use proptest::prelude::*;
use support::{Login, TICK, World, name, named, options, position, text};

/// One thing somebody does. Small numbers make them meet.
#[derive(Debug, Clone)]
enum Act {
    Login {
        user: u8,
    },
    Logout,
    ExpireOldest,
    ExpireTokens,
    CreateStream {
        stream: u8,
    },
    RenameStream {
        stream: u8,
        to: u8,
    },
    DeleteStream {
        stream: u8,
    },
    CreateTopic {
        stream: u8,
        topic: u8,
        partitions: u32,
    },
    UpdateTopic {
        stream: u8,
        topic: u8,
        expiry: Option<u64>,
    },
    DeleteTopic {
        stream: u8,
        topic: u8,
    },
    AddPartitions {
        stream: u8,
        topic: u8,
        count: u32,
    },
    RemovePartitions {
        stream: u8,
        topic: u8,
        count: u32,
    },
    DeleteSegments {
        stream: u8,
        topic: u8,
        partition: u32,
    },
    CreateGroup {
        stream: u8,
        topic: u8,
        group: u8,
    },
    DeleteGroup {
        stream: u8,
        topic: u8,
        group: u8,
    },
    Join {
        stream: u8,
        topic: u8,
        group: u8,
    },
    Leave {
        stream: u8,
        topic: u8,
        group: u8,
    },
    CreateUser {
        user: u8,
    },
    SetStatus {
        user: u8,
        active: bool,
    },
    DeleteUser {
        user: u8,
    },
    SetPermissions {
        user: u8,
        all: bool,
    },
    ChangePassword {
        user: u8,
    },
    CreateToken {
        token: u8,
        lifetime: u64,
    },
    DeleteToken {
        token: u8,
    },
    /// The last logged entry again, as a resend that slipped in.
    Repeat,
}

fn act() -> impl Strategy<Value = Act> {
    let small = 0u8..2;
    let topic = (small.clone(), small.clone());
    let group = (small.clone(), small.clone(), 0u8..3);
    let users = 0u8..3;
    prop_oneof![
        4 => users.clone().prop_map(|user| Act::Login { user }),
        1 => Just(Act::Logout),
        1 => Just(Act::ExpireOldest),
        1 => Just(Act::ExpireTokens),
        3 => small.clone().prop_map(|stream| Act::CreateStream { stream }),
        1 => (small.clone(), small.clone()).prop_map(|(stream, to)| Act::RenameStream { stream, to }),
        1 => small.prop_map(|stream| Act::DeleteStream { stream }),
        4 => (topic.clone(), 1u32..8).prop_map(|((stream, topic), partitions)| Act::CreateTopic { stream, topic, partitions }),
        1 => (topic.clone(), proptest::option::of(0u64..9)).prop_map(|((stream, topic), expiry)| Act::UpdateTopic { stream, topic, expiry }),
        1 => topic.clone().prop_map(|(stream, topic)| Act::DeleteTopic { stream, topic }),
        2 => (topic.clone(), 1u32..5).prop_map(|((stream, topic), count)| Act::AddPartitions { stream, topic, count }),
        2 => (topic.clone(), 1u32..5).prop_map(|((stream, topic), count)| Act::RemovePartitions { stream, topic, count }),
        1 => (topic, 0u32..4).prop_map(|((stream, topic), partition)| Act::DeleteSegments { stream, topic, partition }),
        4 => group.clone().prop_map(|(stream, topic, group)| Act::CreateGroup { stream, topic, group }),
        1 => group.clone().prop_map(|(stream, topic, group)| Act::DeleteGroup { stream, topic, group }),
        8 => group.clone().prop_map(|(stream, topic, group)| Act::Join { stream, topic, group }),
        3 => group.prop_map(|(stream, topic, group)| Act::Leave { stream, topic, group }),
        2 => users.clone().prop_map(|user| Act::CreateUser { user }),
        1 => (users.clone(), any::<bool>()).prop_map(|(user, active)| Act::SetStatus { user, active }),
        1 => users.clone().prop_map(|user| Act::DeleteUser { user }),
        1 => (users.clone(), any::<bool>()).prop_map(|(user, all)| Act::SetPermissions { user, all }),
        1 => users.prop_map(|user| Act::ChangePassword { user }),
        2 => (0u8..3, 0u64..5).prop_map(|(token, lifetime)| Act::CreateToken { token, lifetime }),
        1 => (0u8..3).prop_map(|token| Act::DeleteToken { token }),
        1 => Just(Act::Repeat),
    ]
}

/// The log a run of acts leaves behind.
struct Run {
    world: World,
    log: Vec<(RequestKey, Change)>,
    answers: Vec<Applied>,
    logins: Vec<Login>,
    turn: usize,
}

impl Run {
    /// Two sessions of root and a topic, so that most acts meet something.
    fn new() -> Self {
        let mut run = Self {
            world: World::new(),
            log: Vec::new(),
            answers: Vec::new(),
            logins: Vec::new(),
            turn: 0,
        };
        let start = [
            Act::Login { user: 0 },
            Act::Login { user: 0 },
            Act::CreateStream { stream: 0 },
            Act::CreateTopic {
                stream: 0,
                topic: 0,
                partitions: 5,
            },
            Act::CreateGroup {
                stream: 0,
                topic: 0,
                group: 0,
            },
        ];
        for act in &start {
            run.act(act);
        }
        run
    }

    fn commit(&mut self, key: RequestKey, change: Change) -> Applied {
        let applied = self.world.commit(key, &change);
        self.log.push((key, change));
        self.answers.push(applied.clone());
        applied
    }

    /// The next session in turn, so that several members meet in a group.
    fn login(&mut self) -> Option<Login> {
        self.turn += 1;
        let index = self.turn % self.logins.len().max(1);
        self.logins.get(index).copied()
    }

    fn write(&mut self, command: Command, body: &impl Encode) {
        let Some(login) = self.login() else { return };
        let mut key = self.world.request(login);
        if let Ok(change) = self.world.admit(&key, command, &body.to_bytes()) {
            key.operation = committed_operation(command, &change);
            self.commit(key, change);
        }
    }

    fn sign_in(&mut self, username: &str) {
        let Some(credentials) = self.world.metadata.credentials(username) else {
            return;
        };
        let client = 1_000 + self.log.len() as u128;
        let key = World::register_key(client);
        let admission = self
            .world
            .metadata
            .admit_register(&key, credentials.user, &World::secret(client), |_| false);
        if let iggy_metadata::Admission::Ready(change) = admission {
            let session = self.commit(key, change).receipt.at.op;
            self.logins.push(Login {
                key: SessionKey { client, session },
                user_id: credentials.user.user_id,
            });
        }
    }

    fn act(&mut self, act: &Act) {
        let resource = |stream: u8, topic: u8| (named(&format!("s{stream}")), named(&format!("t{topic}")));
        match *act {
            Act::Login { user } => self.sign_in(&user_name(user)),
            Act::Logout => self.write(Command::Logout, &Empty),
            Act::ExpireOldest => {
                let sessions = self
                    .world
                    .metadata
                    .sessions()
                    .map(|session| session.key)
                    .take(1)
                    .collect();
                self.commit(RequestKey::INTERNAL, Change::ExpireSessions { sessions });
            }
            Act::ExpireTokens => {
                self.commit(RequestKey::INTERNAL, Change::ExpireTokens);
            }
            Act::CreateStream { stream } => {
                let request = CreateStream {
                    name: name(&format!("s{stream}")),
                    options: Options::new(),
                };
                self.write(Command::CreateStream, &request);
            }
            Act::RenameStream { stream, to } => {
                let set = options(&[("name", text(&format!("s{to}")))]);
                let resource = Resource::Stream(named(&format!("s{stream}")));
                self.write(
                    Command::UpdateResource,
                    &UpdateResource {
                        resource,
                        reset: Vec::new(),
                        set,
                    },
                );
            }
            Act::DeleteStream { stream } => {
                self.write(
                    Command::DeleteStream,
                    &DeleteStream {
                        stream: named(&format!("s{stream}")),
                    },
                );
            }
            Act::CreateTopic {
                stream,
                topic,
                partitions,
            } => {
                let (stream, _) = resource(stream, topic);
                let name = name(&format!("t{topic}"));
                let request = CreateTopic {
                    stream,
                    partitions_count: partitions,
                    name,
                    options: Options::new(),
                };
                self.write(Command::CreateTopic, &request);
            }
            Act::UpdateTopic { stream, topic, expiry } => {
                let (stream, topic) = resource(stream, topic);
                let (set, reset) = match expiry {
                    Some(expiry) => (options(&[("message_expiry", TypedValue::uint64(expiry))]), Vec::new()),
                    None => (Options::new(), vec![name("message_expiry")]),
                };
                let resource = Resource::Topic { stream, topic };
                self.write(Command::UpdateResource, &UpdateResource { resource, reset, set });
            }
            Act::DeleteTopic { stream, topic } => {
                let (stream, topic) = resource(stream, topic);
                self.write(Command::DeleteTopic, &DeleteTopic { stream, topic });
            }
            Act::AddPartitions { stream, topic, count } => {
                let (stream, topic) = resource(stream, topic);
                self.write(
                    Command::CreatePartitions,
                    &CreatePartitions {
                        stream,
                        topic,
                        partitions_count: count,
                    },
                );
            }
            Act::RemovePartitions { stream, topic, count } => {
                let (stream, topic) = resource(stream, topic);
                self.write(
                    Command::DeletePartitions,
                    &DeletePartitions {
                        stream,
                        topic,
                        partitions_count: count,
                    },
                );
            }
            Act::DeleteSegments {
                stream,
                topic,
                partition,
            } => {
                let (stream, topic) = resource(stream, topic);
                let request = DeleteSegments {
                    stream,
                    topic,
                    partition_id: partition,
                    segments_count: 1,
                };
                self.write(Command::DeleteSegments, &request);
            }
            Act::Repeat => {
                if let Some((key, change)) = self.log.last().cloned() {
                    self.commit(key, change);
                }
            }
            _ => self.act_on_members(act),
        }
    }

    fn act_on_members(&mut self, act: &Act) {
        let place = |stream: u8, topic: u8, group: u8| {
            (
                named(&format!("s{stream}")),
                named(&format!("t{topic}")),
                named(&format!("g{group}")),
            )
        };
        match *act {
            Act::CreateGroup { stream, topic, group } => {
                let (stream, topic, _) = place(stream, topic, group);
                let name = name(&format!("g{group}"));
                self.write(
                    Command::CreateConsumerGroup,
                    &CreateConsumerGroup { stream, topic, name },
                );
            }
            Act::DeleteGroup { stream, topic, group } => {
                let (stream, topic, group) = place(stream, topic, group);
                self.write(
                    Command::DeleteConsumerGroup,
                    &DeleteConsumerGroup { stream, topic, group },
                );
            }
            Act::Join { stream, topic, group } => {
                let (stream, topic, group) = place(stream, topic, group);
                self.write(Command::JoinConsumerGroup, &JoinConsumerGroup { stream, topic, group });
            }
            Act::Leave { stream, topic, group } => {
                let (stream, topic, group) = place(stream, topic, group);
                self.write(
                    Command::LeaveConsumerGroup,
                    &LeaveConsumerGroup { stream, topic, group },
                );
            }
            Act::CreateUser { user } => {
                let request = CreateUser {
                    username: name(&user_name(user)),
                    password: Secret::from("secret"),
                    status: 1,
                    permissions: Some(Permissions::root()),
                    options: Options::new(),
                };
                self.write(Command::CreateUser, &request);
            }
            Act::SetStatus { user, active } => {
                let set = options(&[("status", text(if active { "active" } else { "inactive" }))]);
                let resource = Resource::User(named(&user_name(user)));
                self.write(
                    Command::UpdateResource,
                    &UpdateResource {
                        resource,
                        reset: Vec::new(),
                        set,
                    },
                );
            }
            Act::DeleteUser { user } => self.write(
                Command::DeleteUser,
                &DeleteUser {
                    user: named(&user_name(user)),
                },
            ),
            Act::SetPermissions { user, all } => {
                let permissions = all.then(Permissions::root);
                self.write(
                    Command::UpdatePermissions,
                    &UpdatePermissions {
                        user: named(&user_name(user)),
                        permissions,
                    },
                );
            }
            Act::ChangePassword { user } => {
                let secret = || Secret::from("secret");
                let request = ChangePassword {
                    user: named(&user_name(user)),
                    current: secret(),
                    new: secret(),
                };
                self.write(Command::ChangePassword, &request);
            }
            Act::CreateToken { token, lifetime } => {
                let request = CreatePersonalAccessToken {
                    name: name(&format!("token{token}")),
                    expiry: lifetime * TICK,
                };
                self.write(Command::CreatePersonalAccessToken, &request);
            }
            Act::DeleteToken { token } => {
                let request = DeletePersonalAccessToken {
                    name: name(&format!("token{token}")),
                };
                self.write(Command::DeletePersonalAccessToken, &request);
            }
            _ => unreachable!("resources are handled before"),
        }
    }
}

fn user_name(user: u8) -> String {
    if user == 0 {
        "iggy".into()
    } else {
        format!("user{user}")
    }
}

/// Every partition of a group with members is owned once, members differ by at most one, and sessions know their groups.
fn check_groups(metadata: &Metadata) {
    let mut memberships = BTreeSet::new();
    for stream in metadata.streams() {
        for topic in stream.topics.values() {
            for group in topic.groups.values() {
                assert_eq!(group.partitions_count(), topic.partitions_count());
                let key = topic.group_key(stream.id, group);
                memberships.extend(group.members().map(|(_, session)| (session, key)));
                let assignments = group.assignments();
                let mut owned: Vec<u32> = assignments.values().flatten().copied().collect();
                owned.sort_unstable();
                let expected: Vec<u32> = if assignments.is_empty() {
                    Vec::new()
                } else {
                    (0..topic.partitions_count()).collect()
                };
                assert_eq!(owned, expected, "every partition once");
                let sizes = || assignments.values().map(Vec::len);
                let spread = sizes().max().unwrap_or(0) - sizes().min().unwrap_or(0);
                assert!(spread <= 1, "{assignments:?}");
                for (partition_id, owner) in (0..topic.partitions_count()).filter_map(|id| Some((id, group.owner(id)?)))
                {
                    assert!(
                        metadata.session(owner.session).is_some(),
                        "an owner of {partition_id} has a session"
                    );
                    let slot = group.slot(partition_id).expect("a partition of the group");
                    assert!(slot.owner_generation > 0 && slot.owner_generation <= group.generation);
                }
            }
        }
    }
    let known: BTreeSet<_> = metadata
        .sessions()
        .flat_map(|session| session.memberships.iter().map(|group| (session.key, *group)))
        .collect();
    assert_eq!(known, memberships);
}

proptest! {
    #[test]
    fn given_any_history_when_replayed_should_give_the_same_state_answers_and_events(
        acts in proptest::collection::vec(act(), 1..200),
        restart in any::<prop::sample::Index>(),
    ) {
        let mut run = Run::new();
        for act in &acts {
            run.act(act);
            check_groups(&run.world.metadata);
        }
        // A second replica: the same log, with a restart from a snapshot somewhere in it.
        let mut replica = World::new().metadata;
        let restart = restart.index(run.log.len() + 1);
        for (index, (key, change)) in run.log.iter().enumerate() {
            if index == restart {
                let restored = Metadata::restore(&replica.snapshot()).expect("a snapshot is read back");
                prop_assert_eq!(&restored, &replica);
                replica = restored;
            }
            let applied = replica.apply(position(replica.applied().op + 1), *key, change);
            prop_assert_eq!(&applied, &run.answers[index]);
        }
        prop_assert_eq!(replica.hash(), run.world.metadata.hash());
        prop_assert_eq!(&replica, &run.world.metadata);
    }

    #[test]
    fn given_any_damage_when_restoring_should_never_panic_and_never_take_a_cut_snapshot(
        acts in proptest::collection::vec(act(), 1..40),
        at in any::<prop::sample::Index>(),
        flip in 1u8..=255,
        noise in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut run = Run::new();
        for act in &acts {
            run.act(act);
        }
        let snapshot = run.world.metadata.snapshot();
        let at = at.index(snapshot.len());
        prop_assert!(Metadata::restore(&snapshot[..at]).is_err());
        let mut damaged = snapshot.clone();
        damaged[at] ^= flip;
        if let Ok(restored) = Metadata::restore(&damaged) {
            // What still decodes is still usable.
            let _ = restored.counts();
            let _ = restored.snapshot();
        }
        let mut longer = snapshot.clone();
        longer.extend_from_slice(&noise);
        prop_assert_eq!(Metadata::restore(&longer).is_ok(), noise.is_empty());
        let mut random = SNAPSHOT_FORMAT.to_le_bytes().to_vec();
        random.extend_from_slice(&noise);
        prop_assert!(Metadata::restore(&random).is_err());
        prop_assert!(Change::decode(&noise).is_err() || !noise.is_empty());
    }
}

#[test]
fn given_a_snapshot_of_another_format_when_restored_should_name_both_numbers() {
    let mut snapshot = World::new().metadata.snapshot();
    snapshot[0] = 9;
    let error = Metadata::restore(&snapshot).expect_err("an unknown format");
    assert!(matches!(error, SnapshotError::Format { found: 9 }));
    assert_eq!(
        error.to_string(),
        "metadata snapshot format 9 is not supported, this version reads 1"
    );
    assert!(matches!(Metadata::restore(&[1, 0]), Err(SnapshotError::Truncated(2))));
}
