//! Runs one command: finds out whom to talk to, signs in, does the work, signs out.

mod change;
mod context;
mod group;
mod message;
mod offset;
mod session;
mod stream;
mod system;
mod token;
mod topic;
mod user;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use iggy::prelude::*;

use crate::arguments::{Command, GlobalArguments};
use crate::connect::Connector;
use crate::credentials::{self, Environment};
use crate::output::Output;
use crate::store::Store;

/// How long a command waits for its sign-out.
const GOODBYE_DEADLINE: Duration = Duration::from_secs(5);

/// What a command needs besides its own arguments.
pub struct Session {
    /// The signed-in client.
    pub client: IggyClient,
    /// Where results go.
    pub output: Output,
    /// Address of the server, as tokens are stored under it.
    pub server: String,
    /// What is kept on this machine.
    pub store: Store,
    /// The file it is kept in.
    pub store_path: PathBuf,
}

/// Something that was asked for by id or name and is not there.
#[derive(Debug, thiserror::Error)]
#[error("{0} was not found")]
pub struct NotFound(pub String);

/// Microseconds since the epoch.
pub fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

/// Runs `command`.
pub async fn run(global: &GlobalArguments, command: Command) -> Result<()> {
    let output = Output::new(global.json, global.quiet);
    let store_path = Store::path()?;
    let store = Store::load(&store_path)?;
    let command = match command {
        Command::Context(command) => return context::run(command, store, &store_path, output),
        Command::Session(_) => return session::status(&store, output),
        other => other,
    };
    let connector = Connector::new(&global.connection, &store.active())?;
    if let Command::Ping { count } = command {
        return system::ping(&connector, count, output).await;
    }
    let server = connector.server();
    let credentials = credentials::choose(global, Environment::of_process(), &store, &server, now())?;
    let client = connector.sign_in(credentials).await?;
    let mut session = Session {
        client,
        output,
        server,
        store,
        store_path,
    };
    let outcome = execute(&mut session, command).await;
    // Also after a failure: a session left behind takes a place at the server until it expires.
    let left = say_goodbye(&session.client).await;
    outcome?;
    // The work is done and was said to be; that the goodbye failed changes nothing about it.
    if let Err(reason) = left {
        output.note(&format!("the session was not ended in order: {reason}"));
    }
    Ok(())
}

/// Ends the session, unless the server is slow about it or the user interrupts: whoever stops a command whose server is
/// gone must not wait for the deadline of a call.
async fn say_goodbye(client: &IggyClient) -> Result<()> {
    let goodbye = async {
        let signed_out = client.logout_user().await;
        client.shutdown().await?;
        signed_out?;
        Ok(())
    };
    tokio::select! {
        left = tokio::time::timeout(GOODBYE_DEADLINE, goodbye) => {
            left.with_context(|| format!("the server did not answer within {GOODBYE_DEADLINE:?}"))?
        }
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

async fn execute(session: &mut Session, command: Command) -> Result<()> {
    match command {
        Command::Me => system::me(session).await,
        Command::Stats { output } => system::stats(session, output).await,
        Command::Options { scope } => system::options(session, scope).await,
        Command::Snapshot(arguments) => system::snapshot(session, &arguments).await,
        Command::Metadata(command) => change::run(session, command).await,
        Command::Cluster(command) => system::cluster(session, command).await,
        Command::Client(command) => system::clients(session, command).await,
        Command::Stream(command) => stream::run(session, command).await,
        Command::Topic(command) => topic::run(session, command).await,
        Command::Partition(command) => topic::partitions(session, command).await,
        Command::Segment(command) => topic::segments(session, command).await,
        Command::Message(command) => message::run(session, command).await,
        Command::ConsumerGroup(command) => group::run(session, command).await,
        Command::ConsumerOffset(command) => offset::run(session, command).await,
        Command::User(command) => user::run(session, command).await,
        Command::Pat(command) => token::run(session, command).await,
        Command::Login { expiry } => session::login(session, &expiry).await,
        Command::Logout => session::logout(session).await,
        // Answered before the sign-in.
        Command::Ping { .. } | Command::Context(_) | Command::Session(_) => Ok(()),
    }
}
