//! The action of the agent that another call refers to, and the distance in the log to look back for it.
//!
//! The mind knows its running actions, so those who carry calls out need no index of all past ones.

use serde::Deserialize;
use uuid::Uuid;

use super::{in_flight::ActionTarget, state::AgentState};

/// Arguments of calls that refer to an action or a process.
#[derive(Deserialize)]
struct TargetArguments {
    action_id: Option<Uuid>,
    process_id: Option<Uuid>,
}

/// The users whose actions and processes a call may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetScope<'a> {
    All,
    User(&'a str),
}

/// The action that a call of `tool` is about, if it names one that the agent knows, and where to begin looking: nothing
/// about it stands in the log up to there. `cursor` is that of the decision which makes the call.
pub fn find_target(
    state: &AgentState,
    tool: &str,
    arguments: &str,
    reach: TargetScope<'_>,
    cursor: u64,
) -> (Option<Uuid>, u64) {
    let named: Option<TargetArguments> = serde_json::from_str(arguments).ok();
    let target = match (tool, named) {
        // What runs already counts against the agent's limit.
        ("process.run" | "process.spawn", _) => return (None, oldest_running(state).unwrap_or(cursor)),
        ("process.list", _) => {
            let oldest = oldest_running(state).into_iter().chain(state.processes.oldest_ended()).min();
            return (None, oldest.unwrap_or(cursor));
        }
        ("action.cancel", Some(TargetArguments { action_id: Some(id), .. })) => state.action_target(id),
        (tool, Some(TargetArguments { process_id: Some(id), .. })) if tool.starts_with("process.") => {
            state.process_target(id)
        }
        _ => None,
    };
    let within = |target: &ActionTarget| match reach {
        TargetScope::All => true,
        TargetScope::User(user) => state.user_of_action(target.action) == Some(user),
    };
    target.filter(within).map_or((None, 0), |target| (Some(target.action), target.after))
}

fn oldest_running(state: &AgentState) -> Option<u64> {
    let background = state.processes.running.values().map(|process| process.after);
    let waited_for = state.in_flight.values().filter(|known| known.process.is_some()).map(|known| known.after);
    background.chain(waited_for).min()
}
