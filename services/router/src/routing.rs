//! Delivering what a user says to the agent it is for.

use jiff::Timestamp;
use kairo_core::{
    address::{self, Whom},
    bus::{Bus, BusError, append::Outgoing, commands::DeclaredCommands, epoch::EpochInForce},
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
    directory::Directory,
    inputs::{self, Input},
};

/// The result of handing a message on.
#[derive(Debug)]
pub enum Routed {
    Done,
    /// It never can be.
    Refused(String),
    /// It may be later.
    Later(BusError),
}

pub struct Router {
    pub(crate) bus: Bus,
    pub(crate) default_agent: Name,
    pub(crate) directory: Directory,
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
            directory: Directory::new(bus, config.known_agents),
            commands,
            epoch,
        })
    }

    /// The agent that what a user said is for; none if that cannot be read. What names none is for `current`.
    pub fn address(&self, record: &Record, current: &Name) -> Option<Name> {
        inputs::read(&record.body, record.envelope.id, current.as_str())?.to.ok()
    }

    /// Tells the agent it is for what a user said, or the user why no agent can be told. What names none is for `current`.
    pub async fn route(&self, record: &Record, current: &Name) -> Routed {
        let Some(mut input) = inputs::read(&record.body, record.envelope.id, current.as_str()) else {
            return Routed::Refused(format!("nothing to do for a {}", record.body.type_name()));
        };
        self.tell_of_commands(record, current, &mut input);
        let now = self.bus.now();
        let outgoing = match &input.to {
            Err(reason) => undelivered(record, &input, reason, now),
            Ok(agent) => match self.directory.exists(agent).await {
                Ok(true) => {
                    let own = self.epoch.current() >= OWNED_THREADS;
                    let told = if own { input.in_own_thread(agent) } else { input.clone() };
                    Ok(delivered(record, agent, &told, self.epoch.current(), now))
                }
                Ok(false) => {
                    let name = agent.as_str();
                    let reason = format!("there is no agent named {name:?}; define it with POST /v1/agents");
                    undelivered(record, &input, &reason, now)
                }
                Err(error) => return Routed::Later(error),
            },
        };
        let written = match outgoing {
            Ok(outgoing) => self.bus.publish(&outgoing).await,
            Err(reason) => return Routed::Refused(reason),
        };
        match written {
            Ok(_) => Routed::Done,
            Err(error @ (BusError::TooLarge { .. } | BusError::Refused(_))) => Routed::Refused(error.to_string()),
            Err(error) => Routed::Later(error),
        }
    }

    /// Adds the list of known commands to a message that uses an undeclared command.
    fn tell_of_commands(&self, record: &Record, current: &Name, input: &mut Input) {
        let Some(UserMessage { agent, text, .. }) = UserMessage::of(&record.body) else { return };
        let Whom::Command(command) = address::whom(agent, text) else { return };
        let known = self.commands.known();
        if known.agent_of(command, current).is_none()
            && let Some(told) = known.told_of(command)
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

fn delivered(record: &Record, agent: &Name, input: &Input, epoch: u32, now: Timestamp) -> Outgoing {
    let position = format!("{}.{}", input.route.noun, input.route.verb);
    let envelope = follow(record, &position, Origin::User, now).in_thread(&input.thread_id);
    let Envelope { modality, entered_by, .. } = record.envelope.clone();
    let envelope = Envelope { modality, entered_by, ..envelope };
    Outgoing::new(input.route, agent, envelope, input.told.clone()).written_in(epoch)
}

fn undelivered(record: &Record, input: &Input, reason: &str, now: Timestamp) -> Result<Outgoing, String> {
    let user = Name::parse(&input.user).map_err(|error| format!("user: {error}"))?;
    let body = UserMessageUndelivered {
        message_id: input.id.clone(),
        user: input.user.clone(),
        agent: input.named.clone(),
        reason: reason.to_owned(),
    };
    let envelope = follow(record, "user.undelivered", Origin::System, now);
    Ok(Outgoing::new(&USER_UNDELIVERED, &user, envelope, body))
}

/// Builds the envelope of a follow-up message; its id is the same however often the message is delivered.
fn follow(record: &Record, position: &str, origin: Origin, now: Timestamp) -> Envelope {
    record.envelope.follow(ids::derived(record.envelope.id, position), Service::Router, origin, now)
}
