//! Markdown, to HTML that holds nothing but what Markdown can say.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, html};

/// Schemes that a link may have; one without a scheme stays within the document's folder or page.
const SCHEMES: [&str; 4] = ["http", "https", "mailto", "tel"];

/// A Markdown file: the content, under its title unless it begins with a heading of its own.
pub fn render_file(title: &str, content: &str) -> String {
    let content = content.trim();
    if content.starts_with("# ") { format!("{content}\n") } else { format!("# {}\n\n{content}\n", one_line(title)) }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The events of a text, without HTML of its own and without links that run something.
pub fn parse_safe_events(content: &str) -> Vec<Event<'_>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(content, options).map(sanitize_event).collect()
}

fn sanitize_event(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Link { link_type, dest_url: sanitize_url(dest_url), title, id })
        }
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Image { link_type, dest_url: sanitize_url(dest_url), title, id })
        }
        other => other,
    }
}

/// The address, or none where its scheme is not one of the harmless ones.
fn sanitize_url(url: CowStr<'_>) -> CowStr<'_> {
    // Browsers pass over these within a scheme.
    let bare: String = url.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
    let scheme = bare.split(['/', '?', '#']).next().and_then(|start| start.split_once(':')).map(|(scheme, _)| scheme);
    let allowed = scheme.is_none_or(|scheme| SCHEMES.iter().any(|allowed| scheme.eq_ignore_ascii_case(allowed)));
    if allowed { url } else { CowStr::Borrowed("") }
}

pub fn to_html<'e>(events: impl Iterator<Item = Event<'e>>) -> String {
    let mut text = String::new();
    html::push_html(&mut text, events);
    text
}

/// The slides of a text: a new one begins at a rule, and at headings of level 1 and 2. Empty ones are left out.
pub fn render_slides(content: &str) -> Vec<String> {
    let mut slides: Vec<Vec<Event<'_>>> = vec![Vec::new()];
    let mut depth = 0_usize;
    for event in parse_safe_events(content) {
        let outermost = depth == 0;
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_rule = outermost && matches!(event, Event::Rule);
        let is_heading =
            outermost && matches!(event, Event::Start(Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. }));
        if is_rule || is_heading {
            slides.push(Vec::new());
        }
        if !is_rule && let Some(slide) = slides.last_mut() {
            slide.push(event);
        }
    }
    slides.into_iter().filter(|slide| !slide.is_empty()).map(|slide| to_html(slide.into_iter())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn html(content: &str) -> String {
        to_html(parse_safe_events(content).into_iter())
    }

    #[test]
    fn a_title_is_put_above_where_there_is_none() {
        assert_eq!(render_file("A\nB", "text\n"), "# A B\n\ntext\n");
        assert_eq!(render_file("A", "# Own\ntext"), "# Own\ntext\n");
    }

    #[test]
    fn html_is_text_and_links_run_nothing() {
        let page = html(
            "<script>alert(1)</script>\n\na <b onclick=x>b</b>\n\n[x](javascript:alert(1)) ![y](data:text/html,z)",
        );
        assert!(page.contains("&lt;script&gt;") && page.contains("&lt;b onclick=x&gt;"), "{page}");
        assert!(!page.contains("javascript") && !page.contains("data:"), "{page}");
        let page = html("[a](https://example.org/a:b) [b](other.md#c:d) [m](mailto:x@example.org) <https://e.example>");
        for link in ["https://example.org/a:b", "other.md#c:d", "mailto:x@example.org", "https://e.example"] {
            assert!(page.contains(&format!("href=\"{link}\"")), "{link} in {page}");
        }
    }

    #[test]
    fn schemes_in_disguise() {
        for url in ["javascript:x", "JaVaScRiPt:x", " java\tscript:x", "vbscript:x", "data:text/html,x", "file:///etc"]
        {
            assert_eq!(&*sanitize_url(url.into()), "", "{url:?}");
        }
    }

    #[test]
    fn slides_begin_at_rules_and_headings() {
        let slides = render_slides("intro\n\n# One\n\na\n\n---\n\nb\n\n## Two\n\n### Part\n\n> # quoted\n\n---\n");
        assert_eq!(slides.len(), 4, "{slides:#?}");
        assert!(slides[3].contains("Part") && slides[3].contains("quoted"));
        assert_eq!(render_slides("").len(), 0);
        assert_eq!(render_slides("---\n\n# One\n").len(), 1);
    }

    proptest! {
        #[test]
        fn nothing_but_known_elements_comes_out(content in "(<[a-z/!]{1,6}|>|\\[|\\]\\(|\\)|javascript:|\"|`|#|\n|\\PC){0,60}") {
            let page = html(&content).to_lowercase();
            for element in ["<script", "<iframe", "<style", "<object", "<svg", "href=\"javascript:"] {
                prop_assert!(!page.contains(element), "{} in {}", element, page);
            }
        }
    }
}
