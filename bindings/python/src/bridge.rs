//! Futures of the core as asyncio futures, or as calls that wait.
//!
//! Nothing of Python is held by a task of the runtime except the loop and the future it must complete, and those are
//! touched only while the interpreter is there: a worker that ends a call after the interpreter began to end drops it.

use std::future::Future;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use iggy_ffi::Failure;
use iggy_ffi::call::{self, CancellationToken};
use iggy_ffi::handout::{Delivery, Source};
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

use crate::failure::{OrRaise, exception};
use crate::gate;

/// How often a waiting thread looks for an interrupt.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

type Arrive = Box<dyn FnOnce(bool) + Send>;

/// Something that was read and is on its way to its caller, who may have given up. Not taken, it is read again.
#[pyclass(frozen, module = "iggy._native")]
pub struct Delivered {
    object: Py<PyAny>,
    arrive: Mutex<Option<Arrive>>,
}

impl Delivered {
    fn arrive(&self, taken: bool) {
        let arrive = self.arrive.lock().ok().and_then(|mut arrive| arrive.take());
        if let Some(arrive) = arrive {
            arrive(taken);
        }
    }
}

#[pymethods]
impl Delivered {
    /// What was read; it counts as taken.
    fn take(&self, py: Python<'_>) -> Py<PyAny> {
        self.arrive(true);
        self.object.clone_ref(py)
    }

    /// Nobody takes it: the next read returns it.
    fn give_back(&self) {
        self.arrive(false);
    }
}

/// Runs `future`: as an asyncio future of `event_loop`, or on this thread when there is none. `convert` makes the result.
pub fn run<T, E, F, C>(py: Python<'_>, event_loop: Option<Py<PyAny>>, future: F, convert: C) -> PyResult<Py<PyAny>>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    match event_loop {
        Some(event_loop) => asynchronous(py, event_loop, future, convert),
        None => waiting(py, future, convert),
    }
}

/// As [`run`], for a read: its result is a [`Delivered`].
pub fn run_read<S, F, C>(py: Python<'_>, event_loop: Option<Py<PyAny>>, read: F, convert: C) -> PyResult<Py<PyAny>>
where
    S: Source<Item: Sync>,
    S: Sync,
    F: Future<Output = Result<Delivery<S>, Failure>> + Send + 'static,
    C: FnOnce(Python<'_>, &S::Item) -> PyResult<Py<PyAny>> + Send + 'static,
{
    let convert = |py: Python<'_>, delivery: Delivery<S>| {
        let object = match delivery.item() {
            Some(item) => convert(py, item)?,
            None => py.None(),
        };
        let arrive = move |taken| {
            if taken {
                delivery.accept();
            }
        };
        let delivered = Delivered {
            object,
            arrive: Mutex::new(Some(Box::new(arrive))),
        };
        Ok(Py::new(py, delivered)?.into_any())
    };
    run(py, event_loop, read, convert)
}

fn asynchronous<T, E, F, C>(py: Python<'_>, event_loop: Py<PyAny>, future: F, convert: C) -> PyResult<Py<PyAny>>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    let promised = event_loop.call_method0(py, "create_future")?;
    let token = CancellationToken::new();
    let cancel = token.clone();
    let watcher = PyCFunction::new_closure(py, None, None, move |arguments, _| -> PyResult<()> {
        if arguments.get_item(0)?.call_method0("cancelled")?.is_truthy()? {
            cancel.cancel();
        }
        Ok(())
    })?;
    promised.call_method1(py, "add_done_callback", (watcher,))?;
    let target = promised.clone_ref(py);
    call::start(future, token, move |ended| {
        // A result that nobody converts is dropped, and so goes back.
        let _ = gate::attach(|py| {
            let converted = match ended {
                Ok(value) => convert(py, value),
                Err(failure) => Err(exception(py, &failure)),
            };
            // The loop may be closed by now: then nobody waits any more.
            let _ = deliver(py, &event_loop, &target, converted);
            drop((event_loop, target));
        });
    })
    .or_raise(py)?;
    Ok(promised)
}

fn deliver(
    py: Python<'_>,
    event_loop: &Py<PyAny>,
    target: &Py<PyAny>,
    converted: PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let settle = py.import("iggy._settle")?;
    let (method, value) = match converted {
        Ok(value) => (settle.getattr("result")?, value),
        Err(error) => (settle.getattr("exception")?, error.into_value(py).into_any()),
    };
    event_loop.call_method1(py, "call_soon_threadsafe", (method, target, value))
}

fn waiting<T, E, F, C>(py: Python<'_>, future: F, convert: C) -> PyResult<Py<PyAny>>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>>,
{
    let token = CancellationToken::new();
    let (sender, mut ended) = mpsc::sync_channel(1);
    call::start(future, token.clone(), move |result| drop(sender.send(result))).or_raise(py)?;
    loop {
        let (received, waited) = py.detach(move || (ended.recv_timeout(INTERRUPT_INTERVAL), ended));
        ended = waited;
        match received {
            Ok(result) => return convert(py, result.or_raise(py)?),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    // What arrives all the same is dropped with the channel, and so goes back.
                    token.cancel();
                    return Err(interrupt);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(exception(py, &Failure::internal(&"the call ended without a result")));
            }
        }
    }
}

/// For calls that return nothing.
pub fn nothing(py: Python<'_>, (): ()) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}
