//! Delivering what a user says to the agent it is for.

use jiff::Timestamp;
use kairo_core::{
    address::{self, Addressee},
    bus::{Bus, BusError, append::OutgoingEvent, commands::DeclaredCommands, epoch::EpochInForce},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Record,
    service::ServiceError,
    subjects::{Service, USER_UNDELIVERED},
    vocabulary::OWNED_THREADS,
};
use kairo_proto::{
    Body,
    v1::{AgentMessage, UserMessage, UserMessageUndelivered},
};

use crate::{
    config::RouterConfig,
    directory::KnownAgents,
    inputs::{self, AgentInput},
};

/// The result of handing a message on.
#[derive(Debug)]
pub enum RouteOutcome {
    Done,
    /// It never can be.
    Refused(String),
    /// It may be later.
    Later(BusError),
}

pub struct Router {
    pub(crate) bus: Bus,
    pub(crate) default_agent: Name,
    pub(crate) directory: KnownAgents,
    pub(crate) commands: DeclaredCommands,
    pub(crate) epoch: EpochInForce,
}

impl Router {
    pub fn new(
        bus: &Bus,
        config: &RouterConfig,
        commands: DeclaredCommands,
        epoch: EpochInForce,
    ) -> Result<Self, ServiceError> {
        let default_agent = Name::parse(&config.default_agent);
        Ok(Self {
            bus: bus.clone(),
            default_agent: default_agent
                .map_err(|error| ServiceError::Other(format!("router.default_agent: {error}")))?,
            directory: KnownAgents::new(bus, config.known_agents),
            commands,
            epoch,
        })
    }

    /// The agent that what a user said is for; none if that cannot be read. What names none is for `current`.
    pub fn addressee(&self, record: &Record, current: &Name) -> Option<Name> {
        inputs::to_agent_input(&record.body, record.envelope.id, current.as_str())?.to.ok()
    }

    /// Tells the agent it is for what a user said, or the user why no agent can be told. What names none is for `current`.
    pub async fn route_message(&self, record: &Record, current: &Name) -> RouteOutcome {
        let Some(mut input) = inputs::to_agent_input(&record.body, record.envelope.id, current.as_str()) else {
            return RouteOutcome::Refused(format!("nothing to do for a {}", record.body.type_name()));
        };
        self.add_known_commands(record, current, &mut input);
        let now = self.bus.now();
        let outgoing = match &input.to {
            Err(reason) => undelivered_event(record, &input, reason, now),
            Ok(agent) => match self.directory.exists(agent).await {
                Ok(true) => {
                    let own = self.epoch.current() >= OWNED_THREADS;
                    let told = if own { input.in_own_thread(agent) } else { input.clone() };
                    Ok(delivered_event(record, agent, &told, self.epoch.current(), now))
                }
                Ok(false) => {
                    let name = agent.as_str();
                    let reason = format!("there is no agent named {name:?}; define it with POST /v1/agents");
                    undelivered_event(record, &input, &reason, now)
                }
                Err(error) => return RouteOutcome::Later(error),
            },
        };
        let written = match outgoing {
            Ok(outgoing) => self.bus.publish(&outgoing).await,
            Err(reason) => return RouteOutcome::Refused(reason),
        };
        match written {
            Ok(_) => RouteOutcome::Done,
            Err(error @ (BusError::TooLarge { .. } | BusError::Refused(_))) => RouteOutcome::Refused(error.to_string()),
            Err(error) => RouteOutcome::Later(error),
        }
    }

    /// Adds the list of known commands to a message that uses an undeclared command.
    fn add_known_commands(&self, record: &Record, current: &Name, input: &mut AgentInput) {
        let Some(UserMessage { agent, text, .. }) = UserMessage::of(&record.body) else { return };
        let Addressee::Command(command) = address::addressee_of(agent, text) else { return };
        let known = self.commands.lock_commands();
        if known.agent_of(command, current).is_none()
            && let Some(told) = known.describe_unknown(command)
            && let Body::AgentMessage(AgentMessage { text, .. }) = &mut input.told
        {
            add_line(text, &told);
        }
    }
}

/// Puts a line below what is said.
fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(line);
}

fn delivered_event(record: &Record, agent: &Name, input: &AgentInput, epoch: u32, now: Timestamp) -> OutgoingEvent {
    let position = format!("{}.{}", input.route.noun, input.route.verb);
    let envelope = follow_up_envelope(record, &position, Origin::User, now).with_thread(&input.thread_id);
    let Envelope { modality, entered_by, .. } = record.envelope.clone();
    let envelope = Envelope { modality, entered_by, ..envelope };
    OutgoingEvent::new(input.route, agent, envelope, input.told.clone()).for_epoch(epoch)
}

fn undelivered_event(
    record: &Record,
    input: &AgentInput,
    reason: &str,
    now: Timestamp,
) -> Result<OutgoingEvent, String> {
    let user = Name::parse(&input.user).map_err(|error| format!("user: {error}"))?;
    let body = UserMessageUndelivered {
        message_id: input.id.clone(),
        user: input.user.clone(),
        agent: input.named.clone(),
        reason: reason.to_owned(),
    };
    let envelope = follow_up_envelope(record, "user.undelivered", Origin::System, now);
    Ok(OutgoingEvent::new(&USER_UNDELIVERED, &user, envelope, body))
}

/// Builds the envelope of a follow-up message; its id is the same however often the message is delivered.
fn follow_up_envelope(record: &Record, position: &str, origin: Origin, now: Timestamp) -> Envelope {
    record.envelope.follow_up(ids::derive(record.envelope.id, position), Service::Router, origin, now)
}
