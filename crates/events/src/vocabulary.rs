//! The version of readers that a message takes, and the messages that may be written.
//!
//! Versions of readers count what the log can say: a new type of event, a new event of decisions, a new field that
//! changes what a message means. A build reads everything up to [`READER`]. What of it may be written is the **epoch**, a
//! fact in the log: it is raised when all who are there read that far.
//!
//! A writer states the version that a message takes if it is above the first ([`required_reader`], [`READER_HEADER`]). A replica
//! that acts on messages and meets one above its own version ([`newer_reader_needed`]) leaves it to newer replicas, and skips
//! nothing. A reader that only shows messages shows what it knows.

#[cfg(test)]
mod tests;

use kairo_proto::{
    Body, READERS, Unreadable as UnreadableBody,
    v1::{
        AgentAction, AgentAnswer, AgentAnswered, AgentApproval, AgentCommand, AgentDecision, AgentDefined,
        AgentMessage, AgentProfile, AgentRequest, AgentThought, ChainStep, Completion, DecidedEvent, Task, TaskChanged,
        TaskEnded, TaskScheduled, UserApproval, UserCommand, UserMessage, agent_action::Action, decided_event::Event,
    },
    words::{ChainOrigin, RequestKind, TaskKind},
};

use crate::{
    ids::Name,
    record::{Record, UnreadableRecord},
    subjects,
};

/// From this epoch on hooks can be shared.
pub const SHARED_HOOKS: u32 = 3;
/// From this epoch on agents can work in the background.
pub const BACKGROUND: u32 = 4;
/// From this epoch on agents have missions and teams, and ask each other.
pub const TEAMS: u32 = 5;
/// From this epoch on sessions of work have bounds, and agents guess goals and review what they are about to say.
pub const REFLECTION: u32 = 6;
/// From this epoch on agents keep an inner state.
pub const INNER_STATE: u32 = 6;
/// From this epoch on agents have submodules.
pub const SUBMODULES: u32 = 6;
/// From this epoch on users speak with the agent that they named last.
pub const SWITCHES: u32 = 6;
/// From this epoch on agents are composed of others, and look at what is around.
pub const COMPOSITES: u32 = 6;
/// From this epoch on messages say where their users are.
pub const ENVIRONMENT: u32 = 6;
/// From this epoch on reasoning that only the model server can read is kept for it.
pub const REASONING_DETAILS: u32 = 6;
/// From this epoch on messages may bring a state.
pub const STATES: u32 = 6;
/// From this epoch on conversations that were had elsewhere are taken in.
pub const IMPORTS: u32 = 6;
/// From this epoch on decisions carry a link of their agent's hash chain.
pub const HASH_CHAINS: u32 = 7;
/// From this epoch on ids of threads that users name say whose they are.
pub const OWNED_THREADS: u32 = 3;
/// From this epoch on content of users is sealed, where there is a master key.
pub const SEALING: u32 = 8;
/// From this epoch on messages are carried forward, so that the log can be trimmed.
pub const CARRYING: u32 = 9;
/// From this epoch on decisions say how each answer of a model ended and keep what its server wants back, and messages carry what
/// chat clients send beside the words.
pub const ANSWERS: u32 = 10;
/// The features that each epoch enables, in words for operators.
const ENABLED: [(u32, &str); 9] = [
    (2, "model calls that were given up stand in decisions"),
    (3, "hooks are shared, ids of threads say whose they are, and calls name where consent was asked for"),
    (4, "agents work in the background"),
    (5, "agents have missions and teams, and ask each other"),
    (
        6,
        "sessions of work have bounds, agents review what they say, keep an inner state, have submodules and members, take \
         in what is around and states, and conversations that were had elsewhere are imported; users go on with the agent \
         that they named last",
    ),
    (HASH_CHAINS, "decisions carry digests, by which a log can be verified"),
    (SEALING, "content of users is sealed with data keys of their own, where privacy.master_key is set"),
    (CARRYING, "messages that must stand are carried forward, so that the log can be trimmed"),
    (
        ANSWERS,
        "decisions say how answers of models ended and keep what model servers want back with calls, and chat clients bring \
         instructions, history and tools of their own",
    ),
];
/// The newest version that this release reads, and writes in an epoch that allows it: the newest that something in the
/// contract is said to take, or a rule. Version 2 knows model calls that were given up, version 3 threads whose ids say
/// whose they are, hooks that are shared, and where calls with consent were asked for; version 4 agents that work in
/// the background, version 5 those with missions and teams, version 6 bounds of their sessions, goals and reviews,
/// inner state, submodules, users who go on with the agent that they named, agents that are composed of others,
/// environments, and imported conversations; version 7 hash chains, version 8 content that is sealed, version 9
/// messages that are carried forward, version 10 how answers ended and what chat clients send.
pub const RELEASED: u32 = if kairo_proto::READER > ANSWERS { kairo_proto::READER } else { ANSWERS };
/// The newest version that this build reads and writes: the same, but for the feature `synthetic`
/// ([`crate::synthetic`]).
pub const READER: u32 = if cfg!(feature = "synthetic") { RELEASED + 1 } else { RELEASED };
/// The version that every build reads. A log that says nothing of epochs is in this one.
pub const FIRST: u32 = 1;
/// The header with the version of readers that a message takes; without it, every reader understands the message.
pub const READER_HEADER: &str = "ce-reader";

/// A message that takes a newer reader than this build is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; it takes a reader of version {reader}, and this is one of version {READER}")]
pub struct NewerReaderNeeded {
    pub reader: u32,
    pub why: String,
}

/// The reason a message cannot be acted on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotUnderstood {
    /// A newer replica can: it is left to it.
    #[error(transparent)]
    Newer(#[from] NewerReaderNeeded),
    /// Nobody can: it is set aside.
    #[error(transparent)]
    Unreadable(#[from] UnreadableRecord),
}

/// The lowest version of readers that understands a message.
pub fn required_reader(body: &Body) -> u32 {
    if let Some(AgentDefined { profile: Some(profile), .. }) = AgentDefined::of(body) {
        return profile_reader(profile);
    }
    let chat = UserMessage::of(body).map(|it| &it.chat).or_else(|| AgentMessage::of(body).map(|it| &it.chat));
    if chat.is_some_and(Option::is_some) {
        return ANSWERS;
    }
    let includes_consents = UserCommand::of(body).map(|it| it.includes_consents);
    if includes_consents.or_else(|| AgentCommand::of(body).map(|it| it.includes_consents)) == Some(true) {
        return ANSWERS;
    }
    let task = UserCommand::of(body).map(|it| &it.task).or_else(|| AgentCommand::of(body).map(|it| &it.task));
    if task.is_some_and(Option::is_some) {
        return ANSWERS;
    }
    let arguments = UserApproval::of(body).map(|it| &it.arguments);
    if arguments.or_else(|| AgentApproval::of(body).map(|it| &it.arguments)).is_some_and(|it| !it.is_empty()) {
        return ANSWERS;
    }
    let environment = UserMessage::of(body).map(|it| &it.environment);
    if environment.or_else(|| AgentMessage::of(body).map(|it| &it.environment)).is_some_and(|it| !it.is_empty()) {
        return ENVIRONMENT;
    }
    let given = AgentRequest::of(body).map(|request| request.model_calls);
    if given.or_else(|| AgentAnswer::of(body).map(|answer| answer.model_calls_left)).is_some_and(|calls| calls > 0) {
        return ANSWERS;
    }
    let asked = AgentRequest::of(body).map(|request| request.kind_word());
    let answered = AgentAnswer::of(body).map(|answer| answer.kind_word());
    if asked.or(answered).is_some_and(|kind| is_of_composites(&kind)) {
        return COMPOSITES;
    }
    let submodule =
        UserCommand::of(body).map(|it| &it.submodule).or_else(|| AgentCommand::of(body).map(|it| &it.submodule));
    if submodule.is_some_and(Option::is_some) {
        return SUBMODULES;
    }
    let team = UserCommand::of(body).map(|it| &it.team).or_else(|| AgentCommand::of(body).map(|it| &it.team));
    if team.is_some_and(|team| !team.is_empty()) {
        return TEAMS;
    }
    let state = UserMessage::of(body).map(|it| &it.state).or_else(|| AgentMessage::of(body).map(|it| &it.state));
    if state.is_some_and(|state| !state.is_empty()) {
        return STATES;
    }
    AgentDecision::of(body).map_or_else(|| type_reader(body.type_name()), decision_reader)
}

/// The lowest version of readers that makes of an agent with this profile what it is.
pub fn profile_reader(profile: &AgentProfile) -> u32 {
    let AgentProfile { mission, owner, team, lead, conduct, session, guesses_goal, max_reflections, .. } = profile;
    let AgentProfile { members, environment, inner_state, .. } = profile;
    let AgentProfile { submodules, max_submodules, history_cutoff, history_window, summary_after, .. } = profile;
    let has_voices =
        !submodules.is_empty() || [max_submodules, history_cutoff, history_window].into_iter().any(|it| *it > 0);
    let is_in_team = team.is_some() || [mission, owner, lead].into_iter().any(|it| !it.is_empty());
    match () {
        () if profile.caps.is_some()
            || profile.task.is_some()
            || profile.request_deadline > 0
            || profile.message_model_calls > 0
            || profile.consent_timeout > 0 =>
        {
            ANSWERS
        }
        () if has_voices => SUBMODULES,
        () if !members.is_empty() || !environment.is_empty() => COMPOSITES,
        () if session.is_some() || *guesses_goal || *max_reflections > 0 || *summary_after > 0 => REFLECTION,
        () if *inner_state => INNER_STATE,
        () if is_in_team => TEAMS,
        () if !conduct.is_empty() => BACKGROUND,
        () => FIRST,
    }
}

/// The lowest version of readers that understands a decision.
pub fn decision_reader(decision: &AgentDecision) -> u32 {
    let shares = |event: &&Event| matches!(event, Event::TaskChanged(TaskChanged { shared: Some(_), .. }));
    let events = decision.events.iter().filter_map(|event| event.event.as_ref());
    let moves = |event: &Event| matches!(event, Event::TaskChanged(TaskChanged { first: true, .. }));
    let is_queued = |task: &Task| task.kind_word() == TaskKind::Queued;
    let queues = |event: &Event| matches!(event, Event::TaskScheduled(it) if it.task.as_ref().is_some_and(is_queued));
    let asks = |event: &Event| matches!(event, Event::Action(AgentAction { action: Some(Action::Ask(_)) }));
    let is_of_teams = |task: &Task| !task.asked_by.is_empty() || task.is_next_run;
    let is_asked = |event: &Event| {
        let is_of_teams = |it: &TaskScheduled| it.task.as_ref().is_some_and(is_of_teams);
        matches!(event, Event::TaskScheduled(it) if is_of_teams(it))
            || matches!(event, Event::TaskEnded(TaskEnded { answer: Some(_), .. }))
    };
    let has_details = |completion: &Completion| !completion.reasoning_details.is_empty();
    let rests = |event: &Event| matches!(event, Event::TaskChanged(TaskChanged { rests: true, .. }));
    let reads = |event: &Event| matches!(event, Event::ChainStepEnded(it) if !it.outside.is_empty());
    let passes_on = |event: &Event| {
        let Event::Action(AgentAction { action: Some(Action::Ask(ask)) }) = event else { return false };
        is_of_composites(&ask.kind_word())
    };
    let is_new_chain = |event: &Event| {
        let Event::ChainStarted(started) = event else { return false };
        matches!(started.origin_word(), ChainOrigin::Environment | ChainOrigin::Request)
    };
    let thinks = |event: &Event| matches!(event, Event::Thought(AgentThought { module, .. }) if !module.is_empty());
    let asked = decision.completions.iter().any(|completion| !completion.module.is_empty());
    let fields = match () {
        () if has_answers(decision) => ANSWERS,
        () if decision.link.is_some() => HASH_CHAINS,
        () if asked || events.clone().any(thinks) => SUBMODULES,
        () if events.clone().any(|event| passes_on(event) || is_new_chain(event)) => COMPOSITES,
        () if events.clone().any(rests) || decision.completions.iter().any(has_details) => REFLECTION,
        () if events.clone().any(reads) => INNER_STATE,
        () if decision.cost > 0 || events.clone().any(|event| asks(event) || is_asked(event)) => TEAMS,
        () if decision.work_input > 0 || events.clone().any(|event| moves(event) || queues(event)) => BACKGROUND,
        () if events.clone().any(|event| shares(&event)) => SHARED_HOOKS,
        () if !decision.given_up.is_empty() => 2,
        () => FIRST,
    };
    events.map(|event| type_reader(event.type_name())).fold(fields, u32::max)
}

/// Returns true if it says how an answer ended, or keeps what a model server wants back with calls.
fn has_answers(decision: &AgentDecision) -> bool {
    let is_marked = |completion: &Completion| {
        let mut calls = completion.tool_calls.iter();
        !completion.ending.is_empty()
            || !completion.passed_back.is_empty()
            || completion.answered_at_ms > 0
            || calls.any(|call| !call.passed_back.is_empty())
    };
    let is_new = |event: &Event| {
        if let Event::Action(AgentAction { action: Some(Action::Say(say)) }) = event {
            return !say.client_calls.is_empty();
        }
        if let Event::Action(AgentAction { action: Some(Action::ToolCall(call)) }) = event {
            let fields = [&call.call_id, &call.passed_back, &call.answer_passed_back];
            return fields.into_iter().any(|field| !field.is_empty());
        }
        if let Event::Action(AgentAction { action: Some(Action::Ask(ask)) }) = event {
            return !ask.due_at.is_empty() || ask.model_calls > 0;
        }
        if let Event::ApprovalRequested(requested) = event {
            return !requested.expires_at.is_empty();
        }
        if let Event::MemoryAppended(memory) = event {
            return memory.lacks_keywords;
        }
        if let Event::TaskStarted(started) = event {
            return started.before_work;
        }
        if let Event::TaskScheduled(TaskScheduled { task: Some(task) }) = event {
            return task.model_calls > 0;
        }
        if let Event::TaskEnded(TaskEnded { answer: Some(answer), .. })
        | Event::Answered(AgentAnswered { answer: Some(answer), .. }) = event
        {
            return answer.model_calls_left > 0;
        }
        let Event::ChainStarted(chain) = event else { return false };
        let is_marked = |step: &ChainStep| !step.call_id.is_empty() || !step.passed_back.is_empty();
        !chain.passed_back.is_empty() || chain.steps.iter().any(is_marked)
    };
    let mut events = decision.events.iter().filter_map(|event| event.event.as_ref());
    decision.completions.iter().any(is_marked) || events.any(is_new) || has_unknown_cost(decision)
}

/// Returns true if it has tokens without a known price, or costs of calls that were given up.
fn has_unknown_cost(decision: &AgentDecision) -> bool {
    let AgentDecision { unpriced_tokens, given_up_cost, given_up_unpriced_tokens, .. } = decision;
    [unpriced_tokens, given_up_cost, given_up_unpriced_tokens].into_iter().any(|number| *number > 0)
}

/// Returns true if only agents that are composed of others ask for it.
fn is_of_composites(kind: &RequestKind) -> bool {
    match kind {
        RequestKind::Call | RequestKind::Think => true,
        RequestKind::Work | RequestKind::Cancel | RequestKind::Pause | RequestKind::Resume => false,
        RequestKind::Unknown(_) => false,
    }
}

/// The lowest version of readers that knows a type.
fn type_reader(type_name: &str) -> u32 {
    READERS.iter().find(|(known, _)| *known == type_name).map_or(FIRST, |(_, reader)| *reader)
}

/// Returns the features that raising the epoch from this one to [`READER`] would enable.
pub fn features_after(epoch: u32) -> impl Iterator<Item = (u32, &'static str)> {
    let synthetic = (READER > RELEASED).then_some((READER, "what a next version might bring, to try upgrades"));
    ENABLED.into_iter().chain(synthetic).filter(move |(from, _)| *from > epoch)
}

/// The names of those that read less than `epoch`: as long as there are any, the epoch may not be raised so far.
pub fn replicas_behind<'r>(epoch: u32, replicas: impl IntoIterator<Item = (&'r str, u32)>) -> Vec<&'r str> {
    // Builds that do not say what they read are the first.
    let reads_less = |(name, reader): (&'r str, u32)| (reader.max(FIRST) < epoch).then_some(name);
    replicas.into_iter().filter_map(reads_less).collect()
}

/// Returns the error for a message that takes a newer reader, if it does, given the result of reading it.
pub fn newer_reader_needed<'h>(
    subject: &str,
    header: impl Fn(&'static str) -> Option<&'h str>,
    read: &Result<Record, UnreadableRecord>,
) -> Option<NewerReaderNeeded> {
    // Another system could have everybody wait for ever, in a service's name.
    if subject.starts_with("kairo.system.") && !subjects::is_announcement(subject) {
        return None;
    }
    let asked = header(READER_HEADER).and_then(|reader| reader.parse().ok()).unwrap_or(FIRST);
    if asked > READER && is_kairo_source(header("ce-source")) {
        return Some(NewerReaderNeeded { reader: asked, why: "its headers ask for newer readers".to_owned() });
    }
    match read {
        Ok(record) => AgentDecision::of(&record.body).and_then(newer_decision_reader),
        Err(UnreadableRecord::UnknownSubject | UnreadableRecord::Body(UnreadableBody::UnknownType(_))) => {
            let type_name = header("ce-type").filter(|it| is_kairo_type(subject, it, header("ce-source")))?;
            let why = format!("its type, {type_name}, is unknown");
            Some(NewerReaderNeeded { reader: READER + 1, why })
        }
        Err(UnreadableRecord::Header(_) | UnreadableRecord::Body(_) | UnreadableRecord::WrongType { .. }) => None,
        Err(UnreadableRecord::TooLarge { .. } | UnreadableRecord::WrongPartition { .. }) => None,
        Err(UnreadableRecord::Carried { .. } | UnreadableRecord::Copy { .. }) => None,
    }
}

fn newer_decision_reader(decision: &AgentDecision) -> Option<NewerReaderNeeded> {
    if decision.reader > READER {
        return Some(NewerReaderNeeded {
            reader: decision.reader,
            why: "the decision asks for newer readers".to_owned(),
        });
    }
    let unknown = decision.events.iter().find(|event| is_unknown_event(event))?;
    let why = format!("event {} of the decision is none that is known", unknown.event_id);
    Some(NewerReaderNeeded { reader: READER + 1, why })
}

/// Returns true if the content was dropped on reading: every event that is written holds something.
fn is_unknown_event(event: &DecidedEvent) -> bool {
    if let Some(Event::Action(action)) = &event.event {
        return action.action.is_none();
    }
    event.event.is_none()
}

/// Returns true if an unknown type is one that a service of a newer build writes: its name is that of the subject, with
/// a version, like those of all types. Any other unknown type will never be known.
fn is_kairo_type(subject: &str, type_name: &str, source: Option<&str>) -> bool {
    let tokens: Vec<&str> = subject.split('.').collect();
    let ["kairo", noun, owner, verb] = tokens[..] else { return false };
    let version = type_name.strip_prefix(&format!("kairo.{noun}.{verb}.v"));
    let is_numbered = version.is_some_and(|version| version.parse::<u32>().is_ok_and(|version| version > 0));
    let is_new = is_numbered && !Body::TYPES.contains(&type_name) && Name::parse(owner).is_ok();
    is_new && is_kairo_source(source)
}

fn is_kairo_source(source: Option<&str>) -> bool {
    source.is_some_and(|source| source.starts_with("/kairo/"))
}
