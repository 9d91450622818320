//! The steps of a chain: which start, and what each takes.

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::ids;
use kairo_proto::v1::{AgentAction, Ask, agent_action::Action, decided_event::Event};
use kairo_proto::words::{ChainOutcome, StepState as Ended, TaskStatus};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Deliberation, Failure, Purpose, deciding::Deciding};
use crate::{
    chain::{Chain, Move, Origin, Step, StepState, THINK, references},
    intrinsics::{self, Begun, Context, Done, memory::journal, team::DEADLINE},
    request::Tool,
    schema,
    state::{Order, Turn},
};

/// An intrinsic that waits for a model's answer.
#[derive(Clone, Debug)]
pub(super) struct Completing {
    pub step: usize,
    event: String,
    pub(super) params: Map<String, Value>,
    /// The id from which the ids of everything it makes are derived.
    id: Uuid,
}

/// A step whose parameters are complete.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub step: usize,
    pub event: String,
    pub params: Map<String, Value>,
}

impl Deliberation<'_> {
    /// The next move of a turn's chain.
    pub(super) fn step(&mut self, turn_id: Uuid) {
        let Some(chain) = self.turn(turn_id).and_then(|turn| turn.chain.as_ref()) else { return };
        match chain.next() {
            Move::Wait => {}
            Move::End => self.end(turn_id),
            Move::Start(steps) => {
                for step in steps {
                    self.start(turn_id, step);
                }
                self.work.push_back(turn_id);
            }
        }
    }

    /// A chain has no step left that could run.
    fn end(&mut self, turn_id: Uuid) {
        if self.end_requested_call(turn_id) {
            return;
        }
        let Some(turn) = self.turn(turn_id) else { return };
        let Some(chain) = &turn.chain else { return };
        let (id, is_task) = (chain.id, turn.task().is_some());
        // What could not be looked at is told as that.
        let failure = failure_of(chain).filter(|_| chain.origin != Origin::Environment);
        if let (true, Some(reason)) = (is_task, &failure) {
            self.tell_undone(turn_id, reason);
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
    fn start(&mut self, turn_id: Uuid, at: usize) {
        self.settle();
        let Some(chain) = self.turn(turn_id).and_then(|turn| turn.chain.as_ref()) else { return };
        let Some(run) = chain.steps.get(at) else { return };
        let (id, origin, step) = (chain.id, chain.origin, run.step.clone());
        if step.event == THINK {
            return self.think(turn_id, Some(at));
        }
        if let StepState::Approved { arguments, .. } = &run.state
            && intrinsics::named(&step.event).is_some()
        {
            let params = serde_json::from_str(arguments).unwrap_or_default();
            return self.carry_out(turn_id, id, at, &step.event, params);
        }
        if let StepState::Approved { request, at: asked_at, arguments } = &run.state {
            let (arguments, consent) = (arguments.clone(), Some((*request, *asked_at)));
            return self.call(turn_id, Some((id, at)), &step.event, arguments, consent);
        }
        if let StepState::Rejected { reason } = &run.state {
            let reason = reason.clone();
            return self.end_step(turn_id, at, &Ended::Stopped, Value::Null, &reason);
        }
        let params = match self.fill(turn_id, &step) {
            Ok(filled) => filled,
            Err(reason) => return self.end_step(turn_id, at, &Ended::Failed, Value::Null, &reason),
        };
        let Step { event, decide: condition, .. } = step;
        let problems = self.problems(&event, &params);
        match (&condition, problems.is_empty(), origin) {
            (None, true, _) => self.run_guarded(turn_id, Ready { step: at, event, params }, &BTreeMap::new()),
            // The model that made the call is told, and mends it.
            (None, false, origin) if origin.is_literal() => self.refuse_arguments(turn_id, at, &problems),
            _ => self.decide(turn_id, Deciding { step: at, event, params, condition }, &problems),
        }
    }

    /// Runs a step whose parameters are complete, unless a hook before it objects. `judged` is what a model said of the
    /// conditions of such hooks.
    pub(super) fn run_guarded(&mut self, turn_id: Uuid, ready: Ready, judged: &BTreeMap<Uuid, bool>) {
        self.settle();
        let Some(Ready { step, event, params }) = self.pass_hooks(turn_id, ready, judged) else { return };
        let problems = self.problems(&event, &params);
        match problems.is_empty() {
            true => self.run(turn_id, step, &event, params),
            false => self.refuse_arguments(turn_id, step, &problems),
        }
    }

    fn refuse_arguments(&mut self, turn_id: Uuid, step: usize, problems: &[String]) {
        let reason = format!("invalid_arguments: {}", problems.join("; "));
        self.end_step(turn_id, step, &Ended::Failed, Value::Null, &reason);
    }

    /// Parameters with their references filled in.
    pub(super) fn fill(&self, turn_id: Uuid, step: &Step) -> Result<Map<String, Value>, String> {
        let Some(turn) = self.turn(turn_id) else { return Err("the turn is over".to_owned()) };
        let Some(chain) = &turn.chain else { return Err("the chain is over".to_owned()) };
        if chain.origin.is_literal() {
            return Ok(step.params.clone());
        }
        let thread = self.mind.threads.get(&turn.thread_id);
        references::fill(
            &step.params,
            &references::Scope {
                outcomes: &chain.results_before(step.group),
                thread_id: &turn.thread_id,
                analysis: thread.map_or("", |thread| &thread.analysis),
                summary: thread.map_or("", |thread| &thread.summary),
                event: &chain.data,
            },
        )
    }

    /// Checks parameters against the event's schema and returns the mistakes.
    pub(super) fn problems(&self, event: &str, params: &Map<String, Value>) -> Vec<String> {
        self.tool(event).map(|tool| schema::mistakes(&tool.schema, params)).unwrap_or_default()
    }

    fn run(&mut self, turn_id: Uuid, at: usize, event: &str, params: Map<String, Value>) {
        self.settle();
        let Some(chain) = self.turn(turn_id).and_then(|turn| turn.chain.as_ref()).map(|chain| chain.id) else { return };
        let is_looked_at = self.mind.perceives(turn_id) && self.catalogue.tool(event).is_some();
        if !is_looked_at && !self.knows(event) {
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
            if let Some(reason) = self.is_no_perception(turn_id, event, &arguments) {
                return self.end_step(turn_id, at, &Ended::Failed, Value::Null, reason);
            }
            return match self.needs_consent(turn_id, tool, &arguments) {
                true => self.request_approval(turn_id, chain, at, event, arguments),
                false => self.call(turn_id, Some((chain, at)), event, arguments, None),
            };
        }
        if self.tool(event).is_some_and(|tool| tool.needs_approval) {
            return self.request_approval(turn_id, chain, at, event, Value::Object(params).to_string());
        }
        self.carry_out(turn_id, chain, at, event, params);
    }

    /// Returns the id from which the ids of everything a step makes are derived: no other step of the decision has it.
    fn id_of_step(&self, chain: Uuid, at: usize) -> Uuid {
        let name = match self.limits.memory_rules {
            // Steps that waited for models at once had the same.
            0 => format!("step/{}", self.decision.events.len()),
            _ => format!("step/{chain}/{at}"),
        };
        ids::derived(self.decision_id, &name)
    }

    /// The mind itself carries a step out.
    fn carry_out(&mut self, turn_id: Uuid, chain: Uuid, at: usize, event: &str, params: Map<String, Value>) {
        let id = self.id_of_step(chain, at);
        let begun = self.intrinsic(turn_id, event, id, |intrinsic, context| (intrinsic.begin)(context, &params));
        match begun {
            Ok(Begun::Done(done)) => self.done(turn_id, at, &params, done),
            Ok(Begun::Read { result, outside }) => self.done_reading(turn_id, at, &params, result, &outside),
            Ok(Begun::Ask(request)) => {
                let completing = Completing { step: at, event: event.to_owned(), params, id };
                self.ask(turn_id, Purpose::Complete(completing), request);
            }
            Ok(Begun::Question(inquiry)) => {
                let completing = Completing { step: at, event: event.to_owned(), params, id };
                self.inquire(turn_id, completing, inquiry);
            }
            Ok(Begun::Request(ask)) => {
                let seconds = params.get(DEADLINE).and_then(Value::as_u64);
                let due_at = self.deadline(seconds.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX)));
                let (tool, arguments) = (event.to_owned(), Value::Object(params).to_string());
                self.ask_agent(turn_id, Some((chain, at)), Ask { tool, arguments, due_at, ..*ask });
            }
            Err(reason) => self.end_step(turn_id, at, &Ended::Failed, Value::Null, &reason),
        }
    }

    /// Returns true if a human must consent to a call: because the tool requires it, or because content from outside
    /// may have told the turn to act outside and the agent does not trust such content.
    pub(super) fn needs_consent(&self, turn_id: Uuid, tool: &Tool, arguments: &str) -> bool {
        // Of a member's tool the member asks.
        if self.is_of_member(&tool.name) {
            return false;
        }
        let trusts = || self.mind.profile.as_ref().is_some_and(|profile| profile.trusts_outside);
        let has_seen = || self.turn(turn_id).is_some_and(|turn| !self.mind.outside_of(turn).is_empty());
        tool.needs_approval_of(arguments) || tool.acts_outside && has_seen() && !trusts()
    }

    /// An intrinsic goes on with the answer it asked for.
    pub(super) fn completed(&mut self, turn_id: Uuid, asked: &Completing, text: &str) -> Result<(), Failure> {
        self.settle();
        let finish =
            |intrinsic: &intrinsics::Intrinsic, context: &Context<'_>| (intrinsic.finish)(context, &asked.params, text);
        let done = self.intrinsic(turn_id, &asked.event, asked.id, finish).map_err(Failure::malformed)?;
        self.done(turn_id, asked.step, &asked.params, done);
        self.work.push_back(turn_id);
        Ok(())
    }

    /// Remembers a thread in its own words where no model could write it down. Returns true if it did.
    pub(super) fn writes_as_said(&mut self, turn_id: Uuid, asked: &Completing) -> bool {
        if self.limits.memory_rules == 0 || asked.event != "memory.append" {
            return false;
        }
        self.settle();
        let write = |_: &intrinsics::Intrinsic, context: &Context<'_>| journal::write_as_said(context, &asked.params);
        let Ok(done) = self.intrinsic(turn_id, &asked.event, asked.id, write) else { return false };
        self.done(turn_id, asked.step, &asked.params, done);
        self.work.push_back(turn_id);
        true
    }

    /// A user's order that the mind carries out itself.
    pub(super) fn obey_within(&mut self, turn_id: Uuid, order: &Order) {
        let params: Map<String, Value> = serde_json::from_str(&order.arguments).unwrap_or_default();
        let id = ids::derived(self.decision_id, "order");
        let begun = self.intrinsic(turn_id, &order.tool, id, |intrinsic, context| (intrinsic.begin)(context, &params));
        match begun {
            Ok(Begun::Done(done)) => self.take(turn_id, done.events),
            Ok(Begun::Ask(_) | Begun::Question(_) | Begun::Read { .. } | Begun::Request(_)) => {
                self.fail(turn_id, "unknown_command", "this cannot be ordered", 1, false)
            }
            Err(reason) => {
                let noun = order.tool.split('.').next().unwrap_or_default();
                let unknown = format!("unknown_{noun}");
                let kind = self.refusal_of_order(&order.tool).unwrap_or(&unknown);
                self.fail(turn_id, kind, &reason, 1, false);
            }
        }
    }

    pub(super) fn intrinsic<T>(
        &self,
        turn_id: Uuid,
        name: &str,
        id: Uuid,
        go: impl FnOnce(&intrinsics::Intrinsic, &Context<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let intrinsic = intrinsics::named(name).ok_or_else(|| format!("there is no tool named {name:?}"))?;
        let turn = self.turn(turn_id).ok_or("the turn is over")?;
        let known = |tool: &str| tool == THINK || self.knows(tool);
        go(intrinsic, &self.context(turn_id, turn, id, &known))
    }

    /// Builds the context of an intrinsic in this turn; the ids of what it makes are derived from `id`.
    pub(super) fn context<'c>(
        &'c self,
        turn_id: Uuid,
        turn: &'c Turn,
        id: Uuid,
        known: &'c dyn Fn(&str) -> bool,
    ) -> Context<'c> {
        Context {
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

    fn done(&mut self, turn_id: Uuid, at: usize, params: &Map<String, Value>, done: Done) {
        self.take(turn_id, done.events);
        self.done_with(turn_id, at, params, done.result);
    }

    /// Takes in what an intrinsic did. What begins or ends a turn other than its own belongs to that one.
    pub(super) fn take(&mut self, turn_id: Uuid, events: Vec<Event>) {
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
                self.notify(turn_id, event);
            } else {
                self.add(turn_id, event);
            }
        }
        self.settle();
    }

    /// Ends another turn's chain, and what it has in flight.
    fn cancel_chain(&mut self, turn_id: Uuid, chain_id: &str, reason: &str) {
        let its = |chain: &Chain| chain.id.to_string() == chain_id;
        let found = self.mind.turns.iter().find(|(_, turn)| turn.chain.as_ref().is_some_and(its));
        let of_turn = |(id, turn): (&Uuid, &Turn)| Some((*id, turn.chain.as_ref()?.id, turn.waiting.clone()));
        let Some((owner, chain, in_flight)) = found.and_then(of_turn) else { return };
        self.cancel_all(turn_id, in_flight);
        self.end_chain(owner, chain, &ChainOutcome::Canceled, reason);
        if owner != turn_id {
            self.conclude(owner, "I have stopped this, as you asked.", &TaskStatus::Canceled);
        }
    }

    /// Stops what another turn has in flight.
    pub(super) fn cancel_all(&mut self, turn_id: Uuid, in_flight: BTreeSet<Uuid>) {
        for action in in_flight {
            let arguments = json!({ "action_id": action }).to_string();
            self.call(turn_id, None, "action.cancel", arguments, None);
        }
    }
}

/// Returns the reason why a chain failed, if nobody has seen it yet.
fn failure_of(chain: &Chain) -> Option<String> {
    chain.failure().map(|(run, reason)| format!("{}: {reason}", run.step.event))
}
