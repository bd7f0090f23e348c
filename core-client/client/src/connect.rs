//! Getting a link that serves the session: dial, bind or sign in, read the roster, again until it works.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use iggy_protocol::codec::Decode;
use iggy_protocol::reply::system::ClusterMetadata;
use iggy_protocol::request::session::Credentials;
use iggy_protocol::{Command, ErrorCode};
use tokio::time::{Duration, Instant};

use crate::config::Endpoint;
use crate::connection::{Connection, MAX_REPLY_BYTES};
use crate::core::{Core, Link};
use crate::error::IggyError;
use crate::events::DiagnosticEvent;
use crate::frame_buffer::FrameBuffer;
use crate::session::{Bound, Intent};
use crate::sign_in::{BindOutcome, SignInError, plain_read};
use crate::transport::{self, DialError};

/// How long reading the roster may take.
const ROSTER_LIMIT: Duration = Duration::from_secs(10);

fn unreachable(last: Option<IggyError>, why: &str) -> IggyError {
    match last {
        Some(last) => IggyError::new(ErrorCode::CannotEstablishConnection, format!("{why}: {last}")).with_source(last),
        None => IggyError::new(ErrorCode::CannotEstablishConnection, why),
    }
}

impl Core {
    /// The link the client connected by, connecting again if need be. Waits until `deadline` at most.
    pub async fn main_link(&self, deadline: Instant) -> Result<Link, IggyError> {
        self.require_open()?;
        if let Some(link) = self.live_main() {
            return Ok(link);
        }
        let Ok(mut backoff) = tokio::time::timeout_at(deadline, self.connecting.lock()).await else {
            return Err(IggyError::new(
                ErrorCode::NotConnected,
                "the client did not connect within the deadline",
            ));
        };
        self.require_open()?;
        if let Some(link) = self.live_main() {
            return Ok(link);
        }
        if self
            .links()
            .main
            .as_ref()
            .is_some_and(|link| link.since.elapsed() >= self.config.reconnection.reestablish_after)
        {
            backoff.reset();
        }
        if self.links().main.take().is_some() {
            self.events.publish(DiagnosticEvent::Disconnected);
        }
        let link = self.connect_passes(&mut backoff, deadline).await?;
        Ok(link)
    }

    /// Sweeps all endpoints until one serves, with growing random pauses between the passes.
    async fn connect_passes(
        &self,
        backoff: &mut crate::backoff::Backoff,
        deadline: Instant,
    ) -> Result<Link, IggyError> {
        let mut passes = 0_u32;
        let mut last = None;
        loop {
            for endpoint in self.endpoints() {
                self.require_open()?;
                let establish = tokio::time::timeout_at(deadline, self.establish(&endpoint));
                match establish.await {
                    Ok(Ok(link)) => return Ok(link),
                    Ok(Err(SignInError::Final(error))) => return Err(error),
                    Ok(Err(SignInError::Retry(error))) => last = Some(error),
                    Err(_) => return Err(unreachable(last, "not connected within the deadline")),
                }
            }
            passes += 1;
            if self.config.reconnection.max_retries.is_some_and(|limit| passes > limit) {
                return Err(unreachable(
                    last,
                    &format!("no node could be reached in {passes} passes"),
                ));
            }
            let pause = Instant::now() + backoff.next_pause();
            if pause >= deadline {
                return Err(unreachable(last, "not connected within the deadline"));
            }
            tokio::select! {
                () = tokio::time::sleep_until(pause) => {}
                () = self.ended.cancelled() => {}
            }
        }
    }

    /// The configured endpoint, then those of the last roster, each once.
    fn endpoints(&self) -> Vec<Endpoint> {
        let mut endpoints = vec![self.config.endpoint.clone()];
        let roster = self.cluster();
        for node in roster
            .iter()
            .flat_map(|roster| &roster.nodes)
            .filter(|node| node.tcp != 0)
        {
            let endpoint = Endpoint::new(node.ip.clone(), node.tcp);
            if !endpoints.contains(&endpoint) {
                endpoints.push(endpoint);
            }
        }
        endpoints
    }

    async fn establish(&self, endpoint: &Endpoint) -> Result<Link, SignInError> {
        let connection = self.dial(endpoint).await?;
        let (bound, fresh) = self.serve_session(&connection).await?;
        self.install_main(connection, endpoint.clone(), bound, fresh).await
    }

    async fn dial(&self, endpoint: &Endpoint) -> Result<Arc<Connection>, SignInError> {
        match transport::dial(endpoint, &self.config).await {
            Ok(stream) => Ok(Connection::start(stream)),
            Err(DialError::Tls(error)) => Err(SignInError::Final(error)),
            Err(DialError::Unreachable(error)) => {
                let message = format!("cannot connect to {endpoint}: {error}");
                let error = IggyError::new(ErrorCode::CannotEstablishConnection, message).with_source(error);
                Err(SignInError::Retry(error))
            }
        }
    }

    /// Binds the session, or signs in when there is none and somebody is known who could. True when the roster is to be
    /// read: after a first sign-in, not when the server had merely forgotten the session.
    async fn serve_session(&self, connection: &Connection) -> Result<(Option<Bound>, bool), SignInError> {
        let mut replaced = false;
        if let Some(bound) = self.session.bound() {
            match self.bind(connection, &bound).await? {
                BindOutcome::Bound => return Ok((Some(bound), false)),
                BindOutcome::SessionGone => self.end_session(),
            }
            replaced = self.links().roster.is_some();
        }
        match self.session.credentials() {
            None => Ok((None, false)),
            Some(credentials) => {
                let deadline = Instant::now() + self.config.request_timeout;
                let bound = self.register(connection, &credentials, deadline).await?;
                Ok((Some(bound), !replaced))
            }
        }
    }

    /// Makes a connection the main link. After a new session the roster is read on it.
    async fn install_main(
        &self,
        connection: Arc<Connection>,
        endpoint: Endpoint,
        bound: Option<Bound>,
        fresh: bool,
    ) -> Result<Link, SignInError> {
        if let Some(bound) = bound.as_ref().filter(|_| fresh) {
            let roster = self.read_roster(&connection, bound).await?;
            self.links().roster = Some(Arc::new(roster));
        }
        let epoch = bound.map_or(0, |bound| bound.epoch);
        let link = Link {
            connection,
            epoch,
            replica: self.replica_at(&endpoint),
            endpoint,
            since: Instant::now(),
        };
        let stale: Vec<_> = {
            let mut links = self.links();
            links.main = Some(link.clone());
            let of_other_sessions = |other: &mut Link| other.epoch != epoch;
            links
                .by_replica
                .extract_if(|_, other| of_other_sessions(other))
                .map(|(_, other)| other)
                .collect()
        };
        for other in stale {
            other.connection.close("its session ended");
        }
        self.events.publish(DiagnosticEvent::Connected);
        Ok(link)
    }

    /// The node at an address, as far as the roster tells.
    fn replica_at(&self, endpoint: &Endpoint) -> Option<u8> {
        let roster = self.links().roster.clone()?;
        match &roster.nodes[..] {
            [only] => Some(only.replica_id),
            nodes => nodes
                .iter()
                .find(|node| node.ip == endpoint.host && node.tcp == endpoint.port)
                .map(|node| node.replica_id),
        }
    }

    async fn read_roster(&self, connection: &Connection, bound: &Bound) -> Result<ClusterMetadata, SignInError> {
        let frame = plain_read(self, Some(bound), Command::GetClusterMetadata, FrameBuffer::new())
            .map_err(SignInError::Final)?;
        let reply = connection
            .exchange(frame, MAX_REPLY_BYTES, Instant::now() + ROSTER_LIMIT)
            .await;
        let reply = reply.map_err(|error| {
            SignInError::Retry(IggyError::new(
                ErrorCode::Disconnected,
                format!("the roster could not be read: {error:?}"),
            ))
        })?;
        if reply.header.status.get() != 0 {
            let code = ErrorCode::from_u32(reply.header.status.get());
            return Err(SignInError::Retry(IggyError::new(
                code,
                "the server refused to show its roster",
            )));
        }
        let roster = ClusterMetadata::from_bytes(&reply.body).map_err(|error| SignInError::Final(error.into()))?;
        let mut ids: Vec<_> = roster.nodes.iter().map(|node| node.replica_id).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            let message = "the roster names a replica id twice";
            return Err(SignInError::Final(IggyError::new(ErrorCode::InvalidFormat, message)));
        }
        Ok(roster)
    }

    /// Reads the roster anew over the main link, to learn who leads. Failing to is no error: the old one stays.
    pub async fn refresh_roster(&self, deadline: Instant) {
        let (Some(link), Some(bound)) = (self.live_main(), self.session.bound()) else {
            return;
        };
        if let Ok(Ok(roster)) = tokio::time::timeout_at(deadline, self.read_roster(&link.connection, &bound)).await {
            self.links().roster = Some(Arc::new(roster));
        }
    }

    /// A link to one node of a cluster, dialled when it is first needed. With one node it is the main link.
    pub async fn link_to(&self, replica: u8, deadline: Instant) -> Result<Link, IggyError> {
        let main = self.main_link(deadline).await?;
        let Some(roster) = self.cluster() else { return Ok(main) };
        if main.replica == Some(replica) {
            return Ok(main);
        }
        let bound = self.require_session()?;
        if let Some(link) = self.live_replica(replica, bound.epoch) {
            return Ok(link);
        }
        let lock = self.dial_lock(replica);
        let late = || {
            IggyError::new(
                ErrorCode::TransientNotAccepted,
                format!("node {replica} could not be reached within the deadline"),
            )
        };
        let _dialling = tokio::time::timeout_at(deadline, lock.lock())
            .await
            .map_err(|_| late())?;
        if let Some(link) = self.live_replica(replica, bound.epoch) {
            return Ok(link);
        }
        let node = roster
            .nodes
            .iter()
            .find(|node| node.replica_id == replica && node.tcp != 0);
        let node = node.ok_or_else(|| {
            IggyError::new(
                ErrorCode::TransientNotAccepted,
                format!("node {replica} is not in the roster or serves no TCP"),
            )
        })?;
        let endpoint = Endpoint::new(node.ip.clone(), node.tcp);
        let dialled = tokio::time::timeout_at(deadline, self.dial(&endpoint))
            .await
            .map_err(|_| late())?;
        let connection = dialled.map_err(|(SignInError::Retry(error) | SignInError::Final(error))| {
            let message = format!("node {replica} cannot be reached: {error}");
            IggyError::new(ErrorCode::TransientNotAccepted, message).with_source(error)
        })?;
        match tokio::time::timeout_at(deadline, self.bind(&connection, &bound))
            .await
            .map_err(|_| late())?
        {
            Ok(BindOutcome::Bound) => {}
            Ok(BindOutcome::SessionGone) => {
                let message = format!("node {replica} does not have the session");
                return Err(IggyError::new(ErrorCode::TransientNotAccepted, message));
            }
            Err(SignInError::Retry(error) | SignInError::Final(error)) => {
                let message = format!("node {replica} did not bind the session: {error}");
                return Err(IggyError::new(ErrorCode::TransientNotAccepted, message).with_source(error));
            }
        }
        let link = Link {
            connection,
            epoch: bound.epoch,
            replica: Some(replica),
            endpoint,
            since: Instant::now(),
        };
        self.links().by_replica.insert(replica, link.clone());
        Ok(link)
    }

    /// Connects and signs in whoever is configured.
    pub async fn connect(self: &Arc<Self>, deadline: Instant) -> Result<(), IggyError> {
        self.session.set_intent(Intent::Connected);
        self.main_link(deadline).await?;
        self.start_heartbeat();
        Ok(())
    }

    /// Signs in. A client that is signed in logs out first; both happen on the connection there is.
    pub async fn login(self: &Arc<Self>, credentials: Credentials, deadline: Instant) -> Result<Bound, IggyError> {
        credentials.check()?;
        if self.session.intent() == Intent::Shutdown {
            return Err(IggyError::new(ErrorCode::ClientShutdown, "the client was shut down"));
        }
        self.session.set_intent(Intent::Connected);
        let late = || IggyError::new(ErrorCode::NotConnected, "another connect took until the deadline");
        let mut backoff = tokio::time::timeout_at(deadline, self.connecting.lock())
            .await
            .map_err(|_| late())?;
        let link = self.live_main();
        if let Some(bound) = self.session.bound() {
            match &link {
                Some(link) => drop(self.log_out(&link.connection, &bound, deadline).await),
                None => self.end_session(),
            }
        }
        self.session.begin_lineage();
        self.session.remember(Some(credentials.clone()));
        if let Some(link) = link.filter(|link| !link.connection.is_closed()) {
            let registered = self.register(&link.connection, &credentials, deadline).await;
            match registered {
                Ok(bound) => {
                    if let Ok(_link) = self
                        .install_main(link.connection, link.endpoint, Some(bound), true)
                        .await
                    {
                        self.start_heartbeat();
                        return Ok(bound);
                    }
                }
                Err(SignInError::Final(error)) => {
                    // The connection may be gone with the refusal; the next call dials again, without credentials.
                    link.connection.close("the login was refused");
                    return Err(error);
                }
                Err(SignInError::Retry(_)) => link.connection.close("the login was not answered"),
            }
        }
        self.connect_passes(&mut backoff, deadline).await?;
        drop(backoff);
        self.start_heartbeat();
        self.require_session()
    }

    /// Signs out on the connection there is, and leaves it bound to nothing.
    ///
    /// Nobody connects meanwhile, and the credentials are forgotten before anybody hears of the end of the session: a
    /// consumer that reads on would sign in again with them, and be a member of its group for as long as the client is.
    pub async fn logout(&self, deadline: Instant) -> Result<(), IggyError> {
        self.main_link(deadline).await?;
        let late = || IggyError::new(ErrorCode::NotConnected, "another connect took until the deadline");
        let _connecting = tokio::time::timeout_at(deadline, self.connecting.lock())
            .await
            .map_err(|_| late())?;
        let bound = self.require_session()?;
        let link = self.live_main();
        self.session.begin_lineage();
        self.session.remember(None);
        let outcome = if let Some(link) = link {
            self.log_out(&link.connection, &bound, deadline).await
        } else {
            self.end_session();
            Err(IggyError::new(
                ErrorCode::Disconnected,
                "the connection was lost before the server could be told of the logout",
            ))
        };
        self.unbind_main();
        outcome
    }

    /// Starts the heartbeat once.
    fn start_heartbeat(self: &Arc<Self>) {
        if !self.heartbeat_runs.swap(true, Ordering::AcqRel) {
            tokio::spawn(crate::heartbeat::run(Arc::downgrade(self), self.ended.clone()));
        }
    }
}
