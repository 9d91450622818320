//! The words of a body for people, without its markup.

/// Longest text of a page, in characters.
const LONGEST: usize = 300;

/// The words of a text: of a page its title, or else what it shows.
pub fn readable_text(text: &str) -> String {
    let text = text.trim();
    if !text.starts_with('<') {
        return shorten(text);
    }
    let lower = text.to_ascii_lowercase();
    let titled = ["title", "h1"].iter().find_map(|tag| {
        let begin = lower.find(&format!("<{tag}"))?;
        let begin = begin + lower.get(begin..)?.find('>')? + 1;
        let end = begin + lower.get(begin..)?.find("</")?;
        let words = text_between_tags(text.get(begin..end)?);
        (!words.is_empty()).then_some(words)
    });
    titled.unwrap_or_else(|| text_between_tags(&strip_scripts(text, &lower)))
}

/// A page without what no reader sees.
fn strip_scripts(text: &str, lower: &str) -> String {
    let mut seen = String::new();
    let mut at = 0;
    loop {
        let rest = lower.get(at..).unwrap_or_default();
        let next = ["script", "style"].iter().filter_map(|tag| Some((rest.find(&format!("<{tag}"))?, *tag))).min();
        let Some((begin, tag)) = next else {
            seen.push_str(text.get(at..).unwrap_or_default());
            return seen;
        };
        seen.push_str(text.get(at..at + begin).unwrap_or_default());
        let close =
            |rest: &str| rest.find(&format!("</{tag}")).and_then(|end| Some(end + rest.get(end..)?.find('>')? + 1));
        let Some(end) = rest.get(begin..).and_then(close) else { return seen };
        at += begin + end;
    }
}

/// Returns the text between tags.
fn text_between_tags(text: &str) -> String {
    let mut words = String::new();
    let mut in_tag = false;
    for character in text.chars() {
        match character {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                words.push(' ');
            }
            _ if in_tag => {}
            other => words.push(other),
        }
    }
    let named = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&mdash;", "–"),
        ("&amp;", "&"),
    ];
    shorten(&named.iter().fold(words, |words, (name, sign)| words.replace(name, sign)))
}

fn shorten(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default()),
        None => words,
    }
}

/// Returns the meaning of an HTTP status, in brackets; empty where the number says as much.
pub fn status_reason(status: u16) -> &'static str {
    match status {
        400 => " (bad request)",
        401 => " (unauthorized)",
        402 => " (payment required)",
        403 => " (forbidden)",
        404 => " (not found)",
        405 => " (method not allowed)",
        408 => " (request timeout)",
        409 => " (conflict)",
        413 => " (request too large)",
        422 => " (unprocessable)",
        429 => " (too many requests)",
        500 => " (internal error)",
        502 => " (bad gateway)",
        503 => " (unavailable)",
        504 => " (gateway timeout)",
        529 => " (overloaded)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_words() {
        for (page, words) in [
            ("<html><head><title>502 Bad Gateway</title></head><body><h1>x</h1></body></html>", "502 Bad Gateway"),
            ("<html><center><h1>413 Request Entity Too Large</h1></center></html>", "413 Request Entity Too Large"),
            ("<html>upstream down</html>", "upstream down"),
            ("<!DOCTYPE html><script>var x = '<b>';</script><p>We&#39;re &lt;down&gt;</p>", "We're <down>"),
            ("  plain\n words ", "plain words"),
            ("", ""),
            ("<", ""),
            ("<title", ""),
            ("<TITLE>É</TITLE>", "É"),
        ] {
            assert_eq!(readable_text(page), words, "{page}");
        }
        assert_eq!(readable_text(&"x".repeat(1_000)).chars().count(), LONGEST + 1);
    }
}
