//! Agents that are composed of others: passing calls on to members; and what a member does when it is asked for something.

use kairo_proto::{
    v1::{AgentAnswered, Ask, TaskAnswer, ThreadCompleted, decided_event::Event},
    words::{ChainOutcome, RequestKind, TaskStatus, ToolErrorKind},
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::Deliberation;
use crate::{
    chain::{Origin, StepSpec, StepState},
    composition::{IncomingRequest, RequestedCall, RequestedCallOutcome},
    state::AgentTurn,
    team::TeamActivity,
};

impl Deliberation<'_> {
    /// Returns the request to a member that takes the place of a call; none where the agent makes the call itself, and
    /// an error with the reason where nobody can be asked.
    pub(super) fn member_request_for(&self, turn_id: Uuid, tool: &str, arguments: &str) -> Option<Result<Ask, String>> {
        let member = self.mind.profile.as_ref()?.member_with(tool)?;
        let turn = self.turn(turn_id)?;
        Some(self.mind.path_to(self.agent_name(), turn, &member.agent).map(|path| Ask {
            agent: member.agent.clone(),
            kind: RequestKind::Call.text(),
            user: turn.user.clone(),
            title: tool.to_owned(),
            path,
            outside: self.mind.provenance_of(turn).marks(),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            ..Ask::default()
        }))
    }

    /// Returns true if a member makes the calls of a tool.
    pub(super) fn is_of_member(&self, tool: &str) -> bool {
        self.mind.profile.as_ref().is_some_and(|profile| profile.member_with(tool).is_some())
    }

    /// Another agent asks for something: it is done, unless it cannot be.
    pub(super) fn begin_request(&mut self, turn_id: Uuid) {
        let refused = match &self.mind.profile {
            None => Some(format!("there is no agent named {}", self.agent_name())),
            Some(_) if self.mind.team.status == TeamActivity::Archived => Some("its team was archived".to_owned()),
            Some(_) => self.busy_reason(),
        };
        let is_new = self.turn(turn_id).is_some_and(AgentTurn::is_untouched);
        match refused.filter(|_| is_new) {
            Some(reason) => self.answer_in_words(turn_id, &reason, &TaskStatus::Failed),
            None if is_new && self.refuse_request_if_idle(turn_id) => {}
            None => self.work.push_back(turn_id),
        }
    }

    /// Makes the call that another agent asked for, as it stands: by itself where nothing but its tool is needed, else as
    /// a chain of one step. Once the tool has ended, that is the answer.
    pub(super) fn make_requested_call(&mut self, turn_id: Uuid, call: RequestedCall) {
        if let Some(outcome) = call.outcome {
            return self.answer_call(turn_id, outcome);
        }
        let RequestedCall { tool, arguments, .. } = call;
        if !self.offers_tool(&tool) {
            let message = format!("{} has no tool named {tool:?}", self.agent_name());
            return self.answer_call(turn_id, RequestedCallOutcome::failed(ToolErrorKind::NotFound, message));
        }
        let user = self.turn(turn_id).map(|turn| turn.user.as_str()).unwrap_or_default();
        let is_hooked = self.mind.tasks.hooks_of(&format!("pre:{tool}"), user).next().is_some();
        let is_reachable = self.member_request_for(turn_id, &tool, &arguments).is_none_or(|ask| ask.is_ok());
        let params: Result<Map<String, Value>, _> = serde_json::from_str(&arguments);
        match (self.catalogue.tool(&tool), params) {
            (_, Err(error)) => {
                let message = format!("the arguments are no JSON object: {error}");
                self.answer_call(turn_id, RequestedCallOutcome::failed(ToolErrorKind::InvalidArguments, message));
            }
            (Some(known), Ok(_)) if is_reachable && !is_hooked && !self.needs_approval(turn_id, known, &arguments) => {
                self.call_tool(turn_id, None, &tool, arguments, None);
            }
            (_, Ok(params)) => {
                let step = StepSpec { group: 0, event: tool, params, decide: None };
                self.start_chain(turn_id, Origin::Request, "", None, &[step]);
            }
        }
    }

    /// The one step of a call that was asked for is over. False where the chain is another one.
    pub(super) fn end_requested_call(&mut self, turn_id: Uuid) -> bool {
        let Some(turn) = self.turn(turn_id) else { return false };
        let Some(call) = turn.agent_request().and_then(|requested| requested.call.as_ref()) else { return false };
        let run = turn.chain.as_ref().and_then(|chain| chain.steps.first());
        let Some(outcome) = call.outcome.clone().or_else(|| Some(outcome_of_step(&run?.state))) else { return false };
        let ended = if outcome.error.is_none() { ChainOutcome::Done } else { ChainOutcome::Failed };
        let message = outcome.error.as_ref().map(|(_, message)| message.clone()).unwrap_or_default();
        self.end_chain_of(turn_id, &ended, &message);
        self.answer_call(turn_id, outcome);
        true
    }

    fn answer_call(&mut self, turn_id: Uuid, outcome: RequestedCallOutcome) {
        let error = outcome.error();
        let status = match error.as_ref().map(|error| error.kind_word()) {
            None => TaskStatus::Completed,
            Some(ToolErrorKind::Canceled) => TaskStatus::Canceled,
            Some(_) => TaskStatus::Failed,
        };
        let reason = error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        let answered =
            AgentAnswered { status: status.text(), result: outcome.result, reason, error, ..Default::default() };
        self.answer_request(turn_id, answered);
    }

    /// Answers the asker in words: a result if the status is completed, else a reason.
    pub(super) fn answer_in_words(&mut self, turn_id: Uuid, text: &str, status: &TaskStatus) {
        let mut result = text.to_owned();
        let mut reason = String::new();
        if *status != TaskStatus::Completed {
            std::mem::swap(&mut result, &mut reason);
        }
        self.answer_request(turn_id, AgentAnswered { status: status.text(), result, reason, ..Default::default() });
    }

    /// The turn of something that was asked for is over.
    fn answer_request(&mut self, turn_id: Uuid, answered: AgentAnswered) {
        let Some((kind, answer)) = self.turn(turn_id).and_then(|turn| self.request_answer(turn_id, turn)) else {
            return;
        };
        self.end_request(turn_id, AgentAnswered { kind: kind.text(), answer: Some(answer), ..answered });
    }

    /// The turn of something that was asked for is over, and so is its thread, if the log says that it began.
    fn end_request(&mut self, turn_id: Uuid, answered: AgentAnswered) {
        self.apply_decided();
        let thread_id = self.turn(turn_id).map(|turn| turn.thread_id.clone()).unwrap_or_default();
        let is_announced = self.mind.threads.get(&thread_id).is_some_and(|thread| thread.announced);
        self.add_event(turn_id, Event::Answered(answered));
        if is_announced {
            self.add_event(turn_id, Event::ThreadCompleted(ThreadCompleted { thread_id }));
        }
        self.apply_decided();
    }

    fn request_answer(&self, turn_id: Uuid, turn: &AgentTurn) -> Option<(RequestKind, TaskAnswer)> {
        let IncomingRequest { from, request_id, call, spent, model_calls, .. } = turn.agent_request()?;
        let kind = if call.is_some() { RequestKind::Call } else { RequestKind::Think };
        let answer = TaskAnswer {
            agent: from.clone(),
            request_id: request_id.clone(),
            spent: Some(spent.plus(self.spent_here()).to_proto()),
            outside: self.mind.provenance_of(turn).marks(),
            model_calls_left: self.calls_to_return(turn_id, turn.correlation, *model_calls, None),
        };
        Some((kind, answer))
    }

    /// Withdraws a request on behalf of its asker. A call that has begun ends as its tool says, which is the answer;
    /// anything else is over at once.
    pub(super) fn withdraw_request(&mut self, turn_id: Uuid, withdrawn: AgentAnswered) {
        self.apply_decided();
        let TaskAnswer { agent, request_id, .. } = withdrawn.answer.unwrap_or_default();
        let Some((owner, turn)) = self.mind.turn_of_request(&agent, &request_id) else { return };
        let owner = *owner;
        let in_flight = turn.waiting.clone();
        let is_called = turn.agent_request().is_some_and(|requested| requested.call.is_some()) && !in_flight.is_empty();
        let answer = self.request_answer(owner, turn);
        self.cancel_actions(turn_id, in_flight);
        if is_called {
            return;
        }
        let Some((kind, answer)) = answer else { return };
        let status = TaskStatus::Canceled.text();
        let reason = withdrawn.reason;
        self.end_chain_of(owner, &ChainOutcome::Canceled, &reason);
        let answered = AgentAnswered { kind: kind.text(), status, reason, answer: Some(answer), ..Default::default() };
        self.end_request(owner, answered);
    }

    /// The agent's name.
    pub(super) fn agent_name(&self) -> &str {
        self.input.subject.split('.').nth(2).unwrap_or_default()
    }
}

/// Returns the outcome of a step that called no tool.
fn outcome_of_step(state: &StepState) -> RequestedCallOutcome {
    match state {
        StepState::Done { result } => RequestedCallOutcome { result: result.to_string(), error: None },
        StepState::Failed { reason } => {
            // Of what kind the failure is stands before what it says.
            let known =
                reason.split_once(": ").and_then(|(kind, message)| Some((ToolErrorKind::known(kind)?, message)));
            let (kind, message) = known.unwrap_or((ToolErrorKind::Failed, reason.as_str()));
            RequestedCallOutcome::failed(kind, message)
        }
        StepState::Stopped { reason } | StepState::Skipped { reason } | StepState::Rejected { reason } => {
            RequestedCallOutcome::failed(ToolErrorKind::Failed, reason.as_str())
        }
        StepState::Pending | StepState::Running { .. } | StepState::Asked { .. } | StepState::Approved { .. } => {
            RequestedCallOutcome::failed(ToolErrorKind::Failed, "it did not end")
        }
    }
}
