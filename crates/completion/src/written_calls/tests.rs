use super::*;

fn offered() -> OfferedTools {
    let schema = r#"{"type":"object","properties":{"time_zone":{"type":"string"},"days":{"type":"integer"}}}"#;
    OfferedTools::new(["tools.now", "tools.date_calc"].map(|name| (name, name.replace('.', "__"), schema)))
}

const TOKYO: &str = r#"{"time_zone":"Asia/Tokyo"}"#;

/// Texts of which each is one call of `tools.now` for Tokyo.
const CALLS: [&str; 34] = [
    r#"{"name":"tools__now","arguments":{"time_zone":"Asia/Tokyo"}}"#,
    r#"{"name": "tools__now", "parameters": {"time_zone":"Asia/Tokyo"}}"#,
    r#"{"tool":"tools.now","args":{"time_zone":"Asia/Tokyo"}}"#,
    r#"{"type":"function","function":{"name":"tools__now","arguments":"{\"time_zone\":\"Asia/Tokyo\"}"}}"#,
    r#"[{"name":"tools__now","arguments":{"time_zone":"Asia/Tokyo"}}]"#,
    r#"{"tool_calls":[{"id":"1","type":"function","function":{"name":"tools__now","arguments":{"time_zone":"Asia/Tokyo"}}}]}"#,
    r#"{"tools__now":{"time_zone":"Asia/Tokyo"}}"#,
    "```json\n{\"name\":\"tools__now\",\"arguments\":{\"time_zone\":\"Asia/Tokyo\"}}\n```",
    "```\n{\"name\":\"tools__now\",\"arguments\":{\"time_zone\":\"Asia/Tokyo\"}}\n```",
    "```tool_code\nprint(default_api.tools__now(time_zone=\"Asia/Tokyo\"))\n```",
    "```tool_code\ntools__now(time_zone='Asia/Tokyo')\n```",
    "[tools__now(time_zone=\"Asia/Tokyo\")]",
    "<|tool_call_start|>[tools__now(time_zone=\"Asia/Tokyo\")]<|tool_call_end|>",
    "<tool_call>\n{\"name\":\"tools__now\",\"arguments\":{\"time_zone\":\"Asia/Tokyo\"}}\n</tool_call>",
    "<tool_call>{\"name\":\"tools__now\",\"arguments\":{\"time_zone\":\"Asia/Tokyo\"}}",
    "<tool_call>{'name': 'tools__now', 'arguments': {'time_zone': 'Asia/Tokyo'}}</tool_call>",
    "<tool_call>\n<function=tools__now>\n<parameter=time_zone>\nAsia/Tokyo\n</parameter>\n</function>\n</tool_call>",
    "<function=tools__now><parameter=time_zone>Asia/Tokyo</parameter></function>",
    "<function=tools__now>{\"time_zone\":\"Asia/Tokyo\"}</function>",
    "<function_calls>\n<invoke name=\"tools__now\">\n<parameter name=\"time_zone\">Asia/Tokyo</parameter>\n</invoke>\n</function_calls>",
    "<minimax:tool_call><invoke name=\"tools__now\"><parameter name=\"time_zone\">Asia/Tokyo</parameter></invoke></minimax:tool_call>",
    "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"tools__now\">\n<｜DSML｜parameter name=\"time_zone\" string=\"true\">Asia/Tokyo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "<tool_call>tools__now\n<arg_key>time_zone</arg_key>\n<arg_value>Asia/Tokyo</arg_value>\n</tool_call>",
    "[TOOL_CALLS][{\"name\":\"tools__now\",\"arguments\":{\"time_zone\":\"Asia/Tokyo\"}}]",
    "[TOOL_CALLS] [{\"name\":\"tools__now\",\"arguments\":{\"time_zone\":\"Asia/Tokyo\"}}]</s>",
    "[TOOL_CALLS]tools__now[ARGS]{\"time_zone\":\"Asia/Tokyo\"}",
    "[TOOL_CALLS]tools__now[CALL_ID]abc123XYZ[ARGS]{\"time_zone\":\"Asia/Tokyo\"}",
    "<|python_tag|>{\"name\":\"tools__now\",\"parameters\":{\"time_zone\":\"Asia/Tokyo\"}}<|eom_id|>",
    "<|tool_call|>[{\"name\":\"tools__now\",\"arguments\":{\"time_zone\":\"Asia/Tokyo\"}}]<|/tool_call|>",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.tools__now:0<|tool_call_argument_begin|>{\"time_zone\":\"Asia/Tokyo\"}<|tool_call_end|><|tool_calls_section_end|>",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>tools__now\n```json\n{\"time_zone\":\"Asia/Tokyo\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tools__now<｜tool▁sep｜>{\"time_zone\":\"Asia/Tokyo\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "<|start|>assistant<|channel|>commentary to=functions.tools__now <|constrain|>json<|message|>{\"time_zone\":\"Asia/Tokyo\"}<|call|>",
    "<|channel|>commentary to=functions.tools__now<|channel|>json<|message|>{\"time_zone\":\"Asia/Tokyo\"}",
];

#[test]
fn calls_are_read_in_the_form_of_each_family_of_models() {
    for text in CALLS {
        let call = WrittenCall { tool: "tools.now".into(), arguments: TOKYO.into() };
        assert_eq!(read(text, &offered()), Some(WrittenAnswer { words: String::new(), calls: vec![call] }), "{text}");
    }
}

#[test]
fn several_calls_may_stand_together_and_words_before_a_marker() {
    let both = "<tool_call>{\"name\":\"tools__now\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"tools__date_calc\",\"arguments\":{}}</tool_call>";
    assert_eq!(read(both, &offered()).unwrap().calls.len(), 2);
    let lines = "{\"name\":\"tools__now\",\"arguments\":{}}\n{\"name\":\"tools__date_calc\",\"arguments\":{}}";
    assert_eq!(read(lines, &offered()).unwrap().calls.len(), 2);
    let behind = read(&format!("I will look.\n\n{both}"), &offered()).unwrap();
    assert_eq!((behind.words.as_str(), behind.calls.len()), ("I will look.", 2));
    let days = read(
        "<function=tools__date_calc><parameter=days>3</parameter><parameter=time_zone>7</parameter></function>",
        &offered(),
    );
    assert_eq!(days.unwrap().calls[0].arguments, r#"{"days":3,"time_zone":"7"}"#);
}

/// Words, however much they look like calls.
const WORDS: [&str; 16] = [
    "",
    "Hello",
    "{}",
    "[]",
    r#"{"name":"delete_everything","arguments":{}}"#,
    r#"{"name":"Ann","age":7}"#,
    r#"{"name":"tools__now"}"#,
    r#"{"name":"tools__now","arguments":{},"note":"as an example"}"#,
    r#"{"name":"tools__now","arguments":{}} is what I would call."#,
    r#"Call {"name":"tools__now","arguments":{}}"#,
    "To see it:\n```xml\n<tool_call>{\"name\":\"tools__now\",\"arguments\":{}}</tool_call>\n```",
    "The tag `<tool_call>` begins a call.",
    "<tool_call>and no more",
    "tools__now",
    "[link](https://example.com) and more",
    "{\"event\":\"agent.reply\",\"params\":{\"message\":\"hi\"}}",
];

#[test]
fn words_stay_words() {
    for text in WORDS {
        assert_eq!(read(text, &offered()), None, "{text}");
    }
    assert_eq!(read(CALLS[0], &OfferedTools::default()), None, "nothing is offered");
}

#[test]
fn what_may_be_calls_is_not_shown_and_words_are() {
    for size in [1, 3, 1000] {
        let shown = |text: &str| {
            let mut holding = CallHoldback::new(&offered());
            let pieces: Vec<char> = text.chars().collect();
            let shown: String =
                pieces.chunks(size).map(|piece| holding.filter(&piece.iter().collect::<String>())).collect();
            (shown, holding.finish())
        };
        for text in CALLS {
            if !text.contains("<|start|>") {
                assert_eq!(shown(text), (String::new(), text.to_owned()), "{text}");
            }
        }
        for text in [
            "Hello there, all is well.",
            "[link](x) and more",
            "{\"event\":\"x\"}",
            "```rust\nfn x() {}\n```\nSo.",
            "tools are good",
        ] {
            let (before, rest) = shown(text);
            assert_eq!(before.clone() + &rest, text);
            assert!(before.len() + 4 > text.len(), "{before}");
        }
        let (before, held) = shown("I will look.\n<tool_call>{\"name\":1}</tool_call>");
        assert_eq!((before.as_str(), held.as_str()), ("I will look.\n", "<tool_call>{\"name\":1}</tool_call>"));
    }
}
