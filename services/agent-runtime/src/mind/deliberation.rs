//! From one input to one decision. A deliberation asks for model calls, is given their completions, and ends in a
//! decision; fed the completions that the log recorded, it ends in the same one.

use std::sync::Arc;

use kairo_core::{ids, record::Record};
use kairo_proto::v1::{
    AgentAction, AgentDecision, AgentFailed, AgentJoined, AgentThought, Completion, DecidedEvent, Say, ThreadCreated,
    ToolCall, agent_action::Action, decided_event::Event,
};
use uuid::Uuid;

use super::{
    answer::{self, Answer},
    request::{self, Catalogue, Message, ModelRequest},
    state::{AgentState, Cause, Order, Turn},
    target,
};

/// Limits of deciding.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Model calls in one turn when the profile does not say.
    pub max_steps: u32,
    /// Tries of one model call, the first included.
    pub tries: u32,
    /// Tools called at once.
    pub parallel_tools: usize,
}

/// What a deliberation needs next.
#[derive(Debug)]
pub enum Next {
    /// Call the model; the attempt counts from 1.
    Ask {
        request: Arc<ModelRequest>,
        attempt: u32,
    },
    Commit(AgentDecision),
}

/// Thinking about one input.
pub struct Deliberation<'a> {
    state: &'a AgentState,
    turn_id: Uuid,
    turn: &'a Turn,
    limits: &'a Limits,
    request: Arc<ModelRequest>,
    decision_id: Uuid,
    attempt: u32,
    decision: AgentDecision,
}

/// The id of the decision on an input.
pub fn decision_id(input: &Record) -> Uuid {
    ids::derived(input.envelope.id, "decision")
}

impl<'a> Deliberation<'a> {
    /// Begins to think about `input`; `None` when it is nobody's move.
    pub fn begin(
        state: &'a AgentState,
        input: &Record,
        catalogue: &Catalogue,
        limits: &'a Limits,
    ) -> Option<(Self, Next)> {
        let (turn_id, turn) = state.due(input.sequence)?;
        let last_step = turn.steps + 1 >= max_steps(state, limits);
        let request = match turn.cause {
            Cause::Message | Cause::Event => {
                request::think(state, (*turn_id, turn), catalogue, !last_step, input.envelope.time)
            }
            Cause::Order(_) | Cause::Refused { .. } => ModelRequest::none(),
        };
        let request = Arc::new(request);
        let mut deliberation = Self {
            state,
            turn_id: *turn_id,
            turn,
            limits,
            request: request.clone(),
            decision_id: decision_id(input),
            attempt: 1,
            decision: AgentDecision {
                cursor: input.sequence,
                input_id: input.envelope.id.to_string(),
                profile_sequence: state.profile.as_ref().map_or(0, |profile| profile.sequence),
                catalogue_version: catalogue.version.clone(),
                ..Default::default()
            },
        };
        match &turn.cause {
            Cause::Message | Cause::Event => {
                deliberation.announce_thread();
                deliberation.join();
                return Some((deliberation, Next::Ask { request, attempt: 1 }));
            }
            Cause::Order(Order { tool, arguments }) => deliberation.call(tool.clone(), arguments.clone()),
            Cause::Refused { kind, message } => deliberation.fail(kind, message, false),
        }
        Some(deliberation.commit())
    }

    /// The decision when the one that was made is too large to be written: the turn ends with saying so.
    pub fn too_large(
        state: &'a AgentState,
        input: &Record,
        catalogue: &Catalogue,
        limits: &'a Limits,
    ) -> Option<AgentDecision> {
        let (mut instead, _) = Self::begin(state, input, catalogue, limits)?;
        instead.fail("malformed_answer", "the answer was larger than an event may be", false);
        instead.say("I could not finish this: my answer was too long. Please ask for a smaller piece.", true);
        Some(instead.decision)
    }

    /// Which turn it is about.
    pub fn turn(&self) -> (Uuid, &Turn) {
        (self.turn_id, self.turn)
    }

    /// Goes on with what the model answered.
    pub fn resume(mut self, completion: Completion) -> (Self, Next) {
        let failure = match &completion.error {
            Some(error) => Err((error.kind.clone(), error.message.clone(), error.transient)),
            None => answer::read(&self.request, &completion, self.limits.parallel_tools)
                .map_err(|flaw| (flaw.kind.to_owned(), flaw.message, true)),
        };
        if !completion.reasoning.is_empty() {
            self.add(Event::Thought(AgentThought { text: completion.reasoning.clone() }));
        }
        let words = completion.text.clone();
        let answered = completion.error.is_none();
        self.decision.completions.push(completion);
        match failure {
            Ok(answer) => self.act(answer),
            Err((kind, message, mendable)) => {
                let retried = mendable && self.attempt < self.limits.tries;
                self.fail(&kind, &message, retried);
                if !retried {
                    self.say(&format!("I could not finish this: {message} ({kind}). Please try again later."), true);
                    return self.commit();
                }
                if answered {
                    self.correct(words, &message);
                }
                self.attempt += 1;
                let next = Next::Ask { request: self.request.clone(), attempt: self.attempt };
                return (self, next);
            }
        }
        self.commit()
    }

    fn commit(mut self) -> (Self, Next) {
        let decision = std::mem::take(&mut self.decision);
        (self, Next::Commit(decision))
    }

    fn act(&mut self, answer: Answer) {
        match answer {
            Answer::Say(text) => self.say(&text, true),
            Answer::Call { words, calls } => {
                if !words.is_empty() {
                    self.say(&words, false);
                }
                calls.into_iter().for_each(|call| self.call(call.tool, call.arguments));
            }
        }
    }

    fn call(&mut self, tool: String, arguments: String) {
        let (action, after) = target::of(self.state, &tool, &arguments, self.decision.cursor);
        let target_action_id = action.map(|action| action.to_string()).unwrap_or_default();
        let call = ToolCall { tool, arguments, target_action_id, target_after: after };
        self.add(Event::Action(AgentAction { action: Some(Action::ToolCall(call)) }));
    }

    /// Shows the model its mistake, so that the next try can mend it.
    fn correct(&mut self, words: String, flaw: &str) {
        let messages = &mut Arc::make_mut(&mut self.request).messages;
        messages.push(Message::Assistant { text: words, calls: Vec::new() });
        messages.push(Message::User { text: format!("That answer could not be used: {flaw}. Try again.") });
    }

    fn say(&mut self, text: &str, last: bool) {
        let say = Say {
            text: text.to_owned(),
            user: self.turn.user.clone(),
            message_id: self.turn.message_id.clone(),
            r#final: last,
        };
        self.add(Event::Action(AgentAction { action: Some(Action::Say(say)) }));
    }

    fn fail(&mut self, kind: &str, message: &str, retried: bool) {
        self.add(Event::Failed(AgentFailed {
            kind: kind.to_owned(),
            message: message.to_owned(),
            attempt: self.attempt,
            retried,
        }));
    }

    fn announce_thread(&mut self) {
        let thread = self.state.threads.get(&self.turn.thread_id);
        if thread.is_some_and(|thread| thread.announced) {
            return;
        }
        self.add(Event::ThreadCreated(ThreadCreated {
            thread_id: self.turn.thread_id.clone(),
            kind: "topic".to_owned(),
            user: self.turn.user.clone(),
            title: String::new(),
        }));
    }

    /// The turns of messages that came before this one and are answered with it.
    fn join(&mut self) {
        for (turn_id, turn) in self.state.joined(self.decision.cursor) {
            let joined = AgentJoined {
                message_id: turn.message_id.clone(),
                into_correlation_id: self.turn.correlation.to_string(),
                into_message_id: self.turn.message_id.clone(),
            };
            self.add_to(*turn_id, turn, Event::Joined(joined));
        }
    }

    fn add(&mut self, event: Event) {
        self.add_to(self.turn_id, self.turn, event);
    }

    fn add_to(&mut self, turn_id: Uuid, turn: &Turn, event: Event) {
        let position = self.decision.events.len();
        self.decision.events.push(DecidedEvent {
            event_id: ids::derived(self.decision_id, &position.to_string()).to_string(),
            thread_id: turn.thread_id.clone(),
            correlation_id: turn.correlation.to_string(),
            turn_id: if turn_id == turn.correlation { String::new() } else { turn_id.to_string() },
            event: Some(event),
        });
    }
}

fn max_steps(state: &AgentState, limits: &Limits) -> u32 {
    let own = state.profile.as_ref().map_or(0, |profile| profile.max_steps);
    if own == 0 { limits.max_steps } else { own }
}
