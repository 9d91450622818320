//! Reading a chain as models and tasks write it, and writing it in the same form.
//!
//! A chain is a list. In it stand steps, `{"event", "params"}` or a bare name, and lists of steps that run at once
//! (seed 000, section 5).

#[cfg(test)]
mod tests;

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
