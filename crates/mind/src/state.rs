//! The state of an agent, built by applying its own subjects. Applying the same log again gives the same bytes.
//!
//! Bounds come from constants and from the agent's profile, never from configuration: replicas configured differently
//! must build the same state.

mod turn;

use std::collections::BTreeMap;

use kairo_events::{memories::with_distinct_ids, record::Record};
use kairo_proto::words;
use kairo_proto::{
    About,
    about::{self, Agent},
    v1::{AgentDecision, DecidedEvent, ToolCall, ToolResult, agent_action::Action, decided_event::Event},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::turn::{AgentTurn, DirectOrder, ThreadSuggestion, TurnCause};
pub use super::profile::{Interjection, Profile};
use super::{
    background_lane::BackgroundLane,
    call_bounds::CallBounds,
    caps::Spending,
    chain::ChainMove,
    chat_client,
    in_flight::{BackgroundProcesses, DoubtfulAction, DoubtfulActions, InFlightAction},
    inner_state::InnerState,
    late_requests::LateRequest,
    memories::Memories,
    model_health::ModelHealth,
    seen_ids::SeenIds,
    shared::Shared,
    submodules::{Submodules, is_broadcast},
    tasks::Tasks,
    team::TeamMembership,
    thread::{AnswerFields, EntryRetention, Thread, ThreadCall, ThreadEntry, cut_to_entry},
};

/// Entries of a thread when the profile does not say.
pub(super) const HISTORY: usize = 200;

/// An agent's state at one point of its log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    pub profile: Option<Profile>,
    /// The last input dealt with; everything known has a sequence up to this.
    pub cursor: u64,
    /// Sequence of the last message on the decision subject: what the next decision is guarded by.
    pub decided: u64,
    pub threads: BTreeMap<String, Shared<Thread>>,
    /// Turns not yet over, by what [`turn_of`] says of their events.
    pub turns: BTreeMap<Uuid, AgentTurn>,
    /// Actions without a result, by action id.
    pub in_flight: BTreeMap<Uuid, InFlightAction>,
    pub processes: BackgroundProcesses,
    pub doubts: DoubtfulActions,
    pub tasks: Shared<Tasks>,
    pub memories: Shared<Memories>,
    pub(super) seen: Shared<SeenIds>,
    #[serde(default, skip_serializing_if = "BackgroundLane::is_nothing")]
    pub work: BackgroundLane,
    /// The agent's status and spending as a lead or worker of a team.
    #[serde(default, skip_serializing_if = "TeamMembership::is_nothing")]
    pub team: TeamMembership,
    /// Text that the agent keeps for later turns.
    #[serde(default, skip_serializing_if = "has_no_inner_state")]
    pub inner: Shared<InnerState>,
    #[serde(default, skip_serializing_if = "Submodules::is_nothing")]
    pub submodules: Submodules,
    /// Context sizes and recent failures of its models.
    #[serde(default, skip_serializing_if = "ModelHealth::is_nothing")]
    pub models: ModelHealth,
    /// Spending counted against the profile's caps; empty without caps.
    #[serde(default, skip_serializing_if = "Spending::is_nothing")]
    pub spending: Spending,
    /// Calls of models for everything that is under way.
    #[serde(default, skip_serializing_if = "CallBounds::is_nothing")]
    pub call_bounds: CallBounds,
    /// Requests that became late at the input that is being decided on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<LateRequest>,
    /// Sequence of the input that forgot a user, until it is decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forgetting: Option<u64>,
    /// Recorded time of the last record applied, in seconds; none unless times of entries are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<i64>,
}

impl AgentState {
    /// Takes in an input or a fact. What does not concern the agent's mind changes nothing.
    pub fn apply_record(&mut self, record: &Record) {
        self.note_time(record);
        match record.body.about() {
            About::Agent(Agent::Defined(defined)) => {
                if let Some(profile) = &defined.profile {
                    self.apply_profile(record, profile);
                }
            }
            About::Agent(Agent::Imported(imported)) => self.apply_import(record, imported),
            About::Agent(Agent::Forgotten(forgotten)) => self.apply_forgotten(record, forgotten),
            About::Agent(Agent::Message(message)) => self.apply_message(record, message),
            About::Agent(Agent::Choice(choice)) => self.apply_choice(record, choice),
            About::Agent(Agent::Approval(approval)) => self.apply_approval(record, approval),
            About::Agent(Agent::Command(command)) => self.apply_command(record, command),
            About::Agent(Agent::Request(request)) => self.apply_request(record, request),
            About::Agent(Agent::Answer(answer)) => self.apply_answer(record, answer),
            About::Outside(outside) => self.apply_outside_event(record, outside),
            About::Tool(tool) => self.apply_tool_event(record, tool),
            About::Process(process) => self.apply_process_event(record, process),
            // Decisions are committed; the rest concerns others.
            About::Decision(_) | About::Decided(_) | About::User(_) | About::System(_) | About::Live(_) => {}
        }
    }

    /// Takes in a decision, after all that it was decided on.
    pub fn apply_decision(&mut self, record: &Record, decision: &AgentDecision) {
        let started = || decision.events.iter().find(|it| matches!(it.event, Some(Event::TaskStarted(_))));
        let due = self.due_turn(decision.decided_on()).map(|(id, _)| *id);
        let decided = due.or_else(|| started().and_then(turn_of));
        let correlation = self.decision_correlation(due, started());
        self.models.apply_answers(decision);
        // First, since what a decision tells of its own spending is in it.
        self.count_team_spending(record.envelope.time, decision);
        self.count_capped_spending(record.envelope.time, decision);
        if !is_broadcast(decision) && !self.is_upkeep(decision) {
            self.work.session.spend_on(decision);
        }
        self.spend_on_task(decided, decision);
        for event in with_distinct_ids(decision).iter() {
            self.apply_decided_event(record, decision, event);
        }
        self.spend_on_request(decided, decision);
        self.count_model_calls(correlation, record.sequence, decision);
        let tier = self.thinking_tier(decided.and_then(|id| self.turns.get(&id)));
        let own = decision.completions.iter().filter(|completion| completion.module.is_empty());
        let thoughts = own.filter(|completion| completion.tier == tier && self.models.is_step(completion));
        let asked = u32::try_from(thoughts.count()).unwrap_or(u32::MAX);
        if let Some(turn) = decided.and_then(|id| self.turns.get_mut(&id)) {
            // Work on a task begins with the decision that says so.
            turn.due.take_if(|due| *due != record.sequence);
            turn.steps = turn.steps.saturating_add(asked);
            // It was refused, or what it ordered was refused: there is nothing it could wait for.
            let over = matches!(turn.cause, TurnCause::Order(_) | TurnCause::Refused { .. }) && turn.waiting.is_empty();
            if let Some(id) = decided.filter(|_| over) {
                self.turns.remove(&id);
            }
        }
        let is_dealt_with = |input: u64| input <= decision.cursor || input == decision.work_input;
        if self.tasks.triggered.iter().any(|trigger| is_dealt_with(trigger.input)) {
            self.tasks.triggered.retain(|trigger| !is_dealt_with(trigger.input));
        }
        self.forgetting.take_if(|at| is_dealt_with(*at));
        self.late.retain(|late| !is_dealt_with(late.input));
        self.forget_finished_calls();
        self.cursor = decision.cursor;
        self.decided = record.sequence;
        self.note_decision(record.sequence, decision);
        self.choose_next_work(record.sequence, decision);
        self.forget_idle_threads();
    }

    /// The tier of the model that thinks in a turn: whoever works in the background lets no user wait for the heavy one.
    pub(super) fn thinking_tier(&self, turn: Option<&AgentTurn>) -> &'static str {
        let waits = self.works_in_background() && turn.is_some_and(|turn| !self.is_background_turn(turn));
        if waits { "fast" } else { "heavy" }
    }

    /// The turn whose move this input makes it.
    pub fn due_turn(&self, input: u64) -> Option<(&Uuid, &AgentTurn)> {
        self.turns.iter().find(|(_, turn)| turn.due == Some(input))
    }

    /// Turns of messages that came before this input and were not answered, as they came: they are answered with it.
    pub fn turns_due_before(&self, input: u64) -> Vec<(&Uuid, &AgentTurn)> {
        let mut joined: Vec<_> =
            self.turns.iter().filter(|(_, turn)| turn.due.is_some_and(|due| due < input)).collect();
        joined.sort_by_key(|(_, turn)| turn.due);
        joined
    }

    /// Makes it the move of a turn that begins with this input.
    pub(super) fn begin_turn(&mut self, id: Uuid, record: &Record, cause: TurnCause, thread_id: &str, user: &str) {
        let mut turn = AgentTurn::new(cause, record.envelope.correlation_id, thread_id, user);
        turn.due = Some(record.sequence);
        self.turns.insert(id, turn);
    }

    /// Sets the time of the entries added from here on, if times of entries are kept.
    fn note_time(&mut self, record: &Record) {
        self.now = self.keeps_times().then(|| record.envelope.time.as_second());
    }

    pub(super) fn add_entry(&mut self, sequence: u64, thread_id: &str, entry: ThreadEntry) {
        let limit = self.entry_retention();
        if let Some(thread) = self.threads.get_mut(thread_id) {
            thread.push(sequence, entry, limit);
        }
    }

    pub(super) fn apply_tool_result(&mut self, record: &Record, result: &ToolResult) {
        if result.late {
            return self.apply_late_answer(record, result);
        }
        let Ok(action) = Uuid::parse_str(&result.action_id) else { return };
        let Some(known) = self.in_flight.remove(&action) else { return };
        if self.tasks.is_waiting_for_call(action) {
            self.tasks.end_call(action, &tool_result_json(result));
        }
        self.mark_outside(&known.thread_id, known.turn, &result.outside);
        self.end_step(known.turn, action, result);
        self.apply_requested_call_ended(known.turn, result);
        self.trigger_post_hooks(record, &known, result);
        if result.error.as_ref().is_some_and(|error| error.kind_word() == words::ToolErrorKind::InDoubt) {
            let InFlightAction { thread_id, tool, arguments, .. } = &known;
            let (thread_id, tool, arguments) = (thread_id.clone(), tool.clone(), arguments.clone());
            let asked = self.turns.get(&known.turn).is_some_and(|turn| turn.agent_request().is_some());
            self.doubts.add(DoubtfulAction { action, thread_id, tool, arguments, asked, has_verdict: false });
        }
        let keeping = self.entry_retention();
        if let Some(thread) = self.threads.get_mut(&known.thread_id) {
            thread.end_call(record.sequence, action, &tool_result_json(result), &result.parts, keeping);
            thread.remember_event(&record.envelope.id.to_string());
        }
        let Some(turn) = self.turns.get_mut(&known.turn) else { return };
        turn.waiting.remove(&action);
        // A chain that took another's place does not wait for what that one had in flight.
        let goes_on = match &turn.chain {
            Some(chain) => chain.next_move() != ChainMove::Wait,
            None => turn.waiting.is_empty(),
        };
        if goes_on {
            match turn.cause {
                TurnCause::Message
                | TurnCause::Event
                | TurnCause::Task(_)
                | TurnCause::Work(_)
                | TurnCause::Request(_) => {
                    turn.due = Some(record.sequence);
                }
                // Whoever ordered it reads the result.
                TurnCause::Order(_) | TurnCause::Refused { .. } => _ = self.turns.remove(&known.turn),
            }
        }
    }

    /// Takes in one event of a decision.
    pub(super) fn apply_decided_event(&mut self, record: &Record, decision: &AgentDecision, event: &DecidedEvent) {
        self.note_time(record);
        let Some(turn_id) = turn_of(event) else { return };
        let is_remembered = matches!(
            &event.event,
            Some(Event::Action(_) | Event::ChainStepEnded(_) | Event::TaskStarted(_) | Event::TaskEnded(_))
        );
        if let (true, Some(thread)) = (is_remembered, self.threads.get_mut(&event.thread_id)) {
            thread.remember_event(&event.event_id);
        }
        if let Some(what) = &event.event {
            self.dispatch_decided(record, decision.cursor, event, turn_id, what.about());
        }
    }

    pub(super) fn apply_turn_event(
        &mut self,
        record: &Record,
        cursor: u64,
        event: &DecidedEvent,
        turn_id: Uuid,
        what: about::Turn<'_>,
    ) {
        match what {
            about::Turn::Joined(_) => _ = self.turns.remove(&turn_id),
            about::Turn::Action(action) => match &action.action {
                Some(Action::Say(say)) => {
                    self.add_entry(record.sequence, &event.thread_id, chat_client::reply_entry(turn_id, say));
                    if say.r#final {
                        let correlation = Uuid::parse_str(&event.correlation_id).unwrap_or_default();
                        if say.failure.is_empty() {
                            self.note_answer(&event.thread_id, turn_id, correlation);
                        }
                        if self.turns.remove(&turn_id).is_some_and(|turn| turn.is_aside()) {
                            self.end_aside(&event.thread_id);
                        }
                    }
                }
                Some(Action::ToolCall(call)) => self.apply_tool_call(record, cursor, event, turn_id, call),
                Some(Action::Ask(ask)) => self.apply_ask(record, cursor, event, turn_id, ask),
                None => {}
            },
            about::Turn::Goal(goal) => self.apply_goal(turn_id, goal),
            about::Turn::Reflected(reflected) => self.apply_reflection(record, event, turn_id, reflected),
            about::Turn::Answered(answered) => self.apply_request_answered(turn_id, event, answered),
            about::Turn::Briefed(briefed) => self.ensure_thread(&event.thread_id, &briefed.user),
            about::Turn::TeamChanged(changed) => {
                let owner = self.profile.as_ref().map(|profile| profile.owner.clone()).unwrap_or_default();
                self.ensure_thread(&event.thread_id, &owner);
                self.apply_team_changed(changed);
            }
            about::Turn::Thought(thought) => self.apply_thought(event, turn_id, thought),
            about::Turn::SubmoduleChanged(changed) => self.apply_submodule_changed(changed),
            about::Turn::SubmoduleAsked(asked) => self.apply_submodule_asked(turn_id, asked),
            about::Turn::Broadcast(told) => self.apply_broadcast(told),
            about::Turn::SubmoduleFailed(_) | about::Turn::Failed(_) => {}
        }
    }

    pub(super) fn apply_tool_call(
        &mut self,
        record: &Record,
        after: u64,
        event: &DecidedEvent,
        turn_id: Uuid,
        call: &ToolCall,
    ) {
        let Ok(action) = Uuid::parse_str(&event.event_id) else { return };
        let since = record.envelope.time;
        let mut flight =
            InFlightAction::from_decision(turn_id, &event.thread_id, &call.tool, &call.arguments, since, after);
        flight.lineage = self.turns.get(&turn_id).map(|turn| turn.lineage.clone()).unwrap_or_default();
        self.in_flight.insert(action, flight);
        self.begin_step(turn_id, action, call);
        let ordered = self.turns.get(&turn_id).is_some_and(AgentTurn::is_order);
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.waiting.insert(action);
        }
        // What is around is told for the turn, not as calls of the model.
        if self.is_perceiving(turn_id) {
            return;
        }
        let arguments = cut_to_entry(&call.arguments);
        if ordered {
            // The model did not make this call, and must not believe that it did.
            let text = format!("Event: the user ordered {} {arguments}.", call.tool);
            return self.add_entry(record.sequence, &event.thread_id, ThreadEntry::Notice { turn: turn_id, text });
        }
        let limit = self.entry_retention();
        if let Some(thread) = self.threads.get_mut(&event.thread_id) {
            let with =
                AnswerFields { reasoning_details: &call.reasoning_details, passed_back: &call.answer_passed_back };
            let (call_id, passed_back, tool) = (call.call_id.clone(), call.passed_back.clone(), call.tool.clone());
            let call = ThreadCall {
                action,
                tool,
                arguments,
                since,
                after,
                result: None,
                call_id,
                passed_back,
                parts: Vec::new(),
            };
            thread.push_call(record.sequence, turn_id, call, with, limit);
        }
    }

    /// Returns the rules for keeping entries that are added now.
    pub(super) fn entry_retention(&self) -> EntryRetention {
        EntryRetention { limit: self.history_limit(), now: self.now, in_steps: self.models.records_endings() }
    }

    pub(super) fn history_limit(&self) -> usize {
        self.profile.as_ref().map_or(HISTORY, |profile| profile.history_limit)
    }
}

fn has_no_inner_state(inner: &Shared<InnerState>) -> bool {
    inner.is_nothing()
}

pub(super) fn is_none(number: &u32) -> bool {
    *number == 0
}

/// Returns the turn of a decided event; an event without a turn id belongs to the turn of its correlation id.
fn turn_of(event: &DecidedEvent) -> Option<Uuid> {
    let id = if event.turn_id.is_empty() { &event.correlation_id } else { &event.turn_id };
    Uuid::parse_str(id).ok()
}

/// A result as a model is told it: JSON either way.
pub(super) fn tool_result_json(result: &ToolResult) -> String {
    match &result.error {
        None => result.result.clone(),
        Some(error) => serde_json::json!({ "error": error.kind, "message": error.message }).to_string(),
    }
}
