//! Metadata changes as JSON, and their cursors as one word.

use std::fmt::Write as _;

use iggy_protocol::reply::metadata_changes::{ChangeRecord, MetadataChanges};
use iggy_protocol::reply::metadata_record::{Change, Item, StreamKey, TopicKey, UserKey, VisibleOptions, group};
use iggy_protocol::request::metadata_changes::Cursor;
use iggy_protocol::{Options, Permissions};
use serde_json::{Map, Value, json};

use crate::permissions::{global_names, stream_names, topic_names};

/// One page as one JSON object.
pub fn page(page: &MetadataChanges) -> Value {
    json!({
        "status": page.status.name(),
        "phase": page.phase.name(),
        "log_id": page.log_id.map(hexadecimal),
        "oldest_op": page.oldest_op,
        "retained_since": page.retained_since,
        "head_op": page.head_op,
        "next": page.next.as_ref().map(cursor_text),
        "has_more": page.has_more,
        "records": page.records.iter().map(record).collect::<Vec<_>>(),
        "items": page.items.iter().map(item).collect::<Vec<_>>(),
    })
}

/// A cursor as the one word that [`parse_cursor`] reads: log, position, checksum, ordinal.
pub fn cursor_text(cursor: &Cursor) -> String {
    format!(
        "{:032x}-{}-{:032x}-{}",
        cursor.log_id, cursor.op, cursor.checksum, cursor.ordinal
    )
}

/// Reads what a page's `next` shows.
///
/// # Errors
/// Anything else; says what is allowed.
pub fn parse_cursor(text: &str) -> Result<Cursor, String> {
    let parts: Vec<_> = text.split('-').collect();
    let read = || {
        let [log_id, op, checksum, ordinal] = parts.as_slice() else {
            return None;
        };
        let cursor = Cursor {
            log_id: u128::from_str_radix(log_id, 16).ok()?,
            op: op.parse().ok()?,
            checksum: u128::from_str_radix(checksum, 16).ok()?,
            ordinal: ordinal.parse().ok()?,
        };
        cursor.validate().ok().map(|()| cursor)
    };
    read().ok_or_else(|| "allowed: the `next` of a page, as it was printed".to_owned())
}

pub(crate) fn hexadecimal(number: u128) -> String {
    format!("{number:032x}")
}

fn record(record: &ChangeRecord) -> Value {
    let kind = record
        .change
        .name()
        .map_or_else(|| record.change.kind().to_string(), str::to_owned);
    let mut object = Map::from_iter([
        ("op".to_owned(), record.op.into()),
        ("ordinal".to_owned(), record.ordinal.into()),
        ("timestamp".to_owned(), record.timestamp.into()),
        ("actor_user_id".to_owned(), record.actor_user_id.into()),
        ("group".to_owned(), group_name(record.change.group())),
        ("kind".to_owned(), kind.into()),
    ]);
    object.insert("change".to_owned(), change(&record.change));
    Value::Object(object)
}

fn group_name(number: u8) -> Value {
    group::name(number).map_or_else(|| number.into(), Value::from)
}

/// Puts objects together; later ones add to earlier ones.
pub(crate) fn merged<const N: usize>(parts: [Value; N]) -> Value {
    let objects = parts
        .into_iter()
        .filter_map(|part| if let Value::Object(map) = part { Some(map) } else { None });
    Value::Object(objects.flatten().collect())
}

fn stream(key: &StreamKey) -> Value {
    json!({ "stream_id": key.stream_id, "stream_created_op": key.stream_created_op })
}

fn topic(key: &TopicKey) -> Value {
    merged([
        stream(&key.stream),
        json!({ "topic_id": key.topic_id, "topic_created_op": key.topic_created_op }),
    ])
}

fn user(key: &UserKey) -> Value {
    json!({ "user_id": key.user_id, "user_created_at": key.user_created_at })
}

pub(crate) fn option_map(options: &Options) -> Value {
    Value::Object(
        options
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string().into()))
            .collect(),
    )
}

fn visible(options: &VisibleOptions) -> Value {
    match options {
        VisibleOptions::Readable { explicit, derived } => {
            json!({ "set": option_map(explicit), "default": option_map(derived) })
        }
        VisibleOptions::Unreadable => "unreadable".into(),
    }
}

pub(crate) fn granted(permissions: Option<&Permissions>) -> Value {
    let Some(permissions) = permissions else {
        return Value::Null;
    };
    let streams: Map<String, Value> = permissions
        .streams
        .iter()
        .map(|(id, stream)| {
            let topics = stream
                .topics
                .iter()
                .map(|(id, flags)| (id.to_string(), json!(topic_names(*flags))));
            let topics = Value::Object(topics.collect());
            (
                id.to_string(),
                json!({ "granted": stream_names(stream.flags), "topics": topics }),
            )
        })
        .collect();
    json!({ "global": global_names(permissions.global), "streams": streams })
}

fn change(change: &Change) -> Value {
    match change {
        Change::StreamCreated(body) | Change::StreamUpdated(body) => merged([
            stream(&body.key),
            json!({ "created_at": body.created_at, "name": body.name.as_str(), "options": visible(&body.options) }),
        ]),
        Change::StreamDeleted(body) => merged([
            stream(&body.key),
            json!({ "created_at": body.created_at, "name": body.name.as_str(), "requested_op": body.requested_op }),
        ]),
        Change::TopicCreated(body) | Change::TopicUpdated(body) => merged([
            topic(&body.key),
            json!({
                "created_at": body.created_at,
                "name": body.name.as_str(),
                "partitions_count": body.partitions_count,
                "options": visible(&body.options),
            }),
        ]),
        Change::TopicDeleted(body) => merged([
            topic(&body.key),
            json!({ "created_at": body.created_at, "name": body.name.as_str(), "requested_op": body.requested_op }),
        ]),
        Change::PartitionsChanged(body) => merged([
            topic(&body.topic),
            json!({
                "partitions_count": body.partitions_count,
                "removed_partition_ids": body.removed.0,
                "requested_op": body.requested_op,
            }),
        ]),
        Change::Unknown { body, .. } => unknown(body),
        other => group_change(other),
    }
}

fn group_change(change: &Change) -> Value {
    match change {
        Change::ConsumerGroupCreated(body) => merged([
            topic(&body.topic),
            json!({
                "group_id": body.group_id,
                "name": body.name.as_str(),
                "consumer_groups_count": body.consumer_groups_count,
            }),
        ]),
        Change::ConsumerGroupDeleted(body) => merged([
            topic(&body.topic),
            json!({
                "group_id": body.group_id,
                "name": body.name.as_str(),
                "consumer_groups_count": body.consumer_groups_count,
                "requested_op": body.requested_op,
            }),
        ]),
        Change::ConsumerGroupMemberJoined(body) => merged([
            topic(&body.topic),
            json!({
                "group_id": body.group_id,
                "member_id": body.member_id,
                "client_id": hexadecimal(body.client_id),
                "members_count": body.members_count,
                "partition_ids": body.partitions.0,
            }),
        ]),
        Change::ConsumerGroupMemberLeft(body) => merged([
            topic(&body.topic),
            json!({
                "group_id": body.group_id,
                "member_id": body.member_id,
                "client_id": hexadecimal(body.client_id),
                "members_count": body.members_count,
                "reason": body.reason.name(),
            }),
        ]),
        Change::ConsumerGroupPartitionHandedOver(body) => merged([
            topic(&body.topic),
            json!({
                "group_id": body.group_id,
                "partition_id": body.partition_id,
                "member_id": body.member_id,
            }),
        ]),
        other => user_change(other),
    }
}

fn user_change(change: &Change) -> Value {
    match change {
        Change::UserCreated(body) | Change::UserUpdated(body) => merged([
            user(&body.key),
            json!({
                "username": body.username.as_str(),
                "status": body.status,
                "permissions": granted(body.permissions.as_ref()),
                "options": visible(&body.options),
            }),
        ]),
        Change::UserDeleted(body) | Change::UserPasswordChanged(body) => {
            merged([user(&body.key), json!({ "username": body.username.as_str() })])
        }
        Change::UserPermissionsUpdated(body) => merged([
            user(&body.key),
            json!({
                "username": body.username.as_str(),
                "permissions": granted(body.permissions.as_ref()),
                "reason": body.reason.name(),
            }),
        ]),
        Change::PersonalAccessTokenCreated(body) => merged([
            user(&body.user),
            json!({ "name": body.name.as_str(), "expiry": body.expiry }),
        ]),
        Change::PersonalAccessTokenDeleted(body) => merged([
            user(&body.user),
            json!({ "name": body.name.as_str(), "reason": body.reason.name() }),
        ]),
        Change::SessionRegistered(body) => merged([
            user(&body.user),
            json!({ "client_id": hexadecimal(body.client_id), "session": body.session }),
        ]),
        Change::SessionClosed(body) => merged([
            user(&body.user),
            json!({
                "client_id": hexadecimal(body.client_id),
                "session": body.session,
                "reason": body.reason.name(),
            }),
        ]),
        // The other kinds are shown by the functions that lead here.
        _ => Value::Null,
    }
}

fn item(item: &Item) -> Value {
    let shown = match item {
        Item::Stream(body) => merged([
            stream(&body.key),
            json!({ "created_at": body.created_at, "name": body.name.as_str(), "options": visible(&body.options) }),
        ]),
        Item::Topic(body) => merged([
            topic(&body.key),
            json!({ "created_at": body.created_at, "name": body.name.as_str(), "options": visible(&body.options) }),
        ]),
        Item::Partitions(body) => merged([topic(&body.topic), json!({ "partitions_count": body.partitions_count })]),
        Item::ConsumerGroup(body) => merged([
            topic(&body.topic),
            json!({ "group_id": body.group_id, "name": body.name.as_str() }),
        ]),
        Item::Member(body) => merged([
            topic(&body.topic),
            json!({
                "group_id": body.group_id,
                "member_id": body.member_id,
                "client_id": hexadecimal(body.client_id),
                "partition_ids": body.partitions.0,
            }),
        ]),
        Item::User(body) => merged([
            user(&body.key),
            json!({
                "username": body.username.as_str(),
                "status": body.status,
                "permissions": granted(body.permissions.as_ref()),
                "options": visible(&body.options),
            }),
        ]),
        Item::PersonalAccessToken(body) => merged([
            user(&body.user),
            json!({ "name": body.name.as_str(), "expiry": body.expiry }),
        ]),
        Item::Session(body) => merged([
            user(&body.user),
            json!({ "client_id": hexadecimal(body.client_id), "session": body.session }),
        ]),
        Item::Unknown { body, .. } => unknown(body),
    };
    merged([json!({ "group": group_name(item.group()) }), shown])
}

/// A kind of a newer server: its bytes, so that nothing is lost.
fn unknown(body: &[u8]) -> Value {
    let hex = body.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    json!({ "body": hex })
}

#[cfg(test)]
mod tests {
    use iggy_protocol::Name;
    use iggy_protocol::reply::metadata_record::{AscendingIds, MemberJoinedBody, StreamBody};

    use super::*;

    #[test]
    fn given_a_cursor_should_read_what_it_shows() {
        let cursor = Cursor {
            log_id: u128::MAX - 5,
            op: 7,
            checksum: 9,
            ordinal: 2,
        };
        assert_eq!(parse_cursor(&cursor_text(&cursor)), Ok(cursor));
        for refused in ["", "1-2-3", "x-1-2-3", "1-0-5-0"] {
            assert!(parse_cursor(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn given_changes_should_name_their_group_and_kind() {
        let key = StreamKey {
            stream_id: 1,
            stream_created_op: 4,
        };
        let options = VisibleOptions::Readable {
            explicit: Options::new(),
            derived: Options::new(),
        };
        let body = StreamBody {
            key,
            created_at: 3,
            name: Name::new("orders").unwrap(),
            options,
        };
        let shown = record(&ChangeRecord {
            op: 4,
            ordinal: 0,
            checksum: 1,
            timestamp: 3,
            actor_user_id: Some(0),
            change: Change::StreamCreated(body.clone()),
        });
        assert_eq!(shown["group"], "streams");
        assert_eq!(shown["kind"], "stream_created");
        assert_eq!(shown["change"]["name"], "orders");
        assert_eq!(shown["change"]["stream_created_op"], 4);
        assert_eq!(item(&Item::Stream(body))["group"], "streams");
    }

    #[test]
    fn given_each_kind_should_show_something() {
        let stream = StreamKey {
            stream_id: 1,
            stream_created_op: 4,
        };
        let topic = TopicKey {
            stream,
            topic_id: 0,
            topic_created_op: 5,
        };
        let joined = MemberJoinedBody {
            topic,
            group_id: 3,
            member_id: 1,
            client_id: 255,
            members_count: 1,
            partitions: AscendingIds(vec![0, 2]),
        };
        let shown = change(&Change::ConsumerGroupMemberJoined(joined));
        assert_eq!(shown["partition_ids"], json!([0, 2]));
        assert_eq!(shown["client_id"], "000000000000000000000000000000ff");
        let newer = Change::Unknown {
            group: 9,
            kind: 99,
            body: vec![0xab].into(),
        };
        assert_eq!(change(&newer)["body"], "ab");
    }
}
