//! Connecting, signing in and out.

use iggy::prelude::*;
use interop::{World, code_of, consumer, soon, texts};

const UNAUTHENTICATED: u32 = 40;
const INVALID_CREDENTIALS: u32 = 42;
const INVALID_TOKEN: u32 = 53;
const CLIENT_SHUTDOWN: u32 = 63;

#[tokio::test(flavor = "multi_thread")]
async fn given_a_connection_string_when_connecting_should_be_the_root_user() {
    let world = World::start().await;
    let me = world.client.get_me().await.unwrap();
    assert_eq!(me.user_id, Some(0));
    assert_eq!(me.transport.to_lowercase(), "tcp");
    assert_eq!(me.consumer_groups_count, 0);
    world.client.ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn given_no_login_should_answer_only_pings() {
    let world = World::start().await;
    let client = world.anonymous_client().await;
    client.ping().await.unwrap();
    assert_eq!(code_of(client.get_streams().await), UNAUTHENTICATED);
    let identity = client.login_user("iggy", "iggy").await.unwrap();
    assert_eq!(identity.user_id, 0);
    assert!(client.get_streams().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_wrong_credentials_should_refuse_the_connect() {
    let world = World::start().await;
    for (username, password) in [("iggy", "wrong"), ("nobody", "iggy")] {
        assert_eq!(
            world.client_of(username, password).await.err().unwrap().as_code(),
            INVALID_CREDENTIALS
        );
    }
    assert_eq!(
        world.client_by_token("deadbeef").await.err().unwrap().as_code(),
        INVALID_TOKEN
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_logout_should_refuse_until_the_next_login_on_the_same_client() {
    let world = World::start().await;
    world.client.logout_user().await.unwrap();
    assert_eq!(code_of(world.client.get_streams().await), UNAUTHENTICATED);
    world.client.login_user("iggy", "iggy").await.unwrap();
    assert!(world.client.get_streams().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_second_login_should_replace_the_session_on_the_same_connection() {
    let world = World::start().await;
    let options = UserCreateOptions::default();
    let bob = world
        .client
        .create_user("bob", "bobs-secret", UserStatus::Active, None, &options)
        .await
        .unwrap();
    assert_eq!(
        world.client.login_user("bob", "bobs-secret").await.unwrap().user_id,
        bob.id
    );
    assert_eq!(world.client.get_me().await.unwrap().user_id, Some(bob.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_token_should_sign_in_by_connection_string_and_by_call() {
    let world = World::start().await;
    let created = world
        .client
        .create_personal_access_token("laptop", PersonalAccessTokenExpiry::NeverExpire)
        .await
        .unwrap();
    let by_string = world.client_by_token(&created.token).await.unwrap();
    assert_eq!(by_string.get_me().await.unwrap().user_id, Some(0));
    let by_call = world.anonymous_client().await;
    assert_eq!(
        by_call
            .login_with_personal_access_token(&created.token)
            .await
            .unwrap()
            .user_id,
        0
    );
    assert_eq!(by_call.get_me().await.unwrap().user_id, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_disconnect_should_serve_the_same_client_after_the_next_connect() {
    let world = World::with_topic(1).await;
    world.send(0, &["before"]).await;
    world.client.disconnect().await.unwrap();
    soon(world.client.connect()).await.unwrap();
    let polled = world
        .poll(0, &consumer("reader"), &PollingStrategy::first(), 10)
        .await
        .unwrap();
    assert_eq!(polled.messages.len(), 1);
    assert_eq!(world.send(0, &["after"]).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_shutdown_should_refuse_every_later_call() {
    let world = World::with_topic(1).await;
    soon(world.client.shutdown()).await.unwrap();
    assert_eq!(code_of(world.client.get_streams().await), CLIENT_SHUTDOWN);
    let partitioning = Partitioning::partition_id(0);
    let sent = world
        .client
        .send_messages(&world.stream, &world.topic, &partitioning, &mut texts(&["late"]))
        .await;
    assert_eq!(code_of(sent), CLIENT_SHUTDOWN);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_tls_with_a_certificate_made_at_start_should_serve_whoever_trusts_it() {
    let builder = iggy_testkit::TestServer::builder().config("tcp.tls.enabled", "true");
    let server = builder.start().await.unwrap();
    let certificate = server.data_directory().join("runtime/self_signed.pem");
    let trusting = format!(
        "iggy://iggy:iggy@{}?tls=true&tls_domain=localhost&tls_ca_file={}",
        server.tcp_address(),
        certificate.display()
    );
    let client = IggyClient::from_connection_string(&trusting).unwrap();
    soon(client.connect()).await.unwrap();
    client
        .create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap();
    assert_eq!(client.get_streams().await.unwrap().len(), 1);
}
