//! The node, the cluster, and the operations of the client itself.

use std::time::Duration;

use iggy::{
    ChangesStart, GetMetadataChanges, IggyClient, OperationId, Resolution, Scope, SnapshotCompression, SnapshotType,
};
use iggy_view::{changes, resources as view};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{done, list, optional, read};
use crate::Failure;

pub(super) const NAMES: &[&str] = &[
    "abandon_operation",
    "connect",
    "describe_options",
    "disconnect",
    "get_client",
    "get_clients",
    "get_cluster_metadata",
    "get_connection_info",
    "get_me",
    "get_metadata_changes",
    "get_stats",
    "heartbeat_interval",
    "next_producer_id",
    "ping",
    "resolve_operation",
    "shutdown",
    "snapshot",
    "uncertain_operations",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfClient {
    client_id: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfScope {
    scope: ScopeName,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScopeName {
    Stream,
    Topic,
    User,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Snapshot {
    compression: Option<String>,
    #[serde(default)]
    types: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Changes {
    /// `earliest`, `latest`, `current`, or the `next` of a page.
    start: String,
    /// Continues a scan of what exists now, with `current`.
    token: Option<String>,
    /// Microseconds since the Unix epoch.
    since: Option<u64>,
    /// Microseconds since the Unix epoch.
    until: Option<u64>,
    #[serde(default = "most_records")]
    limit: u32,
    #[serde(default)]
    groups: Vec<u8>,
}

fn most_records() -> u32 {
    1_000
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolve {
    operation: u64,
    /// Microseconds.
    deadline: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Abandon {
    operation: u64,
}

pub(super) async fn invoke(client: &IggyClient, operation: &str, arguments: Value) -> Result<Value, Failure> {
    match operation {
        "get_client" => {
            let given: OfClient = read(operation, arguments)?;
            Ok(optional(
                client.get_client(given.client_id).await?,
                view::client_details,
            ))
        }
        "describe_options" => {
            let given: OfScope = read(operation, arguments)?;
            let scope = match given.scope {
                ScopeName::Stream => Scope::Stream,
                ScopeName::Topic => Scope::Topic,
                ScopeName::User => Scope::User,
            };
            Ok(list(&client.describe_options(scope).await?, view::option))
        }
        "snapshot" => snapshot(client, read(operation, arguments)?).await,
        "get_metadata_changes" => metadata_changes(client, read(operation, arguments)?).await,
        "resolve_operation" => {
            let given: Resolve = read(operation, arguments)?;
            let limit = Duration::from_micros(given.deadline);
            let resolved = client.resolve_operation(OperationId(given.operation), limit).await?;
            Ok(resolution(resolved))
        }
        "abandon_operation" => {
            let given: Abandon = read(operation, arguments)?;
            client.abandon_operation(OperationId(given.operation))?;
            Ok(Value::Null)
        }
        _ => {
            let Nothing {} = read(operation, arguments)?;
            without_arguments(client, operation).await
        }
    }
}

async fn without_arguments(client: &IggyClient, operation: &str) -> Result<Value, Failure> {
    match operation {
        "connect" => done(client.connect()).await,
        "disconnect" => done(client.disconnect()).await,
        "shutdown" => done(client.shutdown()).await,
        "ping" => done(client.ping()).await,
        "get_stats" => Ok(view::stats(&client.get_stats().await?)),
        "get_me" => Ok(view::client_details(&client.get_me().await?)),
        "get_clients" => Ok(list(&client.get_clients().await?, view::client)),
        "get_cluster_metadata" => Ok(view::cluster(&client.get_cluster_metadata().await?)),
        "get_connection_info" => {
            let found = client.get_connection_info();
            Ok(json!({ "protocol": found.protocol, "server_address": found.server_address }))
        }
        "heartbeat_interval" => {
            let micros = u64::try_from(client.heartbeat_interval().as_micros());
            Ok(micros.unwrap_or(u64::MAX).into())
        }
        "next_producer_id" => Ok(client.next_producer_id()?.into()),
        _ => Ok(client
            .uncertain_operations()
            .iter()
            .map(|operation| operation.0)
            .collect()),
    }
}

async fn snapshot(client: &IggyClient, given: Snapshot) -> Result<Value, Failure> {
    use base64::Engine;
    let compression = match &given.compression {
        None => SnapshotCompression::Deflated,
        Some(name) => SnapshotCompression::from_name(name)
            .ok_or_else(|| Failure::invalid(format!("there is no compression '{name}'")))?,
    };
    let mut types = Vec::with_capacity(given.types.len());
    for name in &given.types {
        let kind = SnapshotType::from_name(name);
        types.push(kind.ok_or_else(|| Failure::invalid(format!("there is no snapshot of '{name}'")))?);
    }
    if types.is_empty() {
        types.push(SnapshotType::All);
    }
    let archive = client.snapshot(compression, types).await?;
    Ok(base64::engine::general_purpose::STANDARD.encode(archive).into())
}

async fn metadata_changes(client: &IggyClient, given: Changes) -> Result<Value, Failure> {
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    let token = given.token.map(|text| engine.decode(text)).transpose();
    let token = token.map_err(|_| Failure::invalid("the token is not as a page gave it"))?;
    let start = match given.start.as_str() {
        "earliest" => ChangesStart::Earliest,
        "latest" => ChangesStart::Latest,
        "current" => ChangesStart::Current(token.map(Into::into)),
        cursor => ChangesStart::After(changes::parse_cursor(cursor).map_err(Failure::invalid)?),
    };
    let request = GetMetadataChanges {
        start,
        since: given.since,
        until: given.until,
        limit: given.limit,
        groups: given.groups,
    };
    let page = client.get_metadata_changes(&request).await?;
    let mut shown = changes::page(&page);
    if let Value::Object(members) = &mut shown {
        members.insert("token".to_owned(), page.token.map(|token| engine.encode(token)).into());
    }
    Ok(shown)
}

fn resolution(resolution: Resolution) -> Value {
    match resolution {
        Resolution::Applied => json!({ "outcome": "applied" }),
        Resolution::Refused(code) => json!({ "outcome": "not_applied", "code": code.code(), "name": code.name() }),
    }
}
