//! The steps of a chain: which start, and what each takes.

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::ids;
use kairo_proto::v1::{AgentAction, Ask, agent_action::Action, decided_event::Event};
use kairo_proto::words::{ChainOutcome, StepState as Ended, TaskStatus};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{AnswerFailure, Deliberation, Purpose, step_decisions::UndecidedStep};
use crate::{
    chain::{Chain, ChainMove, Origin, StepSpec, StepState, THINK, references},
    intrinsics::{self, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, memory::journal, team::DEADLINE},
    request::Tool,
    schema,
    state::{AgentTurn, DirectOrder},
};

/// An intrinsic that waits for a model's answer.
#[derive(Clone, Debug)]
pub(super) struct PendingIntrinsic {
    pub step: usize,
    event: String,
    pub(super) params: Map<String, Value>,
    /// The id from which the ids of everything it makes are derived.
    id: Uuid,
}

/// A step whose parameters are complete.
#[derive(Clone, Debug)]
pub(super) struct ReadyStep {
    pub step: usize,
    pub event: String,
    pub params: Map<String, Value>,
}

impl Deliberation<'_> {
    /// The next move of a turn's chain.
    pub(super) fn advance_chain(&mut self, turn_id: Uuid) {
        let Some(chain) = self.turn(turn_id).and_then(|turn| turn.chain.as_ref()) else { return };
        match chain.next_move() {
            ChainMove::Wait => {}
            ChainMove::End => self.end_finished_chain(turn_id),
            ChainMove::Start(steps) => {
                for step in steps {
                    self.start_step(turn_id, step);
                }
                self.work.push_back(turn_id);
            }
        }
    }

    /// A chain has no step left that could run.
    fn end_finished_chain(&mut self, turn_id: Uuid) {
        if self.end_requested_call(turn_id) {
            return;
        }
        let Some(turn) = self.turn(turn_id) else { return };
        let Some(chain) = &turn.chain else { return };
        let id = chain.id;
        let is_task = turn.fired_task().is_some();
        // What could not be looked at is told as that.
        let failure = failure_of(chain).filter(|_| chain.origin != Origin::Environment);
        if let (true, Some(reason)) = (is_task, &failure) {
            self.tell_task_undone(turn_id, reason);
        }
        match failure {
            Some(reason) => self.end_chain(turn_id, id, &ChainOutcome::Failed, &reason),
            None => self.end_chain(turn_id, id, &ChainOutcome::Done, ""),
        }
        // Whoever asked wants an answer, also when the chain does not end in one.
        if !is_task {
            self.work.push_back(turn_id);
        }
    }

    /// Starts a step: its references are filled in, then what it lacks, and the hooks before it have their say last.
    fn start_step(&mut self, turn_id: Uuid, at: usize) {
        self.apply_decided();
        let Some(chain) = self.turn(turn_id).and_then(|turn| turn.chain.as_ref()) else { return };
        let Some(run) = chain.steps.get(at) else { return };
        let id = chain.id;
        let origin = chain.origin;
        let step = run.step.clone();
        let state = run.state.clone();
        if step.event == THINK {
            return self.think(turn_id, Some(at));
        }
        if let StepState::Approved { arguments, is_changed, .. } = &state {
            let parsed: Option<Map<String, Value>> = serde_json::from_str(arguments).ok();
            if *is_changed && !self.admits_changed_arguments(turn_id, at, &step.event, parsed.as_ref()) {
                return;
            }
            let params = parsed.unwrap_or_default();
            if intrinsics::by_name(&step.event).is_some() {
                return self.carry_out_step(turn_id, id, at, &step.event, params);
            }
        }
        if let StepState::Approved { request, at: asked_at, arguments, .. } = state {
            let consent = Some((request, asked_at));
            return self.call_tool(turn_id, Some((id, at)), &step.event, arguments, consent);
        }
        if let StepState::Rejected { reason } = state {
            return self.end_step(turn_id, at, &Ended::Stopped, Value::Null, &reason);
        }
        let params = match self.fill_params(turn_id, &step) {
            Ok(filled) => filled,
            Err(reason) => return self.end_step(turn_id, at, &Ended::Failed, Value::Null, &reason),
        };
        let StepSpec { event, decide: condition, .. } = step;
        let problems = self.param_mistakes(&event, &params);
        match (&condition, problems.is_empty(), origin) {
            (None, true, _) => {
                self.run_step_with_hooks(turn_id, ReadyStep { step: at, event, params }, &BTreeMap::new())
            }
            // The model that made the call is told, and mends it.
            (None, false, origin) if origin.is_literal() => self.refuse_arguments(turn_id, at, &problems),
            _ => self.ask_to_decide(turn_id, UndecidedStep { step: at, event, params, condition }, &problems),
        }
    }

    /// Checks arguments that a human approved in place of the agent's, as those were checked before anybody was asked: by
    /// the schema and by the hooks before the step. Otherwise the step ends here. Returns true if it may be called.
    fn admits_changed_arguments(
        &mut self,
        turn_id: Uuid,
        at: usize,
        event: &str,
        params: Option<&Map<String, Value>>,
    ) -> bool {
        let problems = match params {
            // They change the agent itself, for all its users.
            _ if intrinsics::by_name(event).is_some() => vec!["they cannot be changed for this call".to_owned()],
            Some(params) => self.param_mistakes(event, params),
            None => vec!["expected a JSON object".to_owned()],
        };
        if !problems.is_empty() {
            self.refuse_arguments(turn_id, at, &problems);
            return false;
        }
        let approved = params.cloned().unwrap_or_default();
        let ready = ReadyStep { step: at, event: event.to_owned(), params: approved.clone() };
        let Some(ready) = self.run_step_hooks(turn_id, ready, &BTreeMap::new()) else { return false };
        if ready.params != approved {
            let reason = "a hook changed the arguments that were approved";
            self.end_step(turn_id, at, &Ended::Stopped, Value::Null, reason);
            return false;
        }
        true
    }

    /// Runs a step whose parameters are complete, unless a hook before it objects. `judged` is what a model said of the
    /// conditions of such hooks.
    pub(super) fn run_step_with_hooks(&mut self, turn_id: Uuid, ready: ReadyStep, judged: &BTreeMap<Uuid, bool>) {
        self.apply_decided();
        let Some(ReadyStep { step, event, params }) = self.run_step_hooks(turn_id, ready, judged) else { return };
        let problems = self.param_mistakes(&event, &params);
        match problems.is_empty() {
            true => self.run_step(turn_id, step, &event, params),
            false => self.refuse_arguments(turn_id, step, &problems),
        }
    }

    fn refuse_arguments(&mut self, turn_id: Uuid, step: usize, problems: &[String]) {
        let reason = format!("invalid_arguments: {}", problems.join("; "));
        self.end_step(turn_id, step, &Ended::Failed, Value::Null, &reason);
    }

    /// Parameters with their references filled in.
    pub(super) fn fill_params(&self, turn_id: Uuid, step: &StepSpec) -> Result<Map<String, Value>, String> {
        let Some(turn) = self.turn(turn_id) else { return Err("the turn is over".to_owned()) };
        let Some(chain) = &turn.chain else { return Err("the chain is over".to_owned()) };
        if chain.origin.is_literal() {
            return Ok(step.params.clone());
        }
        let thread = self.mind.threads.get(&turn.thread_id);
        references::fill(
            &step.params,
            &references::ReferenceScope {
                outcomes: &chain.outcomes_before(step.group),
                thread_id: &turn.thread_id,
                analysis: thread.map_or("", |thread| &thread.analysis),
                summary: thread.map_or("", |thread| &thread.summary),
                event: &chain.data,
            },
        )
    }

    /// Checks parameters against the event's schema and returns the mistakes.
    pub(super) fn param_mistakes(&self, event: &str, params: &Map<String, Value>) -> Vec<String> {
        self.tool(event).map(|tool| schema::mistakes(&tool.schema, params)).unwrap_or_default()
    }

    fn run_step(&mut self, turn_id: Uuid, at: usize, event: &str, params: Map<String, Value>) {
        self.apply_decided();
        let Some(chain) = self.turn(turn_id).and_then(|turn| turn.chain.as_ref()).map(|chain| chain.id) else { return };
        let is_looked_at = self.mind.is_perceiving(turn_id) && self.catalogue.tool(event).is_some();
        if !is_looked_at && !self.offers_tool(event) {
            return self.end_step(
                turn_id,
                at,
                &Ended::Failed,
                Value::Null,
                &format!("there is no tool named {event:?}"),
            );
        }
        if let Some(tool) = self.catalogue.tool(event) {
            let arguments = Value::Object(params).to_string();
            if let Some(reason) = self.perception_refusal(turn_id, event, &arguments) {
                return self.end_step(turn_id, at, &Ended::Failed, Value::Null, reason);
            }
            return match self.needs_approval(turn_id, tool, &arguments) {
                true => self.request_approval(turn_id, chain, at, event, arguments),
                false => self.call_tool(turn_id, Some((chain, at)), event, arguments, None),
            };
        }
        if self.tool(event).is_some_and(|tool| tool.needs_approval) {
            return self.request_approval(turn_id, chain, at, event, Value::Object(params).to_string());
        }
        self.carry_out_step(turn_id, chain, at, event, params);
    }

    /// Returns the id from which the ids of everything a step makes are derived: no other step of the decision has it.
    fn step_id(&self, chain: Uuid, at: usize) -> Uuid {
        let name = match self.limits.memory_rules {
            // Steps that waited for models at once had the same.
            0 => format!("step/{}", self.decision.events.len()),
            _ => format!("step/{chain}/{at}"),
        };
        ids::derive(self.decision_id, &name)
    }

    /// The mind itself carries a step out.
    fn carry_out_step(&mut self, turn_id: Uuid, chain: Uuid, at: usize, event: &str, params: Map<String, Value>) {
        let id = self.step_id(chain, at);
        let begun = self.with_intrinsic(turn_id, event, id, |intrinsic, context| (intrinsic.begin)(context, &params));
        match begun {
            Ok(IntrinsicStart::Done(done)) => self.finish_step(turn_id, at, &params, done),
            Ok(IntrinsicStart::Read { result, outside }) => {
                self.end_step_having_read(turn_id, at, &params, result, &outside)
            }
            Ok(IntrinsicStart::Ask(request)) => {
                let completing = PendingIntrinsic { step: at, event: event.to_owned(), params, id };
                self.ask_model(turn_id, Purpose::Complete(completing), request);
            }
            Ok(IntrinsicStart::Question(inquiry)) => {
                let completing = PendingIntrinsic { step: at, event: event.to_owned(), params, id };
                self.ask_submodule(turn_id, completing, inquiry);
            }
            Ok(IntrinsicStart::Request(ask)) => {
                let seconds = params.get(DEADLINE).and_then(Value::as_u64);
                let due_at = self.request_deadline(seconds.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX)));
                let tool = event.to_owned();
                let arguments = Value::Object(params).to_string();
                self.ask_agent(turn_id, Some((chain, at)), Ask { tool, arguments, due_at, ..*ask });
            }
            Err(reason) => self.end_step(turn_id, at, &Ended::Failed, Value::Null, &reason),
        }
    }

    /// Returns true if a human must consent to a call: because the tool requires it, or because content from outside
    /// may have told the turn to act outside and the agent does not trust such content.
    pub(super) fn needs_approval(&self, turn_id: Uuid, tool: &Tool, arguments: &str) -> bool {
        // Of a member's tool the member asks.
        if self.is_of_member(&tool.name) {
            return false;
        }
        let trusts = || self.mind.profile.as_ref().is_some_and(|profile| profile.trusts_outside);
        let has_seen = || self.turn(turn_id).is_some_and(|turn| !self.mind.provenance_of(turn).is_empty());
        tool.needs_approval_of(arguments) || tool.acts_outside && has_seen() && !trusts()
    }

    /// An intrinsic goes on with the answer it asked for.
    pub(super) fn finish_intrinsic(
        &mut self,
        turn_id: Uuid,
        asked: &PendingIntrinsic,
        text: &str,
    ) -> Result<(), AnswerFailure> {
        self.apply_decided();
        let finish = |intrinsic: &intrinsics::Intrinsic, context: &IntrinsicContext<'_>| {
            (intrinsic.finish)(context, &asked.params, text)
        };
        let done =
            self.with_intrinsic(turn_id, &asked.event, asked.id, finish).map_err(AnswerFailure::malformed_answer)?;
        self.finish_step(turn_id, asked.step, &asked.params, done);
        self.work.push_back(turn_id);
        Ok(())
    }

    /// Remembers a thread in its own words where no model could write it down. Returns true if it did.
    pub(super) fn remember_verbatim(&mut self, turn_id: Uuid, asked: &PendingIntrinsic) -> bool {
        if self.limits.memory_rules == 0 || asked.event != "memory.append" {
            return false;
        }
        self.apply_decided();
        let write =
            |_: &intrinsics::Intrinsic, context: &IntrinsicContext<'_>| journal::write_as_said(context, &asked.params);
        let Ok(done) = self.with_intrinsic(turn_id, &asked.event, asked.id, write) else { return false };
        self.finish_step(turn_id, asked.step, &asked.params, done);
        self.work.push_back(turn_id);
        true
    }

    /// A user's order that the mind carries out itself.
    pub(super) fn carry_out_intrinsic_order(&mut self, turn_id: Uuid, order: &DirectOrder) {
        let params: Map<String, Value> = serde_json::from_str(&order.arguments).unwrap_or_default();
        let id = ids::derive(self.decision_id, "order");
        let begun =
            self.with_intrinsic(turn_id, &order.tool, id, |intrinsic, context| (intrinsic.begin)(context, &params));
        match begun {
            Ok(IntrinsicStart::Done(done)) => self.add_intrinsic_events(turn_id, done.events),
            Ok(
                IntrinsicStart::Ask(_)
                | IntrinsicStart::Question(_)
                | IntrinsicStart::Read { .. }
                | IntrinsicStart::Request(_),
            ) => self.record_failure(turn_id, "unknown_command", "this cannot be ordered", 1, false),
            Err(reason) => {
                let noun = order.tool.split('.').next().unwrap_or_default();
                let unknown = format!("unknown_{noun}");
                let kind = self.refusal_of_order(&order.tool).unwrap_or(&unknown);
                self.record_failure(turn_id, kind, &reason, 1, false);
            }
        }
    }

    pub(super) fn with_intrinsic<T>(
        &self,
        turn_id: Uuid,
        name: &str,
        id: Uuid,
        go: impl FnOnce(&intrinsics::Intrinsic, &IntrinsicContext<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let intrinsic = intrinsics::by_name(name).ok_or_else(|| format!("there is no tool named {name:?}"))?;
        let turn = self.turn(turn_id).ok_or("the turn is over")?;
        let known = |tool: &str| tool == THINK || self.offers_tool(tool);
        go(intrinsic, &self.intrinsic_context(turn_id, turn, id, &known))
    }

    /// Builds the context of an intrinsic in this turn; the ids of what it makes are derived from `id`.
    pub(super) fn intrinsic_context<'c>(
        &'c self,
        turn_id: Uuid,
        turn: &'c AgentTurn,
        id: Uuid,
        known: &'c dyn Fn(&str) -> bool,
    ) -> IntrinsicContext<'c> {
        IntrinsicContext {
            agent: self.input.subject.split('.').nth(2).unwrap_or_default(),
            state: &self.mind,
            turn_id,
            turn,
            now: self.input.envelope.time,
            id,
            secret_key: self.limits.secret_key.as_ref(),
            most_steps: self.limits.chain_steps,
            known,
            catalogue: self.catalogue,
            memory_rules: self.limits.memory_rules,
        }
    }

    fn finish_step(&mut self, turn_id: Uuid, at: usize, params: &Map<String, Value>, done: IntrinsicOutcome) {
        self.add_intrinsic_events(turn_id, done.events);
        self.end_step_done(turn_id, at, params, done.result);
    }

    /// Takes in what an intrinsic did. What begins or ends a turn other than its own belongs to that one.
    pub(super) fn add_intrinsic_events(&mut self, turn_id: Uuid, events: Vec<Event>) {
        for event in events {
            if let Event::TaskFired(fired) = event {
                self.fire_now(turn_id, fired);
            } else if let Event::ChainEnded(ended) = event {
                self.cancel_chain(turn_id, &ended.chain_id, &ended.reason);
            } else if let Event::TaskEnded(ended) = event {
                self.cancel_task(turn_id, ended);
            } else if let Event::Answered(withdrawn) = event {
                self.withdraw_request(turn_id, withdrawn);
            } else if matches!(event, Event::Action(AgentAction { action: Some(Action::Say(_)) })) {
                self.notify_user(turn_id, event);
            } else {
                self.add_event(turn_id, event);
            }
        }
        self.apply_decided();
    }

    /// Ends another turn's chain, and what it has in flight.
    fn cancel_chain(&mut self, turn_id: Uuid, chain_id: &str, reason: &str) {
        let its = |chain: &Chain| chain.id.to_string() == chain_id;
        let found = self.mind.turns.iter().find(|(_, turn)| turn.chain.as_ref().is_some_and(its));
        let of_turn = |(id, turn): (&Uuid, &AgentTurn)| Some((*id, turn.chain.as_ref()?.id, turn.waiting.clone()));
        let Some((owner, chain, in_flight)) = found.and_then(of_turn) else { return };
        self.cancel_actions(turn_id, in_flight);
        self.end_chain(owner, chain, &ChainOutcome::Canceled, reason);
        if owner != turn_id {
            self.conclude(owner, "I have stopped this, as you asked.", &TaskStatus::Canceled);
        }
    }

    /// Stops what another turn has in flight.
    pub(super) fn cancel_actions(&mut self, turn_id: Uuid, in_flight: BTreeSet<Uuid>) {
        for action in in_flight {
            let arguments = json!({ "action_id": action }).to_string();
            self.call_tool(turn_id, None, "action.cancel", arguments, None);
        }
    }
}

/// Returns the reason why a chain failed, if nobody has seen it yet.
fn failure_of(chain: &Chain) -> Option<String> {
    chain.unseen_failure().map(|(run, reason)| format!("{}: {reason}", run.step.event))
}
