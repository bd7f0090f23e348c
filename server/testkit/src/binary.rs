//! Finds the server binary that belongs to the running test.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Environment variable that names the server binary to test; it wins over the search.
pub const BINARY_VARIABLE: &str = "IGGY_SERVER_BIN";

const BINARY_NAME: &str = "iggy-server";

/// Path of the server binary: [`BINARY_VARIABLE`] when set, else `iggy-server` in the target folder of the running
/// test executable, else in this workspace's own target folder under the same profile (for test crates that are
/// workspaces of their own).
///
/// # Errors
/// Names every path that was tried.
pub fn find_server_binary() -> Result<PathBuf> {
    if let Some(named) = env::var_os(BINARY_VARIABLE) {
        let named = PathBuf::from(named);
        if !named.is_file() {
            bail!("{BINARY_VARIABLE} names {}, which is not a file", named.display());
        }
        return Ok(named);
    }
    let test_executable = env::current_exe().context("the running test has no known executable")?;
    let tried = candidates(&test_executable, Path::new(env!("CARGO_MANIFEST_DIR")));
    if let Some(found) = tried.iter().find(|path| path.is_file()) {
        return Ok(found.clone());
    }
    let tried: Vec<_> = tried.iter().map(|path| path.display().to_string()).collect();
    bail!(
        "no {BINARY_NAME} found at {}; build it with `cargo build -p iggy-server` or name it in {BINARY_VARIABLE}",
        tried.join(" or ")
    )
}

/// Test executables stand in `target/<profile>/deps`, examples in `target/<profile>/examples`, binaries directly in
/// `target/<profile>`.
fn candidates(test_executable: &Path, manifest_directory: &Path) -> Vec<PathBuf> {
    let Some(folder) = test_executable.parent() else {
        return Vec::new();
    };
    let profile_folder = match folder.file_name().and_then(|name| name.to_str()) {
        Some("deps" | "examples") => folder.parent().unwrap_or(folder),
        _ => folder,
    };
    let mut paths = vec![profile_folder.join(BINARY_NAME)];
    if let (Some(profile), Some(root)) = (profile_folder.file_name(), manifest_directory.ancestors().nth(2)) {
        let in_workspace = root.join("target").join(profile).join(BINARY_NAME);
        if !paths.contains(&in_workspace) {
            paths.push(in_workspace);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_test_of_the_workspace_should_look_beside_it_once() {
        let found = candidates(Path::new("/w/target/debug/deps/t-1"), Path::new("/w/server/testkit"));
        assert_eq!(found, [PathBuf::from("/w/target/debug/iggy-server")]);
    }

    #[test]
    fn given_a_test_of_another_workspace_should_also_look_in_ours() {
        let found = candidates(
            Path::new("/w/bdd/interop/target/release/deps/t-1"),
            Path::new("/w/server/testkit"),
        );
        assert_eq!(
            found,
            [
                PathBuf::from("/w/bdd/interop/target/release/iggy-server"),
                PathBuf::from("/w/target/release/iggy-server")
            ]
        );
    }
}
