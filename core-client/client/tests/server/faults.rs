//! A proxy between client and server that cuts connections, before a request reaches the server or after it did.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use iggy::prelude::*;
use iggy_testkit::TestServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Duration;

use crate::{named, read_all};

/// A small generator, so that a failure is reproduced by its seed alone.
struct Mix(u64);

impl Mix {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

struct Proxy {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    /// Forwards to `server`. Each connection lives for a drawn number of bytes in each direction, then both ends see it
    /// break, wherever a frame happens to be.
    async fn start(server: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicUsize::new(0));
        tokio::spawn({
            let cuts = cuts.clone();
            async move {
                let mut mix = Mix(seed);
                while let Ok((client, _)) = listener.accept().await {
                    let Ok(upstream) = TcpStream::connect(server).await else {
                        continue;
                    };
                    let (there, back) = (1500 + mix.below(8000), 1500 + mix.below(8000));
                    tokio::spawn(forward(client, upstream, there, back, cuts.clone()));
                }
            }
        });
        Self { address, cuts }
    }
}

async fn forward(client: TcpStream, server: TcpStream, there: u64, back: u64, cuts: Arc<AtomicUsize>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy(from_client, to_server, there) => {}
        () = copy(from_server, to_client, back) => {}
    }
    cuts.fetch_add(1, Ordering::Relaxed);
}

async fn copy(mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin, mut left: u64) {
    let mut buffer = vec![0; 4096];
    while left > 0 {
        let limit = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match from.read(&mut buffer[..limit]).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                left -= count as u64;
                if to.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn through(proxy: &Proxy) -> IggyClient {
    let text = format!("iggy://iggy:iggy@{}?reconnection_interval=1ms", proxy.address);
    let client = IggyClient::from_connection_string(&text).unwrap();
    client.connect().await.unwrap();
    client
}

#[tokio::test]
async fn given_connections_that_break_anywhere_when_writing_should_apply_each_write_once() {
    for seed in 0..4 {
        let server = TestServer::start().await.unwrap();
        let proxy = Proxy::start(server.tcp_address(), seed).await;
        let client = through(&proxy).await;
        let (stream, topic) = (named("orders"), named("created"));
        client
            .create_stream("orders", &StreamCreateOptions::default())
            .await
            .unwrap();
        client
            .create_topic(&stream, "created", &TopicCreateOptions::default())
            .await
            .unwrap();
        for index in 0..150_u64 {
            let message = IggyMessage::new(index.to_string()).unwrap();
            let sent = client
                .send_messages(&stream, &topic, &Partitioning::partition_id(0), &[message])
                .await;
            let sent = sent.unwrap_or_else(|error| panic!("seed {seed}, message {index}: {error}"));
            assert_eq!(
                sent[0].base_offset, index,
                "seed {seed}: a resend gets its first result"
            );
            if index % 10 == 0 {
                let group = format!("group-{index}");
                let created = client.create_consumer_group(&stream, &topic, &group).await;
                created.unwrap_or_else(|error| panic!("seed {seed}, {group}: {error}"));
            }
        }
        assert!(
            proxy.cuts.load(Ordering::Relaxed) > 10,
            "seed {seed}: connections broke"
        );
        assert_eq!(client.uncertain_operations(), [], "seed {seed}");
        let direct = IggyClient::from_connection_string(&server.connection_string()).unwrap();
        direct.connect().await.unwrap();
        let texts: Vec<_> = read_all(&direct, &stream, &topic, 0)
            .await
            .iter()
            .map(|message| message.payload_as_string().unwrap().to_owned())
            .collect();
        assert_eq!(
            texts,
            (0..150).map(|index| index.to_string()).collect::<Vec<_>>(),
            "seed {seed}"
        );
        assert_eq!(
            direct.get_consumer_groups(&stream, &topic).await.unwrap().len(),
            15,
            "seed {seed}"
        );
    }
}

#[tokio::test]
async fn given_connections_that_break_anywhere_when_consuming_should_hand_out_every_message_in_order() {
    let server = TestServer::start().await.unwrap();
    let direct = IggyClient::from_connection_string(&server.connection_string()).unwrap();
    direct.connect().await.unwrap();
    let producer = direct.producer("orders", "created").unwrap().build();
    producer.init().await.unwrap();
    let messages = (0..300)
        .map(|index| IggyMessage::new(index.to_string()).unwrap())
        .collect();
    producer.send(messages).await.unwrap();

    let proxy = Proxy::start(server.tcp_address(), 9).await;
    let client = through(&proxy).await;
    let options = PollOptions {
        count: 10,
        max_bytes: 1024,
        ..PollOptions::wait(IggyDuration::from_millis(100))
    };
    let builder = client
        .consumer("audit", "orders", "created")
        .unwrap()
        .partitions([0])
        .poll_options(options);
    let mut consumer = builder
        .polling_strategy(PollingStrategy::first())
        .polling_retry_interval(IggyDuration::from_millis(1))
        .build();
    consumer.init().await.unwrap();
    let mut next = 0;
    let all = async {
        while next < 300 {
            let received = consumer.next().await.expect("the partition does not stop").unwrap();
            assert_eq!(received.message.header.offset, next);
            consumer.commit(received.checkpoint()).await.unwrap();
            next += 1;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), all)
        .await
        .expect("the consumer goes on");
    assert!(proxy.cuts.load(Ordering::Relaxed) > 10, "connections broke");
    let stored = direct
        .get_consumer_offset(&Consumer::new(named("audit")), &named("orders"), &named("created"), 0)
        .await;
    assert_eq!(stored.unwrap().unwrap().stored_offset, 299);
}
