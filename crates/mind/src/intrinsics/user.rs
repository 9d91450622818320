//! `user.notify`: words for the user that answer nothing.

use kairo_proto::v1::{AgentAction, Say, agent_action::Action, decided_event::Event};
use serde_json::{Map, Value, json};

use super::{Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, finish_without_model};
use crate::request::Tool;

pub fn all() -> Vec<Intrinsic> {
    let tool = Tool {
        name: "user.notify".into(),
        description: "Tells the user something, such as a reminder; it is no answer to anything they said.".into(),
        schema: json!({
            "type": "object",
            "properties": { "message": { "type": "string", "minLength": 1, "maxLength": 4_000 } },
            "required": ["message"],
            "additionalProperties": false,
        })
        .to_string()
        .into(),
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
    };
    vec![Intrinsic { tool, begin: notify, finish: finish_without_model }]
}

fn notify(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let text = params.get("message").and_then(Value::as_str).ok_or("message: expected a text")?;
    let user = context.turn.user.clone();
    let say = Say {
        text: text.to_owned(),
        user: user.clone(),
        message_id: String::new(),
        r#final: false,
        ..Default::default()
    };
    let event = Event::Action(AgentAction { action: Some(Action::Say(say)) });
    Ok(IntrinsicOutcome { events: vec![event], result: json!({ "notified": user }) }.into())
}
