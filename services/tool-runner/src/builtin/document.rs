//! `document.create`: a Markdown file, an HTML page or a deck of slides in the agent's `documents/`.

mod content;
mod html;
mod markdown;

use serde::Deserialize;
use serde_json::{Value, json};

use super::parse_args;
use super::workspace::{Desk, FileToolDefinition, no_outside_sources, set_field, truncate_text};
use crate::tool::{CallResult, ToolError};

const FOLDER: &str = "documents";
/// Longest part of a file's name that comes from the title, in bytes.
const MAX_SLUG_BYTES: usize = 60;
/// Largest document that is written, in bytes: HTML may take many times the room of its Markdown.
const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;
/// Longest content, in bytes of Markdown.
const MAX_CONTENT_BYTES: usize = 500_000;
/// Digits of the action's key in a file's name, which keep documents of one title apart.
const KEY_DIGITS: usize = 12;

pub const TOOLS: [FileToolDefinition; 1] = [FileToolDefinition {
    name: "document.create",
    description: "Writes a document into the workspace. type says what it is: document or report (a Markdown file), page or html (a web page), presentation or slides (a deck to show in a browser with the arrow keys; a new slide begins at a line of --- and at headings of level 1 and 2). content is Markdown, or data: of an object each field becomes a section, of a list each object with a title does, such as {\"slides\": [{\"title\": …, \"bullets\": […]}]}. Returns path, format, bytes and, of a deck, the number of slides.",
    schema,
    work,
    outside: no_outside_sources,
}];

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["title", "content"],
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 300, "description": "Title, also part of the file's name"},
            "content": {"type": ["string", "object", "array"], "maxLength": MAX_CONTENT_BYTES, "description": "Markdown, in which HTML is shown as text; or an object or a list"},
            "type": {"type": "string", "maxLength": 50, "description": "document, report, page, html, presentation or slides; anything else is a document. Default document"},
            "format": {"enum": ["markdown", "html", "slides"], "description": "Instead of type"},
        },
        "additionalProperties": false,
    })
}

#[derive(Deserialize)]
struct DocumentArgs {
    title: String,
    content: Value,
    format: Option<DocumentFormat>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DocumentFormat {
    Markdown,
    Html,
    Slides,
}

impl DocumentFormat {
    fn from_kind(kind: &str) -> Self {
        match kind.to_lowercase().as_str() {
            "presentation" | "slides" | "slideshow" | "deck" | "slide deck" => Self::Slides,
            "page" | "web page" | "webpage" | "html" => Self::Html,
            _ => Self::Markdown,
        }
    }

    /// The name in results, and how files of it end.
    fn name_and_ending(self) -> (&'static str, &'static str) {
        match self {
            Self::Markdown => ("markdown", "md"),
            Self::Html => ("html", "html"),
            Self::Slides => ("slides", "html"),
        }
    }
}

fn work(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: DocumentArgs = parse_args(args)?;
    let format =
        args.format.unwrap_or_else(|| args.kind.as_deref().map_or(DocumentFormat::Markdown, DocumentFormat::from_kind));
    let title = args.title.trim();
    let content = content::to_markdown(&args.content);
    let too_large = |what: &str, size: usize, most: usize| {
        ToolError::invalid_arguments(format!("/content: {what} {size} bytes of at most {most}; shorten it or split it"))
    };
    if content.len() > MAX_CONTENT_BYTES {
        return Err(too_large("it takes", content.len(), MAX_CONTENT_BYTES));
    }
    let (text, slides) = match format {
        DocumentFormat::Markdown => (markdown::render_file(title, &content), None),
        DocumentFormat::Html => (html::render_page(title, &content), None),
        DocumentFormat::Slides => {
            let (deck, slides) = html::render_deck(title, &content);
            (deck, Some(slides))
        }
    };
    if text.len() > MAX_FILE_BYTES {
        return Err(too_large("the document would take", text.len(), MAX_FILE_BYTES));
    }
    let (name, ending) = format.name_and_ending();
    let key = desk.action_key().simple().to_string();
    let key = key.get(..KEY_DIGITS).unwrap_or(&key);
    let file = format!("{}-{key}.{ending}", title_slug(title));
    let folder = desk.folder(FOLDER)?;
    // Called again it has the same name and the same text; what was done to the file since is kept.
    if !folder.has(&file)? {
        folder.write(&file, text.as_bytes())?;
    }
    let mut result = json!({"path": format!("{FOLDER}/{file}"), "format": name, "bytes": text.len()});
    if let Some(slides) = slides {
        set_field(&mut result, "slides", slides);
    }
    Ok(result)
}

/// The title as it can stand in a file's name: letters and digits of any script, and dashes.
fn title_slug(title: &str) -> String {
    let words = title.to_lowercase();
    let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    match truncate_text(&slug, MAX_SLUG_BYTES).0.trim_end_matches('-') {
        "" => "document".to_owned(),
        slug => slug.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_files() {
        assert_eq!(title_slug("Q2 — Product Launch!"), "q2-product-launch");
        assert_eq!(title_slug("../../etc/passwd"), "etc-passwd");
        assert_eq!(title_slug("发布 计划"), "发布-计划");
        assert_eq!(title_slug("!!!"), "document");
    }

    #[test]
    fn what_it_is_decides_how_it_is_written() {
        assert_eq!(DocumentFormat::from_kind("Presentation"), DocumentFormat::Slides);
        assert_eq!(DocumentFormat::from_kind("report"), DocumentFormat::Markdown);
        assert_eq!(DocumentFormat::from_kind("page"), DocumentFormat::Html);
    }

    proptest! {
        #[test]
        fn no_title_makes_a_name_that_leads_elsewhere(title in "\\PC{0,200}") {
            let slug = title_slug(&title);
            prop_assert!(!slug.is_empty() && slug.len() <= MAX_SLUG_BYTES);
            prop_assert!(!slug.contains(['/', '.', '\\', '\0']) && !slug.starts_with('-'));
        }
    }
}
