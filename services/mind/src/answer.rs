//! Reading of a model's answer, and the flaws in it.

use kairo_proto::v1::{Completion, CompletionToolCall};

use serde_json::Value;

use super::request::{ModelRequest, PLAN, REPLY};

/// The content of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Say(String),
    Call {
        words: String,
        calls: Vec<AskedCall>,
    },
    /// Steps in words, to be compiled to a chain.
    Plan(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskedCall {
    pub tool: String,
    /// A JSON object, as the model wrote it.
    pub arguments: String,
    /// The model's own id of the call, as it stands in the answer.
    pub call_id: String,
    /// Fields that the model server wants back with the call: a JSON object as text.
    pub passed_back: String,
}

/// An answer that cannot be acted on.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaw {
    /// As in `AgentFailed.kind`.
    pub kind: &'static str,
    /// Description of the flaw, so that the model can mend it.
    pub message: String,
}

/// Reads an answer to `request`; `most_calls` is how many tools may be called with one answer.
///
/// Of calls that name no tool beside some that do, where it is known how the answer ended, each is a call that will fail: the
/// others are made, and the model sees the result of each. With none to be made it is asked again.
pub fn read(request: &ModelRequest, completion: &Completion, most_calls: usize) -> Result<Answer, Flaw> {
    let words = completion.text.trim().to_owned();
    if completion.tool_calls.is_empty() {
        let answer = in_seed_form(request, &words)?.unwrap_or(Answer::Say(words));
        return match answer {
            Answer::Say(words) if words.is_empty() => {
                Err(Flaw { kind: "malformed_answer", message: "the answer is empty".to_owned() })
            }
            answer => Ok(answer),
        };
    }
    if let Some(call) = completion.tool_calls.iter().find(|call| call.tool == PLAN && offers(request, PLAN)) {
        let params: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        return plan_of(&params).map(Answer::Plan);
    }
    if completion.tool_calls.len() > most_calls {
        let asked = completion.tool_calls.len();
        return Err(malformed(format!("{asked} tools called at once, at most {most_calls} are allowed")));
    }
    let is_known = |call: &CompletionToolCall| offers(request, &call.tool);
    let may_fail = !completion.ending.is_empty() && completion.tool_calls.iter().any(is_known);
    let calls = completion.tool_calls.iter().map(|call| {
        // In the words of builds that offered none at the last step, so that their logs are decided again as they were.
        if !may_fail && !is_known(call) {
            return Err(malformed(format!("there is no tool named {:?}", call.tool)));
        }
        // Some endpoints leave the arguments out when there are none.
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.as_str() };
        match serde_json::from_str::<Value>(arguments) {
            Ok(value) if value.is_object() => {
                let CompletionToolCall { call_id, tool, passed_back, .. } = call.clone();
                Ok(AskedCall { tool, arguments: arguments.to_owned(), call_id, passed_back })
            }
            Ok(_) => Err(malformed(format!("the arguments of {} are not a JSON object", call.tool))),
            Err(error) => Err(malformed(format!("the arguments of {} are not JSON: {error}", call.tool))),
        }
    });
    Ok(Answer::Call { words, calls: calls.collect::<Result<_, _>>()? })
}

/// An answer in the form `{"event": "agent.reply", "params": {"message": "..."}}`, or with a plan for agent.chain.
fn in_seed_form(request: &ModelRequest, words: &str) -> Result<Option<Answer>, Flaw> {
    let Ok(Value::Object(object)) = json_in(words) else { return Ok(None) };
    let params = object.get("params").cloned().unwrap_or_default();
    match object.get("event").and_then(Value::as_str) {
        Some(REPLY) => {
            let message = params.get("message").and_then(Value::as_str);
            let message = message.ok_or_else(|| malformed_answer("agent.reply needs a message"))?;
            Ok(Some(Answer::Say(message.trim().to_owned())))
        }
        Some(PLAN) if offers(request, PLAN) => plan_of(&params).map(|plan| Some(Answer::Plan(plan))),
        Some(PLAN) => Err(malformed_answer("no further plan is possible, answer now")),
        _ => Ok(None),
    }
}

fn plan_of(params: &Value) -> Result<String, Flaw> {
    let plan = match params.get("plan") {
        Some(Value::String(plan)) => plan.trim().to_owned(),
        Some(steps @ Value::Array(_)) => steps.to_string(),
        _ => String::new(),
    };
    if plan.is_empty() { Err(malformed_answer("agent.chain needs a plan")) } else { Ok(plan) }
}

fn offers(request: &ModelRequest, tool: &str) -> bool {
    request.may_call() && request.tools.iter().chain(&request.unlisted).any(|offered| *offered.name == *tool)
}

/// The JSON a model was asked for: alone, in a code fence, or with words around it.
pub fn json_in(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let whole = serde_json::from_str(text);
    let (Some(open), Some(close)) = (text.find(['{', '[']), text.rfind(['}', ']'])) else {
        return whole.map_err(|_| "expected JSON".to_owned());
    };
    whole
        .or_else(|_| serde_json::from_str(text.get(open..=close).unwrap_or_default()))
        .map_err(|error| error.to_string())
}

fn malformed_answer(message: &str) -> Flaw {
    Flaw { kind: "malformed_answer", message: message.to_owned() }
}

fn malformed(message: String) -> Flaw {
    Flaw { kind: "malformed_tool_call", message }
}
