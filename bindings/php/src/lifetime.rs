//! What outlives an object: persistent clients, which live as long as their process, and what background producers still
//! buffer when a request ends.
//!
//! All of it belongs to the one thread of PHP. A forked child forgets what its parent made.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ext_php_rs::error::php_error;
use ext_php_rs::flags::ErrorType;
use ext_php_rs::prelude::PhpResult;
use iggy::{IggyClient, IggyProducer};
use iggy_ffi::call::{self, CancellationToken};
use iggy_ffi::{Failure, runtime};

use crate::failure::{self, OrThrow, invalid};
use crate::partitioner;

/// Persistent clients of one process. More than a few are a mistake: a name made of something that varies.
const MOST_PERSISTENT: usize = 64;

/// Failures of background sends that are kept until somebody looks.
const MOST_FAILURES: usize = 1000;

/// How long the end of a request waits for what is buffered, by all producers together.
const FLUSH_DEADLINE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct OfProcess {
    process: u32,
    clients: HashMap<String, IggyClient>,
    buffering: Vec<(IggyProducer, Arc<Failures>)>,
}

thread_local! {
    static OF_PROCESS: RefCell<OfProcess> = RefCell::default();
}

fn with<T>(then: impl FnOnce(&mut OfProcess) -> T) -> T {
    OF_PROCESS.with_borrow_mut(|found| {
        let process = std::process::id();
        if found.process != process {
            // Of the parent, whose tasks and sockets they are.
            let made = OfProcess {
                process,
                ..OfProcess::default()
            };
            std::mem::forget(std::mem::replace(found, made));
        }
        then(found)
    })
}

/// The client of this name, or a new one.
pub fn persistent(name: &str, make: impl FnOnce() -> Result<IggyClient, Failure>) -> PhpResult<IggyClient> {
    with(|found| {
        if let Some(client) = found.clients.get(name) {
            return Ok(client.clone());
        }
        if found.clients.len() >= MOST_PERSISTENT {
            let message = format!("there are {MOST_PERSISTENT} persistent clients in this process already");
            return Err(invalid(message));
        }
        let client = make().or_throw()?;
        found.clients.insert(name.to_owned(), client.clone());
        Ok(client)
    })
}

/// The client of this name was shut down: the next one is new.
pub fn forget(name: &str) {
    drop(with(|found| found.clients.remove(name)));
}

/// What could not be sent in the background, oldest first.
#[derive(Default)]
pub struct Failures(Mutex<VecDeque<Failure>>);

impl Failures {
    /// Adds one; the oldest goes when there are too many.
    pub fn add(&self, failure: Failure) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MOST_FAILURES {
            kept.pop_front();
        }
        kept.push_back(failure);
    }

    /// Takes all.
    pub fn take(&self) -> VecDeque<Failure> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A producer that buffers: the end of the request waits for it.
pub fn buffers(producer: &IggyProducer, failures: &Arc<Failures>) {
    with(|found| found.buffering.push((producer.clone(), Arc::clone(failures))));
}

/// It was shut down, and what was to be heard of it is its owner's to ask for.
pub fn buffers_no_more(failures: &Arc<Failures>) {
    let ended = with(|found| {
        let place = found.buffering.iter().position(|(_, each)| Arc::ptr_eq(each, failures));
        place.map(|place| found.buffering.swap_remove(place))
    });
    drop(ended);
}

fn flush() {
    let end = Instant::now() + FLUSH_DEADLINE;
    for (producer, failures) in with(|found| std::mem::take(&mut found.buffering)) {
        let token = CancellationToken::new();
        let ended = call::wait(
            async { producer.shutdown().await },
            Some(end.saturating_duration_since(Instant::now())),
            &token,
        );
        let mut lost = failures.take();
        lost.extend(ended.err());
        for failure in lost {
            let message = format!("a background producer could not send: {}", failure.message);
            php_error(&ErrorType::Warning, &message.replace('\0', "?"));
        }
        let runtime = runtime::handle().ok();
        let _guard = runtime.as_ref().map(tokio::runtime::Handle::enter);
        drop(producer);
    }
}

/// The module is loaded.
pub extern "C" fn process_starts(_kind: i32, _module: i32) -> i32 {
    i32::from(failure::register().is_err())
}

/// The request is over: what is buffered is sent, within a deadline, and what could not be is said.
pub extern "C" fn request_ends(_kind: i32, _module: i32) -> i32 {
    flush();
    partitioner::forget_all();
    0
}

/// The process is over. Its connections close with it.
pub extern "C" fn process_ends(_kind: i32, _module: i32) -> i32 {
    let left = OF_PROCESS.take();
    if left.process == std::process::id() && !left.clients.is_empty() {
        let runtime = runtime::handle().ok();
        let _guard = runtime.as_ref().map(tokio::runtime::Handle::enter);
        drop(left);
    } else {
        std::mem::forget(left);
    }
    runtime::stop();
    0
}
