//! What every binding of the client core shares, so that a binding only converts values and futures.
//!
//! - [`runtime`]: one runtime per process, made at first use and made anew in a forked child.
//! - [`Owned`]: an object of the core that remembers its process; a forked child is told so instead of hanging.
//! - [`call`]: runs a future of the core to its end, to a deadline or to its cancellation; panics become errors.
//! - [`handout`]: reads whose result must not be lost on its way to a caller who may have given up.
//! - [`reading`]: consumers and readers over such reads.
//! - [`Failure`]: an error, flattened to what languages turn into exceptions.
//! - [`operations`]: every operation that carries small values, by name, from and to JSON.
//! - [`settings`]: how clients, producers, consumers and readers are configured, from JSON.
//!
//! What carries messages is not here: bindings pass those as the core has them, once and without an intermediate form.

pub mod call;
pub mod events;
mod failure;
pub mod handout;
pub mod operations;
mod owned;
pub mod reading;
pub mod runtime;
pub mod settings;

pub use failure::{Class, Failure};
pub use owned::Owned;
