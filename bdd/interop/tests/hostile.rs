//! Peers that lie, flood, babble or say nothing. The server answers with an error or closes the connection, keeps its
//! memory, and other clients notice nothing.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use iggy::prelude::*;
use interop::{World, consumer, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HEADER: usize = 256;
const LARGEST_FRAME: u32 = 64 << 20;
/// Largest frame the server takes from a peer before its first login.
const STRANGER_FRAME_MAX: u32 = 64 << 10;
const PING: u32 = 1;
const NON_REPLICATED: u8 = 2;
const REGISTER: u8 = 1;

/// A request header with the size that the peer claims; see wire 2.1 and 2.2 for the places.
fn header(operation: u8, code: u32, claimed_size: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[48..52].copy_from_slice(&claimed_size.to_le_bytes());
    header[60] = 5;
    header[128..144].copy_from_slice(&0x1234_u128.to_le_bytes());
    header[176] = operation;
    header[196..200].copy_from_slice(&code.to_le_bytes());
    header
}

fn ping() -> [u8; HEADER] {
    header(NON_REPLICATED, PING, 256)
}

/// Whether the server has ended the connection, having read and thrown away what it still had to say.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    match soon(stream.read_to_end(&mut rest)).await {
        Ok(_) => true,
        Err(error) => matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
    }
}

/// A server that closes early makes later writes fail; that is the expected end, not a fault of the test.
async fn pour(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = soon(stream.write_all(bytes)).await;
}

async fn connected(address: SocketAddr) -> TcpStream {
    soon(TcpStream::connect(address)).await.unwrap()
}

async fn unharmed(world: &World) {
    soon(world.client.ping()).await.unwrap();
    soon(world.send(0, &["still here"])).await;
    let polled = soon(world.poll(0, &consumer("reader"), &PollingStrategy::last(), 1))
        .await
        .unwrap();
    assert_eq!(polled.messages.len(), 1);
}

/// Kilobytes that the server holds in memory.
fn resident(world: &World) -> u64 {
    let id = world.server.process_id().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Small and repeatable; its seed is printed by the test that uses it.
struct Babble(u64);

impl Babble {
    fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.number().to_le_bytes()[3]).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_lying_length_should_close_only_that_connection() {
    let world = World::with_topic(1).await;
    for size in [0, 1, 255, LARGEST_FRAME + 1, LARGEST_FRAME + 257, u32::MAX] {
        let mut stream = connected(world.server.tcp_address()).await;
        pour(&mut stream, &header(NON_REPLICATED, PING, size)).await;
        assert!(is_closed(&mut stream).await, "a frame of {size} bytes was waited for");
    }
    unharmed(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_floods_of_one_byte_should_close_the_connection() {
    let world = World::with_topic(1).await;
    for byte in [0, 0xff, b'A'] {
        let mut stream = connected(world.server.tcp_address()).await;
        pour(&mut stream, &vec![byte; 4 << 20]).await;
        assert!(is_closed(&mut stream).await, "a flood of {byte:#04x} was read");
    }
    unharmed(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_claims_of_large_frames_should_not_take_memory_for_them() {
    let world = World::with_topic(1).await;
    unharmed(&world).await;
    let before = resident(&world);
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = connected(world.server.tcp_address()).await;
        pour(&mut stream, &header(NON_REPLICATED, PING, LARGEST_FRAME)).await;
        streams.push(stream);
    }
    unharmed(&world).await;
    let grown = resident(&world).saturating_sub(before);
    assert!(grown < 200 * 1024, "200 claims of 64 MiB took {grown} KiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_large_frame_of_a_peer_that_never_signed_in_should_close_before_it_is_read() {
    let world = World::with_topic(1).await;
    let mut stream = connected(world.server.tcp_address()).await;
    pour(&mut stream, &header(NON_REPLICATED, PING, STRANGER_FRAME_MAX + 1)).await;
    assert!(is_closed(&mut stream).await, "a stranger's large frame was waited for");
    unharmed(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_ten_thousand_half_open_connections_should_serve_the_others() {
    const CONNECTIONS: usize = 10_000;
    let world = World::with_topic(1).await;
    unharmed(&world).await;
    let before = resident(&world);
    let half = &ping()[..HEADER / 2];
    let mut streams = Vec::new();
    for number in 0..CONNECTIONS {
        match TcpStream::connect(world.server.tcp_address()).await {
            Ok(mut stream) => {
                pour(&mut stream, half).await;
                streams.push(stream);
            }
            // A server may refuse connections beyond its bound; this machine's own limit is no subject of the test.
            Err(error) => {
                assert!(number > 1_000, "connection {number}: {error}");
                break;
            }
        }
    }
    unharmed(&world).await;
    let grown = resident(&world).saturating_sub(before);
    assert!(
        grown < 512 * 1024,
        "{} half-open connections took {grown} KiB",
        streams.len()
    );
    drop(streams);
    unharmed(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_babble_before_a_login_should_refuse_or_close() {
    let world = World::with_topic(1).await;
    let seed = 0x9e37_79b9_7f4a_7c15;
    println!("seed {seed:#x}");
    let mut babble = Babble(seed);
    for round in 0..200 {
        let mut stream = connected(world.server.tcp_address()).await;
        let length = usize::try_from(babble.number() % 700).unwrap();
        if round % 2 == 0 {
            let bytes = babble.bytes(length);
            pour(&mut stream, &bytes).await;
        } else {
            let operation = if round % 4 == 1 { REGISTER } else { NON_REPLICATED };
            let code = u32::try_from(babble.number() % 700).unwrap();
            let size = u32::try_from(HEADER + length).unwrap();
            pour(&mut stream, &header(operation, code, size)).await;
            let body = babble.bytes(length);
            pour(&mut stream, &body).await;
        }
        stream.shutdown().await.ok();
        assert!(is_closed(&mut stream).await, "round {round}");
    }
    unharmed(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_random_bodies_of_every_command_should_refuse_them_and_go_on() {
    let world = World::with_topic(1).await;
    let client = world.another_client().await;
    let seed = 0x2545_f491_4f6c_dd1d;
    println!("seed {seed:#x}");
    let mut babble = Babble(seed);
    // The codes of wire 3.2 that a raw request may carry and that do no lasting harm when the body happens to be valid.
    for code in [
        10, 11, 12, 13, 16, 17, 20, 21, 22, 31, 32, 41, 100, 101, 105, 106, 120, 121, 122, 200, 201, 300, 301,
    ] {
        for _ in 0..4 {
            let length = usize::try_from(babble.number() % 300).unwrap();
            let body = Bytes::from(babble.bytes(length));
            let deadline = std::time::Instant::now() + Duration::from_secs(5);
            // Some of these bodies are valid: commands without a body may tolerate one. The outcome is free, a hang or
            // a crash is not.
            let _ = soon(client.send_binary_request_with_deadline(code, body, deadline)).await;
        }
    }
    soon(client.ping()).await.unwrap();
    unharmed(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_batch_above_the_limit_should_refuse_it_and_keep_the_client() {
    let world = World::with_topic(1).await;
    let client = world.another_client().await;
    let half = vec![b'x'; 34 << 20];
    let mut messages: Vec<_> = (0..2).map(|_| IggyMessage::from(half.clone())).collect();
    let partitioning = Partitioning::partition_id(0);
    let sent = soon(client.send_messages(&world.stream, &world.topic, &partitioning, &mut messages)).await;
    assert!(sent.is_err(), "a batch of 68 MiB was taken");
    unharmed(&world).await;
    assert_eq!(world.everything(0).await, ["still here"]);
}
