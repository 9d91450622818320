//! The log file of a process: what it prints, bounded on disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A full log moves to `<name>.1`, so a process keeps between one and two of these.
const LIMIT_BYTES: u64 = 16 * 1024 * 1024;

/// Bytes of a log that an error quotes.
const TAIL_BYTES: u64 = 2_000;

/// Appends lines to a file.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    written: u64,
    limit: u64,
}

impl LogFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::open_limited(path, LIMIT_BYTES)
    }

    fn open_limited(path: &Path, limit: u64) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let file = append(path)?;
        let written = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, written, limit })
    }

    pub(crate) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.written >= self.limit {
            std::fs::rename(&self.path, self.path.with_added_extension("1"))?;
            self.file = append(&self.path)?;
            self.written = 0;
        }
        self.file.write_all(line)?;
        self.written += line.len() as u64;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// The last lines of a log, for an error's text. A log that cannot be read says so itself.
pub(crate) fn tail(path: &Path) -> String {
    read_tail(path).unwrap_or_else(|error| format!("(no log: {error})"))
}

/// Counts the lines of a log that hold this text; 0 for a log that cannot be read.
pub(crate) fn count(path: &Path, text: &str) -> usize {
    std::fs::read_to_string(path).map_or(0, |log| log.lines().filter(|line| line.contains(text)).count())
}

fn read_tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole_lines = match text.split_once('\n') {
        Some((_, rest)) if length > TAIL_BYTES => rest,
        _ => &text,
    };
    Ok(whole_lines.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_set_aside_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/service.log");
        let mut log = LogFile::open_limited(&path, 4).unwrap();
        for line in ["one\n", "two\n", "three\n"] {
            log.write(line.as_bytes()).unwrap();
        }
        assert_eq!(tail(&path), "three");
        assert_eq!(tail(&path.with_added_extension("1")), "two");
    }

    #[test]
    fn a_tail_begins_with_a_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("service.log");
        let mut log = LogFile::open(&path).unwrap();
        for number in 0..1_000 {
            log.write(format!("line {number}\n").as_bytes()).unwrap();
        }
        let tail = tail(&path);
        assert!(tail.starts_with("line "), "{tail}");
        assert!(tail.ends_with("line 999"), "{tail}");
    }
}
