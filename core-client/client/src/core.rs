//! What every handle of a client shares: configuration, session, links, routes and lanes.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iggy_protocol::reply::system::{ClusterMetadata, NodeRole};
use iggy_protocol::{ErrorCode, Identifier};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::config::{ClientConfig, Endpoint};
use crate::connection::Connection;
use crate::error::IggyError;
use crate::events::{DiagnosticEvent, EventSource};
use crate::lanes::Lanes;
use crate::memberships::Memberships;
use crate::routes::Routes;
use crate::session::{Bound, Intent, Session};

/// A connection and what it is bound to.
#[derive(Debug, Clone)]
pub struct Link {
    /// The connection.
    pub connection: Arc<Connection>,
    /// The session it is bound to, counted by the client; zero before login.
    pub epoch: u64,
    /// The node it leads to, when the roster told.
    pub replica: Option<u8>,
    /// The address it was dialled at.
    pub endpoint: Endpoint,
    /// When it was established.
    pub since: Instant,
}

impl Link {
    /// Whether it can carry requests of this session.
    fn serves(&self, epoch: u64) -> bool {
        self.epoch == epoch && !self.connection.is_closed()
    }
}

#[derive(Debug, Default)]
pub struct Links {
    /// The link the client connected by.
    pub main: Option<Link>,
    /// Links to nodes of a roster of several.
    pub by_replica: HashMap<u8, Link>,
    /// The nodes of the cluster.
    pub roster: Option<Arc<ClusterMetadata>>,
    /// One dial per node at a time.
    dialling: HashMap<u8, Arc<tokio::sync::Mutex<()>>>,
}

/// The shared state of a client.
#[derive(Debug)]
pub struct Core {
    /// Settings.
    pub config: ClientConfig,
    /// The session.
    pub session: Session,
    /// Known routes.
    pub routes: Routes,
    /// Lanes and unresolved operations.
    pub lanes: Lanes,
    /// Diagnostic events.
    pub events: EventSource,
    /// Cancelled when the client is shut down or its last handle is gone.
    pub ended: CancellationToken,
    /// Turns of balanced sends by topic as spelled.
    pub cursors: Mutex<HashMap<(Identifier, Identifier), u32>>,
    /// Groups this client is a member of.
    pub memberships: Memberships,
    /// The next index of a producer id, and the session it counts in.
    pub producer_index: Mutex<(u64, u32)>,
    /// Whether the heartbeat runs.
    pub heartbeat_runs: AtomicBool,
    /// Held by whoever connects or signs in; its backoff outlives attempts.
    pub connecting: tokio::sync::Mutex<Backoff>,
    links: Mutex<Links>,
}

impl Core {
    /// A client that is not connected.
    pub fn new(config: ClientConfig) -> Self {
        Self {
            session: Session::new(config.credentials.clone()),
            routes: Routes::default(),
            lanes: Lanes::new(config.max_pending_operations, config.max_pending_operation_bytes),
            events: EventSource::new(),
            ended: CancellationToken::new(),
            cursors: Mutex::default(),
            memberships: Memberships::default(),
            producer_index: Mutex::default(),
            heartbeat_runs: AtomicBool::new(false),
            connecting: tokio::sync::Mutex::new(Backoff::of_connect(config.reconnection.interval)),
            links: Mutex::default(),
            config,
        }
    }

    /// The links, for a moment.
    pub fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The deadline of a call that names none.
    pub fn default_deadline(&self) -> Instant {
        Instant::now() + self.config.request_timeout
    }

    /// The session, or why there is none.
    pub fn require_session(&self) -> Result<Bound, IggyError> {
        self.session
            .bound()
            .ok_or_else(|| IggyError::new(ErrorCode::Unauthenticated, "the client is not signed in"))
    }

    /// Refuses what a closed or never connected client cannot do.
    pub fn require_open(&self) -> Result<(), IggyError> {
        match self.session.intent() {
            Intent::Connected => Ok(()),
            Intent::Idle => Err(IggyError::new(
                ErrorCode::NotConnected,
                "the client is not connected: call connect first",
            )),
            Intent::Shutdown => Err(IggyError::new(ErrorCode::ClientShutdown, "the client was shut down")),
        }
    }

    /// The link the client connected by, if it serves the current session.
    pub fn live_main(&self) -> Option<Link> {
        let epoch = self.session.bound().map_or(0, |bound| bound.epoch);
        self.links().main.clone().filter(|link| link.serves(epoch))
    }

    /// A live link to a node.
    pub fn live_replica(&self, replica: u8, epoch: u64) -> Option<Link> {
        self.links()
            .by_replica
            .get(&replica)
            .cloned()
            .filter(|link| link.serves(epoch))
    }

    /// The lock of dials to a node.
    pub fn dial_lock(&self, replica: u8) -> Arc<tokio::sync::Mutex<()>> {
        self.links().dialling.entry(replica).or_default().clone()
    }

    /// Every live link.
    pub fn live_links(&self) -> Vec<Link> {
        let links = self.links();
        links
            .main
            .iter()
            .chain(links.by_replica.values())
            .filter(|link| !link.connection.is_closed())
            .cloned()
            .collect()
    }

    /// The roster, when it names more than one node.
    pub fn cluster(&self) -> Option<Arc<ClusterMetadata>> {
        self.links().roster.clone().filter(|roster| roster.nodes.len() > 1)
    }

    /// The metadata primary, when the roster names one.
    pub fn metadata_primary(&self) -> Option<u8> {
        let roster = self.links().roster.clone()?;
        roster
            .nodes
            .iter()
            .find(|node| node.role == NodeRole::Leader)
            .map(|node| node.replica_id)
    }

    /// Whether a link leads to the metadata primary. With one node, or without a roster, every link does.
    pub fn leads_to_metadata_primary(&self, link: &Link) -> bool {
        match self.cluster() {
            None => true,
            Some(_) => link.replica.is_some() && link.replica == self.metadata_primary(),
        }
    }

    /// Ends the session: routes, groups and unresolved writes of it are forgotten.
    pub fn end_session(&self) {
        if let Some(bound) = self.session.end() {
            self.routes.clear();
            self.lanes.forget_session(bound.epoch);
            self.memberships.session_ended();
            self.events.publish(DiagnosticEvent::SignedOut);
        }
    }

    /// After a logout the connection stays, bound to nothing; links to other nodes close.
    pub fn unbind_main(&self) {
        let others = {
            let mut links = self.links();
            if let Some(main) = &mut links.main {
                main.epoch = 0;
            }
            std::mem::take(&mut links.by_replica)
        };
        for link in others.into_values() {
            link.connection.close("the client signed out");
        }
    }

    /// Closes every link.
    pub fn close_links(&self, reason: &'static str) {
        let (main, others) = {
            let mut links = self.links();
            (links.main.take(), std::mem::take(&mut links.by_replica))
        };
        if main.is_some() {
            self.events.publish(DiagnosticEvent::Disconnected);
        }
        for link in main.into_iter().chain(others.into_values()) {
            link.connection.close(reason);
        }
    }
}
