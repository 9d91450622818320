//! Tests of `format`.

use proptest::prelude::*;

use super::*;

fn step(group: u32, event: &str, params: Value) -> StepSpec {
    let Value::Object(params) = params else { panic!("{params}") };
    StepSpec { group, event: event.to_owned(), params, decide: None }
}

fn mistakes(chain: Value) -> Vec<String> {
    from_json(&chain, 10).unwrap_err()
}

#[test]
fn steps_bare_names_and_groups() {
    let chain = json!([
        {"event": "tools.now"},
        ["memory.search", {"event": "calendar.check", "params": {"date": "today"}}],
        ["agent.think"],
    ]);
    let steps = from_json(&chain, 4).unwrap();
    assert_eq!(
        steps,
        [
            step(0, "tools.now", json!({})),
            step(1, "memory.search", json!({})),
            step(1, "calendar.check", json!({"date": "today"})),
            step(2, "agent.think", json!({})),
        ]
    );
    assert_eq!(
        to_json(&steps),
        json!([
            {"event": "tools.now", "params": {}},
            [
                {"event": "memory.search", "params": {}},
                {"event": "calendar.check", "params": {"date": "today"}},
            ],
            {"event": "agent.think", "params": {}},
        ])
    );
}

#[test]
fn what_is_to_be_decided_stands_beside_or_among_the_parameters() {
    for chain in [
        json!([{"event": "a", "params": {"decide": "if urgent", "x": 1}}]),
        json!([{"event": "a", "params": {"x": 1}, "decide": "if urgent"}]),
        json!([{"event": "a", "params": {"decide": "if urgent", "x": 1}, "decide": "if urgent"}]),
    ] {
        let steps = from_json(&chain, 1).unwrap();
        assert_eq!(steps[0].decide.as_deref(), Some("if urgent"), "{chain}");
        assert_eq!(json!(steps[0].params), json!({"x": 1}));
    }
    assert_eq!(from_json(&json!([{"event": "a", "decide": " "}]), 1).unwrap()[0].decide, None);
}

#[test]
fn a_chain_is_found_in_whatever_surrounds_it() {
    let chain = r#"[{"event": "tools.now", "params": {}}, "agent.think"]"#;
    let expected = [step(0, "tools.now", json!({})), step(1, "agent.think", json!({}))];
    for text in [
        chain.to_owned(),
        format!("{{\"chain\": {chain}}}"),
        format!("```json\n{chain}\n```"),
        format!("```\n{{\"chain\": {chain}, \"note\": [1]}}\n```\nDone [see above]."),
        format!("Here is [the] chain, with {{tools.now.result}} and {{\"x\": 1}}:\n\n{chain}\n\nIt has [2] steps."),
        format!("A step such as {{\"event\": \"a\"}} or [1]. ```json\n{chain}```"),
        format!("A step such as {{\"event\": \"a\"}}: {chain}"),
        format!("No JSON is ``` fenced: {chain}"),
    ] {
        assert_eq!(parse(&text, 10).unwrap(), expected, "{text}");
    }
    let fence = r#"[{"event": "document.create", "params": {"content": "```json\n[\"a\"]\n```"}}]"#;
    assert_eq!(parse(fence, 10).unwrap()[0].event, "document.create");
    assert_eq!(parse(&format!("```json\n{fence}\n```"), 10).unwrap()[0].event, "document.create");
    assert_eq!(parse(r#"{"event": "tools.now"}"#, 10).unwrap(), [step(0, "tools.now", json!({}))]);
}

#[test]
fn what_is_no_chain_is_said() {
    for text in ["", "I cannot do that.", "[see above]", "[1, 2]", "{}", "[", "{\"a\": 1}"] {
        assert_eq!(parse(text, 10).unwrap_err(), ["there is no chain in the answer; write a JSON list of steps"]);
    }
    // A list within one that is broken is not the chain.
    let broken = r#"[{"event": "task.schedule", "params": {"action": [{"event": "user.notify"}]}},]"#;
    let mistakes = parse(broken, 10).unwrap_err();
    assert!(mistakes[0].starts_with("the chain is not JSON: trailing comma"), "{mistakes:?}");
    let long = " ".repeat(ANSWER_BYTES + 1);
    assert_eq!(parse(&long, 10).unwrap_err(), ["the answer has 524289 bytes, at most 524288 are read"]);
}

#[test]
fn mistakes_name_their_step() {
    assert_eq!(
        mistakes(json!([
            "tools.now",
            {"event": "calendar.check", "arguments": {}, "params": [1]},
            {"params": {}},
            [["a"], 5, {"event": "b", "decide": true}],
            [],
            "no name",
            {"event": "c", "decide": "x", "params": {"decide": "y"}},
        ])),
        [
            "step 2 (calendar.check): unknown \"arguments\"; a step has event, params and decide",
            "step 2 (calendar.check): params: expected an object",
            "step 3: event: expected the name of an event",
            "step 4: a list within a group; groups cannot be nested",
            "step 5: expected {\"event\": ..., \"params\": {...}} or the name of an event",
            "step 6 (b): decide: expected a text",
            "behind step 6: a group without steps",
            "step 7: event: expected a name of at most 64 letters, digits, \"_\", \".\" and \"-\"",
            "step 8 (c): decide: it stands twice; keep one",
        ]
    );
    assert_eq!(mistakes(json!([])), ["a chain has at least one step"]);
    assert_eq!(mistakes(json!([[], []])), ["a chain has at least one step"]);
    for value in [json!(null), json!("a"), json!({}), json!({"chain": "a"}), json!({"chain": "a", "event": "b"})] {
        assert_eq!(mistakes(value), ["expected a list of steps, or {\"chain\": [...]}"]);
    }
}

#[test]
fn too_much_is_one_mistake() {
    let chain = json!(vec!["tools.now"; 10_000]);
    assert_eq!(from_json(&chain, 10).unwrap_err(), ["the chain has 10000 steps, at most 10 are allowed"]);
    assert_eq!(from_json(&chain, 10_000).unwrap().len(), 10_000);
    assert_eq!(parse(&chain.to_string(), 10).unwrap_err().len(), 1);
    assert_eq!(from_json(&json!(vec![1; 10_000]), 10_000).unwrap_err().len(), 21);
    let large = json!([{"event": "a", "params": {"x": "y".repeat(CHAIN_BYTES)}}]);
    assert_eq!(mistakes(large), ["the parameters take 65544 bytes, at most 65536 are allowed"]);
}

#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| {
        let inner = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        parse(&format!(r#"[{{"event": "a", "params": {{"x": {inner}}}}}]"#), 1)
    };
    assert!(nested(PARAMS_DEPTH - 1).is_ok());
    assert_eq!(nested(PARAMS_DEPTH).unwrap_err(), ["step 1 (a): params: nested more than 32 levels deep"]);
    assert!(nested(100_000).unwrap_err()[0].contains("recursion limit exceeded"));
    for bomb in ["[".repeat(500_000), "{\"a\":".repeat(90_000), "[{\"a\":".repeat(80_000)] {
        assert!(parse(&bomb, 10).unwrap_err()[0].contains("recursion limit exceeded"));
    }
}

#[test]
fn a_chain_ends_in_an_answer() {
    let ends = |chain: Value| {
        let steps = from_json(&chain, 10).unwrap();
        let before = steps.len();
        let after = with_final_think(steps);
        let last = after.last().unwrap();
        assert!(last.event == THINK && last.params.get("prompt").is_none_or(|prompt| prompt == ""), "{chain}");
        assert!(after.iter().filter(|step| step.group == last.group).count() == 1, "{chain}");
        after.len() == before
    };
    assert!(ends(json!(["tools.now", "agent.think"])));
    assert!(ends(json!([{"event": "agent.think", "params": {"thread_id": "t", "prompt": ""}}])));
    assert!(!ends(json!(["agent.think", "tools.now"])));
    assert!(!ends(json!([{"event": "agent.think", "params": {"prompt": "analyze"}}])));
    assert!(!ends(json!([{"event": "agent.think", "decide": "if anything was found"}])));
    assert!(!ends(json!([["tools.now", "agent.think"]])));
    assert_eq!(with_final_think(Vec::new()), [step(0, THINK, json!({}))]);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("a.b")),
    ];
    let key = prop_oneof![Just("event".to_owned()), Just("params".to_owned()), Just("chain".to_owned()), ".{0,4}"];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

fn steps() -> impl Strategy<Value = Vec<StepSpec>> {
    let params = prop::collection::btree_map("[a-z]{1,5}", json_value(), 0..3);
    let params = params.prop_map(|map| map.into_iter().collect::<Map<_, _>>());
    let step = ("[A-Za-z0-9_.-]{1,64}", params, prop::option::of("[a-z]\\PC{0,10}"));
    prop::collection::vec(prop::collection::vec(step, 1..4), 1..6).prop_map(|groups| {
        let group = |(group, steps): (usize, Vec<_>)| {
            steps.into_iter().map(move |(event, mut params, decide): (_, Map<_, _>, _)| {
                params.remove("decide");
                StepSpec { group: u32::try_from(group).unwrap(), event, params, decide }
            })
        };
        groups.into_iter().enumerate().flat_map(group).collect()
    })
}

proptest! {
    #[test]
    fn reading_what_was_written_gives_the_same_steps(steps in steps()) {
        let written = to_json(&steps);
        prop_assert_eq!(from_json(&written, 100).unwrap(), steps.clone());
        prop_assert_eq!(parse(&format!("The chain:\n```json\n{written:#}\n```"), 100).unwrap(), steps);
    }

    #[test]
    fn no_json_brings_it_down(value in json_value()) {
        let _ = from_json(&value, 10);
        let _ = parse(&value.to_string(), 10);
    }

    #[test]
    fn no_text_brings_it_down(text in "([\\[\\]{}\",:]|```|\"event\"|a\\.b|null|\\\\|\\PC){0,60}") {
        let _ = parse(&text, 10);
    }
}
