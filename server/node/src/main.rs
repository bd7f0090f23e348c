//! The Iggy server.

use clap::Parser as _;
use iggy_server::config::Arguments;
use std::process::ExitCode;

/// The system's allocator grows and shrinks the heaps of threads other than the first page by page: up to 20 us more for a
/// request that is unlucky.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A shard that has panicked serves nobody, and its partitions hang. The node ends, so that whoever watches it starts it
/// again, and what was acknowledged is recovered.
fn end_with_a_shard() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if std::thread::current()
            .name()
            .is_some_and(|name| name.starts_with("shard-"))
        {
            std::process::abort();
        }
    }));
}

fn main() -> ExitCode {
    end_with_a_shard();
    match iggy_server::start::run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A refused start must be readable where it was asked for; the log may not even be open.
            eprintln!("iggy-server: {error:#}");
            ExitCode::FAILURE
        }
    }
}
