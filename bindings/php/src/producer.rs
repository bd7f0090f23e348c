//! The producer.

use std::sync::Arc;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendClassObject, ZendHashTable, Zval};
use iggy::{IggyProducer, SendConfirmation};
use iggy_ffi::Owned;
use serde_json::json;

use crate::call::{Parallel, nothing, run};
use crate::failure::{self, OrThrow, invalid};
use crate::lifetime::{self, Failures};
use crate::message::messages_of;
use crate::options::Partitioning;
use crate::partitioner::Kept;
use crate::value::{from_json, identifier, list};

/// Where sent messages are, as a list of arrays.
pub fn confirmations(found: Vec<SendConfirmation>) -> PhpResult<Zval> {
    let view = |each: &SendConfirmation| {
        json!({
            "stream_id": each.stream_id,
            "topic_id": each.topic_id,
            "partition_id": each.partition_id,
            "base_offset": each.base_offset,
        })
    };
    from_json(&found.iter().map(view).collect())
}

/// A producer of the core.
#[php_class]
#[php(name = "Iggy\\Producer")]
pub struct Producer {
    core: Owned<IggyProducer>,
    failures: Arc<Failures>,
    _partitioner: Option<Kept>,
}

impl Producer {
    pub fn of(producer: IggyProducer, failures: Arc<Failures>, buffers: bool, partitioner: Option<Kept>) -> Self {
        if buffers {
            lifetime::buffers(&producer, &failures);
        }
        Self {
            core: Owned::new(producer),
            failures,
            _partitioner: partitioner,
        }
    }

    fn core(&self) -> PhpResult<IggyProducer> {
        self.core.get().cloned().or_throw()
    }
}

#[php_impl]
impl Producer {
    pub fn init(&self) -> PhpResult<Zval> {
        let producer = self.core()?;
        run(async move { producer.init().await }, nothing)
    }

    pub fn send(
        &self,
        messages: &ZendHashTable,
        partitioning: Option<&Partitioning>,
        stream: Option<&Zval>,
        topic: Option<&Zval>,
    ) -> PhpResult<Zval> {
        let producer = self.core()?;
        let messages = messages_of(messages)?;
        let partitioning = match partitioning {
            None => None,
            given => Some(Partitioning::core(given)?),
        };
        let given = |value: Option<&Zval>| value.filter(|value| !value.is_null()).map(Zval::shallow_clone);
        let target = match (given(stream), given(topic)) {
            (Some(stream), Some(topic)) => Some((identifier("a stream", &stream)?, identifier("a topic", &topic)?)),
            (None, None) => None,
            _ => return Err(invalid("give stream and topic, or neither")),
        };
        let call = async move {
            match (target, partitioning) {
                (None, None) => producer.send(messages).await,
                (None, Some(partitioning)) => producer.send_with_partitioning(messages, partitioning).await,
                (Some((stream, topic)), partitioning) => producer.send_to(stream, topic, messages, partitioning).await,
            }
        };
        run(call, confirmations)
    }

    pub fn failures(&self) -> PhpResult<Zval> {
        let taken: PhpResult<Vec<Zval>> = self.failures.take().iter().map(failure::value).collect();
        list(taken?)
    }

    pub fn shutdown(&self) -> PhpResult<Zval> {
        let (producer, failures) = (self.core()?, Arc::clone(&self.failures));
        run(async move { producer.shutdown().await }, move |()| {
            lifetime::buffers_no_more(&failures);
            nothing(())
        })
    }

    pub fn parallel(self_: &mut ZendClassObject<Producer>) -> Parallel {
        Parallel::of(&mut self_.std)
    }
}
