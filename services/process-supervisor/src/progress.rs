//! Progress lines: how a process says, within what it writes, how far it is.
//!
//! A line `::progress <how far> [message]` on either stream, where how far is `42%`, `42.5%`, `3/10` or `-` for unknown.
//! Such a line is taken out of the output. A line that begins alike and is not one is output like any other.

use std::time::Duration;

const PREFIX: &str = "::progress ";
/// Longest progress line in bytes, without its end.
const MAX_LINE_BYTES: usize = 1 << 10;
/// Characters of a message that are kept.
const MAX_MESSAGE_CHARS: usize = 200;

/// The progress that a process reports.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputProgress {
    /// 0 to 1; none where it does not know.
    pub fraction: Option<f64>,
    pub message: String,
}

impl OutputProgress {
    /// Reads a line without its end; `None` when it is no progress line.
    pub fn parse(line: &str) -> Option<Self> {
        if line.len() > MAX_LINE_BYTES {
            return None;
        }
        let rest = line.strip_prefix(PREFIX)?;
        let (how_far, message) = rest.split_once(' ').unwrap_or((rest, ""));
        let fraction = fraction(how_far)?;
        Some(Self { fraction, message: message.trim().chars().take(MAX_MESSAGE_CHARS).collect() })
    }
}

/// `Some(None)` is the word for not knowing.
fn fraction(how_far: &str) -> Option<Option<f64>> {
    if how_far == "-" {
        return Some(None);
    }
    let fraction = match how_far.strip_suffix('%') {
        Some(percent) => parse_decimal(percent)? / 100.0,
        None => {
            let (done, all) = how_far.split_once('/')?;
            let done = parse_whole_number(done)?;
            let all = parse_whole_number(all)?;
            (all > 0).then_some(done as f64 / all as f64)?
        }
    };
    (0.0..=1.0).contains(&fraction).then_some(Some(fraction))
}

/// Digits alone, unlike what [`str::parse`] takes: no sign, no exponent, no `inf`.
fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse_whole_number(text: &str) -> Option<u64> {
    is_digits(text).then(|| text.parse().ok())?
}

fn parse_decimal(text: &str) -> Option<f64> {
    let well_formed = match text.split_once('.') {
        Some((before, after)) => is_digits(before) && is_digits(after),
        None => is_digits(text),
    };
    well_formed.then(|| text.parse().ok())?
}

/// Takes the progress lines out of one stream, as it comes in pieces.
#[derive(Debug, Default)]
pub struct ProgressFilter {
    /// The beginning of a line that could still become a progress line. Nothing else is held back.
    held: String,
    mid_line: bool,
    taken_bytes: u64,
}

impl ProgressFilter {
    /// Returns the output in the held-back text and in `text`; progress is added to `found`.
    pub fn push(&mut self, text: &str, found: &mut Vec<OutputProgress>) -> String {
        let mut output = String::with_capacity(text.len());
        for piece in text.split_inclusive('\n') {
            if self.mid_line || (self.held.is_empty() && !piece.starts_with(':')) {
                output.push_str(piece);
                self.mid_line = !piece.ends_with('\n');
            } else {
                self.held.push_str(piece);
                self.settle(&mut output, found);
            }
        }
        output
    }

    /// Returns the unfinished line that was held back when the stream ended.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Bytes of the progress lines so far, which are no output.
    pub fn removed_bytes(&self) -> u64 {
        self.taken_bytes
    }

    fn settle(&mut self, output: &mut String, found: &mut Vec<OutputProgress>) {
        match self.held.strip_suffix('\n') {
            Some(line) => match OutputProgress::parse(line.strip_suffix('\r').unwrap_or(line)) {
                Some(progress) => {
                    self.taken_bytes += self.held.len() as u64;
                    self.held.clear();
                    found.push(progress);
                }
                None => output.push_str(&std::mem::take(&mut self.held)),
            },
            None if !could_become_progress(&self.held) => {
                output.push_str(&std::mem::take(&mut self.held));
                self.mid_line = true;
            }
            None => {}
        }
    }
}

fn could_become_progress(beginning: &str) -> bool {
    match beginning.strip_prefix(PREFIX) {
        // With room for the carriage return that may belong to its end.
        Some(_) if beginning.len() > MAX_LINE_BYTES + 1 => false,
        Some(rest) => rest.split_once(' ').is_none_or(|(how_far, _)| fraction(how_far).is_some()),
        None => PREFIX.starts_with(beginning),
    }
}

/// Lets progress through at most once in an interval: the newest, and never loses the last. Times are durations since
/// the process began; whoever waits passes them in.
#[derive(Debug)]
pub struct Pace {
    interval: Duration,
    not_before: Duration,
    numbered: u64,
    pending: Option<(u64, OutputProgress)>,
}

impl Pace {
    pub fn new(interval: Duration) -> Self {
        Self { interval, not_before: Duration::ZERO, numbered: 0, pending: None }
    }

    /// Something newer than what may be pending.
    pub fn push(&mut self, progress: OutputProgress) {
        self.pending = Some((self.numbered, progress));
        self.numbered += 1;
    }

    /// Puts back progress that was taken and did not arrive; dropped if there is newer progress.
    pub fn put_back(&mut self, number: u64, progress: OutputProgress) {
        self.pending.get_or_insert((number, progress));
    }

    /// Returns the progress that may go out at `now`, with its number, unique within the process.
    pub fn take_due(&mut self, now: Duration) -> Option<(u64, OutputProgress)> {
        let due = self.pending.take_if(|_| now >= self.not_before)?;
        self.not_before = now + self.interval;
        Some(due)
    }

    /// Returns the time from which on [`Pace::take_due`] has the pending progress, if there is any.
    pub fn deadline(&self) -> Option<Duration> {
        self.pending.as_ref().map(|_| self.not_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction_of(line: &str) -> Option<f64> {
        OutputProgress::parse(line).unwrap_or_else(|| panic!("{line:?} is a progress line")).fraction
    }

    fn read(pieces: &[&str]) -> (String, Vec<OutputProgress>) {
        let mut lines = ProgressFilter::default();
        let mut found = Vec::new();
        let mut output = String::new();
        for piece in pieces {
            output.push_str(&lines.push(piece, &mut found));
        }
        output.push_str(&lines.finish());
        (output, found)
    }

    #[test]
    fn fuzz_progress_lines() {
        kairo_fuzz::Corpus::named("progress").one_in(10).fuzz_text(|text| {
            let whole = read(&[text]);
            let in_pieces: Vec<String> = text.chars().map(String::from).collect();
            assert_eq!(read(&in_pieces.iter().map(String::as_str).collect::<Vec<_>>()), whole);
            for progress in whole.1 {
                assert!(progress.fraction.is_none_or(|fraction| (0.0..=1.0).contains(&fraction)), "{progress:?}");
            }
        });
    }

    #[test]
    fn how_far_is_a_percentage_a_count_or_unknown() {
        assert_eq!(fraction_of("::progress 42%"), Some(0.42));
        assert_eq!(fraction_of("::progress 42.5% half of it, nearly"), Some(0.425));
        assert_eq!(fraction_of("::progress 3/10 files"), Some(0.3));
        assert_eq!(fraction_of("::progress 0/1"), Some(0.0));
        assert_eq!(fraction_of("::progress 100%"), Some(1.0));
        assert_eq!(fraction_of("::progress - thinking"), None);
    }

    #[test]
    fn a_message_is_free_text_of_bounded_length() {
        let message = |line: &str| OutputProgress::parse(line).unwrap().message;
        assert_eq!(message("::progress 1% 第 3 章  of 5 "), "第 3 章  of 5");
        assert_eq!(message("::progress -"), "");
        assert_eq!(message(&format!("::progress - {}", "界".repeat(300))).chars().count(), 200);
    }

    #[test]
    fn whatever_else_begins_alike_is_output() {
        let long = format!("::progress 1% {}", "x".repeat(1_024));
        let malformed = [
            "::progress",
            "::progress ",
            "::progress fast",
            "::progress 120%",
            "::progress 100.01%",
            "::progress -1%",
            "::progress +1%",
            "::progress 1e1%",
            "::progress nan%",
            "::progress inf%",
            "::progress %",
            "::progress .5%",
            "::progress 5.%",
            "::progress 1.2.3%",
            "::progress 42",
            "::progress 0.5",
            "::progress 5/0",
            "::progress 0/0",
            "::progress 6/5",
            "::progress -1/5",
            "::progress 1/",
            "::progress /2",
            "::progress 1/2/3",
            "::progress 99999999999999999999/99999999999999999999",
            "::progress 1.5/2",
            "::progress  1%",
            "::progress\t1%",
            " ::progress 1%",
            "::Progress 1%",
            "::progress1%",
            "::progress --",
            &long,
        ];
        for line in malformed {
            assert_eq!(OutputProgress::parse(line), None, "{line:?}");
            let text = format!("{line}\n::progress 1%\nafter\n");
            let (output, found) = read(&[&text]);
            assert_eq!((output, found.len()), (format!("{line}\nafter\n"), 1), "{line:?}");
        }
    }

    #[test]
    fn lines_are_found_however_the_text_is_cut() {
        let text = "a\n::progress 50% ü\r\n::progress no\n:: b\n::progress 2/2\n\nc ::progress 1%\n::progress 3";
        let output = "a\n::progress no\n:: b\n\nc ::progress 1%\n::progress 3";
        let boundaries: Vec<usize> = (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)).collect();
        for first in &boundaries {
            for second in boundaries.iter().filter(|second| *second >= first) {
                let (read, found) = read(&[&text[..*first], &text[*first..*second], &text[*second..]]);
                assert_eq!(read, output, "cut at {first} and {second}");
                let found: Vec<_> = found.iter().map(|progress| progress.fraction).collect();
                assert_eq!(found, [Some(0.5), Some(1.0)], "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn only_what_could_still_become_one_is_held_back() {
        let held = |text: &str| ProgressFilter::default().push(text, &mut Vec::new()).len() < text.len();
        for waiting in [":", "::progress", "::progress ", "::progress 4", "::progress 42% of", "x\n::pro"] {
            assert!(held(waiting), "{waiting:?}");
        }
        let long = format!("::progress 1% {}", "x".repeat(1_024));
        for passing in ["", "prompt> ", ": ", "::p ", "x::progress 1", "::progress fast ", "::progress 1%\nx", &long] {
            let whole = passing.replace("::progress 1%\n", "");
            assert_eq!(ProgressFilter::default().push(passing, &mut Vec::new()), whole, "{passing:?}");
        }
    }

    #[test]
    fn what_is_taken_out_is_counted() {
        let mut lines = ProgressFilter::default();
        lines.push("a\n::progress 1%\r\nb\n::progress x\n", &mut Vec::new());
        assert_eq!(lines.removed_bytes(), "::progress 1%\r\n".len() as u64);
    }

    fn at(percent: u32) -> OutputProgress {
        OutputProgress { fraction: Some(f64::from(percent) / 100.0), message: String::new() }
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_newest_goes_out_once_an_interval_and_the_last_is_not_lost() {
        let mut pace = Pace::new(ms(1_000));
        assert_eq!((pace.take_due(ms(0)), pace.deadline()), (None, None));
        pace.push(at(1));
        assert_eq!(pace.take_due(ms(10)), Some((0, at(1))));
        pace.push(at(2));
        pace.push(at(3));
        assert_eq!(pace.take_due(ms(1_009)), None);
        assert_eq!(pace.deadline(), Some(ms(1_010)));
        assert_eq!(pace.take_due(ms(1_010)), Some((2, at(3))));
        assert_eq!(pace.deadline(), None);
        pace.push(at(4));
        assert_eq!(pace.take_due(ms(9_000)), Some((3, at(4))), "after a pause at once");
    }

    #[test]
    fn what_did_not_arrive_goes_out_again_as_the_same_unless_there_is_something_newer() {
        let mut pace = Pace::new(ms(1_000));
        pace.push(at(1));
        let (number, progress) = pace.take_due(ms(0)).unwrap();
        pace.put_back(number, progress);
        assert_eq!(pace.take_due(ms(999)), None);
        assert_eq!(pace.take_due(ms(1_000)), Some((0, at(1))));
        pace.push(at(2));
        pace.put_back(0, at(1));
        assert_eq!(pace.take_due(ms(2_000)), Some((1, at(2))));
    }
}
