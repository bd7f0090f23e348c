//! Metadata changes: following the log, reading what is there, bounds and cursors.

mod support;

use bytes::Bytes;
use iggy_metadata::{Change as LogChange, Limits, RequestKey};
use iggy_protocol::reply::metadata_changes::{ChangeRecord, ChangesPhase, ChangesStatus, MetadataChanges};
use iggy_protocol::reply::metadata_record::{Change, Item, LeaveReason, SessionReason};
use iggy_protocol::request::Empty;
use iggy_protocol::request::metadata_changes::{ChangesStart, Cursor, GetMetadataChanges};
use iggy_protocol::request::stream::DeleteStream;
use iggy_protocol::request::system::Resource;
use iggy_protocol::{Command, Decode, ErrorCode, Permissions};
use support::{LOG_ID, Login, World, named, options, text};

fn request(start: ChangesStart, limit: u32, groups: &[u8]) -> GetMetadataChanges {
    GetMetadataChanges {
        start,
        since: None,
        until: None,
        limit,
        groups: groups.to_vec(),
    }
}

fn page(world: &World, login: Login, request: &GetMetadataChanges) -> MetadataChanges {
    let body = world
        .read(login, Command::GetMetadataChanges, request)
        .expect("answered");
    // The client's decoder reads every body, so a wrong one fails here.
    MetadataChanges::from_bytes(&body).expect("a page")
}

fn names(records: &[ChangeRecord]) -> Vec<&'static str> {
    records
        .iter()
        .map(|record| record.change.name().expect("a known kind"))
        .collect()
}

fn busy_world() -> (World, Login) {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 3).expect("created");
    world.create_group(root, "s", "t", "g").expect("created");
    world.join(root, "s", "t", "g").expect("joined");
    world
        .create_user(root, "bob", Some(Permissions::root()))
        .expect("created");
    world.create_token(root, "token", 0).expect("created");
    (world, root)
}

#[test]
fn given_every_kind_of_change_when_followed_should_tell_them_in_order() {
    let (mut world, root) = busy_world();
    let bob = world.login("bob").expect("signed in");
    world.join(bob, "s", "t", "g").expect("joined");
    world
        .update(
            root,
            Resource::Topic {
                stream: named("s"),
                topic: named("t"),
            },
            options(&[("name", text("t2"))]),
            &[],
        )
        .expect("renamed");
    world.delete_partitions(root, "s", "t2", 1).expect("removed");
    world.write(bob, Command::Logout, &Empty).expect("logged out");
    world
        .write(root, Command::DeleteStream, &DeleteStream { stream: named("s") })
        .expect("deleted");
    let all = page(&world, root, &request(ChangesStart::Earliest, 1000, &[]));
    assert_eq!(
        names(&all.records),
        vec![
            "user_created",
            "session_registered",
            "stream_created",
            "topic_created",
            "consumer_group_created",
            "consumer_group_member_joined",
            "user_created",
            "personal_access_token_created",
            "session_registered",
            "consumer_group_member_joined",
            "topic_updated",
            "partitions_changed",
            "consumer_group_partition_handed_over",
            "consumer_group_member_left",
            "consumer_group_partition_handed_over",
            "session_closed",
            "topic_deleted",
            "stream_deleted",
        ],
        "2 partitions left: one of two moves to bob's place and back"
    );
    assert!(
        all.records
            .windows(2)
            .all(|pair| (pair[0].op, pair[0].ordinal) < (pair[1].op, pair[1].ordinal))
    );
    assert_eq!(all.log_id, Some(LOG_ID));
    assert_eq!(all.head_op, world.metadata.applied().op);
    let left = all.records.iter().find_map(|record| match &record.change {
        Change::ConsumerGroupMemberLeft(body) => Some(body),
        _ => None,
    });
    assert_eq!(
        left.map(|body| (body.reason, body.members_count)),
        Some((LeaveReason::SessionEnded, 1))
    );
    let closed = all.records.iter().find_map(|record| match &record.change {
        Change::SessionClosed(body) => Some((body.reason, record.actor_user_id)),
        _ => None,
    });
    assert_eq!(closed, Some((SessionReason::Logout, Some(bob.user_id))));
}

#[test]
fn given_pages_when_followed_one_by_one_should_tell_everything_once() {
    let (world, root) = busy_world();
    let all = page(&world, root, &request(ChangesStart::Earliest, 1000, &[]));
    let mut paged = Vec::new();
    let mut start = ChangesStart::Earliest;
    loop {
        let next = page(&world, root, &request(start, 2, &[]));
        assert_eq!(next.status, ChangesStatus::Ok);
        assert!(next.records.len() <= 2);
        paged.extend(next.records);
        start = ChangesStart::After(next.next.expect("a page names the next"));
        if !next.has_more {
            break;
        }
    }
    assert_eq!(paged, all.records);
    assert!(page(&world, root, &request(start, 2, &[])).records.is_empty());
}

#[test]
fn given_the_latest_cursor_when_something_changes_should_tell_only_that() {
    let (mut world, root) = busy_world();
    let latest = page(&world, root, &request(ChangesStart::Latest, 10, &[]));
    assert!(latest.records.is_empty());
    let cursor = latest.next.expect("a cursor");
    assert_eq!(
        (cursor.op, cursor.checksum),
        (world.metadata.applied().op, world.metadata.applied().checksum)
    );
    world.create_stream(root, "new").expect("created");
    let after = page(&world, root, &request(ChangesStart::After(cursor), 10, &[]));
    assert_eq!(names(&after.records), vec!["stream_created"]);
}

#[test]
fn given_groups_when_selected_should_leave_the_others_out() {
    let (world, root) = busy_world();
    let users = page(&world, root, &request(ChangesStart::Earliest, 10, &[6, 7]));
    assert_eq!(
        names(&users.records),
        vec!["user_created", "user_created", "personal_access_token_created"]
    );
    assert_eq!(
        users.next.expect("a cursor").op,
        world.metadata.applied().op,
        "what is left out need not be read again"
    );
}

#[test]
fn given_time_bounds_when_followed_should_keep_within_both() {
    let (world, root) = busy_world();
    let all = page(&world, root, &request(ChangesStart::Earliest, 1000, &[])).records;
    let (since, until) = (all[2].timestamp, all[4].timestamp);
    let bounded = GetMetadataChanges {
        since: Some(since),
        until: Some(until),
        ..request(ChangesStart::Earliest, 10, &[])
    };
    let within = page(&world, root, &bounded);
    assert_eq!(within.records, all[2..=4].to_vec());
    assert!(!within.has_more);
    let next = within.next.expect("a cursor");
    assert_eq!(next.op, all[4].op, "what lies after the bound is still to be read");
}

#[test]
fn given_cursors_of_elsewhere_when_followed_should_say_behind_reset_or_expired() {
    let (mut world, root) = busy_world();
    let cursor = page(&world, root, &request(ChangesStart::Earliest, 1, &[]))
        .next
        .expect("a cursor");
    let status =
        |world: &World, cursor: Cursor| page(world, root, &request(ChangesStart::After(cursor), 1, &[])).status;
    assert_eq!(status(&world, cursor), ChangesStatus::Ok);
    assert_eq!(status(&world, Cursor { op: 10_000, ..cursor }), ChangesStatus::Behind);
    assert_eq!(status(&world, Cursor { log_id: 5, ..cursor }), ChangesStatus::Reset);
    assert_eq!(status(&world, Cursor { checksum: 5, ..cursor }), ChangesStatus::Reset);
    // Members and sessions give way on their own: a follower of users is not disturbed by them.
    let limits = Limits {
        activity_records: 10,
        ..Limits::default()
    };
    world.commit(RequestKey::INTERNAL, &LogChange::SetLimits(limits));
    for _ in 0..10 {
        world.join(root, "s", "t", "g").expect("joined");
        world.leave(root, "s", "t", "g").expect("left");
    }
    assert_eq!(status(&world, cursor), ChangesStatus::Expired);
    let users = page(&world, root, &request(ChangesStart::After(cursor), 10, &[6]));
    assert_eq!(
        (users.status, names(&users.records)),
        (ChangesStatus::Ok, vec!["user_created"])
    );
    let earliest = page(&world, root, &request(ChangesStart::Earliest, 1, &[5]));
    assert!(earliest.oldest_op > cursor.op);
    assert!(earliest.records[0].op >= earliest.oldest_op - 1);
    assert!(earliest.retained_since > 0);
}

#[test]
fn given_the_current_state_when_read_in_pages_should_hold_each_thing_once() {
    let (mut world, root) = busy_world();
    world.create_topic(root, "s", "t2", 1).expect("created");
    world.create_stream(root, "s2").expect("created");
    world.create_topic(root, "s2", "t", 1).expect("created");
    let whole = page(&world, root, &request(ChangesStart::Current(None), 1000, &[]));
    assert_eq!(
        (whole.phase, whole.has_more, whole.token),
        (ChangesPhase::Current, false, None)
    );
    let groups: Vec<u8> = whole.items.iter().map(Item::group).collect();
    assert_eq!(groups, vec![1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6, 6, 7, 8]);
    for limit in 1..=3 {
        let mut items = Vec::new();
        let mut token: Option<Bytes> = None;
        loop {
            let next = page(&world, root, &request(ChangesStart::Current(token), limit, &[]));
            assert_eq!(next.status, ChangesStatus::Ok);
            assert_eq!(next.next, whole.next, "every page names the same anchor");
            items.extend(next.items);
            token = next.token;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(items, whole.items, "in pages of {limit}");
    }
}

#[test]
fn given_a_page_token_when_used_elsewhere_should_say_behind_reset_or_be_refused() {
    let (world, root) = busy_world();
    let first = page(&world, root, &request(ChangesStart::Current(None), 1, &[1, 2]));
    let token = first.token.expect("there is more");
    let with_other_groups = request(ChangesStart::Current(Some(token.clone())), 1, &[1]);
    let refused = world.read(root, Command::GetMetadataChanges, &with_other_groups);
    assert_eq!(refused, Err(ErrorCode::InvalidCommand));
    let mut ahead = token.to_vec();
    ahead[44..52].copy_from_slice(&10_000u64.to_le_bytes());
    let status = |token: Vec<u8>| {
        page(
            &world,
            root,
            &request(ChangesStart::Current(Some(token.into())), 1, &[1, 2]),
        )
        .status
    };
    assert_eq!(status(token.to_vec()), ChangesStatus::Ok);
    assert_eq!(status(ahead), ChangesStatus::Behind);
    let mut elsewhere = token.to_vec();
    elsewhere[0] ^= 1;
    assert_eq!(status(elsewhere), ChangesStatus::Reset);
}

#[test]
fn given_a_user_without_manage_servers_when_asking_should_be_unauthorized() {
    let (mut world, root) = busy_world();
    let mut permissions = Permissions::root();
    permissions.global.manage_servers = false;
    world.create_user(root, "eve", Some(permissions)).expect("created");
    let eve = world.login("eve").expect("signed in");
    let refused = world.read(eve, Command::GetMetadataChanges, &request(ChangesStart::Latest, 1, &[]));
    assert_eq!(refused, Err(ErrorCode::Unauthorized));
}

#[test]
fn given_an_entry_of_the_servers_own_when_recorded_should_name_no_actor() {
    let (mut world, root) = busy_world();
    let other = world.root();
    world.commit(
        RequestKey::INTERNAL,
        &LogChange::ExpireSessions {
            sessions: vec![other.key],
        },
    );
    let sessions = page(&world, root, &request(ChangesStart::Earliest, 10, &[8]));
    let last = sessions.records.last().expect("a record");
    assert_eq!(last.actor_user_id, None);
    assert!(matches!(&last.change, Change::SessionClosed(body) if body.reason == SessionReason::Expired));
}

#[test]
fn given_a_state_before_the_first_entry_when_read_should_have_no_log() {
    let metadata = iggy_metadata::Metadata::new();
    assert!(!metadata.is_bootstrapped());
    assert_eq!(
        metadata.authorize(0, Command::GetMetadataChanges, iggy_metadata::Target::Nothing),
        Err(ErrorCode::Unauthenticated)
    );
}
