//! Submodules: voices within an agent, each a prompt that is shown what is new and says what it thinks of it. Which there are, what
//! is yet to be shown to them of what was decided, and what they left for next time. Folded from the log.

pub mod model_requests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kairo_events::record::Record;
use kairo_proto::{
    About,
    about::{Agent, Outside, Process, Tool},
    v1::{
        self, AgentBroadcast, AgentDecision, AgentThought, DecidedEvent, SubmoduleAsked, SubmoduleChanged,
        agent_action::Action, decided_event::Event,
    },
    words::{HeardKind, ModelTier},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    background_lane::NextWork,
    composition::covers,
    intrinsics,
    profile::Profile,
    state::{AgentState, AgentTurn, is_none},
    thread::cut_to,
};

/// Submodules an agent has at most, where its profile does not say.
pub const MOST: u32 = 8;
/// And whatever it says.
pub const MOST_EVER: u32 = 32;
/// Longest prompt of one, in bytes.
pub const PROMPT_BYTES: usize = 8_000;
/// Longest name of one, in bytes.
pub const NAME_BYTES: usize = 32;
/// Milliseconds within which one must have answered: where that is not said, at least, and at most.
pub const DEADLINE_MS: u32 = 10_000;
pub const LEAST_DEADLINE_MS: u32 = 100;
pub const MOST_DEADLINE_MS: u32 = 120_000;
/// Maximum size of a kept thought, in bytes.
pub const THOUGHT_BYTES: usize = 4 * 1024;
/// Thoughts that a turn keeps for its later steps, and their bytes.
const THOUGHTS: usize = 16;
const THOUGHTS_BYTES: usize = 16 * 1024;
/// Decisions that wait to be shown, and what is shown of each, in bytes.
const SHOWN: usize = 32;
const SHOWN_BYTES: usize = 4 * 1024;
/// Of each thing that was done, so much is shown, in bytes.
const ACT_BYTES: usize = 1_024;
/// Thoughts that are kept for next time, of all threads.
const LEFT: usize = 32;

/// A voice within an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submodule {
    pub name: String,
    pub prompt: String,
    pub tier: String,
    /// Kinds of inputs; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hears: Vec<String>,
    pub deadline_ms: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_decisions: bool,
}

/// A thought of a submodule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmoduleThought {
    pub module: String,
    pub text: String,
}

/// A decision that is yet to be shown to the submodules that want to see decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnseenDecision {
    /// Position of the decision in the log.
    pub at: u64,
    pub thread_id: String,
    /// The chain of what was done last.
    pub correlation: Uuid,
    pub text: String,
}

/// A thought that a submodule left for the next decision in a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredThought {
    pub thread_id: String,
    pub said: SubmoduleThought,
}

/// The state of an agent's submodules, beside their definitions in its profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submodules {
    /// Those that were added, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added: BTreeMap<String, Submodule>,
    /// Those of the profile that were removed: until it is defined anew.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub shown: VecDeque<UnseenDecision>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub left: VecDeque<DeferredThought>,
}

/// The submodules' contributions to a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmoduleThoughts {
    /// Their thoughts, the newest last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub said: VecDeque<SubmoduleThought>,
    /// Rounds of questions to them, and the chain in which the last was asked.
    #[serde(default, skip_serializing_if = "is_none")]
    pub rounds: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_in: Option<Uuid>,
}

impl Submodule {
    pub fn from_proto(said: &v1::Submodule) -> Self {
        let deadline_ms = if said.deadline_ms == 0 { DEADLINE_MS } else { said.deadline_ms };
        Self {
            name: said.name.clone(),
            prompt: cut_to(&said.prompt, PROMPT_BYTES),
            tier: said.tier.clone(),
            hears: said.hears.clone(),
            deadline_ms: deadline_ms.clamp(LEAST_DEADLINE_MS, MOST_DEADLINE_MS),
            wants_decisions: said.wants_decisions,
        }
    }

    /// Of the model that it thinks with.
    pub fn tier(&self) -> &'static str {
        match ModelTier::from(self.tier.as_str()) {
            known @ (ModelTier::Heavy | ModelTier::Light) => known.known_word(),
            ModelTier::Fast | ModelTier::Unknown(_) => ModelTier::Fast.known_word(),
        }
    }

    /// Returns true if the submodule is shown inputs of this kind; an empty list means every kind.
    pub fn hears_kind(&self, kind: &HeardKind) -> bool {
        self.hears.is_empty() || self.hears.iter().any(|heard| heard == kind.as_str())
    }
}

impl Submodules {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl SubmoduleThoughts {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The round that a question asked in this chain is of.
    pub fn round_in(&self, chain: Option<Uuid>) -> u32 {
        let is_same = self.rounds > 0 && self.asked_in == chain;
        if is_same { self.rounds } else { self.rounds + 1 }
    }

    fn add_thought(&mut self, said: SubmoduleThought) {
        self.said.push_back(said);
        let bytes = |all: &VecDeque<SubmoduleThought>| all.iter().map(|said| said.text.len()).sum::<usize>();
        while self.said.len() > THOUGHTS || bytes(&self.said) > THOUGHTS_BYTES {
            self.said.pop_front();
        }
    }
}

impl Profile {
    /// Returns the maximum number of submodules; the default if the profile sets none.
    pub fn most_submodules(&self) -> u32 {
        if self.max_submodules == 0 { MOST } else { self.max_submodules.min(MOST_EVER) }
    }

    /// Returns true if the profile names this tool, which changes submodules. Naming is required, since a submodule
    /// that one user adds thinks along in the turns of all.
    fn lets_users_change_submodules(&self, tool: &str) -> bool {
        self.tools.iter().any(|pattern| pattern.starts_with("submodule.") && covers(pattern, tool))
    }
}

impl AgentState {
    /// The submodules it has: those of its profile, then those that were added.
    pub fn active_submodules(&self) -> impl Iterator<Item = &Submodule> {
        let of_profile = self.profile.iter().flat_map(|profile| &profile.submodules);
        let kept = of_profile.filter(|own| !self.submodules.removed.contains(&own.name));
        let is_added = |own: &&Submodule| !self.submodules.added.contains_key(&own.name);
        let most = self.profile.as_ref().map_or(MOST, Profile::most_submodules);
        kept.filter(is_added).chain(self.submodules.added.values()).take(most as usize)
    }

    pub fn find_submodule(&self, name: &str) -> Option<&Submodule> {
        self.active_submodules().find(|voice| voice.name == name)
    }

    /// Returns true if the agent may use a tool. Submodule and history tools are offered only if the agent has
    /// submodules or history, so that the tools of other agents stay the same.
    pub fn offers_tool(&self, tool: &str) -> bool {
        let profile = self.profile.as_ref();
        match tool {
            intrinsics::submodules::ASK => self.active_submodules().next().is_some(),
            intrinsics::history::QUERY => self.keeps_times(),
            intrinsics::submodules::ADD | intrinsics::submodules::REMOVE => {
                profile.is_some_and(|profile| profile.lets_users_change_submodules(tool))
            }
            _ => profile.is_none_or(|profile| profile.offers_tool(tool)),
        }
    }

    /// Returns true if entries are kept with their times, for a cutoff or for submodules.
    pub(super) fn keeps_times(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| !profile.cutoff.is_nothing())
            || self.active_submodules().next().is_some()
    }

    /// A definition names anew which submodules there are; those that were added stay.
    pub(super) fn reset_removed_submodules(&mut self) {
        self.submodules.removed.clear();
    }

    pub(super) fn apply_submodule_changed(&mut self, changed: &SubmoduleChanged) {
        let own = self.profile.iter().flat_map(|profile| &profile.submodules);
        let is_own = own.clone().any(|own| own.name == changed.name);
        match &changed.submodule {
            Some(added) if self.submodules.added.len() < MOST_EVER as usize => {
                self.submodules.added.insert(changed.name.clone(), Submodule::from_proto(added));
            }
            Some(_) => {}
            None => {
                self.submodules.added.remove(&changed.name);
                if is_own {
                    self.submodules.removed.insert(changed.name.clone());
                }
            }
        }
    }

    /// Keeps a submodule's thought for the turn's later steps, or for the next decision in its thread.
    pub(super) fn apply_thought(&mut self, event: &DecidedEvent, turn_id: Uuid, thought: &AgentThought) {
        if thought.module.is_empty() {
            return;
        }
        let said = SubmoduleThought { module: thought.module.clone(), text: cut_to(&thought.text, THOUGHT_BYTES) };
        self.mark_outside(&event.thread_id, turn_id, &thought.outside);
        if !thought.for_next {
            if let Some(turn) = self.turns.get_mut(&turn_id) {
                turn.counsel.add_thought(said);
            }
            return;
        }
        let left = &mut self.submodules.left;
        left.push_back(DeferredThought { thread_id: event.thread_id.clone(), said });
        if left.len() > LEFT {
            left.pop_front();
        }
    }

    pub(super) fn apply_submodule_asked(&mut self, turn_id: Uuid, asked: &SubmoduleAsked) {
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.counsel.rounds = asked.round;
            turn.counsel.asked_in = turn.chain.as_ref().map(|chain| chain.id);
        }
    }

    /// It was shown, whatever came of it.
    pub(super) fn apply_broadcast(&mut self, told: &AgentBroadcast) {
        self.submodules.shown.retain(|shown| shown.thread_id != told.thread_id || shown.at > told.through);
    }

    /// Drops the thoughts left for a thread once a decision has seen them, and queues the decision to be shown. A
    /// broadcast causes no other.
    pub(super) fn note_decision(&mut self, sequence: u64, decision: &AgentDecision) {
        if is_broadcast(decision) || self.is_upkeep(decision) {
            return;
        }
        if decision.completions.iter().any(|completion| completion.module.is_empty()) {
            let is_seen =
                |left: &DeferredThought| decision.events.iter().any(|event| event.thread_id == left.thread_id);
            self.submodules.left.retain(|left| !is_seen(left));
        }
        if !self.active_submodules().any(|voice| voice.wants_decisions) {
            return self.submodules.shown.clear();
        }
        for event in &decision.events {
            let Some(act) = describe_act(event) else { continue };
            let shown = &mut self.submodules.shown;
            match shown.iter_mut().find(|shown| shown.at == sequence && shown.thread_id == event.thread_id) {
                Some(shown) => shown.text = cut_to(&format!("{}\n{act}", shown.text), SHOWN_BYTES),
                None => {
                    let correlation = Uuid::parse_str(&event.correlation_id).unwrap_or_default();
                    shown.push_back(UnseenDecision {
                        at: sequence,
                        thread_id: event.thread_id.clone(),
                        correlation,
                        text: act,
                    });
                }
            }
        }
        self.bound_unseen_decisions();
    }

    /// The oldest make room, but for those that are being shown: what was asked about them is asked.
    fn bound_unseen_decisions(&mut self) {
        let under_way = match &self.work.next {
            Some((NextWork::Broadcast { thread_id, through }, _)) => Some((thread_id.clone(), *through)),
            _ => None,
        };
        let is_under_way = |shown: &UnseenDecision| {
            under_way.as_ref().is_some_and(|(thread, through)| shown.thread_id == *thread && shown.at <= *through)
        };
        while self.submodules.shown.len() > SHOWN {
            let at = self.submodules.shown.iter().position(|shown| !is_under_way(shown)).unwrap_or_default();
            self.submodules.shown.remove(at);
        }
    }

    /// The chain of the last decision that a broadcast shows.
    pub(super) fn broadcast_correlation(&self, thread_id: &str, through: u64) -> Option<Uuid> {
        let is_shown = |shown: &&UnseenDecision| shown.thread_id == thread_id && shown.at <= through;
        self.submodules.shown.iter().rev().find(is_shown).map(|shown| shown.correlation)
    }

    /// Returns true if decisions that a broadcast covers are still pending.
    pub(super) fn is_broadcast_pending(&self, next: &NextWork) -> bool {
        let NextWork::Broadcast { thread_id, through } = next else { return false };
        self.submodules.shown.iter().any(|shown| shown.thread_id == *thread_id && shown.at <= *through)
    }

    /// The next broadcast: of the thread of which the oldest decision waits, up to the newest.
    pub(super) fn next_broadcast(&self) -> Option<NextWork> {
        let thread_id = self.submodules.shown.front()?.thread_id.clone();
        let of_thread = self.submodules.shown.iter().filter(|shown| shown.thread_id == thread_id);
        let through = of_thread.map(|shown| shown.at).max()?;
        Some(NextWork::Broadcast { thread_id, through })
    }
}

impl AgentTurn {
    /// Returns the thoughts left for this turn's thread, then those of the turn itself.
    pub(super) fn submodule_thoughts<'s>(
        &'s self,
        state: &'s AgentState,
    ) -> impl Iterator<Item = &'s SubmoduleThought> {
        let left = state.submodules.left.iter().filter(|left| left.thread_id == self.thread_id);
        left.map(|left| &left.said).chain(&self.counsel.said)
    }
}

/// Returns true if a decision is a broadcast to submodules.
pub(super) fn is_broadcast(decision: &AgentDecision) -> bool {
    decision.events.iter().any(|event| matches!(event.event, Some(Event::Broadcast(_))))
}

/// Describes what an event says or does, in a line; none if it does neither.
fn describe_act(event: &DecidedEvent) -> Option<String> {
    let event = event.event.as_ref()?;
    let act = if let Event::Action(action) = event {
        match action.action.as_ref()? {
            Action::Say(say) => format!("said: {}", say.text),
            Action::ToolCall(call) => format!("called {} {}", call.tool, call.arguments),
            Action::Ask(ask) => format!("asked {}: {}", ask.agent, ask.text),
        }
    } else if let Event::TaskScheduled(scheduled) = event {
        format!("made a task: {}", scheduled.task.as_ref()?.title)
    } else if let Event::TaskEnded(ended) = event {
        format!("ended a task, {}: {}{}", ended.status, ended.result, ended.reason)
    } else {
        return None;
    };
    Some(cut_to(&act, ACT_BYTES))
}

/// Returns the kind of an input.
pub(super) fn input_kind(record: &Record) -> HeardKind {
    match record.body.about() {
        About::Agent(Agent::Message(_) | Agent::Choice(_)) | About::User(_) => HeardKind::Message,
        About::Agent(Agent::Answer(_)) => HeardKind::Result,
        About::Tool(Tool::Result(_) | Tool::Invoke(_) | Tool::Order(_) | Tool::Progress(_)) => HeardKind::Result,
        About::Process(Process::Spawned(_) | Process::Progress(_) | Process::Canceled(_) | Process::Reply(_)) => {
            HeardKind::Process
        }
        About::Process(Process::Exited(_)) => HeardKind::Process,
        About::Agent(Agent::Approval(_)) => HeardKind::Approval,
        About::Outside(outside) => match outside {
            Outside::Due(_) => HeardKind::Task,
            Outside::Triggered(_) | Outside::Email(_) => HeardKind::Event,
        },
        // A task begins behind a decision.
        About::Decision(_) | About::Decided(_) | About::Agent(Agent::Request(_)) => HeardKind::Task,
        About::Agent(Agent::Defined(_) | Agent::Imported(_) | Agent::Forgotten(_) | Agent::Command(_)) => {
            HeardKind::Event
        }
        About::System(_) | About::Live(_) => HeardKind::Event,
    }
}
