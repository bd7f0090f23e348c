//! Users, tokens, restarts and TLS.

use iggy::prelude::*;
use iggy_testkit::TestServer;

use crate::{connected, named, read_all, texts, with_topic};

#[tokio::test]
async fn given_a_restarted_server_when_sending_on_should_reconnect_and_keep_everything() {
    let mut server = TestServer::start().await.unwrap();
    let client = connected(&server).await;
    let (stream, topic) = with_topic(&client, 1).await;
    let to = Partitioning::partition_id(0);
    client
        .send_messages(&stream, &topic, &to, &texts("before", 10))
        .await
        .unwrap();
    server.restart().await.unwrap();
    client
        .send_messages(&stream, &topic, &to, &texts("after", 10))
        .await
        .unwrap();
    let messages = read_all(&client, &stream, &topic, 0).await;
    let offsets: Vec<_> = messages.iter().map(|message| message.header.offset).collect();
    assert_eq!(offsets, (0..20).collect::<Vec<_>>());
    assert_eq!(messages[10].payload_as_string().unwrap(), "after-0");
}

#[tokio::test]
async fn given_users_and_tokens_when_signing_in_should_follow_their_permissions() {
    let server = TestServer::start().await.unwrap();
    let root = connected(&server).await;
    root.create_stream("orders", &StreamCreateOptions::default())
        .await
        .unwrap();
    let permissions = Permissions {
        global: GlobalPermissions {
            read_streams: true,
            ..GlobalPermissions::default()
        },
        ..Permissions::default()
    };
    let options = UserCreateOptions {
        permissions: Some(permissions),
        ..UserCreateOptions::default()
    };
    root.create_user("alice", "secret", &options).await.unwrap();

    let alice = IggyClient::builder()
        .with_server_address(&server.tcp_address().to_string())
        .unwrap()
        .build();
    let error = alice.login_user("alice", "wrong").await.unwrap_err();
    assert_eq!(
        (error.code(), error.class()),
        (ErrorCode::InvalidCredentials, ErrorClass::Authentication)
    );
    alice.login_user("alice", "secret").await.unwrap();
    assert_eq!(alice.get_streams().await.unwrap().len(), 1);
    let error = alice
        .create_stream("forbidden", &StreamCreateOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.class()),
        (ErrorCode::Unauthorized, ErrorClass::Permission)
    );
    let token = alice
        .create_personal_access_token("ci-token", IggyExpiry::NeverExpire)
        .await
        .unwrap();
    assert_eq!(alice.get_personal_access_tokens().await.unwrap().len(), 1);
    alice
        .change_password(&named("alice"), "secret", "another")
        .await
        .unwrap();
    alice.logout_user().await.unwrap();
    assert_eq!(
        alice.get_streams().await.unwrap_err().code(),
        ErrorCode::Unauthenticated
    );
    alice.ping().await.unwrap();
    alice.login_with_personal_access_token(token.expose()).await.unwrap();
    alice.delete_personal_access_token("ci-token").await.unwrap();
    alice.login_user("alice", "another").await.unwrap();
    root.delete_user(&named("alice")).await.unwrap();
}

#[tokio::test]
async fn given_tls_when_connecting_should_trust_what_it_was_told_to_and_nothing_else() {
    let server = TestServer::builder()
        .config("tcp.tls.enabled", "true")
        .config("tcp.tls.self_signed", "true")
        .start()
        .await
        .unwrap();
    let certificate = server.data_directory().join("runtime/self_signed.pem");
    let text = |options: &str| format!("{}?{options}", server.connection_string());

    let trusting = format!("tls=true&tls_ca_file={}", certificate.display());
    let client = IggyClient::from_connection_string(&text(&trusting)).unwrap();
    client.connect().await.unwrap();
    assert!(client.get_streams().await.unwrap().is_empty());

    for (options, code) in [
        ("tls=true".to_owned(), ErrorCode::InvalidTlsCertificate),
        (
            format!("{trusting}&tls_domain=example.org"),
            ErrorCode::InvalidTlsCertificate,
        ),
        (
            "tls=true&tls_ca_file=/absent.pem".to_owned(),
            ErrorCode::InvalidTlsCertificatePath,
        ),
        (format!("{trusting}&tls_domain=no domain"), ErrorCode::InvalidTlsDomain),
    ] {
        let client = IggyClient::from_connection_string(&text(&options)).unwrap();
        assert_eq!(client.connect().await.unwrap_err().code(), code, "{options}");
    }

    let unchecked = TlsConfig {
        validate_certificate: false,
        ..TlsConfig::default()
    };
    let builder = IggyClient::builder_from_connection_string(&server.connection_string()).unwrap();
    builder.with_tls(unchecked).build().connect().await.unwrap();
}
