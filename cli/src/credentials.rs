//! Which credentials a command signs in with.
//!
//! What is written on the command line wins over the environment, the environment over what `login` stored, and that
//! over the context. In the environment a token wins over a name with password.

use std::env;

use anyhow::{Result, bail};

use crate::arguments::GlobalArguments;
use crate::store::{Store, StoredContext};

/// What to sign in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A name and its password.
    Password {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
    /// A personal access token.
    Token(String),
}

/// The variables that carry credentials.
#[derive(Debug, Default)]
pub struct Environment {
    username: Option<String>,
    password: Option<String>,
    token: Option<String>,
}

impl Environment {
    /// Those of this process; empty ones count as missing.
    pub fn of_process() -> Self {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            username: variable("IGGY_USERNAME"),
            password: variable("IGGY_PASSWORD"),
            token: variable("IGGY_TOKEN"),
        }
    }
}

/// Chooses the credentials for `server` at the time `now` (microseconds since the epoch).
pub fn choose(
    arguments: &GlobalArguments,
    environment: Environment,
    store: &Store,
    server: &str,
    now: u64,
) -> Result<Credentials> {
    if let Some(token) = &arguments.token {
        return Ok(Credentials::Token(token.clone()));
    }
    if let Some(name) = &arguments.token_name {
        return stored_token(store, server, name);
    }
    if let Some(pair) = pair(arguments.username.as_ref(), arguments.password.as_ref()) {
        return Ok(pair);
    }
    if let Some(token) = environment.token {
        return Ok(Credentials::Token(token));
    }
    match (environment.username, environment.password) {
        (Some(username), Some(password)) => return Ok(Credentials::Password { username, password }),
        (None, None) => {}
        (Some(_), None) => bail!("IGGY_USERNAME is set without IGGY_PASSWORD"),
        (None, Some(_)) => bail!("IGGY_PASSWORD is set without IGGY_USERNAME"),
    }
    of_context(&store.active(), store, server, now)
}

fn of_context(context: &StoredContext, store: &Store, server: &str, now: u64) -> Result<Credentials> {
    if let Some(session) = &context.session
        && session.server == server
        && session.expires_at.is_none_or(|expires_at| now < expires_at)
    {
        return Ok(Credentials::Token(session.token.clone()));
    }
    if let Some(token) = &context.token {
        return Ok(Credentials::Token(token.clone()));
    }
    if let Some(name) = &context.token_name {
        return stored_token(store, server, name);
    }
    if let Some(pair) = pair(context.username.as_ref(), context.password.as_ref()) {
        return Ok(pair);
    }
    bail!(
        "no credentials: give --username and --password or --token, set IGGY_USERNAME and IGGY_PASSWORD or IGGY_TOKEN, \
         run `iggy login`, or put them into a context"
    )
}

fn pair(username: Option<&String>, password: Option<&String>) -> Option<Credentials> {
    let (username, password) = (username?.clone(), password?.clone());
    Some(Credentials::Password { username, password })
}

fn stored_token(store: &Store, server: &str, name: &str) -> Result<Credentials> {
    match store.token(server, name) {
        Some(token) => Ok(Credentials::Token(token.to_owned())),
        None => bail!("no token `{name}` is stored for {server}; `iggy pat create {name} --store-token` stores one"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::Arguments;
    use crate::store::StoredSession;

    const SERVER: &str = "broker:8090";

    fn flags(line: &str) -> GlobalArguments {
        Arguments::try_parse_from(format!("iggy {line} me").split_whitespace())
            .unwrap()
            .global
    }

    fn environment(username: &str, password: &str, token: &str) -> Environment {
        let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        Environment {
            username: text(username),
            password: text(password),
            token: text(token),
        }
    }

    fn password(username: &str) -> Credentials {
        Credentials::Password {
            username: username.to_owned(),
            password: "secret".to_owned(),
        }
    }

    fn store(change: impl FnOnce(&mut StoredContext)) -> Store {
        let mut store = Store::default();
        store.store_token(SERVER, "laptop", "stored");
        store.change_active(change);
        store
    }

    #[test]
    fn given_several_sources_should_take_the_nearest() {
        let context = store(|context| {
            context.username = Some("context".to_owned());
            context.password = Some("secret".to_owned());
        });
        let token = |text: &str| Credentials::Token(text.to_owned());
        for (line, variables, expected) in [
            ("-t flag", ("env", "secret", "env"), token("flag")),
            ("-n laptop", ("env", "secret", "env"), token("stored")),
            ("-u flag -p secret", ("env", "secret", "env"), password("flag")),
            ("", ("env", "secret", "env"), token("env")),
            ("", ("env", "secret", ""), password("env")),
            ("", ("", "", ""), password("context")),
        ] {
            let environment = environment(variables.0, variables.1, variables.2);
            assert_eq!(
                choose(&flags(line), environment, &context, SERVER, 0).unwrap(),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn given_a_session_should_use_it_at_its_server_until_it_ends() {
        let store = store(|context| {
            context.session = Some(StoredSession {
                server: SERVER.to_owned(),
                token_name: "login".to_owned(),
                token: "session".to_owned(),
                expires_at: Some(100),
            });
        });
        let choose = |server, now| choose(&flags(""), Environment::default(), &store, server, now);
        assert_eq!(choose(SERVER, 99).unwrap(), Credentials::Token("session".to_owned()));
        assert!(choose(SERVER, 100).unwrap_err().to_string().contains("no credentials"));
        assert!(choose("another:8090", 99).is_err());
    }

    #[test]
    fn given_half_a_pair_should_say_which_half_is_missing() {
        let error = choose(&flags(""), environment("env", "", ""), &Store::default(), SERVER, 0).unwrap_err();
        assert!(error.to_string().contains("without IGGY_PASSWORD"), "{error}");
        let error = choose(&flags("-n desktop"), Environment::default(), &store(|_| ()), SERVER, 0).unwrap_err();
        assert!(error.to_string().contains("no token `desktop`"), "{error}");
    }
}
