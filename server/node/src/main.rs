//! The Iggy server.

use clap::Parser as _;
use iggy_server::config::Arguments;
use std::process::ExitCode;

/// The system's allocator grows and shrinks the heaps of threads other than the first page by page: up to 20 us more for a
/// request that is unlucky.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match iggy_server::start::run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A refused start must be readable where it was asked for; the log may not even be open.
            eprintln!("iggy-server: {error:#}");
            ExitCode::FAILURE
        }
    }
}
