//! The program's standard input, as far as the guard has to do with it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::PollFlags;

use crate::protocol::Report;

/// Input that the program has no room for yet. The supervisor counts it and bounds its size.
pub(super) struct ProgramInput {
    /// While it can be written to.
    pipe: Option<PipeWriter>,
    waiting: VecDeque<u8>,
    /// Close the pipe when nothing waits any more.
    closing: bool,
}

impl ProgramInput {
    /// A pipe, or nothing to write to; and what the program reads from.
    pub(super) fn open(pipe: bool) -> io::Result<(Self, OwnedFd)> {
        let closed = Self { pipe: None, waiting: VecDeque::new(), closing: false };
        if !pipe {
            return Ok((closed, File::open("/dev/null")?.into()));
        }
        let (reader, writer) = io::pipe()?;
        // A program can fill its own input, right after `poll` has found room in it.
        fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok((Self { pipe: Some(writer), ..closed }, reader.into()))
    }

    /// Takes what shall be written. After the end of the pipe it is thrown away.
    pub(super) fn push(&mut self, text: &str, close: bool) {
        if self.pipe.is_some() {
            self.waiting.extend(text.as_bytes());
            self.closing |= close;
            self.close_when_done();
        }
    }

    /// Returns the pipe to poll and the events to wait for. With nothing to write, polling still shows that the program
    /// has closed its end.
    pub(super) fn pipe(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let wanted = if self.waiting.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
        self.pipe.as_ref().map(|pipe| (pipe.as_fd(), wanted))
    }

    /// Writes once, when the pipe polls as ready, and reports the result.
    pub(super) fn write(&mut self) -> Option<Report> {
        let pipe = self.pipe.as_mut()?;
        let (head, _) = self.waiting.as_slices();
        let written = match head {
            // Only an end that was closed is ready while there is nothing to write.
            [] => Err(ErrorKind::BrokenPipe.into()),
            head => pipe.write(head),
        };
        match written {
            Ok(bytes) => {
                self.waiting.drain(..bytes);
                self.close_when_done();
                Some(Report::InputTaken { bytes })
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            Err(_) => {
                self.pipe = None;
                self.waiting = VecDeque::new();
                Some(Report::InputClosed)
            }
        }
    }

    fn close_when_done(&mut self) {
        if self.closing && self.waiting.is_empty() {
            self.pipe = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn open() -> (ProgramInput, File) {
        let (input, reader) = ProgramInput::open(true).expect("a pipe");
        (input, File::from(reader))
    }

    #[test]
    fn what_the_pipe_does_not_hold_waits_and_is_closed_in_the_end() {
        let (mut input, mut reader) = open();
        let text = "x".repeat(100 << 10);
        input.push(&text, true);
        let taken = |report| match report {
            Some(Report::InputTaken { bytes }) => bytes,
            other => panic!("{other:?}"),
        };
        let first = taken(input.write());
        assert!(first < text.len(), "{first}");
        assert_eq!(input.write(), None, "full, and nobody waits for it");
        reader.read_exact(&mut vec![0; first]).expect("what was written");
        assert_eq!(first + taken(input.write()), text.len());
        assert!(input.pipe().is_none(), "closed");
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("an end");
        assert_eq!(rest.len(), text.len() - first);
    }

    #[test]
    fn a_program_that_has_closed_it_is_no_error_and_said_once() {
        for text in ["", "x"] {
            let (mut input, reader) = open();
            drop(reader);
            input.push(text, false);
            assert_eq!(input.write(), Some(Report::InputClosed));
            assert!(input.pipe().is_none());
            input.push("y", true);
            assert_eq!(input.write(), None, "thrown away");
        }
    }

    #[test]
    fn without_a_pipe_the_program_reads_nothing() {
        let (input, reader) = ProgramInput::open(false).expect("/dev/null");
        assert!(input.pipe().is_none());
        assert_eq!(File::from(reader).read(&mut [0]).expect("read"), 0);
    }
}
