//! The storage a node sees: jobs end one by one, when the world says so.

use iggy_storage::memory::{MemoryDisk, MemoryStorage};
use iggy_storage::{Completion, IoToken, Job, LaneId, Storage};
use std::cell::RefCell;
use std::rc::Rc;

/// Whether a path is that of a segment.
pub fn is_segment(path: &str) -> bool {
    path.strip_suffix(".log").is_some()
}

/// Storage whose jobs wait for the world.
#[derive(Clone, Debug)]
pub struct PacedStorage {
    storage: Rc<RefCell<MemoryStorage>>,
    done: Rc<RefCell<Vec<Completion>>>,
}

impl PacedStorage {
    /// Over a disk; `seed` decides which lane goes next.
    pub fn new(disk: &MemoryDisk, seed: u64) -> Self {
        Self {
            storage: Rc::new(RefCell::new(disk.storage(seed))),
            done: Rc::default(),
        }
    }

    /// Runs one job. False when there is none, or the disk died at it.
    pub fn run_one(&self) -> bool {
        let ended = self.storage.borrow_mut().run_one();
        match ended {
            Some(completion) => {
                self.done.borrow_mut().push(completion);
                true
            }
            None => false,
        }
    }

    /// Whether no job waits.
    pub fn is_idle(&self) -> bool {
        self.storage.borrow().is_idle()
    }
}

impl Storage for PacedStorage {
    fn submit(&mut self, lane: LaneId, token: IoToken, job: Job) {
        self.storage.borrow_mut().submit(lane, token, job);
    }

    fn completions(&mut self, out: &mut Vec<Completion>) {
        out.append(&mut self.done.borrow_mut());
    }
}
