//! Reading of a model's answer, and the flaws in it.

use kairo_proto::v1::{Completion, CompletionToolCall};

use serde_json::Value;

use super::request::{ModelRequest, PLAN, REPLY};

/// The content of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelAnswer {
    Say(String),
    Call {
        words: String,
        calls: Vec<ModelToolCall>,
    },
    /// Steps in words, to be compiled to a chain.
    Plan(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelToolCall {
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
pub struct AnswerFlaw {
    /// As in `AgentFailed.kind`.
    pub kind: &'static str,
    /// Description of the flaw, so that the model can mend it.
    pub message: String,
}

/// Reads an answer to `request`; `most_calls` is how many tools may be called with one answer.
///
/// Of calls that name no tool beside some that do, where it is known how the answer ended, each is a call that will fail: the
/// others are made, and the model sees the result of each. With none to be made it is asked again.
pub fn read(request: &ModelRequest, completion: &Completion, most_calls: usize) -> Result<ModelAnswer, AnswerFlaw> {
    let words = completion.text.trim().to_owned();
    if completion.tool_calls.is_empty() {
        let answer = read_seed_form(request, &words)?.unwrap_or(ModelAnswer::Say(words));
        return match answer {
            ModelAnswer::Say(words) if words.is_empty() => {
                Err(AnswerFlaw { kind: "malformed_answer", message: "the answer is empty".to_owned() })
            }
            answer => Ok(answer),
        };
    }
    if let Some(call) = completion.tool_calls.iter().find(|call| call.tool == PLAN && offers_tool(request, PLAN)) {
        let params: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        return read_plan(&params).map(ModelAnswer::Plan);
    }
    if completion.tool_calls.len() > most_calls {
        let asked = completion.tool_calls.len();
        return Err(malformed_call(format!("{asked} tools called at once, at most {most_calls} are allowed")));
    }
    let is_known = |call: &CompletionToolCall| offers_tool(request, &call.tool);
    let may_fail = !completion.ending.is_empty() && completion.tool_calls.iter().any(is_known);
    let calls = completion.tool_calls.iter().map(|call| {
        // In the words of builds that offered none at the last step, so that their logs are decided again as they were.
        if !may_fail && !is_known(call) {
            return Err(malformed_call(format!("there is no tool named {:?}", call.tool)));
        }
        // Some endpoints leave the arguments out when there are none.
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.as_str() };
        match serde_json::from_str::<Value>(arguments) {
            Ok(value) if value.is_object() => {
                let CompletionToolCall { call_id, tool, passed_back, .. } = call.clone();
                Ok(ModelToolCall { tool, arguments: arguments.to_owned(), call_id, passed_back })
            }
            Ok(_) => Err(malformed_call(format!("the arguments of {} are not a JSON object", call.tool))),
            Err(error) => Err(malformed_call(format!("the arguments of {} are not JSON: {error}", call.tool))),
        }
    });
    Ok(ModelAnswer::Call { words, calls: calls.collect::<Result<_, _>>()? })
}

/// An answer in the form `{"event": "agent.reply", "params": {"message": "..."}}`, or with a plan for agent.chain.
fn read_seed_form(request: &ModelRequest, words: &str) -> Result<Option<ModelAnswer>, AnswerFlaw> {
    let Ok(Value::Object(object)) = extract_json(words) else { return Ok(None) };
    let params = object.get("params").cloned().unwrap_or_default();
    match object.get("event").and_then(Value::as_str) {
        Some(REPLY) => {
            let message = params.get("message").and_then(Value::as_str);
            let message = message.ok_or_else(|| malformed_answer("agent.reply needs a message"))?;
            Ok(Some(ModelAnswer::Say(message.trim().to_owned())))
        }
        Some(PLAN) if offers_tool(request, PLAN) => read_plan(&params).map(|plan| Some(ModelAnswer::Plan(plan))),
        Some(PLAN) => Err(malformed_answer("no further plan is possible, answer now")),
        _ => Ok(None),
    }
}

fn read_plan(params: &Value) -> Result<String, AnswerFlaw> {
    let plan = match params.get("plan") {
        Some(Value::String(plan)) => plan.trim().to_owned(),
        Some(steps @ Value::Array(_)) => steps.to_string(),
        _ => String::new(),
    };
    if plan.is_empty() { Err(malformed_answer("agent.chain needs a plan")) } else { Ok(plan) }
}

fn offers_tool(request: &ModelRequest, tool: &str) -> bool {
    request.may_call_tools() && request.tools.iter().chain(&request.unlisted).any(|offered| *offered.name == *tool)
}

/// The JSON a model was asked for: alone, in a code fence, or with words around it.
pub fn extract_json(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let whole = serde_json::from_str(text);
    let (Some(open), Some(close)) = (text.find(['{', '[']), text.rfind(['}', ']'])) else {
        return whole.map_err(|_| "expected JSON".to_owned());
    };
    whole
        .or_else(|_| serde_json::from_str(text.get(open..=close).unwrap_or_default()))
        .map_err(|error| error.to_string())
}

fn malformed_answer(message: &str) -> AnswerFlaw {
    AnswerFlaw { kind: "malformed_answer", message: message.to_owned() }
}

fn malformed_call(message: String) -> AnswerFlaw {
    AnswerFlaw { kind: "malformed_tool_call", message }
}
