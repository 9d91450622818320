//! `submodule.add` and `.remove`, which a human consents to, and `submodule.ask`.

use kairo_proto::{
    v1::{self, SubmoduleChanged, decided_event::Event},
    words::{HeardKind, ModelTier},
};
use serde_json::{Map, Value, json};

use super::{Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, SubmoduleQuestion, tasks::intrinsic};
use crate::{
    request::Tool,
    state::Profile,
    submodules::{LEAST_DEADLINE_MS, MOST, MOST_DEADLINE_MS, NAME_BYTES, PROMPT_BYTES},
};

/// The tool that asks a submodule.
pub const ASK: &str = "submodule.ask";
pub const ADD: &str = "submodule.add";
pub const REMOVE: &str = "submodule.remove";
/// Rounds of questions in a turn.
const ROUNDS: u32 = 3;
/// Longest question, in characters.
const QUESTION_CHARS: usize = 2_000;

/// Returns true if submodules themselves may call a tool: they query the history, and keep the inner state.
pub fn is_callable_by_submodules(tool: &str) -> bool {
    tool == super::history::QUERY || super::inner_state::is_of_inner_state(tool)
}

/// Returns true if a tool is of use only to agents with submodules, or to those that limit the history they are shown.
pub fn is_of_submodules(tool: &str) -> bool {
    matches!(tool, ASK | ADD | REMOVE | super::history::QUERY)
}

pub fn all() -> Vec<Intrinsic> {
    let name = json!({ "type": "string", "pattern": "^[a-z0-9_-]{1,32}$" });
    let added = json!({
        "name": name,
        "prompt": { "type": "string", "description": "What it is, and what it looks at", "minLength": 1, "maxLength": PROMPT_BYTES },
        "tier": { "type": "string", "enum": ModelTier::WORDS, "description": "The model that it thinks with: fast if left out" },
        "hears": {
            "type": "array",
            "items": { "type": "string", "enum": HeardKind::WORDS },
            "description": "What it is shown: everything if left out",
        },
        "deadline_ms": { "type": "integer", "minimum": LEAST_DEADLINE_MS, "maximum": MOST_DEADLINE_MS },
        "wants_decisions": { "type": "boolean", "description": "Whether it is shown what you decided, afterwards" },
    });
    let asked = json!({
        "name": { "type": "string", "description": "Which one" },
        "question": { "type": "string", "minLength": 1, "maxLength": QUESTION_CHARS },
    });
    let described = "Asks one of your submodules a question before you decide, and returns what it answers; several at once in one answer. At most three rounds of questions for one message.";
    let consented = |it: Intrinsic| Intrinsic { tool: Tool { needs_approval: true, ..it.tool }, ..it };
    vec![
        consented(intrinsic(
            ADD,
            "Adds a submodule: a voice that thinks along with you from now on. A human is asked first.",
            added,
            json!(["name", "prompt"]),
            add,
        )),
        consented(intrinsic(
            REMOVE,
            "Removes one of your submodules. A human is asked first.",
            json!({ "name": { "type": "string", "description": "Which one" } }),
            json!(["name"]),
            remove,
        )),
        intrinsic(ASK, described, asked, json!(["name", "question"]), ask),
    ]
}

fn add(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let added = read_submodule(params, context.memory_rules > 0)?;
    let voices = context.state.active_submodules().count();
    let most = context.state.profile.as_ref().map_or(MOST, Profile::most_submodules);
    if context.state.find_submodule(&added.name).is_some() {
        return Err(format!("name: there is a submodule {:?} already; remove it first", added.name));
    }
    if voices >= most as usize {
        return Err(format!("there are {voices} submodules, and {most} at most: remove one first"));
    }
    let name = added.name.clone();
    let result = json!({ "added": added.name });
    let event = Event::SubmoduleChanged(SubmoduleChanged { name, submodule: Some(added) });
    Ok(IntrinsicOutcome { events: vec![event], result }.into())
}

fn remove(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let name = text_param(params, "name");
    require_submodule(context, name)?;
    let event = Event::SubmoduleChanged(SubmoduleChanged { name: name.to_owned(), submodule: None });
    Ok(IntrinsicOutcome { events: vec![event], result: json!({ "removed": name }) }.into())
}

fn ask(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let name = text_param(params, "name");
    let question = text_param(params, "question");
    require_submodule(context, name)?;
    if question.is_empty() {
        return Err("question: expected what to ask, in words".to_owned());
    }
    let chain = context.turn.chain.as_ref().map(|chain| chain.id);
    let round = context.turn.counsel.round_in(chain);
    if round > ROUNDS {
        return Err(format!("{ROUNDS} rounds of questions were asked already: decide with what you know"));
    }
    let module = name.to_owned();
    let question = question.chars().take(QUESTION_CHARS).collect();
    Ok(IntrinsicStart::Question(SubmoduleQuestion { module, question, round }))
}

/// The one of this name, or who there is.
fn require_submodule(context: &IntrinsicContext<'_>, name: &str) -> Result<(), String> {
    let known = || context.state.active_submodules().map(|voice| voice.name.as_str()).collect::<Vec<_>>().join(", ");
    match context.state.find_submodule(name) {
        Some(_) => Ok(()),
        None => Err(format!("name: there is no submodule {name:?}; there are: {}", known())),
    }
}

/// Reads the submodule to add. Orders come without a schema, so it is validated here. `hears_decisions` is the default
/// for showing it decisions: before epoch 10 it was false.
fn read_submodule(params: &Map<String, Value>, hears_decisions: bool) -> Result<v1::Submodule, String> {
    let name = text_param(params, "name");
    let prompt = text_param(params, "prompt");
    let tier = text_param(params, "tier");
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(is_name) {
        return Err(format!("name: expected 1 to {NAME_BYTES} of a-z, 0-9, _ and -"));
    }
    if prompt.is_empty() || prompt.len() > PROMPT_BYTES {
        return Err(format!("prompt: expected 1 to {PROMPT_BYTES} bytes"));
    }
    if !tier.is_empty() && ModelTier::known(tier).is_none() {
        return Err(format!("tier: expected one of {}", ModelTier::WORDS.join(", ")));
    }
    let listed = params.get("hears").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let hears: Option<Vec<String>> = listed
        .iter()
        .map(|kind| kind.as_str().filter(|it| HeardKind::known(it).is_some()).map(str::to_owned))
        .collect();
    let hears = hears.ok_or_else(|| format!("hears: expected some of {}", HeardKind::WORDS.join(", ")))?;
    let deadline = params.get("deadline_ms").and_then(Value::as_u64).unwrap_or_default();
    let in_range = deadline == 0 || (u64::from(LEAST_DEADLINE_MS)..=u64::from(MOST_DEADLINE_MS)).contains(&deadline);
    let deadline_ms = u32::try_from(deadline).ok().filter(|_| in_range);
    let deadline_ms =
        deadline_ms.ok_or_else(|| format!("deadline_ms: expected {LEAST_DEADLINE_MS} to {MOST_DEADLINE_MS}"))?;
    Ok(v1::Submodule {
        name: name.to_owned(),
        prompt: prompt.to_owned(),
        tier: tier.to_owned(),
        hears,
        deadline_ms,
        wants_decisions: params.get("wants_decisions").and_then(Value::as_bool).unwrap_or(hears_decisions),
    })
}

fn text_param<'p>(params: &'p Map<String, Value>, field: &str) -> &'p str {
    params.get(field).and_then(Value::as_str).unwrap_or_default().trim()
}
