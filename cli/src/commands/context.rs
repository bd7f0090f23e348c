//! Contexts: local, nothing is sent.

use std::path::Path;

use anyhow::Result;

use crate::arguments::{ConnectionArguments, ContextCommand, ContextCreateArguments, ListMode};
use crate::output::{Cell, Form, Output, Record};
use crate::store::{Store, StoredContext};

const HIDDEN: &str = "********";

pub(super) fn run(command: ContextCommand, mut store: Store, path: &Path, output: Output) -> Result<()> {
    match command {
        ContextCommand::List { list_mode } => list(&store, output, list_mode)?,
        ContextCommand::Use { name } => {
            store.activate(&name)?;
            store.save(path)?;
            output.confirm(&format!("the context `{name}` is active"))?;
        }
        ContextCommand::Create(arguments) => {
            let name = arguments.name.clone();
            store.add(&name, stored(*arguments))?;
            store.save(path)?;
            output.confirm(&format!(
                "created the context `{name}`; `iggy context use {name}` makes it the active one"
            ))?;
        }
        ContextCommand::Delete { name } => {
            store.remove(&name)?;
            store.save(path)?;
            output.confirm(&format!("deleted the context `{name}`"))?;
        }
        ContextCommand::Show { name } => output.record(&record(&name, &store.context(&name)?), Form::Table)?,
    }
    Ok(())
}

fn list(store: &Store, output: Output, mode: ListMode) -> Result<()> {
    let row = |(name, context): &(String, StoredContext)| {
        Record::new()
            .with("name", name.as_str())
            .with("active", Cell::Flag(name == store.active_name()))
            .with("tcp_server_address", Cell::optional(context.tcp_server_address.clone()))
    };
    let rows: Vec<_> = store.contexts().iter().map(row).collect();
    Ok(output.records(&rows, mode.into())?)
}

fn stored(arguments: ContextCreateArguments) -> StoredContext {
    let ContextCreateArguments {
        name: _,
        username,
        password,
        token,
        token_name,
        connection,
    } = arguments;
    let ConnectionArguments {
        transport: _,
        tcp_server_address,
        tcp_reconnection_max_retries,
        tcp_reconnection_interval,
        tcp_tls_enabled,
        tcp_tls_domain,
        tcp_tls_ca_file,
        encryption_key,
    } = connection;
    StoredContext {
        tcp_server_address,
        tcp_reconnection_max_retries,
        tcp_reconnection_interval: tcp_reconnection_interval.map(|time| humantime::format_duration(time).to_string()),
        tcp_tls_enabled,
        tcp_tls_domain,
        tcp_tls_ca_file,
        encryption_key,
        username,
        password,
        token,
        token_name,
        session: None,
    }
}

fn record(name: &str, context: &StoredContext) -> Record {
    let hidden = |secret: &Option<String>| secret.as_ref().map_or(Cell::Nothing, |_| HIDDEN.into());
    let ca_file = context.tcp_tls_ca_file.as_ref().map(|path| path.display().to_string());
    Record::new()
        .with("name", name)
        .with("tcp_server_address", Cell::optional(context.tcp_server_address.clone()))
        .with(
            "tcp_reconnection_max_retries",
            Cell::optional(context.tcp_reconnection_max_retries),
        )
        .with(
            "tcp_reconnection_interval",
            Cell::optional(context.tcp_reconnection_interval.clone()),
        )
        .with(
            "tcp_tls_enabled",
            context.tcp_tls_enabled.map_or(Cell::Nothing, Cell::Flag),
        )
        .with("tcp_tls_domain", Cell::optional(context.tcp_tls_domain.clone()))
        .with("tcp_tls_ca_file", Cell::optional(ca_file))
        .with("username", Cell::optional(context.username.clone()))
        .with("password", hidden(&context.password))
        .with("token", hidden(&context.token))
        .with("token_name", Cell::optional(context.token_name.clone()))
        .with("encryption_key", hidden(&context.encryption_key))
        .with("signed_in", Cell::Flag(context.session.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_secrets_should_never_show_them() {
        let context = StoredContext {
            username: Some("ann".to_owned()),
            password: Some("pass-secret".to_owned()),
            token: Some("token-secret".to_owned()),
            encryption_key: Some("key-secret".to_owned()),
            ..StoredContext::default()
        };
        let shown = serde_json::Value::Object(record("prod", &context).json()).to_string();
        assert!(shown.contains("ann") && !shown.contains("secret"), "{shown}");
    }
}
