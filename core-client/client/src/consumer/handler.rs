//! Handing messages to a handler until somebody says stop.

use futures::future::Either;

use crate::consumer::{IggyConsumer, ReceivedMessage};
use crate::error::IggyError;

/// Processes messages. Any `Fn(ReceivedMessage)` that returns a future of `Result<(), IggyError>` is one.
pub trait MessageHandler {
    /// Processes one message. An error means that it was not processed.
    fn handle(&self, message: ReceivedMessage) -> impl Future<Output = Result<(), IggyError>>;
}

impl<F, T> MessageHandler for F
where
    F: Fn(ReceivedMessage) -> T,
    T: Future<Output = Result<(), IggyError>>,
{
    fn handle(&self, message: ReceivedMessage) -> impl Future<Output = Result<(), IggyError>> {
        self(message)
    }
}

impl IggyConsumer {
    /// Hands every message to a handler, one at a time, until `shutdown` is ready: then the message in hand is finished,
    /// and the consumer can be used on, or shut down. A read that is refused is logged; the others go on.
    ///
    /// # Errors
    /// What the handler failed with. Its message does not count as processed: it is handed out again, by this consumer
    /// or, when it shuts down instead, by the next one. With commits after delivery, or by reads, only by this one.
    /// `NoPartitions` when every partition has stopped.
    ///
    /// # Cancel safety
    /// A dropped call interrupts the handler; its message then counts as processed.
    ///
    /// ```no_run
    /// # async fn example(mut consumer: iggy::IggyConsumer) -> Result<(), iggy::IggyError> {
    /// use iggy::prelude::*;
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let handler = async |received: ReceivedMessage| {
    ///     println!("{:?}", received.message.payload);
    ///     Ok(())
    /// };
    /// # drop(stop);
    /// consumer.consume_messages(&handler, stopped).await?;
    /// consumer.shutdown().await?;
    /// # Ok(()) }
    /// ```
    pub async fn consume_messages(
        &mut self,
        handler: &impl MessageHandler,
        shutdown: impl Future,
    ) -> Result<(), IggyError> {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let received = {
                let next = std::pin::pin!(self.next());
                match futures::future::select(shutdown.as_mut(), next).await {
                    Either::Left(_) => return Ok(()),
                    Either::Right((received, _)) => received,
                }
            };
            match received {
                None if self.is_closed() => return Ok(()),
                None => {
                    let message = "every partition has stopped; seek one to read on";
                    return Err(IggyError::new(iggy_protocol::ErrorCode::NoPartitions, message));
                }
                // Without a partition it concerns the consumer as a whole.
                Some(Err(error)) if error.partition_id.is_none() && !error.error.retryable() => {
                    return Err(error.into());
                }
                Some(Err(error)) => tracing::warn!(%error, "a read was refused"),
                Some(Ok(received)) => {
                    if let Err(error) = handler.handle(received.clone()).await {
                        self.give_back(received);
                        return Err(error);
                    }
                }
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.intake.as_ref().is_some_and(|intake| intake.shared().is_closed())
    }

    fn give_back(&self, message: ReceivedMessage) {
        if let Some(intake) = &self.intake {
            intake.shared().give_back(message);
        }
    }
}
