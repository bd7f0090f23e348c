//! Nodes that link over real sockets.

use iggy_consensus::GroupId;
use iggy_consensus::message::{Kind, Message};
use iggy_links::handshake::{self, Channel, Facts, Release};
use iggy_links::{Identity, Inbound, Limits, LinkTls, Links, LinksConfig, PeerStatus, Preamble, Secrets};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Everything here happens at once, or never.
const PATIENCE: Duration = Duration::from_secs(30);
const SHARDS: usize = 2;

const LIMITS: Limits = Limits {
    connections_per_peer: 2,
    batch_max: 256,
    message_bytes_max: 1 << 20,
    queue_max: 4096,
    queue_bytes_max: 8 << 20,
    reconnect_period: Duration::from_millis(100),
    close_grace: Duration::from_secs(5),
    handshake_grace: Duration::from_secs(5),
    read_buffer: 32 << 10,
    pulse: Duration::from_millis(20),
    silence_max: Duration::from_hours(1),
};

struct Node {
    links: Arc<Links>,
    lanes: Vec<JoinHandle<()>>,
    shards: Vec<mpsc::Receiver<Message>>,
    /// Incarnation of each node that was heard.
    heard: Arc<[AtomicU64; 3]>,
}

/// What makes a node of a test another one than usual.
#[derive(Clone)]
struct Wish {
    identity: Identity,
    limits: Limits,
    secrets: Option<Secrets>,
    tls: Option<LinkTls>,
}

fn wish(replica: u8) -> Wish {
    Wish {
        identity: Identity {
            cluster: 7,
            replica,
            incarnation: 1,
        },
        limits: LIMITS,
        secrets: None,
        tls: None,
    }
}

fn start(wish: Wish, addresses: &[SocketAddr], listener: TcpListener) -> Node {
    let (senders, shards): (Vec<_>, Vec<_>) = (0..SHARDS).map(|_| mpsc::channel(1024)).unzip();
    let heard: Arc<[AtomicU64; 3]> = Arc::default();
    let noted = Arc::clone(&heard);
    let inbound = Inbound {
        shards: senders,
        shard_of: Arc::new(|group| group.namespace as usize % SHARDS),
        heard: Arc::new(move |node, incarnation| {
            noted[usize::from(node)].fetch_max(incarnation, Ordering::SeqCst);
        }),
    };
    let config = LinksConfig {
        identity: wish.identity,
        addresses: addresses.to_vec(),
        release: "0.1.0".to_owned(),
        secrets: wish.secrets,
        tls: wish.tls,
        limits: wish.limits,
    };
    let (links, lanes) = Links::new(config, inbound);
    let mut listener = Some(listener);
    let run = |lane: iggy_links::Lane| {
        let listener = listener.take();
        tokio::spawn(async move { lane.run(listener).await.unwrap() })
    };
    Node {
        links,
        lanes: lanes.into_iter().map(run).collect(),
        shards,
        heard,
    }
}

fn listeners(count: usize) -> (Vec<SocketAddr>, Vec<TcpListener>) {
    let bound = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    bound.map(|listener| (listener.local_addr().unwrap(), listener)).unzip()
}

fn pair(one: Wish, other: Wish) -> (Node, Node) {
    let (addresses, mut listeners) = listeners(2);
    let second = listeners.remove(1);
    let first = listeners.remove(0);
    (start(one, &addresses, first), start(other, &addresses, second))
}

impl Node {
    fn message(&self, namespace: u64, op: u64) -> Message {
        self.says(namespace, Kind::PrepareOk { op, checksum: 1 })
    }

    fn says(&self, namespace: u64, kind: Kind) -> Message {
        let status = self.links.peers();
        let others: Vec<u8> = status.iter().map(|peer| peer.replica).collect();
        let own = (0..3).find(|number| !others.contains(number)).unwrap();
        Message {
            cluster: 7,
            group: GroupId {
                namespace,
                incarnation: 1,
            },
            from: own,
            incarnation: 1,
            view: 0,
            kind,
        }
    }

    fn peer(&self, replica: u8) -> PeerStatus {
        let peers = self.links.peers();
        peers.into_iter().find(|peer| peer.replica == replica).unwrap()
    }

    /// Waits for something to be true of the links to a peer.
    async fn until(&self, replica: u8, what: impl Fn(&PeerStatus) -> bool) {
        let wait = async {
            while !what(&self.peer(replica)) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("never true of {:?}", self.peer(replica)));
    }

    async fn linked(&self, replica: u8) {
        self.until(replica, |peer| peer.links_up == peer.links).await;
    }

    async fn next(&mut self, shard: usize) -> Message {
        let next = tokio::time::timeout(PATIENCE, self.shards[shard].recv()).await;
        next.expect("a message was due").unwrap()
    }

    async fn stopped(self) {
        self.links.stop();
        for lane in self.lanes {
            tokio::time::timeout(PATIENCE, lane).await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn given_two_nodes_when_one_speaks_should_be_heard_in_order_by_the_shard_of_each_group() {
    let (one, mut other) = pair(wish(0), wish(1));
    one.linked(1).await;
    other.linked(0).await;
    for op in 1..=500 {
        for namespace in 0..4 {
            one.links.send(1, &one.message(namespace, op));
        }
    }
    for shard in 0..SHARDS {
        let mut newest = std::collections::BTreeMap::new();
        for _ in 0..1000 {
            let message = other.next(shard).await;
            assert_eq!(message.group.namespace as usize % SHARDS, shard);
            let Kind::PrepareOk { op, .. } = message.kind else {
                panic!("{message:?}")
            };
            let before = newest.insert(message.group, op).unwrap_or(0);
            assert_eq!(op, before + 1);
        }
    }
    assert_eq!(one.peer(1).queued, 0);
    assert_eq!(one.peer(1).dropped, 0);
    assert!(other.peer(0).received < 2100, "many frames go in one write, none twice");
    // And back.
    other.links.send(0, &other.message(1, 9));
    let mut one = one;
    assert_eq!(one.next(1).await.from, 1);
    one.stopped().await;
    other.stopped().await;
}

#[tokio::test]
async fn given_heartbeats_of_many_groups_when_sent_should_share_frames_and_arrive() {
    let (one, mut other) = pair(wish(0), wish(1));
    one.linked(1).await;
    let before = one.peer(1).sent;
    for namespace in 0..500 {
        let kind = Kind::Commit { commit: 3, last: false };
        one.links.send(1, &one.says(namespace * 2, kind));
    }
    for _ in 0..500 {
        let message = other.next(0).await;
        assert_eq!(message.kind, Kind::Commit { commit: 3, last: false });
    }
    let frames = one.peer(1).sent - before;
    assert!(frames < 250, "{frames} frames for 500 heartbeats");
}

#[tokio::test]
async fn given_nodes_without_a_word_when_linked_should_still_hear_that_the_others_live() {
    let mut restarted = wish(1);
    restarted.identity.incarnation = 42;
    let (one, other) = pair(wish(0), restarted);
    let heard = async {
        while one.heard[1].load(Ordering::SeqCst) != 42 || other.heard[0].load(Ordering::SeqCst) != 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, heard).await.unwrap();
    one.until(1, |peer| peer.incarnation == 42).await;
}

#[tokio::test]
async fn given_another_number_of_links_when_dialed_should_never_link_and_say_so_on_both_sides() {
    let mut more = wish(0);
    more.limits.connections_per_peer = 3;
    let (one, other) = pair(more, wish(1));
    let told = |peer: &PeerStatus| {
        let trouble = peer.trouble.as_deref().unwrap_or_default();
        trouble.contains("replica_connections_per_peer")
    };
    one.until(1, told).await;
    other.until(0, told).await;
    assert_eq!((one.peer(1).links_up, other.peer(0).links_up), (0, 0));
    one.links.send(1, &one.message(1, 1));
    assert_eq!(one.peer(1).dropped, 1);
}

#[tokio::test]
async fn given_a_node_that_restarts_when_it_is_back_should_be_linked_again() {
    let (addresses, mut listeners) = listeners(2);
    let (second, first) = (listeners.remove(1), listeners.remove(0));
    let again = second.try_clone().unwrap();
    let one = start(wish(0), &addresses, first);
    let other = start(wish(1), &addresses, second);
    one.linked(1).await;
    other.stopped().await;
    one.until(1, |peer| peer.links_up == 0).await;
    one.links.send(1, &one.message(1, 1));
    assert_eq!(one.peer(1).dropped, 1, "nothing waits for a link that may never come");
    let mut back = wish(1);
    back.identity.incarnation = 2;
    let mut other = start(back, &addresses, again);
    one.linked(1).await;
    one.links.send(1, &one.message(1, 2));
    assert_eq!(other.next(1).await.kind, Kind::PrepareOk { op: 2, checksum: 1 });
    assert_eq!(one.peer(1).incarnation, 2);
}

#[tokio::test]
async fn given_a_shard_that_takes_nothing_when_flooded_should_drop_beyond_the_bounds_and_never_wait() {
    let (one, mut other) = pair(wish(0), wish(1));
    one.linked(1).await;
    other.linked(0).await;
    let body = bytes_of(64 << 10);
    let mut sent = 0_u64;
    while one.peer(1).dropped == 0 {
        let kind = Kind::Batches {
            offset: sent,
            same: Vec::new(),
            bytes: body.clone(),
        };
        one.links.send(1, &one.says(1, kind));
        sent += 1;
        assert!(sent < 1_000_000, "it never says no");
    }
    assert!(one.peer(1).queued_bytes <= LIMITS.queue_bytes_max as u64);
    // What was taken arrives once there is room.
    for offset in 0..sent - 1 {
        let message = other.next(1).await;
        assert!(
            matches!(message.kind, Kind::Batches { offset: found, .. } if found == offset),
            "{offset}"
        );
    }
    one.until(1, |peer| peer.queued == 0 && peer.queued_bytes == 0).await;
}

fn bytes_of(length: usize) -> bytes::Bytes {
    bytes::Bytes::from(vec![5; length])
}

#[tokio::test]
async fn given_a_message_larger_than_allowed_when_sent_should_be_dropped_and_the_link_stay() {
    let (one, mut other) = pair(wish(0), wish(1));
    one.linked(1).await;
    let kind = Kind::Batches {
        offset: 0,
        same: Vec::new(),
        bytes: bytes_of(1 << 20),
    };
    one.links.send(1, &one.says(1, kind));
    assert_eq!(one.peer(1).dropped, 1);
    one.links.send(1, &one.message(1, 1));
    assert!(matches!(other.next(1).await.kind, Kind::PrepareOk { .. }));
}

#[tokio::test]
async fn given_a_message_in_the_name_of_another_node_when_received_should_not_be_believed() {
    let (one, mut other) = pair(wish(0), wish(1));
    one.linked(1).await;
    other.linked(0).await;
    for forged in [
        Message {
            from: 1,
            ..one.message(1, 1)
        },
        Message {
            cluster: 8,
            ..one.message(1, 2)
        },
    ] {
        one.links.send(1, &forged);
    }
    one.links.send(1, &one.message(1, 3));
    assert_eq!(other.next(1).await.kind, Kind::PrepareOk { op: 3, checksum: 1 });
    assert_eq!(other.peer(0).refused, 2);
}

#[tokio::test]
async fn given_strangers_at_the_door_when_nodes_link_should_not_be_disturbed() {
    let (addresses, mut listeners) = listeners(2);
    let (second, first) = (listeners.remove(1), listeners.remove(0));
    let other = start(wish(1), &addresses, second);
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(addresses[1]).await.unwrap());
    }
    let mut loud = TcpStream::connect(addresses[1]).await.unwrap();
    loud.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    // Closed, with nothing said.
    let _ = tokio::time::timeout(PATIENCE, loud.read_to_end(&mut rest))
        .await
        .unwrap();
    assert!(rest.is_empty());
    let one = start(wish(0), &addresses, first);
    one.linked(1).await;
    other.linked(0).await;
}

#[tokio::test]
async fn given_messages_that_wait_when_a_node_stops_should_still_be_sent() {
    let (one, mut other) = pair(wish(0), wish(1));
    one.linked(1).await;
    other.linked(0).await;
    // More than sockets hold: most of it is still here when the node stops.
    let body = bytes_of(64 << 10);
    let batches = |offset| Kind::Batches {
        offset,
        same: Vec::new(),
        bytes: body.clone(),
    };
    for offset in 0..120 {
        one.links.send(1, &one.says(1, batches(offset)));
    }
    assert_eq!(one.peer(1).dropped, 0);
    one.stopped().await;
    for offset in 0..120 {
        assert_eq!(other.next(1).await.kind, batches(offset));
    }
    other.until(0, |peer| peer.links_up == 0).await;
}

#[tokio::test]
async fn given_a_link_that_is_dialed_again_when_the_old_one_still_seems_to_be_up_should_end_it() {
    let (addresses, mut listeners) = listeners(2);
    let other = start(wish(1), &addresses, listeners.remove(1));
    let facts = Facts {
        identity: wish(0).identity,
        nodes: 2,
        links: 2,
        release: Release::of("0.1.0"),
        keys: Vec::new(),
    };
    let preamble = Preamble { dialer: 0, link: 0 };
    let dial = async || {
        let mut stream = TcpStream::connect(addresses[1]).await.unwrap();
        stream.write_all(&preamble.encode()).await.unwrap();
        handshake::dial(&mut stream, &facts, preamble, 1, 0, &Channel::default())
            .await
            .unwrap();
        stream
    };
    let mut older = dial().await;
    other.until(0, |peer| peer.links_up == 1).await;
    let newer = dial().await;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, older.read_to_end(&mut rest)).await;
    ended.expect("the older one must end").unwrap();
    assert_eq!(other.peer(0).links_up, 1, "the newer one stays");
    drop(newer);
    other.until(0, |peer| peer.links_up == 0).await;
}

fn secret(text: &str) -> Secrets {
    Secrets {
        current: text.repeat(8),
        previous: None,
    }
}

#[tokio::test]
async fn given_a_secret_when_a_node_does_not_know_it_should_never_link() {
    let with = |replica, text| Wish {
        secrets: Some(secret(text)),
        ..wish(replica)
    };
    let (one, other) = pair(with(0, "same"), with(1, "same"));
    one.linked(1).await;
    drop(other);
    let (one, other) = pair(with(0, "mine"), with(1, "ours"));
    one.until(1, |peer| peer.trouble.is_some()).await;
    let trouble = one.peer(1).trouble.unwrap();
    assert!(trouble.contains("cluster.auth"), "{trouble}");
    assert_eq!(other.peer(0).links_up, 0);
    assert_eq!(other.peer(0).trouble, None, "what a stranger says is no news of a peer");
}

/// Files of an authority, and of a certificate for this machine that it signed.
fn certified(folder: &std::path::Path, authority: &rcgen::CertifiedIssuer<'_, rcgen::KeyPair>, name: &str) -> LinkTls {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut facts = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    facts.extended_key_usages = vec![
        rcgen::ExtendedKeyUsagePurpose::ServerAuth,
        rcgen::ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let certificate = facts.signed_by(&key, authority).unwrap();
    let path = |kind: &str| folder.join(format!("{name}.{kind}"));
    std::fs::write(path("crt"), certificate.pem()).unwrap();
    std::fs::write(path("key"), key.serialize_pem()).unwrap();
    std::fs::write(path("ca"), authority.pem()).unwrap();
    LinkTls::from_files(&path("crt"), &path("key"), &path("ca")).unwrap()
}

fn authority() -> rcgen::CertifiedIssuer<'static, rcgen::KeyPair> {
    let mut facts = rcgen::CertificateParams::default();
    facts.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    rcgen::CertifiedIssuer::self_signed(facts, rcgen::KeyPair::generate().unwrap()).unwrap()
}

#[tokio::test]
async fn given_certificates_of_one_authority_when_nodes_link_should_speak_through_tls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let ours = authority();
    let with = |replica, tls| Wish {
        secrets: Some(secret("same")),
        tls,
        ..wish(replica)
    };
    let one = certified(folder.path(), &ours, "one");
    let other = certified(folder.path(), &ours, "other");
    let stranger = certified(folder.path(), &authority(), "stranger");
    {
        let (one, mut other) = pair(with(0, Some(one.clone())), with(1, Some(other.clone())));
        one.linked(1).await;
        let kind = Kind::Batches {
            offset: 0,
            same: Vec::new(),
            bytes: bytes_of(300_000),
        };
        one.links.send(1, &one.says(1, kind.clone()));
        assert_eq!(other.next(1).await.kind, kind);
    }
    for wrong in [Some(stranger), None] {
        let (one, other) = pair(with(0, wrong), with(1, Some(other.clone())));
        one.until(1, |peer| peer.trouble.is_some()).await;
        assert_eq!((one.peer(1).links_up, other.peer(0).links_up), (0, 0));
    }
}

#[test]
fn given_files_that_are_no_certificates_when_read_should_name_the_file_and_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing.pem");
    std::fs::write(&path, "nothing").unwrap();
    let error = LinkTls::from_files(&path, &path, &path).err().unwrap().to_string();
    assert!(
        error.contains("nothing.pem") && error.contains("cluster.tls.cert_file"),
        "{error}"
    );
}
