//! Positions: where a read goes on, and how far messages were processed.

use iggy::{PartitionContext, PollingStrategy, ReadStart};
use iggy_ffi::settings;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failure::OrRaise;

/// Where the next read of a partition starts.
#[pyclass(frozen, eq, module = "iggy")]
#[derive(Clone, PartialEq)]
pub struct Continuation(pub iggy::Continuation);

#[pymethods]
impl Continuation {
    #[getter]
    fn partition_id(&self) -> u32 {
        self.0.partition_id
    }

    /// The offset it starts at; `None` when it starts elsewhere.
    #[getter]
    fn offset(&self) -> Option<u64> {
        match self.0.strategy {
            PollingStrategy::Offset(offset) => Some(offset),
            _ => None,
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "Continuation(partition_id={}, {:?})",
            self.0.partition_id, self.0.strategy
        )
    }
}

/// A position to commit.
#[pyclass(frozen, eq, hash, module = "iggy")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Checkpoint(pub iggy::Checkpoint);

#[pymethods]
impl Checkpoint {
    /// A position from its parts, as an application kept them.
    #[new]
    #[pyo3(signature = (partition_id, offset, incarnation, owner_generation = 0))]
    fn new(partition_id: u32, offset: u64, incarnation: u64, owner_generation: u64) -> Self {
        let context = PartitionContext {
            incarnation,
            owner_generation,
            metadata_op: 0,
        };
        Self(iggy::Checkpoint::new(partition_id, offset, context))
    }

    #[getter]
    fn partition_id(&self) -> u32 {
        self.0.partition_id
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }

    #[getter]
    fn incarnation(&self) -> u64 {
        self.0.context.incarnation
    }

    #[getter]
    fn owner_generation(&self) -> u64 {
        self.0.context.owner_generation
    }

    fn __repr__(&self) -> String {
        format!(
            "Checkpoint(partition_id={}, offset={})",
            self.0.partition_id, self.0.offset
        )
    }
}

/// A start: a [`Continuation`], or a strategy as JSON.
pub fn read_start(start: &Bound<'_, PyAny>) -> PyResult<ReadStart> {
    if let Ok(continuation) = start.cast::<Continuation>() {
        return Ok(continuation.get().0.into());
    }
    let py = start.py();
    let value = serde_json::from_str(start.extract()?).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(settings::strategy(value).or_raise(py)?.into())
}
