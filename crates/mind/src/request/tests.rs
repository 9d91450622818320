//! Tests of `request`.

use super::*;

#[test]
fn the_parts_of_a_request_have_digests_of_their_own() {
    let asked = |words: &str, facts: &[&str]| {
        let mut request = ModelRequest::from_prompt("heavy", "be kind", words);
        facts.iter().for_each(|fact| request.conversation().push_context(fact));
        request.part_digests(7)
    };
    let whole = asked("hello", &["one job runs", "answer now"]);
    assert_eq!((whole.tools, whole.sent), (0, 0), "none are offered");
    let other_facts = asked("hello", &["no job runs"]);
    assert_eq!((other_facts.system, other_facts.history), (whole.system, whole.history));
    assert_ne!(other_facts.facts, whole.facts);
    let other_history = asked("hi", &["one job runs", "answer now"]);
    assert_eq!((other_history.system, other_history.facts), (whole.system, whole.facts));
    assert_ne!(other_history.history, whole.history);
    let bare = ModelRequest::from_messages("heavy", vec![PromptMessage::user("hello")]).part_digests(7);
    assert_eq!((bare.system, bare.history, bare.facts), (0, whole.history, 0));
}

#[test]
fn the_digest_never_changes() {
    let call = ToolCall { id: "c1".into(), tool: "tools.now".into(), arguments: "{}".into(), ..Default::default() };
    let request = ModelRequest {
        tier: "heavy",
        messages: vec![
            PromptMessage::user("What time is it?"),
            PromptMessage::assistant_with_calls("", vec![call]),
            PromptMessage::Tool { call_id: "c1".into(), text: "noon".into() },
        ],
        tools: vec![Tool {
            name: "tools.now".into(),
            description: "The time".into(),
            schema: r#"{"type":"object"}"#.into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        }],
        ..ModelRequest::default()
    };
    assert_eq!(request.digest(), "d8681fef-7343-5b77-9818-0314213e0a27");
    let tools = serde_json::value::to_raw_value(&request.tools).unwrap();
    assert_eq!(request.digest_with_tools(&tools), request.digest());
    let schema = AnswerSchema { name: "match".into(), schema: "{}".into(), is_strict: true };
    let other = ModelRequest { tool_choice: ToolChoice::None, ..request.clone() };
    let third = request.clone().with_answer_schema(schema);
    for request in [other, third] {
        assert_ne!(request.digest(), "d8681fef-7343-5b77-9818-0314213e0a27");
        assert_eq!(request.digest_with_tools(&tools), request.digest());
    }
}
