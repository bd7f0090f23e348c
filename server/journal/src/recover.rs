//! The reading side: what a directory says happened, as a pure function.

use crate::journal::{FileNumbers, Journal};
use crate::planted::{self, Bug};
use crate::record::{BodyLocation, Decoded, decode, find};
use crate::superblock::{BootId, Superblock};
use crate::{CHECKPOINT_LEN_MAX, GENERATION_LEN_MAX, checkpoint_path, journal_path, superblock_path};
use bytes::Bytes;
use iggy_consensus::{Ending, LogEnd, PrepareHeader, VsrState};
use iggy_storage::image::Image;
use iggy_storage::{FileId, Job, Step};
use std::io;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Body of a journaled prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// In the journal itself.
    Inline(Bytes),
    /// In a segment of the partition.
    InSegment(BodyLocation),
}

/// A prepare that the journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its header.
    pub header: Arc<PrepareHeader>,
    /// Its body, or where that is.
    pub body: Body,
}

/// What the group promised, and whether the machine may have forgotten written bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// This boot of the machine.
    pub boot: BootId,
    /// Whether some acknowledgement of the group does not wait for stable storage.
    pub volatile: bool,
    /// Whether nothing of the directory counts but who it belongs to: what the journal names is damaged, and the other
    /// members of the group have it.
    pub discard: bool,
}

/// Writes that may have been acknowledged and are gone, within what the group promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// First op that is missing.
    pub from_op: u64,
    /// Newest op the directory proves to have been committed, if it proves one.
    pub proved_op: Option<u64>,
}

/// A group as its directory describes it.
#[derive(Debug)]
pub struct Recovered {
    /// The writing side, ready for [`Recovered::open`] to be run.
    pub journal: Journal,
    /// Steps that repair the directory and open its files; run them before anything else on the group's lane.
    pub open: Job,
    /// State of the newest checkpoint.
    pub checkpoint: Option<Vec<u8>>,
    /// Prepares after the checkpoint, in order, each the parent of the next.
    pub records: Vec<Record>,
    /// End of the log.
    pub end: LogEnd,
    /// What was lost. The caller must show it to an operator and give the group a new history.
    pub loss: Option<Loss>,
    /// Whether nothing had ever been written here.
    pub fresh: bool,
}

/// Why a directory cannot be used. It is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Reading failed.
    #[error("reading {path}: {source}")]
    Io {
        /// File or directory.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// Both copies of the superblock are unreadable although the group has written.
    #[error("{directory}: both copies of the superblock are damaged, but the journal holds writes")]
    Superblock {
        /// Directory of the group.
        directory: String,
    },
    /// The directory belongs to someone else.
    #[error("{directory} belongs to {found}, not to {expected}")]
    Foreign {
        /// Directory of the group.
        directory: String,
        /// Identity in the superblock.
        found: String,
        /// Identity asked for.
        expected: String,
    },
    /// The checkpoint is missing or damaged.
    #[error("{path}: the checkpoint is missing or damaged (expected {length} bytes with checksum {checksum:032x})")]
    Checkpoint {
        /// File.
        path: String,
        /// Length the superblock names.
        length: u64,
        /// Checksum the superblock names.
        checksum: u128,
    },
    /// A committed prepare is damaged.
    #[error("{path} is damaged at byte {offset}: op {op} was committed (op {proved_op} proves it) and cannot be read")]
    Damage {
        /// File.
        path: String,
        /// Where the damage starts.
        offset: u64,
        /// First op that cannot be read.
        op: u64,
        /// Op that was known to be committed.
        proved_op: u64,
    },
}

/// Reads the directory of a group.
///
/// `verify` says whether the batch of a record lies intact where the record says. `fresh` is the state of a group that
/// has never been here.
pub fn recover(
    image: &dyn Image,
    directory: &str,
    fresh: VsrState,
    policy: Policy,
    numbers: &mut FileNumbers,
    verify: &mut dyn FnMut(&PrepareHeader, &BodyLocation) -> io::Result<bool>,
) -> Result<Recovered, RecoverError> {
    let superblock = read_superblock(image, directory, &fresh)?;
    let is_fresh = superblock.is_none();
    let mut superblock = superblock.unwrap_or(Superblock {
        sequence: 0,
        state: fresh,
        checkpoint: crate::Checkpoint::default(),
        generation: 1,
        boot: policy.boot,
        clean: false,
    });
    let members = fresh.replica_count > 1;
    let mut checkpoint = read_checkpoint(image, directory, &superblock);
    let mut ending = Ending::Blank;
    if members && (checkpoint.is_err() || policy.discard) {
        // Others have what is gone here. Nothing of this directory counts any more but who it belongs to.
        let newest = list_generations(image, directory, 0)?.into_iter().max().unwrap_or(0);
        superblock.checkpoint = crate::Checkpoint::default();
        superblock.generation = newest + 1;
        ending = Ending::Damaged;
        checkpoint = Ok(None);
    }
    let checkpoint = checkpoint?;
    let generations = list_generations(image, directory, superblock.generation)?;
    let scan = Scan::run(image, directory, &superblock, &generations, verify)?;

    let rebooted = superblock.boot != policy.boot;
    let forgotten = rebooted && policy.volatile && !superblock.clean && !is_fresh;
    let loss = match scan.damage {
        // The same boot still has every byte that was written, so a hole is damage, whatever was promised.
        Some(damage) if !(rebooted && policy.volatile || members) => return Err(damage),
        Some(RecoverError::Damage { op, proved_op, .. }) => Some(Loss {
            from_op: op,
            proved_op: Some(proved_op),
        }),
        Some(other) => return Err(other),
        None if forgotten => Some(Loss {
            from_op: scan.end.op + 1,
            proved_op: None,
        }),
        None => None,
    };
    if members {
        // The group decides together what is lost; this replica only says what it cannot vouch for.
        let found = match &loss {
            _ if forgotten => Ending::Volatile,
            Some(_) => Ending::Damaged,
            None if scan.trailing => Ending::Torn,
            None => Ending::Blank,
        };
        ending = ending.max(found).max(superblock.state.ending);
    } else if loss.is_some() && !planted::has(Bug::SilentLoss) {
        superblock.state.history += 1;
    }
    let suspect = members && ending != Ending::Blank;
    superblock.state.ending = ending;

    let active = scan.generation;
    let mut open = vec![Step::CreateDirectory(directory.to_owned())];
    open.extend(
        generations
            .iter()
            .filter(|generation| **generation > active)
            .map(|generation| Step::Remove(journal_path(directory, *generation))),
    );
    // What is served from now on must not depend on what the last process had left unsynced.
    for generation in generations.iter().filter(|generation| **generation < active) {
        let file = numbers.take();
        let path = journal_path(directory, *generation);
        let length = at(&path, image.length(&path))?.unwrap_or_default();
        open.push(Step::Open {
            file,
            path,
            create: true,
        });
        open.extend(store_again(file, 0, length));
        open.push(Step::Close(file));
    }
    let length = if planted::has(Bug::KeepTornTail) {
        at(directory, image.length(&journal_path(directory, active)))?.unwrap_or_default()
    } else {
        scan.length
    };
    let replaced = leftovers(image, directory, &superblock)?;
    let (mut journal, steps) = Journal::open(directory, superblock, active, length, numbers);
    open.extend(steps);
    if suspect {
        // Before the bytes that gave rise to it are cut.
        if !is_fresh {
            open.extend(journal.store_superblock_again());
        }
        open.extend(parents(directory).map(Step::SyncDirectory));
        open.extend(journal.persist_state(superblock.state));
    }
    let path = journal_path(directory, active);
    let file = numbers.take();
    open.push(Step::Open {
        file,
        path: path.clone(),
        create: true,
    });
    open.push(Step::Truncate { file, length });
    open.extend(store_again(file, 0, length));
    open.extend(parents(directory).map(Step::SyncDirectory));
    if !is_fresh && !suspect {
        // The copy that was read may be on no disk yet, and marking overwrites the one before it.
        open.extend(journal.store_superblock_again());
    }
    // From here on this boot writes: only a clean stop may say otherwise again.
    open.extend(journal.mark(policy.boot, false));
    // Appends wait behind these steps and find no file when one of them failed: a journal with prepares in it and no
    // superblock could not be told from one whose superblocks are damaged.
    open.push(Step::Close(file));
    open.push(Step::Open {
        file: journal.files().active,
        path,
        create: false,
    });
    // Only now does no copy of the superblock name them.
    open.extend(replaced);
    Ok(Recovered {
        journal,
        open,
        checkpoint,
        records: scan.records,
        end: scan.end,
        loss,
        fresh: is_fresh,
    })
}

/// Steps that bring bytes which were read to the device, whatever earlier syncs of the file said. A sync that failed may
/// have left bytes in memory that the kernel no longer means to write, and that the next sync would pass over.
pub fn store_again(file: FileId, offset: u64, length: u64) -> [Step; 2] {
    let length = if planted::has(Bug::BelieveFreshSync) { 0 } else { length };
    [Step::Rewrite { file, offset, length }, Step::Sync(vec![file])]
}

/// Removes what a checkpoint replaced, or left when it was interrupted.
fn leftovers(image: &dyn Image, directory: &str, superblock: &Superblock) -> Result<Job, RecoverError> {
    let number = |name: &str, prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
    let is_left = |name: &str| {
        number(name, "journal.").is_some_and(|generation| generation < superblock.generation)
            || number(name, "checkpoint.").is_some_and(|op| op != superblock.checkpoint.op)
    };
    let entries = at(directory, image.list(directory))?;
    let left = entries.iter().filter(|entry| is_left(&entry.name));
    Ok(left
        .map(|entry| Step::Remove(format!("{directory}/{}", entry.name)))
        .collect())
}

/// The directory and those above it, innermost first.
fn parents(directory: &str) -> impl Iterator<Item = String> + '_ {
    let above = directory.rmatch_indices('/').map(|(at, _)| directory[..at].to_owned());
    std::iter::once(directory.to_owned())
        .chain(above)
        .chain(std::iter::once(String::new()))
}

fn at<T>(path: &str, result: io::Result<T>) -> Result<T, RecoverError> {
    result.map_err(|source| RecoverError::Io {
        path: path.to_owned(),
        source,
    })
}

/// The newest intact superblock. When a copy is damaged, the other one may be the older: for a member of a group that
/// makes everything it says of views doubtful.
fn read_superblock(image: &dyn Image, directory: &str, fresh: &VsrState) -> Result<Option<Superblock>, RecoverError> {
    let mut newest: Option<Superblock> = None;
    let mut damaged = false;
    for copy in 0..2 {
        let path = superblock_path(directory, copy);
        let bytes = at(&path, image.read_all(&path, 1 << 20))?;
        let Some(found) = bytes.as_deref().and_then(Superblock::decode) else {
            damaged |= bytes.is_some_and(|bytes| !bytes.is_empty());
            continue;
        };
        if newest.is_none_or(|newest| newest.sequence < found.sequence) {
            newest = Some(found);
        }
    }
    let Some(mut found) = newest else {
        // A directory whose creation was cut short has nothing in its journal.
        let written = list_generations(image, directory, 0)?.into_iter().any(|generation| {
            image
                .length(&journal_path(directory, generation))
                .ok()
                .flatten()
                .is_some_and(|length| length > 0)
        });
        let error = RecoverError::Superblock {
            directory: directory.to_owned(),
        };
        return if written { Err(error) } else { Ok(None) };
    };
    let identity = |state: &VsrState| (state.cluster, state.group, state.replica, state.replica_count);
    if identity(&found.state) != identity(fresh) {
        return Err(RecoverError::Foreign {
            directory: directory.to_owned(),
            found: format!("{:?}", identity(&found.state)),
            expected: format!("{:?}", identity(fresh)),
        });
    }
    if damaged && fresh.replica_count > 1 {
        found.state.ending = Ending::Amnesia;
    }
    Ok(Some(found))
}

fn read_checkpoint(
    image: &dyn Image,
    directory: &str,
    superblock: &Superblock,
) -> Result<Option<Vec<u8>>, RecoverError> {
    let checkpoint = superblock.checkpoint;
    if checkpoint.op == 0 {
        return Ok(None);
    }
    let path = checkpoint_path(directory, checkpoint.op);
    let bytes = at(&path, image.read_all(&path, CHECKPOINT_LEN_MAX))?;
    match bytes {
        Some(bytes) if bytes.len() as u64 == checkpoint.length && xxh3_128(&bytes) == checkpoint.state_checksum => {
            Ok(Some(bytes))
        }
        _ => Err(RecoverError::Checkpoint {
            path,
            length: checkpoint.length,
            checksum: checkpoint.state_checksum,
        }),
    }
}

fn list_generations(image: &dyn Image, directory: &str, from: u64) -> Result<Vec<u64>, RecoverError> {
    let entries = at(directory, image.list(directory))?;
    let numbers = entries
        .iter()
        .filter_map(|entry| entry.name.strip_prefix("journal.")?.parse::<u64>().ok());
    Ok(numbers.filter(|generation| *generation >= from).collect())
}

/// A record and where it lies.
struct Found {
    record: Record,
    generation: u64,
    position: u64,
}

struct Scan {
    records: Vec<Record>,
    end: LogEnd,
    /// Generation that takes the next append, and the bytes of it to keep.
    generation: u64,
    length: u64,
    damage: Option<RecoverError>,
    /// Whether bytes follow what is kept.
    trailing: bool,
}

impl Scan {
    fn run(
        image: &dyn Image,
        directory: &str,
        superblock: &Superblock,
        generations: &[u64],
        verify: &mut dyn FnMut(&PrepareHeader, &BodyLocation) -> io::Result<bool>,
    ) -> Result<Self, RecoverError> {
        let at_checkpoint = LogEnd {
            op: superblock.checkpoint.op,
            checksum: superblock.checkpoint.prepare_checksum,
            timestamp: superblock.checkpoint.timestamp,
        };
        let mut chain = Chain {
            base: None,
            found: Vec::new(),
            checkpoint: at_checkpoint,
        };
        let mut scan = Self {
            records: Vec::new(),
            end: at_checkpoint,
            generation: superblock.generation,
            length: 0,
            damage: None,
            trailing: false,
        };
        // Bytes after the break, by generation.
        let mut rest: Vec<(u64, usize, Vec<u8>)> = Vec::new();
        for generation in generations {
            let path = journal_path(directory, *generation);
            let bytes = at(&path, image.read_all(&path, GENERATION_LEN_MAX))?.unwrap_or_default();
            let mut from = 0;
            if rest.is_empty() {
                scan.generation = *generation;
                from = chain.take_prefix(&bytes, *generation);
                scan.length = from as u64;
                if from >= bytes.len() {
                    continue;
                }
            }
            rest.push((*generation, from, bytes));
        }
        scan.trailing = !rest.is_empty();
        scan.keep(directory, chain, &rest, verify)?;
        Ok(scan)
    }

    /// Takes what of the chain follows the checkpoint and has its batches.
    fn keep(
        &mut self,
        directory: &str,
        chain: Chain,
        rest: &[(u64, usize, Vec<u8>)],
        verify: &mut dyn FnMut(&PrepareHeader, &BodyLocation) -> io::Result<bool>,
    ) -> Result<(), RecoverError> {
        let checkpoint = chain.checkpoint;
        let mut proved = None;
        let mut broken = rest.first().map(|(generation, from, _)| (*generation, *from as u64));
        let mut whole = true;
        // Nothing before the checkpoint is needed.
        for Found {
            record,
            generation,
            position,
        } in chain.found
        {
            let header = &record.header;
            if header.op.get() <= checkpoint.op {
                continue;
            }
            let path = journal_path(directory, generation);
            let intact = whole && header.parent.get() == self.end.checksum && header.op.get() == self.end.op + 1;
            let intact = intact
                && match &record.body {
                    Body::InSegment(location) if !planted::has(Bug::SkipBatchCheck) => {
                        at(&path, verify(header, location))?
                    }
                    _ => true,
                };
            if intact {
                self.end = header.end();
                self.records.push(record);
                continue;
            }
            if whole {
                whole = false;
                self.trailing = true;
                (self.generation, self.length) = (generation, position);
                broken = Some((generation, position));
            }
            if header.commit.get() > self.end.op {
                proved = proved.max(Some(header.commit.get()));
            }
        }
        for (generation, from, bytes) in rest {
            proved = proved.max(proof_beyond(bytes, *from, *generation, self.end.op + 1));
        }
        if let (Some(proved_op), Some((generation, offset))) = (proved, broken) {
            self.damage = Some(RecoverError::Damage {
                path: journal_path(directory, generation),
                offset,
                op: self.end.op + 1,
                proved_op,
            });
        }
        Ok(())
    }
}

/// Records as they follow one another. A rewind takes back those after a position.
struct Chain {
    /// Position before the first record, once a rewind has named it.
    base: Option<LogEnd>,
    found: Vec<Found>,
    checkpoint: LogEnd,
}

impl Chain {
    /// Takes intact records that continue the chain; returns where they end.
    fn take_prefix(&mut self, bytes: &[u8], generation: u64) -> usize {
        let mut position = 0;
        while position < bytes.len() {
            let length = match decode(&bytes[position..], generation) {
                Decoded::Intact { header, body, length } if self.follows(&header) => {
                    self.found.push(Found {
                        record: Record { header, body },
                        generation,
                        position: position as u64,
                    });
                    length
                }
                Decoded::Rewind { to, length } => {
                    let kept = self
                        .found
                        .partition_point(|found| found.record.header.op.get() <= to.op);
                    self.found.truncate(kept);
                    if kept == 0 {
                        self.base = Some(to);
                    }
                    length
                }
                Decoded::Intact { .. } | Decoded::Broken => break,
            };
            position += length;
        }
        // Padding that a tear cut off comes back as zeros: the next record must start aligned.
        position
    }

    fn follows(&self, header: &PrepareHeader) -> bool {
        let before = self.found.last().map(|found| found.record.header.end()).or(self.base);
        let before = match before {
            Some(before) => before,
            // The generation that was left by an unfinished checkpoint starts before the checkpoint that counts.
            None if header.op.get() <= self.checkpoint.op => return true,
            None => self.checkpoint,
        };
        header.op.get() == before.op + 1 && header.parent.get() == before.checksum
    }
}

/// The newest commit that an intact record after the break proves, if it reaches `op`. A prepare names what its primary
/// knew to be committed; without such a proof what follows the break was in flight and nobody was told of it.
fn proof_beyond(bytes: &[u8], from: usize, generation: u64, op: u64) -> Option<u64> {
    let mut proved = None;
    let mut position = from;
    while let Some(at) = find(bytes, position) {
        position = match decode(&bytes[at..], generation) {
            Decoded::Intact { header, length, .. } => {
                let commit = header.commit.get();
                if commit >= op {
                    proved = proved.max(Some(commit));
                }
                at + length
            }
            Decoded::Rewind { length, .. } => at + length,
            Decoded::Broken => at + crate::record::ALIGNMENT,
        };
    }
    proved
}
