//! Pages that need nothing but a browser: they load nothing but the pictures they name, and run nothing but the script
//! that turns the slides of a deck.

use pulldown_cmark::Event;

use super::markdown::{parse_safe_events, render_slides, to_html};

/// Should something dangerous ever get past the conversion, the browser does not run it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src https: http: 'self'";
/// The one script that a browser runs, by the SHA-256 of what stands between its tags.
const DECK_SCRIPT: &str = include_str!("deck.js");
const DECK_SCRIPT_SHA256: &str = "EW2EQZnzP4KH0nafjeTP+KCTzgO0jWzcV/IvOaF7plI=";
const PAGE_STYLE: &str = include_str!("page.css");
const DECK_STYLE: &str = include_str!("deck.css");

/// A page, under its title unless the content begins with a heading of its own.
pub fn render_page(title: &str, content: &str) -> String {
    let content_html = to_html(parse_safe_events(content).into_iter());
    let heading = if content.trim_start().starts_with("# ") { String::new() } else { title_heading(title) };
    render_document(title, POLICY, PAGE_STYLE, &format!("<main>\n{heading}{content_html}</main>\n"))
}

/// A deck to scroll or page through, and the number of its slides. The title has a slide of its own unless the content
/// begins with it.
pub fn render_deck(title: &str, content: &str) -> (String, usize) {
    let mut all = render_slides(content);
    let has_title = all.first().is_some_and(|first| first.starts_with("<h1>"));
    if !has_title {
        all.insert(0, title_heading(title));
    }
    let total = all.len();
    let slide = |(index, slide): (usize, &String)| {
        let number = index + 1;
        format!("<section id=\"slide-{number}\">\n{slide}<footer>{number} / {total}</footer>\n</section>\n")
    };
    let body: String = all.iter().enumerate().map(slide).collect();
    let policy = format!("{POLICY}; script-src 'sha256-{DECK_SCRIPT_SHA256}'");
    let body = format!("{body}<script>\n{DECK_SCRIPT}</script>\n");
    (render_document(title, &policy, DECK_STYLE, &body), total)
}

fn render_document(title: &str, policy: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <title>{}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape_html(title)
    )
}

fn title_heading(title: &str) -> String {
    format!("<h1>{}</h1>\n", escape_html(title))
}

/// A text as HTML shows it.
fn escape_html(text: &str) -> String {
    to_html(std::iter::once(Event::Text(text.into())))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn a_page_has_its_title_once_and_escaped() {
        let text = render_page("A <b> & \"c\"", "text");
        assert_eq!(text.matches("<h1>").count(), 1);
        assert!(text.contains("<title>A &lt;b&gt; &amp;"), "{text}");
        assert!(!text.contains("<b>") && text.contains("<p>text</p>"));
        assert_eq!(render_page("A", "# Own\n\ntext").matches("<h1>").count(), 1);
    }

    #[test]
    fn a_deck_runs_its_own_script_and_no_other() {
        let (text, _) = render_deck("T", "## One\n\n<script>alert(1)</script>\n");
        let scripts: Vec<&str> =
            text.split("<script>").skip(1).filter_map(|rest| rest.split("</script>").next()).collect();
        assert_eq!(scripts.len(), 1, "{text}");
        let digest = Sha256::digest(scripts[0].as_bytes());
        assert_eq!(BASE64.encode(digest), DECK_SCRIPT_SHA256, "the script was changed: its digest must be, too");
        assert!(!render_page("T", "text").contains("script"));
    }

    #[test]
    fn a_deck_counts_its_slides() {
        let (text, slides) = render_deck("Pricing", "## One\n\n- a\n\n## Two\n");
        assert_eq!((slides, text.matches("<section").count()), (3, 3));
        assert!(text.contains("<footer>3 / 3</footer>") && text.contains("<h1>Pricing</h1>"));
        assert_eq!(render_deck("Pricing", "# Pricing\n\na\n\n---\n\nb").1, 2);
        assert_eq!(render_deck("Empty", "").1, 1);
    }
}
