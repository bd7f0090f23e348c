//! Streams, topics and partitions: creation, refusals, options, deletion.

mod support;

use iggy_metadata::{Event, PartitionKey, Settings};
use iggy_protocol::options::Options;
use iggy_protocol::reply::stream::StreamDetails;
use iggy_protocol::reply::topic::TopicDetails;
use iggy_protocol::request::segment::DeleteSegments;
use iggy_protocol::request::stream::{CreateStream, DeleteStream, GetStream};
use iggy_protocol::request::system::Resource;
use iggy_protocol::request::topic::{DeleteTopic, GetTopic, GetTopics};
use iggy_protocol::typed_value::TypedValue;
use iggy_protocol::{Command, Decode, ErrorCode, Identifier};
use support::{World, named, options, text};

fn topic_of(world: &World, stream: &str, topic: &str) -> iggy_metadata::model::topic::Topic {
    world
        .metadata
        .topic(&named(stream), &named(topic))
        .expect("exists")
        .1
        .clone()
}

fn deleted_partitions(world: &World) -> Vec<PartitionKey> {
    let keys = world.events.iter().filter_map(|event| match event {
        Event::PartitionDeleted { key } => Some(*key),
        _ => None,
    });
    keys.collect()
}

#[test]
fn given_a_new_stream_when_created_should_answer_as_the_recorded_exchange() {
    let mut world = World::new();
    let root = world.root();
    let payload = world.create_stream(root, "s").expect("created");
    // bdd/vectors/sessions/create_send_poll.json, stream_create reply, with the time this log gave it.
    let mut expected = hex(
        "00000000aaaaaaaaaaaaaaaa00000000000000000000000000000000000000000173000000002300000002150000\
                            00656e6372797074696f6e5f6b65795f736f7572636502040000006e6f6e65",
    );
    let created_at = world.metadata.applied().timestamp;
    expected[4..12].copy_from_slice(&created_at.to_le_bytes());
    assert_eq!(payload.as_ref(), expected.as_slice());
}

#[test]
fn given_a_new_topic_when_created_should_answer_as_the_recorded_exchange() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    let explicit = options(&[
        ("durability", text("replicated")),
        ("consumer_offset_durability", text("replicated")),
    ]);
    let payload = world.create_topic_with(root, "s", "t", 1, explicit).expect("created");
    // bdd/vectors/sessions/create_send_poll.json, topic_create reply, up to the partition's own counters.
    let mut expected = hex("00000000aaaaaaaaaaaaaaaa01000000000000000000000000000000000000000174\
        4c000000021a000000636f6e73756d65725f6f66667365745f6475726162696c697479020a0000007265706c696361746564\
        020a0000006475726162696c697479020a0000007265706c696361746564\
        420100000215000000636f6d7072657373696f6e5f616c676f726974686d02040000006e6f6e65\
        020e0000006d61785f746f7069635f73697a650c08000000ffffffffffffffff\
        020e0000006d6573736167655f6578706972790c08000000ffffffffffffffff\
        02190000006d657373616765735f72657175697265645f746f5f736176650b0400000000040000\
        0217000000706172746974696f6e5f726573697a655f706f6c69637902070000006d757461626c65\
        0214000000707265616c6c6f636174655f7365676d656e7473030100000000\
        02120000007265706c69636174696f6e5f666163746f720b0400000001000000\
        020c0000007365676d656e745f73697a650c080000000000004000000000\
        022100000073697a655f6f665f6d657373616765735f72657175697265645f746f5f736176650c080000000000100000000000");
    let applied = world.metadata.applied();
    expected[4..12].copy_from_slice(&applied.timestamp.to_le_bytes());
    assert_eq!(&payload[..expected.len()], expected.as_slice());
    let details = TopicDetails::from_bytes(&payload).expect("a topic with its partitions");
    let partition = &details.partitions[0];
    assert_eq!(
        (partition.context.incarnation, partition.context.metadata_op),
        (applied.op, applied.op)
    );
    assert_eq!(partition.context.owner_generation, 0);
    assert_eq!(partition.members, vec![0]);
}

#[test]
fn given_names_in_use_when_creating_again_should_refuse_each_with_its_code() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 1).expect("created");
    world.create_group(root, "s", "t", "g").expect("created");
    assert_eq!(world.create_stream(root, "s"), Err(ErrorCode::StreamNameAlreadyExists));
    assert_eq!(
        world.create_topic(root, "s", "t", 1),
        Err(ErrorCode::TopicNameAlreadyExists)
    );
    assert_eq!(
        world.create_group(root, "s", "t", "g"),
        Err(ErrorCode::ConsumerGroupNameAlreadyExists)
    );
    assert_eq!(world.create_user(root, "iggy", None), Err(ErrorCode::UserAlreadyExists));
}

#[test]
fn given_two_creates_of_one_name_in_the_log_when_applied_should_commit_the_refusal_of_the_second() {
    let mut world = World::new();
    let root = world.root();
    let body = iggy_protocol::Encode::to_bytes(&CreateStream {
        name: support::name("s"),
        options: Options::new(),
    });
    let (first, second) = (world.request(root), world.request(root));
    let first_change = world.admit(&first, Command::CreateStream, &body).expect("admitted");
    let second_change = world
        .admit(&second, Command::CreateStream, &body)
        .expect("admitted against the same state");
    world.commit(first, &first_change);
    let receipt = world.commit(second, &second_change).receipt;
    assert_eq!(
        receipt.outcome,
        iggy_metadata::Outcome::Refused(ErrorCode::StreamNameAlreadyExists)
    );
    assert_eq!(world.metadata.counts().streams, 1);
}

#[test]
fn given_missing_resources_when_named_should_tell_numbers_from_names() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 1).expect("created");
    let number = Identifier::numeric(99);
    let metadata = &world.metadata;
    assert_eq!(metadata.stream(&number).err(), Some(ErrorCode::StreamIdNotFound));
    assert_eq!(metadata.stream(&named("x")).err(), Some(ErrorCode::StreamNameNotFound));
    assert_eq!(
        metadata.topic(&named("s"), &number).err(),
        Some(ErrorCode::TopicIdNotFound)
    );
    assert_eq!(
        metadata.topic(&named("s"), &named("x")).err(),
        Some(ErrorCode::TopicNameNotFound)
    );
    assert_eq!(
        metadata.topic(&named("x"), &named("t")).err(),
        Some(ErrorCode::StreamNameNotFound)
    );
    assert_eq!(
        metadata.partition(&named("s"), &named("t"), 1).err(),
        Some(ErrorCode::PartitionNotFound)
    );
    let topic = topic_of(&world, "s", "t");
    assert_eq!(
        metadata.group(&topic, &number).err(),
        Some(ErrorCode::ConsumerGroupIdNotFound)
    );
    assert_eq!(
        metadata.group(&topic, &named("x")).err(),
        Some(ErrorCode::ConsumerGroupNameNotFound)
    );
    assert_eq!(
        world.write(root, Command::DeleteStream, &DeleteStream { stream: named("nope") }),
        Err(ErrorCode::StreamNameNotFound)
    );
    // A get of nothing is an empty reply; a list under nothing is an error.
    assert!(
        world
            .read(root, Command::GetStream, &GetStream { stream: number.clone() })
            .expect("answered")
            .is_empty()
    );
    assert!(
        world
            .read(
                root,
                Command::GetTopic,
                &GetTopic {
                    stream: named("s"),
                    topic: named("x")
                }
            )
            .expect("answered")
            .is_empty()
    );
    assert_eq!(
        world.read(root, Command::GetTopics, &GetTopics { stream: named("x") }),
        Err(ErrorCode::StreamNameNotFound)
    );
}

#[test]
fn given_partition_counts_when_creating_should_allow_one_to_a_thousand() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    assert_eq!(
        world.create_topic(root, "s", "none", 0),
        Err(ErrorCode::InvalidPartitionsCount)
    );
    assert_eq!(
        world.create_topic(root, "s", "many", 1001),
        Err(ErrorCode::TooManyPartitions)
    );
    world.create_topic(root, "s", "most", 1000).expect("created");
    assert_eq!(
        world.create_partitions(root, "s", "most", 0),
        Err(ErrorCode::InvalidPartitionsCount)
    );
    assert_eq!(
        world.create_partitions(root, "s", "most", 1001),
        Err(ErrorCode::TooManyPartitions)
    );
    assert_eq!(
        world.delete_partitions(root, "s", "most", 1001),
        Err(ErrorCode::TooManyPartitions)
    );
    world.create_topic(root, "s", "few", 2).expect("created");
    assert_eq!(
        world.delete_partitions(root, "s", "few", 3),
        Err(ErrorCode::InvalidPartitionsCount)
    );
}

#[test]
fn given_a_removed_partition_when_added_again_should_have_another_incarnation() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 3).expect("created");
    let before: Vec<_> = topic_of(&world, "s", "t").partition_keys(0).collect();
    world.delete_partitions(root, "s", "t", 2).expect("removed");
    assert_eq!(
        deleted_partitions(&world),
        vec![before[2], before[1]],
        "from the highest id down"
    );
    world.create_partitions(root, "s", "t", 1).expect("added");
    let after: Vec<_> = topic_of(&world, "s", "t").partition_keys(0).collect();
    assert_eq!(after[0], before[0]);
    assert_eq!(after[1].partition_id, 1);
    assert_eq!(after[1].incarnation, world.metadata.applied().op);
    assert!(world.metadata.partition_by_key(&before[1]).is_none());
    assert!(world.metadata.partition_by_key(&after[1]).is_some());
}

#[test]
fn given_a_fixed_topic_when_resized_should_be_refused() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    let fixed = options(&[("partition_resize_policy", text("fixed"))]);
    world.create_topic_with(root, "s", "t", 2, fixed).expect("created");
    assert_eq!(
        world.create_partitions(root, "s", "t", 1),
        Err(ErrorCode::PartitionResizeDisabled)
    );
    assert_eq!(
        world.delete_partitions(root, "s", "t", 1),
        Err(ErrorCode::PartitionResizeDisabled)
    );
}

#[test]
fn given_bad_options_when_creating_a_topic_should_refuse_each_with_its_code() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    let small = TypedValue::uint64(1);
    let cases = [
        (
            options(&[("unknown", small.clone())]),
            1,
            ErrorCode::UnsupportedOptionKey,
        ),
        (
            options(&[("username", text("bob"))]),
            1,
            ErrorCode::UnsupportedOptionKey,
        ),
        (options(&[("critical_keys", text("x"))]), 1, ErrorCode::ReadOnlyOption),
        (options(&[("name", text("x"))]), 1, ErrorCode::InvalidOptionValue),
        (
            options(&[("segment_size", small.clone())]),
            1,
            ErrorCode::InvalidOptionValue,
        ),
        (options(&[("max_topic_size", small)]), 1, ErrorCode::InvalidOptionValue),
        (
            options(&[("durability", text("hoped"))]),
            1,
            ErrorCode::InvalidOptionValue,
        ),
        (
            options(&[("replication_factor", TypedValue::uint32(33))]),
            1,
            ErrorCode::InvalidReplicationFactor,
        ),
        (
            options(&[("replication_factor", TypedValue::uint32(2))]),
            1,
            ErrorCode::InvalidReplicationFactor,
        ),
        (
            options(&[("preallocate_segments", TypedValue::bool(true))]),
            65,
            ErrorCode::InvalidOptionValue,
        ),
    ];
    for (bad, partitions, code) in cases {
        let refused = world.create_topic_with(root, "s", "t", partitions, bad.clone());
        assert_eq!(refused, Err(code), "{bad:?}");
    }
    assert_eq!(world.metadata.counts().topics, 0);
}

#[test]
fn given_an_encryption_key_when_creating_a_stream_without_a_server_key_should_be_refused() {
    let mut world = World::new();
    let root = world.root();
    let key = TypedValue::raw(&[7; 32]).expect("32 bytes");
    let request = CreateStream {
        name: support::name("s"),
        options: options(&[("encryption_key", key)]),
    };
    assert_eq!(
        world.write(root, Command::CreateStream, &request),
        Err(ErrorCode::StreamEncryptionUnavailable)
    );
    let short = TypedValue::raw(&[7; 31]).expect("31 bytes");
    let request = CreateStream {
        name: support::name("s"),
        options: options(&[("encryption_key", short)]),
    };
    assert_eq!(
        world.write(root, Command::CreateStream, &request),
        Err(ErrorCode::InvalidEncryptionKey)
    );
}

#[test]
fn given_a_topic_when_updated_should_set_reset_and_rename() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 1).expect("created");
    let topic = || Resource::Topic {
        stream: named("s"),
        topic: named("t"),
    };
    let expiry = options(&[("message_expiry", TypedValue::uint64(5_000))]);
    world.update(root, topic(), expiry, &[]).expect("set");
    assert_eq!(topic_of(&world, "s", "t").settings.message_expiry, 5_000);
    assert!(
        matches!(&world.events[..], [Event::TopicSettingsChanged { settings, .. }] if settings.message_expiry == 5_000)
    );
    world
        .update(root, topic(), Options::new(), &["message_expiry"])
        .expect("reset");
    assert_eq!(topic_of(&world, "s", "t").settings.message_expiry, u64::MAX);
    // 0 is "server default": the key goes back as if it was reset.
    world
        .update(
            root,
            topic(),
            options(&[("message_expiry", TypedValue::uint64(7))]),
            &[],
        )
        .expect("set");
    world
        .update(
            root,
            topic(),
            options(&[("message_expiry", TypedValue::uint64(0))]),
            &[],
        )
        .expect("default");
    assert!(!topic_of(&world, "s", "t").options.explicit.contains("message_expiry"));
    world
        .update(root, topic(), options(&[("name", text("renamed"))]), &[])
        .expect("renamed");
    assert!(world.events.is_empty(), "a name is no setting");
    assert_eq!(
        world.metadata.topic(&named("s"), &named("t")).err(),
        Some(ErrorCode::TopicNameNotFound)
    );
    assert_eq!(topic_of(&world, "s", "renamed").name.as_str(), "renamed");
}

#[test]
fn given_bad_updates_when_admitted_should_refuse_each_with_its_code() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_stream(root, "other").expect("created");
    world.create_topic(root, "s", "t", 1).expect("created");
    let stream = || Resource::Stream(named("s"));
    let topic = || Resource::Topic {
        stream: named("s"),
        topic: named("t"),
    };
    let none = Options::new;
    let cases: Vec<(Resource, Options, &[&str], ErrorCode)> = vec![
        (stream(), none(), &[], ErrorCode::InvalidCommand),
        (
            topic(),
            none(),
            &["message_expiry", "message_expiry"],
            ErrorCode::InvalidCommand,
        ),
        (
            topic(),
            options(&[("message_expiry", TypedValue::uint64(1))]),
            &["message_expiry"],
            ErrorCode::InvalidCommand,
        ),
        (
            stream(),
            options(&[("foo", text("bar"))]),
            &[],
            ErrorCode::UnsupportedOptionKey,
        ),
        (stream(), none(), &["name"], ErrorCode::OptionNotResettable),
        (
            stream(),
            options(&[("name", text("other"))]),
            &[],
            ErrorCode::StreamNameAlreadyExists,
        ),
        (
            stream(),
            options(&[("encryption_key_source", text("server"))]),
            &[],
            ErrorCode::ReadOnlyOption,
        ),
        (
            topic(),
            options(&[("segment_size", TypedValue::uint64(2_097_152))]),
            &[],
            ErrorCode::OptionNotUpdatable,
        ),
        (
            topic(),
            options(&[("max_topic_size", TypedValue::uint64(1))]),
            &[],
            ErrorCode::InvalidOptionValue,
        ),
        (
            Resource::Stream(named("x")),
            options(&[("name", text("y"))]),
            &[],
            ErrorCode::StreamNameNotFound,
        ),
        (
            Resource::User(named("iggy")),
            options(&[("username", text("admin"))]),
            &[],
            ErrorCode::CannotModifyRootUser,
        ),
        (
            Resource::User(named("nobody")),
            options(&[("status", text("active"))]),
            &[],
            ErrorCode::ResourceNotFound,
        ),
    ];
    for (resource, set, reset, code) in cases {
        let refused = world.update(root, resource.clone(), set.clone(), reset);
        assert_eq!(refused, Err(code), "{resource:?} {set:?} {reset:?}");
    }
}

#[test]
fn given_a_stream_when_deleted_should_take_everything_in_it_along() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 2).expect("created");
    world.create_group(root, "s", "t", "g").expect("created");
    world.join(root, "s", "t", "g").expect("joined");
    assert_eq!(world.metadata.groups_of(root.key).len(), 1);
    let keys: Vec<_> = topic_of(&world, "s", "t").partition_keys(0).collect();
    world
        .write(root, Command::DeleteStream, &DeleteStream { stream: named("s") })
        .expect("deleted");
    assert_eq!(deleted_partitions(&world), keys);
    assert!(
        world
            .events
            .iter()
            .any(|event| matches!(event, Event::GroupDeleted { .. }))
    );
    assert!(
        world.metadata.groups_of(root.key).is_empty(),
        "a membership of a deleted group is gone"
    );
    // The name is free, the id is not used again.
    let again = world.create_stream(root, "s").expect("created");
    assert_eq!(StreamDetails::from_bytes(&again).expect("a stream").stream.id, 1);
}

#[test]
fn given_a_change_of_a_deleted_life_when_applied_should_not_touch_the_new_one() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 1).expect("created");
    let request = DeleteTopic {
        stream: named("s"),
        topic: named("t"),
    };
    let stale = world.request(root);
    let body = iggy_protocol::Encode::to_bytes(&request);
    let change = world.admit(&stale, Command::DeleteTopic, &body).expect("admitted");
    world.write(root, Command::DeleteTopic, &request).expect("deleted");
    world.create_topic(root, "s", "t", 1).expect("created again");
    let late = iggy_metadata::RequestKey {
        request: stale.request + 100,
        ..stale
    };
    let receipt = world.commit(late, &change).receipt;
    assert_eq!(
        receipt.outcome,
        iggy_metadata::Outcome::Refused(ErrorCode::TopicIdNotFound)
    );
    assert_eq!(world.metadata.counts().topics, 1);
}

#[test]
fn given_segments_to_delete_when_the_partition_is_another_by_then_should_say_its_history_changed() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 1).expect("created");
    let request = |partition_id, segments_count| DeleteSegments {
        stream: named("s"),
        topic: named("t"),
        partition_id,
        segments_count,
    };
    assert_eq!(
        world.write(root, Command::DeleteSegments, &request(1, 1)),
        Err(ErrorCode::PartitionNotFound)
    );
    assert_eq!(
        world.write(root, Command::DeleteSegments, &request(0, 0)),
        Err(ErrorCode::InvalidSegmentsCount)
    );
    world
        .write(root, Command::DeleteSegments, &request(0, 3))
        .expect("truncated");
    assert!(matches!(
        &world.events[..],
        [Event::TruncatePartition { before_offset: 300, .. }]
    ));
    assert_eq!(
        topic_of(&world, "s", "t")
            .partition(0)
            .expect("exists")
            .truncated_before,
        300
    );

    let late = world.request(root);
    let body = iggy_protocol::Encode::to_bytes(&request(0, 1));
    let change = world.admit(&late, Command::DeleteSegments, &body).expect("admitted");
    world.delete_partitions(root, "s", "t", 1).expect("removed");
    world.create_partitions(root, "s", "t", 1).expect("added");
    let late = iggy_metadata::RequestKey {
        request: late.request + 100,
        ..late
    };
    let receipt = world.commit(late, &change).receipt;
    assert_eq!(
        receipt.outcome,
        iggy_metadata::Outcome::Refused(ErrorCode::PartitionHistoryChanged)
    );
}

#[test]
fn given_several_nodes_when_creating_should_place_by_what_each_was_given_before() {
    let mut world = World::new();
    world.settings = Settings::new(vec![0, 1, 4], 2, &Options::new()).expect("valid settings");
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 3).expect("created");
    let members: Vec<_> = topic_of(&world, "s", "t")
        .partitions
        .iter()
        .map(|partition| partition.members.clone())
        .collect();
    assert_eq!(members, vec![vec![0, 1], vec![4, 1], vec![1, 0]]);
    world.settings.set_ready(&[1, 4]);
    world.create_topic(root, "s", "u", 2).expect("created");
    let members: Vec<_> = topic_of(&world, "s", "u")
        .partitions
        .iter()
        .map(|partition| partition.members.clone())
        .collect();
    assert_eq!(members, vec![vec![4, 1], vec![1, 4]]);
    let too_many = options(&[("replication_factor", TypedValue::uint32(4))]);
    assert_eq!(
        world.create_topic_with(root, "s", "x", 1, too_many),
        Err(ErrorCode::InvalidReplicationFactor)
    );
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ascii"), 16).expect("hex"))
        .collect()
}
