//! From one input to one decision. A deliberation asks models, is given their completions, and ends in a decision; fed
//! the completions that the log recorded, it ends in the same one.
//!
//! Whatever it decides on the way is folded at once into a draft of the state, by the code that folds the log, so that
//! what it decides next rests on the same as what will be known once the decision stands in the log.
//!
//! * [`thread_matching`]: which thread a message belongs to
//! * [`thinking`]: the heavy model's answers, and what they mean; [`turn_request`] what it is asked
//! * [`answer_calls`]: calls that a model makes
//! * [`request_fitting`]: requests that their models take
//! * [`answer_endings`]: how an answer ended, and what follows; [`answer_failures`] what follows where there is none
//! * [`compaction`]: summing up what is too long, in [`summary_parts`]
//! * [`memory_keywords`]: the keywords of memories
//! * [`planning`]: from a plan to a chain
//! * [`promise_check`]: answers that promise work and queue none
//! * [`reflection`]: what a message is after, and whether what is about to be said answers it
//! * [`submodule_thoughts`]: what submodules say of an input, before it is decided on; [`broadcasts`] shows them what was decided
//! * [`chain_steps`]: the steps of a chain; [`step_decisions`] completes them
//! * [`task_firing`]: tasks whose time came, and hooks; [`background_work`] those in the queue
//! * [`team_requests`]: agents that ask agents; [`idle_team`] what is said to who speaks to a team that begins nothing
//! * [`decision_events`]: adding events to the decision
//! * [`member_calls`]: agents that are composed of others; [`perception`] what is around
//! * [`client_tools`]: what chat clients want of an answer
//! * [`bounds`]: what may be open at once; [`spending_caps`]: what may be spent; [`call_shares`] calls of models for one message
//! * [`deadlines`]: agents that do not answer in time

mod answer_calls;
mod answer_endings;
mod answer_failures;
mod awaited_answer;
mod background_work;
mod bounds;
mod broadcasts;
mod call_shares;
mod chain_steps;
mod client_tools;
mod compaction;
mod deadlines;
mod decision_edits;
mod decision_events;
mod failure_messages;
mod idle_team;
mod limits;
mod member_calls;
mod memory_keywords;
mod perception;
mod planning;
mod promise_check;
mod reflection;
mod request_fitting;
mod spending_caps;
mod step_decisions;
mod submodule_thoughts;
mod summary_parts;
mod task_bounds;
mod task_firing;
mod team_requests;
mod thinking;
mod thread_matching;
mod thread_summary;
mod turn_request;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_events::{ids, record::Record, vocabulary};
use kairo_proto::v1::{AgentDecision, Completion};
use kairo_proto::words::ChainOutcome;
use uuid::Uuid;

pub use self::{
    answer_calls::CallPassback,
    decision_edits::{
        has_lost_words, with_abandoned_calls, with_cost_of_abandoned_calls, with_hash_link, without_words,
    },
    limits::{DecisionLimits, MEMORY_RULES},
    submodule_thoughts::LATE,
};
use self::{
    answer_failures::AnswerFailure,
    awaited_answer::{AwaitedAnswer, Purpose, QuestionHistory},
};
use super::{
    caps::ReachedCap,
    intrinsics::tool_search,
    log::DecisionInput,
    request::{Catalogue, ModelRequest, Tool},
    state::{AgentState, AgentTurn, DirectOrder, Profile, TurnCause},
    team::Amount,
};

/// Said in place of an answer that is too large to be written.
const TOO_LONG: &str = "I could not finish this: my answer was too long. Please ask for a smaller piece.";

/// The next step of a deliberation: questions to ask, or a decision to commit.
#[derive(Debug)]
pub enum DeliberationStep {
    /// Ask these models, all at once; the completions are wanted in the same order.
    Ask(Vec<ModelQuestion>),
    Commit(Box<AgentDecision>),
}

/// A model call to be made.
#[derive(Clone, Debug)]
pub struct ModelQuestion {
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
    limits: &'a DecisionLimits,
    decision_id: Uuid,
    decision: AgentDecision,
    /// Turns to go on with.
    work: VecDeque<Uuid>,
    asked: Vec<AwaitedAnswer>,
    /// Questions that are not asked, since a cap is reached.
    unasked: VecDeque<(AwaitedAnswer, ReachedCap)>,
    /// Chains begun.
    chains: u32,
    /// The amount that the agent had spent before this decision and has told nobody of.
    spent_before: Amount,
    /// Threads that were to be summed up.
    compacted: BTreeSet<String>,
    /// Summaries on their way, by turn.
    summing: BTreeMap<Uuid, summary_parts::SummaryInParts>,
    /// Turns of which it was guessed what they are after.
    guessed: BTreeSet<Uuid>,
    /// Turns of which submodules were shown the input, and how many of them have yet to answer.
    heard_by: BTreeMap<Uuid, usize>,
}

/// The id of the decision on an input.
pub fn decision_id(input: &Record) -> Uuid {
    ids::derive(input.envelope.id, "decision")
}

impl<'a> Deliberation<'a> {
    /// Begins to think about `input`; `None` when there is nothing to decide.
    pub fn begin(
        state: &'a AgentState,
        input: &'a DecisionInput,
        catalogue: &'a Catalogue,
        limits: &'a DecisionLimits,
    ) -> Option<(Self, DeliberationStep)> {
        let mut this = Self::blank(state, input, catalogue, limits)?;
        this.end_late_requests();
        if let Some((turn_id, turn)) = state.due_turn(input.record.sequence) {
            match &turn.cause {
                TurnCause::Message if turn.is_untouched() => this.begin_message(*turn_id),
                TurnCause::Message => this.work.push_back(*turn_id),
                TurnCause::Event | TurnCause::Task(_) | TurnCause::Work(_) => this.work.push_back(*turn_id),
                TurnCause::Request(_) => this.begin_request(*turn_id),
                TurnCause::Order(order) => this.carry_out_order(*turn_id, order),
                TurnCause::Refused { kind, message } => this.refuse_turn(*turn_id, kind, message),
            }
        }
        if state.work.begins_after() == Some(input.record.sequence) {
            this.begin_background_work();
        }
        this.fire_triggered();
        this.schedule_end_of_day();
        Some(this.run_until_blocked())
    }

    fn blank(
        state: &'a AgentState,
        input: &'a DecisionInput,
        catalogue: &'a Catalogue,
        limits: &'a DecisionLimits,
    ) -> Option<Self> {
        let DecisionInput { record: input, cursor, is_work } = input;
        state.needs_decision(input.sequence).then(|| Self {
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
    pub fn oversize_fallback(
        state: &'a AgentState,
        input: &'a DecisionInput,
        catalogue: &'a Catalogue,
        limits: &'a DecisionLimits,
        completions: Vec<Completion>,
    ) -> Option<AgentDecision> {
        let mut instead = Self::blank(state, input, catalogue, limits)?;
        instead.end_late_requests();
        if let Some((turn_id, turn)) = state.due_turn(input.record.sequence) {
            if let Some(chain) = &turn.chain {
                instead.end_chain(*turn_id, chain.id, &ChainOutcome::Failed, "what it came to is too large");
            }
            instead.record_failure(
                *turn_id,
                answer_failures::MALFORMED,
                "the answer was larger than an event may be",
                1,
                false,
            );
            instead.join_earlier_messages(*turn_id);
            instead.conclude_for_good(*turn_id, TOO_LONG, answer_failures::MALFORMED);
        }
        if state.work.begins_after() == Some(input.record.sequence) {
            instead.skip_next_background_work(TOO_LONG);
        }
        instead.skip_triggered();
        instead.decision.completions = completions;
        instead.account_cost();
        Some(instead.decision)
    }

    /// The thread it is about, for the envelope and for whoever watches.
    pub fn thread_id(&self) -> String {
        let due = self.mind.due_turn(self.input.sequence).map(|(_, turn)| turn.thread_id.clone());
        let event = || self.decision.events.first().map(|event| event.thread_id.clone());
        due.filter(|thread| !thread.is_empty()).or_else(event).unwrap_or_default()
    }

    /// Goes on with what the models answered, in the order of the questions.
    pub fn resume(mut self, completions: Vec<Completion>) -> (Self, DeliberationStep) {
        let asked = std::mem::take(&mut self.asked);
        for (asked, completion) in asked.into_iter().zip(completions) {
            // What was decided since it was asked may decide what an answer is worth. The first of all needs no draft.
            self.apply_decided();
            self.receive_completion(asked, completion);
        }
        self.run_until_blocked()
    }

    /// Works until an answer is needed or nothing is left to do.
    fn run_until_blocked(mut self) -> (Self, DeliberationStep) {
        while let Some(turn_id) = self.next_turn() {
            // Answers of the same turn are taken together: what it does next may depend on any of them.
            if !self.asked.iter().any(|asked| asked.turn == turn_id) {
                self.advance_turn(turn_id);
            }
        }
        if self.asked.is_empty() {
            self.account_cost();
            let decision = std::mem::take(&mut self.decision);
            return (self, DeliberationStep::Commit(Box::new(decision)));
        }
        let questions = self.asked.iter().map(|asked| asked.question.clone()).collect();
        (self, DeliberationStep::Ask(questions))
    }

    /// The next move of a turn.
    fn advance_turn(&mut self, turn_id: Uuid) {
        self.apply_decided();
        let Some(turn) = self.mind.turns.get(&turn_id) else { return };
        if turn.unplaced.is_some() {
            return self.match_thread(turn_id);
        }
        match &turn.chain {
            Some(_) => self.advance_chain(turn_id),
            None if !turn.waiting.is_empty() => {}
            None => match turn.agent_request().and_then(|requested| requested.call.clone()) {
                Some(call) => self.make_requested_call(turn_id, call),
                None => self.think(turn_id, None),
            },
        }
    }

    /// Takes an answer in.
    fn receive_completion(&mut self, asked: AwaitedAnswer, completion: Completion) {
        if let Purpose::Submodule(voice) = &asked.purpose {
            let voice = voice.clone();
            return self.receive_submodule_completion(asked, voice, completion);
        }
        if !completion.reasoning.is_empty() {
            self.add_thought(asked.turn, &completion.reasoning);
        }
        self.decision.completions.push(completion.clone());
        if !self.is_answer_wanted(&asked) {
            return self.work.push_back(asked.turn);
        }
        let outcome = match &completion.error {
            Some(error) => Err(AnswerFailure::from_completion_error(error)),
            None => self.act_on_answer(&asked, &completion),
        };
        if let Err(failure) = outcome {
            self.retry_or_give_up(asked, &completion, failure);
        }
    }

    /// Returns true if an answer is still of use: another answer to the same turn, asked for at the same time, may have
    /// ended the turn or its chain.
    fn is_answer_wanted(&self, asked: &AwaitedAnswer) -> bool {
        let there = self.turn(asked.turn).is_some();
        match asked.purpose {
            Purpose::Summarize { .. } | Purpose::Learn { .. } | Purpose::Keywords(_) => true,
            // A hook that is about to fire has no turn yet.
            Purpose::Judge(_) => self.chain_id_of(asked.turn) == asked.chain,
            _ => there && self.chain_id_of(asked.turn) == asked.chain,
        }
    }

    /// Reads an answer by the purpose of its question and acts on it. Fails if the answer cannot be used.
    fn act_on_answer(&mut self, asked: &AwaitedAnswer, completion: &Completion) -> Result<(), AnswerFailure> {
        if !matches!(asked.purpose, Purpose::Think { .. }) {
            answer_endings::ensure_usable(&asked.purpose, completion)?;
        }
        match &asked.purpose {
            Purpose::Match => self.act_on_match(asked.turn, &completion.text),
            Purpose::Think { step } => self.act_on_thought(asked, *step, completion),
            Purpose::Plan(planning) => self.start_planned_chain(asked.turn, planning, &completion.text),
            Purpose::Goal => self.record_goal(asked.turn, &completion.text),
            Purpose::Reflect { draft } => self.act_on_review(asked.turn, draft, &completion.text),
            Purpose::Promise { words } => {
                self.act_on_promise_verdict(asked.turn, words, &completion.text);
                Ok(())
            }
            Purpose::Decide(deciding) => self.act_on_step_decision(asked.turn, deciding, &completion.text),
            Purpose::Judge(judging) => self.act_on_judgement(asked.turn, judging, &completion.text),
            Purpose::Complete(completing) => self.finish_intrinsic(asked.turn, completing, &completion.text),
            Purpose::Summarize { thread_id } => self.record_summary(asked.turn, thread_id, &completion.text),
            Purpose::Keywords(memories) => self.record_keywords(asked.turn, memories, &completion.text),
            Purpose::Compact(of) => self.receive_summary(asked.turn, *of, &completion.text, &completion.model),
            Purpose::Learn { thread_id } => self.record_lessons(asked.turn, thread_id, &completion.text),
            // They are heard by themselves.
            Purpose::Submodule(_) => Ok(()),
        }
    }

    fn ask_model(&mut self, turn: Uuid, purpose: Purpose, request: ModelRequest) {
        let is_work = self.decision.work_input != 0;
        let of_turn =
            |text: fn(&AgentTurn) -> &str| self.turn(turn).map(|turn| text(turn).to_owned()).unwrap_or_default();
        let user = of_turn(|turn| &turn.user);
        let thread_id = of_turn(|turn| &turn.thread_id);
        let mut request = ModelRequest { is_work, user, thread_id, ..request };
        self.fit_to_model(&mut request);
        // Whoever watches sees the answer to the input, not those of tasks that run at the same time.
        let answers = || self.mind.due_turn(self.input.sequence).is_some_and(|(id, _)| *id == turn);
        let speaks = matches!(purpose, Purpose::Think { .. })
            && !request.analysis
            && !is_work
            && answers()
            && !self.is_reviewed(turn);
        let (deadline_ms, module) = match &purpose {
            Purpose::Submodule(voice) => (Some(voice.deadline_ms), voice.module.clone()),
            Purpose::Promise { .. } => (Some(promise_check::WAIT_MS), String::new()),
            _ => (None, String::new()),
        };
        let question = ModelQuestion { request: Arc::new(request), attempt: 1, speaks, deadline_ms, module };
        let chain = self.chain_id_of(turn);
        self.enqueue_question(AwaitedAnswer { turn, chain, purpose, question, history: QuestionHistory::default() });
    }

    /// Refuses what cannot be done. A request that was made in words is answered in words.
    fn refuse_turn(&mut self, turn_id: Uuid, kind: &str, message: &str) {
        self.record_failure(turn_id, kind, message, 1, false);
        if self.turn(turn_id).is_some_and(|turn| !turn.message_id.is_empty()) {
            self.say_failure(turn_id, &format!("I cannot do this: {message}."), kind);
        }
    }

    /// A direct order: no model is asked.
    fn carry_out_order(&mut self, turn_id: Uuid, order: &DirectOrder) {
        match super::intrinsics::by_name(&order.tool) {
            Some(_) if order.tool == super::intrinsics::tasks::QUEUE => self.queue_ordered_task(turn_id, order),
            None => self.call_tool(turn_id, None, &order.tool, order.arguments.clone(), None),
            Some(_) => self.carry_out_intrinsic_order(turn_id, order),
        }
    }

    /// Folds what was decided so far.
    fn apply_decided(&mut self) {
        if self.folded == self.decision.events.len() {
            return;
        }
        let mind = self.mind.to_mut();
        // Behind all that is known, as the decision will be.
        let sequence = self.input.sequence.max(mind.decided) + 1;
        let record = Record { sequence, ..self.input.clone() };
        let context = AgentDecision { cursor: self.decision.cursor, ..Default::default() };
        for event in self.decision.events.iter().skip(self.folded) {
            mind.apply_decided_event(&record, &context, event);
        }
        self.folded = self.decision.events.len();
    }

    /// The chain a turn is in.
    fn chain_id_of(&self, turn_id: Uuid) -> Option<Uuid> {
        Some(self.turn(turn_id)?.chain.as_ref()?.id)
    }

    fn turn(&self, turn_id: Uuid) -> Option<&AgentTurn> {
        self.mind.turns.get(&turn_id)
    }

    /// The tool of this name, a tool-runner's or the mind's own.
    fn tool(&self, name: &str) -> Option<&'a Tool> {
        self.catalogue.tool(name).or_else(|| super::intrinsics::by_name(name).map(|intrinsic| &intrinsic.tool))
    }

    /// Returns true if the agent is offered a tool of this name.
    fn offers_tool(&self, tool: &str) -> bool {
        if tool == tool_search::FIND {
            let takes_out = |profile: &Profile| profile.excludes_tool(tool);
            return self.limits.listing.is_bounded() && !self.mind.profile.as_ref().is_some_and(takes_out);
        }
        let is_of_conduct = self.mind.conduct_offers_tool(tool, self.limits.memory_rules);
        self.tool(tool).is_some() && (self.mind.offers_tool(tool) || is_of_conduct)
    }

    /// Returns true if the deliberation needed a draft of the state of its own.
    #[cfg(test)]
    pub fn has_draft(&self) -> bool {
        matches!(self.mind, Cow::Owned(_))
    }

    fn is_planner(&self) -> bool {
        self.mind.profile.as_ref().is_some_and(|profile| profile.plans)
    }
}
