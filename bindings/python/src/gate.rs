//! The way of the client's threads into the interpreter, which is shut before the interpreter ends.
//!
//! A thread that asks for an interpreter that is ending is ended by it, through frames of Rust, which aborts the process.
//! So the end of the interpreter waits for the threads that are inside or on their way, and lets no other in.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

#[derive(Debug)]
struct Gate {
    inside: usize,
    shut: bool,
}

static GATE: Mutex<Gate> = Mutex::new(Gate { inside: 0, shut: false });
static EMPTY: Condvar = Condvar::new();

/// A callback of the application that never returns must not keep the process from ending.
const PATIENCE: Duration = Duration::from_secs(5);

struct Inside;

impl Inside {
    fn enter() -> Option<Self> {
        let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
        if gate.shut {
            return None;
        }
        gate.inside += 1;
        Some(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
        gate.inside -= 1;
        if gate.inside == 0 {
            EMPTY.notify_all();
        }
    }
}

/// Runs `call` with the interpreter; `None` when that is ending.
pub fn attach<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _inside = Inside::enter()?;
    Python::try_attach(call)
}

/// Lets nobody in any more and waits for those that are.
pub fn shut(py: Python<'_>) {
    py.detach(|| {
        let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
        gate.shut = true;
        let waited = EMPTY.wait_timeout_while(gate, PATIENCE, |gate| gate.inside > 0);
        drop(waited);
    });
}
