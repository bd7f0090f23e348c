//! Holds every codec against the golden vectors in `bdd/vectors`, byte for byte.

mod invalid;
mod round_trip;
mod rows;
mod sessions;
mod values;
