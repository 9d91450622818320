//! Mistakes in scenario files.

use super::super::{Scenario, ScenarioMistakes};

fn mistakes(yaml: &str) -> Vec<String> {
    match Scenario::parse(yaml) {
        Ok(_) => Vec::new(),
        Err(ScenarioMistakes(mistakes)) => mistakes,
    }
}

#[test]
fn every_mistake_is_named_with_its_rule_and_line() {
    let found = mistakes(
        "defaults: { delay_ms: 600001 }
rules:
  - name: a
    when: { user_matches: '(', user_contain: x, step: -1 }
    reply: { text: '{{ ', delay_ms: soon, chunk_chars: 0 }
  - reply: { error: { status: 200 } }
  - name: a
    times: 0
    turn: []
  - name: b
    when: { user_matches: '(' }
    reply: { error: { status: 500 }, text: x }
  - name: c
    reply: { tool_calls: [{ tool: 'no spaces' }, { tool: x, arguments: { y: '{{' } }] }
  - { name: d, reply: x, turn: [y] }
  - { name: e, repli: x }
",
    );
    let expected = [
        "defaults.delay_ms: must be at most 600000",
        "rule 'a' (line 3).when.step: ",
        "rule 'a' (line 3).when.user_contain: unknown field",
        "rule 'a' (line 3).when.user_matches: unclosed group",
        "rule 'a' (line 3).reply.delay_ms: invalid type",
        "rule 'a' (line 3).reply.chunk_chars: must be at least 1",
        "rule 'a' (line 3).reply.text: ",
        "rule at line 6: give it a name",
        "rule at line 6.reply.error.status: must be 400 to 599, not 200",
        "rule 'a' (line 7): an earlier rule has the same name",
        "rule 'a' (line 7).times: must be at least 1",
        "rule 'a' (line 7).turn: there must be at least one reply",
        "rule 'b' (line 10).when.user_matches: unclosed group",
        "rule 'b' (line 10).reply: an error stands alone",
        "rule 'c' (line 13).reply.tool_calls[0].tool: 'no spaces' is not",
        "rule 'c' (line 13).reply.tool_calls[1].arguments.y: ",
        "rule 'd' (line 15): give it either a reply or a turn of replies",
        "rule 'e' (line 16).repli: unknown field",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (mistake, start) in found.iter().zip(expected) {
        assert!(mistake.starts_with(start), "{mistake:?} does not start with {start:?}");
    }
}

#[test]
fn a_file_that_is_not_yaml_or_has_no_rules_is_refused() {
    assert!(mistakes("rules: [").iter().any(|mistake| mistake.contains("line 1")));
    assert_eq!(mistakes("models: m"), ["rules: there must be at least one rule"]);
    assert!(mistakes("rulez: []")[0].contains("unknown field `rulez`"));
}
