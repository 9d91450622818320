//! Reads one block of a result's content. What the protocol does not know becomes a text that says what it was.

use rmcp::model::ContentBlock;
use serde_json::{Map, Value, json};

use super::wording::{json_kind, text_of};

/// Prefixes of images in base64, with their media types.
const BEGINNINGS: [(&str, &str); 5] = [
    ("iVBOR", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lG", "image/gif"),
    ("UklGR", "image/webp"),
    ("Qk", "image/bmp"),
];

const IMAGE: &str = "image";
const AUDIO: &str = "audio";

/// Reads a block, and says what is odd about it.
pub fn read(block: Value) -> (Option<ContentBlock>, Option<String>) {
    let block = match block {
        Value::String(text) => {
            return (Some(ContentBlock::text(text)), Some("a block of content is a bare string".into()));
        }
        Value::Null => return (None, Some("a block of content is null".into())),
        Value::Object(block) => block,
        other => {
            let note = format!("a block of content is {}", json_kind(&other));
            return (Some(ContentBlock::text(text_of(&other))), Some(note));
        }
    };
    if let Ok(block) = serde_json::from_value(Value::Object(block.clone())) {
        return (Some(block), None);
    }
    let kind = block.get("type").map(text_of).unwrap_or_default();
    let read = match kind.as_str() {
        IMAGE | AUDIO => read_media(&kind, &block),
        "resource" => read_resource(&block),
        "resource_link" => read_link(&block),
        "text" | "" => block.get("text").map(|text| ContentBlock::text(text_of(text))),
        _ => None,
    };
    match read {
        Some(block) => (Some(block), Some(format!("a block of kind {kind:?} has fields of another form"))),
        None => (
            Some(ContentBlock::text(describe_unknown(&kind, block))),
            Some(format!("a block of content is of kind {kind:?}")),
        ),
    }
}

/// A block that is of no known kind, with all it holds but long data.
fn describe_unknown(kind: &str, mut block: Map<String, Value>) -> String {
    block.remove("type");
    block.remove("annotations");
    let kind = if kind.is_empty() { "unknown" } else { kind };
    match block.remove("text").map(|text| text_of(&text)).filter(|text| !text.is_empty()) {
        Some(text) if block.is_empty() => format!("[content of kind {kind}] {text}"),
        Some(text) => format!("[content of kind {kind}: {}] {text}", text_of(&Value::Object(block))),
        None => format!("[content of kind {kind}: {}]", text_of(&Value::Object(block))),
    }
}

fn read_media(kind: &str, block: &Map<String, Value>) -> Option<ContentBlock> {
    let said = block.get("data").or_else(|| block.get("blob"))?.as_str()?;
    // A data URL instead of its data.
    let (url_type, data) = match said.strip_prefix("data:").and_then(|url| url.split_once(";base64,")) {
        Some((url_type, data)) => (Some(url_type), data),
        None => (None, said),
    };
    let mime_type =
        ["mimeType", "mime_type", "mediaType", "media_type"].iter().find_map(|key| block.get(*key)?.as_str());
    let by_beginning = || BEGINNINGS.iter().find(|(beginning, _)| data.starts_with(beginning)).map(|(_, of)| *of);
    let mime_type = mime_type.or(url_type).or_else(by_beginning).unwrap_or("application/octet-stream");
    Some(match kind {
        IMAGE => ContentBlock::image(data, mime_type),
        _ => ContentBlock::audio(data, mime_type),
    })
}

fn read_resource(block: &Map<String, Value>) -> Option<ContentBlock> {
    // Some put the fields of the resource beside its kind.
    let fields = block.get("resource").and_then(Value::as_object).unwrap_or(block);
    let uri = fields.get("uri").map(text_of).unwrap_or_default();
    let mime_type = fields.get("mimeType").and_then(Value::as_str);
    let resource = match (fields.get("text"), fields.get("blob").and_then(Value::as_str)) {
        (Some(text), _) if !text.is_null() => json!({ "uri": uri, "mimeType": mime_type, "text": text_of(text) }),
        (_, Some(blob)) => json!({ "uri": uri, "mimeType": mime_type, "blob": blob }),
        _ => return None,
    };
    serde_json::from_value(json!({ "type": "resource", "resource": resource })).ok()
}

fn read_link(block: &Map<String, Value>) -> Option<ContentBlock> {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    let uri = text("uri")?;
    let name = block.get("name").map(text_of).filter(|name| !name.is_empty());
    let link = json!({
        "type": "resource_link",
        "uri": uri,
        "name": name.as_deref().unwrap_or(uri),
        "title": text("title"),
        "description": text("description"),
        "mimeType": text("mimeType"),
    });
    serde_json::from_value(link).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_by_what_they_hold() {
        for (block, read_as) in [
            (json!({"type": "text", "text": "plain"}), json!({"type": "text", "text": "plain"})),
            (json!({"type": "text", "text": 7}), json!({"type": "text", "text": "7"})),
            (json!({"type": "text", "text": null}), json!({"type": "text", "text": ""})),
            (json!({"text": "no kind"}), json!({"type": "text", "text": "no kind"})),
            (
                json!({"type": "text", "text": "a", "annotations": {"priority": "high"}}),
                json!({"type": "text", "text": "a"}),
            ),
            (json!("bare"), json!({"type": "text", "text": "bare"})),
            (json!(7), json!({"type": "text", "text": "7"})),
            (
                json!({"type": "receipt", "number": 7}),
                json!({"type": "text", "text": r#"[content of kind receipt: {"number":7}]"#}),
            ),
            (
                json!({"type": "video_clip", "text": "seen"}),
                json!({"type": "text", "text": "[content of kind video_clip] seen"}),
            ),
            (json!({"type": "text"}), json!({"type": "text", "text": "[content of kind text: {}]"})),
            (json!({"type": 3, "x": 1}), json!({"type": "text", "text": r#"[content of kind 3: {"x":1}]"#})),
            (
                json!({"type": "image", "data": "iVBORw0"}),
                json!({"type": "image", "data": "iVBORw0", "mimeType": "image/png"}),
            ),
            (
                json!({"type": "image", "data": "data:image/gif;base64,R0lG"}),
                json!({"type": "image", "data": "R0lG", "mimeType": "image/gif"}),
            ),
            (
                json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "annotations": 3}),
                json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
            ),
            (
                json!({"type": "resource", "resource": {"text": "inside"}}),
                json!({"type": "resource", "resource": {"uri": "", "text": "inside"}}),
            ),
            (
                json!({"type": "resource_link", "uri": "a://b"}),
                json!({"type": "resource_link", "uri": "a://b", "name": "a://b"}),
            ),
        ] {
            let (read, _) = read(block.clone());
            assert_eq!(serde_json::to_value(read.unwrap()).unwrap(), read_as, "{block}");
        }
        assert!(read(Value::Null).0.is_none());
    }

    #[test]
    fn what_is_as_it_should_be_is_no_note() {
        assert_eq!(read(json!({"type": "text", "text": "plain"})).1, None);
        assert!(read(json!({"type": "receipt"})).1.is_some_and(|note| note.contains("receipt")));
    }
}
