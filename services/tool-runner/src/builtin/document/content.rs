//! The source of a document: Markdown, or data that is converted to Markdown.

use serde_json::{Map, Value};

/// Fields that name what the others are about.
const TITLES: [&str; 4] = ["title", "heading", "headline", "name"];
/// Fields that need no label.
const TEXTS: [&str; 8] = ["content", "text", "body", "bullets", "points", "items", "slides", "sections"];
/// Widest table, in columns; wider data becomes a list.
const MAX_COLUMNS: usize = 8;

/// The content as Markdown. A list of objects with titles becomes a section each, an object one for each field.
pub fn to_markdown(content: &Value) -> String {
    let mut text = String::new();
    match content {
        Value::String(markdown) => return markdown.clone(),
        Value::Object(fields) => push_sections(fields, &mut text),
        Value::Array(items) => push_items(items, &mut text),
        scalar => text = scalar_line(scalar),
    }
    text.trim().to_owned()
}

fn push_sections(fields: &Map<String, Value>, out: &mut String) {
    for (name, value) in fields {
        match (name.as_str(), value) {
            // The document has its title.
            (name, Value::String(_)) if TITLES.contains(&name) => {}
            (name, Value::Array(items)) if TEXTS.contains(&name) => push_items(items, out),
            (name, value) if TEXTS.contains(&name) => push_block(value, out),
            (name, value) => {
                push_heading(&field_label(name), out);
                push_block(value, out);
            }
        }
    }
}

/// Items that have titles are sections, others a list or a table.
fn push_items(items: &[Value], out: &mut String) {
    let titles: Option<Vec<&str>> = items.iter().map(item_title).collect();
    let Some(titles) = titles.filter(|titles| !titles.is_empty() && render_table(items).is_none()) else {
        return push_block(&Value::Array(items.to_vec()), out);
    };
    for (item, title) in items.iter().zip(titles) {
        push_heading(title, out);
        let rest = item.as_object().into_iter().flatten().filter(|(name, _)| !TITLES.contains(&name.as_str()));
        for (name, value) in rest {
            match value {
                value if TEXTS.contains(&name.as_str()) => push_block(value, out),
                Value::Array(_) | Value::Object(_) => {
                    out.push_str(&format!("**{}**\n\n", field_label(name)));
                    push_block(value, out);
                }
                value => out.push_str(&format!("**{}:** {}\n\n", field_label(name), scalar_line(value))),
            }
        }
    }
}

fn item_title(item: &Value) -> Option<&str> {
    TITLES.iter().find_map(|name| item.get(*name)).and_then(Value::as_str)
}

fn push_heading(text: &str, out: &mut String) {
    out.push_str(&format!("## {}\n\n", one_line(text)));
}

fn push_block(value: &Value, out: &mut String) {
    match value {
        Value::String(markdown) => out.push_str(markdown),
        Value::Array(items) => match render_table(items) {
            Some(rows) => out.push_str(&rows),
            None => push_list(value, 0, out),
        },
        Value::Object(_) => push_list(value, 0, out),
        scalar => out.push_str(&scalar_line(scalar)),
    }
    out.truncate(out.trim_end().len());
    out.push_str("\n\n");
}

fn push_list(value: &Value, depth: usize, out: &mut String) {
    let mut item = |label: Option<&str>, value: &Value| {
        out.push_str(&"  ".repeat(depth));
        out.push_str("- ");
        if let Some(label) = label {
            out.push_str(&format!("**{}:** ", field_label(label)));
        }
        match value {
            Value::Array(_) | Value::Object(_) => {
                out.push('\n');
                push_list(value, depth + 1, out);
            }
            scalar => {
                out.push_str(&scalar_line(scalar));
                out.push('\n');
            }
        }
    };
    match value {
        Value::Array(items) => items.iter().for_each(|value| item(None, value)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| item(Some(name), value)),
        scalar => item(None, scalar),
    }
}

/// Objects that all have the same few fields of one line each.
fn render_table(items: &[Value]) -> Option<String> {
    let columns: Vec<&String> = items.first()?.as_object()?.keys().collect();
    if items.len() < 2 || !(2..=MAX_COLUMNS).contains(&columns.len()) {
        return None;
    }
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut rows = row(columns.iter().map(|name| escape_cell(&field_label(name))).collect());
    rows.push_str(&row(columns.iter().map(|_| "---".to_owned()).collect()));
    for item in items {
        let item = item.as_object().filter(|item| item.len() == columns.len())?;
        let cells = columns.iter().map(|name| match item.get(*name)? {
            Value::Array(_) | Value::Object(_) => None,
            Value::String(text) if text.contains('\n') => None,
            value => Some(escape_cell(&scalar_line(value))),
        });
        rows.push_str(&row(cells.collect::<Option<Vec<_>>>()?));
    }
    Some(rows)
}

fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A scalar in one line.
fn scalar_line(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        Value::Null => String::new(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        other => other.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A field's name as it can be read.
fn field_label(name: &str) -> String {
    let words = one_line(&name.replace('_', " "));
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn markdown_stays_as_it_is() {
        assert_eq!(to_markdown(&json!("# A\n\n- b\n")), "# A\n\n- b\n");
    }

    #[test]
    fn slides_and_sections() {
        let slides = json!({"title": "T", "slides": [
            {"title": "One", "bullets": ["a", "b"]},
            {"heading": "Two", "content": "Text\n\nmore", "owner": "Ann"},
        ]});
        assert_eq!(to_markdown(&slides), "## One\n\n- a\n- b\n\n## Two\n\nText\n\nmore\n\n**Owner:** Ann");
        let fields = json!({"final": true, "key_findings": ["down 15%"], "next": {"when": {"day": 3}, "who": "Ann"}});
        assert_eq!(
            to_markdown(&fields),
            "## Final\n\nyes\n\n## Key findings\n\n- down 15%\n\n## Next\n\n- **When:** \n  - **Day:** 3\n- **Who:** Ann"
        );
    }

    #[test]
    fn lists_and_tables() {
        assert_eq!(to_markdown(&json!(["a", 2, null, ["x"]])), "- a\n- 2\n- \n- \n  - x");
        let rows = json!([{"name": "A|B", "price": 10}, {"name": "C", "price": 8.5}]);
        assert_eq!(to_markdown(&rows), "| Name | Price |\n| --- | --- |\n| A\\|B | 10 |\n| C | 8.5 |");
        assert_eq!(to_markdown(&json!([])), "");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("(title|content|items|[a-z_]{0,6})", inner, 0..5)
                    .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_data_is_put_into_words(content in any_json()) {
            to_markdown(&content);
        }
    }
}
