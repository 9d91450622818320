//! Reads a page of tools entry by entry: one that cannot be used is left out with the reason, and the others stay.

use rmcp::model::{ListToolsResult, ServerResult, Tool};
use serde_json::{Map, Value, json};

use super::wording::{json_kind, shorten_text, text_of};

/// Longest name of a tool, in characters.
const MAX_NAME_CHARS: usize = 256;
/// Longest name of a tool in a note, in characters.
const MAX_SHOWN_CHARS: usize = 80;
/// Fields that tools are told by, all of which must be texts.
const TEXTS: [&str; 2] = ["title", "description"];
/// Fields that are of use only if they are objects or lists.
const OPTIONAL: [&str; 3] = ["outputSchema", "icons", "_meta"];
/// Hints of annotations.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// A page of the tool list, as far as it could be read.
#[derive(Debug, Default)]
pub struct ToolPage {
    /// The usable tools, and the cursor of the next page.
    pub result: ListToolsResult,
    /// The others: the name, or the place in the page, and the reason.
    pub left_out: Vec<(String, String)>,
    pub notes: Vec<String>,
}

impl ToolPage {
    /// As the result of the request.
    pub fn into_result(self) -> ServerResult {
        ServerResult::ListToolsResult(self.result)
    }
}

/// Reads a page.
///
/// # Errors
/// Names what the value is instead of a page.
pub fn read(result: Value) -> Result<ToolPage, String> {
    let mut page = ToolPage::default();
    let (list, next) = match result {
        Value::Array(list) => (Value::Array(list), Value::Null),
        Value::Object(mut fields) => {
            let next = fields.remove("nextCursor").unwrap_or_default();
            (fields.remove("tools").unwrap_or_default(), next)
        }
        other => return Err(format!("the list of tools is {}", json_kind(&other))),
    };
    let entries = match list {
        Value::Array(entries) => entries,
        Value::Null => {
            page.notes.push("the list of tools is missing or null".to_owned());
            Vec::new()
        }
        other => return Err(format!("the list of tools is {}", json_kind(&other))),
    };
    for (place, entry) in entries.into_iter().enumerate() {
        match read_tool(entry, place, &mut page.notes) {
            Ok(tool) => page.result.tools.push(tool),
            Err(left_out) => page.left_out.push(left_out),
        }
    }
    page.result.next_cursor = read_cursor(&next, &mut page.notes);
    Ok(page)
}

/// An empty cursor is none: asking with it would give the first page again.
fn read_cursor(next: &Value, notes: &mut Vec<String>) -> Option<String> {
    match next {
        Value::Null => None,
        Value::String(cursor) if !cursor.is_empty() => Some(cursor.clone()),
        Value::Number(number) => {
            notes.push("nextCursor of the list of tools is a number".to_owned());
            Some(number.to_string())
        }
        other => {
            notes.push(format!("nextCursor of the list of tools is {other}"));
            None
        }
    }
}

fn read_tool(entry: Value, place: usize, notes: &mut Vec<String>) -> Result<Tool, (String, String)> {
    let numbered = format!("tool {} of the list", place + 1);
    let Value::Object(mut fields) = entry else {
        return Err((numbered, format!("it is {}, not an object", json_kind(&entry))));
    };
    let name = match fields.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        Some(Value::String(_)) => return Err((numbered, "its name is empty".to_owned())),
        Some(other) => return Err((numbered, format!("its name is {}", json_kind(other)))),
        None => return Err((numbered, "it has no name".to_owned())),
    };
    let shown = shorten_text(&name, MAX_SHOWN_CHARS);
    let left_out = |reason: String| (shown.clone(), reason);
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(left_out(format!("its name is longer than {MAX_NAME_CHARS} characters")));
    }
    check_schema(fields.get("inputSchema")).map_err(left_out)?;
    for odd in repair_fields(&mut fields) {
        notes.push(format!("{odd} of the tool {shown} is of another type"));
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| left_out(error.to_string()))
}

/// Models answer with an object of arguments, nothing else.
fn check_schema(schema: Option<&Value>) -> Result<(), String> {
    let schema = match schema {
        Some(Value::Object(schema)) => schema,
        Some(other) => return Err(format!("its schema is {}, not an object", json_kind(other))),
        None => return Err("it has no schema".to_owned()),
    };
    match schema.get("type") {
        Some(kind) if kind == "object" => Ok(()),
        Some(kind) => Err(format!(
            "its schema must have \"type\": \"object\", not {}",
            shorten_text(&kind.to_string(), MAX_SHOWN_CHARS)
        )),
        None => Err("its schema must have \"type\": \"object\"".to_owned()),
    }
}

/// Replaces or removes the fields that are of another type, and names them.
fn repair_fields(fields: &mut Map<String, Value>) -> Vec<String> {
    let mut odd = Vec::new();
    for name in TEXTS {
        if let Some(value) = fields.get_mut(name).filter(|value| !value.is_null() && !value.is_string()) {
            *value = text_of(value).into();
            odd.push(name.to_owned());
        }
    }
    for name in OPTIONAL {
        let Some(value) = fields.get(name).filter(|value| !value.is_null()) else { continue };
        let probe = json!({ "name": "probe", "inputSchema": {}, name: value });
        if serde_json::from_value::<Tool>(probe).is_err() {
            fields.remove(name);
            odd.push(name.to_owned());
        }
    }
    match fields.get_mut("annotations") {
        None | Some(Value::Null) => {}
        Some(Value::Object(annotations)) => odd.extend(repair_hints(annotations)),
        Some(_) => {
            fields.remove("annotations");
            odd.push("annotations".to_owned());
        }
    }
    odd
}

/// A hint that cannot be read is none, except for the one that asks for care.
fn repair_hints(annotations: &mut Map<String, Value>) -> Vec<String> {
    let mut odd = Vec::new();
    for name in HINTS {
        let Some(said) = annotations.get(name).filter(|said| !said.is_null() && !said.is_boolean()) else { continue };
        odd.push(name.to_owned());
        let read = match said.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => (name == "destructiveHint").then_some(true),
        };
        match read {
            Some(read) => annotations.insert(name.to_owned(), read.into()),
            None => annotations.remove(name),
        };
    }
    if annotations.get("title").is_some_and(|title| !title.is_null() && !title.is_string()) {
        annotations.remove("title");
        odd.push("annotations.title".to_owned());
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(list: Value) -> ToolPage {
        read(json!({ "tools": list })).unwrap()
    }

    fn entry(name: Value, schema: Value) -> Value {
        json!({"name": name, "inputSchema": schema})
    }

    #[test]
    fn one_bad_tool_leaves_out_that_tool() {
        let good = || entry(json!("good"), json!({"type": "object"}));
        for (bad, name, reason) in [
            (json!(null), "tool 2 of the list", "null"),
            (json!("text"), "tool 2 of the list", "a string"),
            (json!({"inputSchema": {"type": "object"}}), "tool 2 of the list", "no name"),
            (entry(json!(""), json!({"type": "object"})), "tool 2 of the list", "empty"),
            (entry(json!(7), json!({"type": "object"})), "tool 2 of the list", "a number"),
            (entry(json!("x".repeat(300)), json!({"type": "object"})), "xxx", "256"),
            (entry(json!("bad"), json!(null)), "bad", "null"),
            (entry(json!("bad"), json!([])), "bad", "a list"),
            (entry(json!("bad"), json!("{}")), "bad", "a string"),
            (json!({"name": "bad"}), "bad", "no schema"),
            (entry(json!("bad"), json!({})), "bad", "\"object\""),
            (entry(json!("bad"), json!({"type": "string"})), "bad", "not \"string\""),
            (entry(json!("bad"), json!({"type": ["object", "null"]})), "bad", "not [\"object\""),
            (entry(json!("bad"), json!({"anyOf": [{"type": "object"}]})), "bad", "\"object\""),
        ] {
            let page = page(json!([good(), bad, good()]));
            assert_eq!(page.result.tools.len(), 2, "{bad}");
            let [(left_out, said)] = &page.left_out[..] else { panic!("{bad}") };
            assert!(left_out.starts_with(name) && said.contains(reason), "{bad}: {left_out}: {said}");
        }
    }

    #[test]
    fn fields_of_other_types_are_mended() {
        let mut odd = entry(json!("odd"), json!({"type": "object"}));
        for (field, value) in [
            ("title", json!(7)),
            ("description", json!(["a", "b"])),
            ("outputSchema", json!("none")),
            ("icons", json!("icon.png")),
            ("_meta", json!([])),
            ("annotations", json!({"readOnlyHint": "true", "destructiveHint": {}, "idempotentHint": 1, "title": 3})),
        ] {
            odd[field] = value;
        }
        let page = page(json!([odd]));
        let tool = &page.result.tools[0];
        assert_eq!(tool.description.as_deref(), Some(r#"["a","b"]"#));
        let hints = tool.annotations.as_ref().unwrap();
        assert_eq!(
            (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint),
            (Some(true), Some(true), None)
        );
        assert_eq!(page.notes.len(), 9, "{:?}", page.notes);
        assert!(tool.output_schema.is_none() && tool.icons.is_none() && tool.meta.is_none());
    }

    #[test]
    fn what_is_as_it_should_be_stays_so() {
        let whole = json!({
            "name": "whole", "title": "Whole", "description": "d", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "_meta": {"a": 1},
        });
        let page = page(json!([whole]));
        assert_eq!(serde_json::to_value(&page.result.tools[0]).unwrap(), whole);
        assert!(page.notes.is_empty() && page.left_out.is_empty());
    }

    #[test]
    fn lists_and_cursors_of_other_forms() {
        for (result, tools, next) in [
            (json!({"tools": null}), 0, None),
            (json!({}), 0, None),
            (json!([entry(json!("a"), json!({"type": "object"}))]), 1, None),
            (json!({"tools": [], "nextCursor": ""}), 0, None),
            (json!({"tools": [], "nextCursor": null}), 0, None),
            (json!({"tools": [], "nextCursor": 10}), 0, Some("10")),
            (json!({"tools": [], "nextCursor": {"at": 1}}), 0, None),
            (json!({"tools": [], "nextCursor": "more"}), 0, Some("more")),
        ] {
            let page = read(result.clone()).unwrap();
            assert_eq!((page.result.tools.len(), page.result.next_cursor.as_deref()), (tools, next), "{result}");
        }
        for result in [json!(null), json!("none"), json!({"tools": "none"})] {
            assert!(read(result.clone()).is_err(), "{result}");
        }
    }
}
