//! The guard's two pipes to its supervisor. Neither may ever make it wait.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::line_buffer::LineBuffer;
use crate::protocol::{GuardCommand, MAX_LINE_BYTES, Report};

/// A pipe that polls as writable takes this much at once without blocking (`PIPE_BUF`).
const ATOMIC_WRITE_BYTES: usize = 4096;

/// Reports that wait for the supervisor before no more output is read.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// No pipe holds more than this many reads, so whoever goes on writing cannot keep the guard here.
pub(super) const MAX_READS: usize = 256;

/// Commands come in here.
pub(super) struct CommandPipe {
    pipe: File,
    lines: LineBuffer,
}

impl CommandPipe {
    /// On standard input.
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { pipe: File::from(io::stdin().as_fd().try_clone_to_owned()?), lines: LineBuffer::new(MAX_LINE_BYTES) })
    }

    /// Reads all that has come.
    ///
    /// # Errors
    /// As [`CommandPipe::read`].
    pub(super) fn read_available(&mut self) -> io::Result<()> {
        for _ in 0..MAX_READS {
            if !is_readable(self.pipe.as_fd()) {
                break;
            }
            self.read()?;
        }
        Ok(())
    }

    /// Reads once: waits, unless there is something.
    ///
    /// # Errors
    /// When the supervisor is gone, which the end of the pipe tells.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        let count = self.pipe.read(&mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.lines.push(bytes.get(..count).unwrap_or_default());
        Ok(())
    }

    /// The next command of those that were read.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn next_command(&mut self) -> io::Result<Option<GuardCommand>> {
        let line = self.lines.next_line().map_err(io::Error::other)?;
        line.map(|line| serde_json::from_slice(&line).map_err(io::Error::from)).transpose()
    }
}

impl AsFd for CommandPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Reports go out here, as fast as the supervisor reads them.
///
/// A slow supervisor must not stop the guard from watching, so what it has not read waits here.
pub(super) struct Reports {
    pipe: File,
    waiting: VecDeque<u8>,
}

impl Reports {
    /// On standard output.
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { pipe: File::from(io::stdout().as_fd().try_clone_to_owned()?), waiting: VecDeque::new() })
    }

    pub(super) fn push(&mut self, report: &Report) -> io::Result<()> {
        serde_json::to_writer(&mut self.waiting, report)?;
        self.waiting.push_back(b'\n');
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true if the supervisor keeps up well enough to be given more output.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < MAX_WAITING_BYTES
    }

    /// Writes once, no more than a pipe that polls as writable is sure to take.
    ///
    /// # Errors
    /// When the supervisor has closed its end.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let (head, _) = self.waiting.as_slices();
        if head.is_empty() {
            // Only an end that was closed is ready while there is nothing to write.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let head = head.get(..ATOMIC_WRITE_BYTES).unwrap_or(head);
        let written = self.pipe.write(head)?;
        self.waiting.drain(..written);
        Ok(())
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Returns true if a read would not block.
pub(super) fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}
