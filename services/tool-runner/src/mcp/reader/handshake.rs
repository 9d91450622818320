//! Reads what a server says of itself when it is connected, whatever else it says beside.

use rmcp::model::{InitializeResult, ServerResult};
use serde_json::{Map, Value, json};

use super::wording::text_of;

/// Capabilities that are known, each an object.
const CAPABILITIES: [&str; 7] =
    ["tools", "resources", "prompts", "logging", "completions", "experimental", "extensions"];
/// Parts of capabilities, each true or false.
const PARTS: [&str; 2] = ["listChanged", "subscribe"];

/// Reads the answer to `initialize`, and says whether it was odd.
///
/// # Errors
/// Names the missing part without which the server cannot be used.
pub fn read(result: Value) -> Result<(ServerResult, Option<String>), String> {
    if let Ok(read) = serde_json::from_value::<InitializeResult>(result.clone()) {
        return Ok((ServerResult::InitializeResult(read), None));
    }
    let version = result.get("protocolVersion").and_then(Value::as_str);
    let version = version.ok_or("the answer to initialize names no version of the protocol")?;
    let info = result.get("serverInfo");
    let said = |name: &str| info.and_then(|info| info.get(name)).map(text_of).unwrap_or_default();
    let mended = json!({
        "protocolVersion": version,
        "capabilities": read_capabilities(result.get("capabilities")),
        "serverInfo": { "name": said("name"), "version": said("version") },
    });
    let read = serde_json::from_value(mended).map_err(|error| error.to_string())?;
    let note = "the answer to initialize has fields of another form".to_owned();
    Ok((ServerResult::InitializeResult(read), Some(note)))
}

fn read_capabilities(said: Option<&Value>) -> Map<String, Value> {
    let mut read = Map::new();
    for name in CAPABILITIES {
        match said.and_then(|said| said.get(name)) {
            Some(Value::Object(parts)) => {
                let is_part = |(name, value): &(&String, &Value)| PARTS.contains(&name.as_str()) && value.is_boolean();
                let parts: Map<_, _> = parts.iter().filter(is_part).map(|(n, v)| (n.clone(), v.clone())).collect();
                read.insert(name.to_owned(), parts.into());
            }
            Some(Value::Bool(true)) => {
                read.insert(name.to_owned(), json!({}));
            }
            _ => {}
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_what_can_be_read() {
        let whole = json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "s", "version": "1"}, "instructions": "be kind",
        });
        assert_eq!(read(whole.clone()).unwrap().1, None);
        for (field, value) in [
            ("instructions", json!(["a"])),
            ("serverInfo", json!(null)),
            ("serverInfo", json!({"name": 7})),
            (
                "capabilities",
                json!({"tools": {"listChanged": true, "x": []}, "resources": true, "logging": null, "prompts": []}),
            ),
        ] {
            let mut odd = whole.clone();
            odd[field] = value;
            let (ServerResult::InitializeResult(read), Some(_)) = read(odd.clone()).unwrap() else { panic!("{odd}") };
            assert_eq!(read.protocol_version.to_string(), "2025-06-18");
            assert_eq!(read.capabilities.tools.unwrap().list_changed, Some(true), "{odd}");
        }
        let mut odd = whole.clone();
        odd["capabilities"] = json!(null);
        assert!(read(odd).is_ok());
        for odd in [json!(null), json!({}), json!({"protocolVersion": 3})] {
            assert!(read(odd).is_err());
        }
    }
}
