//! Whom a server lets in, and when: nobody before it can tell who they are, and never so many that partitions go without
//! the files they need.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use iggy::prelude::*;
use iggy_protocol::header::RequestHeader;
use iggy_protocol::operation::Operation;
use iggy_testkit::{TestServer, find_server_binary};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Against hanging only.
const DEADLINE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn given_a_client_that_waits_for_a_new_server_when_it_starts_should_be_let_in_and_never_refused() {
    // Only a first start makes the root user, and hashing its password takes a while.
    for _ in 0..3 {
        let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = reserved.local_addr().unwrap();
        drop(reserved);
        let server = TestServer::builder().config("tcp.address", address.to_string()).start();
        let string = format!("iggy://iggy:iggy@{address}?reconnection_interval=1ms");
        let client = IggyClient::from_connection_string(&string).unwrap();
        let (server, connected) = timeout(DEADLINE, async { tokio::join!(server, client.connect()) })
            .await
            .unwrap();
        let server = server.unwrap();
        connected.unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
        client.get_me().await.unwrap();
        client.shutdown().await.unwrap();
    }
}

const FILES: usize = 512;
const FLOOD: usize = 600;

#[tokio::test]
async fn given_more_connections_than_files_when_partitions_are_made_should_still_have_files_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let wrapper = folder.path().join("server");
    std::fs::write(
        &wrapper,
        format!("#!/bin/sh\nulimit -n {FILES}\nexec \"$SERVER\" \"$@\"\n"),
    )
    .unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = TestServer::builder()
        .binary(&wrapper)
        .env("SERVER", find_server_binary().unwrap().display().to_string())
        .start()
        .await
        .unwrap();
    let client = IggyClient::from_connection_string(&server.connection_string()).unwrap();
    client.connect().await.unwrap();

    let mut ping = RequestHeader::new(Operation::NonReplicated, 0);
    ping.client = 7.into();
    ping.code = 1.into();
    let mut flood = Vec::new();
    let mut turned_away = 0;
    for _ in 0..FLOOD {
        let mut stream = TcpStream::connect(server.tcp_address()).await.unwrap();
        let _ = stream.write_all(ping.as_array()).await;
        // An answer or the end: either way the server is done with it.
        let answer = timeout(DEADLINE, stream.read(&mut [0; 1]))
            .await
            .expect("a connection is taken or turned away");
        turned_away += usize::from(!matches!(answer, Ok(1)));
        flood.push(stream);
    }
    assert_eq!(turned_away, FLOOD + 1 - FILES / 4 * 3, "{}", server.log());

    let stream = Identifier::named("flooded").unwrap();
    client
        .create_stream("flooded", &StreamCreateOptions::default())
        .await
        .unwrap();
    let options = TopicCreateOptions {
        partitions_count: Some(8),
        ..TopicCreateOptions::default()
    };
    client.create_topic(&stream, "topic", &options).await.unwrap();
    let topic = Identifier::named("topic").unwrap();
    for partition in 0..8 {
        let target = Partitioning::partition_id(partition);
        let messages = [IggyMessage::new("written").unwrap()];
        client.send_messages(&stream, &topic, &target, &messages).await.unwrap();
    }
    client.shutdown().await.unwrap();
}
