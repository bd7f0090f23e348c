//! Login and logout: a token kept for the commands that follow.

use anyhow::{Result, bail};
use iggy_protocol::ErrorCode;

use super::{Session, now};
use crate::arguments::Expiry;
use crate::output::{Cell, Form, Output, Record};
use crate::store::{Store, StoredSession};

const DEFAULT_TIME: &str = "15m";

/// Shows what `login` stored.
pub(super) fn status(store: &Store, output: Output) -> Result<()> {
    let session = store.active().session;
    let expires_at = session.as_ref().and_then(|session| session.expires_at);
    let valid = session.is_some() && expires_at.is_none_or(|expires_at| now() < expires_at);
    let record = Record::new()
        .with("context", store.active_name())
        .with("signed_in", Cell::Flag(valid))
        .with("server", Cell::optional(session.map(|session| session.server)))
        .with("expires_at", expires_at.map_or(Cell::Nothing, Cell::Moment));
    Ok(output.record(&record, Form::Table)?)
}

/// Makes a token and stores it in the active context.
pub(super) async fn login(session: &mut Session, words: &[String]) -> Result<()> {
    let default = [DEFAULT_TIME.to_owned()];
    let words = if words.is_empty() { &default[..] } else { words };
    let expiry = Expiry::from_words(words).map_err(anyhow::Error::msg)?;
    let begun = now();
    // The time makes the name new: a login on another machine must not collide with this one.
    let token_name = format!("iggy-cli-{begun:x}");
    let token = session
        .client
        .create_personal_access_token(&token_name, expiry.into())
        .await?;
    let expires_at = match expiry {
        Expiry::After(_) => Some(begun.saturating_add(expiry.micros())),
        Expiry::ServerDefault | Expiry::Never => None,
    };
    let stored = StoredSession {
        server: session.server.clone(),
        token_name,
        token: token.expose().to_owned(),
        expires_at,
    };
    session.store.change_active(|context| context.session = Some(stored));
    session.store.save(&session.store_path)?;
    let text = format!(
        "signed in to {} for the context `{}`",
        session.server,
        session.store.active_name()
    );
    Ok(session.output.confirm(&text)?)
}

/// Deletes the token at the server and here.
pub(super) async fn logout(session: &mut Session) -> Result<()> {
    let name = session.store.active_name().to_owned();
    let Some(stored) = session.store.active().session else {
        return Ok(session
            .output
            .confirm(&format!("the context `{name}` was not signed in"))?);
    };
    if stored.server != session.server {
        bail!(
            "the stored session belongs to {}, this is {}",
            stored.server,
            session.server
        );
    }
    // One that the server no longer has is what a logout wants.
    if let Err(error) = session.client.delete_personal_access_token(&stored.token_name).await
        && error.code() != ErrorCode::ResourceNotFound
    {
        return Err(error.into());
    }
    session.store.change_active(|context| context.session = None);
    session.store.save(&session.store_path)?;
    Ok(session.output.confirm(&format!("the context `{name}` is signed out"))?)
}
