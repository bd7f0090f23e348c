//! Refuses to build for a PHP that runs requests on several threads of one process.
//!
//! Everything here belongs to the thread of its request, and persistent clients to its process. A build for threads would
//! load and then mix them up, so there is none.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PHP");
    if std::env::var_os("CARGO_FEATURE_EXTENSION").is_none() {
        return;
    }
    let program = std::env::var("PHP").unwrap_or_else(|_| "php".to_owned());
    let asked = Command::new(&program).args(["-n", "-r", "echo PHP_ZTS;"]).output();
    let asked =
        asked.unwrap_or_else(|error| panic!("{program} cannot be run ({error}); scripts/setup php installs it"));
    assert!(
        asked.stdout == b"0",
        "{program} is thread-safe (ZTS); the extension is for PHP without threads (NTS): PHP_ZTS must be 0"
    );
}
