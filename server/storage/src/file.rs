//! The file backend: a bounded pool of threads over files below one directory.
//!
//! Jobs of one lane keep their order; a worker that picks a lane runs all that waits in it before it gives the lane
//! back, so a busy partition pays one wake-up for many writes. Threads are started as they are needed.
//!
//! A job of small writes whose lane is empty is run where it is submitted: such a write is a copy into the page cache,
//! which takes less time than waking a thread and being woken by it. Whatever may wait for the device goes to the pool.

use crate::{Completion, FileId, IoToken, Job, LaneId, Step, Storage, StorageError};
use bytes::{Bytes, BytesMut};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path as FsPath, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes held in memory while a range is written again.
const REWRITE_CHUNK: u64 = 1 << 20;

/// Bytes of a job of writes that is run where it is submitted. Small, because a kernel that has too many dirty pages makes
/// writers wait in proportion to what they write.
const AT_ONCE_MAX: usize = 16 << 10;

/// Pieces of one write; the kernel takes no more.
const PIECES_MAX: usize = 1024;

/// Called after completions were queued; must be quick and must not call back into the storage.
pub type Notify = Arc<dyn Fn() + Send + Sync>;

/// A [`Storage`] over real files.
pub struct FileStorage {
    shared: Arc<Shared>,
    threads_max: usize,
}

struct Shared {
    root: PathBuf,
    queue: Mutex<Queue>,
    work: Condvar,
    files: Mutex<HashMap<FileId, Arc<OpenFile>>>,
    completed: Mutex<Vec<Completion>>,
    notify: Notify,
}

#[derive(Default)]
struct Queue {
    lanes: HashMap<LaneId, Lane>,
    /// Lanes with work that no worker holds.
    ready: VecDeque<LaneId>,
    threads: usize,
    idle: usize,
    closed: bool,
}

#[derive(Default)]
struct Lane {
    jobs: VecDeque<(IoToken, Job)>,
    held: bool,
}

struct OpenFile {
    file: File,
    path: PathBuf,
    poisoned: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panicked left a consistent queue behind: every update below is a single step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileStorage {
    /// Keeps files below `root`, with at most `threads_max` (at least 1) jobs at once.
    pub fn new(root: impl Into<PathBuf>, threads_max: usize, notify: Notify) -> Self {
        let shared = Shared {
            root: root.into(),
            queue: Mutex::default(),
            work: Condvar::new(),
            files: Mutex::default(),
            completed: Mutex::default(),
            notify,
        };
        Self {
            shared: Arc::new(shared),
            threads_max: threads_max.max(1),
        }
    }
}

/// Whether a job is nothing but small writes.
fn is_small(job: &Job) -> bool {
    let mut left = AT_ONCE_MAX;
    job.iter().all(|step| match step {
        Step::Write { pieces, .. } => {
            let bytes: usize = pieces.iter().map(Bytes::len).sum();
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        }
        _ => false,
    })
}

impl Storage for FileStorage {
    fn submit(&mut self, lane: LaneId, token: IoToken, job: Job) {
        let mut queue = lock(&self.shared.queue);
        if is_small(&job) && !queue.lanes.contains_key(&lane) {
            // Nothing of this lane is under way, and only its owner adds to it.
            drop(queue);
            return self.shared.finish(token, job);
        }
        let entry = queue.lanes.entry(lane).or_default();
        entry.jobs.push_back((token, job));
        if entry.held || entry.jobs.len() > 1 {
            return;
        }
        queue.ready.push_back(lane);
        if queue.idle < queue.ready.len() && queue.threads < self.threads_max {
            let shared = Arc::clone(&self.shared);
            let spawned = std::thread::Builder::new()
                .name("storage".into())
                .spawn(move || shared.work());
            match spawned {
                Ok(_) => queue.threads += 1,
                // With at least one worker the job only waits longer; without any it would wait for ever.
                Err(error) => assert!(queue.threads > 0, "no storage thread could be started: {error}"),
            }
        }
        drop(queue);
        self.shared.work.notify_one();
    }

    fn completions(&mut self, out: &mut Vec<Completion>) {
        out.append(&mut lock(&self.shared.completed));
    }
}

impl Drop for FileStorage {
    fn drop(&mut self) {
        // Workers end after the lanes they hold; nobody waits for them here.
        lock(&self.shared.queue).closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            let Some(id) = queue.ready.pop_front() else {
                if queue.closed {
                    queue.threads -= 1;
                    return;
                }
                queue.idle += 1;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                continue;
            };
            let Some(lane) = queue.lanes.get_mut(&id) else { continue };
            lane.held = true;
            let jobs = std::mem::take(&mut lane.jobs);
            drop(queue);
            for (token, job) in jobs {
                self.finish(token, job);
            }
            queue = lock(&self.queue);
            let more = queue.lanes.get_mut(&id).is_some_and(|lane| {
                lane.held = false;
                !lane.jobs.is_empty()
            });
            if more {
                queue.ready.push_back(id);
            } else {
                queue.lanes.remove(&id);
            }
        }
    }

    fn finish(&self, token: IoToken, job: Job) {
        let result = self.run(job);
        lock(&self.completed).push(Completion { token, result });
        (self.notify)();
    }

    fn run(&self, job: Job) -> Result<Vec<Bytes>, StorageError> {
        let mut reads = Vec::new();
        for step in job {
            if let Some(bytes) = self.step(step)? {
                reads.push(bytes);
            }
        }
        Ok(reads)
    }

    fn step(&self, step: Step) -> Result<Option<Bytes>, StorageError> {
        match step {
            Step::CreateDirectory(path) => self.at("create directory", &path, |path| std::fs::create_dir_all(path))?,
            Step::SyncDirectory(path) => self.at("sync directory", &path, |path| File::open(path)?.sync_all())?,
            Step::RemoveDirectory(path) => {
                self.at("remove directory", &path, |path| gone(std::fs::remove_dir_all(path)))?;
            }
            Step::Remove(path) => self.at("remove", &path, |path| gone(std::fs::remove_file(path)))?,
            Step::Rename { from, to } => {
                let to = self.root.join(to);
                self.at("rename", &from, |from| std::fs::rename(from, to))?;
            }
            Step::Open { file, path, create } => {
                let path = self.root.join(path);
                let opened = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(create)
                    .truncate(false)
                    .open(&path);
                let opened = opened.map_err(|error| StorageError::io("open", path.display(), &error))?;
                let opened = OpenFile {
                    file: opened,
                    path,
                    poisoned: AtomicBool::new(false),
                };
                lock(&self.files).insert(file, Arc::new(opened));
            }
            Step::Close(file) => drop(lock(&self.files).remove(&file)),
            Step::Write { file, offset, pieces } => self.open(file)?.write(offset, &pieces)?,
            Step::Read { file, offset, length } => return self.open(file)?.read(offset, length).map(Some),
            Step::Truncate { file, length } => {
                let file = self.open(file)?;
                file.file
                    .set_len(length)
                    .map_err(|error| StorageError::io("truncate", file.path.display(), &error))?;
            }
            Step::Rewrite { file, offset, length } => self.open(file)?.rewrite(offset, length)?,
            Step::Reserve { file, length } => self.open(file)?.reserve(length)?,
            Step::Sync(files) => self.sync(&files)?,
        }
        Ok(None)
    }

    fn at(
        &self,
        operation: &'static str,
        path: &str,
        action: impl FnOnce(&FsPath) -> io::Result<()>,
    ) -> Result<(), StorageError> {
        let path = self.root.join(path);
        action(&path).map_err(|error| StorageError::io(operation, path.display(), &error))
    }

    fn open(&self, file: FileId) -> Result<Arc<OpenFile>, StorageError> {
        let open = lock(&self.files)
            .get(&file)
            .cloned()
            .ok_or(StorageError::NotOpen(file))?;
        if open.poisoned.load(Ordering::Acquire) {
            return Err(StorageError::Poisoned {
                subject: open.path.display().to_string(),
            });
        }
        Ok(open)
    }

    fn sync(&self, files: &[FileId]) -> Result<(), StorageError> {
        let open = files
            .iter()
            .map(|file| self.open(*file))
            .collect::<Result<Vec<_>, _>>()?;
        let Some((first, rest)) = open.split_first() else {
            return Ok(());
        };
        if rest.is_empty() {
            return first.sync();
        }
        // Two syncs of one commit share the wait for the device.
        std::thread::scope(|scope| {
            let others: Vec<_> = rest.iter().map(|file| scope.spawn(|| file.sync())).collect();
            let mut result = first.sync();
            for other in others {
                result = result.and(
                    other
                        .join()
                        .unwrap_or(Err(StorageError::Poisoned { subject: "sync".into() })),
                );
            }
            result
        })
    }
}

/// A missing file is as good as a removed one.
fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl OpenFile {
    fn write(&self, offset: u64, pieces: &[Bytes]) -> Result<(), StorageError> {
        self.write_pieces(offset, pieces)
            .map_err(|error| StorageError::io("write", self.path.display(), &error))
    }

    fn write_pieces(&self, offset: u64, pieces: &[Bytes]) -> io::Result<()> {
        if let [piece] = pieces {
            return self.file.write_all_at(piece, offset);
        }
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut left: &mut [IoSlice<'_>] = &mut slices;
        let mut offset = offset;
        while !left.is_empty() {
            match rustix::io::pwritev(&self.file, &left[..left.len().min(PIECES_MAX)], offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    offset += count as u64;
                    IoSlice::advance_slices(&mut left, count);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read(&self, offset: u64, length: u32) -> Result<Bytes, StorageError> {
        let mut buffer = BytesMut::zeroed(length as usize);
        match self.file.read_exact_at(&mut buffer, offset) {
            Ok(()) => Ok(buffer.freeze()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(StorageError::ShortRead {
                subject: self.path.display().to_string(),
                offset,
                length,
            }),
            Err(error) => Err(StorageError::io("read", self.path.display(), &error)),
        }
    }

    fn rewrite(&self, offset: u64, length: u64) -> Result<(), StorageError> {
        let end = offset.saturating_add(length);
        let mut at = offset;
        while at < end {
            let bytes = self.read(at, (end - at).min(REWRITE_CHUNK) as u32)?;
            self.write(at, std::slice::from_ref(&bytes))?;
            at += bytes.len() as u64;
        }
        Ok(())
    }

    fn reserve(&self, length: u64) -> Result<(), StorageError> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, length) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(StorageError::io("reserve space", self.path.display(), &error.into())),
        }
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_data().map_err(|error| {
            self.poisoned.store(true, Ordering::Release);
            StorageError::io("sync", self.path.display(), &error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    fn storage(root: &FsPath) -> (FileStorage, mpsc::Receiver<()>) {
        let (sender, receiver) = mpsc::channel();
        let sender = Mutex::new(sender);
        let notify: Notify = Arc::new(move || {
            let _ = lock(&sender).send(());
        });
        (FileStorage::new(root, 4, notify), receiver)
    }

    fn wait(storage: &mut FileStorage, notified: &mpsc::Receiver<()>, count: usize) -> Vec<Completion> {
        let mut out = Vec::new();
        while out.len() < count {
            notified
                .recv_timeout(Duration::from_mins(1))
                .expect("a job never completed");
            storage.completions(&mut out);
        }
        out
    }

    #[test]
    fn given_many_jobs_of_one_lane_when_run_should_keep_their_order() {
        let root = tempfile::tempdir().unwrap();
        let (mut storage, notified) = storage(root.path());
        let file = FileId(1);
        storage.submit(
            LaneId(7),
            IoToken(0),
            vec![Step::Open {
                file,
                path: "f".into(),
                create: true,
            }],
        );
        for index in 0..200_u8 {
            let pieces = vec![Bytes::from(vec![index; 3]), Bytes::from(vec![index; 2])];
            storage.submit(
                LaneId(7),
                IoToken(u64::from(index) + 1),
                vec![Step::Write {
                    file,
                    offset: 0,
                    pieces,
                }],
            );
        }
        let read = vec![
            Step::Sync(vec![file]),
            Step::Read {
                file,
                offset: 0,
                length: 5,
            },
        ];
        storage.submit(LaneId(7), IoToken(999), read);
        let done = wait(&mut storage, &notified, 202);
        assert!(done.iter().map(|completion| completion.token.0).is_sorted());
        assert_eq!(done.last().unwrap().result.as_ref().unwrap()[0].as_ref(), [199; 5]);
    }

    #[test]
    fn given_reserved_space_when_looked_at_should_not_lengthen_the_file() {
        let root = tempfile::tempdir().unwrap();
        let (mut storage, notified) = storage(root.path());
        let file = FileId(1);
        let job = vec![
            Step::Open {
                file,
                path: "f".into(),
                create: true,
            },
            Step::Reserve { file, length: 1 << 20 },
            Step::Write {
                file,
                offset: 0,
                pieces: vec![Bytes::from_static(b"x")],
            },
        ];
        storage.submit(LaneId(1), IoToken(1), job);
        assert!(wait(&mut storage, &notified, 1)[0].result.is_ok());
        let metadata = std::fs::metadata(root.path().join("f")).unwrap();
        assert_eq!(metadata.len(), 1);
        assert!(std::os::unix::fs::MetadataExt::blocks(&metadata) * 512 >= 1 << 20);
    }

    #[test]
    fn given_a_read_beyond_the_end_when_run_should_say_so() {
        let root = tempfile::tempdir().unwrap();
        let (mut storage, notified) = storage(root.path());
        let job = vec![
            Step::Open {
                file: FileId(1),
                path: "f".into(),
                create: true,
            },
            Step::Read {
                file: FileId(1),
                offset: 10,
                length: 4,
            },
        ];
        storage.submit(LaneId(1), IoToken(1), job);
        let done = wait(&mut storage, &notified, 1);
        assert!(matches!(
            done[0].result,
            Err(StorageError::ShortRead {
                offset: 10,
                length: 4,
                ..
            })
        ));
    }

    #[test]
    fn given_a_range_when_written_again_should_leave_every_byte_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..REWRITE_CHUNK * 2 + 77).map(|at| (at % 251) as u8).collect();
        std::fs::write(root.path().join("f"), &content).unwrap();
        let (mut storage, notified) = storage(root.path());
        let file = FileId(1);
        let path = "f".to_owned();
        let rewrite = |offset, length| Step::Rewrite { file, offset, length };
        let open = Step::Open {
            file,
            path,
            create: false,
        };
        let length = content.len() as u64;
        storage.submit(
            LaneId(1),
            IoToken(1),
            vec![open, rewrite(5, length - 5), Step::Sync(vec![file])],
        );
        storage.submit(LaneId(1), IoToken(2), vec![rewrite(5, length)]);
        let done = wait(&mut storage, &notified, 2);
        assert!(done[0].result.is_ok());
        assert!(matches!(done[1].result, Err(StorageError::ShortRead { .. })));
        assert!(std::fs::read(root.path().join("f")).unwrap() == content);
    }

    #[test]
    fn given_a_file_that_was_never_opened_when_written_should_refuse() {
        let root = tempfile::tempdir().unwrap();
        let (mut storage, notified) = storage(root.path());
        storage.submit(LaneId(1), IoToken(1), vec![Step::Sync(vec![FileId(5)])]);
        let done = wait(&mut storage, &notified, 1);
        assert_eq!(done[0].result.as_ref().unwrap_err(), &StorageError::NotOpen(FileId(5)));
    }

    #[test]
    fn given_small_writes_when_the_lane_is_empty_should_be_done_at_once_and_otherwise_keep_their_order() {
        let directory = tempfile::tempdir().unwrap();
        let notify: Notify = Arc::new(|| {});
        let mut storage = FileStorage::new(directory.path(), 1, notify);
        let file = FileId(1);
        let write = |offset: u64, byte: u8, length: usize| {
            vec![Step::Write {
                file,
                offset,
                pieces: vec![Bytes::from(vec![byte; length])],
            }]
        };
        let mut completed = Vec::new();
        let wait_for = |storage: &mut FileStorage, completed: &mut Vec<Completion>, count: usize| {
            while completed.len() < count {
                storage.completions(completed);
                std::thread::yield_now();
            }
        };
        let open = Step::Open {
            file,
            path: "a".into(),
            create: true,
        };
        storage.submit(LaneId(1), IoToken(1), vec![open]);
        wait_for(&mut storage, &mut completed, 1);
        // The worker gives the lane back after the completion is seen.
        while !lock(&storage.shared.queue).lanes.is_empty() {
            std::thread::yield_now();
        }
        storage.submit(LaneId(1), IoToken(2), write(0, 1, 100));
        storage.completions(&mut completed);
        assert_eq!(completed.len(), 2, "it was done where it was submitted");
        // A large write and a small one over it: the second must not overtake the first.
        storage.submit(LaneId(1), IoToken(3), write(0, 2, AT_ONCE_MAX + 1));
        storage.submit(LaneId(1), IoToken(4), write(0, 3, 10));
        wait_for(&mut storage, &mut completed, 4);
        let tokens: Vec<u64> = completed.iter().map(|completion| completion.token.0).collect();
        assert_eq!(tokens, [1, 2, 3, 4]);
        let bytes = std::fs::read(directory.path().join("a")).unwrap();
        assert_eq!((bytes[0], bytes[9], bytes[10], bytes[AT_ONCE_MAX]), (3, 3, 2, 2));
    }

    #[test]
    fn given_more_pieces_than_the_kernel_takes_when_written_should_write_all_in_their_places() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a");
        let file = OpenFile {
            file: File::create_new(&path).unwrap(),
            path: path.clone(),
            poisoned: AtomicBool::new(false),
        };
        let pieces: Vec<Bytes> = (0..2 * PIECES_MAX + 3)
            .map(|index| Bytes::from(vec![(index % 251) as u8; 3]))
            .collect();
        file.write(4, &pieces).unwrap();
        let written = std::fs::read(path).unwrap();
        assert_eq!(written[..4], [0; 4]);
        assert_eq!(written[4..], pieces.concat());
    }
}
