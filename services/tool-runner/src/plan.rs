//! Decides the next step for each action of a decision: the pure core of this service.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_core::{consent, decider::Decider};
use kairo_proto::v1::{AgentDecision, ToolInvocation};
use uuid::Uuid;

/// Reason given for a call whose consent another call has used.
pub const USED_UP: &str = "the consent was given once, and another call has used it";
/// Reason given for an action canceled before it began.
pub const NOT_BEGUN: &str = "it was canceled before it began";
/// Reason given for an action canceled after its executor was lost.
pub const NOT_REPEATED: &str = "whoever carried it out is gone; what it did until then stays done";

/// A tool call that a decision asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionRequest {
    pub action: Uuid,
    pub tool: String,
    /// A JSON object, as text.
    pub arguments: String,
    pub thread_id: String,
    /// The action that the call is about, if it is about one.
    pub target: Option<Uuid>,
    /// Nothing about that stands in the log up to here.
    pub target_after: u64,
    /// The verdict that allows it, where its tool needs one.
    pub approval_id: String,
    /// Position in the log of the decision that asked for the consent; 0 if not given.
    pub asked_at: u64,
    /// The user on whose behalf the call is made; none if not given.
    pub user: Option<String>,
}

impl ActionRequest {
    /// By what the ledger knows the consent that it names; none where it names none.
    pub fn approval_key(&self) -> Option<Uuid> {
        consent::used_consent_id(&self.approval_id)
    }

    /// Nothing about it stands in the ledger up to here, nor on the consent that it names, where nothing about the call does up to
    /// `cursor`.
    pub fn ledger_start(&self, cursor: u64) -> u64 {
        // What was asked stands before all that can be done about it. Where it does not say where that is, nobody believes it.
        if self.approval_id.is_empty() || self.asked_at == 0 { cursor } else { cursor.min(self.asked_at) }
    }

    /// Builds the ledger entry of the call.
    pub fn invocation(&self, executor: &str) -> ToolInvocation {
        ToolInvocation {
            action_id: self.action.to_string(),
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            executor: executor.to_owned(),
            thread_id: self.thread_id.clone(),
            target_action_id: self.target.map(|action| action.to_string()).unwrap_or_default(),
            target_after: self.target_after,
            approval_id: self.approval_id.clone(),
            user: self.user.clone(),
        }
    }
}

/// The tool calls of a decision.
pub fn action_requests(decision: &AgentDecision) -> Vec<ActionRequest> {
    let call = |event: &kairo_proto::v1::DecidedEvent| {
        let call = event.tool_call()?;
        Some(ActionRequest {
            action: Uuid::parse_str(&event.event_id).ok()?,
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            thread_id: event.thread_id.clone(),
            target: Uuid::parse_str(&call.target_action_id).ok(),
            target_after: call.target_after,
            approval_id: call.approval_id.clone(),
            asked_at: call.asked_at,
            user: call.user.clone(),
        })
    };
    decision.events.iter().filter_map(call).collect()
}

/// A fact from the log about an action.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionFact {
    Invoked(Uuid),
    /// The executor that began it still works on it.
    Held(Uuid),
    /// Entered so that nobody begins it, because it was canceled before.
    Withdrawn(Uuid),
    /// A decision wants it stopped.
    Canceled(Uuid),
    /// The consent that it names was used by another action.
    UsedUp(Uuid),
    Ended(Uuid),
}

/// A call, and what is known of its tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedCall {
    pub request: ActionRequest,
    /// Running it twice with the same action id has the effect of once.
    pub idempotent: bool,
    /// Somebody else carries it out and says how it ended.
    pub handed_over: bool,
    /// A human must have consented to it, and that was not found: why.
    pub missing_approval: Option<String>,
}

/// The next step for one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Not begun: enter it in the ledger, then begin.
    Begin,
    /// Begun by an executor that is gone, and safe to repeat.
    Repeat,
    /// Begun by an executor that is gone; nobody can know whether it took effect.
    Doubt,
    /// A human must consent to it first and has not: say so.
    Refuse,
    /// Canceled, and nobody has begun it: enter in the ledger that nobody will, then say so.
    Prevent,
    /// Canceled before anybody began it: say so.
    Withdraw,
    /// Begun by an executor that is gone, and canceled since: it is not begun again, though it could be.
    Stop,
    /// Its executor still works on it: check again later.
    Wait,
    /// Nothing is left to do here.
    Leave,
}

/// Decides on single actions, from what the log says of them.
pub struct Actions;

#[derive(Clone, Debug, Default)]
pub struct KnownActions {
    invoked: BTreeSet<Uuid>,
    held: BTreeSet<Uuid>,
    withdrawn: BTreeSet<Uuid>,
    canceled: BTreeSet<Uuid>,
    used_up: BTreeSet<Uuid>,
    ended: BTreeSet<Uuid>,
}

impl Decider for Actions {
    type State = KnownActions;
    type Fact = ActionFact;
    type Input = ResolvedCall;
    type Outcome = Disposition;

    fn apply(known: &mut KnownActions, fact: &ActionFact) {
        match fact {
            ActionFact::Invoked(action) => known.invoked.insert(*action),
            ActionFact::Held(action) => known.held.insert(*action),
            ActionFact::Withdrawn(action) => known.withdrawn.insert(*action),
            ActionFact::Canceled(action) => known.canceled.insert(*action),
            ActionFact::UsedUp(action) => known.used_up.insert(*action),
            ActionFact::Ended(action) => known.ended.insert(*action),
        };
    }

    fn decide(known: &KnownActions, call: &ResolvedCall, _now: Timestamp) -> Disposition {
        let action = &call.request.action;
        if known.ended.contains(action) {
            return Disposition::Leave;
        }
        if known.withdrawn.contains(action) {
            return Disposition::Withdraw;
        }
        let is_canceled = known.canceled.contains(action);
        match (known.invoked.contains(action), call.handed_over, call.idempotent) {
            (false, _, _) if is_canceled => Disposition::Prevent,
            (false, _, _) if call.missing_approval.is_some() || known.used_up.contains(action) => Disposition::Refuse,
            (false, _, _) => Disposition::Begin,
            (true, true, _) => Disposition::Leave,
            (true, false, _) if known.held.contains(action) => Disposition::Wait,
            (true, false, true) if is_canceled => Disposition::Stop,
            (true, false, true) => Disposition::Repeat,
            (true, false, false) => Disposition::Doubt,
        }
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::decider::DeciderScenario;

    use super::*;

    const ACTION: Uuid = Uuid::from_u128(1);

    fn call(idempotent: bool, handed_over: bool) -> ResolvedCall {
        let asked = ActionRequest {
            action: ACTION,
            tool: "t".into(),
            arguments: "{}".into(),
            thread_id: String::new(),
            target: None,
            target_after: 0,
            approval_id: String::new(),
            asked_at: 0,
            user: None,
        };
        ResolvedCall { request: asked, idempotent, handed_over, missing_approval: None }
    }

    #[test]
    fn what_nobody_began_is_begun() {
        let other = Uuid::from_u128(2);
        let given = DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(other), ActionFact::Ended(other)]);
        assert_eq!(given.when(&call(false, false)), Disposition::Begin);
        assert_eq!(given.when(&call(true, true)), Disposition::Begin);
    }

    #[test]
    fn what_needs_consent_is_not_begun_without_it() {
        let without = ResolvedCall { missing_approval: Some("nobody was asked".to_owned()), ..call(false, false) };
        let handed_over = ResolvedCall { handed_over: true, ..without.clone() };
        let nothing = || DeciderScenario::<Actions>::with_facts([]);
        assert_eq!(nothing().when(&without), Disposition::Refuse);
        assert_eq!(nothing().when(&handed_over), Disposition::Refuse);
        assert_eq!(nothing().when(&call(false, false)), Disposition::Begin);
        // Whoever began it knew that it was allowed.
        assert_eq!(
            DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(ACTION)]).when(&without),
            Disposition::Doubt
        );
        assert_eq!(
            DeciderScenario::<Actions>::with_facts([ActionFact::Ended(ACTION)]).when(&without),
            Disposition::Leave
        );
    }

    #[test]
    fn what_another_action_has_used_the_consent_of_is_not_begun() {
        for (idempotent, handed_over) in [(false, false), (true, false), (false, true), (true, true)] {
            let used = DeciderScenario::<Actions>::with_facts([ActionFact::UsedUp(ACTION)]);
            assert_eq!(used.when(&call(idempotent, handed_over)), Disposition::Refuse);
            let other = DeciderScenario::<Actions>::with_facts([ActionFact::UsedUp(Uuid::from_u128(2))]);
            assert_eq!(other.when(&call(idempotent, handed_over)), Disposition::Begin);
        }
        // What was begun on it is carried out, however often it is delivered.
        let own = || DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(ACTION), ActionFact::UsedUp(ACTION)]);
        assert_eq!(own().when(&call(true, false)), Disposition::Repeat);
        assert_eq!(own().when(&call(false, false)), Disposition::Doubt);
        let canceled =
            DeciderScenario::<Actions>::with_facts([ActionFact::Canceled(ACTION), ActionFact::UsedUp(ACTION)]);
        assert_eq!(canceled.when(&call(false, false)), Disposition::Prevent);
    }

    #[test]
    fn a_consent_is_looked_for_from_where_it_was_asked_for() {
        let asked = |approval_id: &str, asked_at| ActionRequest {
            approval_id: approval_id.into(),
            asked_at,
            ..call(false, false).request
        };
        assert_eq!([asked("", 0), asked("", 4), asked("c", 0)].map(|asked| asked.ledger_start(9)), [9, 9, 9]);
        assert_eq!([asked("c", 4), asked("c", 12)].map(|asked| asked.ledger_start(9)), [4, 9]);
        assert!(asked("", 4).approval_key().is_none() && asked("c", 4).approval_key().is_some());
    }

    #[test]
    fn what_was_begun_and_has_no_result_is_in_doubt_unless_it_may_be_repeated() {
        let given = DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(ACTION)]);
        assert_eq!(given.when(&call(false, false)), Disposition::Doubt);
        assert_eq!(given.when(&call(true, false)), Disposition::Repeat);
    }

    #[test]
    fn what_somebody_is_still_at_is_waited_for() {
        let given = DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(ACTION), ActionFact::Held(ACTION)]);
        assert_eq!(given.when(&call(false, false)), Disposition::Wait);
        assert_eq!(given.when(&call(true, false)), Disposition::Wait);
    }

    #[test]
    fn what_the_supervisor_has_is_left_to_it() {
        let given = DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(ACTION)]);
        assert_eq!(given.when(&call(false, true)), Disposition::Leave);
    }

    #[test]
    fn what_was_canceled_before_it_began_is_never_begun() {
        let canceled =
            DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(ACTION), ActionFact::Withdrawn(ACTION)]);
        let ended = DeciderScenario::<Actions>::with_facts([
            ActionFact::Invoked(ACTION),
            ActionFact::Withdrawn(ACTION),
            ActionFact::Ended(ACTION),
        ]);
        for (idempotent, handed_over) in [(false, false), (true, false), (false, true), (true, true)] {
            assert_eq!(canceled.when(&call(idempotent, handed_over)), Disposition::Withdraw);
            assert_eq!(ended.when(&call(idempotent, handed_over)), Disposition::Leave);
        }
    }

    #[test]
    fn what_a_decision_cancels_is_neither_begun_nor_begun_again() {
        let canceled = || DeciderScenario::<Actions>::with_facts([ActionFact::Canceled(ACTION)]);
        let lost =
            || DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(ACTION), ActionFact::Canceled(ACTION)]);
        let held = [ActionFact::Invoked(ACTION), ActionFact::Held(ACTION), ActionFact::Canceled(ACTION)];
        for (idempotent, handed_over) in [(false, false), (true, false), (false, true), (true, true)] {
            assert_eq!(canceled().when(&call(idempotent, handed_over)), Disposition::Prevent);
        }
        assert_eq!(lost().when(&call(true, false)), Disposition::Stop);
        assert_eq!(lost().when(&call(false, false)), Disposition::Doubt, "it may have happened");
        assert_eq!(lost().when(&call(false, true)), Disposition::Leave, "its supervisor stops it");
        assert_eq!(DeciderScenario::<Actions>::with_facts(held).when(&call(true, false)), Disposition::Wait);
        let other = DeciderScenario::<Actions>::with_facts([ActionFact::Canceled(Uuid::from_u128(2))]);
        assert_eq!(other.when(&call(false, false)), Disposition::Begin);
    }

    #[test]
    fn what_has_a_result_is_never_touched_again() {
        let given = DeciderScenario::<Actions>::with_facts([ActionFact::Invoked(ACTION), ActionFact::Ended(ACTION)]);
        for (idempotent, handed_over) in [(false, false), (true, false), (false, true), (true, true)] {
            assert_eq!(given.when(&call(idempotent, handed_over)), Disposition::Leave);
        }
    }
}
