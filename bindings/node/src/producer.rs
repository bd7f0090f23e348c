//! The producer.

use iggy::{IggyProducer, SendConfirmation};
use iggy_ffi::{Owned, settings};
use iggy_view::resources::confirmation;
use napi::Env;
use napi::bindgen_prelude::{Array, Object};
use napi_derive::napi;

use crate::cancel::CancelToken;
use crate::failure::OrThrow;
use crate::message::messages_of;
use crate::promise::{nothing, run};
use crate::value::{Id, Js, identifier, json, shown};

/// Where sent messages are.
#[allow(clippy::needless_pass_by_value, reason = "the form of every conversion")]
pub fn confirmations(found: Vec<SendConfirmation>) -> Js {
    Js::List(found.iter().map(|each| shown("", confirmation(each))).collect())
}

/// A producer of the core.
#[napi]
pub struct Producer(Owned<IggyProducer>);

impl Producer {
    pub(crate) fn of(producer: IggyProducer) -> Self {
        Self(Owned::new(producer))
    }

    fn core(&self) -> napi::Result<IggyProducer> {
        self.0.get().cloned().or_throw()
    }
}

#[napi]
impl Producer {
    /// Creates what is missing. Must succeed before the first send.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn init<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        let producer = self.core()?;
        run(env, cancel, async move { producer.init().await }, nothing)
    }

    /// Sends; where to is the producer's own choice unless `partitioning`, or `stream` and `topic`, say otherwise.
    ///
    /// # Errors
    /// Arguments that cannot be used.
    #[napi]
    #[allow(clippy::needless_pass_by_value, reason = "as values arrive")]
    pub fn send<'env>(
        &self,
        env: &'env Env,
        cancel: &CancelToken,
        messages: Array<'_>,
        partitioning: Option<String>,
        stream: Option<Id>,
        topic: Option<Id>,
    ) -> napi::Result<Object<'env>> {
        let producer = self.core()?;
        let messages = messages_of(&messages)?;
        let partitioning = partitioning.map(|text| settings::partitioning(json(&text)?).or_throw());
        let partitioning = partitioning.transpose()?;
        let target = match (stream, topic) {
            (Some(stream), Some(topic)) => Some((identifier(&stream)?, identifier(&topic)?)),
            (None, None) => None,
            _ => return Err(crate::failure::invalid("give stream and topic, or neither")),
        };
        let call = async move {
            match (target, partitioning) {
                (None, None) => producer.send(messages).await,
                (None, Some(partitioning)) => producer.send_with_partitioning(messages, partitioning).await,
                (Some((stream, topic)), partitioning) => producer.send_to(stream, topic, messages, partitioning).await,
            }
        };
        run(env, cancel, call, confirmations)
    }

    /// Sends what is buffered and waits for it, within a deadline.
    ///
    /// # Errors
    /// The process forked.
    #[napi]
    pub fn shutdown<'env>(&self, env: &'env Env, cancel: &CancelToken) -> napi::Result<Object<'env>> {
        let producer = self.core()?;
        run(env, cancel, async move { producer.shutdown().await }, nothing)
    }
}
