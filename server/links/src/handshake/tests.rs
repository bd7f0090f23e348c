use super::*;
use tokio::io::DuplexStream;

const OLD: &str = "the secret of last year, 32 bytes long";
const NEW: &str = "the secret of this year, 32 bytes long";

fn facts(replica: u8, secrets: &[&str]) -> Facts {
    Facts {
        identity: Identity {
            cluster: 7,
            replica,
            incarnation: 100 + u64::from(replica),
        },
        nodes: 3,
        links: 2,
        release: Release::of("0.1.0"),
        keys: secrets.iter().map(|secret| Key::of(secret.as_bytes())).collect(),
    }
}

const LINK: Preamble = Preamble { dialer: 0, link: 1 };

type Results = (Result<Met, HandshakeError>, Result<Met, HandshakeError>);

/// What the dialer and the listener find.
async fn meet(dialer: &Facts, listener: &Facts) -> Results {
    let preamble = Preamble {
        dialer: dialer.identity.replica,
        ..LINK
    };
    meet_over(dialer, listener, preamble, [Channel::default(); 2]).await
}

async fn meet_over(dialer: &Facts, listener: &Facts, preamble: Preamble, channels: [Channel; 2]) -> Results {
    let (mut one, mut other) = tokio::io::duplex(1024);
    let dialing = async move { dial(&mut one, dialer, LINK, 1, 0, &channels[0]).await };
    let answering = async move { answer(&mut other, listener, preamble, &channels[1]).await };
    tokio::join!(dialing, answering)
}

#[tokio::test]
async fn given_two_nodes_of_a_cluster_when_they_meet_should_know_each_other() {
    for secrets in [&[][..], &[NEW]] {
        let (dialed, answered) = meet(&facts(0, secrets), &facts(1, secrets)).await;
        let met = |peer, incarnation| Met {
            peer,
            link: 1,
            incarnation,
        };
        assert_eq!(dialed.unwrap(), met(1, 101));
        assert_eq!(answered.unwrap(), met(0, 100));
    }
}

#[tokio::test]
async fn given_a_secret_that_is_being_changed_when_nodes_meet_should_link_within_two_attempts() {
    for (dialer, listener, works) in [
        (&[NEW, OLD][..], &[OLD][..], 1),
        (&[OLD], &[NEW, OLD], 0),
        (&[NEW, OLD], &[NEW, OLD], 0),
    ] {
        let (dialer, listener) = (facts(0, dialer), facts(1, listener));
        for attempt in 0..=works {
            let (mut one, mut other) = tokio::io::duplex(1024);
            let channel = Channel::default();
            let (dialed, answered) = tokio::join!(
                dial(&mut one, &dialer, LINK, 1, attempt, &channel),
                answer(&mut other, &listener, LINK, &channel)
            );
            assert_eq!(dialed.is_ok(), attempt == works, "{dialed:?}");
            assert_eq!(answered.is_ok(), attempt == works, "{answered:?}");
        }
    }
}

#[tokio::test]
async fn given_other_facts_when_nodes_meet_should_both_say_why_there_is_no_link() {
    let same = facts(0, &[NEW]);
    let cases = [
        (facts(0, &[OLD]), Refusal::Secret),
        (facts(0, &[]), Refusal::Secret),
        (
            Facts {
                identity: Identity {
                    cluster: 8,
                    ..same.identity
                },
                ..same.clone()
            },
            Refusal::Cluster,
        ),
        (
            Facts {
                links: 3,
                ..same.clone()
            },
            Refusal::Links,
        ),
        (
            Facts {
                nodes: 5,
                ..same.clone()
            },
            Refusal::Roster,
        ),
        (
            Facts {
                release: Release::of("0.1.1"),
                ..same.clone()
            },
            Refusal::Release,
        ),
        // The higher number must not dial, and nobody dials itself.
        (facts(2, &[NEW]), Refusal::Node),
        (facts(1, &[NEW]), Refusal::Node),
    ];
    for (dialer, refusal) in cases {
        let (dialed, answered) = meet(&dialer, &facts(1, &[NEW])).await;
        assert!(
            matches!(dialed, Err(HandshakeError::RefusedThere(found)) if found == refusal),
            "{dialed:?}"
        );
        assert!(
            matches!(answered, Err(HandshakeError::Refused(found)) if found == refusal),
            "{answered:?}"
        );
    }
}

#[tokio::test]
async fn given_a_hello_for_another_node_or_link_when_answered_should_be_refused() {
    let (dialed, _) = meet(&facts(0, &[]), &facts(2, &[])).await;
    assert!(
        matches!(dialed, Err(HandshakeError::RefusedThere(Refusal::Node))),
        "{dialed:?}"
    );
    let elsewhere = Preamble { dialer: 0, link: 0 };
    let (dialed, _) = meet_over(&facts(0, &[]), &facts(1, &[]), elsewhere, [Channel::default(); 2]).await;
    assert!(
        matches!(dialed, Err(HandshakeError::RefusedThere(Refusal::Node))),
        "{dialed:?}"
    );
}

#[tokio::test]
async fn given_someone_between_two_encrypted_connections_when_nodes_meet_should_be_noticed() {
    let (dialed, answered) = meet_over(&facts(0, &[NEW]), &facts(1, &[NEW]), LINK, [[1; 32], [2; 32]]).await;
    assert!(dialed.is_err() && answered.is_err());
}

/// What a stranger that recorded a handshake can do with it.
#[tokio::test]
async fn given_a_recorded_handshake_when_replayed_should_not_link() {
    let (dialer, listener) = (facts(0, &[NEW]), facts(1, &[NEW]));
    let (mut one, mut middle) = tokio::io::duplex(1024);
    let (mut other, mut far) = tokio::io::duplex(1024);
    let channel = Channel::default();
    let record = async move {
        let mut said = vec![0; HELLO_LEN];
        middle.read_exact(&mut said).await.unwrap();
        other.write_all(&said).await.unwrap();
        let mut answered = [0; CHALLENGE_LEN];
        other.read_exact(&mut answered).await.unwrap();
        middle.write_all(&answered).await.unwrap();
        let mut finish = [0; FINISH_LEN];
        middle.read_exact(&mut finish).await.unwrap();
        other.write_all(&finish).await.unwrap();
        said.extend_from_slice(&finish);
        said
    };
    let (dialed, answered, said) = tokio::join!(
        dial(&mut one, &dialer, LINK, 1, 0, &channel),
        answer(&mut far, &listener, LINK, &channel),
        record
    );
    assert!(dialed.is_ok() && answered.is_ok());

    let (mut stranger, mut again) = tokio::io::duplex(1024);
    stranger.write_all(&said).await.unwrap();
    let answered = answer(&mut again, &listener, LINK, &channel).await;
    assert!(matches!(answered, Err(HandshakeError::Unproven)), "{answered:?}");
}

#[tokio::test]
async fn given_a_listener_without_the_secret_when_dialed_should_not_be_believed() {
    let (mut one, mut other) = tokio::io::duplex(1024);
    let pretending = async move {
        let mut hello = [0; HELLO_LEN];
        other.read_exact(&mut hello).await.unwrap();
        let challenge = Challenge {
            verdict: None,
            proven: true,
            incarnation: 1,
            release: Release::of("0.1.0"),
            nonce: [1; 32],
        };
        say(&mut other, &challenge.encode(), &[3; PROOF_LEN]).await.unwrap();
        other
    };
    let dialer = facts(0, &[NEW]);
    let channel = Channel::default();
    let (dialed, _) = tokio::join!(dial(&mut one, &dialer, LINK, 1, 0, &channel), pretending);
    assert!(matches!(dialed, Err(HandshakeError::Unproven)), "{dialed:?}");
}

#[tokio::test]
async fn given_bytes_that_are_no_handshake_when_answered_should_be_refused() {
    let (mut one, mut other): (DuplexStream, DuplexStream) = tokio::io::duplex(1024);
    one.write_all(&[0; HELLO_LEN]).await.unwrap();
    let answered = answer(&mut other, &facts(1, &[]), LINK, &Channel::default()).await;
    let wrong = FrameError::Command { wanted: 14, found: 0 };
    assert!(
        matches!(answered, Err(HandshakeError::Frame(found)) if found == wrong),
        "{answered:?}"
    );
}

#[test]
fn given_frames_when_written_and_read_should_be_the_same() {
    let hello = Hello {
        dialer: 1,
        listener: 2,
        link: 3,
        links: 4,
        nodes: 5,
        proven: true,
        cluster: 6,
        incarnation: 7,
        release: Release::of("0.1.0"),
        nonce: [8; 32],
    };
    assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
    for verdict in [None, Some(Refusal::Cluster), Some(Refusal::Release)] {
        let challenge = Challenge {
            verdict,
            proven: false,
            incarnation: 1,
            release: Release::of("0.1.0-a-version-that-is-long"),
            nonce: [2; 32],
        };
        assert_eq!(Challenge::decode(&challenge.encode()), Ok(challenge));
    }
    let mut unknown = Challenge {
        verdict: None,
        proven: false,
        incarnation: 0,
        release: Release::of(""),
        nonce: [0; 32],
    }
    .encode();
    unknown[2] = 200;
    assert_eq!(Challenge::decode(&unknown), Err(FrameError::Field("the verdict")));
}
