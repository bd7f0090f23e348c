//! Prepares per second of a group without disks and network, and the bytes that are copied for each.
//!
//! Every message is handed over as it is and every write is done at once, so what is measured is the protocol alone. A
//! body is counted as copied when the memory it lies in is another one at the backup than at the primary.

#![allow(missing_docs)] // The macro that makes the main function documents nothing.

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use iggy_consensus::{
    Barrier, Body, Effect, Effects, GroupId, Input, LogEnd, Now, Proposal, RecoveredLog, Replica, ReplicaConfig,
    VsrState,
};
use std::hint::black_box;

const NOW: Now = Now {
    monotonic: 1,
    wall: 1_000,
};

fn group(count: u8) -> Vec<Replica> {
    let recover = |index| {
        let state = VsrState::new(7, GroupId::METADATA, index, count);
        let log = RecoveredLog {
            created: true,
            ..RecoveredLog::from(LogEnd::default())
        };
        Replica::recover(ReplicaConfig::default(), state, log).expect("a new group")
    };
    (0..count).map(recover).collect()
}

/// Orders one write and lets everything follow; returns the bytes of bodies that were copied on the way.
fn write(replicas: &mut [Replica], body: &Bytes, work: &mut Vec<(u8, Input)>, effects: &mut Effects) -> u64 {
    let proposal = Proposal {
        client: 1,
        request_checksum: 2,
        session: 3,
        request: 4,
        user_id: 5,
        owner_generation: 0,
        operation: 160,
        timestamp: replicas[0].next_timestamp(NOW),
        body: Body::Inline(body.clone()),
        barrier: Barrier::None,
    };
    let mut copied = 0;
    work.push((0, Input::Propose(proposal)));
    while let Some((index, input)) = work.pop() {
        replicas[usize::from(index)].step(NOW, input, effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Append { token, prepare, .. } => {
                    if let Body::Inline(bytes) = &prepare.body
                        && bytes.as_ptr() != body.as_ptr()
                    {
                        copied += bytes.len() as u64;
                    }
                    work.push((index, Input::IoDone(token, true)));
                }
                Effect::Send { to, message } => work.push((to, Input::Message(message))),
                other => {
                    black_box(other);
                }
            }
        }
    }
    copied
}

fn prepares(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("prepares");
    let body = Bytes::from(vec![7; 1024]);
    for count in [1, 3, 5] {
        let mut replicas = group(count);
        let (mut work, mut effects, mut copied, mut written) = (Vec::new(), Effects::new(), 0, 0);
        bench.throughput(Throughput::Elements(1));
        bench.bench_function(format!("{count} replicas"), |bencher| {
            bencher.iter(|| {
                copied += write(&mut replicas, &body, &mut work, &mut effects);
                written += 1;
            });
        });
        println!(
            "{count} replicas: {copied} bytes copied for {written} prepares of {} bytes",
            body.len()
        );
    }
    bench.finish();
}

criterion_group!(benches, prepares);
criterion_main!(benches);
