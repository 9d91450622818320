//! Calls that a model has written into its words, since its server has no parser for them. They are calls only where the whole
//! answer is that, or stands behind a marker that no prose begins a line with; and where each names an offered tool.

mod call_holdback;
mod python;
mod scanner;
mod tags;

pub use self::call_holdback::CallHoldback;
use self::scanner::Scanner;
use crate::offered_tools::OfferedTools;

/// Longest text in which calls are looked for, in bytes.
const LONGEST: usize = 1 << 20;

/// Markers that begin a call, and no line of prose.
const MARKERS: [&str; 20] = [
    "<|start|>assistant<|channel|>commentary",
    "<tool_call>",
    "<tool_calls>",
    "<function=",
    "<function_calls>",
    "<function_call>",
    "<functioncall>",
    "<invoke name=",
    "<minimax:tool_call>",
    "<seed:tool_call>",
    "<|tool_call|>",
    "<|tool_call_start|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|python_tag|>",
    "<|channel|>commentary to=",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜DSML｜",
    "[TOOL_CALLS]",
];

/// A call as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenCall {
    /// The name of an offered tool.
    pub tool: String,
    pub arguments: String,
}

/// The contents of an answer with calls written into its text.
#[derive(Debug, PartialEq)]
pub struct WrittenAnswer {
    /// The words before the calls.
    pub words: String,
    pub calls: Vec<WrittenCall>,
}

/// Reads the calls of an answer; none if it is words.
pub fn read(text: &str, offered: &OfferedTools) -> Option<WrittenAnswer> {
    if offered.is_empty() || text.len() > LONGEST {
        return None;
    }
    // DeepSeek's mark within tags says nothing that the tags do not.
    let text = text.replace("｜DSML｜", "");
    let trimmed = text.trim();
    if let Some(calls) = Scanner::new(trimmed, offered).calls() {
        return Some(WrittenAnswer { words: String::new(), calls });
    }
    let at = find_marked_line(trimmed)?;
    let (words, rest) = trimmed.split_at_checked(at)?;
    let calls = Scanner::new(rest, offered).calls()?;
    Some(WrittenAnswer { words: words.trim_end().to_owned(), calls })
}

/// Returns the position of the first line outside of code that begins with a marker.
fn find_marked_line(text: &str) -> Option<usize> {
    let mut at = 0;
    let mut in_code = false;
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            in_code = !in_code;
        } else if !in_code && MARKERS.iter().any(|marker| start.starts_with(marker)) {
            return Some(at + line.len() - start.len());
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests;
