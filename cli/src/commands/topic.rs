//! Topics, their partitions and segments.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use iggy::prelude::*;

use super::stream::settings;
use super::{NotFound, Session};
use crate::arguments::{Expiry, PartitionCommand, SegmentCommand, TopicCommand, TopicCreateArguments};
use crate::output::Form;
use crate::view;

pub(super) async fn run(session: &Session, command: TopicCommand) -> Result<()> {
    let (client, output) = (&session.client, session.output);
    match command {
        TopicCommand::Create(arguments) => create(session, arguments).await?,
        TopicCommand::Delete { stream, topic } => {
            client.delete_topic(&stream, &topic).await?;
            output.confirm(&format!("deleted the topic {topic} of the stream {stream}"))?;
        }
        TopicCommand::Update {
            stream,
            topic,
            name,
            max_topic_size,
            message_expiry,
            set,
            reset,
        } => {
            let mut raw = settings(&set);
            put(&mut raw, "max_topic_size", max_topic_size)?;
            put(&mut raw, "message_expiry", expiry_text(&message_expiry)?)?;
            let options = TopicUpdateOptions {
                name,
                raw,
                reset,
                ..Default::default()
            };
            client.update_topic(&stream, &topic, &options).await?;
            output.confirm(&format!("updated the topic {topic} of the stream {stream}"))?;
        }
        TopicCommand::Get { stream, topic } => {
            let Some(details) = client.get_topic(&stream, &topic).await? else {
                bail!(NotFound(format!("the topic {topic} of the stream {stream}")));
            };
            output.record(&view::topic_details(&details), Form::Table)?;
        }
        TopicCommand::List { stream, list_mode } => {
            let topics: Vec<_> = client.get_topics(&stream).await?.iter().map(view::topic).collect();
            output.records(&topics, list_mode.into())?;
        }
    }
    Ok(())
}

async fn create(session: &Session, arguments: TopicCreateArguments) -> Result<()> {
    let TopicCreateArguments {
        stream,
        name,
        partitions,
        compression,
        expiry,
        topic_id: _,
        max_topic_size,
        durability,
        consumer_offset_durability,
        set,
    } = arguments;
    // Every option goes as text: the catalogue of the protocol reads it, and its refusals name the key.
    let mut raw = settings(&set);
    put(
        &mut raw,
        "compression_algorithm",
        Some(compression).filter(|name| name != "none"),
    )?;
    put(&mut raw, "message_expiry", expiry_text(&expiry)?)?;
    put(
        &mut raw,
        "max_topic_size",
        Some(max_topic_size).filter(|size| size != "server_default"),
    )?;
    let options = TopicCreateOptions {
        partitions_count: Some(partitions),
        durability: durability_of(durability.as_deref()),
        consumer_offset_durability: durability_of(consumer_offset_durability.as_deref()),
        raw,
        ..Default::default()
    };
    let created = session.client.create_topic(&stream, &name, &options).await?;
    if session.output.is_json() {
        session.output.record(&view::topic_details(&created), Form::Json)?;
    }
    let id = created.topic.id;
    Ok(session.output.confirm(&format!(
        "created the topic `{name}` with id {id} and {partitions} partitions"
    ))?)
}

/// The parser lets only the two names through; without one it is the protocol's default.
fn durability_of(name: Option<&str>) -> Durability {
    if name == Some("persisted") {
        Durability::Persisted
    } else {
        Durability::Replicated
    }
}

/// Adds one option, unless `--set` named the same one.
fn put(raw: &mut BTreeMap<String, String>, key: &str, value: Option<String>) -> Result<()> {
    let Some(value) = value else { return Ok(()) };
    if raw.insert(key.to_owned(), value).is_some() {
        bail!("{key} is given twice: by its own option and by --set");
    }
    Ok(())
}

/// Expiry words as the option's text; `None` when there are none.
fn expiry_text(words: &[String]) -> Result<Option<String>> {
    let expiry = Expiry::from_words(words).map_err(anyhow::Error::msg)?;
    Ok(match expiry {
        Expiry::ServerDefault => None,
        Expiry::Never => Some("never".to_owned()),
        Expiry::After(_) => Some(expiry.micros().to_string()),
    })
}

pub(super) async fn partitions(session: &Session, command: PartitionCommand) -> Result<()> {
    match command {
        PartitionCommand::Create { stream, topic, count } => {
            session.client.create_partitions(&stream, &topic, count).await?;
            session.output.confirm(&format!(
                "added {count} partitions to the topic {topic} of the stream {stream}"
            ))?;
        }
        PartitionCommand::Delete { stream, topic, count } => {
            session.client.delete_partitions(&stream, &topic, count).await?;
            session.output.confirm(&format!(
                "removed {count} partitions of the topic {topic} of the stream {stream}"
            ))?;
        }
    }
    Ok(())
}

pub(super) async fn segments(session: &Session, command: SegmentCommand) -> Result<()> {
    let SegmentCommand::Delete {
        stream,
        topic,
        partition,
        count,
    } = command;
    session
        .client
        .delete_segments(&stream, &topic, partition, count)
        .await?;
    Ok(session.output.confirm(&format!(
        "deleted up to {count} sealed segments of partition {partition}"
    ))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_an_option_twice_should_refuse() {
        let mut raw = BTreeMap::new();
        put(&mut raw, "durability", None).unwrap();
        put(&mut raw, "durability", Some("persisted".to_owned())).unwrap();
        let error = put(&mut raw, "durability", Some("replicated".to_owned())).unwrap_err();
        assert!(error.to_string().contains("durability is given twice"), "{error}");
    }

    #[test]
    fn given_expiry_words_should_write_what_the_catalogue_reads() {
        let text = |line: &str| {
            let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            expiry_text(&words).unwrap()
        };
        assert_eq!(text(""), None);
        assert_eq!(text("server_default"), None);
        assert_eq!(text("none").as_deref(), Some("never"));
        assert_eq!(text("1s 500ms").as_deref(), Some("1500000"));
    }
}
