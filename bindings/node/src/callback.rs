//! Functions of the application that the core calls: partitioners, and who hears of background sends that failed.
//!
//! They run on the thread of JavaScript, one turn of its event loop later, and do not keep a process alive. The core
//! asks a partitioner from a thread of its runtime and waits for the answer there, with a deadline: JavaScript that
//! keeps its thread busy, or whose environment is ending, makes the send fail instead of hanging.

use std::sync::mpsc;
use std::thread::ThreadId;
use std::time::Duration;

use iggy::producer::ErrorCallback;
use iggy::{ErrorCode, Identifier, IggyError, IggyMessage};
use napi::Status;
use napi::bindgen_prelude::{Either, FnArgs, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::failure::text;
use crate::message::columns;
use crate::value::{Js, whole};

/// How long a partitioner may take, the wait for its thread included.
const DEADLINE: Duration = Duration::from_secs(10);

/// Stream, topic and messages in columns.
type Ask = FnArgs<(String, String, Js)>;

/// A partition, or why there is none.
type Answer = Either<f64, String>;

/// What the package passes as a partitioner. It never throws.
pub type Choose<'a> = Function<'a, Ask, Answer>;

/// A partitioner of the application.
pub struct Partitioner {
    choose: ThreadsafeFunction<Ask, Answer, Ask, Status, false, true>,
    home: ThreadId,
}

impl std::fmt::Debug for Partitioner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Partitioner")
    }
}

impl Partitioner {
    /// Of a function of the current thread.
    pub fn new(choose: &Choose<'_>) -> napi::Result<Self> {
        let choose = choose.build_threadsafe_function::<Ask>().weak::<true>().build()?;
        let home = std::thread::current().id();
        Ok(Self { choose, home })
    }

    fn ask(&self, ask: Ask) -> Result<u32, String> {
        if std::thread::current().id() == self.home {
            return Err("it was asked for on its own thread, which would wait for itself".to_owned());
        }
        let (sender, answered) = mpsc::sync_channel(1);
        let mode = ThreadsafeFunctionCallMode::NonBlocking;
        let status = self.choose.call_with_return_value(ask, mode, move |answer, _| {
            // The asker may have given up.
            let _ = sender.try_send(answer);
            Ok(())
        });
        if status != Status::Ok {
            return Err(format!("its environment is ending ({status})"));
        }
        match answered.recv_timeout(DEADLINE) {
            Ok(Ok(Either::A(partition))) => whole("the chosen partition", partition)
                .map_err(|_| format!("it chose {partition}, expected a whole number of 0..=4294967295")),
            Ok(Ok(Either::B(thrown))) => Err(thrown),
            Ok(Err(error)) => Err(error.reason.clone()),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("it did not answer within {DEADLINE:?}")),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err("its environment is ending".to_owned()),
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
        let ask = FnArgs::from((stream.to_string(), topic.to_string(), Js::Record(columns(messages))));
        let in_place = tokio::task::block_in_place(|| self.ask(ask));
        in_place.map_err(|reason| {
            let message = format!("the partitioner failed: {reason}");
            IggyError::new(ErrorCode::InvalidConfiguration, message)
        })
    }
}

/// What the package passes to hear of background sends that failed. It never throws.
pub type Hear<'a> = Function<'a, String, ()>;

/// Calls it with each failure, as JSON. Failures that come when the environment is ending are dropped.
pub fn error_callback(hear: &Hear<'_>) -> napi::Result<ErrorCallback> {
    let hear = hear.build_threadsafe_function::<String>().weak::<true>().build()?;
    Ok(std::sync::Arc::new(move |error| {
        hear.call(text(&error.into()), ThreadsafeFunctionCallMode::NonBlocking);
    }))
}
