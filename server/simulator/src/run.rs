//! One run from its seed to its verdict.

use crate::bugs::{self, Bug};
use crate::clients;
use crate::disks::is_segment;
use crate::faults::Faults;
use crate::node::Node;
use crate::plan::{Mode, Plan, stream};
use crate::world::World;
use iggy_consensus::{Ending, Status};
use iggy_driver::partition_group::{PartitionGroup, directory};
use iggy_metadata::PartitionKey;
use iggy_protocol::batch::BatchView;
use iggy_storage::image::Image;
use iggy_storage::memory::MemoryDisk;
use rand::Rng;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use xxhash_rust::xxh3::xxh3_128;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Its mode.
    pub mode: Mode,
    /// What must not have happened, if something did.
    pub failure: Option<String>,
    /// Equal for two runs only if everything in them was the same.
    pub trace: u64,
    /// Events.
    pub events: u64,
    /// Injected.
    pub faults: Faults,
    /// Prepares committed.
    pub commits: u64,
    /// Writes acknowledged to clients.
    pub acknowledged: u64,
    /// Times a replica left its view.
    pub view_changes: u64,
    /// Times a replica asked for a whole state.
    pub state_transfers: u64,
    /// Batches of such a state that did not travel, because they were there.
    pub batches_kept: u64,
    /// Times a partition began a new history.
    pub histories: u64,
    /// Whether the groups could not come to rest, through no fault of their own.
    pub is_beyond_help: bool,
}

/// Runs a seed. `bug` is planted for the time of the run.
pub fn run(seed: u64, mode: Mode, bug: Option<Bug>, print: bool) -> Report {
    bugs::plant(bug);
    let plan = Plan::of(seed, mode);
    if print {
        println!("{}", plan.describe());
    }
    let mut world = World::new(plan, print);
    let mut beyond_help = false;
    // A panic of the code under test is a failure like any other.
    let ended = catch_unwind(AssertUnwindSafe(|| whole(&mut world, &mut beyond_help)));
    let failure = match ended {
        Ok(result) => result.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Some(format!("panic: {}", text.unwrap_or("without a text")))
        }
    };
    bugs::plant(None);
    for node in 0..world.plan.members {
        world.count_replicas(node);
    }
    Report {
        seed,
        mode,
        failure,
        trace: world.trace.hash(),
        events: world.trace.events(),
        commits: world.checker.commits,
        acknowledged: world.oracle.acknowledged,
        view_changes: world.view_changes,
        state_transfers: world.state_transfers,
        batches_kept: world.batches_kept,
        histories: world.desk.histories,
        faults: world.faults,
        is_beyond_help: beyond_help,
    }
}

fn whole(world: &mut World, beyond_help: &mut bool) -> Result<(), String> {
    world.run_until(world.plan.chaos)?;
    let dead = dead(&world.plan);
    world.heal(&dead)?;
    let deadline = world.now + world.plan.heal;
    while !is_at_rest(world) {
        if world.now >= deadline {
            let why = why_not(world);
            if is_beyond_help(world, &dead) {
                *beyond_help = true;
                return Ok(());
            }
            return Err(format!("L1 L2 L4: the cluster does not come to rest: {why}"));
        }
        let until = world.now + 100_000;
        world.run_until(until)?;
    }
    if world.plan.unlimited {
        // What is committed was compared all along; a disk that lies may say anything now.
        return Ok(());
    }
    compare(world)?;
    check_answers(world)
}

/// Who stays dead at the end: in the liveness mode as many as the groups can do without.
fn dead(plan: &Plan) -> Vec<u8> {
    if plan.mode != Mode::Liveness {
        return Vec::new();
    }
    let mut random = stream(plan.seed, "core");
    let mut dead: Vec<u8> = (0..plan.members).collect();
    let count = random.random_range(0..=plan.spare());
    while dead.len() > usize::from(count) {
        let place = random.random_range(0..dead.len());
        dead.remove(place);
    }
    dead
}

fn alive(world: &World) -> impl Iterator<Item = &Node> {
    world.nodes.iter().filter(|node| !node.is_dead)
}

/// Whether nothing is left to do: every group has a leader, everybody has everything, and no client waits.
fn is_at_rest(world: &World) -> bool {
    why_not(world).is_empty()
}

/// Nodes whose disks never lied: what the others have on disk may be damaged where nobody has looked since.
fn honest(world: &World) -> impl Iterator<Item = &Node> {
    alive(world).filter(|node| !node.lied)
}

fn why_not(world: &World) -> String {
    if world.open_requests() > 0 {
        let groups = alive(world).flat_map(|node| node.process.iter().flat_map(|process| process.shard.partitions()));
        let unknown: Vec<_> = groups.filter_map(PartitionGroup::unknown_losses).collect();
        return format!(
            "{} requests are open, unknown losses {unknown:?}",
            world.open_requests()
        );
    }
    let Some((_, state)) = world.leading_metadata() else {
        return "nobody leads the metadata".into();
    };
    if !state.is_bootstrapped() || world.desk.open.is_some() {
        return "a change is under way".into();
    }
    let keys: Vec<PartitionKey> = state.partitions().map(|(key, ..)| key).collect();
    if keys.len() != world.plan.topics.len() * world.plan.partitions as usize || !world.desk.losses.is_empty() {
        return "the metadata is not what it should be".into();
    }
    let applied = state.applied();
    for node in alive(world) {
        let Some(metadata) = node.metadata() else {
            return format!("node {} is down", node.index);
        };
        if metadata.applied() != applied {
            return format!("node {} has older metadata", node.index);
        }
        if node.process.as_ref().is_some_and(|process| !process.storage.is_idle()) {
            return format!("the disk of node {} is busy", node.index);
        }
    }
    for key in keys {
        let groups: Vec<&PartitionGroup> = alive(world).filter_map(|node| node.partition(&key)).collect();
        let members = state.partition_by_key(&key).map(|(_, partition)| &partition.members);
        let wanted = alive(world).filter(|node| members.is_some_and(|members| members.contains(&node.index)));
        let wanted: Vec<u8> = wanted.map(|node| node.index).collect();
        let found = alive(world).filter(|node| node.partition(&key).is_some());
        if !found.map(|node| node.index).eq(wanted.iter().copied()) {
            return format!("{key:?} is not open at {wanted:?}, or elsewhere as well");
        }
        let Some(leader) = groups.iter().find(|group| group.leads()) else {
            let states: Vec<String> = groups
                .iter()
                .map(|group| {
                    let replica = group.replica();
                    format!(
                        "{:?} view {} head {} commit {} ending {:?} stalled {:?}",
                        replica.status(),
                        replica.view(),
                        replica.op(),
                        replica.commit(),
                        replica.state().ending,
                        replica.stalled()
                    )
                })
                .collect();
            return format!("nobody leads {key:?}: {states:?}");
        };
        let end = leader.applied();
        for group in &groups {
            let replica = group.replica();
            let quiet = replica.status() == Status::Normal && replica.op() == end.op && group.applied() == end;
            if !quiet || replica.state().ending != Ending::Blank {
                return format!(
                    "{key:?} is {:?} at {} of {}, ending {:?}",
                    replica.status(),
                    group.applied().op,
                    end.op,
                    replica.state().ending
                );
            }
        }
    }
    String::new()
}

/// Whether more was lost than the groups are built for, so that waiting is all they may do.
fn is_beyond_help(world: &World, dead: &[u8]) -> bool {
    if world.plan.unlimited {
        return true;
    }
    let mut doubtful: BTreeMap<(iggy_consensus::GroupId, u8), usize> = BTreeMap::new();
    for node in alive(world) {
        for state in node.durable_states() {
            let group = (state.group, state.replica_count);
            *doubtful.entry(group).or_default() += usize::from(state.ending != Ending::Blank);
        }
        if node.refused > 0 {
            return true;
        }
    }
    let unsure = |((_, members), count): (&(_, u8), &usize)| {
        let quorum = iggy_consensus::quorum::Quorum::of(*members).expect("a group");
        *count > 0 && (!dead.is_empty() || *count >= usize::from(quorum.replication))
    };
    doubtful.iter().any(unsure) || lacks_copies(world)
}

/// Whether a batch that somebody may still need is whole on no disk of those that live: the dead have the other copies.
fn lacks_copies(world: &World) -> bool {
    let groups = alive(world).flat_map(|node| node.process.iter().flat_map(|process| process.shard.partitions()));
    groups.into_iter().any(|group| {
        let (key, state) = (group.key(), group.state());
        let mut next = state.log_start;
        let mut whole: Vec<(u64, u64)> = alive(world).flat_map(|node| whole_batches(&node.disk, &key)).collect();
        whole.sort_unstable();
        for (first, last) in whole {
            if first <= next {
                next = next.max(last + 1);
            }
        }
        next < state.next_offset
    })
}

/// First and last offsets of the batches of a partition that a disk holds undamaged.
fn whole_batches(disk: &MemoryDisk, key: &PartitionKey) -> Vec<(u64, u64)> {
    let directory = directory(key);
    let mut found = Vec::new();
    for entry in disk.list(&directory).unwrap_or_default() {
        let path = format!("{directory}/{}", entry.name);
        let bytes = Some(path).filter(|_| is_segment(&entry.name));
        let bytes = bytes
            .and_then(|path| disk.read_all(&path, 1 << 30).ok().flatten())
            .unwrap_or_default();
        let mut rest = &bytes[..];
        while let Ok((batch, after)) = BatchView::split_first(rest) {
            if batch.verify().is_ok() {
                found.push((batch.header().base_offset.get(), batch.last_offset()));
            }
            rest = after;
        }
    }
    found
}

/// All replicas must have the same states and the same bytes (S14, L2).
fn compare(world: &World) -> Result<(), String> {
    let Some(first) = alive(world).next() else {
        return Ok(());
    };
    if let Some(node) = alive(world).find(|node| node.metadata() != first.metadata()) {
        return Err(format!(
            "L2: the metadata of nodes {} and {} differ",
            first.index, node.index
        ));
    }
    let keys = first
        .metadata()
        .into_iter()
        .flat_map(iggy_metadata::Metadata::partitions);
    keys.into_iter()
        .try_for_each(|(key, ..)| compare_partition(world, &key))
}

fn compare_partition(world: &World, key: &PartitionKey) -> Result<(), String> {
    let mut holders = alive(world).filter_map(|node| Some((node, node.partition(key)?)));
    let Some((first, group)) = holders.next() else {
        return Ok(());
    };
    for (node, other) in holders {
        if group.state() != other.state() {
            return Err(format!(
                "S14: the states of {key:?} at nodes {} and {} differ",
                first.index, node.index
            ));
        }
        if !first.lied && !node.lied {
            same_bytes(&first.disk, &node.disk, group)?;
        }
    }
    Ok(())
}

fn same_bytes(first: &MemoryDisk, second: &MemoryDisk, group: &PartitionGroup) -> Result<(), String> {
    let key = group.key();
    let (one, other) = (batches(first, &key)?, batches(second, &key)?);
    let from = group.state().log_start;
    for (offset, checksum) in one.range(from..) {
        if other.get(offset) != Some(checksum) {
            return Err(format!("S14: the bytes of {key:?} at offset {offset} differ"));
        }
    }
    if one.range(from..).count() == other.range(from..).count() {
        Ok(())
    } else {
        Err(format!("S14: {key:?} has more batches on one disk than on another"))
    }
}

/// The batches of a partition on a disk, by offset.
fn batches(disk: &MemoryDisk, key: &PartitionKey) -> Result<BTreeMap<u64, u128>, String> {
    let directory = directory(key);
    let mut found = BTreeMap::new();
    let entries = disk.list(&directory).map_err(|error| error.to_string())?;
    for entry in entries.iter().filter(|entry| is_segment(&entry.name)) {
        let path = format!("{directory}/{}", entry.name);
        let Ok(Some(bytes)) = disk.read_all(&path, 1 << 30) else {
            continue;
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (batch, after) = BatchView::split_first(rest)
                .map_err(|error| format!("S14: {path} is damaged: {error}: {}", listing(disk, key)))?;
            let length = rest.len() - after.len();
            found.insert(batch.header().base_offset.get(), xxh3_128(&rest[..length]));
            rest = after;
        }
    }
    Ok(found)
}

/// Everything that was acknowledged must be there, and nothing that was not asked for.
fn check_answers(world: &mut World) -> Result<(), String> {
    if let Some((_, state)) = world.leading_metadata() {
        world.desk.check(state)?;
    }
    let Some((_, state)) = world.leading_metadata() else {
        return Ok(());
    };
    for (key, _, partition) in state.partitions() {
        let holder = honest(world).find_map(|node| Some((node, node.partition(&key)?)));
        if let Some((node, group)) = holder {
            check_partition(world, node, group, partition.history.losses)?;
        }
    }
    Ok(())
}

fn check_partition(world: &World, node: &Node, group: &PartitionGroup, losses: u64) -> Result<(), String> {
    let key = group.key();
    let log = read_log(&node.disk, &key, group.state().log_start)?;
    let checked = world.oracle.check_log(key, &log, group.state().log_start, losses);
    checked.map_err(|error| format!("{error}; node {}: {}", node.index, listing(&node.disk, &key)))?;
    for client in 1..=world.plan.clients as u32 {
        let stored = group.state().offsets.get(&clients::consumer(client)).copied();
        world
            .oracle
            .check_offset(key, client, stored, group.state().next_offset, losses)?;
    }
    if log.len() as u64 != group.state().messages() {
        return Err(format!(
            "S15: {key:?} has {} messages on disk and says {}",
            log.len(),
            group.state().messages()
        ));
    }
    Ok(())
}

/// The files of a partition, for a failure's text.
fn listing(disk: &MemoryDisk, key: &PartitionKey) -> String {
    let entries = disk.list(&directory(key)).unwrap_or_default();
    let files = entries.iter().map(|entry| format!("{} {}", entry.name, entry.length));
    files.collect::<Vec<_>>().join(", ")
}

/// Offsets and ids of the messages on a disk, from the start of the log on.
fn read_log(disk: &MemoryDisk, key: &PartitionKey, log_start: u64) -> Result<Vec<(u64, u128)>, String> {
    let directory = directory(key);
    let mut log = Vec::new();
    let entries = disk.list(&directory).map_err(|error| error.to_string())?;
    for entry in entries.iter().filter(|entry| is_segment(&entry.name)) {
        let path = format!("{directory}/{}", entry.name);
        let Ok(Some(bytes)) = disk.read_all(&path, 1 << 30) else {
            continue;
        };
        let mut rest = &bytes[..];
        while let Ok((batch, after)) = BatchView::split_first(rest) {
            batch
                .verify()
                .map_err(|error| format!("S14: {path} holds a damaged batch: {error}"))?;
            let base = batch.header().base_offset.get();
            for frame in batch.frames() {
                log.push((base + u64::from(frame.offset_delta()), frame.id()));
            }
            rest = after;
        }
    }
    log.retain(|(offset, _)| *offset >= log_start);
    Ok(log)
}
