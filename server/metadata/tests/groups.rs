//! Consumer groups: membership, assignment, rebalance, reads.

mod support;

use iggy_metadata::model::group::Group;
use iggy_metadata::{Change, Event, OwnerChange, RequestKey, SessionEnd};
use iggy_protocol::reply::group::{Assignment, ConsumerGroupDetails, ConsumerGroups};
use iggy_protocol::request::Empty;
use iggy_protocol::request::group::{GetConsumerGroup, GetConsumerGroups, SyncConsumerGroup};
use iggy_protocol::{Command, Decode, ErrorCode};
use support::{Login, World, named};

fn world_with_group(partitions: u32) -> (World, Login, Login) {
    let mut world = World::new();
    let (a, b) = (world.root(), world.root());
    world.create_stream(a, "s").expect("created");
    world.create_topic(a, "s", "t", partitions).expect("created");
    world.create_group(a, "s", "t", "g").expect("created");
    (world, a, b)
}

fn group(world: &World) -> &Group {
    let (_, topic) = world.metadata.topic(&named("s"), &named("t")).expect("exists");
    world.metadata.group(topic, &named("g")).expect("exists")
}

fn sync(world: &World, login: Login) -> Option<Assignment> {
    let request = SyncConsumerGroup {
        stream: named("s"),
        topic: named("t"),
        group: named("g"),
    };
    let body = world
        .read(login, Command::SyncConsumerGroup, &request)
        .expect("answered");
    (!body.is_empty()).then(|| Assignment::from_bytes(&body).expect("an assignment"))
}

fn owner_changes(world: &World) -> Vec<OwnerChange> {
    let changes = world.events.iter().filter_map(|event| match event {
        Event::OwnersChanged { changes, .. } => Some(changes.clone()),
        _ => None,
    });
    changes.flatten().collect()
}

/// C6.
#[test]
fn given_members_when_they_come_and_go_should_share_the_partitions_and_raise_the_generation() {
    let (mut world, a, b) = world_with_group(2);
    assert_eq!(sync(&world, a), None, "no member yet");
    world.join(a, "s", "t", "g").expect("joined");
    let alone = sync(&world, a).expect("a member");
    assert_eq!(alone.partitions, vec![0, 1]);
    world.join(b, "s", "t", "g").expect("joined");
    let (first, second) = (sync(&world, a).expect("a member"), sync(&world, b).expect("a member"));
    assert_eq!((first.partitions, second.partitions), (vec![0], vec![1]));
    assert!(first.generation > alone.generation);
    assert_eq!(first.generation, world.metadata.applied().op);
    world.leave(b, "s", "t", "g").expect("left");
    assert_eq!(sync(&world, a).expect("a member").partitions, vec![0, 1]);
    assert_eq!(sync(&world, b), None);
    assert_eq!(
        world.leave(b, "s", "t", "g"),
        Err(ErrorCode::ConsumerGroupMemberNotFound)
    );
}

#[test]
fn given_a_member_when_joining_again_should_not_rebalance() {
    let (mut world, a, _) = world_with_group(2);
    world.join(a, "s", "t", "g").expect("joined");
    let before = sync(&world, a);
    world.join(a, "s", "t", "g").expect("a member already");
    assert!(world.events.is_empty());
    assert_eq!(sync(&world, a), before);
}

/// C6.
#[test]
fn given_a_moved_partition_when_rebalanced_should_carry_the_position_that_moved_it() {
    let (mut world, a, b) = world_with_group(3);
    world.join(a, "s", "t", "g").expect("joined");
    let first_op = world.metadata.applied().op;
    world.join(b, "s", "t", "g").expect("joined");
    let second_op = world.metadata.applied().op;
    let changes = owner_changes(&world);
    assert_eq!(changes.len(), 1, "one of three moves");
    assert_eq!(changes[0].owner_generation, second_op);
    assert_eq!(changes[0].owner.expect("owned").session, b.key);
    assert_eq!(group(&world).slot(0).expect("exists").owner_generation, first_op);
}

/// C6.
#[test]
fn given_a_session_when_it_ends_should_leave_its_groups() {
    let (mut world, a, b) = world_with_group(2);
    world.join(a, "s", "t", "g").expect("joined");
    world.join(b, "s", "t", "g").expect("joined");
    world.write(b, Command::Logout, &Empty).expect("logged out");
    assert_eq!(sync(&world, a).expect("a member").partitions, vec![0, 1]);
    let ended = Event::SessionEnded {
        session: b.key,
        reason: SessionEnd::Logout,
    };
    assert_eq!(world.events.last(), Some(&ended));
    assert_eq!(owner_changes(&world).len(), 1);
    world.commit(RequestKey::INTERNAL, &Change::ExpireSessions { sessions: vec![a.key] });
    assert_eq!(group(&world).members().len(), 0);
    assert!(owner_changes(&world).iter().all(|change| change.owner.is_none()));
}

#[test]
fn given_partitions_added_and_removed_when_a_group_has_members_should_follow() {
    let (mut world, a, b) = world_with_group(2);
    world.join(a, "s", "t", "g").expect("joined");
    world.join(b, "s", "t", "g").expect("joined");
    world.create_partitions(a, "s", "t", 3).expect("added");
    let sizes = |world: &World| {
        let of = |login| sync(world, login).map_or(0, |assignment| assignment.partitions.len());
        (of(a), of(b))
    };
    assert_eq!(sizes(&world), (3, 2));
    world.delete_partitions(a, "s", "t", 4).expect("removed");
    let (first, second) = sizes(&world);
    assert_eq!(first + second, 1);
}

#[test]
fn given_a_group_when_read_should_list_members_with_their_partitions() {
    let (mut world, a, b) = world_with_group(3);
    world.join(a, "s", "t", "g").expect("joined");
    world.join(b, "s", "t", "g").expect("joined");
    let get = |group| GetConsumerGroup {
        stream: named("s"),
        topic: named("t"),
        group: named(group),
    };
    let body = world.read(a, Command::GetConsumerGroup, &get("g")).expect("answered");
    let details = ConsumerGroupDetails::from_bytes(&body).expect("a group");
    assert_eq!(
        (
            details.group.id,
            details.group.partitions_count,
            details.group.members_count
        ),
        (0, 3, 2)
    );
    let partitions: Vec<_> = details.members.iter().map(|member| member.partitions.clone()).collect();
    assert_eq!(partitions, vec![vec![0, 1], vec![2]]);
    assert!(
        world
            .read(a, Command::GetConsumerGroup, &get("nothing"))
            .expect("answered")
            .is_empty()
    );
    let list = GetConsumerGroups {
        stream: named("s"),
        topic: named("t"),
    };
    let body = world.read(a, Command::GetConsumerGroups, &list).expect("answered");
    assert_eq!(ConsumerGroups::from_bytes(&body).expect("groups").groups.len(), 1);
}

#[test]
fn given_a_group_when_created_should_answer_as_the_recorded_exchange() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 2).expect("created");
    // bdd/vectors/sessions/group_two_members.json, group_create reply.
    let payload = world.create_group(root, "s", "t", "g").expect("created");
    assert_eq!(payload.as_ref(), [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, b'g']);
}

#[test]
fn given_a_deleted_group_when_its_members_ask_should_be_unknown() {
    let (mut world, a, _) = world_with_group(2);
    world.join(a, "s", "t", "g").expect("joined");
    world.delete_group(a, "s", "t", "g").expect("deleted");
    assert!(matches!(&world.events[..], [Event::GroupDeleted { .. }]));
    assert!(world.metadata.groups_of(a.key).is_empty());
    assert_eq!(sync(&world, a), None);
    assert_eq!(world.join(a, "s", "t", "g"), Err(ErrorCode::ConsumerGroupNameNotFound));
    // A new group of the same name has another id and no members.
    world.create_group(a, "s", "t", "g").expect("created");
    assert_eq!((group(&world).id, group(&world).members().len()), (1, 0));
}

#[test]
fn given_the_most_groups_of_a_topic_when_creating_one_more_should_be_refused() {
    let (mut world, a, _) = world_with_group(1);
    for number in 1..iggy_metadata::limits::CONSUMER_GROUPS_PER_TOPIC_MAX {
        world.create_group(a, "s", "t", &format!("g{number}")).expect("created");
    }
    assert_eq!(
        world.create_group(a, "s", "t", "one more"),
        Err(ErrorCode::TooManyConsumerGroups)
    );
    world.delete_group(a, "s", "t", "g5").expect("deleted");
    world
        .create_group(a, "s", "t", "one more")
        .expect("there is room again");
}
