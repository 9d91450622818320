//! Tests of `chat_completions`.

use serde_json::{json, value::to_raw_value};

use super::*;

fn request_body(asked: &ModelRequest, shown: &[ShownPart], settings: RequestSettings<'_>) -> Value {
    let wire = to_raw_value(&wire_tools(&asked.tools)).unwrap();
    serde_json::to_value(build_body(asked, &wire, shown, settings)).unwrap()
}

#[test]
fn a_request_is_what_the_format_says() {
    let call = ToolCall {
        id: "c1".into(),
        tool: "tools.now".into(),
        arguments: "{}".into(),
        passed_back: r#"{"extra_content":{"google":{"thought_signature":"SIG"}},"id":"other"}"#.into(),
    };
    let asked = ModelRequest {
        tier: "heavy",
        messages: vec![
            PromptMessage::System { text: "Be brief.".into() },
            PromptMessage::user("What time is it?"),
            PromptMessage::Assistant {
                text: String::new(),
                calls: vec![call],
                reasoning_details: r#"[{"type":"reasoning.encrypted","data":"x"}]"#.into(),
                passed_back: r#"{"reasoning_content":"hm","role":"user","reasoning_details":[]}"#.into(),
            },
            PromptMessage::Tool { call_id: "c1".into(), text: "noon".into() },
            PromptMessage::assistant("Noon."),
        ],
        tools: ["{ \"type\": \"object\" }", "no JSON"]
            .map(|schema| Tool {
                name: "tools.now".into(),
                description: "The time".into(),
                schema: schema.into(),
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
            })
            .into(),
        ..ModelRequest::default()
    };
    let settings =
        RequestSettings { model: "m", stream: true, max_output_tokens: 9, takes: EndpointFeatures::default() };
    let function = json!({ "name": "tools__now", "arguments": "{}" });
    let nothing = json!({ "type": "object", "properties": {} });
    let expected = json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "What time is it?" },
            { "role": "assistant", "content": null,
              "tool_calls": [{ "type": "function", "id": "c1", "function": function,
                               "extra_content": { "google": { "thought_signature": "SIG" } } }],
              "reasoning_content": "hm",
              "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x" }] },
            { "role": "tool", "tool_call_id": "c1", "content": "noon" },
            { "role": "assistant", "content": "Noon." },
        ],
        "tools": [
            { "type": "function", "function": {
                "name": "tools__now", "description": "The time", "parameters": nothing } },
            { "type": "function", "function": {
                "name": "tools__now", "description": "The time", "parameters": nothing } },
        ],
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_completion_tokens": 9,
    });
    assert_eq!(request_body(&asked, &[], settings), expected);
    let plain = RequestSettings { model: "m", stream: false, max_output_tokens: 0, takes: EndpointFeatures::default() };
    let nothing = json!({ "model": "m", "messages": [], "stream": false });
    let empty = ModelRequest::from_messages("heavy", Vec::new());
    assert_eq!(request_body(&empty, &[], plain), nothing);
}

#[test]
fn what_is_shown_stands_behind_the_words_and_what_is_not_within_them() {
    let part = |media_type: &str, name: &str| Part {
        media_type: media_type.into(),
        name: name.into(),
        size: 7,
        ..Default::default()
    };
    let parts = vec![part("image/png", "a.png"), part("image/png", "b.png"), part("audio/mpeg", "c.mp3")];
    let messages = vec![
        PromptMessage::User { text: "Look.".into(), parts },
        PromptMessage::User { text: String::new(), parts: vec![part("image/png", "d.png")] },
        PromptMessage::User { text: String::new(), parts: vec![part("image/gif", "e.gif")] },
    ];
    let asked = ModelRequest::from_messages("heavy", messages);
    let data = |media_type: &str| ShownPart::Data { media_type: media_type.to_owned(), base64: "Ynl0ZXM=".to_owned() };
    let shown = [
        ShownPart::Told("no longer shown"),
        data("image/png"),
        data("audio/mpeg"),
        ShownPart::Told("gone"),
        data("image/gif"),
    ];
    let sent = request_body(
        &asked,
        &shown,
        RequestSettings { model: "m", stream: false, max_output_tokens: 0, takes: EndpointFeatures::default() },
    );
    let content: Vec<&Value> = sent["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    let image = |media_type: &str| json!({ "type": "image_url", "image_url": { "url": format!("data:{media_type};base64,Ynl0ZXM=") } });
    let first = json!([
        { "type": "text", "text": "Look.\n[image a.png, 7 bytes] (no longer shown)" },
        image("image/png"),
        { "type": "input_audio", "input_audio": { "data": "Ynl0ZXM=", "format": "mp3" } },
    ]);
    assert_eq!(content, [&first, &json!("[image d.png, 7 bytes] (gone)"), &json!([image("image/gif")])]);
}

#[test]
fn names_and_descriptions_of_tools_are_as_every_endpoint_takes_them() {
    let long = format!("mcp.{}", "x".repeat(80));
    let names = ["tools.now", "a b", "ä", "", &long, &format!("{long}y"), &"x".repeat(64)].map(to_wire_name);
    assert!(names.iter().all(|name| is_wire_name(name)), "{names:?}");
    let apart: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!((apart.len(), names[0].as_str()), (names.len(), "tools__now"));
    let described = |description: &str| {
        let tool = Tool {
            name: "tools.now".into(),
            description: description.into(),
            schema: "{}".into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        };
        function_signature(&tool).description.into_owned()
    };
    assert_eq!(described(" "), "tools__now");
    assert_eq!(described("The time"), "The time");
    assert_eq!(described(&"é".repeat(2_000)).chars().count(), DESCRIPTION_CHARS);
}

#[test]
fn what_an_endpoint_does_not_take_is_put_differently() {
    let calls = ["call_1", "abcdefgh9"].map(|id| ToolCall {
        id: id.into(),
        tool: "tools.now".into(),
        arguments: "{}".into(),
        passed_back: String::new(),
    });
    let mut asked = ModelRequest::from_prompt("heavy", "Be brief.", "What time is it?");
    asked.conversation().push_calls("Two.", calls.into(), (String::new(), String::new()), vec!["1".into(), "2".into()]);
    let schema = AnswerSchema { name: "n".into(), schema: r#"{"type":"object"}"#.into(), is_strict: true };
    asked.answer_schema = Some(schema);
    let body = |takes: EndpointFeatures| {
        request_body(&asked, &[], RequestSettings { model: "m", stream: false, max_output_tokens: 0, takes })
    };
    let usual = EndpointFeatures::default();
    let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": { "type": "object" }, "strict": true } });
    assert_eq!(body(usual)["response_format"], format);
    let object = EndpointFeatures { response_format: ResponseFormat::JsonObject, ..usual };
    assert_eq!(body(object)["response_format"], json!({ "type": "json_object" }));
    let none = EndpointFeatures {
        response_format: ResponseFormat::None,
        system_message: false,
        parallel_calls: false,
        call_ids: false,
    };
    let body = body(none);
    assert_eq!(body.get("response_format"), None);
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(messages[0]["content"], "Be brief.\n\nWhat time is it?");
    assert_eq!((&messages[1]["content"], &messages[3]["content"]), (&json!("Two."), &json!(null)));
    let ids = |at: usize| (&messages[at]["tool_calls"][0]["id"], &messages[at + 1]["tool_call_id"]);
    assert!(
        ids(1).0 == ids(1).1
            && ids(1).0.as_str().unwrap().len() == 9
            && ids(3) == (&json!("abcdefgh9"), &json!("abcdefgh9"))
    );
}
