//! Users, permissions, signing in, tokens.

use std::collections::BTreeMap;

use cucumber::{given, then, when};
use iggy::prelude::*;

use crate::values::names;
use crate::world::{BddWorld, Node};

const PASSWORD: &str = "secret123";

fn named(name: &str) -> Identifier {
    Identifier::named(name).unwrap()
}

#[given("a signed-in client")]
async fn signed_in(world: &mut BddWorld) {
    world.sign_in().await;
}

/// Permissions in words.
async fn permissions(world: &BddWorld, text: &str) -> Permissions {
    let mut permissions = Permissions::default();
    let global = &mut permissions.global;
    match text {
        "do nothing" => {}
        "poll messages" => global.poll_messages = true,
        "send messages" => global.send_messages = true,
        "manage streams" => global.manage_streams = true,
        "read users" => global.read_users = true,
        _ => {
            let id = match text.strip_prefix("poll messages of ").expect("permissions") {
                "another stream" => 1_000,
                stream => {
                    let stream = named(stream.trim_matches('"'));
                    let found = world.client().get_stream(&stream).await.unwrap();
                    found.expect("the stream").stream.id
                }
            };
            let flags = StreamFlags {
                poll_messages: true,
                ..StreamFlags::default()
            };
            let topics = BTreeMap::new();
            permissions.streams.insert(id, StreamPermissions { flags, topics });
        }
    }
    permissions
}

#[given(regex = r#"^the user "(.*)" who may (.*)$"#)]
async fn a_user(world: &mut BddWorld, name: String, may: String) {
    let options = UserCreateOptions {
        permissions: Some(permissions(world, &may).await),
        ..UserCreateOptions::default()
    };
    world.client().create_user(&name, PASSWORD, &options).await.unwrap();
}

#[when(regex = r#"^the user "(.*)" with the password "(.*)" is created$"#)]
async fn create_user(world: &mut BddWorld, name: String, password: String) {
    let options = UserCreateOptions::default();
    let created = world.client().create_user(&name, &password, &options).await;
    world.keep(created);
}

#[then(regex = r#"^the user "(.*)" exists and is active$"#)]
async fn user_is_active(world: &mut BddWorld, name: String) {
    world.expect_no_error();
    let found = world.client().get_user(&named(&name)).await.unwrap().expect("the user");
    assert_eq!(found.user.username.as_str(), name);
    assert_eq!(found.user.status, iggy::protocol::reply::user::USER_ACTIVE);
}

#[when(regex = r#"^the user "(.*)" is made inactive$"#)]
async fn make_inactive(world: &mut BddWorld, name: String) {
    let options = UserUpdateOptions {
        status: Some(UserStatus::Inactive),
        ..UserUpdateOptions::default()
    };
    let updated = world.client().update_user(&named(&name), &options).await;
    world.keep(updated);
}

#[when(regex = r#"^the user "(.*)" is deleted$"#)]
async fn delete_user(world: &mut BddWorld, name: String) {
    let deleted = world.client().delete_user(&named(&name)).await;
    world.keep(deleted);
}

#[then(regex = r#"^the user "(.*)" does not exist$"#)]
async fn user_is_missing(world: &mut BddWorld, name: String) {
    world.expect_no_error();
    assert_eq!(world.client().get_user(&named(&name)).await.unwrap(), None);
}

#[when(regex = r#"^the permissions of "(.*)" become (.*)$"#)]
async fn change_permissions(world: &mut BddWorld, name: String, may: String) {
    let permissions = permissions(world, &may).await;
    let changed = world
        .client()
        .update_permissions(&named(&name), Some(permissions))
        .await;
    world.keep(changed);
}

#[when(regex = r#"^the password of "(.*)" is changed to "(.*)"$"#)]
async fn change_password(world: &mut BddWorld, name: String, new: String) {
    let changed = world.client().change_password(&named(&name), PASSWORD, &new).await;
    world.keep(changed);
}

async fn try_sign_in(credentials: &str) -> Result<(), IggyError> {
    let client = BddWorld::connect(credentials).await?;
    client.get_me().await?;
    client.shutdown().await
}

#[then(regex = r#"^signing in as "(.*)" with "(.*)" succeeds$"#)]
async fn sign_in(_: &mut BddWorld, name: String, password: String) {
    try_sign_in(&format!("{name}:{password}")).await.unwrap();
}

#[then(regex = r#"^signing in as "(.*)" with "(.*)" fails with "(\w+)"$"#)]
async fn sign_in_fails(world: &mut BddWorld, name: String, password: String, code: String) {
    world.expect_no_error();
    let error = try_sign_in(&format!("{name}:{password}")).await.unwrap_err();
    assert_eq!(error.code().name(), code, "{error}");
}

/// The client of a user, signed in at first use.
async fn client_of(world: &mut BddWorld, name: &str) -> IggyClient {
    if !world.clients.contains_key(name) {
        let client = BddWorld::connect(&format!("{name}:{PASSWORD}")).await.unwrap();
        world.clients.insert(name.to_owned(), client);
    }
    world.client_of(name)
}

#[given(regex = r#"^"(.*)" is signed in$"#)]
async fn user_signs_in(world: &mut BddWorld, name: String) {
    client_of(world, &name).await;
}

#[when(regex = r#"^"(.*)" polls partition (\d+)$"#)]
async fn user_polls(world: &mut BddWorld, name: String, partition: u32) {
    let client = client_of(world, &name).await;
    let options = PollOptions::default();
    world
        .poll_by(&client, partition, "reader", PollingStrategy::first(), options)
        .await;
}

#[when(regex = r#"^"(.*)" sends (\d+) messages to partition (\d+)$"#)]
async fn user_sends(world: &mut BddWorld, name: String, count: usize, partition: u32) {
    let client = client_of(world, &name).await;
    let messages = world.next_messages(partition, count, 0);
    let sent = world.send_by(&client, partition, messages).await;
    world.keep(sent);
}

#[when(regex = r#"^"(.*)" creates the stream "(.*)"$"#)]
async fn user_creates(world: &mut BddWorld, name: String, stream: String) {
    let client = client_of(world, &name).await;
    let created = client.create_stream(&stream, &StreamCreateOptions::default()).await;
    world.keep(created);
}

#[when(regex = r#"^"(.*)" lists the users$"#)]
async fn user_lists(world: &mut BddWorld, name: String) {
    let client = client_of(world, &name).await;
    let listed = client.get_users().await;
    world.keep(listed);
}

#[given(regex = r#"^the token "(.*)"$"#)]
async fn a_token(world: &mut BddWorld, name: String) {
    let token = world
        .client()
        .create_personal_access_token(&name, IggyExpiry::NeverExpire)
        .await;
    world.tokens.insert(name, token.unwrap());
}

#[when(regex = r#"^the token "(.*)" is created$"#)]
async fn create_token(world: &mut BddWorld, name: String) {
    let created = world
        .client()
        .create_personal_access_token(&name, IggyExpiry::NeverExpire)
        .await;
    world.keep(created);
}

#[when(regex = r#"^the token "(.*)" is deleted$"#)]
async fn delete_token(world: &mut BddWorld, name: String) {
    let deleted = world.client().delete_personal_access_token(&name).await;
    world.keep(deleted);
}

#[then(regex = r"^the tokens are (.*)$")]
async fn tokens_are(world: &mut BddWorld, expected: String) {
    let tokens = world.client().get_personal_access_tokens().await.unwrap();
    let found: Vec<_> = tokens.iter().map(|token| token.name.as_str().to_owned()).collect();
    assert_eq!(found, names(&expected));
}

/// Signs in with a token after having connected, as programs do that hold it apart from the address.
async fn try_token(token: &str) -> Result<(), IggyError> {
    let address = Node::server().await.tcp_address().to_string();
    let client = IggyClient::builder().with_tcp().with_server_address(&address)?.build();
    client.login_with_personal_access_token(token).await?;
    client.get_me().await?;
    client.shutdown().await
}

#[then(regex = r#"^signing in with the token "(.*)" succeeds$"#)]
async fn token_signs_in(world: &mut BddWorld, name: String) {
    try_token(world.tokens[&name].expose()).await.unwrap();
}

#[then(regex = r#"^signing in with the token "(.*)" fails with "(\w+)"$"#)]
async fn token_is_refused(world: &mut BddWorld, name: String, code: String) {
    world.expect_no_error();
    let error = try_token(world.tokens[&name].expose()).await.unwrap_err();
    assert_eq!(error.code().name(), code, "{error}");
}

#[then(regex = r#"^signing in with the token text "(.*)" fails with "(\w+)"$"#)]
async fn text_is_refused(_: &mut BddWorld, text: String, code: String) {
    let error = try_token(&text).await.unwrap_err();
    assert_eq!(error.code().name(), code, "{error}");
}

#[then(regex = r#"^a client whose connection string holds the token "(.*)" can ask who it is$"#)]
async fn token_in_connection_string(world: &mut BddWorld, name: String) {
    try_sign_in(world.tokens[&name].expose()).await.unwrap();
}
