//! A log file that is set aside when full, with a bound on all of them together.
//!
//! `iggy-server.log` is written; a full one becomes `iggy-server.000001.log` and so on, higher numbers being newer. A
//! failure to set aside or to remove a file never stops the writing: the log then grows instead, because a full log
//! disk must not silence the server about it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const STEM: &str = "iggy-server";

pub(super) struct RotatingFile {
    folder: PathBuf,
    file: File,
    written: u64,
    next_number: u64,
    max_file_size: u64,
    max_total_size: u64,
}

impl RotatingFile {
    pub(super) fn open(folder: &Path, max_file_size: u64, max_total_size: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = append_to(&folder.join(format!("{STEM}.log")))?;
        let written = file.metadata()?.len();
        let newest = set_aside(folder)?.last().map_or(0, |old| old.number);
        Ok(Self {
            folder: folder.to_owned(),
            file,
            written,
            next_number: newest.saturating_add(1),
            max_file_size,
            max_total_size,
        })
    }

    fn rotate(&mut self) -> io::Result<()> {
        let current = self.folder.join(format!("{STEM}.log"));
        fs::rename(
            &current,
            self.folder.join(format!("{STEM}.{:06}.log", self.next_number)),
        )?;
        self.next_number = self.next_number.saturating_add(1);
        self.file = append_to(&current)?;
        self.written = 0;
        self.remove_oldest()
    }

    /// Leaves room for a full current file.
    fn remove_oldest(&self) -> io::Result<()> {
        let old = set_aside(&self.folder)?;
        let mut total = old
            .iter()
            .fold(self.max_file_size, |sum, old| sum.saturating_add(old.bytes));
        for old in old {
            if total <= self.max_total_size {
                break;
            }
            fs::remove_file(&old.path)?;
            total = total.saturating_sub(old.bytes);
        }
        Ok(())
    }
}

impl Write for RotatingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let incoming = bytes.len() as u64;
        if self.written > 0
            && self.written.saturating_add(incoming) > self.max_file_size
            && let Err(error) = self.rotate()
        {
            // Not through tracing: this runs on the thread that writes the log.
            eprintln!(
                "a log file in {} could not be set aside: {error}",
                self.folder.display()
            );
            // One attempt per full size, not one per line.
            self.written = 0;
        }
        let count = self.file.write(bytes)?;
        self.written = self.written.saturating_add(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

struct SetAside {
    number: u64,
    bytes: u64,
    path: PathBuf,
}

/// Files set aside, oldest first.
fn set_aside(folder: &Path) -> io::Result<Vec<SetAside>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            name.strip_prefix(STEM)?
                .strip_prefix('.')?
                .strip_suffix(".log")?
                .parse()
                .ok()
        });
        if let Some(number) = number {
            found.push(SetAside {
                number,
                bytes: entry.metadata()?.len(),
                path: entry.path(),
            });
        }
    }
    found.sort_by_key(|old| old.number);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn given_full_files_should_set_them_aside_and_keep_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingFile::open(folder.path(), 10, 30).unwrap();
        for number in 0..6 {
            log.write_all(format!("line {number}...").as_bytes()).unwrap();
        }
        assert_eq!(
            names(folder.path()),
            ["iggy-server.000004.log", "iggy-server.000005.log", "iggy-server.log"]
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("iggy-server.log")).unwrap(),
            "line 5..."
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("iggy-server.000005.log")).unwrap(),
            "line 4..."
        );
    }

    #[test]
    fn given_a_restart_should_append_and_go_on_counting() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["first.", "second", "third."] {
            RotatingFile::open(folder.path(), 12, 1000)
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
        }
        assert_eq!(names(folder.path()), ["iggy-server.000001.log", "iggy-server.log"]);
        assert_eq!(
            fs::read_to_string(folder.path().join("iggy-server.000001.log")).unwrap(),
            "first.second"
        );
    }

    #[test]
    fn given_a_line_beyond_the_size_should_write_it_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingFile::open(folder.path(), 4, 1000).unwrap();
        log.write_all(b"a line that is long").unwrap();
        log.write_all(b"next").unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("iggy-server.000001.log")).unwrap(),
            "a line that is long"
        );
    }

    #[test]
    fn given_a_folder_that_vanished_should_go_on_writing() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatingFile::open(folder.path(), 4, 1000).unwrap();
        log.write_all(b"full").unwrap();
        fs::remove_dir_all(folder.path()).unwrap();
        log.write_all(b"more").unwrap();
    }
}
