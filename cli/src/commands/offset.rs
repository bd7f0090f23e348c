//! Consumer offsets.

use anyhow::{Result, bail};
use iggy_protocol::Consumer;

use super::{NotFound, Session};
use crate::arguments::ConsumerOffsetCommand;
use crate::output::Form;
use crate::view;

pub(super) async fn run(session: &Session, command: ConsumerOffsetCommand) -> Result<()> {
    match command {
        ConsumerOffsetCommand::Get {
            consumer,
            stream,
            topic,
            partition,
            kind,
        } => {
            let consumer = Consumer {
                kind: kind.into(),
                id: consumer,
            };
            let found = session
                .client
                .get_consumer_offset(&consumer, &stream, &topic, partition)
                .await?;
            let Some(offset) = found else {
                bail!(NotFound(format!(
                    "an offset of {} in partition {partition}",
                    consumer.id
                )));
            };
            session
                .output
                .record(&view::consumer_offset(&consumer.id.to_string(), &offset), Form::Table)?;
        }
        ConsumerOffsetCommand::Set {
            consumer,
            stream,
            topic,
            partition,
            offset,
            kind,
        } => {
            let consumer = Consumer {
                kind: kind.into(),
                id: consumer,
            };
            session
                .client
                .store_consumer_offset(&consumer, &stream, &topic, partition, offset)
                .await?;
            let text = format!("stored offset {offset} of {} in partition {partition}", consumer.id);
            session.output.confirm(&text)?;
        }
    }
    Ok(())
}
