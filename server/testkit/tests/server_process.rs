//! The test kit against small shell programs that play a server, so that every failure of a server can be made.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use iggy_testkit::{TestServer, TestServerBuilder};
use tempfile::TempDir;

fn server_that(script: &str) -> (TempDir, TestServerBuilder) {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("server");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    (folder, TestServer::builder().binary(path))
}

#[tokio::test]
async fn given_a_ready_server_when_stopped_should_have_received_sigterm() {
    let (_folder, builder) =
        server_that(r#"trap 'echo bye; exit 0' TERM; echo "ready tcp=127.0.0.1:4100"; while :; do sleep 0.05; done"#);
    let mut server = builder.start().await.unwrap();
    assert_eq!(server.tcp_address().port(), 4100);
    server.stop().await.unwrap();
    assert!(server.stop().await.unwrap_err().to_string().contains("does not run"));
}

#[tokio::test]
async fn given_a_restart_should_ask_for_the_same_address_and_directory() {
    let (_folder, builder) = server_that(
        r#"trap 'exit 0' TERM
echo "asked $IGGY_TCP_ADDRESS $1"
[ -e seen ] && echo "second run"
touch "$IGGY_PATH/seen"
echo "ready tcp=127.0.0.1:4177"
while :; do sleep 0.05; done"#,
    );
    let mut server = builder.start().await.unwrap();
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    let log = server.log();
    assert!(
        log.contains("asked 127.0.0.1:0 --with-default-root-credentials"),
        "{log}"
    );
    assert!(log.contains("asked 127.0.0.1:4177"), "{log}");
    assert!(log.contains("second run"), "{log}");
}

#[tokio::test]
async fn given_a_server_that_dies_at_start_should_return_its_log() {
    let (_folder, builder) = server_that("echo 'no such key: tcp.adress' >&2; exit 3");
    let failure = builder.start().await.err().unwrap().to_string();
    assert!(failure.contains("ended before it was ready"), "{failure}");
}

#[tokio::test]
async fn given_a_server_that_never_is_ready_should_give_up_at_the_deadline() {
    let (_folder, builder) = server_that("echo starting; while :; do sleep 0.05; done");
    let failure = builder
        .ready_deadline(Duration::from_millis(200))
        .start()
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(failure.contains("was not ready within 200ms"), "{failure}");
}

#[tokio::test]
async fn given_config_and_environment_should_reach_the_server() {
    let (_folder, builder) = server_that(
        r#"echo "$IGGY_SHARDING_CPU_ALLOCATION $EXTRA $#"; echo "ready tcp=127.0.0.1:1"; exec cat /dev/zero > /dev/null"#,
    );
    let server = builder
        .config("sharding.cpu_allocation", "4")
        .env("EXTRA", "more")
        .without_default_root_credentials()
        .start()
        .await
        .unwrap();
    assert!(server.log().contains("4 more 0"), "{}", server.log());
}
