//! The command line, and the root credentials that only the command line or the environment carry.

use std::path::PathBuf;
use std::{env, fmt};

use clap::Parser;

use super::error::ConfigError;

const USERNAME_VARIABLE: &str = "IGGY_ROOT_USERNAME";
const PASSWORD_VARIABLE: &str = "IGGY_ROOT_PASSWORD";
const DEFAULT_USERNAME: &str = "iggy";
const DEFAULT_PASSWORD: &str = "iggy";
const USERNAME_BYTES: std::ops::RangeInclusive<usize> = 3..=50;
const PASSWORD_BYTES: std::ops::RangeInclusive<usize> = 3..=100;

/// Arguments of `iggy-server`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "iggy-server",
    version,
    about = "A persistent, replicated message-streaming server."
)]
pub struct Arguments {
    /// Configuration file in TOML; only the keys that differ from the defaults
    #[arg(long, value_name = "FILE", env = "IGGY_CONFIG_PATH")]
    pub config: Option<PathBuf>,

    /// Delete the data directory before starting
    #[arg(long, short = 'f')]
    pub fresh: bool,

    /// Give a new data directory the root user `iggy` with the password `iggy`; for trying things out only
    #[arg(long)]
    pub with_default_root_credentials: bool,

    /// Number of this node in its cluster; 0, because a node stands alone
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=0))]
    pub replica_id: u8,

    /// Print every setting with its effective value as TOML, and exit
    #[arg(long)]
    pub print_config: bool,
}

/// Name and password of the root user of a new data directory. A directory that has a root user ignores them.
#[derive(Clone, PartialEq, Eq)]
pub struct RootCredentials {
    /// 3 to 50 bytes.
    pub username: String,
    /// 3 to 100 bytes.
    pub password: String,
}

impl fmt::Debug for RootCredentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RootCredentials")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl RootCredentials {
    /// What a new data directory without credentials is refused with.
    pub const MISSING: &str = "a new data directory needs a root user: set IGGY_ROOT_USERNAME and IGGY_ROOT_PASSWORD, \
                               or pass --with-default-root-credentials to try things out";

    /// Takes the credentials from the environment, or the defaults when the flag asks for them. `None` when neither
    /// is given: then only an existing data directory can be started.
    ///
    /// # Errors
    /// One variable without the other, variables together with the flag, or lengths out of bounds.
    pub fn resolve(arguments: &Arguments) -> Result<Option<Self>, ConfigError> {
        Self::choose(
            arguments.with_default_root_credentials,
            env::var(USERNAME_VARIABLE).ok(),
            env::var(PASSWORD_VARIABLE).ok(),
        )
    }

    fn choose(defaults: bool, username: Option<String>, password: Option<String>) -> Result<Option<Self>, ConfigError> {
        let conflict = |text: String| Err(ConfigError::Conflict(text));
        match (username, password) {
            (None, None) if defaults => Ok(Some(Self {
                username: DEFAULT_USERNAME.to_owned(),
                password: DEFAULT_PASSWORD.to_owned(),
            })),
            (None, None) => Ok(None),
            (Some(_), Some(_)) if defaults => conflict(format!(
                "{USERNAME_VARIABLE} and {PASSWORD_VARIABLE} are set and --with-default-root-credentials is given; \
                 choose one"
            )),
            (Some(username), Some(password)) => {
                check_length(USERNAME_VARIABLE, &username, USERNAME_BYTES)?;
                check_length(PASSWORD_VARIABLE, &password, PASSWORD_BYTES)?;
                Ok(Some(Self { username, password }))
            }
            (Some(_), None) => conflict(format!("{USERNAME_VARIABLE} is set without {PASSWORD_VARIABLE}")),
            (None, Some(_)) => conflict(format!("{PASSWORD_VARIABLE} is set without {USERNAME_VARIABLE}")),
        }
    }
}

/// The value stays out of the message: it may be the password.
fn check_length(name: &str, value: &str, bounds: std::ops::RangeInclusive<usize>) -> Result<(), ConfigError> {
    if bounds.contains(&value.len()) {
        return Ok(());
    }
    Err(ConfigError::Conflict(format!(
        "{name} has {} bytes; allowed: {} to {}",
        value.len(),
        bounds.start(),
        bounds.end()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(
        defaults: bool,
        username: Option<&str>,
        password: Option<&str>,
    ) -> Result<Option<RootCredentials>, ConfigError> {
        RootCredentials::choose(defaults, username.map(str::to_owned), password.map(str::to_owned))
    }

    #[test]
    fn given_both_variables_should_take_them() {
        let chosen = choose(false, Some("root"), Some("secret")).unwrap().unwrap();
        assert_eq!((chosen.username.as_str(), chosen.password.as_str()), ("root", "secret"));
        assert!(!format!("{chosen:?}").contains("secret"));
    }

    #[test]
    fn given_only_the_flag_should_take_the_defaults() {
        let chosen = choose(true, None, None).unwrap().unwrap();
        assert_eq!((chosen.username.as_str(), chosen.password.as_str()), ("iggy", "iggy"));
        assert_eq!(choose(false, None, None).unwrap(), None);
    }

    #[test]
    fn given_half_or_double_credentials_should_refuse() {
        for (defaults, username, password) in [
            (false, Some("root"), None),
            (true, None, Some("secret")),
            (true, Some("root"), Some("secret")),
            (false, Some("ro"), Some("secret")),
            (false, Some("root"), Some("x")),
        ] {
            let error = choose(defaults, username, password).unwrap_err().to_string();
            assert!(error.contains("IGGY_ROOT_"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn given_another_replica_id_than_zero_should_refuse() {
        assert!(Arguments::try_parse_from(["iggy-server", "--replica-id", "0"]).is_ok());
        let error = Arguments::try_parse_from(["iggy-server", "--replica-id", "1"])
            .unwrap_err()
            .to_string();
        assert!(error.contains("0..=0") || error.contains("not in"), "{error}");
    }
}
