//! What to do about the actions of an invoke: the pure core of this service.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::decider::Decider;
use kairo_proto::v1::{ToolInvocation, ToolInvoke};
use uuid::Uuid;

/// What an invocation for this service names as its executor.
pub const EXECUTOR: &str = "process-supervisor";

/// A process that an action asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub action: Uuid,
    pub tool: String,
    /// A JSON object, as text.
    pub arguments: String,
    pub thread_id: String,
}

/// The actions of an invoke that are for this service.
pub fn asked(invoke: &ToolInvoke) -> Vec<Asked> {
    let ours = invoke.actions.iter().filter(|invocation| invocation.executor == EXECUTOR);
    let asked = |invocation: &ToolInvocation| {
        Some(Asked {
            action: Uuid::parse_str(&invocation.action_id).ok()?,
            tool: invocation.tool.clone(),
            arguments: invocation.arguments.clone(),
            thread_id: invocation.thread_id.clone(),
        })
    };
    ours.filter_map(asked).collect()
}

/// What the log says of actions, and supervisors of themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The process exists or existed, and belongs to this supervisor.
    Spawned { action: Uuid, supervisor: String },
    /// That supervisor has it, or cannot be given up for lost yet.
    Held(Uuid),
    /// How it ended is in the log.
    Exited(Uuid),
}

/// What to do about one action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nobody has: enter it in the ledger, then let it run.
    Begin,
    /// Begun by this supervisor, which is gone, and its process with it: say so.
    Lost { supervisor: String },
    /// Whoever began it is still at it: look again later.
    Wait,
    /// Nothing is left to do.
    Leave,
}

/// Decides on single actions, from what is known of them.
pub struct Actions;

#[derive(Clone, Debug, Default)]
pub struct Known {
    spawned: BTreeMap<Uuid, String>,
    held: BTreeSet<Uuid>,
    exited: BTreeSet<Uuid>,
}

impl Decider for Actions {
    type State = Known;
    type Fact = Fact;
    type Input = Uuid;
    type Outcome = Step;

    fn apply(known: &mut Known, fact: &Fact) {
        match fact {
            Fact::Spawned { action, supervisor } => _ = known.spawned.insert(*action, supervisor.clone()),
            Fact::Held(action) => _ = known.held.insert(*action),
            Fact::Exited(action) => _ = known.exited.insert(*action),
        }
    }

    fn decide(known: &Known, action: &Uuid, _now: Timestamp) -> Step {
        match known.spawned.get(action) {
            _ if known.exited.contains(action) => Step::Leave,
            None => Step::Begin,
            Some(_) if known.held.contains(action) => Step::Wait,
            Some(supervisor) => Step::Lost { supervisor: supervisor.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::decider::Given;

    use super::*;

    const ACTION: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    fn spawned(action: Uuid) -> Fact {
        Fact::Spawned { action, supervisor: "s-1".to_owned() }
    }

    #[test]
    fn what_nobody_began_is_begun() {
        assert_eq!(Given::<Actions>::nothing().when(&ACTION), Step::Begin);
        let given = Given::<Actions>::facts([spawned(OTHER), Fact::Held(OTHER), Fact::Exited(OTHER)]);
        assert_eq!(given.when(&ACTION), Step::Begin);
    }

    #[test]
    fn what_its_supervisor_has_is_waited_for() {
        let given = Given::<Actions>::facts([spawned(ACTION), Fact::Held(ACTION)]);
        assert_eq!(given.when(&ACTION), Step::Wait);
    }

    #[test]
    fn what_was_begun_is_never_begun_again_but_lost_with_its_supervisor() {
        let given = Given::<Actions>::facts([spawned(ACTION)]);
        assert_eq!(given.when(&ACTION), Step::Lost { supervisor: "s-1".to_owned() });
    }

    #[test]
    fn what_has_ended_is_left_however_it_began() {
        let ended = [
            vec![Fact::Exited(ACTION)],
            vec![spawned(ACTION), Fact::Exited(ACTION)],
            vec![spawned(ACTION), Fact::Held(ACTION), Fact::Exited(ACTION)],
        ];
        for facts in ended {
            assert_eq!(Given::<Actions>::facts(facts).when(&ACTION), Step::Leave);
        }
    }

    #[test]
    fn only_our_invocations_are_for_us() {
        let invocation = |action: Uuid, executor: &str| ToolInvocation {
            action_id: action.to_string(),
            executor: executor.to_owned(),
            ..Default::default()
        };
        let actions = vec![invocation(OTHER, "tool-runner"), invocation(ACTION, EXECUTOR)];
        let asked = asked(&ToolInvoke { actions, ..Default::default() });
        assert_eq!(asked.iter().map(|asked| asked.action).collect::<Vec<_>>(), [ACTION]);
    }
}
