//! From one input to one decision. A deliberation asks models, is given their completions, and ends in a decision; fed
//! the completions that the log recorded, it ends in the same one.
//!
//! Whatever it decides on the way is folded at once into a draft of the state, by the code that folds the log, so that
//! what it decides next rests on the same as what will be known once the decision stands in the log.
//!
//! * [`matching`]: which thread a message belongs to
//! * [`thinking`]: the heavy model's answers, and what they mean; [`turn_request`] what it is asked
//! * [`calling`]: calls that a model makes
//! * [`fitting`]: requests that their models take
//! * [`endings`]: how an answer ended, and what follows; [`failing`] what follows where there is none
//! * [`compacting`]: summing up what is too long, in [`parts`]
//! * [`naming`]: the keywords of memories
//! * [`planning`]: from a plan to a chain
//! * [`promising`]: answers that promise work and queue none
//! * [`reflecting`]: what a message is after, and whether what is about to be said answers it
//! * [`thinking_along`]: what submodules say of an input, before it is decided on; [`broadcasting`] shows them what was decided
//! * [`stepping`]: the steps of a chain; [`deciding`] completes them
//! * [`firing`]: tasks whose time came, and hooks; [`working`] those in the queue
//! * [`teaming`]: agents that ask agents; [`team_at_rest`] what is said to who speaks to a team that begins nothing
//! * [`saying`]: adding events to the decision
//! * [`composing`]: agents that are composed of others; [`perceiving`] what is around
//! * [`client_tools`]: what chat clients want of an answer
//! * [`bounds`]: what may be open at once; [`capping`]: what may be spent; [`sharing_calls`] calls of models for one message
//! * [`deadlines`]: agents that do not answer in time

mod asked;
mod bounds;
mod broadcasting;
mod calling;
mod capping;
mod client_tools;
mod compacting;
mod composing;
mod deadlines;
mod deciding;
mod endings;
mod failing;
mod firing;
mod fitting;
mod limits;
mod matching;
mod naming;
mod parts;
mod perceiving;
mod planning;
mod promising;
mod reflecting;
mod saying;
mod sharing_calls;
mod stepping;
mod summing_up;
mod task_bounds;
mod team_at_rest;
mod teaming;
mod telling;
mod thinking;
mod thinking_along;
mod turn_request;
mod words_left_out;
mod working;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_events::{ids, record::Record, vocabulary};
use kairo_proto::v1::{AgentDecision, Completion};
use kairo_proto::words::ChainOutcome;
use uuid::Uuid;

use self::{
    asked::{Asked, Course, Purpose},
    failing::Failure,
};
pub use self::{
    calling::Back,
    limits::{Limits, MEMORY_RULES},
    thinking_along::LATE,
    words_left_out::{is_without_words, with_cost_of_given_up, with_given_up, with_link, without_words},
};
use super::{
    caps::Reached,
    intrinsics::finding,
    log::Input,
    request::{Catalogue, ModelRequest, Tool},
    state::{AgentState, Cause, Order, Profile, Turn},
    team::Amount,
};

/// Said in place of an answer that is too large to be written.
const TOO_LONG: &str = "I could not finish this: my answer was too long. Please ask for a smaller piece.";

/// The next step of a deliberation: questions to ask, or a decision to commit.
#[derive(Debug)]
pub enum Next {
    /// Ask these models, all at once; the completions are wanted in the same order.
    Ask(Vec<Question>),
    Commit(Box<AgentDecision>),
}

/// A model call to be made.
#[derive(Clone, Debug)]
pub struct Question {
    pub request: Arc<ModelRequest>,
    /// Counted from 1.
    pub attempt: u32,
    /// True if the model writes for the user, who may watch it being written.
    pub speaks: bool,
    /// Milliseconds after which nobody waits for the answer any more: it is then one that failed, of kind `late`. None where the
    /// model's own limit is all.
    pub deadline_ms: Option<u32>,
    /// The submodule that is asked; empty for the agent itself.
    pub module: String,
}

/// Thinking about one input.
pub struct Deliberation<'a> {
    input: &'a Record,
    /// With every event of the decision up to `folded`.
    mind: Cow<'a, AgentState>,
    folded: usize,
    catalogue: &'a Catalogue,
    limits: &'a Limits,
    decision_id: Uuid,
    decision: AgentDecision,
    /// Turns to go on with.
    work: VecDeque<Uuid>,
    asked: Vec<Asked>,
    /// Questions that are not asked, since a cap is reached.
    unasked: VecDeque<(Asked, Reached)>,
    /// Chains begun.
    chains: u32,
    /// The amount that the agent had spent before this decision and has told nobody of.
    spent_before: Amount,
    /// Threads that were to be summed up.
    compacted: BTreeSet<String>,
    /// Summaries on their way, by turn.
    summing: BTreeMap<Uuid, parts::Summing>,
    /// Turns of which it was guessed what they are after.
    guessed: BTreeSet<Uuid>,
    /// Turns of which submodules were shown the input, and how many of them have yet to answer.
    heard_by: BTreeMap<Uuid, usize>,
}

/// The id of the decision on an input.
pub fn decision_id(input: &Record) -> Uuid {
    ids::derived(input.envelope.id, "decision")
}

impl<'a> Deliberation<'a> {
    /// Begins to think about `input`; `None` when there is nothing to decide.
    pub fn begin(
        state: &'a AgentState,
        input: &'a Input,
        catalogue: &'a Catalogue,
        limits: &'a Limits,
    ) -> Option<(Self, Next)> {
        let mut this = Self::blank(state, input, catalogue, limits)?;
        this.end_late_requests();
        if let Some((turn_id, turn)) = state.due(input.record.sequence) {
            match &turn.cause {
                Cause::Message if turn.is_begun_by_nothing_yet() => this.begin_message(*turn_id),
                Cause::Message => this.work.push_back(*turn_id),
                Cause::Event | Cause::Task(_) | Cause::Work(_) => this.work.push_back(*turn_id),
                Cause::Request(_) => this.begin_requested(*turn_id),
                Cause::Order(order) => this.obey(*turn_id, order),
                Cause::Refused { kind, message } => this.refuse(*turn_id, kind, message),
            }
        }
        if state.work.begins() == Some(input.record.sequence) {
            this.begin_work();
        }
        this.fire_triggered();
        this.keep_the_day();
        Some(this.go_on())
    }

    fn blank(state: &'a AgentState, input: &'a Input, catalogue: &'a Catalogue, limits: &'a Limits) -> Option<Self> {
        let Input { record: input, cursor, is_work } = input;
        state.wants(input.sequence).then(|| Self {
            input,
            mind: Cow::Borrowed(state),
            folded: 0,
            catalogue,
            limits,
            decision_id: decision_id(input),
            decision: AgentDecision {
                cursor: *cursor,
                overtaking: if *cursor < input.sequence && !is_work { input.sequence } else { 0 },
                work_input: if *is_work { input.sequence } else { 0 },
                input_id: input.envelope.id.to_string(),
                profile_sequence: state.profile.as_ref().map_or(0, |profile| profile.sequence),
                catalogue_version: catalogue.version.clone(),
                basis: limits.basis.clone(),
                reader: vocabulary::FIRST,
                ..Default::default()
            },
            work: VecDeque::new(),
            asked: Vec::new(),
            unasked: VecDeque::new(),
            chains: 0,
            spent_before: state.team.spent,
            compacted: BTreeSet::new(),
            summing: BTreeMap::new(),
            guessed: BTreeSet::new(),
            heard_by: BTreeMap::new(),
        })
    }

    /// The decision when the one that was made is too large to be written: what was to be done ends with saying so. What
    /// models answered is kept.
    pub fn too_large(
        state: &'a AgentState,
        input: &'a Input,
        catalogue: &'a Catalogue,
        limits: &'a Limits,
        completions: Vec<Completion>,
    ) -> Option<AgentDecision> {
        let mut instead = Self::blank(state, input, catalogue, limits)?;
        instead.end_late_requests();
        if let Some((turn_id, turn)) = state.due(input.record.sequence) {
            if let Some(chain) = &turn.chain {
                instead.end_chain(*turn_id, chain.id, &ChainOutcome::Failed, "what it came to is too large");
            }
            instead.fail(*turn_id, failing::MALFORMED, "the answer was larger than an event may be", 1, false);
            instead.join(*turn_id);
            instead.conclude_for_good(*turn_id, TOO_LONG, failing::MALFORMED);
        }
        if state.work.begins() == Some(input.record.sequence) {
            instead.pass_over_next(TOO_LONG);
        }
        instead.pass_over_triggered();
        instead.decision.completions = completions;
        instead.account();
        Some(instead.decision)
    }

    /// The thread it is about, for the envelope and for whoever watches.
    pub fn thread_id(&self) -> String {
        let due = self.mind.due(self.input.sequence).map(|(_, turn)| turn.thread_id.clone());
        let event = || self.decision.events.first().map(|event| event.thread_id.clone());
        due.filter(|thread| !thread.is_empty()).or_else(event).unwrap_or_default()
    }

    /// Goes on with what the models answered, in the order of the questions.
    pub fn resume(mut self, completions: Vec<Completion>) -> (Self, Next) {
        let asked = std::mem::take(&mut self.asked);
        for (asked, completion) in asked.into_iter().zip(completions) {
            // What was decided since it was asked may decide what an answer is worth. The first of all needs no draft.
            self.settle();
            self.hear(asked, completion);
        }
        self.go_on()
    }

    /// Works until an answer is needed or nothing is left to do.
    fn go_on(mut self) -> (Self, Next) {
        while let Some(turn_id) = self.next_work() {
            // Answers of the same turn are taken together: what it does next may depend on any of them.
            if !self.asked.iter().any(|asked| asked.turn == turn_id) {
                self.advance(turn_id);
            }
        }
        if self.asked.is_empty() {
            self.account();
            let decision = std::mem::take(&mut self.decision);
            return (self, Next::Commit(Box::new(decision)));
        }
        let questions = self.asked.iter().map(|asked| asked.question.clone()).collect();
        (self, Next::Ask(questions))
    }

    /// The next move of a turn.
    fn advance(&mut self, turn_id: Uuid) {
        self.settle();
        let Some(turn) = self.mind.turns.get(&turn_id) else { return };
        if turn.unplaced.is_some() {
            return self.match_thread(turn_id);
        }
        match &turn.chain {
            Some(_) => self.step(turn_id),
            None if !turn.waiting.is_empty() => {}
            None => match turn.requested().and_then(|requested| requested.call.clone()) {
                Some(call) => self.make_requested_call(turn_id, call),
                None => self.think(turn_id, None),
            },
        }
    }

    /// Takes an answer in.
    fn hear(&mut self, asked: Asked, completion: Completion) {
        if let Purpose::Voice(voice) = &asked.purpose {
            let voice = voice.clone();
            return self.hear_voice(asked, voice, completion);
        }
        if !completion.reasoning.is_empty() {
            self.thought(asked.turn, &completion.reasoning);
        }
        self.decision.completions.push(completion.clone());
        if !self.is_wanted(&asked) {
            return self.work.push_back(asked.turn);
        }
        let outcome = match &completion.error {
            Some(error) => Err(Failure::of(error)),
            None => self.understand(&asked, &completion),
        };
        if let Err(failure) = outcome {
            self.fail_to_answer(asked, &completion, failure);
        }
    }

    /// Returns true if an answer is still of use: another answer to the same turn, asked for at the same time, may have
    /// ended the turn or its chain.
    fn is_wanted(&self, asked: &Asked) -> bool {
        let there = self.turn(asked.turn).is_some();
        match asked.purpose {
            Purpose::Summarize { .. } | Purpose::Learn { .. } | Purpose::Keywords(_) => true,
            // A hook that is about to fire has no turn yet.
            Purpose::Judge(_) => self.chain_of(asked.turn) == asked.chain,
            _ => there && self.chain_of(asked.turn) == asked.chain,
        }
    }

    /// Reads an answer by the purpose of its question and acts on it. Fails if the answer cannot be used.
    fn understand(&mut self, asked: &Asked, completion: &Completion) -> Result<(), Failure> {
        if !matches!(asked.purpose, Purpose::Think { .. }) {
            endings::usable(&asked.purpose, completion)?;
        }
        match &asked.purpose {
            Purpose::Match => self.matched(asked.turn, &completion.text),
            Purpose::Think { step } => self.thought_out(asked, *step, completion),
            Purpose::Plan(planning) => self.planned(asked.turn, planning, &completion.text),
            Purpose::Goal => self.guessed(asked.turn, &completion.text),
            Purpose::Reflect { draft } => self.reviewed(asked.turn, draft, &completion.text),
            Purpose::Promise { words } => {
                self.promise_found(asked.turn, words, &completion.text);
                Ok(())
            }
            Purpose::Decide(deciding) => self.decided(asked.turn, deciding, &completion.text),
            Purpose::Judge(judging) => self.judged(asked.turn, judging, &completion.text),
            Purpose::Complete(completing) => self.completed(asked.turn, completing, &completion.text),
            Purpose::Summarize { thread_id } => self.summarized(asked.turn, thread_id, &completion.text),
            Purpose::Keywords(memories) => self.found_keywords(asked.turn, memories, &completion.text),
            Purpose::Compact(of) => self.summed_up(asked.turn, *of, &completion.text, &completion.model),
            Purpose::Learn { thread_id } => self.learned(asked.turn, thread_id, &completion.text),
            // They are heard by themselves.
            Purpose::Voice(_) => Ok(()),
        }
    }

    fn ask(&mut self, turn: Uuid, purpose: Purpose, request: ModelRequest) {
        let is_work = self.decision.work_input != 0;
        let of_turn = |text: fn(&Turn) -> &str| self.turn(turn).map(|turn| text(turn).to_owned()).unwrap_or_default();
        let (user, thread_id) = (of_turn(|turn| &turn.user), of_turn(|turn| &turn.thread_id));
        let mut request = ModelRequest { is_work, user, thread_id, ..request };
        self.fit_to_model(&mut request);
        // Whoever watches sees the answer to the input, not those of tasks that run at the same time.
        let answers = || self.mind.due(self.input.sequence).is_some_and(|(id, _)| *id == turn);
        let speaks = matches!(purpose, Purpose::Think { .. })
            && !request.analysis
            && !is_work
            && answers()
            && !self.is_reviewed(turn);
        let (deadline_ms, module) = match &purpose {
            Purpose::Voice(voice) => (Some(voice.deadline_ms), voice.module.clone()),
            Purpose::Promise { .. } => (Some(promising::WAIT_MS), String::new()),
            _ => (None, String::new()),
        };
        let question = Question { request: Arc::new(request), attempt: 1, speaks, deadline_ms, module };
        let chain = self.chain_of(turn);
        self.put(Asked { turn, chain, purpose, question, course: Course::default() });
    }

    /// Refuses what cannot be done. A request that was made in words is answered in words.
    fn refuse(&mut self, turn_id: Uuid, kind: &str, message: &str) {
        self.fail(turn_id, kind, message, 1, false);
        if self.turn(turn_id).is_some_and(|turn| !turn.message_id.is_empty()) {
            self.say_failure(turn_id, &format!("I cannot do this: {message}."), kind);
        }
    }

    /// A direct order: no model is asked.
    fn obey(&mut self, turn_id: Uuid, order: &Order) {
        match super::intrinsics::named(&order.tool) {
            None => self.call(turn_id, None, &order.tool, order.arguments.clone(), None),
            Some(_) => self.obey_within(turn_id, order),
        }
    }

    /// Folds what was decided so far.
    fn settle(&mut self) {
        if self.folded == self.decision.events.len() {
            return;
        }
        let mind = self.mind.to_mut();
        // Behind all that is known, as the decision will be.
        let sequence = self.input.sequence.max(mind.decided) + 1;
        let record = Record { sequence, ..self.input.clone() };
        let context = AgentDecision { cursor: self.decision.cursor, ..Default::default() };
        for event in self.decision.events.iter().skip(self.folded) {
            mind.happen(&record, &context, event);
        }
        self.folded = self.decision.events.len();
    }

    /// The chain a turn is in.
    fn chain_of(&self, turn_id: Uuid) -> Option<Uuid> {
        Some(self.turn(turn_id)?.chain.as_ref()?.id)
    }

    fn turn(&self, turn_id: Uuid) -> Option<&Turn> {
        self.mind.turns.get(&turn_id)
    }

    /// The tool of this name, a tool-runner's or the mind's own.
    fn tool(&self, name: &str) -> Option<&'a Tool> {
        self.catalogue.tool(name).or_else(|| super::intrinsics::named(name).map(|intrinsic| &intrinsic.tool))
    }

    /// Returns true if the agent is offered a tool of this name.
    fn knows(&self, tool: &str) -> bool {
        if tool == finding::FIND {
            let takes_out = |profile: &Profile| profile.takes_out(tool);
            return self.limits.listing.is_bounded() && !self.mind.profile.as_ref().is_some_and(takes_out);
        }
        let is_of_conduct = self.mind.conduct_offers(tool, self.limits.memory_rules);
        self.tool(tool).is_some() && (self.mind.offers(tool) || is_of_conduct)
    }

    /// Returns true if the deliberation needed a draft of the state of its own.
    #[cfg(test)]
    pub fn has_draft(&self) -> bool {
        matches!(self.mind, Cow::Owned(_))
    }

    fn plans(&self) -> bool {
        self.mind.profile.as_ref().is_some_and(|profile| profile.plans)
    }
}
