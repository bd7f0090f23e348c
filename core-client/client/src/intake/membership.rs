//! Being a member of a consumer group: joining, following rebalances, joining again when the session was lost.

use iggy_protocol::reply::group::Assignment;
use iggy_protocol::{ErrorCode, Identifier};
use tokio::time::Instant;

use super::Settings;
use super::cursor::{Activity, LASTING_REFUSALS};
use super::read_error::ReadError;
use super::state::{Ready, State};
use crate::backoff::Backoff;
use crate::client::IggyClient;
use crate::error::{ErrorClass, IggyError, Outcome};
use crate::events::ReaderEvent;
use crate::memberships::{GroupKey, Membership, Seat};

/// What a membership needs from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipJob {
    /// The assignment is read again.
    Sync,
    /// The session becomes a member again.
    Join,
}

/// A membership as its reader sees it.
#[derive(Debug)]
pub struct Member {
    generation: u64,
    wanted: Option<MembershipJob>,
    busy: bool,
    resume_at: Option<Instant>,
    refusals: u32,
    backoff: Backoff,
}

impl Member {
    /// A member that has joined.
    pub fn new() -> Self {
        Self {
            generation: 0,
            wanted: None,
            busy: false,
            resume_at: None,
            refusals: 0,
            backoff: Backoff::of_call(),
        }
    }

    /// What is to be asked now.
    pub fn plan(&mut self, now: Instant) -> Option<MembershipJob> {
        let due = self.resume_at.is_none_or(|at| at <= now);
        let job = self.wanted.filter(|_| due && !self.busy && !self.has_failed())?;
        self.busy = true;
        self.resume_at = None;
        Some(job)
    }

    /// When something is to be asked that is not asked now.
    pub fn next_due(&self) -> Option<Instant> {
        self.resume_at.filter(|_| self.wanted.is_some() && !self.busy)
    }

    /// A partition refused this member: the assignment is read again.
    pub fn sync_is_needed(&mut self, now: Instant) {
        if self.wanted.is_none() {
            self.wanted = Some(MembershipJob::Sync);
            // The second time in a row after a pause: the partition may hear of its new owner later than the group.
            self.resume_at = Some(now + self.backoff.next_pause());
        }
    }

    /// Whether it was refused too often to be tried again.
    pub fn has_failed(&self) -> bool {
        self.refusals >= LASTING_REFUSALS
    }
}

impl State {
    /// A job of the membership is over. What it learnt comes as news.
    pub fn take_membership(&mut self, done: Result<(), IggyError>, now: Instant) {
        let Some(member) = &mut self.member else { return };
        member.busy = false;
        let Err(error) = done else {
            return;
        };
        member.resume_at = Some(now + member.backoff.next_doubling());
        let passing = error.retryable() || matches!(error.class(), ErrorClass::Connection | ErrorClass::Uncertain);
        if passing {
            return;
        }
        member.refusals += 1;
        if error.class() == ErrorClass::Closed {
            member.refusals = LASTING_REFUSALS;
        }
        self.push(Ready::Refusal(ReadError::of(None, error)));
    }

    /// Something was heard about the membership.
    pub fn take_news(&mut self, settings: &Settings, news: &Membership) {
        let Some(member) = &mut self.member else { return };
        match news {
            Membership::SessionEnded | Membership::Synced(None) => {
                member.wanted = Some(MembershipJob::Join);
                member.resume_at = None;
                if !self.cursors.is_empty() {
                    self.events.publish(ReaderEvent::MembershipLost);
                }
                self.assign(settings, 0, &[]);
            }
            Membership::Synced(Some(assignment)) if assignment.generation >= member.generation => {
                member.generation = assignment.generation;
                member.wanted = None;
                member.resume_at = None;
                member.refusals = 0;
                let fenced = self.cursors.values().any(|cursor| cursor.activity == Activity::Fenced);
                if !fenced && let Some(member) = &mut self.member {
                    member.backoff.reset();
                }
                self.assign(settings, assignment.generation, &assignment.partitions);
            }
            // Nothing was said yet, or an older answer came late.
            Membership::Unknown | Membership::Synced(Some(_)) => {}
        }
    }

    /// Reads these partitions from now on, and no others.
    pub fn assign(&mut self, settings: &Settings, generation: u64, partitions: &[u32]) {
        let first = self.cursors.is_empty() && !self.asked;
        let held: Vec<u32> = self.cursors.keys().copied().collect();
        let (mut revoked, mut changed) = (Vec::new(), false);
        for id in held {
            let Some(cursor) = self.cursors.get_mut(&id) else {
                continue;
            };
            if !partitions.contains(&id) {
                revoked.push(id);
            } else if cursor.activity == Activity::Fenced {
                let owned_before = cursor
                    .start
                    .context()
                    .is_some_and(|context| context.owner_generation != 0);
                if owned_before {
                    // It went to another member and came back: what was read under the old ownership is over.
                    self.remove(settings, id);
                    self.add(settings, id, true);
                    changed = true;
                } else {
                    cursor.activity = Activity::Idle;
                }
            }
        }
        for id in &revoked {
            self.remove(settings, *id);
        }
        if !revoked.is_empty() {
            self.events.publish(ReaderEvent::Revoked { partitions: revoked });
            changed = true;
        }
        for id in partitions {
            if !self.cursors.contains_key(id) {
                self.add(settings, *id, !first);
                changed = true;
            }
        }
        if changed && generation != 0 {
            let partitions = self.cursors.keys().copied().collect();
            self.events.publish(ReaderEvent::Assigned { generation, partitions });
        }
    }
}

/// Who joins which group.
#[derive(Debug)]
pub(crate) struct Joining<'a> {
    /// Who joins.
    pub client: &'a IggyClient,
    /// The stream.
    pub stream: &'a Identifier,
    /// The topic.
    pub topic: &'a Identifier,
    /// The group.
    pub group: &'a Identifier,
    /// Whether a group that is missing is created.
    pub create: bool,
}

impl Joining<'_> {
    fn key(&self) -> GroupKey {
        (self.stream.clone(), self.topic.clone(), self.group.clone())
    }
}

/// Makes the session a member, and returns its seat and its assignment.
///
/// Each step may be repeated: dropping the future leaves at worst a group, or a membership, that the next try finds.
pub(crate) async fn join_as_member(joining: &Joining<'_>) -> Result<(Seat, Assignment), IggyError> {
    let Joining {
        client,
        stream,
        topic,
        group,
        create,
    } = joining;
    let seat = Seat::take(client.core(), joining.key())?;
    find_topic(client, stream, topic).await?;
    if client.get_consumer_group(stream, topic, group).await?.is_none() {
        match group {
            Identifier::Named(name) if *create => {
                match client.create_consumer_group(stream, topic, name).await {
                    // Another member was faster.
                    Err(error) if error.code() == ErrorCode::ConsumerGroupNameAlreadyExists => {}
                    created => drop(created?),
                }
            }
            Identifier::Named(name) => {
                let message = format!("there is no group {name}, and this consumer may not create it");
                return Err(IggyError::new(ErrorCode::ConsumerGroupNameNotFound, message));
            }
            Identifier::Numeric(id) => {
                let message = format!("there is no group {id}; only a group with a name can be created");
                return Err(IggyError::new(ErrorCode::ConsumerGroupIdNotFound, message));
            }
        }
    }
    client.join_consumer_group(stream, topic, group).await?;
    let assignment = client.sync_consumer_group(stream, topic, group).await?;
    let message = "the group removed this member before it could read its assignment";
    let assignment = assignment.ok_or_else(|| IggyError::new(ErrorCode::ConsumerGroupMemberNotFound, message))?;
    Ok((seat, assignment))
}

/// Refuses a stream or topic that is not there.
pub(crate) async fn find_topic(client: &IggyClient, stream: &Identifier, topic: &Identifier) -> Result<(), IggyError> {
    if client.get_stream(stream).await?.is_none() {
        let code = match stream {
            Identifier::Named(_) => ErrorCode::StreamNameNotFound,
            Identifier::Numeric(_) => ErrorCode::StreamIdNotFound,
        };
        return Err(IggyError::new(code, format!("there is no stream {stream}")));
    }
    if client.get_topic(stream, topic).await?.is_none() {
        let code = match topic {
            Identifier::Named(_) => ErrorCode::TopicNameNotFound,
            Identifier::Numeric(_) => ErrorCode::TopicIdNotFound,
        };
        return Err(IggyError::new(
            code,
            format!("there is no topic {topic} in stream {stream}"),
        ));
    }
    Ok(())
}

/// Does what a membership needs. The answers come as news of the seat.
pub async fn keep_up(settings: &Settings, job: MembershipJob) -> Result<(), IggyError> {
    let Settings {
        client, stream, topic, ..
    } = settings;
    let group = &settings.consumer.id;
    if job == MembershipJob::Join {
        match client.join_consumer_group(stream, topic, group).await {
            Err(error) if error.outcome() == Outcome::Unknown => {
                settle(client, &error).await;
                return Err(error);
            }
            joined => joined?,
        }
    }
    client.sync_consumer_group(stream, topic, group).await.map(drop)
}

/// Frees the lane of an operation of our own whose outcome is unknown. That it may still take effect does no harm:
/// joining twice is joining once, and a position is stored again.
pub async fn settle(client: &IggyClient, error: &IggyError) {
    if let Some(operation) = error.operation() {
        let timeout = client.core().config.request_timeout;
        if client.resolve_operation(operation, timeout).await.is_err() {
            let _ = client.abandon_operation(operation);
        }
    }
}
