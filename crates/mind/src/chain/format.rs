//! Reading a chain as models and tasks write it, and writing it in the same form.
//!
//! A chain is a list. In it stand steps, `{"event", "params"}` or a bare name, and lists of steps that run at once
//! (seed 000, section 5).

use serde_json::{Map, Value, json};

use super::mistakes::first_mistakes;
use super::{StepSpec, THINK};

/// Longest answer that is looked through for a chain, in bytes.
const ANSWER_BYTES: usize = 512 * 1024;
/// Most that the parameters of all steps of a chain take, in bytes of JSON.
pub const CHAIN_BYTES: usize = 64 * 1024;
/// Deepest nesting of a step's parameters.
pub const PARAMS_DEPTH: usize = 32;
/// Longest name of an event, in characters.
const NAME_CHARS: usize = 64;
/// Braces and brackets in an answer at which a chain may begin; those behind them are not looked at.
const BEGINNINGS: usize = 64;

/// Reads a chain from a model's answer: a JSON array, or `{"chain": [...]}`, alone, within a code fence or between
/// words. The mistakes are told to the model.
pub fn parse(text: &str, most_steps: usize) -> Result<Vec<StepSpec>, Vec<String>> {
    let value = find_chain_json(text).map_err(|mistake| vec![mistake])?;
    from_json(&value, most_steps)
}

/// Reads a chain that is JSON already; a step alone is a chain of one.
pub fn from_json(value: &Value, most_steps: usize) -> Result<Vec<StepSpec>, Vec<String>> {
    let items = chain_items(value).map_err(|mistake| vec![mistake])?;
    let count: usize = items.iter().map(|item| item.as_array().map_or(1, Vec::len)).sum();
    if count == 0 {
        return Err(vec!["a chain has at least one step".to_owned()]);
    }
    if count > most_steps {
        return Err(vec![format!("the chain has {count} steps, at most {most_steps} are allowed")]);
    }
    let mut reader = ChainReader::default();
    for item in items {
        reader.push_item(item);
    }
    reader.finish()
}

/// Writes steps in the form that [`from_json`] reads.
pub fn to_json(steps: &[StepSpec]) -> Value {
    let groups = steps.chunk_by(|one, next| one.group == next.group);
    groups
        .map(|group| match group {
            [step] => step_to_json(step),
            group => group.iter().map(step_to_json).collect(),
        })
        .collect()
}

fn step_to_json(step: &StepSpec) -> Value {
    let mut params = step.params.clone();
    if let Some(decide) = &step.decide {
        params.insert("decide".to_owned(), json!(decide));
    }
    json!({ "event": step.event, "params": params })
}

/// The steps, and behind them one that answers the user, unless the last one does.
pub fn with_final_think(mut steps: Vec<StepSpec>) -> Vec<StepSpec> {
    let answers = |step: &StepSpec| {
        let prompt = step.params.get("prompt").unwrap_or(&Value::Null);
        let prompted = !prompt.is_null() && prompt.as_str().is_none_or(|prompt| !prompt.trim().is_empty());
        // One that is decided on first might be skipped.
        step.event == THINK && !prompted && step.decide.is_none()
    };
    let last = steps.chunk_by(|one, next| one.group == next.group).last();
    if !matches!(last, Some([step]) if answers(step)) {
        let group = steps.last().map_or(0, |step| step.group.saturating_add(1));
        steps.push(StepSpec { group, event: THINK.to_owned(), params: Map::new(), decide: None });
    }
    steps
}

/// Returns true if a value has more levels of lists and objects than this.
pub(super) fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let inner = |value| levels == 0 || is_deeper_than(value, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(inner),
        Value::Object(fields) => levels == 0 || fields.values().any(inner),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The JSON of an answer that is the chain.
fn find_chain_json(text: &str) -> Result<Value, String> {
    if text.len() > ANSWER_BYTES {
        return Err(format!("the answer has {} bytes, at most {ANSWER_BYTES} are read", text.len()));
    }
    let bare = text.trim_start().starts_with(['[', '{']);
    // A fence within the JSON is part of a text.
    let fenced = text.split_once("```").filter(|_| !bare).map(|(_, behind)| behind);
    let found = fenced.and_then(first_chain_value).or_else(|| first_chain_value(text));
    found.unwrap_or_else(|| Err("there is no chain in the answer; write a JSON list of steps".to_owned()))
}

/// The first list, object with a chain, or else step. What begins like one of them and is no JSON is an error, so that
/// nothing within it is taken for the chain.
fn first_chain_value(mut text: &str) -> Option<Result<Value, String>> {
    let mut step = None;
    for _ in 0..BEGINNINGS {
        let Some(at) = text.find(['[', '{']) else { break };
        text = text.split_at(at).1;
        if !begins_like_json(text) {
            text = text.split_at(1).1;
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) if value.is_array() || value.get("chain").is_some() => return Some(Ok(value)),
            Some(Ok(value)) => {
                text = text.split_at(values.byte_offset()).1;
                step = step.or_else(|| value.get("event").is_some().then_some(value));
            }
            Some(Err(error)) => return Some(Err(format!("the chain is not JSON: {error}"))),
            None => break,
        }
    }
    step.map(Ok)
}

/// Returns true if the text begins like a list of steps or an object, unlike brackets among words.
fn begins_like_json(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next();
    match (first, chars.find(|c| !c.is_whitespace())) {
        (Some('['), inner) => matches!(inner, Some('{' | '[' | '"' | ']')),
        (_, inner) => inner == Some('"'),
    }
}

/// The steps and groups of a chain as it is written.
pub(super) fn chain_items(value: &Value) -> Result<&[Value], String> {
    match (value, value.get("chain")) {
        (Value::Array(items), _) | (_, Some(Value::Array(items))) => Ok(items),
        (Value::Object(fields), None) if fields.contains_key("event") => Ok(std::slice::from_ref(value)),
        _ => Err("expected a list of steps, or {\"chain\": [...]}".to_owned()),
    }
}

/// Steps and mistakes as they are come upon.
#[derive(Default)]
struct ChainReader {
    steps: Vec<StepSpec>,
    mistakes: Vec<String>,
    group: u32,
    /// Number of steps read, including wrong ones.
    count: usize,
    /// Size of the steps' parameters.
    bytes: usize,
}

impl ChainReader {
    fn push_item(&mut self, item: &Value) {
        match item {
            Value::Array(group) if group.is_empty() => {
                self.mistakes.push(format!("behind step {}: a group without steps", self.count));
            }
            Value::Array(group) => group.iter().for_each(|step| self.push_step(step)),
            step => self.push_step(step),
        }
        self.group = self.group.saturating_add(1);
    }

    fn push_step(&mut self, item: &Value) {
        self.count += 1;
        match read_step(item, self.group) {
            Ok(step) => {
                self.bytes += serde_json::to_string(&step.params).map_or(0, |text| text.len());
                self.bytes += step.decide.as_ref().map_or(0, String::len);
                self.steps.push(step);
            }
            Err(mistakes) => {
                let name = item.as_str().or_else(|| item.get("event")?.as_str()).filter(|name| is_event_name(name));
                let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
                self.mistakes.extend(mistakes.iter().map(|mistake| format!("step {}{name}: {mistake}", self.count)));
            }
        }
    }

    fn finish(mut self) -> Result<Vec<StepSpec>, Vec<String>> {
        if self.bytes > CHAIN_BYTES {
            self.mistakes.push(format!("the parameters take {} bytes, at most {CHAIN_BYTES} are allowed", self.bytes));
        }
        if self.mistakes.is_empty() { Ok(self.steps) } else { Err(first_mistakes(self.mistakes)) }
    }
}

fn read_step(item: &Value, group: u32) -> Result<StepSpec, Vec<String>> {
    match item {
        Value::String(event) => match is_event_name(event) {
            true => Ok(StepSpec { group, event: event.clone(), params: Map::new(), decide: None }),
            false => Err(vec![event_name_mistake()]),
        },
        Value::Object(fields) => read_fields(fields, group),
        Value::Array(_) => Err(vec!["a list within a group; groups cannot be nested".to_owned()]),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            Err(vec!["expected {\"event\": ..., \"params\": {...}} or the name of an event".to_owned()])
        }
    }
}

fn read_fields(fields: &Map<String, Value>, group: u32) -> Result<StepSpec, Vec<String>> {
    let mut mistakes = Vec::new();
    let unknown = fields.keys().filter(|key| !["event", "params", "decide"].contains(&key.as_str()));
    mistakes.extend(unknown.map(|key| {
        let key: String = key.chars().take(NAME_CHARS).collect();
        format!("unknown {key:?}; a step has event, params and decide")
    }));
    let event = match fields.get("event") {
        Some(Value::String(event)) if is_event_name(event) => event.clone(),
        Some(Value::String(_)) => {
            mistakes.push(event_name_mistake());
            String::new()
        }
        _ => {
            mistakes.push("event: expected the name of an event".to_owned());
            String::new()
        }
    };
    let mut params = read_params(fields.get("params")).unwrap_or_else(|mistake| {
        mistakes.push(mistake);
        Map::new()
    });
    let decide = read_decide(fields.get("decide"), params.remove("decide")).unwrap_or_else(|mistake| {
        mistakes.push(mistake);
        None
    });
    if mistakes.is_empty() { Ok(StepSpec { group, event, params, decide }) } else { Err(first_mistakes(mistakes)) }
}

fn read_params(params: Option<&Value>) -> Result<Map<String, Value>, String> {
    match params {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(value) if is_deeper_than(value, PARAMS_DEPTH) => {
            Err(format!("params: nested more than {PARAMS_DEPTH} levels deep"))
        }
        Some(Value::Object(params)) => Ok(params.clone()),
        Some(_) => Err("params: expected an object".to_owned()),
    }
}

/// Reads `decide`, which stands beside the parameters or, as seed 000 writes it, among them.
fn read_decide(beside: Option<&Value>, among: Option<Value>) -> Result<Option<String>, String> {
    let text = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.trim().is_empty())),
        Some(_) => Err("decide: expected a text".to_owned()),
    };
    match (text(beside)?, text(among.as_ref())?) {
        (Some(beside), Some(among)) if beside != among => Err("decide: it stands twice; keep one".to_owned()),
        (beside, among) => Ok(beside.or(among)),
    }
}

fn is_event_name(text: &str) -> bool {
    (1..=NAME_CHARS).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

fn event_name_mistake() -> String {
    format!("event: expected a name of at most {NAME_CHARS} letters, digits, \"_\", \".\" and \"-\"")
}

#[cfg(test)]
mod tests {
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
}
