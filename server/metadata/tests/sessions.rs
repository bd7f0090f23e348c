//! Logins, binds, resends, and the end of sessions.

mod support;

use iggy_metadata::{
    Admission, Change, Event, Limits, Outcome, Recognition, RequestKey, SessionEnd, SessionKey, committed_operation,
};
use iggy_protocol::options::Options;
use iggy_protocol::request::Empty;
use iggy_protocol::request::stream::CreateStream;
use iggy_protocol::{Command, Encode, ErrorCode};
use support::{World, name, position};

fn create_stream_body(stream: &str) -> Vec<u8> {
    CreateStream {
        name: name(stream),
        options: Options::new(),
    }
    .to_bytes()
    .to_vec()
}

#[test]
fn given_a_registration_when_resent_should_return_the_session_it_made() {
    let mut world = World::new();
    let login = world.root();
    let key = World::register_key(login.key.client);
    let user = world.user("iggy");
    let Admission::Replay(receipt) = world
        .metadata
        .admit_register(&key, user, &World::secret(key.client), |_| false)
    else {
        panic!("a resend is replayed")
    };
    assert_eq!(receipt.at, position(login.key.session));
    assert_eq!(receipt.outcome, Outcome::Registered { user_id: 0 });
    assert_eq!(world.metadata.counts().sessions, 1);
}

#[test]
fn given_two_copies_of_a_registration_in_the_log_when_applied_should_make_one_session() {
    let mut world = World::new();
    let key = World::register_key(9);
    let user = world.user("iggy");
    let Admission::Ready(change) = world.metadata.admit_register(&key, user, &World::secret(9), |_| false) else {
        panic!("a new registration is ready")
    };
    let first = world.commit(key, &change);
    let second = world.commit(key, &change);
    assert_eq!(second.receipt, first.receipt, "the first answer, its position included");
    assert!(second.events.is_empty());
}

#[test]
fn given_a_client_id_in_use_when_another_registers_with_it_should_be_refused() {
    let mut world = World::new();
    let login = world.root();
    let key = World::register_key(login.key.client);
    let user = world.user("iggy");
    let other_identity = RequestKey {
        request_checksum: 999,
        ..key
    };
    for (key, secret) in [(other_identity, World::secret(key.client)), (key, [9; 32])] {
        let refused = world.metadata.admit_register(&key, user, &secret, |_| false);
        assert!(
            matches!(refused, Admission::Refused(ErrorCode::InvalidClientId)),
            "{refused:?}"
        );
    }
}

#[test]
fn given_a_session_when_bound_should_ask_for_its_number_secret_and_watermark() {
    let mut world = World::new();
    let SessionKey { client, session } = world.root().key;
    let secret = World::secret(client);
    let metadata = &world.metadata;
    let head = metadata.applied().op;
    let bind =
        |client, session, secret: &[u8; 32], op| metadata.bind(client, session, secret, op).map(|s| s.key.session);
    assert_eq!(bind(client, session, &secret, head), Ok(session));
    assert_eq!(
        bind(client, 0, &secret, 0),
        Ok(session),
        "0 asks for whatever was registered"
    );
    assert_eq!(bind(client, session + 1, &secret, 0), Err(ErrorCode::Unauthenticated));
    assert_eq!(bind(client, session, &[0; 32], 0), Err(ErrorCode::Unauthenticated));
    assert_eq!(bind(client + 1, session, &secret, 0), Err(ErrorCode::Unauthenticated));
    assert_eq!(
        bind(client, session, &secret, head + 1),
        Err(ErrorCode::TransientNotAccepted)
    );
}

#[test]
fn given_a_committed_write_when_resent_should_return_its_first_answer() {
    let mut world = World::new();
    let login = world.root();
    let request = world.request(login);
    let body = create_stream_body("s");
    let change = world.admit(&request, Command::CreateStream, &body).expect("admitted");
    let logged = RequestKey {
        operation: committed_operation(Command::CreateStream, &change),
        ..request
    };
    let first = world.commit(logged, &change).receipt;
    // The retry gets the first receipt even when its own identity differs.
    let retry = RequestKey {
        request_checksum: 1,
        ..request
    };
    let Admission::Replay(replay) = world
        .metadata
        .admit(&world.settings, &retry, Command::CreateStream, &body)
    else {
        panic!("a resend is replayed")
    };
    assert_eq!(replay, first);
    assert_eq!(replay.request.request_checksum, request.request_checksum);
    // Another command under the same number is no resend of it.
    let other = world.metadata.admit(&world.settings, &request, Command::Logout, &[]);
    assert!(
        matches!(other, Admission::Refused(ErrorCode::InvalidCommand)),
        "{other:?}"
    );
    let older = RequestKey {
        request: request.request - 1,
        ..request
    };
    let too_old = world
        .metadata
        .admit(&world.settings, &older, Command::CreateStream, &body);
    assert!(
        matches!(too_old, Admission::Refused(ErrorCode::RequestTooOld)),
        "{too_old:?}"
    );
}

#[test]
fn given_a_resend_in_the_log_beside_the_first_when_applied_should_change_nothing() {
    let mut world = World::new();
    let login = world.root();
    let request = world.request(login);
    let change = world
        .admit(&request, Command::CreateStream, &create_stream_body("s"))
        .expect("admitted");
    let first = world.commit(request, &change);
    let second = world.commit(request, &change);
    assert_eq!(second.receipt, first.receipt);
    assert_eq!(world.metadata.counts().streams, 1);
}

#[test]
fn given_a_committed_refusal_when_resent_should_stay_refused() {
    let mut world = World::new();
    let login = world.root();
    let change = Change::CreateStream {
        name: name("s"),
        explicit: Options::new(),
    };
    let (first, second) = (world.request(login), world.request(login));
    world.commit(first, &change);
    world.commit(second, &change);
    let Ok(Recognition::Replay(replay)) = world.metadata.recognise(&second) else {
        panic!("kept")
    };
    assert_eq!(replay.outcome, Outcome::Refused(ErrorCode::StreamNameAlreadyExists));
}

#[test]
fn given_a_token_create_when_resent_should_be_refused_as_existing() {
    let mut world = World::new();
    let login = world.root();
    world.create_token(login, "token", 0).expect("created");
    let request = RequestKey {
        session: login.key.session,
        client: login.key.client,
        request: 1,
        ..RequestKey::INTERNAL
    };
    let Ok(Recognition::Replay(replay)) = world.metadata.recognise(&request) else {
        panic!("kept")
    };
    assert_eq!(
        replay.outcome,
        Outcome::Refused(ErrorCode::PersonalAccessTokenAlreadyExists)
    );
}

#[test]
fn given_a_logout_when_committed_should_end_the_session_and_refuse_what_follows() {
    let mut world = World::new();
    let login = world.root();
    world.write(login, Command::Logout, &Empty).expect("logged out");
    let ended = Event::SessionEnded {
        session: login.key,
        reason: SessionEnd::Logout,
    };
    assert_eq!(world.events, vec![ended]);
    assert_eq!(world.create_stream(login, "s"), Err(ErrorCode::Unauthenticated));
    let secret = World::secret(login.key.client);
    let bound = world
        .metadata
        .bind(login.key.client, login.key.session, &secret, 0)
        .map(|session| session.key);
    assert_eq!(bound, Err(ErrorCode::Unauthenticated));
}

#[test]
fn given_sessions_when_their_lease_runs_out_should_end_those_that_still_are() {
    let mut world = World::new();
    let (kept, expired) = (world.root(), world.root());
    let gone = SessionKey { client: 77, session: 1 };
    world.commit(
        RequestKey::INTERNAL,
        &Change::ExpireSessions {
            sessions: vec![gone, expired.key],
        },
    );
    assert_eq!(
        world.events,
        vec![Event::SessionEnded {
            session: expired.key,
            reason: SessionEnd::Expired
        }]
    );
    assert!(world.metadata.session(kept.key).is_some());
    assert!(world.metadata.session(expired.key).is_none());
}

#[test]
fn given_a_full_table_when_logging_in_should_drop_the_oldest_that_is_not_bound() {
    let mut world = World::new();
    let limits = Limits {
        sessions: 100,
        ..Limits::default()
    };
    world.commit(RequestKey::INTERNAL, &Change::SetLimits(limits));
    let logins: Vec<_> = (0..100).map(|_| world.root()).collect();
    let user = world.user("iggy");
    let key = World::register_key(1 << 100);
    let all_bound = world.metadata.admit_register(&key, user, &[1; 32], |_| true);
    assert!(
        matches!(all_bound, Admission::Refused(ErrorCode::TransientNotAccepted)),
        "{all_bound:?}"
    );
    let is_bound = |session: SessionKey| session == logins[0].key;
    let Admission::Ready(change) = world.metadata.admit_register(&key, user, &[1; 32], is_bound) else {
        panic!("somebody may give way")
    };
    world.commit(key, &change);
    assert!(world.metadata.session(logins[0].key).is_some(), "a bound session stays");
    assert!(
        world.metadata.session(logins[1].key).is_none(),
        "the oldest unbound one gave way"
    );
    assert!(world.metadata.session(logins[2].key).is_some());
    assert_eq!(world.metadata.counts().sessions, 100);
}

#[test]
fn given_a_user_recreated_while_its_login_ran_when_registered_should_be_refused() {
    let mut world = World::new();
    let root = world.root();
    world.create_user(root, "bob", None).expect("created");
    let stale = world.user("bob");
    let delete = iggy_protocol::request::user::DeleteUser {
        user: support::named("bob"),
    };
    world.write(root, Command::DeleteUser, &delete).expect("deleted");
    world.create_user(root, "bob", None).expect("created again");
    let key = World::register_key(55);
    let refused = world.metadata.admit_register(&key, stale, &[1; 32], |_| false);
    assert!(
        matches!(refused, Admission::Refused(ErrorCode::InvalidCredentials)),
        "{refused:?}"
    );
}

#[test]
fn given_a_body_that_is_no_request_when_admitted_should_be_refused() {
    let mut world = World::new();
    let login = world.root();
    for command in Command::ALL {
        let request = world.request(login);
        let answer = world.metadata.admit(&world.settings, &request, *command, &[0xff; 7]);
        assert!(matches!(answer, Admission::Refused(_)), "{command}: {answer:?}");
        let read = world.metadata.query(0, login.key, *command, &[0xff; 7], &());
        assert!(read.is_err(), "{command}: {read:?}");
    }
}
