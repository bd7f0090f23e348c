//! Personal access tokens.

use anyhow::Result;

use super::Session;
use crate::arguments::{Expiry, TokenCommand};
use crate::output::{Form, Record};
use crate::view;

pub(super) async fn run(session: &mut Session, command: TokenCommand) -> Result<()> {
    match command {
        TokenCommand::Create {
            name,
            expiry,
            store_token,
        } => {
            let expiry = Expiry::from_words(&expiry).map_err(anyhow::Error::msg)?;
            let token = session
                .client
                .create_personal_access_token(&name, expiry.into())
                .await?;
            if store_token {
                session.store.store_token(&session.server, &name, token.expose());
                session.store.save(&session.store_path)?;
                let text = format!("created and stored the token `{name}`; use it with --token-name {name}");
                session.output.confirm(&text)?;
            } else {
                let record = Record::new().with("name", name).with("token", token.expose());
                session.output.record(&record, Form::List)?;
            }
        }
        TokenCommand::Delete { name } => {
            session.client.delete_personal_access_token(&name).await?;
            if session.store.forget_token(&session.server, &name) {
                session.store.save(&session.store_path)?;
            }
            session.output.confirm(&format!("deleted the token `{name}`"))?;
        }
        TokenCommand::List { list_mode } => {
            let tokens: Vec<_> = session
                .client
                .get_personal_access_tokens()
                .await?
                .iter()
                .map(view::token)
                .collect();
            session.output.records(&tokens, list_mode.into())?;
        }
    }
    Ok(())
}
