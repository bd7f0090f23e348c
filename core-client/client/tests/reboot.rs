//! What a reboot of the machine does to a promise that only covers a crash of the process.
//!
//! The machine cannot be rebooted here, but a server can be shown another boot: its boot id is read from a file that is
//! bound over the kernel's. Needs the right to mount in a namespace of its own, which every unprivileged user of a stock
//! kernel has.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use iggy::prelude::*;
use iggy_testkit::{TestServer, find_server_binary};

const WRAPPER: &str = r#"#!/bin/sh
exec unshare --user --map-root-user --mount --propagation private \
    sh -c 'mount --bind "$BOOT_FILE" /proc/sys/kernel/random/boot_id && exec "$SERVER" "$@"' sh "$@"
"#;

fn boot(file: &Path, number: u8) {
    std::fs::write(file, format!("{number:08}-0000-0000-0000-000000000000\n")).unwrap();
}

async fn topic(client: &IggyClient, name: &str, durability: Durability) -> Identifier {
    let options = TopicCreateOptions {
        partitions_count: Some(1),
        durability,
        consumer_offset_durability: durability,
        ..TopicCreateOptions::default()
    };
    let stream = Identifier::named("machine").unwrap();
    client.create_topic(&stream, name, &options).await.unwrap();
    Identifier::named(name).unwrap()
}

#[tokio::test]
async fn given_an_unclean_stop_and_a_reboot_when_started_should_begin_a_new_history_where_only_memory_was_promised() {
    let folder = tempfile::tempdir().unwrap();
    let wrapper = folder.path().join("server");
    std::fs::write(&wrapper, WRAPPER).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let boot_file = folder.path().join("boot");
    boot(&boot_file, 1);
    let mut server = TestServer::builder()
        .binary(&wrapper)
        .env("SERVER", find_server_binary().unwrap().display().to_string())
        .env("BOOT_FILE", boot_file.display().to_string())
        .start()
        .await
        .unwrap();
    let client = IggyClient::from_connection_string(&server.connection_string()).unwrap();
    client.connect().await.unwrap();
    let stream = Identifier::named("machine").unwrap();
    client
        .create_stream("machine", &StreamCreateOptions::default())
        .await
        .unwrap();
    let volatile = topic(&client, "volatile", Durability::Replicated).await;
    let durable = topic(&client, "durable", Durability::Persisted).await;
    let consumer = Consumer::new(Identifier::named("reader").unwrap());
    let mut positions = Vec::new();
    for name in [&volatile, &durable] {
        let messages = [IggyMessage::new("one").unwrap(), IggyMessage::new("two").unwrap()];
        let first = Partitioning::partition_id(0);
        client.send_messages(&stream, name, &first, &messages).await.unwrap();
        let strategy = PollingStrategy::first();
        let polled = client
            .poll_messages(&stream, name, 0, &consumer, &strategy, PollOptions::default())
            .await
            .unwrap();
        assert_eq!(polled.messages.len(), 2);
        positions.push(polled.continuation());
    }

    // The same boot forgets nothing, so nothing is suspected.
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    let options = PollOptions::default;
    client
        .poll_messages(&stream, &volatile, 0, &consumer, &positions[0], options())
        .await
        .unwrap();

    server.kill().await.unwrap();
    boot(&boot_file, 2);
    server.restart().await.unwrap();
    let old = client
        .poll_messages(&stream, &volatile, 0, &consumer, &positions[0], options())
        .await;
    assert_eq!(old.unwrap_err().code(), ErrorCode::HistoryUnavailable);
    server.logged("acknowledged messages may be lost").await.unwrap();
    // What was persisted is not in doubt.
    client
        .poll_messages(&stream, &durable, 0, &consumer, &positions[1], options())
        .await
        .unwrap();
    // The new history works, and a stop in order puts nothing in doubt.
    let fresh = PollingStrategy::first();
    let polled = client
        .poll_messages(&stream, &volatile, 0, &consumer, &fresh, options())
        .await
        .unwrap();
    server.stop().await.unwrap();
    boot(&boot_file, 3);
    server.restart().await.unwrap();
    let again = client
        .poll_messages(&stream, &volatile, 0, &consumer, &polled.continuation(), options())
        .await;
    assert!(again.unwrap().messages.is_empty());
    client.shutdown().await.unwrap();
}
