//! Users, permissions and personal access tokens.

use std::collections::BTreeMap;

use iggy::prelude::*;
use interop::{World, code_of, consumer, named, number, texts, topic_with};

const RESOURCE_NOT_FOUND: u32 = 20;
const UNAUTHENTICATED: u32 = 40;
const UNAUTHORIZED: u32 = 41;
const INVALID_CREDENTIALS: u32 = 42;
const USER_ALREADY_EXISTS: u32 = 46;
const CANNOT_DELETE_USER: u32 = 48;
const TOKEN_ALREADY_EXISTS: u32 = 51;
const INVALID_TOKEN: u32 = 53;

const PASSWORD: &str = "bobs-secret";

async fn create_bob(world: &World, permissions: Option<Permissions>) -> UserInfoDetails {
    let options = UserCreateOptions::default();
    world
        .client
        .create_user("bob", PASSWORD, UserStatus::Active, permissions, &options)
        .await
        .unwrap()
}

fn of_stream(stream: StreamPermissions) -> Permissions {
    Permissions {
        global: GlobalPermissions::default(),
        streams: Some(BTreeMap::from([(0, stream)])),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_user_should_be_found_with_the_permissions_it_was_given() {
    let world = World::start().await;
    let topic = TopicPermissions {
        send_messages: true,
        ..TopicPermissions::default()
    };
    let permissions = of_stream(StreamPermissions {
        read_stream: true,
        topics: Some(BTreeMap::from([(3, topic)])),
        ..StreamPermissions::default()
    });
    let created = create_bob(&world, Some(permissions.clone())).await;
    assert_eq!(created.permissions.as_ref(), Some(&permissions));
    for id in [number(created.id), named("bob")] {
        let found = world.client.get_user(&id).await.unwrap().unwrap();
        assert_eq!((found.username.as_str(), found.status), ("bob", UserStatus::Active));
        assert_eq!(found.permissions.as_ref(), Some(&permissions));
    }
    world.client.update_permissions(&named("bob"), None).await.unwrap();
    assert_eq!(
        world.client.get_user(&named("bob")).await.unwrap().unwrap().permissions,
        None
    );
    let names: Vec<_> = world
        .client
        .get_users()
        .await
        .unwrap()
        .into_iter()
        .map(|user| user.username)
        .collect();
    assert_eq!(names, ["iggy", "bob"]);
    assert!(world.client.get_user(&named("nobody")).await.unwrap().is_none());
    let options = UserCreateOptions::default();
    let again = world
        .client
        .create_user("bob", PASSWORD, UserStatus::Active, None, &options)
        .await;
    assert_eq!(code_of(again), USER_ALREADY_EXISTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_no_permission_should_refuse_until_it_is_granted() {
    let world = World::with_topic(1).await;
    create_bob(&world, None).await;
    let bob = world.client_of("bob", PASSWORD).await.unwrap();
    let (stream, topic) = (&world.stream, &world.topic);
    let send = async || {
        let partitioning = Partitioning::partition_id(0);
        bob.send_messages(stream, topic, &partitioning, &mut texts(&["from bob"]))
            .await
    };
    let poll = async || {
        let first = PollingStrategy::first();
        bob.poll_messages(stream, topic, 0, &consumer("bob"), &first, PollOptions::default())
            .await
    };
    assert_eq!(code_of(bob.get_streams().await), UNAUTHORIZED);
    assert_eq!(
        code_of(bob.create_stream("bobs", &StreamCreateOptions::default()).await),
        UNAUTHORIZED
    );
    assert_eq!(
        code_of(bob.create_topic(stream, "bobs", &topic_with(1)).await),
        UNAUTHORIZED
    );
    assert_eq!(code_of(bob.get_users().await), UNAUTHORIZED);
    assert_eq!(code_of(bob.get_stats().await), UNAUTHORIZED);
    assert_eq!(code_of(send().await), UNAUTHORIZED);
    assert_eq!(code_of(poll().await), UNAUTHORIZED);

    let sender = of_stream(StreamPermissions {
        send_messages: true,
        ..StreamPermissions::default()
    });
    world
        .client
        .update_permissions(&named("bob"), Some(sender))
        .await
        .unwrap();
    send().await.unwrap();
    assert_eq!(code_of(poll().await), UNAUTHORIZED);

    let reader = of_stream(StreamPermissions {
        poll_messages: true,
        ..StreamPermissions::default()
    });
    world
        .client
        .update_permissions(&named("bob"), Some(reader))
        .await
        .unwrap();
    assert_eq!(poll().await.unwrap().messages.len(), 1);
    assert_eq!(code_of(send().await), UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_changed_password_should_accept_only_the_new_one() {
    let world = World::start().await;
    create_bob(&world, None).await;
    let wrong = world
        .client
        .change_password(&named("bob"), "not-it", "another-secret")
        .await;
    assert_eq!(code_of(wrong), INVALID_CREDENTIALS);
    let bob = world.client_of("bob", PASSWORD).await.unwrap();
    bob.change_password(&named("bob"), PASSWORD, "another-secret")
        .await
        .expect("everyone changes their own password");
    assert_eq!(
        world.client_of("bob", PASSWORD).await.err().unwrap().as_code(),
        INVALID_CREDENTIALS
    );
    world.client_of("bob", "another-secret").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn given_an_inactive_user_should_refuse_its_login() {
    let world = World::start().await;
    create_bob(&world, None).await;
    let rename = UserUpdateOptions {
        username: Some("robert".to_owned()),
        status: Some(UserStatus::Inactive),
        ..UserUpdateOptions::default()
    };
    world.client.update_user(&named("bob"), &rename).await.unwrap();
    assert_eq!(
        world.client_of("robert", PASSWORD).await.err().unwrap().as_code(),
        UNAUTHENTICATED
    );
    let active = UserUpdateOptions {
        status: Some(UserStatus::Active),
        ..UserUpdateOptions::default()
    };
    world.client.update_user(&named("robert"), &active).await.unwrap();
    world.client_of("robert", PASSWORD).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_deleted_user_should_lose_its_session() {
    let world = World::start().await;
    create_bob(&world, Some(Permissions::root())).await;
    let bob = world.client_of("bob", PASSWORD).await.unwrap();
    bob.get_streams().await.unwrap();
    world.client.delete_user(&named("bob")).await.unwrap();
    assert!(bob.get_streams().await.is_err());
    assert_eq!(
        code_of(world.client.delete_user(&named("iggy")).await),
        CANNOT_DELETE_USER
    );
    let missing = world.client.delete_user(&named("bob")).await;
    assert_eq!(code_of(missing), RESOURCE_NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_tokens_should_list_refuse_duplicates_and_die_when_deleted() {
    let world = World::start().await;
    let hour = PersonalAccessTokenExpiry::ExpireDuration(IggyDuration::new_from_secs(3600));
    let laptop = world.client.create_personal_access_token("laptop", hour).await.unwrap();
    world
        .client
        .create_personal_access_token("server", PersonalAccessTokenExpiry::NeverExpire)
        .await
        .unwrap();
    let again = world.client.create_personal_access_token("laptop", hour).await;
    assert_eq!(code_of(again), TOKEN_ALREADY_EXISTS);
    let mut listed = world.client.get_personal_access_tokens().await.unwrap();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(
        listed.iter().map(|token| token.name.as_str()).collect::<Vec<_>>(),
        ["laptop", "server"]
    );
    assert!(listed[0].expiry_at.is_some() && listed[1].expiry_at.is_none());
    world.client_by_token(&laptop.token).await.unwrap();
    world.client.delete_personal_access_token("laptop").await.unwrap();
    assert_eq!(
        world.client_by_token(&laptop.token).await.err().unwrap().as_code(),
        INVALID_TOKEN
    );
    assert_eq!(
        code_of(world.client.delete_personal_access_token("laptop").await),
        RESOURCE_NOT_FOUND
    );
}
