//! Blocks within the words of users and tools: what Kairo tells a model later than the one system message that endpoints take. They
//! are system words in all that rules ask.

use std::borrow::Cow;

/// Markers at the beginning and the end of a block.
pub const OPEN: &str = "<kairo:context>";
pub const CLOSE: &str = "</kairo:context>";

/// A text without its blocks, and what they say.
pub fn split(text: Cow<'_, str>) -> (Cow<'_, str>, Vec<String>) {
    if !text.contains(OPEN) {
        return (text, Vec::new());
    }
    let mut words = Vec::new();
    let mut told = Vec::new();
    let mut rest = text.as_ref();
    while let Some((before, (block, behind))) =
        rest.split_once(OPEN).and_then(|(before, inner)| Some((before, inner.split_once(CLOSE)?)))
    {
        words.push(before.trim_matches('\n'));
        told.push(block.trim_matches('\n').to_owned());
        rest = behind;
    }
    words.push(rest.trim_matches('\n'));
    words.retain(|words| !words.is_empty());
    (Cow::Owned(words.join("\n\n")), told)
}

/// The messages that a user's text is made of, each with what the blocks behind it say: a block stands between two messages where no
/// answer does.
pub fn messages(text: Cow<'_, str>) -> Vec<(Cow<'_, str>, Vec<String>)> {
    let mut all = Vec::new();
    let mut rest = text.as_ref();
    while let Some(at) = next_message(rest) {
        let (before, behind) = rest.split_at(at);
        all.push(split(Cow::Owned(before.to_owned())));
        rest = behind.trim_start_matches('\n');
    }
    if all.is_empty() {
        return vec![split(text)];
    }
    all.push(split(Cow::Owned(rest.to_owned())));
    all
}

/// Returns the position where words begin again behind a block that stands behind words.
fn next_message(text: &str) -> Option<usize> {
    let first = text.find(OPEN)?;
    if text.get(..first)?.trim().is_empty() {
        // Blocks at the beginning belong to what follows.
        let behind = first + text.get(first..)?.find(CLOSE)? + CLOSE.len();
        return next_message(text.get(behind..)?).map(|at| behind + at);
    }
    let mut at = first;
    while text.get(at..)?.trim_start().starts_with(OPEN) {
        at += text.get(at..)?.find(CLOSE)? + CLOSE.len();
    }
    (!text.get(at..)?.trim().is_empty()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_from_words() {
        for (text, words, told) in [
            ("hello", "hello", &[][..]),
            ("<kairo:context>\na\nb\n</kairo:context>", "", &["a\nb"]),
            ("{}\n\n<kairo:context>\na\n</kairo:context>\n\n<kairo:context>\nb\n</kairo:context>", "{}", &["a", "b"]),
            ("<kairo:context>\na\n</kairo:context>\n\nhello\nyou", "hello\nyou", &["a"]),
            ("hello <kairo:context> open", "hello <kairo:context> open", &[]),
        ] {
            let (left, found) = split(Cow::Borrowed(text));
            assert_eq!((left.as_ref(), found.iter().map(String::as_str).collect::<Vec<_>>().as_slice()), (words, told));
        }
    }

    #[test]
    fn a_block_between_words_of_a_user_parts_two_messages() {
        let block = |text: &str| format!("{OPEN}\n{text}\n{CLOSE}");
        for (text, expected) in [
            ("hello".to_owned(), vec![("hello", vec![])]),
            (format!("one\n\n{}\n\ntwo", block("next")), vec![("one", vec!["next"]), ("two", vec![])]),
            (
                format!("{}\n\none\n\n{}\n\n{}\n\ntwo\n\n{}", block("a"), block("b"), block("c"), block("d")),
                vec![("one", vec!["a", "b", "c"]), ("two", vec!["d"])],
            ),
            (format!("{}\n\n{}", block("a"), block("b")), vec![("", vec!["a", "b"])]),
            (format!("{}\n\none", block("a")), vec![("one", vec!["a"])]),
        ] {
            let found = messages(Cow::Borrowed(&text));
            let found: Vec<(&str, Vec<&str>)> =
                found.iter().map(|(words, told)| (&**words, told.iter().map(String::as_str).collect())).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
