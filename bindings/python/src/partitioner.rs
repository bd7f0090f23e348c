//! A partitioner of the application.

use iggy::{ErrorCode, Identifier, IggyError, IggyMessage};
use pyo3::prelude::*;

use crate::gate;
use crate::message::Message;

/// Calls a function of Python: `(stream, topic, messages) -> partition`.
pub struct PythonPartitioner(pub Py<PyAny>);

impl std::fmt::Debug for PythonPartitioner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("PythonPartitioner")
    }
}

impl iggy::Partitioner for PythonPartitioner {
    fn calculate_partition_id(
        &self,
        stream: &Identifier,
        topic: &Identifier,
        messages: &[IggyMessage],
    ) -> Result<u32, IggyError> {
        let called = gate::attach(|py| {
            let messages: Vec<_> = messages.iter().cloned().map(Message).collect();
            let chosen = self.0.call1(py, (stream.to_string(), topic.to_string(), messages))?;
            chosen.extract::<u32>(py)
        });
        let message = match called {
            Some(Ok(partition)) => return Ok(partition),
            Some(Err(error)) => format!("the partitioner failed: {error}"),
            None => "the interpreter is ending".to_owned(),
        };
        Err(IggyError::new(ErrorCode::InvalidConfiguration, message))
    }
}
