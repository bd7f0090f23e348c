//! Users, passwords, permissions and tokens.

mod support;

use std::collections::BTreeMap;

use iggy_metadata::{Change, Event, RequestKey, SessionEnd};
use iggy_protocol::options::Options;
use iggy_protocol::reply::user::{PersonalAccessTokens, UserDetails, Users};
use iggy_protocol::request::Empty;
use iggy_protocol::request::stream::DeleteStream;
use iggy_protocol::request::system::Resource;
use iggy_protocol::request::token::DeletePersonalAccessToken;
use iggy_protocol::request::topic::DeleteTopic;
use iggy_protocol::request::user::{ChangePassword, CreateUser, DeleteUser, GetUser, UpdatePermissions};
use iggy_protocol::secret::Secret;
use iggy_protocol::{Command, Decode, ErrorCode, Permissions, StreamPermissions, TopicPermissions};
use support::{TICK, World, name, named, options, text};

fn create(username: &str, password: &str, status: u8) -> CreateUser {
    CreateUser {
        username: name(username),
        password: Secret::from(password),
        status,
        permissions: None,
        options: Options::new(),
    }
}

fn change_password(user: &str, current: &str, new: &str) -> ChangePassword {
    ChangePassword {
        user: named(user),
        current: Secret::from(current),
        new: Secret::from(new),
    }
}

fn reader() -> Permissions {
    let mut permissions = Permissions::default();
    permissions.global.poll_messages = true;
    permissions
}

#[test]
fn given_bad_users_when_creating_should_refuse_each_with_its_code() {
    let mut world = World::new();
    let root = world.root();
    let long = "x".repeat(51);
    let cases = [
        (create("ab", "secret", 1), ErrorCode::InvalidUsername),
        (create(&long, "secret", 1), ErrorCode::InvalidUsername),
        (create("bob", "ab", 1), ErrorCode::InvalidPassword),
        (create("bob", "secret", 3), ErrorCode::InvalidUserStatus),
        (
            CreateUser {
                options: options(&[("x", text("y"))]),
                ..create("bob", "secret", 1)
            },
            ErrorCode::UnsupportedOptionKey,
        ),
        (
            CreateUser {
                options: options(&[("status", text("active"))]),
                ..create("bob", "secret", 1)
            },
            ErrorCode::InvalidOptionValue,
        ),
    ];
    for (request, code) in cases {
        assert_eq!(
            world.write(root, Command::CreateUser, &request),
            Err(code),
            "{request:?}"
        );
    }
}

#[test]
fn given_a_user_when_created_and_read_should_show_what_was_set() {
    let mut world = World::new();
    let root = world.root();
    let created = world.create_user(root, "bob", Some(reader())).expect("created");
    let read = world
        .read(root, Command::GetUser, &GetUser { user: named("bob") })
        .expect("answered");
    assert_eq!(created, read);
    let details = UserDetails::from_bytes(&read).expect("a user");
    assert_eq!(
        (details.user.id, details.user.status, details.permissions),
        (1, 1, Some(reader()))
    );
    assert!(
        world
            .read(root, Command::GetUser, &GetUser { user: named("eve") })
            .expect("answered")
            .is_empty()
    );
    let list = world.read(root, Command::GetUsers, &Empty).expect("answered");
    assert_eq!(Users::from_bytes(&list).expect("users").users.len(), 2);
}

#[test]
fn given_a_password_when_changed_should_need_the_current_one() {
    let mut world = World::new();
    let root = world.root();
    world.create_user(root, "bob", None).expect("created");
    let bob = world.login("bob").expect("signed in");
    let wrong = world.write(
        bob,
        Command::ChangePassword,
        &change_password("bob", "wrong", "new-secret"),
    );
    assert_eq!(wrong, Err(ErrorCode::InvalidCredentials));
    let short = world.write(bob, Command::ChangePassword, &change_password("bob", "secret", "x"));
    assert_eq!(short, Err(ErrorCode::InvalidPassword));
    world
        .write(
            bob,
            Command::ChangePassword,
            &change_password("bob", "secret", "new-secret"),
        )
        .expect("changed");
    assert_eq!(
        world.metadata.credentials("bob").expect("known").password_hash,
        "hash:new-secret"
    );
    let other = world.write(
        bob,
        Command::ChangePassword,
        &change_password("iggy", "iggy", "mine-now"),
    );
    assert_eq!(other, Err(ErrorCode::Unauthorized));
}

#[test]
fn given_two_password_changes_that_verified_the_same_hash_when_applied_should_refuse_the_second() {
    let mut world = World::new();
    let root = world.root();
    let user = world.user("iggy");
    let change = |password_hash: &str| Change::ChangePassword {
        user,
        verified_hash: "hash:iggy".into(),
        password_hash: password_hash.into(),
    };
    let (first, second) = (world.request(root), world.request(root));
    world.commit(first, &change("hash:one"));
    let receipt = world.commit(second, &change("hash:two")).receipt;
    assert_eq!(
        receipt.outcome,
        iggy_metadata::Outcome::Refused(ErrorCode::InvalidCredentials)
    );
    assert_eq!(
        world.metadata.credentials("iggy").expect("known").password_hash,
        "hash:one"
    );
}

#[test]
fn given_a_user_when_disabled_should_end_its_sessions_and_refuse_its_logins() {
    let mut world = World::new();
    let root = world.root();
    world.create_user(root, "bob", Some(reader())).expect("created");
    let bob = world.login("bob").expect("signed in");
    let resource = || Resource::User(named("bob"));
    world
        .update(root, resource(), options(&[("status", text("inactive"))]), &[])
        .expect("disabled");
    let ended = Event::SessionEnded {
        session: bob.key,
        reason: SessionEnd::Revoked,
    };
    assert_eq!(world.events, vec![ended, Event::UserRevoked { user_id: bob.user_id }]);
    assert_eq!(world.login("bob").err(), Some(ErrorCode::UserInactive));
    assert_eq!(
        world.read(bob, Command::GetUsers, &Empty),
        Err(ErrorCode::Unauthenticated)
    );
    world
        .update(
            root,
            resource(),
            options(&[("status", text("active")), ("username", text("bobby"))]),
            &[],
        )
        .expect("enabled");
    assert!(world.login("bobby").is_ok());
    assert!(world.metadata.credentials("bob").is_none());
}

#[test]
fn given_a_user_when_deleted_should_take_its_sessions_and_tokens_along() {
    let mut world = World::new();
    let root = world.root();
    world.create_user(root, "bob", None).expect("created");
    let bob = world.login("bob").expect("signed in");
    world.create_token(bob, "token", 0).expect("created");
    let hash = *world
        .metadata
        .user(&named("bob"))
        .expect("known")
        .tokens
        .values()
        .next()
        .map(|t| &t.hash)
        .expect("one");
    assert!(world.metadata.token_user(&hash, 0).is_ok());
    world
        .write(root, Command::DeleteUser, &DeleteUser { user: named("bob") })
        .expect("deleted");
    assert!(world.metadata.session(bob.key).is_none());
    assert_eq!(
        world.metadata.token_user(&hash, 0),
        Err(ErrorCode::InvalidPersonalAccessToken)
    );
    assert_eq!(
        world.write(root, Command::DeleteUser, &DeleteUser { user: named("bob") }),
        Err(ErrorCode::ResourceNotFound)
    );
}

#[test]
fn given_root_when_deleted_or_restricted_should_be_refused() {
    let mut world = World::new();
    let root = world.root();
    assert_eq!(
        world.write(root, Command::DeleteUser, &DeleteUser { user: named("iggy") }),
        Err(ErrorCode::CannotDeleteUser)
    );
    let request = UpdatePermissions {
        user: named("iggy"),
        permissions: None,
    };
    assert_eq!(
        world.write(root, Command::UpdatePermissions, &request),
        Err(ErrorCode::CannotChangePermissions)
    );
}

#[test]
fn given_a_user_without_rights_when_writing_or_reading_should_be_unauthorized_and_learn_no_names() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_user(root, "bob", Some(reader())).expect("created");
    let bob = world.login("bob").expect("signed in");
    assert_eq!(world.create_stream(bob, "mine"), Err(ErrorCode::Unauthorized));
    assert_eq!(world.create_topic(bob, "s", "t", 1), Err(ErrorCode::Unauthorized));
    assert_eq!(world.create_topic(bob, "unknown", "t", 1), Err(ErrorCode::Unauthorized));
    let update = world.update(
        bob,
        Resource::Stream(named("unknown")),
        options(&[("name", text("x"))]),
        &[],
    );
    assert_eq!(update, Err(ErrorCode::Unauthorized));
    assert_eq!(world.create_user(bob, "eve", None), Err(ErrorCode::Unauthorized));
    let own = world.read(bob, Command::GetUser, &GetUser { user: named("bob") });
    assert!(!own.expect("one's own account").is_empty());
    assert_eq!(
        world.read(bob, Command::GetUser, &GetUser { user: named("iggy") }),
        Err(ErrorCode::Unauthorized)
    );
    assert_eq!(
        world.read(bob, Command::GetUser, &GetUser { user: named("nobody") }),
        Err(ErrorCode::Unauthorized)
    );
}

#[test]
fn given_permissions_when_updated_should_hold_from_the_next_request_on() {
    let mut world = World::new();
    let root = world.root();
    world.create_user(root, "bob", None).expect("created");
    let bob = world.login("bob").expect("signed in");
    let mut permissions = Permissions::default();
    permissions.global.manage_streams = true;
    let grant = UpdatePermissions {
        user: named("bob"),
        permissions: Some(permissions),
    };
    world.write(root, Command::UpdatePermissions, &grant).expect("granted");
    world.create_stream(bob, "mine").expect("allowed now");
    let revoke = UpdatePermissions {
        user: named("bob"),
        permissions: None,
    };
    world.write(root, Command::UpdatePermissions, &revoke).expect("revoked");
    assert_eq!(world.create_stream(bob, "more"), Err(ErrorCode::Unauthorized));
}

#[test]
fn given_permissions_on_a_resource_when_it_is_deleted_should_be_gone() {
    let mut world = World::new();
    let root = world.root();
    world.create_stream(root, "s").expect("created");
    world.create_topic(root, "s", "t", 1).expect("created");
    let topics = BTreeMap::from([(
        0,
        TopicPermissions {
            send_messages: true,
            ..TopicPermissions::default()
        },
    )]);
    let streams = BTreeMap::from([(
        0,
        StreamPermissions {
            topics,
            ..StreamPermissions::default()
        },
    )]);
    world
        .create_user(
            root,
            "bob",
            Some(Permissions {
                streams,
                ..Permissions::default()
            }),
        )
        .expect("created");
    let permissions = |world: &World| {
        world
            .metadata
            .user(&named("bob"))
            .expect("known")
            .permissions
            .clone()
            .expect("some")
    };
    world
        .write(
            root,
            Command::DeleteTopic,
            &DeleteTopic {
                stream: named("s"),
                topic: named("t"),
            },
        )
        .expect("deleted");
    assert!(permissions(&world).streams[&0].topics.is_empty());
    world
        .write(root, Command::DeleteStream, &DeleteStream { stream: named("s") })
        .expect("deleted");
    assert!(permissions(&world).streams.is_empty());
}

#[test]
fn given_tokens_when_created_should_keep_names_limits_and_expiry() {
    let mut world = World::new();
    world.settings.tokens_per_user = 2;
    let root = world.root();
    assert_eq!(
        world.create_token(root, "ab", 0),
        Err(ErrorCode::InvalidPersonalAccessTokenName)
    );
    assert_eq!(
        world.create_token(root, &"x".repeat(31), 0),
        Err(ErrorCode::InvalidPersonalAccessTokenName)
    );
    assert_eq!(
        world.create_token(root, "late", u64::MAX - 1),
        Err(ErrorCode::InvalidPersonalAccessTokenExpiry)
    );
    world.create_token(root, "for ever", u64::MAX).expect("created");
    world.create_token(root, "short", 10 * TICK).expect("created");
    let created_at = world.metadata.applied().timestamp;
    assert_eq!(
        world.create_token(root, "short", 0),
        Err(ErrorCode::PersonalAccessTokenAlreadyExists)
    );
    assert_eq!(
        world.create_token(root, "third", 0),
        Err(ErrorCode::PersonalAccessTokensLimitReached)
    );
    let body = world
        .read(root, Command::GetPersonalAccessTokens, &Empty)
        .expect("answered");
    let tokens = PersonalAccessTokens::from_bytes(&body).expect("tokens").tokens;
    let listed: Vec<_> = tokens
        .iter()
        .map(|token| (token.name.as_str(), token.expiry_at))
        .collect();
    assert_eq!(listed, vec![("for ever", 0), ("short", created_at + 10 * TICK)]);
}

#[test]
fn given_an_expired_token_when_used_and_cleaned_should_be_refused_then_gone() {
    let mut world = World::new();
    let root = world.root();
    world.create_token(root, "short", 3 * TICK).expect("created");
    let token = *world
        .metadata
        .user(&named("iggy"))
        .expect("known")
        .tokens
        .values()
        .next()
        .expect("one");
    assert!(world.metadata.token_user(&token.hash, token.expiry_at - 1).is_ok());
    assert_eq!(
        world.metadata.token_user(&token.hash, token.expiry_at),
        Err(ErrorCode::PersonalAccessTokenExpired)
    );
    assert!(!world.metadata.has_expired_tokens(token.expiry_at - 1));
    assert!(world.metadata.has_expired_tokens(token.expiry_at));
    world.commit(RequestKey::INTERNAL, &Change::ExpireTokens);
    assert!(
        world.metadata.token(&token.hash).is_some(),
        "it had time left at that entry"
    );
    while world.next_position().timestamp < token.expiry_at {
        world.commit(RequestKey::INTERNAL, &Change::ExpireSessions { sessions: Vec::new() });
    }
    world.commit(RequestKey::INTERNAL, &Change::ExpireTokens);
    assert!(world.metadata.token(&token.hash).is_none());
    let missing = world.write(
        root,
        Command::DeletePersonalAccessToken,
        &DeletePersonalAccessToken { name: name("short") },
    );
    assert_eq!(missing, Err(ErrorCode::ResourceNotFound));
}
