//! The storage seam: submit and complete, a file backend and a memory disk that can lose power.
