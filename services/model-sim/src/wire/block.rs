//! Blocks within the words of users and tools: what Kairo tells a model later than the one system message that endpoints take. They
//! are system words in all that rules ask.

use std::borrow::Cow;

/// What a block begins and ends with.
pub const OPEN: &str = "<kairo:context>";
pub const CLOSE: &str = "</kairo:context>";

/// A text without its blocks, and what they say.
pub fn split(text: Cow<'_, str>) -> (Cow<'_, str>, Vec<String>) {
    if !text.contains(OPEN) {
        return (text, Vec::new());
    }
    let (mut words, mut told) = (Vec::new(), Vec::new());
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
}
