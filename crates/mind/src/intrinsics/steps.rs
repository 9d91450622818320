//! `step.stop` and `step.change`: what a `pre:` hook may do to the step before which it runs.
//!
//! They are listed for the models that write hooks; what they do is done where hooks are
//! ([`task_firing`](crate::deliberation)). By themselves they have nothing to act on.

use serde_json::{Value, json};

use super::{Intrinsic, finish_without_model};
use crate::request::Tool;

pub fn all() -> Vec<Intrinsic> {
    let tool = |name: &str, description: &str, properties: Value, required: &str| Tool {
        name: name.into(),
        description: format!("{description} Only in the action of a hook whose trigger begins with pre:.").into(),
        schema: json!({
            "type": "object",
            "properties": properties,
            "required": [required],
            "additionalProperties": false,
        })
        .to_string()
        .into(),
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
    };
    let reason = json!({ "reason": { "type": "string", "minLength": 1, "maxLength": 1_000 } });
    let params = json!({ "params": { "type": "object", "description": "Parameters to set; the others stay." } });
    let tools = [
        tool("step.stop", "Keeps the step from running.", reason, "reason"),
        tool("step.change", "Changes the parameters of the step.", params, "params"),
    ];
    let intrinsic = |tool| Intrinsic {
        tool,
        begin: |_, _| Err("there is no step that it could change: only a hook with pre: has one".to_owned()),
        finish: finish_without_model,
    };
    tools.into_iter().map(intrinsic).collect()
}
