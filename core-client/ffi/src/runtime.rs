//! One runtime per process, made at first use.
//!
//! A forked child has the memory of its parent but none of its threads: a call on the parent's runtime would wait for
//! ever, its own deadline included. So the runtime remembers its process, and a child makes one of its own. Nothing here
//! takes a lock, because another thread of the parent may have held it when the process forked.
//!
//! Its threads take no signals: a signal to the process is for a thread of the language, whose handlers may not run on
//! any other.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use nix::sys::signal::{SigSet, Signal};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::Failure;

struct OfProcess {
    process: u32,
    runtime: Runtime,
}

static CURRENT: ArcSwapOption<OfProcess> = ArcSwapOption::const_empty();

/// The runtime of this process.
///
/// # Errors
/// The system gave no threads.
pub fn handle() -> Result<Handle, Failure> {
    let process = std::process::id();
    if let Some(current) = &*CURRENT.load()
        && current.process == process
    {
        return Ok(current.runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("iggy")
        .on_thread_start(block_signals)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(&format!("no runtime: {error}")))?;
    let made = Arc::new(OfProcess { process, runtime });
    let before = CURRENT.rcu(|current| match current {
        // Another thread of this process was quicker.
        Some(other) if other.process == process => Some(Arc::clone(other)),
        _ => Some(Arc::clone(&made)),
    });
    if let Some(before) = before {
        // Its threads are another process's, or it is the one in use: either way it is not ours to end.
        std::mem::forget(before);
    }
    let current = CURRENT.load_full();
    Ok(current.map_or_else(
        || made.runtime.handle().clone(),
        |current| current.runtime.handle().clone(),
    ))
}

/// Blocks every signal that comes from outside; what a thread does wrong itself still ends the process at once.
fn block_signals() {
    let mut blocked = SigSet::all();
    for own in [
        Signal::SIGBUS,
        Signal::SIGFPE,
        Signal::SIGILL,
        Signal::SIGSEGV,
        Signal::SIGTRAP,
    ] {
        blocked.remove(own);
    }
    // It fails for a set that is malformed, which this one is not.
    let _ = blocked.thread_block();
}

/// Threads of the runtime. A client is bound by its sockets; two keep one slow conversion from holding up another.
const WORKERS: usize = 2;

/// Ends the runtime without waiting for what it runs: for the end of a process whose language must not be called into any
/// more. A later call makes a new one.
pub fn stop() {
    let Some(current) = CURRENT.swap(None) else { return };
    if current.process != std::process::id() {
        return std::mem::forget(current);
    }
    match Arc::try_unwrap(current) {
        Ok(current) => current.runtime.shutdown_background(),
        // Somebody is just taking its handle; the process is ending, and with it the threads.
        Err(shared) => std::mem::forget(shared),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_thread_of_the_runtime_when_asked_should_block_signals_and_leave_ours_alone() {
        let masks = async {
            (
                SigSet::thread_get_mask(),
                tokio::task::spawn_blocking(SigSet::thread_get_mask).await,
            )
        };
        let (of_worker, of_other) = handle().unwrap().block_on(handle().unwrap().spawn(masks)).unwrap();
        for mask in [of_worker.unwrap(), of_other.unwrap().unwrap()] {
            assert!(mask.contains(Signal::SIGTERM) && mask.contains(Signal::SIGUSR1));
            assert!(!mask.contains(Signal::SIGSEGV));
        }
        assert!(!SigSet::thread_get_mask().unwrap().contains(Signal::SIGTERM));
    }

    #[test]
    fn given_many_threads_when_they_ask_at_once_should_all_get_the_same_runtime() {
        let asked = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| handle().unwrap().id())).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(asked.iter().all(|id| *id == asked[0]), "{asked:?}");
    }
}
