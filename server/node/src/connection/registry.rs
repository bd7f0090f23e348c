//! The open connections of the node, and which sessions have one.

use iggy_metadata::SessionKey;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A connection as other clients see it.
#[derive(Clone)]
pub struct Entry {
    /// Its number on this node.
    pub client_id: u32,
    /// Address of the client.
    pub address: SocketAddr,
    /// User, once signed in.
    pub user_id: Option<u32>,
    /// Session, once bound.
    pub session: Option<SessionKey>,
    /// Ends the connection.
    pub close: CancellationToken,
}

#[derive(Default)]
struct Table {
    next_id: u32,
    connections: BTreeMap<u32, Entry>,
    sessions: HashMap<SessionKey, Lease>,
}

struct Lease {
    connections: usize,
    unbound_since: Instant,
}

/// See the module's page.
#[derive(Default)]
pub struct Registry {
    table: Mutex<Table>,
}

impl Registry {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a new connection; returns its number.
    pub fn open(&self, address: SocketAddr, close: CancellationToken) -> u32 {
        let mut table = self.table();
        loop {
            table.next_id = table.next_id.wrapping_add(1);
            let client_id = table.next_id;
            if client_id != 0 && !table.connections.contains_key(&client_id) {
                let entry = Entry {
                    client_id,
                    address,
                    user_id: None,
                    session: None,
                    close,
                };
                table.connections.insert(client_id, entry);
                return client_id;
            }
        }
    }

    /// Notes that a connection acts for a session, or with `None` for none.
    pub fn bind(&self, client_id: u32, bound: Option<(SessionKey, u32)>) {
        let mut table = self.table();
        let Some(entry) = table.connections.get_mut(&client_id) else {
            return;
        };
        let before = entry.session.take();
        entry.session = bound.map(|(session, _)| session);
        entry.user_id = bound.map(|(_, user_id)| user_id);
        table.unbind(before);
        if let Some((session, _)) = bound {
            let lease = table.sessions.entry(session);
            lease
                .or_insert_with(|| Lease {
                    connections: 0,
                    unbound_since: Instant::now(),
                })
                .connections += 1;
        }
    }

    /// Forgets a closed connection.
    pub fn close(&self, client_id: u32) {
        let mut table = self.table();
        let session = table.connections.remove(&client_id).and_then(|entry| entry.session);
        table.unbind(session);
    }

    /// Ends every connection of a session.
    pub fn end_session(&self, session: SessionKey) {
        let table = self.table();
        for entry in table
            .connections
            .values()
            .filter(|entry| entry.session == Some(session))
        {
            entry.close.cancel();
        }
    }

    /// Ends every connection once its replies are written.
    pub fn close_all(&self) {
        for entry in self.table().connections.values() {
            entry.close.cancel();
        }
    }

    /// Open connections.
    pub fn len(&self) -> usize {
        self.table().connections.len()
    }

    /// Whether no connection is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One connection.
    pub fn get(&self, client_id: u32) -> Option<Entry> {
        self.table().connections.get(&client_id).cloned()
    }

    /// All connections, in the order of their numbers.
    pub fn list(&self) -> Vec<Entry> {
        self.table().connections.values().cloned().collect()
    }

    /// Whether a session has a connection.
    pub fn is_bound(&self, session: SessionKey) -> bool {
        self.table()
            .sessions
            .get(&session)
            .is_some_and(|lease| lease.connections > 0)
    }

    /// Of `sessions`, those that have been without a connection for `lease`. Sessions never seen since the start count
    /// from their first look.
    pub fn expired(&self, sessions: impl Iterator<Item = SessionKey>, lease: Duration) -> Vec<SessionKey> {
        let now = Instant::now();
        let mut table = self.table();
        let mut seen = HashMap::new();
        let mut expired = Vec::new();
        for session in sessions {
            let kept = table.sessions.remove(&session).unwrap_or(Lease {
                connections: 0,
                unbound_since: now,
            });
            if kept.connections == 0 && now.duration_since(kept.unbound_since) >= lease {
                expired.push(session);
            }
            seen.insert(session, kept);
        }
        // Sessions that have ended meanwhile keep nothing but their open connections.
        table.sessions.retain(|_, kept| kept.connections > 0);
        table.sessions.extend(seen);
        expired
    }
}

impl Table {
    fn unbind(&mut self, session: Option<SessionKey>) {
        if let Some(lease) = session.and_then(|session| self.sessions.get_mut(&session)) {
            lease.connections = lease.connections.saturating_sub(1);
            lease.unbound_since = Instant::now();
        }
    }
}
