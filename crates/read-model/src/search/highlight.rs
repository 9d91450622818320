//! The snippet shown of a text that was found: the part with the words, marked, as HTML.

use super::{
    folding::fold_with_offsets,
    words::{SearchWord, tokens},
};

/// Letters shown of a text at most, and of those before the first word that was found.
const LETTERS: usize = 240;
const BEFORE: usize = 60;
const BEGIN: &str = "<mark>";
const END: &str = "</mark>";

/// The part of a text with the first of the words, or its beginning. Words stand in `<mark>`, `&`, `<` and `>` are
/// escaped, line breaks are spaces.
pub fn snippet(text: &str, words: &[SearchWord]) -> String {
    let marks = mark_ranges(text, words);
    let first = marks.first().map_or(0, |(begin, _)| *begin);
    let (begin, end) = snippet_window(text, first);
    let mut shown = String::from(if begin > 0 { "…" } else { "" });
    let mut at = begin;
    for (from, to) in marks.into_iter().filter(|(from, to)| *from >= begin && *to <= end) {
        escape_into(text.get(at..from).unwrap_or_default(), &mut shown);
        shown.push_str(BEGIN);
        escape_into(text.get(from..to).unwrap_or_default(), &mut shown);
        shown.push_str(END);
        at = to;
    }
    escape_into(text.get(at..end).unwrap_or_default(), &mut shown);
    shown.push_str(if end < text.len() { "…" } else { "" });
    shown
}

/// Returns the ranges of the words, in order and without overlap.
fn mark_ranges(text: &str, words: &[SearchWord]) -> Vec<(usize, usize)> {
    let mut marks = Vec::new();
    for (begin, token) in tokens(text) {
        if words.iter().any(|word| word.matches_token(token)) {
            marks.push((begin, begin + token.len()));
            continue;
        }
        let mut at = 0;
        for (from, to) in unspaced_ranges(token, words) {
            if from >= at {
                marks.push((begin + from, begin + to));
                at = to;
            }
        }
    }
    marks
}

/// Returns the ranges of words of scripts without spaces in a longer run, in order.
fn unspaced_ranges(token: &str, words: &[SearchWord]) -> Vec<(usize, usize)> {
    let unspaced: Vec<&SearchWord> = words.iter().filter(|word| word.is_unspaced()).collect();
    if unspaced.is_empty() {
        return Vec::new();
    }
    let token = fold_with_offsets(token);
    let found = unspaced.iter().flat_map(|word| token.text.match_indices(word.text.as_str()));
    let mut parts: Vec<(usize, usize)> = found
        .filter_map(|(from, part)| token.source_range(from..from + part.len()))
        .map(|origin| (origin.start, origin.end))
        .collect();
    parts.sort_unstable();
    parts
}

/// The part around a place: whole letters, and whole words where they are not too long.
fn snippet_window(text: &str, place: usize) -> (usize, usize) {
    let back = |letters| text.get(..place).unwrap_or_default().char_indices().rev().take(letters).last();
    let mut begin = if place <= BEFORE { 0 } else { back(BEFORE).map_or(place, |(at, _)| at) };
    if begin > 0 {
        let gap = text.get(begin..place).and_then(|lead| lead.find(char::is_whitespace));
        begin += gap.map_or(0, |gap| gap + 1);
    }
    let rest = text.get(begin..).unwrap_or_default();
    let end = rest.char_indices().nth(LETTERS).map_or(text.len(), |(at, _)| begin + at);
    (begin, end)
}

fn escape_into(text: &str, into: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => into.push_str("&amp;"),
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            letter if letter.is_whitespace() || letter.is_control() => into.push(' '),
            letter => into.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::words::parse_words, *};

    fn highlight_text(text: &str, query: &str) -> String {
        snippet(text, &parse_words(query))
    }

    #[test]
    fn words_are_marked_also_misspelt_ones_and_beginnings() {
        assert_eq!(highlight_text("Sarah plans the budget.", "bugdet"), "Sarah plans the <mark>budget</mark>.");
        assert_eq!(
            highlight_text("the BUDGET, the budgets", "budget"),
            "the <mark>BUDGET</mark>, the <mark>budgets</mark>"
        );
        assert_eq!(highlight_text("讨论了预算会议", "预算 会议"), "讨论了<mark>预算</mark><mark>会议</mark>");
        assert_eq!(highlight_text("nothing here", ""), "nothing here");
        assert_eq!(highlight_text("Jo\u{308}rg said", "jörg"), "<mark>Jo\u{308}rg</mark> said");
        assert_eq!(highlight_text("東京ｶﾞｽ会社", "ガス"), "東京<mark>ｶﾞｽ</mark>会社");
    }

    #[test]
    fn what_was_found_is_no_markup() {
        assert_eq!(
            highlight_text("<script>a&b</script>\nbudget", "budget"),
            "&lt;script&gt;a&amp;b&lt;/script&gt; <mark>budget</mark>"
        );
        assert_eq!(highlight_text("</mark><b>x", "mark"), "&lt;/<mark>mark</mark>&gt;&lt;b&gt;x");
    }

    #[test]
    fn of_a_long_text_the_part_is_shown_where_the_word_is() {
        let text = format!("{} budget {}", "ä b ".repeat(1_000), "ö ".repeat(1_000));
        let shown = highlight_text(&text, "budget");
        assert!(shown.starts_with("…") && shown.ends_with("…") && shown.contains("<mark>budget</mark>"), "{shown}");
        assert!(shown.chars().count() <= LETTERS + BEGIN.len() + END.len() + 2, "{shown}");
        let unbroken = "预".repeat(5_000);
        assert!(snippet(&unbroken, &parse_words("budget")).chars().count() <= LETTERS + 1);
        assert!(snippet(&format!("{unbroken}会议"), &parse_words("会议")).ends_with("<mark>会议</mark>"));
    }
}
