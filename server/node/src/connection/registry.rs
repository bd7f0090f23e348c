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
pub struct Registry {
    table: Mutex<Table>,
    /// Tells the time; tests bring their own.
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::with_clock(Instant::now)
    }
}

impl Registry {
    fn with_clock(clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self {
            table: Mutex::default(),
            clock: Box::new(clock),
        }
    }

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
        let now = (self.clock)();
        let mut table = self.table();
        let Some(entry) = table.connections.get_mut(&client_id) else {
            return;
        };
        let before = entry.session.take();
        entry.session = bound.map(|(session, _)| session);
        entry.user_id = bound.map(|(_, user_id)| user_id);
        table.unbind(before, now);
        if let Some((session, _)) = bound {
            let lease = table.sessions.entry(session);
            lease
                .or_insert_with(|| Lease {
                    connections: 0,
                    unbound_since: now,
                })
                .connections += 1;
        }
    }

    /// Forgets a closed connection.
    pub fn close(&self, client_id: u32) {
        let now = (self.clock)();
        let mut table = self.table();
        let session = table.connections.remove(&client_id).and_then(|entry| entry.session);
        table.unbind(session, now);
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
        let now = (self.clock)();
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
    fn unbind(&mut self, session: Option<SessionKey>, now: Instant) {
        if let Some(lease) = session.and_then(|session| self.sessions.get_mut(&session)) {
            lease.connections = lease.connections.saturating_sub(1);
            lease.unbound_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const LEASE: Duration = Duration::from_secs(36);
    const MEMBER: SessionKey = SessionKey { client: 7, session: 9 };

    struct World {
        registry: Registry,
        seconds: Arc<AtomicU64>,
    }

    impl World {
        fn new() -> Self {
            let seconds = Arc::new(AtomicU64::new(0));
            let (clock, start) = (Arc::clone(&seconds), Instant::now());
            let now = move || start + Duration::from_secs(clock.load(Ordering::Relaxed));
            Self {
                registry: Registry::with_clock(now),
                seconds,
            }
        }

        fn connect(&self) -> u32 {
            let address = "192.0.2.1:5000".parse().unwrap();
            let client_id = self.registry.open(address, CancellationToken::new());
            self.registry.bind(client_id, Some((MEMBER, 0)));
            client_id
        }

        fn pass(&self, seconds: u64) {
            self.seconds.fetch_add(seconds, Ordering::Relaxed);
        }

        fn expired(&self) -> bool {
            !self.registry.expired([MEMBER].into_iter(), LEASE).is_empty()
        }
    }

    #[test]
    fn given_a_session_when_its_last_connection_is_gone_should_expire_with_its_lease_and_not_before() {
        let world = World::new();
        let (first, second) = (world.connect(), world.connect());
        world.pass(1_000);
        assert!(!world.expired(), "a connection keeps it");
        world.registry.close(first);
        world.pass(1_000);
        assert!(!world.expired(), "the second one too");
        world.registry.close(second);
        world.pass(35);
        assert!(!world.expired());
        world.pass(1);
        assert!(world.expired());
    }

    #[test]
    fn given_a_session_when_it_reconnects_within_its_lease_should_begin_a_new_one() {
        let world = World::new();
        let first = world.connect();
        world.registry.close(first);
        world.pass(35);
        let second = world.connect();
        world.pass(1_000);
        assert!(!world.expired());
        world.registry.bind(second, None);
        world.pass(35);
        assert!(!world.expired());
        world.pass(1);
        assert!(world.expired());
    }

    #[test]
    fn given_a_session_from_before_a_restart_when_never_bound_should_be_given_one_lease() {
        let world = World::new();
        world.pass(5_000);
        assert!(!world.expired(), "its lease begins with the first look");
        world.pass(36);
        assert!(world.expired());
    }
}
