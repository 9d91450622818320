//! Finding references in a text.
//!
//! A path is segments joined by `.`, each of letters, digits, `_` and `-`, and perhaps with a number: `a.b[0].c`. Within
//! braces it is a reference; within doubled braces it is shown with single ones. All other braces, such as those of
//! JSON and of code, are text.

use std::borrow::Cow;

/// Longest path, in bytes; what is longer is text.
const PATH_BYTES: usize = 256;
/// Digits of a number within a path.
const DIGITS: usize = 6;

/// A part of a text.
#[derive(Debug, PartialEq)]
pub enum TextPiece<'t> {
    Text(&'t str),
    Braced(BracedPath<'t>),
}

/// A path within braces.
#[derive(Debug, PartialEq)]
pub struct BracedPath<'t> {
    /// With its braces.
    pub raw: &'t str,
    pub path: ReferencePath<'t>,
    opening: usize,
    closing: usize,
}

/// `a.b[0].c`
#[derive(Debug, PartialEq)]
pub struct ReferencePath<'t> {
    pub text: &'t str,
    pub segments: Vec<PathSegment<'t>>,
}

#[derive(Debug, PartialEq)]
pub struct PathSegment<'t> {
    pub name: &'t str,
    pub index: Option<usize>,
    /// The path up to here, without the number of this segment.
    pub so_far: &'t str,
}

impl BracedPath<'_> {
    /// Returns true for a reference: doubled braces are escapes, so their number of pairs must be odd.
    pub fn is_reference(&self) -> bool {
        self.brace_pairs() % 2 == 1
    }

    /// Returns true if there is exactly one brace on each side.
    pub fn is_single_braced(&self) -> bool {
        self.opening == 1 && self.closing == 1
    }

    /// Formats `inner` with the braces that are text.
    pub fn wrap_in_braces(&self, inner: &str) -> String {
        let braces = |brace: &str, count: usize| brace.repeat(count - self.brace_pairs() + self.brace_pairs() / 2);
        format!("{}{inner}{}", braces("{", self.opening), braces("}", self.closing))
    }

    fn brace_pairs(&self) -> usize {
        self.opening.min(self.closing)
    }
}

/// The parts of a text, in their order.
pub fn split_pieces(text: &str) -> Vec<TextPiece<'_>> {
    let mut pieces = Vec::new();
    // Where the text begins that is not yet a piece, and where to look on.
    let mut begun = 0;
    let mut at = 0;
    while let Some((_, rest)) = text.split_at_checked(at) {
        let Some(opening_at) = rest.find('{') else { break };
        let opening = count_leading(rest.split_at(opening_at).1, '{');
        at += opening_at + opening;
        let Some(path) = parse_path(text.split_at(at).1) else { continue };
        let raw_at = at - opening;
        let behind = text.split_at(at + path.text.len()).1;
        let closing = count_leading(behind, '}');
        at += path.text.len() + closing;
        if begun < raw_at {
            pieces.extend(text.get(begun..raw_at).map(TextPiece::Text));
        }
        let raw = text.get(raw_at..at).unwrap_or_default();
        pieces.push(TextPiece::Braced(BracedPath { raw, path, opening, closing }));
        begun = at;
    }
    pieces.extend(text.get(begun..).filter(|rest| !rest.is_empty()).map(TextPiece::Text));
    pieces
}

/// The text written so that it is shown as it is: what would be a reference gets its braces doubled.
pub fn escape_braces(text: &str) -> Cow<'_, str> {
    let pieces = split_pieces(text);
    if !pieces.iter().any(|piece| matches!(piece, TextPiece::Braced(_))) {
        return Cow::Borrowed(text);
    }
    let written = pieces.iter().map(|piece| match piece {
        TextPiece::Text(text) => (*text).to_owned(),
        TextPiece::Braced(braced) => {
            format!("{}{}{}", "{".repeat(braced.brace_pairs()), braced.raw, "}".repeat(braced.brace_pairs()))
        }
    });
    Cow::Owned(written.collect())
}

fn count_leading(text: &str, brace: char) -> usize {
    text.chars().take_while(|c| *c == brace).count()
}

/// The path at the beginning of a text, if a closing brace follows it.
fn parse_path(text: &str) -> Option<ReferencePath<'_>> {
    let mut segments = Vec::new();
    let mut rest = text;
    loop {
        let (name, behind) = rest.split_at(rest.find(|c| !is_name_char(c))?);
        let so_far = text.get(..text.len() - behind.len())?;
        let (index, behind) = parse_index(behind)?;
        if name.is_empty() || so_far.len() > PATH_BYTES {
            return None;
        }
        segments.push(PathSegment { name, index, so_far });
        match behind.strip_prefix('.') {
            Some(next) => rest = next,
            None if behind.starts_with('}') => {
                // `{2}` is a quantifier of a regular expression rather than a reference.
                let named = segments.first()?.name.contains(|c: char| c.is_ascii_alphabetic());
                return named.then_some(ReferencePath { text: text.get(..text.len() - behind.len())?, segments });
            }
            None => return None,
        }
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// `[0]` at the beginning of a text, and what is behind it.
fn parse_index(text: &str) -> Option<(Option<usize>, &str)> {
    let Some(inner) = text.strip_prefix('[') else { return Some((None, text)) };
    let (digits, behind) = inner.split_at(inner.find(|c: char| !c.is_ascii_digit())?);
    let number = digits.parse().ok().filter(|_| digits.len() <= DIGITS)?;
    Some((Some(number), behind.strip_prefix(']')?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text with its references marked and its other braces as they are shown.
    fn marked(text: &str) -> String {
        let show = |piece: &TextPiece<'_>| match piece {
            TextPiece::Text(text) => (*text).to_owned(),
            TextPiece::Braced(braced) if braced.is_reference() => {
                braced.wrap_in_braces(&format!("<{}>", braced.path.text))
            }
            TextPiece::Braced(braced) => braced.wrap_in_braces(braced.path.text),
        };
        split_pieces(text).iter().map(show).collect()
    }

    #[test]
    fn references_and_other_braces() {
        for (text, shown) in [
            ("{tools.now.date} 17:00", "<tools.now.date> 17:00"),
            ("{a}{b-c._d[12].e}", "<a><b-c._d[12].e>"),
            ("{{a.b}}", "{a.b}"),
            ("{{{a.b}}}", "{<a.b>}"),
            ("{{{{a.b}}}}", "{{a.b}}"),
            ("{{a.b} {a.b}}", "{<a.b> <a.b>}"),
            (r#"{"a": {"b": {a.b}}}"#, r#"{"a": {"b": <a.b>}}"#),
            (r#"{"a":{"b":{}}}"#, r#"{"a":{"b":{}}}"#),
            ("if x { y } {", "if x { y } {"),
            (
                "{a..b} {.a} {a.} {a[x]} {a[]} {a[0} {a[1234567]} {a b} {ä}",
                "{a..b} {.a} {a.} {a[x]} {a[]} {a[0} {a[1234567]} {a b} {ä}",
            ),
            (r"\d{2} {1.5} {-}", r"\d{2} {1.5} {-}"),
            ("{a\n} {{", "{a\n} {{"),
        ] {
            assert_eq!(marked(text), shown, "{text}");
        }
    }

    #[test]
    fn a_path_has_segments() {
        let text = "{team.members[1].result}";
        let pieces = split_pieces(text);
        let [TextPiece::Braced(braced)] = pieces.as_slice() else { panic!("{text}") };
        assert!(braced.is_single_braced() && braced.raw == text);
        let segments: Vec<_> = braced.path.segments.iter().map(|one| (one.name, one.index, one.so_far)).collect();
        let expected =
            [("team", None, "team"), ("members", Some(1), "team.members"), ("result", None, "team.members[1].result")];
        assert_eq!(segments, expected);
        let long = format!("{{a.{}}}", "b".repeat(PATH_BYTES));
        assert_eq!(split_pieces(&long), [TextPiece::Text(&long)]);
    }

    proptest! {
        #[test]
        fn all_of_a_text_is_in_its_pieces(text in "([{}]|a\\.b|\\[0\\]|\\PC){0,60}") {
            let pieces = split_pieces(&text);
            let raw = pieces.iter().map(|piece| match piece {
                TextPiece::Text(text) => (*text).to_owned(),
                TextPiece::Braced(braced) => braced.raw.to_owned(),
            });
            prop_assert_eq!(raw.collect::<String>(), text.clone());
        }

        #[test]
        fn what_is_escaped_is_shown_as_it_was(text in "([{}]|a\\.b|\\[0\\]|\\PC){0,60}") {
            prop_assert_eq!(marked(&escape_braces(&text)), text);
        }
    }

    #[test]
    fn many_braces_take_no_long_time() {
        for bomb in ["{", "{a", "{a.b[0", "}", "{a}", "{{a}"] {
            let text = bomb.repeat(200_000);
            assert_eq!(marked(&escape_braces(&text)), text);
        }
    }
}
