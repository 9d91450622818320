//! Tests of `config`.

use serde_json::json;

use super::*;

fn parse(value: serde_json::Value) -> Result<ToolsConfig, serde_json::Error> {
    serde_json::from_value(value)
}

#[test]
fn the_default_is_valid_and_offers_nothing_that_reaches_out() {
    let config = ToolsConfig::default();
    assert_eq!(config.validate(), Vec::<String>::new());
    assert!(config.http.allow_hosts.is_empty());
    assert!(config.mcp.is_empty());
    assert_eq!(parse(json!({})).unwrap(), config);
}

#[test]
fn unknown_keys_are_refused() {
    assert!(parse(json!({"paralel": 3})).is_err());
    assert!(parse(json!({"mcp": [{"name": "a", "comand": "x"}]})).is_err());
}

#[test]
fn every_mistake_is_named_at_once() {
    let config = parse(json!({
        "time_zone": "Mars/Olympus",
        "parallel": 0,
        "approval": ["*.send"],
        "mail": {"from": "nobody"},
        "http": {"allow_hosts": ["https://example.com/"], "allow_private": ["intranet"]},
        "mcp": [
            {"name": "Bad", "command": "x"},
            {"name": "tools", "command": "x"},
            {"name": "a"},
            {"name": "a", "url": "ftp://x"},
            {"name": "b", "url": "http://x", "cwd": "/"},
            {"name": "c", "command": "x", "headers": {"h": "v"}},
        ],
    }))
    .unwrap();
    let mistakes = config.validate();
    for key in [
        "time_zone: ",
        "parallel: ",
        "approval: ",
        "mail.from: ",
        "http.allow_hosts: ",
        "http.allow_private: ",
        "mcp[0].name: ",
        "mcp[1].name: ",
        "mcp[2].command: ",
        "mcp[3].name: ",
        "mcp[3].url: ",
        "mcp[4].url: ",
        "mcp[5].headers: ",
    ] {
        assert!(mistakes.iter().any(|m| m.starts_with(key)), "{key} in {mistakes:#?}");
    }
    assert_eq!(mistakes.len(), 13, "{mistakes:#?}");
}
