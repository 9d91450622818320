//! The account of a process's output: the last of it, its size, and the progress reported in it.

use crate::{
    events::Tails,
    progress::{OutputProgress, ProgressFilter},
    protocol::{Output, OutputTotals, Stream},
    tail::TextTail,
};

/// Bytes of output that go along with progress: an event a second is no place for more.
const PROGRESS_TAIL_BYTES: usize = 1 << 10;

/// The books of one process.
#[derive(Debug)]
pub struct OutputAccount {
    stdout: ProgressFilter,
    stderr: ProgressFilter,
    tails: Tails,
    /// Of both streams in one.
    end: TextTail,
    written: OutputTotals,
    progress: Option<OutputProgress>,
}

impl OutputAccount {
    /// Keeps at most `tail_bytes` of each stream.
    pub fn new(tail_bytes: usize) -> Self {
        Self {
            stdout: ProgressFilter::default(),
            stderr: ProgressFilter::default(),
            tails: Tails::new(tail_bytes),
            end: TextTail::new(tail_bytes.min(PROGRESS_TAIL_BYTES)),
            written: OutputTotals::default(),
            progress: None,
        }
    }

    /// Takes in what the process wrote. What of it is output comes back; `progress` is added to `found`.
    pub fn record_output(&mut self, frame: Output, found: &mut Vec<OutputProgress>) -> Output {
        let before = found.len();
        let text = self.progress_filter(frame.stream).push(&frame.text, found);
        if found.len() > before {
            self.progress = found.last().cloned();
        }
        self.keep_output(Output { text, ..frame })
    }

    /// Returns the rest of both streams when the process has ended.
    pub fn finish(&mut self) -> Vec<Output> {
        let rest = [Stream::Stdout, Stream::Stderr].map(|stream| {
            let text = self.progress_filter(stream).finish();
            self.keep_output(Output { stream, seq: 0, text })
        });
        rest.into_iter().filter(|output| !output.text.is_empty()).collect()
    }

    /// `totals`, as the guard counted them, without the progress lines.
    pub fn without_progress(&self, totals: OutputTotals) -> OutputTotals {
        OutputTotals {
            stdout_bytes: totals.stdout_bytes.saturating_sub(self.stdout.removed_bytes()),
            stderr_bytes: totals.stderr_bytes.saturating_sub(self.stderr.removed_bytes()),
            ..totals
        }
    }

    /// Output so far, of what was passed on by the guard.
    pub fn written_totals(&self) -> OutputTotals {
        self.written
    }

    pub fn tails(&self) -> &Tails {
        &self.tails
    }

    /// The end of both streams, in the order they were read.
    pub fn combined_tail(&self) -> &str {
        self.end.as_str()
    }

    /// Returns the progress reported last.
    pub fn progress(&self) -> Option<&OutputProgress> {
        self.progress.as_ref()
    }

    fn keep_output(&mut self, output: Output) -> Output {
        let bytes = output.text.len() as u64;
        match output.stream {
            Stream::Stdout => self.written.stdout_bytes += bytes,
            Stream::Stderr => self.written.stderr_bytes += bytes,
        }
        self.tails.push(output.stream, &output.text);
        self.end.push(&output.text);
        output
    }

    fn progress_filter(&mut self, stream: Stream) -> &mut ProgressFilter {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: Stream, text: &str) -> Output {
        Output { stream, seq: 0, text: text.to_owned() }
    }

    #[test]
    fn progress_is_no_output_wherever_output_is_looked_at() {
        let mut account = OutputAccount::new(100);
        let mut found = Vec::new();
        let out = account.record_output(frame(Stream::Stdout, "a\n::progress 1/2 x\n::pro"), &mut found);
        let err = account.record_output(frame(Stream::Stderr, "gress 1%\n::progress 1/1 y\n"), &mut found);
        assert_eq!((out.text.as_str(), err.text.as_str()), ("a\n", "gress 1%\n"), "streams do not mix");
        assert_eq!(found.len(), 2);
        assert_eq!(account.progress().map(|progress| progress.message.as_str()), Some("y"));
        assert_eq!(account.combined_tail(), "a\ngress 1%\n");
        assert_eq!((account.tails().stdout(), account.tails().stderr()), ("a\n", "gress 1%\n"));
        assert_eq!((account.written_totals().stdout_bytes, account.written_totals().stderr_bytes), (2, 9));
    }

    #[test]
    fn what_was_held_back_is_output_in_the_end() {
        let mut account = OutputAccount::new(100);
        account.record_output(frame(Stream::Stderr, "::progress 50%"), &mut Vec::new());
        assert_eq!(account.finish(), [frame(Stream::Stderr, "::progress 50%")]);
        assert_eq!(account.finish(), []);
        assert_eq!(account.tails().stderr(), "::progress 50%");
    }

    #[test]
    fn what_the_guard_counted_is_put_right() {
        let mut account = OutputAccount::new(100);
        account.record_output(frame(Stream::Stdout, "::progress 50%\nabc"), &mut Vec::new());
        let totals = OutputTotals { stdout_bytes: 18, stderr_bytes: 0, discarded_bytes: 0 };
        assert_eq!(account.without_progress(totals).stdout_bytes, 3);
    }
}
