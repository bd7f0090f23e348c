//! Streams, topics, partitions, segments and consumer groups.

use cucumber::gherkin::Step;
use cucumber::{given, then, when};
use iggy::prelude::*;

use crate::values::{durability, duration, names};
use crate::world::BddWorld;

fn named(name: &str) -> Identifier {
    Identifier::named(name).unwrap()
}

impl BddWorld {
    async fn create_stream(&mut self, name: &str) -> Result<StreamDetails, IggyError> {
        name.clone_into(&mut self.stream);
        self.client().create_stream(name, &StreamCreateOptions::default()).await
    }

    async fn create_topic(&mut self, name: &str, options: &TopicCreateOptions) -> Result<TopicDetails, IggyError> {
        name.clone_into(&mut self.topic);
        self.sent.clear();
        self.client().create_topic(&self.stream_id(), name, options).await
    }

    pub async fn topic_details(&self) -> TopicDetails {
        let found = self.client().get_topic(&self.stream_id(), &self.topic_id()).await;
        found.unwrap().expect("the topic")
    }
}

fn with_partitions(count: u32) -> TopicCreateOptions {
    TopicCreateOptions {
        partitions_count: Some(count),
        ..TopicCreateOptions::default()
    }
}

#[given(regex = r#"^the stream "(.*)"$"#)]
async fn a_stream(world: &mut BddWorld, name: String) {
    world.create_stream(&name).await.unwrap();
}

#[given(regex = r#"^the stream "(.*)" with the topic "(.*)" of (\d+) partitions$"#)]
async fn a_topic(world: &mut BddWorld, stream: String, topic: String, partitions: u32) {
    world.create_stream(&stream).await.unwrap();
    world.create_topic(&topic, &with_partitions(partitions)).await.unwrap();
}

#[given(regex = r#"^the topic "(.*)" with segments of "(.*)"$"#)]
async fn a_topic_of_segments(world: &mut BddWorld, topic: String, size: String) {
    let options = TopicCreateOptions {
        segment_size: Some(size.parse().unwrap()),
        ..with_partitions(1)
    };
    world.create_topic(&topic, &options).await.unwrap();
}

#[when(regex = r#"^the stream "(.*)" is created$"#)]
async fn create_stream(world: &mut BddWorld, name: String) {
    let created = world.create_stream(&name).await;
    world.keep(created);
}

#[when(regex = r"^a stream with a name of (\d+) bytes is created$")]
async fn create_stream_of_length(world: &mut BddWorld, bytes: usize) {
    let client = world.client();
    let created = client
        .create_stream(&"x".repeat(bytes), &StreamCreateOptions::default())
        .await;
    world.keep(created);
}

#[when(regex = r#"^the stream "(.*)" is renamed to "(.*)"$"#)]
async fn rename_stream(world: &mut BddWorld, old: String, new: String) {
    let options = StreamUpdateOptions {
        name: Some(new),
        ..StreamUpdateOptions::default()
    };
    let renamed = world.client().update_stream(&named(&old), &options).await;
    world.keep(renamed);
}

#[when(regex = r#"^the stream "(.*)" is deleted$"#)]
async fn delete_stream(world: &mut BddWorld, name: String) {
    let deleted = world.client().delete_stream(&named(&name)).await;
    world.keep(deleted);
}

#[then(regex = r#"^the stream "(.*)" exists with (\d+) topics$"#)]
async fn stream_exists(world: &mut BddWorld, name: String, topics: usize) {
    world.expect_no_error();
    let found = world.client().get_stream(&named(&name)).await.unwrap();
    let found = found.expect("the stream");
    assert_eq!(found.stream.name.as_str(), name);
    assert_eq!(found.topics.len(), topics);
}

#[then(regex = r#"^the stream "(.*)" does not exist$"#)]
async fn stream_is_missing(world: &mut BddWorld, name: String) {
    world.expect_no_error();
    assert_eq!(world.client().get_stream(&named(&name)).await.unwrap(), None);
}

#[then(regex = r"^the streams are (.*)$")]
async fn streams_are(world: &mut BddWorld, expected: String) {
    let streams = world.client().get_streams().await.unwrap();
    let found: Vec<_> = streams.iter().map(|stream| stream.name.as_str().to_owned()).collect();
    assert_eq!(found, names(&expected));
}

#[then(regex = r#"^the number of the stream "(.*)" finds the same stream$"#)]
async fn number_of_stream(world: &mut BddWorld, name: String) {
    let client = world.client();
    let by_name = client.get_stream(&named(&name)).await.unwrap().expect("the stream");
    let by_number = client.get_stream(&Identifier::numeric(by_name.stream.id)).await;
    assert_eq!(by_number.unwrap(), Some(by_name));
}

#[when(regex = r#"^the topic "(.*)" is created$"#)]
async fn create_topic(world: &mut BddWorld, name: String) {
    let created = world.create_topic(&name, &with_partitions(1)).await;
    world.keep(created);
}

#[when(regex = r#"^the topic "(.*)" is created with$"#)]
async fn create_topic_with(world: &mut BddWorld, step: &Step, name: String) {
    let mut options = TopicCreateOptions::default();
    for row in &step.table.as_ref().expect("a table").rows {
        let (key, value) = (row[0].as_str(), row[1].as_str());
        match key {
            "partitions" => options.partitions_count = Some(value.parse().unwrap()),
            "durability" => options.durability = durability(value),
            "offset_durability" => options.consumer_offset_durability = durability(value),
            "message_expiry" => options.message_expiry = Some(IggyExpiry::ExpireDuration(duration(value))),
            "max_topic_size" => options.max_topic_size = Some(MaxTopicSize::Custom(value.parse().unwrap())),
            "segment_size" => options.segment_size = Some(value.parse().unwrap()),
            other => panic!("no setting: {other}"),
        }
    }
    let created = world.create_topic(&name, &options).await;
    world.keep(created);
}

/// A setting as the table of a scenario writes it, whatever the unit.
fn same_setting(key: &str, wanted: &str, found: &str) -> bool {
    match key {
        "message_expiry" => duration(wanted).as_micros().to_string() == found,
        "max_topic_size" | "segment_size" => {
            let wanted: IggyByteSize = wanted.parse().unwrap();
            wanted.as_bytes_u64().to_string() == found
        }
        _ => wanted == found,
    }
}

#[then(regex = r#"^the topic "(.*)" has the settings$"#)]
async fn topic_has(world: &mut BddWorld, step: &Step, name: String) {
    world.expect_no_error();
    world.topic = name;
    let found = world.topic_details().await;
    let settings = crate::values::settings(&found);
    for row in &step.table.as_ref().expect("a table").rows {
        let (key, wanted) = (row[0].as_str(), row[1].as_str());
        let has = settings.get(key).unwrap_or_else(|| panic!("no {key} in {settings:?}"));
        assert!(same_setting(key, wanted, has), "{key} is {has}, not {wanted}");
    }
}

#[when(regex = r#"^the message expiry of the topic "(.*)" is set to "(.*)"$"#)]
async fn set_expiry(world: &mut BddWorld, name: String, expiry: String) {
    let options = TopicUpdateOptions {
        message_expiry: Some(IggyExpiry::ExpireDuration(duration(&expiry))),
        ..TopicUpdateOptions::default()
    };
    let updated = world
        .client()
        .update_topic(&world.stream_id(), &named(&name), &options)
        .await;
    world.keep(updated);
}

#[when(regex = r#"^the topic "(.*)" is renamed to "(.*)"$"#)]
async fn rename_topic(world: &mut BddWorld, old: String, new: String) {
    let options = TopicUpdateOptions {
        name: Some(new),
        ..TopicUpdateOptions::default()
    };
    let renamed = world
        .client()
        .update_topic(&world.stream_id(), &named(&old), &options)
        .await;
    world.keep(renamed);
}

#[when(regex = r#"^the topic "(.*)" is deleted$"#)]
async fn delete_topic(world: &mut BddWorld, name: String) {
    let deleted = world.client().delete_topic(&world.stream_id(), &named(&name)).await;
    world.keep(deleted);
}

#[when(regex = r#"^the topic "(.*)" is deleted and created again with (\d+) partitions$"#)]
async fn recreate_topic(world: &mut BddWorld, name: String, partitions: u32) {
    world
        .client()
        .delete_topic(&world.stream_id(), &named(&name))
        .await
        .unwrap();
    world.create_topic(&name, &with_partitions(partitions)).await.unwrap();
}

#[then(regex = r#"^the topic "(.*)" exists with (\d+) partitions$"#)]
async fn topic_exists(world: &mut BddWorld, name: String, partitions: usize) {
    world.expect_no_error();
    world.topic = name;
    assert_eq!(world.topic_details().await.partitions.len(), partitions);
}

#[then(regex = r#"^the topic "(.*)" does not exist$"#)]
async fn topic_is_missing(world: &mut BddWorld, name: String) {
    world.expect_no_error();
    let found = world.client().get_topic(&world.stream_id(), &named(&name)).await;
    assert_eq!(found.unwrap(), None);
}

#[then(regex = r"^the topics are (.*)$")]
async fn topics_are(world: &mut BddWorld, expected: String) {
    let topics = world.client().get_topics(&world.stream_id()).await.unwrap();
    let found: Vec<_> = topics.iter().map(|topic| topic.name.as_str().to_owned()).collect();
    assert_eq!(found, names(&expected));
}

#[then(regex = r#"^the number of the topic "(.*)" finds the same topic$"#)]
async fn number_of_topic(world: &mut BddWorld, name: String) {
    world.topic = name;
    let by_name = world.topic_details().await;
    let number = Identifier::numeric(by_name.topic.id);
    let by_number = world.client().get_topic(&world.stream_id(), &number).await;
    assert_eq!(by_number.unwrap(), Some(by_name));
}

#[when(regex = r"^(\d+) partitions are added$")]
async fn add_partitions(world: &mut BddWorld, count: u32) {
    let client = world.client();
    let added = client
        .create_partitions(&world.stream_id(), &world.topic_id(), count)
        .await;
    world.keep(added);
}

#[when(regex = r"^(\d+) partitions are removed$")]
async fn remove_partitions(world: &mut BddWorld, count: u32) {
    let client = world.client();
    let removed = client
        .delete_partitions(&world.stream_id(), &world.topic_id(), count)
        .await;
    world.keep(removed);
}

#[when(regex = r"^(\d+) segments of partition (\d+) are deleted$")]
async fn delete_segments(world: &mut BddWorld, count: u32, partition: u32) {
    let client = world.client();
    let deleted = client
        .delete_segments(&world.stream_id(), &world.topic_id(), partition, count)
        .await;
    world.keep(deleted);
}

#[then(regex = r"^partition (\d+) holds (\d+) messages$")]
async fn partition_holds(world: &mut BddWorld, partition: usize, count: u64) {
    world.expect_no_error();
    let topic = world.topic_details().await;
    assert_eq!(topic.partitions[partition].messages_count, count);
    assert_eq!(topic.topic.messages_count, count, "and no other partition holds any");
}

#[then(regex = r"^every partition holds (\d+) messages$")]
async fn every_partition_holds(world: &mut BddWorld, count: u64) {
    world.expect_no_error();
    for partition in world.topic_details().await.partitions {
        assert_eq!(partition.messages_count, count, "partition {}", partition.id);
    }
}

#[then(regex = r"^the partitions hold (\d+) messages in all$")]
async fn partitions_hold(world: &mut BddWorld, count: u64) {
    world.expect_no_error();
    assert_eq!(world.topic_details().await.topic.messages_count, count);
}

#[given(regex = r#"^the consumer group "(.*)"$"#)]
async fn a_group(world: &mut BddWorld, name: String) {
    let client = world.client();
    let created = client
        .create_consumer_group(&world.stream_id(), &world.topic_id(), &name)
        .await;
    created.unwrap();
}

#[when(regex = r#"^the consumer group "(.*)" is created$"#)]
async fn create_group(world: &mut BddWorld, name: String) {
    let client = world.client();
    let created = client
        .create_consumer_group(&world.stream_id(), &world.topic_id(), &name)
        .await;
    world.keep(created);
}

#[when(regex = r#"^the consumer group "(.*)" is deleted$"#)]
async fn delete_group(world: &mut BddWorld, name: String) {
    let client = world.client();
    let deleted = client
        .delete_consumer_group(&world.stream_id(), &world.topic_id(), &named(&name))
        .await;
    world.keep(deleted);
}

#[then(regex = r#"^the consumer group "(.*)" exists with (\d+) members$"#)]
async fn group_exists(world: &mut BddWorld, name: String, members: usize) {
    world.expect_no_error();
    let client = world.client();
    let found = client
        .get_consumer_group(&world.stream_id(), &world.topic_id(), &named(&name))
        .await;
    assert_eq!(found.unwrap().expect("the group").members.len(), members);
}

#[then(regex = r#"^the consumer group "(.*)" does not exist$"#)]
async fn group_is_missing(world: &mut BddWorld, name: String) {
    world.expect_no_error();
    let client = world.client();
    let found = client
        .get_consumer_group(&world.stream_id(), &world.topic_id(), &named(&name))
        .await;
    assert_eq!(found.unwrap(), None);
}

#[then(regex = r#"^the options of "(.*)" include "(.*)"$"#)]
async fn options_include(world: &mut BddWorld, scope: String, name: String) {
    let scope = match scope.as_str() {
        "stream" => Scope::Stream,
        "topic" => Scope::Topic,
        "user" => Scope::User,
        other => panic!("no scope: {other}"),
    };
    let options = world.client().describe_options(scope).await.unwrap();
    assert!(options.iter().any(|option| option.key.as_str() == name), "{options:?}");
}
