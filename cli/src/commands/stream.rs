//! Streams.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use iggy::prelude::*;

use super::{NotFound, Session};
use crate::arguments::{Setting, StreamCommand};
use crate::output::Form;
use crate::view;

pub(super) async fn run(session: &Session, command: StreamCommand) -> Result<()> {
    let (client, output) = (&session.client, session.output);
    match command {
        StreamCommand::Create {
            name,
            stream_id: _,
            stream_key_file,
        } => {
            let mut options = StreamCreateOptions::default();
            if let Some(path) = stream_key_file {
                options.encryption_key = Some(read_key(&path)?);
            }
            let created = client.create_stream(&name, &options).await?;
            if output.is_json() {
                output.record(&view::stream_details(&created), Form::Json)?;
            }
            output.confirm(&format!("created the stream `{name}` with id {}", created.stream.id))?;
        }
        StreamCommand::Delete { stream } => {
            client.delete_stream(&stream).await?;
            output.confirm(&format!("deleted the stream {stream}"))?;
        }
        StreamCommand::Update {
            stream,
            name,
            set,
            reset,
        } => {
            let options = StreamUpdateOptions {
                name,
                raw: settings(&set),
                reset,
            };
            client.update_stream(&stream, &options).await?;
            output.confirm(&format!("updated the stream {stream}"))?;
        }
        StreamCommand::Get { stream } => {
            let Some(details) = client.get_stream(&stream).await? else {
                bail!(NotFound(format!("the stream {stream}")));
            };
            output.record(&view::stream_details(&details), Form::Table)?;
        }
        StreamCommand::List { list_mode } => {
            let streams: Vec<_> = client.get_streams().await?.iter().map(view::stream).collect();
            output.records(&streams, list_mode.into())?;
        }
    }
    Ok(())
}

/// `--set` values as the client takes them.
pub(super) fn settings(set: &[Setting]) -> BTreeMap<String, String> {
    set.iter()
        .map(|setting| (setting.key.clone(), setting.value.clone()))
        .collect()
}

/// Checked here, so that a wrong file is named before anything is sent.
fn read_key(path: &Path) -> Result<[u8; 32]> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the key file {}", path.display()))?;
    let key = STANDARD.decode(text.trim()).ok().and_then(|key| key.try_into().ok());
    key.with_context(|| {
        format!(
            "the key file {} does not hold base64 of exactly 32 bytes",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_key_file_should_take_only_base64_of_32_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, format!("{}\n", STANDARD.encode([7; 32]))).unwrap();
        assert_eq!(read_key(&path).unwrap(), [7; 32]);
        for wrong in [STANDARD.encode([7; 31]), "not base64".to_owned(), String::new()] {
            std::fs::write(&path, wrong).unwrap();
            assert!(read_key(&path).unwrap_err().to_string().contains("exactly 32 bytes"));
        }
        assert!(
            read_key(&folder.path().join("absent"))
                .unwrap_err()
                .to_string()
                .contains("absent")
        );
    }
}
