//! The server itself: pings, statistics, connections, nodes, archives.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use iggy_protocol::Scope;

use super::{NotFound, Session, now};
use crate::arguments::{ClientCommand, ClusterCommand, OptionScope, SnapshotArguments, StatsFormat};
use crate::connect::Connector;
use crate::output::{Cell, Form, Output, Record};
use crate::view;

/// Pings without signing in.
pub(super) async fn ping(connector: &Connector, count: u32, output: Output) -> Result<()> {
    let client = connector.connect().await?;
    let mut times = Vec::new();
    for number in 1..=count {
        let begun = Instant::now();
        client.ping().await?;
        let elapsed = begun.elapsed();
        times.push(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
        output.confirm(&format!("ping {number} of {count}: {elapsed:.2?}"))?;
    }
    client.shutdown().await?;
    let total: u64 = times.iter().sum();
    let summary = Record::new()
        .with("count", count)
        .with("fastest", Cell::Time(times.iter().min().copied().unwrap_or_default()))
        .with("average", Cell::Time(total / u64::from(count)))
        .with("slowest", Cell::Time(times.iter().max().copied().unwrap_or_default()));
    Ok(output.record(&summary, Form::List)?)
}

pub(super) async fn me(session: &Session) -> Result<()> {
    let me = session.client.get_me().await?;
    Ok(session.output.record(&view::client_details(&me), Form::Table)?)
}

pub(super) async fn stats(session: &Session, format: StatsFormat) -> Result<()> {
    let stats = session.client.get_stats().await?;
    Ok(session.output.record(&view::stats(&stats), format.into())?)
}

pub(super) async fn options(session: &Session, scope: OptionScope) -> Result<()> {
    let scope = match scope {
        OptionScope::Topic => Scope::Topic,
        OptionScope::Stream => Scope::Stream,
        OptionScope::User => Scope::User,
    };
    let options: Vec<_> = session
        .client
        .describe_options(scope)
        .await?
        .iter()
        .map(view::option)
        .collect();
    Ok(session.output.records(&options, Form::Table)?)
}

pub(super) async fn cluster(session: &Session, command: ClusterCommand) -> Result<()> {
    let ClusterCommand::Metadata { list_mode } = command;
    let cluster = session.client.get_cluster_metadata().await?;
    Ok(session.output.records(&view::nodes(&cluster), list_mode.into())?)
}

pub(super) async fn clients(session: &Session, command: ClientCommand) -> Result<()> {
    match command {
        ClientCommand::Get { id } => {
            let Some(details) = session.client.get_client(id).await? else {
                bail!(NotFound(format!("the client {id}")));
            };
            session.output.record(&view::client_details(&details), Form::Table)?;
        }
        ClientCommand::List { list_mode } => {
            let clients: Vec<_> = session.client.get_clients().await?.iter().map(view::client).collect();
            session.output.records(&clients, list_mode.into())?;
        }
    }
    Ok(())
}

pub(super) async fn snapshot(session: &Session, arguments: &SnapshotArguments) -> Result<()> {
    let parts: Vec<_> = arguments.snapshot_types.iter().map(|part| (*part).into()).collect();
    let archive = session.client.snapshot(arguments.compression.into(), parts).await?;
    let path = arguments.out_dir.join(format!("iggy-snapshot-{}.zip", now()));
    std::fs::write(&path, &archive).with_context(|| format!("cannot write {}", path.display()))?;
    let record = Record::new()
        .with("file", path.display().to_string())
        .with("size_bytes", Cell::Size(archive.len() as u64));
    Ok(session.output.record(&record, Form::List)?)
}
