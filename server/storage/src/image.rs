//! A directory as it lies: what recovery reads, and all it reads.
//!
//! Recovery is a pure function over this trait, so it can be tested with any bytes, without a node and without a disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Name without its directory.
    pub name: String,
    /// Length in bytes; 0 for a directory.
    pub length: u64,
    /// Whether it is a directory.
    pub directory: bool,
}

/// Read access to a directory tree.
pub trait Image {
    /// Entries of a directory in the order of their names; a missing directory has none.
    fn list(&self, directory: &str) -> io::Result<Vec<Entry>>;

    /// Length of a file in bytes, `None` when there is no such file.
    fn length(&self, path: &str) -> io::Result<Option<u64>>;

    /// Fills `buffer` from `offset`; returns how many bytes the file had.
    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// A whole file of at most `limit` bytes, `None` when there is no such file.
    fn read_all(&self, path: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(length) = self.length(path)? else {
            return Ok(None);
        };
        if length > limit {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("{path} has {length} bytes, at most {limit} are allowed"),
            ));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        let read = self.read(path, 0, &mut bytes)?;
        bytes.truncate(read);
        Ok(Some(bytes))
    }
}

/// The image of a real directory.
#[derive(Clone, Debug)]
pub struct FileImage {
    root: PathBuf,
}

impl FileImage {
    /// Reads below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

/// `None` for "no such file", the error for everything else.
fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Image for FileImage {
    fn list(&self, directory: &str) -> io::Result<Vec<Entry>> {
        let Some(listing) = present(std::fs::read_dir(self.root.join(directory)))? else {
            return Ok(Vec::new());
        };
        let mut entries = Vec::new();
        for entry in listing {
            let entry = entry?;
            let metadata = entry.metadata()?;
            // Names that are not UTF-8 are not ours; they are left alone.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let directory = metadata.is_dir();
            entries.push(Entry {
                name,
                length: if directory { 0 } else { metadata.len() },
                directory,
            });
        }
        entries.sort();
        Ok(entries)
    }

    fn length(&self, path: &str) -> io::Result<Option<u64>> {
        Ok(present(std::fs::metadata(self.root.join(path)))?.map(|metadata| metadata.len()))
    }

    fn read(&self, path: &str, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let file = File::open(self.root.join(path))?;
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
