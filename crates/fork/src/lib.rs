//! A fork: agents of a log as they were at one place of it, going on apart from it.
//!
//! The services are those of production, on a server in memory ([`kairo_in_memory`]) that holds the log up to the cut
//! ([`kairo_replay::cut`]). Nothing reaches the world: tools answer what was recorded, mocked or said on being asked, else that
//! they are locked ([`tools`]); agents that are not in the fork answer what they answered before ([`absent_agents`]); models are asked
//! only what the log has no answer to ([`model_answers`]), as far as whoever asks them allows it ([`ModelAsker`]), such as a budget ([`model_calls`]);
//! what was in flight at the cut ends as it ended, or is lost ([`pending_actions`]).
//! Timers go off by the clock of the fork, which begins at the cut.

mod absent_agents;
pub mod mocks;
mod model_answers;
pub mod model_calls;
mod pending_actions;
mod services;
pub mod tools;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kairo_core::{
    bus::{
        LogIdentity,
        append::OutgoingEvent,
        port::{Cause, OutgoingMessage, StreamStore, StreamTail, TailStart},
    },
    envelope::{Envelope, Origin},
    ids::Name,
    partition::Partitions,
    record::{RawMessage, Record},
    subjects::{
        self, AGENT_DEFINED, Consumer, EVENTS_STREAM, Route, Service, USER_APPROVAL, USER_CHOICE, USER_COMMAND,
        USER_MESSAGE,
    },
    vocabulary::READER,
};
use kairo_in_memory::{
    chance::Calm,
    durable::Durable,
    port::InMemory,
    server::{Server, Stream},
};
use kairo_mind::replay::Replay;
use kairo_proto::{
    Body, time,
    v1::{AgentDefined, AgentProfile, LogMessage, UserApproval, UserChoice, UserCommand, UserMessage},
};
use kairo_replay::cut;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

pub use self::model_answers::ModelAsker;
use self::{
    absent_agents::AbsentAgents, mocks::Mocks, model_answers::ForkModelAnswers, services::RunningServices,
    tools::CallAnswerer,
};

/// Largest message that is read, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// Longest time that services may take to stop.
const STOPPING: Duration = Duration::from_secs(5);

/// The fate of actions that were in flight at the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingFate {
    /// The end that the log has of them behind the cut; those without one are lost.
    Recorded,
    Lost,
}

/// The settings of a fork beside its log.
pub struct ForkSettings {
    pub pending: PendingFate,
    pub mocks: Mocks,
    /// The source of answers to calls that neither the log nor a mock can answer.
    pub asked: Option<Arc<dyn CallAnswerer>>,
    /// The configuration of agents; the log sets its limits.
    pub config: kairo_agent_runtime::Config,
    /// The models for requests that the log has no answer to.
    pub models: Option<Arc<dyn ModelAsker>>,
    /// The system prompt of all agents, in place of their own.
    pub prompt: Option<String>,
}

/// The origin of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum AnswerSource {
    /// The log: the place of the result; 0 for a model's.
    Recorded {
        at: u64,
    },
    Mocked,
    /// A model, or somebody who was asked.
    Asked,
    /// There is none.
    Locked,
    /// There is a model, and it is not asked.
    NotAsked {
        why: String,
    },
}

/// An answer that reaches no further than the fork.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "answered", rename_all = "snake_case")]
pub enum ForkAnswer {
    Tool { action: String, tool: String, arguments: Value, answer: AnswerSource },
    Agent { action: String, agent: String, answer: AnswerSource },
    Model { tier: &'static str, answer: AnswerSource },
}

/// Something that happened in a fork.
#[derive(Debug)]
pub enum ForkEvent {
    /// A message stands in its log.
    Record(Box<Record>),
    Answered(ForkAnswer),
    /// Nothing is left to be done until somebody says something, or time passes.
    AtRest,
}

/// The reason for which a fork cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error("message {0} of the log cannot be put into a fork: expected headers, and when it was stored")]
    Log(u64),
    #[error("a service of the fork has stopped: {0}")]
    Stopped(String),
    #[error("the log of the fork broke off: {0}")]
    BrokeOff(Cause),
}

/// The clock of a fork, which begins at the cut and can be moved on.
#[derive(Clone, Debug)]
pub struct Clock(InMemory);

impl Clock {
    pub fn now(&self) -> Timestamp {
        self.0.read_server(|_, now| now)
    }

    /// When the next timer goes off; none where none is set.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.0.read_server(|server, _| server.timers().into_iter().map(|(_, at)| at).min())
    }
}

/// Agents that go on apart from their log.
pub struct Fork {
    server: InMemory,
    tail: Box<dyn StreamTail>,
    /// Messages that the tail brought and [`Fork::next_event`] has not returned yet.
    arrived: VecDeque<RawMessage>,
    told: mpsc::UnboundedReceiver<ForkAnswer>,
    others: AbsentAgents,
    /// The agents, as far as was told.
    state: Replay,
    /// The position of the last message returned.
    read: u64,
    /// Messages of users that no agent has received yet.
    unrouted: Vec<Uuid>,
    is_resting: bool,
    changes: watch::Receiver<()>,
    services: RunningServices,
}

impl Fork {
    /// Lets agents go on from the cut.
    ///
    /// # Errors
    /// If the log has a message that no server holds.
    pub async fn start(parts: cut::ForkParts, settings: ForkSettings) -> Result<Self, ForkError> {
        let ForkSettings { pending, mocks, asked, config, models, prompt } = settings;
        let profiles = prompt.map(|prompt| profiles(&parts, &prompt)).unwrap_or_default();
        let cut::ForkParts { at, agents, before, state, pending: in_flight, mut recorded, catalogue, basis } = parts;
        let server = seed_server(at, &before)?;
        let (tell, told) = mpsc::unbounded_channel();
        let tail = server.tail_stream(EVENTS_STREAM, &[], TailStart::After(at)).await;
        let tail = tail.map_err(|error| ForkError::BrokeOff(error.into()))?;
        server.update_server(|server, now| {
            profiles.iter().for_each(|(agent, profile)| store(server, &agent_defined(agent, profile, now), now));
            pending_actions::end_events(&in_flight, pending, now).iter().for_each(|end| store(server, end, now));
        });
        let completions = Mutex::new(std::mem::take(&mut recorded.completions));
        let answers = ForkModelAnswers { recorded: completions, models, told: tell.clone() };
        let recorded = Arc::new(recorded);
        let answering = tools::ToolAnswers {
            at,
            recorded: recorded.clone(),
            mocks,
            asked,
            told: tell.clone(),
            made: Mutex::default(),
        };
        let tools = tools::locked_tools(catalogue.as_ref(), &Arc::new(answering));
        let agents: Vec<Name> = agents.into_iter().collect();
        let here = agents.clone();
        // Whoever is not here would come to life without a past.
        server.discard_writes(move |subject| is_of_absent_agent(subject, &here));
        let of_services = services::ServiceParts { config, basis, answers: Arc::new(answers), tools };
        let services = RunningServices::start(server.clone(), of_services)
            .map_err(|error| ForkError::Stopped(error.to_string()))?;
        let others = AbsentAgents { at, agents, recorded, told: tell, made: Mutex::new(BTreeMap::new()) };
        let arrived = VecDeque::new();
        let unrouted = Vec::new();
        let changes = server.changes();
        Ok(Self {
            server,
            tail,
            arrived,
            told,
            others,
            state,
            read: at,
            unrouted,
            is_resting: false,
            changes,
            services,
        })
    }

    /// The agents that are here.
    pub fn agents(&self) -> &[Name] {
        &self.others.agents
    }

    pub fn clock(&self) -> Clock {
        Clock(self.server.clone())
    }

    /// Moves its clock on, so that what is due by then happens.
    pub fn advance(&mut self, by: SignedDuration) {
        self.server.advance(by);
        self.is_resting = false;
    }

    /// A user says something.
    pub fn say(&mut self, user: &Name, message: UserMessage) {
        self.enter(&USER_MESSAGE, user, message);
    }

    /// A human's verdict on an action.
    pub fn approve(&mut self, user: &Name, approval: UserApproval) {
        self.enter(&USER_APPROVAL, user, approval);
    }

    /// A user's answer to something an agent put to them.
    pub fn choose(&mut self, user: &Name, choice: UserChoice) {
        self.enter(&USER_CHOICE, user, choice);
    }

    /// A direct order.
    pub fn order(&mut self, user: &Name, command: UserCommand) {
        self.enter(&USER_COMMAND, user, command);
    }

    fn enter(&mut self, route: &Route, user: &Name, body: impl Into<Body>) {
        let id = Uuid::now_v7();
        self.server.update_server(|server, now| {
            let envelope = Envelope::from_outside(id, Service::Gateway, Origin::User, now);
            store(server, &OutgoingEvent::new(route, user, envelope, body), now);
        });
        self.unrouted.push(id);
        self.is_resting = false;
    }

    /// Returns the next event. It reports once that all is at rest, and then waits until something happens.
    ///
    /// # Errors
    /// When a service has stopped by itself.
    pub async fn next_event(&mut self) -> Result<ForkEvent, ForkError> {
        loop {
            if let Some(raw) = self.arrived.pop_front() {
                if let Some(record) = self.apply(&raw) {
                    return Ok(ForkEvent::Record(Box::new(record)));
                }
                continue;
            }
            if let Ok(told) = self.told.try_recv() {
                return Ok(ForkEvent::Answered(told));
            }
            self.changes.borrow_and_update();
            if !self.is_resting && self.is_at_rest() {
                self.is_resting = true;
                return Ok(ForkEvent::AtRest);
            }
            tokio::select! {
                biased;
                why = self.services.wait_for_stop() => return Err(ForkError::Stopped(why)),
                raws = self.tail.next_batch() => self.arrived.extend(raws.map_err(ForkError::BrokeOff)?),
                Some(told) = self.told.recv() => return Ok(ForkEvent::Answered(told)),
                _ = self.changes.changed() => {}
            }
        }
    }

    /// Takes in a message of the log.
    fn apply(&mut self, raw: &RawMessage) -> Option<Record> {
        self.read = raw.sequence;
        self.is_resting = false;
        let record = match raw.read(MAX_BODY) {
            Ok(record) => record,
            Err(_) => {
                self.state.pass_over(raw.sequence, &raw.subject);
                return None;
            }
        };
        let cause = record.envelope.causation_id;
        self.unrouted.retain(|id| Some(*id) != cause);
        self.others.answer_requests(&self.server, &record);
        self.state.apply_record(record.clone());
        Some(record)
    }

    /// Returns true if nothing is left to be done.
    fn is_at_rest(&mut self) -> bool {
        let at_work = [Consumer::ToolRunner, Consumer::ToolRunnerProcesses, Consumer::AgentRuntimeEffects];
        let (end, is_settled) = self.server.read_server(|server, _| {
            let end = server.streams.get(EVENTS_STREAM).map_or(0, Stream::last_sequence);
            let settled = |consumer| server.durables.get(consumer).is_some_and(Durable::is_settled);
            (end, at_work.iter().all(settled))
        });
        is_settled && self.read >= end && self.unrouted.is_empty() && !self.state.is_waiting()
    }

    /// Returns the state of an agent.
    pub fn state(&self, agent: &Name) -> kairo_mind::log::Snapshot {
        self.state.snapshot(agent)
    }

    /// Its agents' part of the log: what stood before the cut, and what has happened since.
    pub fn export(&self) -> Vec<LogMessage> {
        let part: BTreeSet<String> = self.agents().iter().flat_map(subjects::replay_subjects).collect();
        self.server.read_server(|server, _| {
            let Some(stream) = server.streams.get(EVENTS_STREAM) else { return Vec::new() };
            let messages = stream.all_entries().iter().map(|stored| stored.raw().to_log_message());
            messages.filter(|message| part.contains(&message.subject)).collect()
        })
    }

    /// Ends it.
    pub async fn stop(self) {
        let _ = tokio::time::timeout(STOPPING, self.services.stop()).await;
    }
}

/// A server that has the log up to the cut.
fn seed_server(at: u64, before: &[LogMessage]) -> Result<InMemory, ForkError> {
    let log = LogIdentity { id: Uuid::now_v7(), partitions: Partitions::ONE, epoch: READER };
    let stored = |message: &LogMessage| message.stored.as_ref().and_then(time::read);
    let now = before.iter().rev().find_map(stored).unwrap_or_else(Timestamp::now);
    let server = InMemory::new(log, services::ACK_WAIT, now);
    server.update_server(|server, _| {
        for message in before {
            let raw = RawMessage::from_log_message(message).ok_or(ForkError::Log(message.sequence))?;
            let id = message.headers.get("ce-id").cloned();
            let stored = OutgoingMessage::new(Partitions::ONE.stored_subject(&raw.subject), raw.headers, raw.payload);
            // Timers are set again by it, and agents that are here asked what they did not hear yet.
            let effects = [Consumer::AgentRuntimeEffects];
            server.seed(message.sequence, OutgoingMessage { id, ..stored }, raw.stored, &effects);
        }
        if let Ok(log) = server.stream(EVENTS_STREAM) {
            log.skip_to(at);
        }
        Ok::<(), ForkError>(())
    })?;
    Ok(server)
}

/// Returns true for a subject of an agent that is not among these.
fn is_of_absent_agent(subject: &str, here: &[Name]) -> bool {
    subjects::find_route(subject)
        .is_some_and(|(route, owner)| subjects::is_agent_route(route) && !here.contains(&owner))
}

/// Stores an event of the fork itself.
pub(crate) fn store(server: &mut Server, event: &OutgoingEvent, now: Timestamp) {
    let subject = Partitions::ONE.stored_subject(&event.subject);
    let message =
        OutgoingMessage::new(subject, event.headers(), event.body.encode()).with_id(event.envelope.id.to_string());
    if let Err(error) = server.store(message, now, 0, &mut Calm) {
        tracing::error!(%error, subject = event.subject, "not stored");
    }
}

/// Their profiles with another prompt.
fn profiles(parts: &cut::ForkParts, prompt: &str) -> Vec<(Name, AgentProfile)> {
    let profile = |agent: &Name| Some(AgentProfile { prompt: prompt.to_owned(), ..parts.profile(agent)? });
    parts.agents.iter().filter_map(|agent: &Name| Some((agent.clone(), profile(agent)?))).collect()
}

fn agent_defined(agent: &Name, profile: &AgentProfile, now: Timestamp) -> OutgoingEvent {
    let envelope = Envelope::from_outside(Uuid::now_v7(), Service::Gateway, Origin::System, now);
    OutgoingEvent::new(
        &AGENT_DEFINED,
        agent,
        envelope,
        AgentDefined { profile: Some(profile.clone()), ..Default::default() },
    )
}
