//! The group memberships a client keeps up, and what their consumers are told about them.
//!
//! The heartbeat reads the assignment of every kept membership again. Whoever holds the seat of a group hears of each
//! answer and of the end of the session; an answer of a session that was replaced is never passed on.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use iggy_protocol::reply::group::Assignment;
use iggy_protocol::{ErrorCode, Identifier};
use tokio::sync::watch;

use crate::core::Core;
use crate::error::IggyError;

/// Stream, topic and group as the caller spells them.
pub type GroupKey = (Identifier, Identifier, Identifier);

/// What is known of a membership.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Membership {
    /// Nothing yet.
    #[default]
    Unknown,
    /// What the server said last: `None` when the session is no member.
    Synced(Option<Assignment>),
    /// The session it belonged to is over.
    SessionEnded,
}

#[derive(Debug, Default)]
struct Entry {
    /// Whether the heartbeat keeps it up.
    kept: bool,
    /// The consumer that reads for it.
    seat: Option<watch::Sender<Membership>>,
}

/// All memberships of a client.
#[derive(Debug, Default)]
pub struct Memberships {
    table: Mutex<HashMap<GroupKey, Entry>>,
}

impl Memberships {
    fn table(&self) -> MutexGuard<'_, HashMap<GroupKey, Entry>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memberships the heartbeat keeps up.
    pub fn kept(&self) -> Vec<GroupKey> {
        let table = self.table();
        let kept = table.iter().filter(|(_, entry)| entry.kept);
        kept.map(|(key, _)| key.clone()).collect()
    }

    /// An assignment was read.
    pub fn synced(&self, key: &GroupKey, assignment: Option<Assignment>) {
        let mut table = self.table();
        let entry = table.entry(key.clone()).or_default();
        entry.kept = assignment.is_some();
        match &entry.seat {
            Some(seat) => drop(seat.send_replace(Membership::Synced(assignment))),
            None if !entry.kept => drop(table.remove(key)),
            None => {}
        }
    }

    /// The membership is given up.
    pub fn forget(&self, key: &GroupKey) {
        let mut table = self.table();
        if let Some(entry) = table.get_mut(key) {
            entry.kept = false;
            if entry.seat.is_none() {
                table.remove(key);
            }
        }
    }

    /// The session ended, and every membership with it.
    pub fn session_ended(&self) {
        self.table().retain(|_, entry| {
            entry.kept = false;
            if let Some(seat) = &entry.seat {
                seat.send_replace(Membership::SessionEnded);
            }
            entry.seat.is_some()
        });
    }

    fn leave_seat(&self, key: &GroupKey) {
        let mut table = self.table();
        if let Some(entry) = table.get_mut(key) {
            entry.seat = None;
            if !entry.kept {
                table.remove(key);
            }
        }
    }
}

/// The right to read for a group: one consumer per client, because the session is one member.
#[derive(Debug)]
pub struct Seat {
    core: Weak<Core>,
    key: GroupKey,
    /// What happens to the membership.
    pub news: watch::Receiver<Membership>,
}

impl Seat {
    /// Takes the seat of a group.
    pub fn take(core: &std::sync::Arc<Core>, key: GroupKey) -> Result<Self, IggyError> {
        let news = {
            let mut table = core.memberships.table();
            let entry = table.entry(key.clone()).or_default();
            if entry.seat.is_some() {
                let message = format!(
                    "this client already reads for group {}: a session is one member, so another one needs a client of its own",
                    key.2
                );
                return Err(IggyError::new(ErrorCode::InvalidCommand, message));
            }
            let (sender, receiver) = watch::channel(Membership::Unknown);
            entry.seat = Some(sender);
            receiver
        };
        Ok(Self {
            core: std::sync::Arc::downgrade(core),
            key,
            news,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.memberships.leave_seat(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClientConfig;
    use std::sync::Arc;

    fn key() -> GroupKey {
        let id = Identifier::numeric;
        (id(1), id(2), id(3))
    }

    fn assignment(generation: u64) -> Assignment {
        Assignment {
            generation,
            partitions: vec![0],
        }
    }

    #[test]
    fn given_a_seat_when_taken_twice_should_be_refused_until_it_is_left() {
        let core = Arc::new(Core::new(ClientConfig::default()));
        let seat = Seat::take(&core, key()).unwrap();
        assert_eq!(Seat::take(&core, key()).unwrap_err().code(), ErrorCode::InvalidCommand);
        core.memberships.synced(&key(), Some(assignment(4)));
        assert_eq!(*seat.news.borrow(), Membership::Synced(Some(assignment(4))));
        drop(seat);
        assert_eq!(core.memberships.kept(), [key()], "the member stays one");
        Seat::take(&core, key()).unwrap();
    }

    #[test]
    fn given_an_ended_session_when_told_should_keep_nothing_and_tell_the_seat() {
        let core = Arc::new(Core::new(ClientConfig::default()));
        let seat = Seat::take(&core, key()).unwrap();
        core.memberships.synced(&key(), Some(assignment(4)));
        core.memberships.session_ended();
        assert_eq!(core.memberships.kept(), []);
        assert_eq!(*seat.news.borrow(), Membership::SessionEnded);
    }
}
