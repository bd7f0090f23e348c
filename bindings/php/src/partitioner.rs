//! Partitioners of the application.
//!
//! A callable of PHP can be called on the thread of PHP alone. The core asks on a thread of its own; so a call that waits
//! answers what is asked meanwhile, and whoever asks while PHP does not wait is refused: see [`Desk`].

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use ext_php_rs::convert::IntoZval;
use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendCallable, ZendHashTable, Zval};
use ext_php_rs::zend::ExecutorGlobals;
use iggy::{ErrorCode, Identifier, IggyError, IggyMessage};
use tokio::sync::mpsc;

use crate::failure::invalid;
use crate::message::Message;

/// How long a partitioner may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Questions that may wait for PHP at once; each holds up a thread of the client.
const MOST_ASKS: usize = 16;

thread_local! {
    static CALLABLES: RefCell<HashMap<u64, Zval>> = RefCell::default();
    static NEXT: Cell<u64> = const { Cell::new(1) };
    static LINE: RefCell<Line> = RefCell::new(Line::new());
}

/// A question for a callable.
pub struct Ask {
    number: u64,
    stream: String,
    topic: String,
    messages: Vec<IggyMessage>,
    answer: SyncSender<Result<u32, String>>,
}

/// How questions come to the thread of PHP.
struct Line {
    sender: mpsc::Sender<Ask>,
    /// Away while a call waits.
    receiver: Option<mpsc::Receiver<Ask>>,
    waits: Arc<AtomicBool>,
}

impl Line {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel(MOST_ASKS);
        Self {
            sender,
            receiver: Some(receiver),
            waits: Arc::default(),
        }
    }
}

/// Takes questions while a call waits. Questions are refused once it is dropped.
pub struct Desk {
    /// None for a call that a partitioner or a signal handler makes while another one waits.
    receiver: Option<mpsc::Receiver<Ask>>,
    waits: Arc<AtomicBool>,
    waited: bool,
}

impl Desk {
    /// Opens it.
    pub fn open() -> Self {
        LINE.with_borrow_mut(|line| {
            let receiver = line.receiver.take();
            let waited = line.waits.swap(receiver.is_some(), Ordering::AcqRel);
            Self {
                receiver,
                waits: Arc::clone(&line.waits),
                waited,
            }
        })
    }

    /// The next question. Cancel safe.
    pub async fn next(&mut self) -> Ask {
        let asked = match &mut self.receiver {
            Some(receiver) => receiver.recv().await,
            None => None,
        };
        match asked {
            Some(ask) => ask,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.waits.store(self.waited, Ordering::Release);
        if let Some(mut receiver) = self.receiver.take() {
            // Who asked in the last moment hears that nobody is here, by the end of its channel.
            while receiver.try_recv().is_ok() {}
            LINE.with_borrow_mut(|line| line.receiver = Some(receiver));
        }
    }
}

/// Answers a question, on the thread of PHP.
pub fn answer(ask: Ask) {
    let chosen = choose(&ask);
    // The asker may have given up.
    let _ = ask.answer.try_send(chosen);
}

fn choose(ask: &Ask) -> Result<u32, String> {
    let callable = CALLABLES.with_borrow(|callables| callables.get(&ask.number).map(Zval::shallow_clone));
    let callable = callable.ok_or("its client or producer is gone")?;
    let mut list = ZendHashTable::new();
    for message in &ask.messages {
        let message = Message(message.clone());
        list.push(message).map_err(|error| error.to_string())?;
    }
    let list = list.into_zval(false).map_err(|error| error.to_string())?;
    let called =
        ZendCallable::new(&callable).and_then(|callable| callable.try_call(vec![&ask.stream, &ask.topic, &list]));
    if ExecutorGlobals::has_exception() {
        return Err("it threw".to_owned());
    }
    let chosen = called.map_err(|error| error.to_string())?;
    let partition = chosen.long().and_then(|number| u32::try_from(number).ok());
    partition.ok_or_else(|| "it did not return an int of 0..=4294967295".to_owned())
}

/// Forgets every callable: the request is over.
pub fn forget_all() {
    let callables = CALLABLES.take();
    drop(callables);
}

/// A callable that is kept for a client or a producer of PHP.
pub struct Kept(u64);

impl Drop for Kept {
    fn drop(&mut self) {
        // Dropped outside of the borrow: a callable may own what keeps another one.
        let callable = CALLABLES.with_borrow_mut(|callables| callables.remove(&self.0));
        drop(callable);
    }
}

/// What the core asks.
#[derive(Debug)]
pub struct Partitioner {
    number: u64,
    line: mpsc::Sender<Ask>,
    waits: Arc<AtomicBool>,
}

/// A callable that is kept, and what the core asks instead of it; neither when there is no partitioner.
pub type KeptAndAsked = (Option<Kept>, Option<Arc<dyn iggy::Partitioner>>);

/// Keeps a callable, and makes of it what the core asks.
pub fn keep(given: Option<&Zval>) -> PhpResult<KeptAndAsked> {
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Ok((None, None));
    };
    if !given.is_callable() {
        return Err(invalid("a partitioner is a callable"));
    }
    let number = NEXT.get();
    NEXT.set(number + 1);
    CALLABLES.with_borrow_mut(|callables| callables.insert(number, given.shallow_clone()));
    let partitioner = LINE.with_borrow(|line| Partitioner {
        number,
        line: line.sender.clone(),
        waits: Arc::clone(&line.waits),
    });
    Ok((Some(Kept(number)), Some(Arc::new(partitioner))))
}

impl Partitioner {
    fn ask(&self, stream: &Identifier, topic: &Identifier, messages: &[IggyMessage]) -> Result<u32, String> {
        const AWAY: &str = "PHP does not wait for this call, so its callable cannot be called";
        if !self.waits.load(Ordering::Acquire) {
            return Err(AWAY.to_owned());
        }
        let (answer, answered) = sync_channel(1);
        let ask = Ask {
            number: self.number,
            stream: stream.to_string(),
            topic: topic.to_string(),
            messages: messages.to_vec(),
            answer,
        };
        self.line.try_send(ask).map_err(|_| AWAY.to_owned())?;
        match answered.recv_timeout(DEADLINE) {
            Ok(chosen) => chosen,
            Err(RecvTimeoutError::Timeout) => Err(format!("it did not answer within {DEADLINE:?}")),
            Err(RecvTimeoutError::Disconnected) => Err(AWAY.to_owned()),
        }
    }
}

impl iggy::Partitioner for Partitioner {
    fn calculate_partition_id(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        messages: &[IggyMessage],
    ) -> Result<u32, IggyError> {
        let chosen = tokio::task::block_in_place(|| self.ask(stream, topic, messages));
        chosen.map_err(|reason| {
            let message = format!("the partitioner failed: {reason}");
            IggyError::new(ErrorCode::InvalidConfiguration, message)
        })
    }
}
