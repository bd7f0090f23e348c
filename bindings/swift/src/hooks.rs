//! Functions of the application that the core calls: partitioners, and who hears of background sends that failed.
//!
//! They run on threads of the client, in place. One that takes long holds up what the same thread would do, nothing else.

use std::sync::Arc;

use iggy::producer::ErrorCallback;
use iggy::{ErrorCode, Identifier, IggyError, IggyMessage};
use iggy_ffi::Failure;

use crate::failure::NativeFailure;
use crate::messages::NativeBatch;

/// Why a function of the application failed.
#[derive(Debug, uniffi::Error)]
pub enum NativeThrown {
    Thrown { reason: String },
}

impl std::fmt::Display for NativeThrown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Thrown { reason } = self;
        out.write_str(reason)
    }
}

impl std::error::Error for NativeThrown {}

impl From<uniffi::UnexpectedUniFFICallbackError> for NativeThrown {
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Self::Thrown { reason: error.reason }
    }
}

/// Chooses the partition of every send, from several threads at once.
#[uniffi::export(callback_interface)]
pub trait NativePartitioner: Send + Sync {
    fn choose(&self, stream: String, topic: String, messages: NativeBatch) -> Result<u32, NativeThrown>;
}

/// Hears of each background send that failed.
#[uniffi::export(callback_interface)]
pub trait NativeListener: Send + Sync {
    fn hear(&self, failure: NativeFailure);
}

struct Chosen(Box<dyn NativePartitioner>);

impl std::fmt::Debug for Chosen {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Partitioner")
    }
}

impl iggy::Partitioner for Chosen {
    fn calculate_partition_id(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        messages: &[IggyMessage],
    ) -> Result<u32, IggyError> {
        let chosen = self
            .0
            .choose(stream.to_string(), topic.to_string(), NativeBatch::of_send(messages));
        chosen.map_err(|thrown| {
            let message = format!("the partitioner failed: {thrown}");
            IggyError::new(ErrorCode::InvalidConfiguration, message)
        })
    }
}

/// A partitioner of the application.
pub fn partitioner(given: Option<Box<dyn NativePartitioner>>) -> Option<Arc<dyn iggy::Partitioner>> {
    given.map(|given| Arc::new(Chosen(given)) as Arc<dyn iggy::Partitioner>)
}

/// A listener of the application.
pub fn listener(given: Option<Box<dyn NativeListener>>) -> Option<ErrorCallback> {
    let given = given?;
    Some(Arc::new(move |error: IggyError| {
        given.hear(Failure::from(error).into());
    }))
}
