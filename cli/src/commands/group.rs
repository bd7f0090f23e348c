//! Consumer groups.

use anyhow::{Result, bail};

use super::{NotFound, Session};
use crate::arguments::ConsumerGroupCommand;
use crate::output::Form;
use crate::view;

pub(super) async fn run(session: &Session, command: ConsumerGroupCommand) -> Result<()> {
    let (client, output) = (&session.client, session.output);
    match command {
        ConsumerGroupCommand::Create { stream, topic, name } => {
            let created = client.create_consumer_group(&stream, &topic, &name).await?;
            if output.is_json() {
                output.record(&view::group_details(&created), Form::Json)?;
            }
            output.confirm(&format!(
                "created the consumer group `{name}` with id {}",
                created.group.id
            ))?;
        }
        ConsumerGroupCommand::Delete { stream, topic, group } => {
            client.delete_consumer_group(&stream, &topic, &group).await?;
            output.confirm(&format!("deleted the consumer group {group}"))?;
        }
        ConsumerGroupCommand::Get { stream, topic, group } => {
            let Some(details) = client.get_consumer_group(&stream, &topic, &group).await? else {
                bail!(NotFound(format!("the consumer group {group} of the topic {topic}")));
            };
            output.record(&view::group_details(&details), Form::Table)?;
        }
        ConsumerGroupCommand::List {
            stream,
            topic,
            list_mode,
        } => {
            let groups: Vec<_> = client
                .get_consumer_groups(&stream, &topic)
                .await?
                .iter()
                .map(view::group)
                .collect();
            output.records(&groups, list_mode.into())?;
        }
    }
    Ok(())
}
