//! A disk in memory that can die in the two ways a node dies.
//!
//! * [`MemoryDisk::crash`]: the process ends. What was written stays, what was only submitted is gone.
//! * [`MemoryDisk::lose_power`]: of what was written but not synced, any subset of sectors survives; of a directory's
//!   unsynced entries, any prefix of the changes survives.
//!
//! [`MemoryDisk::die_after`] stops the disk at any step, so that a test can enumerate every point of failure: the step
//! before is whole, and a write that was next may have got some way. [`MemoryDisk::fail_next_sync`] makes one sync fail
//! and drop the pages it should have written, [`MemoryDisk::fill_after`] makes the disk full. Writes can also fail, get
//! lost or land elsewhere, bits can flip at rest, and files become unreadable.

use crate::image::{Entry, Image};
use crate::{Completion, FileId, IoToken, Job, LaneId, Path, Step, Storage, StorageError};
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SECTOR: usize = 512;

/// The platters: what outlives a [`MemoryStorage`]. Clones share the same content.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    files: BTreeMap<u64, FileContent>,
    next_inode: u64,
    entries: BTreeMap<Path, u64>,
    durable_entries: BTreeMap<Path, u64>,
    directories: BTreeSet<Path>,
    /// Changes of entries since their directory was last synced, in order.
    entry_changes: Vec<EntryChange>,
    steps: u64,
    dies_at: Option<u64>,
    died: bool,
    sync_failures: u64,
    /// Writes to files with this ending that will be acknowledged and not happen, and those that will land elsewhere.
    lost_writes: Option<(&'static str, u64)>,
    misdirected_writes: Option<(&'static str, u64)>,
    /// Files of which a part cannot be read.
    unreadable: BTreeSet<u64>,
    write_failures: u64,
    /// Bytes that files may still grow by; `None` without a bound.
    room: Option<u64>,
}

#[derive(Clone, Debug)]
enum EntryChange {
    Link { path: Path, inode: u64 },
    Unlink { path: Path },
    Rename { from: Path, to: Path, inode: u64 },
}

#[derive(Clone, Debug, Default)]
struct FileContent {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Ranges written since the last sync, and lengths set.
    unsynced: Vec<(usize, usize)>,
}

/// Whether a fault that was asked for strikes a write to this file.
fn struck(fault: &mut Option<(&'static str, u64)>, path: &str) -> bool {
    match fault {
        Some((suffix, count)) if *count > 0 && path.ends_with(*suffix) => {
            *count -= 1;
            true
        }
        _ => false,
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl MemoryDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// A storage over this disk. `seed` decides which lane goes next whenever several have work.
    pub fn storage(&self, seed: u64) -> MemoryStorage {
        MemoryStorage {
            disk: self.clone(),
            lanes: BTreeMap::new(),
            open: BTreeMap::new(),
            poisoned: BTreeSet::new(),
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// Steps the disk has performed so far.
    pub fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// Performs `steps` more steps, then none until the next [`crash`](Self::crash) or [`lose_power`](Self::lose_power).
    /// When the step after them is a write, some first part of it may still happen.
    pub fn die_after(&self, steps: u64) {
        let mut content = self.lock();
        content.dies_at = Some(content.steps + steps);
    }

    /// Whether the disk has refused a step because of [`die_after`](Self::die_after).
    pub fn is_dead(&self) -> bool {
        self.lock().died
    }

    /// Lets files grow by `bytes` in all; a write or a new length beyond that fails as on a full device, and does
    /// nothing. `None` takes the bound away.
    pub fn fill_after(&self, bytes: Option<u64>) {
        self.lock().room = bytes;
    }

    /// The next `count` syncs fail, and what they should have made durable never will be.
    pub fn fail_next_sync(&self, count: u64) {
        self.lock().sync_failures = count;
    }

    /// The next `count` writes to files whose path ends with `suffix` are acknowledged and do not happen.
    pub fn lose_next_writes(&self, suffix: &'static str, count: u64) {
        self.lock().lost_writes = Some((suffix, count));
    }

    /// The next `count` writes to files whose path ends with `suffix` land one sector further.
    pub fn misdirect_next_writes(&self, suffix: &'static str, count: u64) {
        self.lock().misdirected_writes = Some((suffix, count));
    }

    /// The next `count` writes fail with an error of the device.
    pub fn fail_next_writes(&self, count: u64) {
        self.lock().write_failures = count;
    }

    /// From now on reads of a file fail, until it is removed. False when there is no such file.
    pub fn make_unreadable(&self, path: &str) -> bool {
        let mut content = self.lock();
        let Some(inode) = content.entries.get(path).copied() else {
            return false;
        };
        content.unreadable.insert(inode)
    }

    /// How many of the faults asked for lie still ahead: lost, misdirected and failed writes, and failed syncs.
    pub fn faults_ahead(&self) -> [u64; 4] {
        let content = self.lock();
        let ahead = |fault: Option<(&str, u64)>| fault.map_or(0, |(_, count)| count);
        [
            ahead(content.lost_writes),
            ahead(content.misdirected_writes),
            content.write_failures,
            content.sync_failures,
        ]
    }

    /// Takes back every fault that lies ahead. Damage that is done stays.
    pub fn heal(&self) {
        let mut content = self.lock();
        content.lost_writes = None;
        content.misdirected_writes = None;
        content.write_failures = 0;
        content.sync_failures = 0;
        content.room = None;
        content.unreadable.clear();
    }

    /// Paths of all files.
    pub fn paths(&self) -> Vec<Path> {
        self.lock().entries.keys().cloned().collect()
    }

    /// Ends the process: written bytes stay as they are. Clears [`die_after`](Self::die_after).
    pub fn crash(&self) {
        let mut content = self.lock();
        content.dies_at = None;
        content.died = false;
    }

    /// Cuts the power: of everything not synced, `seed` decides what survives.
    pub fn lose_power(&self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut content = self.lock();
        content.dies_at = None;
        content.died = false;
        content.lose_entries(&mut random);
        for file in content.files.values_mut() {
            file.lose_sectors(&mut random);
        }
    }

    /// Flips one bit at rest; for tests of damage. False when the file does not reach that far.
    pub fn flip_bit(&self, path: &str, offset: u64, bit: u8) -> bool {
        let mut content = self.lock();
        let Some(inode) = content.entries.get(path).copied() else {
            return false;
        };
        let file = content.files.entry(inode).or_default();
        let Some(byte) = usize::try_from(offset).ok().and_then(|at| file.current.get_mut(at)) else {
            return false;
        };
        *byte ^= 1 << (bit % 8);
        let flipped = *byte;
        if let Some(byte) = usize::try_from(offset).ok().and_then(|at| file.durable.get_mut(at)) {
            *byte = flipped;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// Takes the room for a file to reach `end` bytes.
    fn grow(&mut self, operation: &'static str, path: &str, inode: u64, end: usize) -> Result<(), StorageError> {
        let length = self.files.get(&inode).map_or(0, |file| file.current.len());
        let growth = end.saturating_sub(length) as u64;
        match &mut self.room {
            Some(room) if *room < growth => Err(StorageError::io(operation, path, &io::ErrorKind::StorageFull.into())),
            Some(room) => {
                *room -= growth;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn lose_entries(&mut self, random: &mut StdRng) {
        let changes = std::mem::take(&mut self.entry_changes);
        let directories: BTreeSet<Path> = changes.iter().map(|change| change.directory().to_owned()).collect();
        for directory in directories {
            let own: Vec<_> = changes
                .iter()
                .filter(|change| change.directory() == directory)
                .collect();
            let kept = random.random_range(0..=own.len());
            for change in &own[..kept] {
                change.apply(&mut self.durable_entries);
            }
        }
        self.entries = self.durable_entries.clone();
    }

    fn sync_directory(&mut self, directory: &str) {
        let changes = std::mem::take(&mut self.entry_changes);
        for change in changes {
            if change.directory() == directory {
                change.apply(&mut self.durable_entries);
            } else {
                self.entry_changes.push(change);
            }
        }
    }

    fn change(&mut self, change: EntryChange) {
        change.apply(&mut self.entries);
        self.entry_changes.push(change);
    }

    fn remove_directory(&mut self, directory: &str) {
        let prefix = format!("{directory}/");
        let inside: Vec<Path> = self
            .entries
            .keys()
            .filter(|path| path.starts_with(&prefix))
            .cloned()
            .collect();
        for path in inside {
            self.change(EntryChange::Unlink { path });
        }
        self.directories
            .retain(|path| path != directory && !path.starts_with(&prefix));
    }
}

impl EntryChange {
    fn directory(&self) -> &str {
        match self {
            Self::Link { path, .. } | Self::Unlink { path } => parent(path),
            Self::Rename { to, .. } => parent(to),
        }
    }

    fn apply(&self, entries: &mut BTreeMap<Path, u64>) {
        match self {
            Self::Link { path, inode } => drop(entries.insert(path.clone(), *inode)),
            Self::Unlink { path } => drop(entries.remove(path)),
            Self::Rename { from, to, inode } => {
                entries.remove(from);
                entries.insert(to.clone(), *inode);
            }
        }
    }
}

impl FileContent {
    fn write(&mut self, offset: usize, piece: &[u8]) {
        let end = offset + piece.len();
        if self.current.len() < end {
            self.current.resize(end, 0);
        }
        self.current[offset..end].copy_from_slice(piece);
        self.unsynced.push((offset, end));
    }

    fn sync(&mut self) {
        self.durable.resize(self.current.len(), 0);
        for (start, end) in self.unsynced.drain(..) {
            let end = end.min(self.current.len());
            if start < end {
                self.durable[start..end].copy_from_slice(&self.current[start..end]);
            }
        }
    }

    fn lose_sectors(&mut self, random: &mut StdRng) {
        // The new length may or may not have reached the disk; the bytes of every touched sector likewise.
        if self.current.len() != self.durable.len() && random.random() {
            let length = if self.current.len() > self.durable.len() {
                random.random_range(self.durable.len()..=self.current.len())
            } else {
                self.current.len()
            };
            self.durable.resize(length, 0);
        }
        let touched: BTreeSet<usize> = self
            .unsynced
            .drain(..)
            .flat_map(|(start, end)| start / SECTOR..end.div_ceil(SECTOR))
            .collect();
        for sector in touched {
            let start = sector * SECTOR;
            let end = (start + SECTOR).min(self.durable.len()).min(self.current.len());
            if start < end && random.random() {
                self.durable[start..end].copy_from_slice(&self.current[start..end]);
            }
        }
        self.current = self.durable.clone();
    }
}

/// The process's view of a [`MemoryDisk`]: its queues and open files, which end with it.
#[derive(Debug)]
pub struct MemoryStorage {
    disk: MemoryDisk,
    lanes: BTreeMap<LaneId, VecDeque<(IoToken, Job)>>,
    open: BTreeMap<FileId, (Path, u64)>,
    poisoned: BTreeSet<FileId>,
    random: StdRng,
}

impl Storage for MemoryStorage {
    fn submit(&mut self, lane: LaneId, token: IoToken, job: Job) {
        self.lanes.entry(lane).or_default().push_back((token, job));
    }

    fn completions(&mut self, out: &mut Vec<Completion>) {
        while let Some(completion) = self.run_one() {
            out.push(completion);
        }
    }
}

impl MemoryStorage {
    /// Whether no job waits.
    pub fn is_idle(&self) -> bool {
        self.lanes.is_empty()
    }

    /// From now on this seed decides which lane goes next.
    pub fn reseed(&mut self, seed: u64) {
        self.random = StdRng::seed_from_u64(seed);
    }

    /// The write at which the disk dies gets some way, as one that the kernel was in the middle of.
    fn tear(&mut self, step: &Step) {
        let Step::Write { file, offset, pieces } = step else {
            return;
        };
        let Ok((_, inode)) = self.file(*file) else { return };
        let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        let torn = self.random.random_range(0..whole.len().max(1));
        if torn > 0 {
            let mut content = self.disk.lock();
            let target = content.files.entry(inode).or_default();
            target.write(*offset as usize, &whole[..torn]);
        }
    }

    /// Runs one job of a lane the seed picks; `None` when nothing waits or the disk died.
    pub fn run_one(&mut self) -> Option<Completion> {
        if self.lanes.is_empty() {
            return None;
        }
        let picked = self.random.random_range(0..self.lanes.len());
        let lane = *self.lanes.keys().nth(picked)?;
        let jobs = self.lanes.get_mut(&lane)?;
        let (token, job) = jobs.pop_front()?;
        if jobs.is_empty() {
            self.lanes.remove(&lane);
        }
        let mut reads = Vec::new();
        for step in job {
            let died = {
                let mut content = self.disk.lock();
                if content.died {
                    return None;
                }
                content.died = content.dies_at.is_some_and(|at| content.steps >= at);
                content.steps += u64::from(!content.died);
                content.died
            };
            if died {
                self.tear(&step);
                return None;
            }
            match self.step(step) {
                Ok(read) => reads.extend(read),
                Err(error) => {
                    return Some(Completion {
                        token,
                        result: Err(error),
                    });
                }
            }
        }
        Some(Completion {
            token,
            result: Ok(reads),
        })
    }

    fn file(&self, file: FileId) -> Result<(Path, u64), StorageError> {
        let (path, inode) = self.open.get(&file).ok_or(StorageError::NotOpen(file))?;
        if self.poisoned.contains(&file) {
            return Err(StorageError::Poisoned { subject: path.clone() });
        }
        Ok((path.clone(), *inode))
    }

    fn step(&mut self, step: Step) -> Result<Option<Bytes>, StorageError> {
        let disk = self.disk.clone();
        let mut content = disk.lock();
        match step {
            Step::CreateDirectory(path) => drop(content.directories.insert(path)),
            Step::SyncDirectory(path) => content.sync_directory(&path),
            Step::RemoveDirectory(path) => content.remove_directory(&path),
            Step::Open { file, path, create } => {
                let existing = content.entries.get(&path).copied();
                if existing.is_none() && !create {
                    return Err(StorageError::io("open", path, &io::ErrorKind::NotFound.into()));
                }
                let inode = existing.unwrap_or_else(|| {
                    content.next_inode += 1;
                    let inode = content.next_inode;
                    content.change(EntryChange::Link {
                        path: path.clone(),
                        inode,
                    });
                    inode
                });
                content.files.entry(inode).or_default();
                self.open.insert(file, (path, inode));
            }
            Step::Close(file) => drop(self.open.remove(&file)),
            Step::Write { file, offset, pieces } => {
                let (path, inode) = self.file(file)?;
                let mut offset = offset as usize;
                if content.write_failures > 0 {
                    content.write_failures -= 1;
                    return Err(StorageError::io("write", path, &io::Error::other("injected")));
                }
                if struck(&mut content.lost_writes, &path) {
                    return Ok(None);
                }
                if struck(&mut content.misdirected_writes, &path) {
                    offset += SECTOR;
                }
                let end = offset + pieces.iter().map(Bytes::len).sum::<usize>();
                content.grow("write", &path, inode, end)?;
                let target = content.files.entry(inode).or_default();
                for piece in pieces {
                    target.write(offset, &piece);
                    offset += piece.len();
                }
            }
            Step::Read { file, offset, length } => {
                let (path, inode) = self.file(file)?;
                if content.unreadable.contains(&inode) {
                    return Err(StorageError::io("read", path, &io::Error::other("injected")));
                }
                let start = offset as usize;
                let read = content
                    .files
                    .get(&inode)
                    .and_then(|f| f.current.get(start..start + length as usize));
                let read = read.ok_or(StorageError::ShortRead {
                    subject: path,
                    offset,
                    length,
                })?;
                return Ok(Some(Bytes::copy_from_slice(read)));
            }
            Step::Truncate { file, length } => {
                let (path, inode) = self.file(file)?;
                content.grow("truncate", &path, inode, length as usize)?;
                content
                    .files
                    .entry(inode)
                    .or_default()
                    .current
                    .resize(length as usize, 0);
            }
            Step::Rewrite { file, offset, length } => {
                let (path, inode) = self.file(file)?;
                let target = content.files.entry(inode).or_default();
                let end = (offset + length) as usize;
                if target.current.len() < end {
                    return Err(StorageError::ShortRead {
                        subject: path,
                        offset,
                        length: u32::try_from(length).unwrap_or(u32::MAX),
                    });
                }
                target.unsynced.push((offset as usize, end));
            }
            // Space is never short here unless a test says so.
            Step::Reserve { file, .. } => drop(self.file(file)?),
            Step::Sync(files) => {
                for file in files {
                    let (path, inode) = self.file(file)?;
                    let fails = content.sync_failures > 0;
                    let target = content.files.entry(inode).or_default();
                    if fails {
                        target.unsynced.clear();
                        content.sync_failures -= 1;
                        self.poisoned.insert(file);
                        return Err(StorageError::io("sync", path, &io::Error::other("injected")));
                    }
                    target.sync();
                }
            }
            Step::Rename { from, to } => {
                let inode = content.entries.get(&from).copied();
                let inode = inode.ok_or_else(|| StorageError::io("rename", &from, &io::ErrorKind::NotFound.into()))?;
                content.change(EntryChange::Rename { from, to, inode });
            }
            Step::Remove(path) => {
                if content.entries.contains_key(&path) {
                    content.change(EntryChange::Unlink { path });
                }
            }
        }
        Ok(None)
    }
}

impl Image for MemoryDisk {
    fn list(&self, directory: &str) -> io::Result<Vec<Entry>> {
        let content = self.lock();
        let prefix = if directory.is_empty() {
            String::new()
        } else {
            format!("{directory}/")
        };
        let mut found = BTreeMap::new();
        for (path, inode) in &content.entries {
            let Some(rest) = path.strip_prefix(&prefix) else {
                continue;
            };
            let entry = if let Some((name, _)) = rest.split_once('/') {
                Entry {
                    name: name.to_owned(),
                    length: 0,
                    directory: true,
                }
            } else {
                let length = content.files.get(inode).map_or(0, |file| file.current.len() as u64);
                Entry {
                    name: rest.to_owned(),
                    length,
                    directory: false,
                }
            };
            found.insert(entry.name.clone(), entry);
        }
        Ok(found.into_values().collect())
    }

    fn length(&self, path: &str) -> io::Result<Option<u64>> {
        let content = self.lock();
        let inode = content.entries.get(path);
        Ok(inode.map(|inode| content.files.get(inode).map_or(0, |file| file.current.len() as u64)))
    }

    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let content = self.lock();
        let inode = content.entries.get(path).ok_or(io::ErrorKind::NotFound)?;
        if content.unreadable.contains(inode) {
            return Err(io::Error::other("injected"));
        }
        let bytes = content.files.get(inode).map_or(&[][..], |file| file.current.as_slice());
        let start = (offset as usize).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(1);
    const LANE: LaneId = LaneId(1);

    fn run(disk: &MemoryDisk, job: Job) -> Result<Vec<Bytes>, StorageError> {
        let mut storage = disk.storage(1);
        storage.submit(LANE, IoToken(1), job);
        storage.run_one().expect("the disk died").result
    }

    fn write(offset: u64, bytes: &'static [u8]) -> Step {
        Step::Write {
            file: FILE,
            offset,
            pieces: vec![Bytes::from_static(bytes)],
        }
    }

    fn open(path: &str) -> Step {
        Step::Open {
            file: FILE,
            path: path.into(),
            create: true,
        }
    }

    #[test]
    fn given_written_bytes_when_the_process_crashes_should_keep_them() {
        let disk = MemoryDisk::new();
        run(&disk, vec![open("a/f"), write(0, b"hello")]).unwrap();
        disk.crash();
        assert_eq!(disk.read_all("a/f", 100).unwrap().unwrap(), b"hello");
    }

    #[test]
    fn given_synced_bytes_and_entry_when_power_is_lost_should_keep_them() {
        for seed in 0..50 {
            let disk = MemoryDisk::new();
            let job = vec![
                open("a/f"),
                write(0, b"hello"),
                Step::Sync(vec![FILE]),
                Step::SyncDirectory("a".into()),
            ];
            run(&disk, job).unwrap();
            disk.lose_power(seed);
            assert_eq!(disk.read_all("a/f", 100).unwrap().unwrap(), b"hello");
        }
    }

    #[test]
    fn given_a_missing_sync_of_file_or_directory_when_power_is_lost_should_lose_it_for_some_seed() {
        let lost = |job: Job| {
            (0..50).any(|seed| {
                let disk = MemoryDisk::new();
                run(&disk, job.clone()).unwrap();
                disk.lose_power(seed);
                disk.read_all("a/f", 100).unwrap().as_deref() != Some(b"hello")
            })
        };
        assert!(lost(vec![open("a/f"), write(0, b"hello"), Step::Sync(vec![FILE])]));
        assert!(lost(vec![
            open("a/f"),
            write(0, b"hello"),
            Step::SyncDirectory("a".into())
        ]));
    }

    #[test]
    fn given_a_failed_sync_when_used_again_should_stay_poisoned_and_lose_the_bytes() {
        let disk = MemoryDisk::new();
        let mut storage = disk.storage(1);
        disk.fail_next_sync(1);
        storage.submit(
            LANE,
            IoToken(1),
            vec![open("f"), write(0, b"x"), Step::Sync(vec![FILE])],
        );
        storage.submit(LANE, IoToken(2), vec![Step::Sync(vec![FILE])]);
        assert!(matches!(
            storage.run_one().unwrap().result,
            Err(StorageError::Io { .. })
        ));
        assert!(matches!(
            storage.run_one().unwrap().result,
            Err(StorageError::Poisoned { .. })
        ));
    }

    #[test]
    fn given_a_full_disk_when_written_should_say_so_and_take_what_needs_no_room() {
        let disk = MemoryDisk::new();
        disk.fill_after(Some(3));
        let mut storage = disk.storage(1);
        storage.submit(LANE, IoToken(1), vec![open("f"), write(0, b"abc"), write(1, b"xyz")]);
        assert!(storage.run_one().unwrap().result.unwrap_err().is_full());
        storage.submit(LANE, IoToken(2), vec![write(1, b"xy")]);
        assert!(storage.run_one().unwrap().result.is_ok());
        disk.fill_after(None);
        storage.submit(LANE, IoToken(3), vec![write(3, b"defg")]);
        assert!(storage.run_one().unwrap().result.is_ok());
        assert_eq!(disk.read_all("f", 10).unwrap().unwrap(), b"axydefg");
    }

    #[test]
    fn given_a_disk_that_dies_in_a_write_when_read_should_hold_some_first_part_of_it() {
        let mut lengths = BTreeSet::new();
        for seed in 0..50 {
            let disk = MemoryDisk::new();
            disk.die_after(1);
            let mut storage = disk.storage(seed);
            storage.submit(LANE, IoToken(1), vec![open("f"), write(0, b"hello")]);
            assert!(storage.run_one().is_none() && disk.is_dead());
            disk.crash();
            let read = disk.read_all("f", 10).unwrap().unwrap();
            assert!(b"hello".starts_with(&read) && read.len() < 5);
            lengths.insert(read.len());
        }
        assert_eq!(lengths.len(), 5);
    }

    #[test]
    fn given_a_disk_that_dies_when_reached_should_do_no_further_step() {
        let disk = MemoryDisk::new();
        disk.die_after(2);
        let mut storage = disk.storage(1);
        storage.submit(LANE, IoToken(1), vec![open("f"), write(0, b"x"), write(1, b"y")]);
        assert!(storage.run_one().is_none());
        disk.crash();
        assert_eq!(disk.read_all("f", 10).unwrap().unwrap(), b"x");
    }
}
