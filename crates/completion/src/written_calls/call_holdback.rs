//! Keeps words from whoever watches as long as they may be calls: nobody wants to see JSON that is gone a moment later.

use super::MARKERS;
use crate::offered_tools::OfferedTools;

/// Longest beginning of an answer after which it is known whether calls may follow, in bytes.
const LONGEST_OPENING: usize = 256;
/// Keys that the object of a call begins with.
const KEYS: [&str; 14] = [
    "name",
    "tool",
    "tool_name",
    "function",
    "function_name",
    "recipient_name",
    "tool_calls",
    "function_calls",
    "calls",
    "arguments",
    "parameters",
    "id",
    "type",
    "args",
];

/// The state in which arriving words are handled.
#[derive(Clone, Copy, Debug, PartialEq)]
enum HoldState {
    /// The answer has just begun.
    Opening,
    /// They are words; a line may begin with a marker yet.
    Words,
    /// They are calls, as it seems.
    Calls,
}

/// Holds back what may be calls.
#[derive(Debug)]
pub struct CallHoldback {
    state: HoldState,
    held: String,
    begins_line: bool,
    in_code: bool,
    /// True if there are any tools that may be called.
    is_needed: bool,
    /// The tools, as an answer in Python would begin.
    offered: OfferedTools,
}

/// The kind of text that an answer begins with.
enum Opening {
    Words,
    Calls,
    Unclear,
}

impl CallHoldback {
    pub fn new(offered: &OfferedTools) -> Self {
        Self {
            state: HoldState::Opening,
            held: String::new(),
            begins_line: true,
            in_code: false,
            is_needed: !offered.is_empty(),
            offered: offered.clone(),
        }
    }

    /// Takes in words, and says which may be shown.
    pub fn filter(&mut self, words: &str) -> String {
        if !self.is_needed {
            return words.to_owned();
        }
        self.held.push_str(words);
        if self.state == HoldState::Opening {
            self.state = match self.opening() {
                Opening::Unclear => HoldState::Opening,
                Opening::Calls => HoldState::Calls,
                Opening::Words => HoldState::Words,
            };
        }
        if self.state == HoldState::Words { self.release() } else { String::new() }
    }

    /// Returns the text that was held back, when no more comes.
    pub fn finish(self) -> String {
        self.held
    }

    fn opening(&self) -> Opening {
        let text = self.held.trim_start();
        if text.len() > LONGEST_OPENING {
            return self.opening_of(text).unwrap_or(Opening::Words);
        }
        self.opening_of(text).unwrap_or(Opening::Unclear)
    }

    /// Returns the kind of answer that a text begins; none where more of it must be seen.
    fn opening_of(&self, text: &str) -> Option<Opening> {
        if MARKERS.iter().any(|marker| text.starts_with(marker)) {
            return Some(Opening::Calls);
        }
        if text.is_empty() || MARKERS.iter().any(|marker| marker.starts_with(text)) {
            return None;
        }
        if let Some(fenced) = text.strip_prefix("```") {
            let (word, within) = fenced.split_once('\n')?;
            return match word.trim() {
                "tool_code" | "tool_call" | "tool_calls" => Some(Opening::Calls),
                "json" | "" | "python" | "py" => self.opening_of_json(within.trim_start()),
                _ => Some(Opening::Words),
            };
        }
        if "```".starts_with(text) {
            return None;
        }
        self.opening_of_json(text)
    }

    /// Returns the kind of answer that JSON or a call in Python begins; `None` if more of it must be seen.
    fn opening_of_json(&self, text: &str) -> Option<Opening> {
        if text.is_empty() {
            return None;
        }
        if let Some(within) = text.strip_prefix('{') {
            let within = within.trim_start();
            let Some(quoted) = within.strip_prefix(['"', '\'']) else {
                return if within.is_empty() { None } else { Some(Opening::Words) };
            };
            let key = quoted.split(['"', '\'']).next()?;
            let is_whole = key.len() < quoted.len();
            let may_be = KEYS.contains(&key) || self.offered.has(key);
            return match (is_whole, may_be) {
                (true, true) => Some(Opening::Calls),
                (true, false) => Some(Opening::Words),
                (false, _) => None,
            };
        }
        if let Some(within) = text.strip_prefix('[') {
            return self.opening_of_json(within.trim_start());
        }
        let word = text.split(|sign: char| !sign.is_alphanumeric() && !matches!(sign, '_' | '.' | ':')).next()?;
        let is_whole = word.len() < text.len();
        match is_whole {
            true if text.get(word.len()..)?.starts_with('(')
                && (word == "print" || self.offered.find_meant(word).is_some()) =>
            {
                Some(Opening::Calls)
            }
            false
                if !word.is_empty()
                    && (self.offered.has_prefix(word)
                        || "print".starts_with(word)
                        || "default_api".starts_with(word)) =>
            {
                None
            }
            _ => Some(Opening::Words),
        }
    }

    /// Returns the words that may be shown: all but a line that begins with a marker, and what follows it.
    fn release(&mut self) -> String {
        let mut shown = String::new();
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        while !rest.is_empty() {
            let start = rest.trim_start_matches([' ', '\t']);
            if self.begins_line {
                let is_marked = !self.in_code && MARKERS.iter().any(|marker| start.starts_with(marker));
                let may_be =
                    !self.in_code && MARKERS.iter().any(|marker| marker.starts_with(start)) || "```".starts_with(start);
                if is_marked || may_be {
                    self.state = if is_marked { HoldState::Calls } else { HoldState::Words };
                    break;
                }
                self.in_code ^= start.starts_with("```") || start.starts_with("~~~");
            }
            let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
            let (line, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
            self.begins_line = line.ends_with('\n');
            shown.push_str(line);
            rest = behind;
        }
        rest.clone_into(&mut self.held);
        shown
    }
}
