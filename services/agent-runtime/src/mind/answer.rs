//! What a model's answer means, and what is wrong with it.

use kairo_proto::v1::Completion;

use super::request::ModelRequest;

/// What an answer asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Say(String),
    Call { words: String, calls: Vec<AskedCall> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct AskedCall {
    pub tool: String,
    /// A JSON object, as the model wrote it.
    pub arguments: String,
}

/// An answer that cannot be acted on.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaw {
    /// As in `AgentFailed.kind`.
    pub kind: &'static str,
    /// What is wrong, so that the model can mend it.
    pub message: String,
}

/// Reads an answer to `request`; `most_calls` is how many tools may be called at once.
pub fn read(request: &ModelRequest, completion: &Completion, most_calls: usize) -> Result<Answer, Flaw> {
    let words = completion.text.trim().to_owned();
    if completion.tool_calls.is_empty() {
        return match words.is_empty() {
            true => Err(Flaw { kind: "malformed_answer", message: "the answer is empty".to_owned() }),
            false => Ok(Answer::Say(words)),
        };
    }
    if completion.tool_calls.len() > most_calls {
        let asked = completion.tool_calls.len();
        return Err(malformed(format!("{asked} tools called at once, at most {most_calls} are allowed")));
    }
    let calls = completion.tool_calls.iter().map(|call| {
        if !request.tools.iter().any(|tool| tool.name == call.tool) {
            return Err(malformed(format!("there is no tool named {:?}", call.tool)));
        }
        // Some endpoints leave the arguments out when there are none.
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.as_str() };
        match serde_json::from_str::<serde_json::Value>(arguments) {
            Ok(value) if value.is_object() => {
                Ok(AskedCall { tool: call.tool.clone(), arguments: arguments.to_owned() })
            }
            Ok(_) => Err(malformed(format!("the arguments of {} are not a JSON object", call.tool))),
            Err(error) => Err(malformed(format!("the arguments of {} are not JSON: {error}", call.tool))),
        }
    });
    Ok(Answer::Call { words, calls: calls.collect::<Result<_, _>>()? })
}

fn malformed(message: String) -> Flaw {
    Flaw { kind: "malformed_tool_call", message }
}
