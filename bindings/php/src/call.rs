//! Calls: they wait on the thread of PHP, or go on beside it as a [`Pending`].
//!
//! A call runs on the runtime of the client. A thread of PHP that waits for it answers partitioners, and looks up at a short
//! interval for signals that the application handles: a handler runs while a call waits, and what it throws ends the call.
//! Every future of the core may be dropped; what a read had brought then comes with the next one.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use ext_php_rs::exception::PhpException;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};
use ext_php_rs::zend::{ExecutorGlobals, Function};
use iggy::{ErrorCode, IggyError};
use iggy_ffi::call::{self, CancellationToken};
use iggy_ffi::handout::{Delivery, Source};
use iggy_ffi::{Failure, runtime};

use crate::failure::{OrThrow, exception, invalid};
use crate::partitioner::{self, Ask, Desk};

/// How often a call that waits looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// Whether the next call goes on by itself instead of waiting.
    static BEGINS: Cell<bool> = const { Cell::new(false) };
    /// The call that went on by itself.
    static BEGUN: RefCell<Option<Pending>> = const { RefCell::new(None) };
}

/// Runs the handlers of signals that came, as the application wrote them. What one of them throws is pending afterwards.
fn run_signal_handlers() -> Result<(), PhpException> {
    if let Some(dispatch) = Function::try_from_function("pcntl_signal_dispatch") {
        let _ = dispatch.try_call(vec![]);
    }
    if ExecutorGlobals::has_exception() {
        // Not thrown: the engine keeps the pending one.
        return Err(PhpException::from_message("a signal handler threw".to_owned()));
    }
    Ok(())
}

fn over(limit: Duration) -> Failure {
    let message = format!("the call was not over within {limit:?}");
    IggyError::new(ErrorCode::TaskTimeout, message).into()
}

/// A time in microseconds.
pub fn duration(what: &str, micros: Option<i64>) -> PhpResult<Option<Duration>> {
    let convert = |micros: i64| u64::try_from(micros).map(Duration::from_micros);
    let converted = micros.map(convert).transpose();
    converted.map_err(|_| invalid(format!("{what} is negative, expected microseconds from 0")))
}

/// Runs a call: to its end on this thread, or beside it when a [`Pending`] was asked for. `convert` makes the result.
pub fn run<T, E, F, C>(future: F, convert: C) -> PhpResult<Zval>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    C: FnOnce(T) -> PhpResult<Zval> + 'static,
{
    run_within(None, future, convert)
}

/// As [`run`], with a limit.
pub fn run_within<T, E, F, C>(limit: Option<Duration>, future: F, convert: C) -> PhpResult<Zval>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    C: FnOnce(T) -> PhpResult<Zval> + 'static,
{
    if BEGINS.take() {
        let begun = Pending::begin(limit, future, convert)?;
        BEGUN.set(Some(begun));
        return Ok(Zval::null());
    }
    convert(wait(limit, future)?)
}

/// As [`run_within`], for a read: what nobody takes is read again. A read that brought nothing in time is `null`.
pub fn run_read<S, F, C>(limit: Option<Duration>, read: F, convert: C) -> PhpResult<Zval>
where
    S: Source,
    F: Future<Output = Result<Delivery<S>, Failure>> + Send + 'static,
    C: FnOnce(S::Item) -> PhpResult<Zval> + 'static,
{
    let within = async move {
        match limit {
            None => read.await.map(Some),
            Some(limit) => match tokio::time::timeout(limit, read).await {
                Ok(read) => read.map(Some),
                Err(_) => Ok(None),
            },
        }
    };
    run(within, |delivery: Option<Delivery<S>>| {
        delivery
            .and_then(Delivery::accept)
            .map_or_else(|| Ok(Zval::null()), convert)
    })
}

/// Waits for a call on this thread.
fn wait<T, E, F>(limit: Option<Duration>, future: F) -> PhpResult<T>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let handle = runtime::handle().or_throw()?;
    let mut desk = Desk::open();
    let token = CancellationToken::new();
    // On the runtime, because a partitioner is asked where the call runs and this thread must be free to answer.
    let (sender, mut ended) = tokio::sync::oneshot::channel();
    call::start(future, token.clone(), move |result| drop(sender.send(result))).or_throw()?;
    let _ends_with_this = token.drop_guard();
    let began = Instant::now();
    loop {
        let event = async {
            tokio::select! {
                biased;
                ended = &mut ended => Event::Ended(ended.unwrap_or_else(|_| Err(without_result()))),
                ask = desk.next() => Event::Asked(ask),
                () = tokio::time::sleep(next_slice(limit, began)) => Event::Nothing,
            }
        };
        match handle.block_on(event) {
            Event::Ended(ended) => return ended.or_throw(),
            Event::Asked(ask) => partitioner::answer(ask),
            Event::Nothing => run_signal_handlers()?,
        }
        if ExecutorGlobals::has_exception() {
            // Not thrown: the engine keeps the pending one.
            return Err(PhpException::from_message("a partitioner threw".to_owned()));
        }
        if let Some(limit) = limit.filter(|limit| began.elapsed() >= *limit) {
            return Err(exception(&over(limit)));
        }
    }
}

/// What a waiting thread is woken for.
enum Event<T> {
    Ended(Result<T, Failure>),
    Asked(Ask),
    Nothing,
}

fn next_slice(limit: Option<Duration>, began: Instant) -> Duration {
    limit.map_or(SIGNAL_INTERVAL, |limit| {
        SIGNAL_INTERVAL.min(limit.saturating_sub(began.elapsed()))
    })
}

/// Something that goes on beside PHP, whatever its type.
trait Begun {
    fn is_ready(&mut self) -> bool;
    /// Its end, once; nothing when it did not come in time.
    fn take(&mut self, limit: Duration) -> Option<PhpResult<Zval>>;
}

struct Going<T, C> {
    ended: Receiver<Result<T, Failure>>,
    arrived: Option<Result<T, Failure>>,
    convert: Option<C>,
}

fn without_result() -> Failure {
    Failure::internal(&"the call ended without a result")
}

impl<T, C: FnOnce(T) -> PhpResult<Zval>> Begun for Going<T, C> {
    fn is_ready(&mut self) -> bool {
        if self.arrived.is_none() {
            self.arrived = match self.ended.try_recv() {
                Ok(ended) => Some(ended),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(without_result())),
            };
        }
        self.arrived.is_some()
    }

    fn take(&mut self, limit: Duration) -> Option<PhpResult<Zval>> {
        if !self.is_ready() {
            self.arrived = match self.ended.recv_timeout(limit) {
                Ok(ended) => Some(ended),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Err(without_result())),
            };
        }
        let (arrived, convert) = (self.arrived.take()?, self.convert.take()?);
        Some(arrived.or_throw().and_then(convert))
    }
}

/// A call that goes on beside PHP.
#[php_class]
#[php(name = "Iggy\\Pending")]
pub struct Pending {
    process: u32,
    token: CancellationToken,
    begun: Option<Box<dyn Begun>>,
}

impl Pending {
    fn begin<T, E, F, C>(limit: Option<Duration>, future: F, convert: C) -> PhpResult<Self>
    where
        T: Send + 'static,
        E: Into<Failure> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
        C: FnOnce(T) -> PhpResult<Zval> + 'static,
    {
        let token = CancellationToken::new();
        let (sender, ended) = sync_channel(1);
        let future: Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>> = match limit {
            None => Box::pin(async move { future.await.map_err(Into::into) }),
            Some(limit) => Box::pin(async move {
                let ended = tokio::time::timeout(limit, future).await;
                ended.map_or_else(|_| Err(over(limit)), |ended| ended.map_err(Into::into))
            }),
        };
        // A result that nobody takes is dropped with the channel, and so goes back.
        call::start(future, token.clone(), move |result| drop(sender.send(result))).or_throw()?;
        let begun = Going {
            ended,
            arrived: None,
            convert: Some(convert),
        };
        Ok(Self {
            process: std::process::id(),
            token,
            begun: Some(Box::new(begun)),
        })
    }

    fn begun(&mut self) -> PhpResult<&mut Box<dyn Begun>> {
        if self.process != std::process::id() {
            return Err(exception(&Failure::inherited()));
        }
        self.begun
            .as_mut()
            .ok_or_else(|| invalid("the result of this call was taken already"))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.token.cancel();
        } else {
            // It belongs to the parent.
            std::mem::forget(self.begun.take());
        }
    }
}

#[php_impl]
impl Pending {
    pub fn is_ready(&mut self) -> PhpResult<bool> {
        Ok(self.begun()?.is_ready())
    }

    pub fn wait(&mut self, timeout: Option<i64>) -> PhpResult<Zval> {
        let limit = duration("timeout", timeout)?;
        let began = Instant::now();
        loop {
            if let Some(ended) = self.begun()?.take(next_slice(limit, began)) {
                self.begun = None;
                return ended;
            }
            run_signal_handlers()?;
            if let Some(limit) = limit.filter(|limit| began.elapsed() >= *limit) {
                return Err(exception(&over(limit)));
            }
        }
    }

    pub fn cancel(&self) {
        self.token.cancel();
    }
}

/// Begins calls of another object instead of waiting for them.
#[php_class]
#[php(name = "Iggy\\Parallel")]
pub struct Parallel(Zval);

impl Parallel {
    /// Of an object.
    pub fn of(object: &mut ext_php_rs::types::ZendObject) -> Self {
        let mut target = Zval::new();
        target.set_object(object);
        Self(target)
    }
}

#[php_impl]
impl Parallel {
    #[php(name = "__call")]
    pub fn call(&self, name: String, arguments: &ZendHashTable) -> PhpResult<Pending> {
        let arguments: Vec<Zval> = arguments.values().map(Zval::shallow_clone).collect();
        let passed = arguments
            .iter()
            .map(|each| each as &dyn ext_php_rs::convert::IntoZvalDyn);
        BEGINS.set(true);
        let called = self.0.try_call_method(&name, passed.collect());
        let waited = BEGINS.take();
        let begun = BEGUN.take();
        ExecutorGlobals::throw_if_exception()?;
        called?;
        match begun {
            Some(begun) if !waited => Ok(begun),
            _ => Err(invalid(format!("{name} does not wait, so it cannot go on beside PHP"))),
        }
    }
}

/// For calls that return nothing.
#[allow(clippy::unnecessary_wraps, reason = "the form of every conversion")]
pub fn nothing((): ()) -> PhpResult<Zval> {
    Ok(Zval::null())
}
