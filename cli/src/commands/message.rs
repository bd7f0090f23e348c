//! Messages.

mod poll;
mod send;

use anyhow::Result;

use super::Session;
use crate::arguments::MessageCommand;

pub(super) async fn run(session: &Session, command: MessageCommand) -> Result<()> {
    match command {
        MessageCommand::Send(arguments) => send::run(session, arguments).await,
        MessageCommand::Poll(arguments) => poll::run(session, arguments).await,
    }
}
