//! Finding out what became of a write whose outcome is unknown: the identical frame is sent until a committed answer comes.

use iggy_protocol::{ErrorCode, RequestHeader};
use tokio::time::Instant;

use crate::answer::{Action, Answer, CallKind, Facts, decide};
use crate::backoff::Backoff;

use crate::connection::{ExchangeError, MAX_REPLY_BYTES};
use crate::core::Core;
use crate::error::{IggyError, OperationId};
use crate::lanes::Resolution;
use crate::reading::classify;

impl Core {
    /// Replays an uncertain write until its outcome is proven or `deadline` passes. Cancel safe.
    pub async fn resolve(&self, operation: OperationId, deadline: Instant) -> Result<Resolution, IggyError> {
        let about = |code, message: &str| IggyError::new(code, message).with_operation(operation);
        if let Some(resolution) = self.lanes.resolution(operation) {
            return Ok(resolution);
        }
        let Some((frame, epoch, partition)) = self.lanes.replayable(operation) else {
            return Err(about(
                ErrorCode::OperationNotRetained,
                "the operation is not kept: its outcome can no longer be known",
            ));
        };
        let Some(frame) = frame else {
            return Err(about(
                ErrorCode::FetchProgressUncertain,
                "a read that may have stored an offset can only be abandoned",
            ));
        };
        let request = *RequestHeader::view(&frame).map_err(|error| IggyError::new(error.code(), error.to_string()))?;
        let mut backoff = Backoff::of_call();
        loop {
            let link = match &partition {
                None => self.main_link(deadline).await?,
                Some(key) => {
                    let route = self.find_route(key, deadline).await?;
                    self.link_to(route.primary_replica, deadline).await?
                }
            };
            if link.epoch != epoch {
                return Err(about(
                    ErrorCode::OperationNotRetained,
                    "the session of the operation ended: its outcome can no longer be known",
                ));
            }
            let answer = match link.connection.exchange(frame.clone(), MAX_REPLY_BYTES, deadline).await {
                Ok(reply) => classify(&request, &reply).0,
                Err(ExchangeError::NotSent(_)) => Answer::LostBeforeSend,
                Err(ExchangeError::Lost(_)) => Answer::LostAfterSend,
                Err(ExchangeError::Deadline { .. }) => {
                    return Err(about(
                        ErrorCode::OperationUncertain,
                        "the server did not answer within the deadline",
                    ));
                }
            };
            let facts = Facts {
                uncertain: true,
                caller_context: true,
                ..Facts::default()
            };
            let resolution = match (decide(CallKind::Mutation, answer, facts), answer) {
                (Action::Accept, _)
                | (
                    _,
                    Answer::Refused {
                        code: ErrorCode::RequestAlreadyApplied,
                        ..
                    },
                ) => Some(Resolution::Applied),
                (Action::FailFinally, Answer::Refused { code, proven: true }) => Some(Resolution::Refused(code)),
                (Action::Resend { .. }, _) => None,
                (_, Answer::Refused { code, .. }) => {
                    return Err(about(
                        ErrorCode::OperationUncertain,
                        &format!("the replay was refused: {code}"),
                    ));
                }
                _ => None,
            };
            if let Some(resolution) = resolution {
                self.lanes.resolve(operation, resolution);
                return Ok(resolution);
            }
            if let Some(key) = &partition {
                self.routes.drop_route(key);
            }
            let pause = Instant::now() + backoff.next_pause();
            if pause >= deadline {
                return Err(about(
                    ErrorCode::OperationUncertain,
                    "the outcome was not proven within the deadline",
                ));
            }
            tokio::time::sleep_until(pause).await;
        }
    }
}
