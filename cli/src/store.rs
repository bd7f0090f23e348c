//! What this program keeps on this machine: contexts, and tokens by name.
//!
//! One TOML file, readable by its owner alone, replaced as a whole through a temporary name: a crash leaves the old file
//! or the new one. Secrets stand in it as they are; whoever can read the owner's files can sign in as the owner.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

/// The context that always exists: defaults, no credentials.
pub const DEFAULT_CONTEXT: &str = "default";

const FOLDER_VARIABLE: &str = "IGGY_HOME";
const FILE: &str = "cli.toml";

/// Everything that is kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// Name of the active context; empty means the default one.
    #[serde(skip_serializing_if = "String::is_empty")]
    active: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    contexts: BTreeMap<String, StoredContext>,
    /// Tokens by server and name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<StoredToken>,
}

/// A named server with credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoredContext {
    /// `host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_server_address: Option<String>,
    /// Dials before giving up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_reconnection_max_retries: Option<u32>,
    /// Pause between dials, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_reconnection_interval: Option<String>,
    /// Whether TLS is spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_tls_enabled: Option<bool>,
    /// Name that the certificate must be good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_tls_domain: Option<String>,
    /// Certificates to trust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_tls_ca_file: Option<PathBuf>,
    /// Key that seals messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption_key: Option<String>,
    /// Name to sign in with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Password to sign in with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Token to sign in with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Name of a stored token to sign in with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_name: Option<String>,
    /// What `login` stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<StoredSession>,
}

/// A token that `login` made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredSession {
    /// Server that knows it.
    pub server: String,
    /// Name that the server knows it by.
    pub token_name: String,
    /// The token.
    pub token: String,
    /// Microseconds since the epoch; `None`: it does not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredToken {
    server: String,
    name: String,
    token: String,
}

impl Store {
    /// The file of this user: in `IGGY_HOME`, else `$XDG_CONFIG_HOME/iggy`, else `~/.config/iggy`.
    pub fn path() -> Result<PathBuf> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let folder = variable(FOLDER_VARIABLE)
            .or_else(|| variable("XDG_CONFIG_HOME").map(|folder| folder.join("iggy")))
            .or_else(|| variable("HOME").map(|home| home.join(".config/iggy")));
        folder
            .map(|folder| folder.join(FILE))
            .context("neither IGGY_HOME nor HOME is set, so there is no place for contexts")
    }

    /// Reads the file; one that is missing is an empty store.
    pub fn load(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).with_context(|| format!("{} is damaged", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Replaces the file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let write = || -> Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let unfinished = path.with_extension(format!("toml.{}", std::process::id()));
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(toml::to_string_pretty(self)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, path)?;
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Name of the active context.
    pub fn active_name(&self) -> &str {
        if self.active.is_empty() {
            DEFAULT_CONTEXT
        } else {
            &self.active
        }
    }

    /// The active context.
    pub fn active(&self) -> StoredContext {
        self.contexts.get(self.active_name()).cloned().unwrap_or_default()
    }

    /// Changes the active context.
    pub fn change_active(&mut self, change: impl FnOnce(&mut StoredContext)) {
        let name = self.active_name().to_owned();
        change(self.contexts.entry(name).or_default());
    }

    /// Every context with its name; the default one first.
    pub fn contexts(&self) -> Vec<(String, StoredContext)> {
        let default = self.contexts.get(DEFAULT_CONTEXT).cloned().unwrap_or_default();
        let others = self.contexts.iter().filter(|(name, _)| *name != DEFAULT_CONTEXT);
        std::iter::once((DEFAULT_CONTEXT.to_owned(), default))
            .chain(others.map(|(name, context)| (name.clone(), context.clone())))
            .collect()
    }

    /// A context by name.
    pub fn context(&self, name: &str) -> Result<StoredContext> {
        match self.contexts.get(name) {
            Some(context) => Ok(context.clone()),
            None if name == DEFAULT_CONTEXT => Ok(StoredContext::default()),
            None => bail!("there is no context `{name}`; there are: {}", self.names()),
        }
    }

    /// Makes a context the active one.
    pub fn activate(&mut self, name: &str) -> Result<()> {
        self.context(name)?;
        name.clone_into(&mut self.active);
        Ok(())
    }

    /// Adds a context.
    pub fn add(&mut self, name: &str, context: StoredContext) -> Result<()> {
        if name.is_empty() || name.len() > 255 {
            bail!("a context name has 1 to 255 bytes, this one has {}", name.len());
        }
        if name == DEFAULT_CONTEXT || self.contexts.contains_key(name) {
            bail!("there is a context `{name}` already");
        }
        self.contexts.insert(name.to_owned(), context);
        Ok(())
    }

    /// Removes a context; the default one becomes active when it was.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        if name == DEFAULT_CONTEXT {
            bail!("the default context cannot be deleted");
        }
        self.context(name)?;
        self.contexts.remove(name);
        if self.active == name {
            self.active.clear();
        }
        Ok(())
    }

    /// The token stored for `server` under `name`.
    pub fn token(&self, server: &str, name: &str) -> Option<&str> {
        let found = self
            .tokens
            .iter()
            .find(|token| token.server == server && token.name == name);
        found.map(|token| token.token.as_str())
    }

    /// Stores a token, in place of one with the same server and name.
    pub fn store_token(&mut self, server: &str, name: &str, token: &str) {
        self.forget_token(server, name);
        let (server, name, token) = (server.to_owned(), name.to_owned(), token.to_owned());
        self.tokens.push(StoredToken { server, name, token });
    }

    /// Removes a token; whether there was one.
    pub fn forget_token(&mut self, server: &str, name: &str) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|token| token.server != server || token.name != name);
        self.tokens.len() < before
    }

    fn names(&self) -> String {
        self.contexts()
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn context(address: &str) -> StoredContext {
        StoredContext {
            tcp_server_address: Some(address.to_owned()),
            ..StoredContext::default()
        }
    }

    #[test]
    fn given_a_saved_store_should_load_the_same_and_be_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/cli.toml");
        assert_eq!(Store::load(&path).unwrap(), Store::default());
        let mut store = Store::default();
        store.add("prod", context("broker:8090")).unwrap();
        store.activate("prod").unwrap();
        store.store_token("broker:8090", "laptop", "secret");
        store.save(&path).unwrap();
        assert_eq!(Store::load(&path).unwrap(), store);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "no unfinished file stays"
        );
    }

    #[test]
    fn given_a_damaged_file_should_name_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cli.toml");
        fs::write(&path, "active = [").unwrap();
        assert!(
            Store::load(&path)
                .unwrap_err()
                .to_string()
                .contains("cli.toml is damaged")
        );
    }

    #[test]
    fn given_contexts_should_keep_the_default_one() {
        let mut store = Store::default();
        assert_eq!(store.active_name(), DEFAULT_CONTEXT);
        assert!(store.remove(DEFAULT_CONTEXT).is_err());
        assert!(store.add(DEFAULT_CONTEXT, StoredContext::default()).is_err());
        assert!(
            store
                .activate("prod")
                .unwrap_err()
                .to_string()
                .contains("there are: default")
        );
        store.add("prod", context("broker:8090")).unwrap();
        assert!(store.add("prod", StoredContext::default()).is_err());
        store.activate("prod").unwrap();
        assert_eq!(store.active(), context("broker:8090"));
        store.remove("prod").unwrap();
        assert_eq!(store.active_name(), DEFAULT_CONTEXT);
    }

    #[test]
    fn given_tokens_should_keep_one_for_each_server_and_name() {
        let mut store = Store::default();
        store.store_token("a:1", "laptop", "old");
        store.store_token("a:1", "laptop", "new");
        store.store_token("b:1", "laptop", "other");
        assert_eq!(store.token("a:1", "laptop"), Some("new"));
        assert!(store.forget_token("a:1", "laptop"));
        assert!(!store.forget_token("a:1", "laptop"));
        assert_eq!(store.token("b:1", "laptop"), Some("other"));
    }
}
