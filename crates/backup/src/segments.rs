//! Files of lines: compressed, each bounded in size, each with its digest.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    vec,
};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::{
    error::BackupError,
    manifest::FileEntry,
    message_line::MessageLine,
    rooted_fs::{self, RelativePath},
};

/// After so many bytes, uncompressed, another file is begun.
const SEGMENT: u64 = 64 * 1024 * 1024;
/// Longest line, in bytes: a message of the largest size that nats-server takes, 8 MiB with its headers, in base64.
const LINE: u64 = 12 * 1024 * 1024;
/// Bytes read of a file at once.
const PIECE: usize = 64 * 1024;

/// Writes lines into files of a folder.
pub struct SegmentWriter<'f> {
    folder: &'f Path,
    /// The prefix of their paths.
    prefix: String,
    open: Option<OpenSegment>,
    done: Vec<FileEntry>,
}

struct OpenSegment {
    path: RelativePath,
    encoder: GzEncoder<ChecksumWriter<BufWriter<File>>>,
    messages: u64,
    content_bytes: u64,
    uncompressed: u64,
    first: u64,
    last: u64,
    last_stored: Timestamp,
}

impl<'f> SegmentWriter<'f> {
    pub fn new(folder: &'f Path, prefix: String) -> Self {
        Self { folder, prefix, open: None, done: Vec::new() }
    }

    pub fn write(&mut self, line: &MessageLine) -> Result<(), BackupError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_segment(line.sequence)?,
        };
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        open.encoder.write_all(&text).map_err(BackupError::file("write", open.path.full_path(self.folder)))?;
        open.messages += 1;
        open.uncompressed += text.len() as u64;
        open.content_bytes +=
            (line.data.len() + line.headers.iter().map(|(a, b)| a.len() + b.len()).sum::<usize>()) as u64;
        (open.last, open.last_stored) = (line.sequence, line.stored);
        match open.uncompressed >= SEGMENT {
            true => self.close_segment(open),
            false => {
                self.open = Some(open);
                Ok(())
            }
        }
    }

    /// The files, all of them on the disk.
    pub fn finish(mut self) -> Result<Vec<FileEntry>, BackupError> {
        if let Some(open) = self.open.take() {
            self.close_segment(open)?;
        }
        Ok(self.done)
    }

    fn open_segment(&self, first: u64) -> Result<OpenSegment, BackupError> {
        let path = RelativePath::parse(&format!("{}-{first:020}.jsonl.gz", self.prefix));
        let path = path.map_err(|error| BackupError::damaged_file(self.folder, error.to_string()))?;
        let file = rooted_fs::create(self.folder, &path);
        let file = file.map_err(BackupError::file("write", path.full_path(self.folder)))?;
        let encoder = GzEncoder::new(ChecksumWriter::new(BufWriter::new(file)), Compression::fast());
        let last_stored = Timestamp::UNIX_EPOCH;
        Ok(OpenSegment {
            path,
            encoder,
            messages: 0,
            content_bytes: 0,
            uncompressed: 0,
            first,
            last: first,
            last_stored,
        })
    }

    fn close_segment(&mut self, open: OpenSegment) -> Result<(), BackupError> {
        let OpenSegment { path, encoder, messages, content_bytes, first, last, last_stored, .. } = open;
        let ended = || {
            let (buffered, sha256, bytes) = encoder.finish()?.into_parts();
            buffered.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            Ok((sha256, bytes))
        };
        let (sha256, bytes) = ended().map_err(BackupError::file("write", path.full_path(self.folder)))?;
        self.done.push(FileEntry { path, sha256, bytes, messages, content_bytes, first, last, last_stored });
        Ok(())
    }
}

/// Adds up what is written through it.
struct ChecksumWriter<W> {
    to: W,
    sum: Sha256,
    bytes: u64,
}

impl<W> ChecksumWriter<W> {
    fn new(to: W) -> Self {
        Self { to, sum: Sha256::new(), bytes: 0 }
    }

    fn into_parts(self) -> (W, String, u64) {
        (self.to, hex(&self.sum.finalize()), self.bytes)
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.sum.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Checks that a file is, byte for byte, the one that was written.
///
/// # Errors
/// If it is not, or cannot be read.
pub fn verify_file(folder: &Path, entry: &FileEntry) -> Result<(), BackupError> {
    let path = entry.path.full_path(folder);
    let mut file = rooted_fs::open_to_read(folder, &entry.path).map_err(BackupError::file("read", &path))?;
    let mut sum = Sha256::new();
    let mut bytes = 0;
    let mut piece = vec![0; PIECE];
    loop {
        let read = file.read(&mut piece).map_err(BackupError::file("read", &path))?;
        if read == 0 {
            break;
        }
        sum.update(piece.get(..read).unwrap_or_default());
        bytes += read as u64;
    }
    if bytes != entry.bytes {
        return Err(BackupError::damaged_file(path, format!("it is {bytes} bytes long, and was {}", entry.bytes)));
    }
    match hex(&sum.finalize()) == entry.sha256 {
        true => Ok(()),
        false => Err(BackupError::damaged_file(path, "it is not the file that was written: its SHA-256 is another")),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The lines of these files, one after the other.
pub struct SegmentLines {
    folder: PathBuf,
    files: vec::IntoIter<FileEntry>,
    open: Option<SegmentReader>,
    last: u64,
}

struct SegmentReader {
    path: PathBuf,
    lines: BufReader<MultiGzDecoder<BufReader<File>>>,
    left: u64,
}

impl SegmentLines {
    pub fn new(folder: &Path, files: Vec<FileEntry>) -> Self {
        Self { folder: folder.to_owned(), files: files.into_iter(), open: None, last: 0 }
    }

    fn read_line(&mut self) -> Result<Option<MessageLine>, BackupError> {
        loop {
            if let Some(open) = &mut self.open
                && open.left > 0
            {
                let line = open.read_line()?;
                if line.sequence <= self.last {
                    let why = format!("message {} stands behind {}", line.sequence, self.last);
                    return Err(BackupError::damaged_file(&open.path, why));
                }
                self.last = line.sequence;
                return Ok(Some(line));
            }
            let Some(entry) = self.files.next() else { return Ok(None) };
            let path = entry.path.full_path(&self.folder);
            let file = rooted_fs::open_to_read(&self.folder, &entry.path).map_err(BackupError::file("read", &path))?;
            let lines = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
            self.open = Some(SegmentReader { path, lines, left: entry.messages });
        }
    }
}

impl SegmentReader {
    fn read_line(&mut self) -> Result<MessageLine, BackupError> {
        let mut text = Vec::new();
        let read = (&mut self.lines).take(LINE).read_until(b'\n', &mut text);
        read.map_err(|error| BackupError::damaged_file(&self.path, error.to_string()))?;
        if text.last() != Some(&b'\n') {
            return Err(BackupError::damaged_file(
                &self.path,
                format!("{} messages are missing at its end", self.left),
            ));
        }
        self.left -= 1;
        serde_json::from_slice(&text).map_err(|error| BackupError::damaged_file(&self.path, error.to_string()))
    }
}

/// Ends behind the first error.
impl Iterator for SegmentLines {
    type Item = Result<MessageLine, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read_line();
        if read.is_err() {
            (self.open, self.files) = (None, Vec::new().into_iter());
        }
        read.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(sequence: u64) -> MessageLine {
        let stored = Timestamp::UNIX_EPOCH;
        let subject = "kairo.user.ann.message.3".to_owned();
        MessageLine { sequence, stored, subject, headers: Vec::new(), data: vec![7; 100] }
    }

    fn written(folder: &Path, sequences: &[u64]) -> FileEntry {
        let mut writer = SegmentWriter::new(folder, "log".to_owned());
        sequences.iter().for_each(|sequence| writer.write(&line(*sequence)).unwrap());
        writer.finish().unwrap().remove(0)
    }

    fn read(folder: &Path, entry: &FileEntry) -> Result<Vec<u64>, BackupError> {
        SegmentLines::new(folder, vec![entry.clone()]).map(|line| Ok(line?.sequence)).collect()
    }

    #[test]
    fn what_was_written_is_read_and_held_to_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let entry = written(folder.path(), &[3, 5, 9]);
        assert_eq!((entry.first, entry.last, entry.messages, entry.content_bytes), (3, 9, 3, 300));
        verify_file(folder.path(), &entry).unwrap();
        assert_eq!(read(folder.path(), &entry).unwrap(), [3, 5, 9]);
        let path = entry.path.full_path(folder.path());
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(verify_file(folder.path(), &entry).unwrap_err().to_string().contains(path.to_str().unwrap()));
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(read(folder.path(), &entry).unwrap_err().to_string().contains(path.to_str().unwrap()));
    }

    #[test]
    fn lines_that_are_missing_or_out_of_order_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let entry = written(folder.path(), &[3, 5]);
        let more = FileEntry { messages: 3, ..entry };
        assert!(read(folder.path(), &more).unwrap_err().to_string().contains("1 messages are missing"));
        let entry = written(folder.path(), &[5, 3]);
        assert!(read(folder.path(), &entry).unwrap_err().to_string().contains("message 3 stands behind 5"));
    }
}
