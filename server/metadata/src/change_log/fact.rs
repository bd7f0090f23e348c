//! What a record of the change log says about the state (wire 12).

use iggy_protocol::reply::metadata_record as record;

use crate::event::SessionEnd;
use crate::keys::SessionKey;
use crate::model::session::Session;
use crate::model::stream::Stream;
use crate::model::topic::Topic;
use crate::model::user::{Token, User};
use crate::options::StoredOptions;

pub(crate) use record::{Change as Fact, TopicKey as TopicIdentity, UserKey};

pub(crate) fn stream_key(stream: &Stream) -> record::StreamKey {
    record::StreamKey {
        stream_id: stream.id,
        stream_created_op: stream.created_op,
    }
}

pub(crate) fn topic_key(stream: &Stream, topic: &Topic) -> record::TopicKey {
    record::TopicKey {
        stream: stream_key(stream),
        topic_id: topic.id,
        topic_created_op: topic.created_op,
    }
}

pub(crate) fn user_key(user: &User) -> record::UserKey {
    record::UserKey {
        user_id: user.id,
        user_created_at: user.created_at,
    }
}

pub(crate) fn user_key_of_session(session: &Session) -> record::UserKey {
    record::UserKey {
        user_id: session.user_id,
        user_created_at: session.user_created_at,
    }
}

fn visible(options: &StoredOptions) -> record::VisibleOptions {
    record::VisibleOptions::Readable {
        explicit: options.explicit.clone(),
        derived: options.derived.clone(),
    }
}

pub(crate) fn stream_body(stream: &Stream) -> record::StreamBody {
    record::StreamBody {
        key: stream_key(stream),
        created_at: stream.created_at,
        name: stream.name.clone(),
        options: visible(&stream.options),
    }
}

/// No entry here finishes a deletion that another entry asked for, so the position of the request is always absent.
const NO_REQUESTED_OP: Option<u64> = None;

pub(crate) fn stream_deleted(stream: &Stream) -> Fact {
    Fact::StreamDeleted(record::StreamDeletedBody {
        key: stream_key(stream),
        created_at: stream.created_at,
        name: stream.name.clone(),
        requested_op: NO_REQUESTED_OP,
    })
}

pub(crate) fn topic_body(stream: &Stream, topic: &Topic) -> record::TopicBody {
    record::TopicBody {
        key: topic_key(stream, topic),
        created_at: topic.created_at,
        name: topic.name.clone(),
        partitions_count: topic.partitions_count(),
        options: visible(&topic.options),
    }
}

pub(crate) fn topic_item(stream: &Stream, topic: &Topic) -> record::TopicItem {
    let record::TopicBody {
        key,
        created_at,
        name,
        options,
        ..
    } = topic_body(stream, topic);
    record::TopicItem {
        key,
        created_at,
        name,
        options,
    }
}

pub(crate) fn topic_deleted(key: record::TopicKey, topic: &Topic) -> Fact {
    Fact::TopicDeleted(record::TopicDeletedBody {
        key,
        created_at: topic.created_at,
        name: topic.name.clone(),
        requested_op: NO_REQUESTED_OP,
    })
}

/// `removed` ascends.
pub(crate) fn partitions_changed(topic: record::TopicKey, partitions_count: u32, removed: Vec<u32>) -> Fact {
    Fact::PartitionsChanged(record::PartitionsChangedBody {
        topic,
        partitions_count,
        removed: record::AscendingIds(removed),
        requested_op: NO_REQUESTED_OP,
    })
}

pub(crate) fn group_deleted(
    topic: record::TopicKey,
    group_id: u32,
    name: iggy_protocol::Name,
    consumer_groups_count: u32,
) -> Fact {
    let requested_op = NO_REQUESTED_OP;
    Fact::ConsumerGroupDeleted(record::GroupDeletedBody {
        topic,
        group_id,
        name,
        consumer_groups_count,
        requested_op,
    })
}

pub(crate) fn user_body(user: &User) -> record::UserBody {
    record::UserBody {
        key: user_key(user),
        username: user.username.clone(),
        status: user.status as u8,
        permissions: user.permissions.as_deref().cloned(),
        // Users have no options beside their columns, which are fields of the record.
        options: visible(&StoredOptions::default()),
    }
}

pub(crate) fn user_named(user: &User) -> record::UserNamedBody {
    record::UserNamedBody {
        key: user_key(user),
        username: user.username.clone(),
    }
}

pub(crate) fn permissions_updated(user: &User, reason: record::PermissionsReason) -> Fact {
    Fact::UserPermissionsUpdated(record::UserPermissionsBody {
        key: user_key(user),
        username: user.username.clone(),
        permissions: user.permissions.as_deref().cloned(),
        reason,
    })
}

pub(crate) fn token_body(user: &User, name: &iggy_protocol::Name, token: &Token) -> record::TokenBody {
    record::TokenBody {
        user: user_key(user),
        name: name.clone(),
        expiry: token.expiry_at,
    }
}

pub(crate) fn session_body(user: record::UserKey, session: SessionKey) -> record::SessionBody {
    record::SessionBody {
        user,
        client_id: session.client,
        session: session.session,
    }
}

pub(crate) fn session_closed(user: record::UserKey, session: SessionKey, reason: SessionEnd) -> Fact {
    let reason = match reason {
        SessionEnd::Logout => record::SessionReason::Logout,
        SessionEnd::Expired => record::SessionReason::Expired,
        SessionEnd::Revoked => record::SessionReason::Revoked,
    };
    Fact::SessionClosed(record::SessionClosedBody {
        user,
        client_id: session.client,
        session: session.session,
        reason,
    })
}
