//! The group of one, as tables of inputs and the effects they must have.

use bytes::Bytes;
use iggy_consensus::message::{Kind, Message};
use iggy_consensus::{
    Barrier, Body, Effect, FenceReason, GroupId, Input, LogEnd, Now, Prepare, Proposal, Refusal, Replica,
    ReplicaConfig, VsrState,
};
use iggy_storage::IoToken;

const NOW: Now = Now {
    monotonic: 1,
    wall: 1_000,
};

fn replica(pipeline_max: usize) -> Replica {
    let state = VsrState::new(7, GroupId::METADATA, 0, 1);
    Replica::recover(
        ReplicaConfig {
            pipeline_max,
            ..ReplicaConfig::default()
        },
        state,
        LogEnd::default(),
    )
    .unwrap()
}

fn propose(replica: &mut Replica, wall: u64) -> Vec<Effect> {
    let now = Now { wall, ..NOW };
    let proposal = Proposal {
        client: 1,
        request_checksum: 2,
        session: 3,
        request: 4,
        user_id: 5,
        owner_generation: 6,
        operation: 128,
        timestamp: replica.next_timestamp(now),
        body: Body::Inline(Bytes::from_static(b"body")),
        barrier: Barrier::Sync,
    };
    let mut effects = Vec::new();
    replica.step(now, Input::Propose(proposal), &mut effects);
    effects
}

fn appended(effects: &[Effect]) -> (IoToken, Prepare) {
    match effects {
        [
            Effect::Append {
                token,
                prepare,
                barrier: Barrier::Sync,
            },
        ] => (*token, prepare.clone()),
        other => panic!("expected one append, got {other:?}"),
    }
}

fn done(replica: &mut Replica, token: IoToken, success: bool) -> Vec<Effect> {
    let mut effects = Vec::new();
    replica.step(NOW, Input::IoDone(token, success), &mut effects);
    effects
}

/// D9.
#[test]
fn given_a_proposal_when_journaled_should_commit_and_never_before() {
    let mut replica = replica(4);
    let (token, prepare) = appended(&propose(&mut replica, 1_000));
    assert!(prepare.is_intact());
    assert_eq!((prepare.header.op.get(), prepare.header.parent.get()), (1, 0));
    assert_eq!(replica.commit(), 0);
    assert!(matches!(
        done(&mut replica, token, true)[..],
        [Effect::Commit { op: 1 }]
    ));
}

#[test]
fn given_journal_answers_out_of_order_when_stepped_should_commit_in_order() {
    let mut replica = replica(4);
    let tokens: Vec<_> = (0..3).map(|_| appended(&propose(&mut replica, 1_000)).0).collect();
    assert!(done(&mut replica, tokens[1], true).is_empty());
    assert!(done(&mut replica, tokens[2], true).is_empty());
    assert!(matches!(
        done(&mut replica, tokens[0], true)[..],
        [Effect::Commit { op: 3 }]
    ));
}

#[test]
fn given_the_same_answer_twice_when_stepped_should_count_it_once() {
    let mut replica = replica(4);
    let (first, _) = appended(&propose(&mut replica, 1_000));
    let (_second, _) = appended(&propose(&mut replica, 1_000));
    assert!(matches!(
        done(&mut replica, first, true)[..],
        [Effect::Commit { op: 1 }]
    ));
    assert!(done(&mut replica, first, true).is_empty());
    assert_eq!(replica.commit(), 1);
}

#[test]
fn given_a_clock_that_steps_back_when_proposing_should_keep_timestamps_rising_and_chain_the_prepares() {
    let mut replica = replica(4);
    let (_, first) = appended(&propose(&mut replica, 5_000));
    let (_, second) = appended(&propose(&mut replica, 10));
    assert_eq!(second.header.timestamp.get(), first.header.timestamp.get() + 1);
    assert_eq!(second.header.parent, first.header.checksum);
}

#[test]
fn given_a_full_pipeline_when_proposing_should_refuse_and_name_the_limit() {
    let mut replica = replica(1);
    let (token, _) = appended(&propose(&mut replica, 1));
    assert!(matches!(
        propose(&mut replica, 1)[..],
        [Effect::Refuse(Refusal::PipelineFull { limit: 1 })]
    ));
    done(&mut replica, token, true);
    appended(&propose(&mut replica, 1));
}

/// D4.
#[test]
fn given_a_failed_write_when_stepped_should_fence_and_commit_nothing_after() {
    let mut replica = replica(4);
    let (first, _) = appended(&propose(&mut replica, 1));
    let (second, _) = appended(&propose(&mut replica, 1));
    let fenced = done(&mut replica, first, false);
    assert!(matches!(
        fenced[..],
        [Effect::Fence(FenceReason::JournalFailed { op: 1 })]
    ));
    assert!(done(&mut replica, second, true).is_empty());
    assert!(matches!(
        propose(&mut replica, 1)[..],
        [Effect::Refuse(Refusal::Fenced)]
    ));
    assert_eq!(replica.commit(), 0);
}

#[test]
fn given_a_message_when_alone_should_count_and_drop_it() {
    let mut replica = replica(4);
    let mut effects = Vec::new();
    let message = Message {
        cluster: 7,
        group: GroupId::METADATA,
        from: 1,
        incarnation: 1,
        view: 9,
        kind: Kind::StartViewChange {
            proposed: 1,
            hand_over: false,
        },
    };
    replica.step(NOW, Input::Message(message), &mut effects);
    assert!(effects.is_empty());
    assert_eq!((replica.misrouted(), replica.view()), (1, 0));
}

#[test]
fn given_a_number_of_members_that_no_group_has_when_recovered_should_refuse_it() {
    for (replica, count) in [(0, 0), (0, 33), (3, 3)] {
        let state = VsrState::new(7, GroupId::METADATA, replica, count);
        assert!(Replica::recover(ReplicaConfig::default(), state, LogEnd::default()).is_err());
    }
}

#[test]
fn given_a_committed_prepare_when_alone_should_keep_nothing_of_it_in_memory() {
    let mut replica = replica(4);
    let (token, _) = appended(&propose(&mut replica, 1));
    assert!(replica.prepare(1).is_some());
    done(&mut replica, token, true);
    assert!(replica.prepare(1).is_none());
}
