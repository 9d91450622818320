//! `chain.cancel`: ending a chain that runs.

use kairo_proto::v1::{ChainEnded, decided_event::Event};
use kairo_proto::words::ChainOutcome;
use serde_json::{Map, Value, json};

use super::{Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, finish_without_model};
use crate::{request::Tool, state::AgentTurn};

pub fn all() -> Vec<Intrinsic> {
    let tool = Tool {
        name: "chain.cancel".into(),
        description: "Ends a chain that runs, with whatever it has in flight.".into(),
        schema: json!({
            "type": "object",
            "properties": { "chain_id": { "type": "string", "format": "uuid" } },
            "required": ["chain_id"],
            "additionalProperties": false,
        })
        .to_string()
        .into(),
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
    };
    vec![Intrinsic { tool, begin: cancel, finish: finish_without_model }]
}

fn cancel(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let id = params.get("chain_id").and_then(Value::as_str).unwrap_or_default();
    let is_it = |turn: &AgentTurn| turn.chain.as_ref().is_some_and(|chain| chain.id.to_string() == id);
    if is_it(context.turn) {
        return Err(format!("the chain {id:?} is the one that this step is of: answer instead, and it is over"));
    }
    let user = &context.turn.user;
    let mut his = context.state.turns.values().filter(|turn| turn.user == *user || user.is_empty());
    if !his.any(is_it) {
        return Err(format!("no chain {id:?} of this user runs"));
    }
    let ended =
        ChainEnded { chain_id: id.to_owned(), outcome: ChainOutcome::Canceled.text(), reason: "on request".to_owned() };
    Ok(IntrinsicOutcome {
        events: vec![Event::ChainEnded(ended)],
        result: json!({ "chain_id": id, "status": ChainOutcome::Canceled.as_str() }),
    }
    .into())
}
