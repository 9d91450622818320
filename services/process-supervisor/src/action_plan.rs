//! Decides how to handle the actions of an invoke: the pure core of this service.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::decider::Decider;
use kairo_proto::v1::{ToolInvocation, ToolInvoke};
use uuid::Uuid;

/// The executor that invocations for this service name.
pub const EXECUTOR: &str = "process-supervisor";

/// The tool that runs a program and waits for its end.
pub const PROCESS_RUN: &str = "process.run";
/// The tool that starts a program and lets it run.
pub const PROCESS_SPAWN: &str = "process.spawn";

/// A process that an action asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedProcess {
    pub action: Uuid,
    pub tool: String,
    /// A JSON object, as text.
    pub arguments: String,
    pub thread_id: String,
    /// On whose behalf; none where it does not say.
    pub user: Option<String>,
    /// The agent's oldest running process stands in the log above this; 0 where that is not known.
    pub others_after: u64,
}

impl RequestedProcess {
    /// Returns true if the process goes on after its action has ended.
    pub fn is_background(&self) -> bool {
        self.tool == PROCESS_SPAWN
    }

    /// Returns an error message if this is no tool of ours.
    pub fn unknown_tool(&self) -> Option<String> {
        (![PROCESS_RUN, PROCESS_SPAWN].contains(&self.tool.as_str())).then(|| {
            format!(
                "{:?} is no tool of the process supervisor; call {PROCESS_RUN} to wait for the end of a program, or \
                 {PROCESS_SPAWN} to let it run",
                self.tool
            )
        })
    }

    /// Returns an error message if it wants a standard input that it cannot have.
    pub fn misplaced_stdin(&self, wanted: bool) -> Option<String> {
        (wanted && !self.is_background()).then(|| {
            format!(
                "stdin: nobody could write to the process while {PROCESS_RUN} waits for its end; leave it out, or call \
                 {PROCESS_SPAWN}"
            )
        })
    }
}

/// The actions of an invoke that are for this service.
pub fn requested_processes(invoke: &ToolInvoke) -> Vec<RequestedProcess> {
    let ours = invoke.actions.iter().filter(|invocation| invocation.executor == EXECUTOR);
    let asked = |invocation: &ToolInvocation| {
        Some(RequestedProcess {
            action: Uuid::parse_str(&invocation.action_id).ok()?,
            tool: invocation.tool.clone(),
            arguments: invocation.arguments.clone(),
            thread_id: invocation.thread_id.clone(),
            user: invocation.user.clone(),
            others_after: invocation.target_after,
        })
    };
    ours.filter_map(asked).collect()
}

/// A fact about an action, from the log or from a supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessFact {
    /// The process exists or existed, and belongs to this supervisor.
    Spawned { action: Uuid, supervisor: String },
    /// That supervisor has it, or cannot be given up for lost yet.
    Held(Uuid),
    /// It was asked to end, which was looked up before whether it was spawned.
    Canceled(Uuid),
    /// The end of the process is in the log.
    Exited(Uuid),
}

/// The next step for one action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Nobody has: enter it in the ledger, then let it run.
    Begin,
    /// Asked to end before it began: say so. A supervisor that began it meanwhile finds that out before its program
    /// runs.
    Withdraw,
    /// Begun by this supervisor, which is gone, and its process with it: say so.
    Lost { supervisor: String },
    /// The supervisor that began it is still at it: look again later.
    Wait,
    /// Nothing is left to do.
    Leave,
}

/// Decides on single actions, from what is known of them.
pub struct ActionDecider;

#[derive(Clone, Debug, Default)]
pub struct ActionHistory {
    spawned: BTreeMap<Uuid, String>,
    held: BTreeSet<Uuid>,
    canceled: BTreeSet<Uuid>,
    exited: BTreeSet<Uuid>,
}

impl Decider for ActionDecider {
    type State = ActionHistory;
    type Fact = ProcessFact;
    type Input = Uuid;
    type Outcome = Disposition;

    fn apply(known: &mut ActionHistory, fact: &ProcessFact) {
        match fact {
            ProcessFact::Spawned { action, supervisor } => _ = known.spawned.insert(*action, supervisor.clone()),
            ProcessFact::Held(action) => _ = known.held.insert(*action),
            ProcessFact::Canceled(action) => _ = known.canceled.insert(*action),
            ProcessFact::Exited(action) => _ = known.exited.insert(*action),
        }
    }

    fn decide(known: &ActionHistory, action: &Uuid, _now: Timestamp) -> Disposition {
        match known.spawned.get(action) {
            _ if known.exited.contains(action) => Disposition::Leave,
            None if known.canceled.contains(action) => Disposition::Withdraw,
            None => Disposition::Begin,
            Some(_) if known.held.contains(action) => Disposition::Wait,
            Some(supervisor) => Disposition::Lost { supervisor: supervisor.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::decider::DeciderScenario;

    use super::*;

    const ACTION: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    fn spawned(action: Uuid) -> ProcessFact {
        ProcessFact::Spawned { action, supervisor: "s-1".to_owned() }
    }

    #[test]
    fn what_nobody_began_is_begun() {
        assert_eq!(DeciderScenario::<ActionDecider>::without_facts().when(&ACTION), Disposition::Begin);
        let given = DeciderScenario::<ActionDecider>::with_facts([
            spawned(OTHER),
            ProcessFact::Held(OTHER),
            ProcessFact::Exited(OTHER),
        ]);
        assert_eq!(given.when(&ACTION), Disposition::Begin);
    }

    #[test]
    fn what_its_supervisor_has_is_waited_for() {
        let given = DeciderScenario::<ActionDecider>::with_facts([spawned(ACTION), ProcessFact::Held(ACTION)]);
        assert_eq!(given.when(&ACTION), Disposition::Wait);
    }

    #[test]
    fn what_was_begun_is_never_begun_again_but_lost_with_its_supervisor() {
        let given = DeciderScenario::<ActionDecider>::with_facts([spawned(ACTION)]);
        assert_eq!(given.when(&ACTION), Disposition::Lost { supervisor: "s-1".to_owned() });
    }

    #[test]
    fn what_was_canceled_is_not_begun_and_what_had_begun_ends_as_it_ends() {
        let canceled = || ProcessFact::Canceled(ACTION);
        assert_eq!(DeciderScenario::<ActionDecider>::with_facts([canceled()]).when(&ACTION), Disposition::Withdraw);
        assert_eq!(DeciderScenario::<ActionDecider>::with_facts([canceled()]).when(&OTHER), Disposition::Begin);
        let running =
            DeciderScenario::<ActionDecider>::with_facts([canceled(), spawned(ACTION), ProcessFact::Held(ACTION)]);
        assert_eq!(running.when(&ACTION), Disposition::Wait);
        let lost = DeciderScenario::<ActionDecider>::with_facts([canceled(), spawned(ACTION)]);
        assert_eq!(lost.when(&ACTION), Disposition::Lost { supervisor: "s-1".to_owned() });
        let ended = DeciderScenario::<ActionDecider>::with_facts([canceled(), ProcessFact::Exited(ACTION)]);
        assert_eq!(ended.when(&ACTION), Disposition::Leave);
    }

    fn of(tool: &str) -> RequestedProcess {
        let invocation = ToolInvocation {
            action_id: ACTION.to_string(),
            tool: tool.to_owned(),
            executor: EXECUTOR.to_owned(),
            target_after: 7,
            ..Default::default()
        };
        requested_processes(&ToolInvoke { actions: vec![invocation], ..Default::default() }).remove(0)
    }

    #[test]
    fn the_tool_says_whether_the_action_ends_with_the_process() {
        assert!(!of(PROCESS_RUN).is_background());
        assert!(of(PROCESS_SPAWN).is_background());
        assert_eq!(of(PROCESS_SPAWN).others_after, 7);
        assert_eq!((of(PROCESS_RUN).unknown_tool(), of(PROCESS_SPAWN).unknown_tool()), (None, None));
        assert!(of("process.fork").unknown_tool().is_some_and(|reason| reason.contains("process.fork")));
    }

    #[test]
    fn only_what_goes_on_can_be_written_to() {
        assert_eq!(of(PROCESS_SPAWN).misplaced_stdin(true), None);
        assert_eq!(of(PROCESS_RUN).misplaced_stdin(false), None);
        assert!(of(PROCESS_RUN).misplaced_stdin(true).is_some_and(|reason| reason.contains(PROCESS_SPAWN)));
    }

    #[test]
    fn what_has_ended_is_left_however_it_began() {
        let ended = [
            vec![ProcessFact::Exited(ACTION)],
            vec![spawned(ACTION), ProcessFact::Exited(ACTION)],
            vec![spawned(ACTION), ProcessFact::Held(ACTION), ProcessFact::Exited(ACTION)],
        ];
        for facts in ended {
            assert_eq!(DeciderScenario::<ActionDecider>::with_facts(facts).when(&ACTION), Disposition::Leave);
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
        let asked = requested_processes(&ToolInvoke { actions, ..Default::default() });
        assert_eq!(asked.iter().map(|asked| asked.action).collect::<Vec<_>>(), [ACTION]);
    }
}
