//! What exists now, group by group in key order, for scans that continue page by page (wire 12).

use bytes::{BufMut, Bytes, BytesMut};
use iggy_protocol::reply::metadata_record::{AscendingIds, GroupItem, Item, MemberItem, PartitionsItem, group};

use crate::change_log::{fact, is_selected};
use crate::metadata::Metadata;
use crate::model::group::Group;
use crate::model::stream::Stream;
use crate::model::topic::Topic;

/// Where a scan stands: a group and the key of its last returned item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub group: u8,
    pub key: Bytes,
}

type Items<'a> = Box<dyn Iterator<Item = (Place, Item)> + 'a>;

impl Metadata {
    /// Items of the selected groups after a place, groups ascending.
    pub(crate) fn current_items(&self, mask: u8, after: Option<&Place>) -> Items<'_> {
        let first = after.map_or(group::STREAMS, |place| place.group);
        let after = after.cloned();
        let groups = (first..=group::SESSIONS).filter(move |group| is_selected(mask, *group));
        Box::new(groups.flat_map(move |group| self.items_of(group, after.as_ref().filter(|_| group == first))))
    }

    fn items_of(&self, group: u8, after: Option<&Place>) -> Items<'_> {
        let Some(after) = after else {
            return self.items_from(group, 0);
        };
        // The maps are entered at the first id of the key; what remains to skip is within one stream or one user.
        let last = sort_key(after);
        let first_id = last.0.first().copied().unwrap_or(0);
        Box::new(
            self.items_from(group, first_id)
                .skip_while(move |(place, _)| sort_key(place) <= last),
        )
    }

    /// Items of a group whose first id (of the stream, the user or the session) is at least `from`.
    fn items_from(&self, group: u8, from: u64) -> Items<'_> {
        let id = u32::try_from(from).unwrap_or(u32::MAX);
        match group {
            group::STREAMS => Box::new(
                self.streams
                    .range(id..)
                    .map(|(id, stream)| (place(group::STREAMS, &[*id]), Item::Stream(fact::stream_body(stream)))),
            ),
            group::TOPICS => Box::new(self.topics_from(id).map(|(stream, topic)| {
                (
                    place(group::TOPICS, &[stream.id, topic.id]),
                    Item::Topic(fact::topic_item(stream, topic)),
                )
            })),
            group::PARTITIONS => Box::new(self.topics_from(id).map(|(stream, topic)| {
                let partitions_count = topic.partitions_count();
                let item = PartitionsItem {
                    topic: fact::topic_key(stream, topic),
                    partitions_count,
                };
                (place(group::PARTITIONS, &[stream.id, topic.id]), Item::Partitions(item))
            })),
            group::CONSUMER_GROUPS => Box::new(self.groups_from(id).map(|(stream, topic, found)| {
                let topic_key = fact::topic_key(stream, topic);
                let item = GroupItem {
                    topic: topic_key,
                    group_id: found.id,
                    name: found.name.clone(),
                };
                (
                    place(group::CONSUMER_GROUPS, &[stream.id, topic.id, found.id]),
                    Item::ConsumerGroup(item),
                )
            })),
            group::CONSUMER_GROUP_MEMBERS => Box::new(
                self.groups_from(id)
                    .flat_map(|(stream, topic, found)| members(stream, topic, found)),
            ),
            group::USERS => Box::new(
                self.users
                    .range(id..)
                    .map(|(id, user)| (place(group::USERS, &[*id]), Item::User(fact::user_body(user)))),
            ),
            group::PERSONAL_ACCESS_TOKENS => Box::new(self.users.range(id..).flat_map(|(_, user)| {
                user.tokens.iter().map(|(name, token)| {
                    let mut key = BytesMut::new();
                    key.put_u32_le(user.id);
                    key.put_slice(name.as_bytes());
                    let place = Place {
                        group: group::PERSONAL_ACCESS_TOKENS,
                        key: key.freeze(),
                    };
                    (place, Item::PersonalAccessToken(fact::token_body(user, name, token)))
                })
            })),
            _ => Box::new(self.session_order.range(from..).filter_map(|(number, client)| {
                let session = self.session_of_client(*client)?;
                let item = fact::session_body(fact::user_key_of_session(session), session.key);
                let key = Bytes::copy_from_slice(&number.to_le_bytes());
                Some((
                    Place {
                        group: group::SESSIONS,
                        key,
                    },
                    Item::Session(item),
                ))
            })),
        }
    }

    fn topics_from(&self, stream_id: u32) -> impl Iterator<Item = (&Stream, &Topic)> {
        self.streams.range(stream_id..).flat_map(|(_, stream)| {
            stream
                .topics
                .values()
                .map(move |topic| (stream.as_ref(), topic.as_ref()))
        })
    }

    fn groups_from(&self, stream_id: u32) -> impl Iterator<Item = (&Stream, &Topic, &Group)> {
        self.topics_from(stream_id)
            .flat_map(|(stream, topic)| topic.groups.values().map(move |group| (stream, topic, group.as_ref())))
    }
}

fn members<'a>(stream: &'a Stream, topic: &'a Topic, found: &'a Group) -> impl Iterator<Item = (Place, Item)> + 'a {
    let mut assignments = found.assignments();
    found.members().map(move |(member_id, session)| {
        let item = MemberItem {
            topic: fact::topic_key(stream, topic),
            group_id: found.id,
            member_id,
            client_id: session.client,
            partitions: AscendingIds(assignments.remove(&member_id).unwrap_or_default()),
        };
        (
            place(
                group::CONSUMER_GROUP_MEMBERS,
                &[stream.id, topic.id, found.id, member_id],
            ),
            Item::Member(item),
        )
    })
}

fn place(group: u8, ids: &[u32]) -> Place {
    let mut key = BytesMut::with_capacity(ids.len() * 4);
    for id in ids {
        key.put_u32_le(*id);
    }
    Place {
        group,
        key: key.freeze(),
    }
}

/// The order of items within a group: by their numbers, then by what follows them (a token's name).
fn sort_key(place: &Place) -> (Vec<u64>, Bytes) {
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    match place.group {
        group::SESSIONS => (vec![number(&place.key)], Bytes::new()),
        group::PERSONAL_ACCESS_TOKENS => {
            let at = place.key.len().min(4);
            (vec![number(&place.key[..at])], place.key.slice(at..))
        }
        _ => (place.key.chunks(4).map(number).collect(), Bytes::new()),
    }
}
