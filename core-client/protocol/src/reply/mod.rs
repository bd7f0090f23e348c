//! Reply payloads, one module per area. The result section of framed replies is not part of them: see
//! [`crate::result_section`].

pub mod group;
pub mod message;
pub mod metadata_changes;
pub mod metadata_record;
pub mod offset;
pub mod session;
pub mod stream;
pub mod system;
pub mod topic;
pub mod user;
