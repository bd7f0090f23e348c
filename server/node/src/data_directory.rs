//! The data directory: one process at a time, and which boot of the machine it is.

use iggy_journal::BootId;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another server holds it.
    #[error("{0} is in use by another server")]
    Locked(PathBuf),
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// A data directory that belongs to this process until it is dropped.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Takes the directory, made when missing. With `fresh` everything in it is removed first.
    pub fn open(path: &Path, fresh: bool) -> Result<Self, DirectoryError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| DirectoryError::Io { path, source }
        };
        std::fs::create_dir_all(path).map_err(at(path))?;
        let lock_path = path.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(at(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DirectoryError::Locked(path.to_owned())),
            Err(TryLockError::Error(source)) => {
                return Err(DirectoryError::Io {
                    path: lock_path,
                    source,
                });
            }
        }
        if fresh {
            for name in ["metadata", "streams", "runtime"] {
                let inside = path.join(name);
                match std::fs::remove_dir_all(&inside) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&inside)(error)),
                    _ => {}
                }
            }
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The boot of the machine. Without one every start counts as after a loss of power, which is safe.
pub fn boot_id() -> BootId {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let hex: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&hex, 16).unwrap_or_else(|_| rand::random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_a_directory_in_use_when_opened_again_should_refuse() {
        let root = tempfile::tempdir().unwrap();
        let first = DataDirectory::open(root.path(), false).unwrap();
        assert!(matches!(
            DataDirectory::open(root.path(), false),
            Err(DirectoryError::Locked(_))
        ));
        drop(first);
        DataDirectory::open(root.path(), false).unwrap();
    }

    #[test]
    fn given_a_fresh_start_when_opened_should_remove_what_was_stored_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("streams/1")).unwrap();
        std::fs::write(root.path().join("keep"), "mine").unwrap();
        DataDirectory::open(root.path(), true).unwrap();
        assert!(!root.path().join("streams").exists());
        assert!(root.path().join("keep").exists());
    }
}
