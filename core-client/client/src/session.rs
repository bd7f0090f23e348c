//! The session of a client: who it is to the server, across connections.
//!
//! A session outlives its connections: a new one is bound to it by a secret that never leaves memory. When the server has
//! forgotten it, a new session begins with a new client id, while request numbers go on, so that they never repeat.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use iggy_protocol::request::session::{BindSecret, ClientVersionInfo, Credentials};
use iggy_protocol::{ErrorCode, Name, PROTOCOL_VERSION};
use rand::Rng;

use crate::error::IggyError;

/// The name this client gives itself.
const SDK_NAME: &str = "rust-sdk";

/// The version prefix of logins and binds.
pub fn version_info() -> ClientVersionInfo {
    let name = |text| Name::new(text).expect("a constant of 1..=255 bytes");
    ClientVersionInfo {
        protocol_version: PROTOCOL_VERSION.0,
        sdk_name: name(SDK_NAME),
        sdk_version: name(env!("CARGO_PKG_VERSION")),
    }
}

/// A session the server knows.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// The client id of the session.
    pub client_id: u128,
    /// The session number.
    pub session: u64,
    /// The user.
    pub user_id: u32,
    /// Proves the session on another connection.
    pub secret: BindSecret,
    /// Counts the sessions of this client, from 1. A call never goes on under another one than it was sent in.
    pub epoch: u64,
}

/// A registration that was sent and not answered: it is sent again as it is, so that only one session comes of it.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The frame.
    pub frame: Bytes,
    /// The client id in it.
    pub client_id: u128,
    /// The secret in it.
    pub secret: BindSecret,
    /// Who registers.
    pub credentials: Credentials,
}

/// What the application asked for last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Nothing yet, or to be disconnected.
    Idle,
    /// To be connected.
    Connected,
    /// To be shut down for good.
    Shutdown,
}

#[derive(Debug)]
struct State {
    bound: Option<Bound>,
    registration: Option<Registration>,
    credentials: Option<Credentials>,
    intent: Intent,
    epochs: u64,
    lineage: u64,
}

/// The session of a client and what it needs to get another.
#[derive(Debug)]
pub struct Session {
    state: Mutex<State>,
    next_request: AtomicU64,
    watermark: AtomicU64,
    anonymous_id: u128,
}

/// A random number that is not zero.
pub fn random_id() -> u128 {
    rand::rng().random_range(1..=u128::MAX)
}

impl Session {
    /// No session yet; `credentials` sign in on connect.
    pub fn new(credentials: Option<Credentials>) -> Self {
        let state = State {
            bound: None,
            registration: None,
            credentials,
            intent: Intent::Idle,
            epochs: 0,
            lineage: 0,
        };
        Self {
            state: Mutex::new(state),
            next_request: AtomicU64::new(1),
            watermark: AtomicU64::new(0),
            anonymous_id: random_id(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session, if there is one.
    pub fn bound(&self) -> Option<Bound> {
        self.state().bound
    }

    /// The client id of frames before login.
    pub fn anonymous_id(&self) -> u128 {
        self.anonymous_id
    }

    /// Takes the next request number.
    pub fn next_request(&self) -> Result<u64, IggyError> {
        let taken = self
            .next_request
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
        taken.map_err(|_| {
            IggyError::new(
                ErrorCode::RequestIdExhausted,
                "all 2^64-1 request numbers of this client are used",
            )
        })
    }

    /// The highest metadata position this session has seen in a reply.
    pub fn watermark(&self) -> u64 {
        self.watermark.load(Ordering::Acquire)
    }

    /// Raises the watermark.
    pub fn saw_metadata(&self, commit: u64) {
        self.watermark.fetch_max(commit, Ordering::AcqRel);
    }

    /// What the application asked for last.
    pub fn intent(&self) -> Intent {
        self.state().intent
    }

    /// Notes what the application asks for. A shutdown is final.
    pub fn set_intent(&self, intent: Intent) {
        let mut state = self.state();
        if state.intent != Intent::Shutdown {
            state.intent = intent;
        }
    }

    /// Who signs in when a session is needed.
    pub fn credentials(&self) -> Option<Credentials> {
        self.state().credentials.clone()
    }

    /// Counts the logins the application asked for.
    pub fn lineage(&self) -> u64 {
        self.state().lineage
    }

    /// The application signs in, or out, by itself.
    pub fn begin_lineage(&self) {
        self.state().lineage += 1;
    }

    /// Remembers who signs in; nobody when `None`.
    pub fn remember(&self, credentials: Option<Credentials>) {
        let mut state = self.state();
        state.credentials = credentials;
        state.registration = None;
    }

    /// Lets a change of name or password made by this client change what is remembered.
    pub fn update_credentials(&self, update: impl FnOnce(&mut Credentials)) {
        if let Some(credentials) = &mut self.state().credentials {
            update(credentials);
        }
    }

    /// The registration under way for these credentials, if any.
    pub fn registration(&self, credentials: &Credentials) -> Option<Registration> {
        self.state()
            .registration
            .clone()
            .filter(|registration| registration.credentials == *credentials)
    }

    /// Keeps a registration until it is answered.
    pub fn keep_registration(&self, registration: Registration) {
        self.state().registration = Some(registration);
    }

    /// The registration was answered for good.
    pub fn drop_registration(&self) {
        self.state().registration = None;
    }

    /// A session began.
    pub fn begin(&self, client_id: u128, secret: BindSecret, session: u64, user_id: u32) -> Bound {
        let mut state = self.state();
        state.epochs += 1;
        let bound = Bound {
            client_id,
            session,
            user_id,
            secret,
            epoch: state.epochs,
        };
        state.bound = Some(bound);
        state.registration = None;
        // Another session may belong to a server that knows nothing of the positions seen before.
        self.watermark.store(session, Ordering::Release);
        bound
    }

    /// The session is over; returns what it was.
    pub fn end(&self) -> Option<Bound> {
        self.state().bound.take()
    }
}
