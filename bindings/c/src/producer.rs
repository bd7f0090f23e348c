//! The producer.

use std::ffi::c_void;

use iggy::SendConfirmation;
use iggy_ffi::{Failure, Owned, settings};
use iggy_view::resources::confirmation;

use crate::boundary::{IggyId, IggyText, given, guarded};
use crate::call::{Content, IggyCall, IggyDone, begin};
use crate::message::IggyMessages;

/// Where sent messages are.
pub fn confirmations(sent: &[SendConfirmation]) -> Content {
    Content::Value(sent.iter().map(confirmation).collect())
}

/// Sends messages to one topic.
pub struct IggyProducer(Owned<iggy::IggyProducer>);

impl IggyProducer {
    pub(crate) fn of(producer: iggy::IggyProducer) -> Box<Self> {
        Box::new(Self(Owned::new(producer)))
    }
}

fn core(producer: Option<&IggyProducer>) -> Result<iggy::IggyProducer, Failure> {
    given("the producer", producer)?.0.get().cloned()
}

/// Creates what is missing, unless told otherwise. Must succeed before the first send.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_producer_init(
    producer: Option<&IggyProducer>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let producer = core(producer)?;
        Ok(async move {
            producer.init().await?;
            Ok(Content::Nothing)
        })
    })
}

/// Sends messages, which are taken in any case, in order per partition. The partitioning is the producer's own when it is
/// empty. The value of the reply lists where the messages are; nothing when sent in the background.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_producer_send(
    producer: Option<&IggyProducer>,
    messages: Option<Box<IggyMessages>>,
    partitioning: IggyText,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let producer = core(producer)?;
        let messages = given("messages", messages)?.0;
        let partitioning = match partitioning.json()? {
            serde_json::Value::Null => None,
            setting => Some(settings::partitioning(setting)?),
        };
        Ok(async move {
            let sent = match partitioning {
                None => producer.send(messages).await?,
                Some(partitioning) => producer.send_with_partitioning(messages, partitioning).await?,
            };
            Ok(confirmations(&sent))
        })
    })
}

/// As `iggy_producer_send`, to another topic.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_producer_send_to(
    producer: Option<&IggyProducer>,
    stream: IggyId,
    topic: IggyId,
    messages: Option<Box<IggyMessages>>,
    partitioning: IggyText,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let producer = core(producer)?;
        let (stream, topic) = (stream.identifier()?, topic.identifier()?);
        let messages = given("messages", messages)?.0;
        let partitioning = match partitioning.json()? {
            serde_json::Value::Null => None,
            setting => Some(settings::partitioning(setting)?),
        };
        Ok(async move {
            let sent = producer.send_to(stream, topic, messages, partitioning).await?;
            Ok(confirmations(&sent))
        })
    })
}

/// Sends what is buffered and waits for it, within a deadline. May be called again.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_producer_shutdown(
    producer: Option<&IggyProducer>,
    done: IggyDone,
    user: *mut c_void,
) -> Option<Box<IggyCall>> {
    begin(done, user, || {
        let producer = core(producer)?;
        Ok(async move {
            producer.shutdown().await?;
            Ok(Content::Nothing)
        })
    })
}

/// Frees a producer. What a background producer still buffers may not be sent: shut it down first.
#[unsafe(no_mangle)]
pub extern "C" fn iggy_producer_free(producer: Option<Box<IggyProducer>>) {
    let _ = guarded(|| {
        drop(producer);
        Ok(())
    });
}
