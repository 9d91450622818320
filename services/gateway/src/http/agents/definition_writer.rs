//! Writing definitions of agents, each under the guard of its subject.

use jiff::Timestamp;
use kairo_core::{
    bus::{BusError, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::RawMessage,
    subjects::{AGENT_DEFINED, Service},
    vocabulary::{self, ANSWERS, TEAMS},
};
use kairo_proto::v1::{AgentDefined, AgentProfile};
use uuid::Uuid;

use crate::{auth::Caller, http::Gateway, problem::Problem};

/// The number of definitions of the same agent that may come in between before the client is told to try again.
const MAX_CONFLICTS: usize = 8;

/// A request that defines agents.
pub struct DefinitionWriter<'a> {
    pub gateway: &'a Gateway,
    pub caller: &'a Caller,
    pub traceparent: Option<String>,
}

/// The position in the log of the definition in force, and whether the agent is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenDefinition {
    pub sequence: u64,
    pub is_new: bool,
}

/// The definition of an agent that is in force.
#[derive(Clone, Debug, Default)]
pub struct CurrentDefinition {
    /// Its position in the log; 0 if the agent has no definition.
    pub sequence: u64,
    /// None if there is no definition, or if it cannot be read, which a new one puts right.
    pub profile: Option<AgentProfile>,
    /// The name of this version; empty if it has none.
    pub version: String,
}

impl CurrentDefinition {
    pub fn is_missing(&self) -> bool {
        self.sequence == 0
    }
}

impl DefinitionWriter<'_> {
    /// Refuses a profile that not every running service understands.
    pub async fn require_epoch(&self, profile: &AgentProfile) -> Result<(), Problem> {
        let needed = vocabulary::profile_reader(profile);
        if needed <= self.gateway.bus.current_epoch().await? {
            return Ok(());
        }
        let what = match needed {
            ..TEAMS => "a conduct",
            TEAMS => "missions, owners and teams",
            ANSWERS => "caps and bounds of tasks",
            _ => "sessions, goals, reviews, inner state, submodules, members and an environment",
        };
        let detail = format!("agents have {what} from epoch {needed} on: see kairo fleet promote");
        Err(Problem::conflict(detail))
    }

    /// The definition in force of this agent.
    pub async fn current_definition(&self, agent: &Name) -> Result<CurrentDefinition, Problem> {
        let Some(last) = self.gateway.bus.last_message(&AGENT_DEFINED.of_owner(agent)).await? else {
            return Ok(CurrentDefinition::default());
        };
        let defined = decode_definition(&last, self.gateway.bus.limits.max_body_bytes).unwrap_or_default();
        Ok(CurrentDefinition { sequence: last.sequence, profile: defined.profile, version: defined.version })
    }

    /// The profile in force of this agent, if it is there and can be read.
    pub async fn current_profile(&self, agent: &Name) -> Result<Option<AgentProfile>, Problem> {
        Ok(self.current_definition(agent).await?.profile)
    }

    /// Writes the definition, unless it is in force, and if the one in force may be replaced.
    pub async fn write(
        &self,
        agent: &Name,
        profile: &AgentProfile,
        replaces: impl Fn(&AgentProfile) -> Result<(), Problem>,
    ) -> Result<WrittenDefinition, Problem> {
        let definition = AgentDefined { profile: Some(profile.clone()), version: String::new() };
        let mut attempts = DefinitionAttempts::new();
        loop {
            let current = self.current_definition(agent).await?;
            let is_new = current.is_missing();
            current.profile.as_ref().map_or(Ok(()), &replaces)?;
            if current.profile.as_ref() == Some(profile) {
                return Ok(WrittenDefinition { sequence: current.sequence, is_new });
            }
            if let Some(sequence) = attempts.append(self, agent, &definition, current.sequence).await? {
                return Ok(WrittenDefinition { sequence, is_new });
            }
        }
    }
}

/// The attempts of one request to write a definition. All of them have one event id.
pub struct DefinitionAttempts {
    event_id: Uuid,
    conflicts: usize,
}

impl DefinitionAttempts {
    pub fn new() -> Self {
        Self { event_id: ids::generate(), conflicts: 0 }
    }

    /// Writes the definition if `expected` is still the position of the one in force. Returns its position, or none if
    /// another definition came in between.
    pub async fn append(
        &mut self,
        writer: &DefinitionWriter<'_>,
        agent: &Name,
        definition: &AgentDefined,
        expected: u64,
    ) -> Result<Option<u64>, Problem> {
        let envelope = Envelope::from_outside(self.event_id, Service::Gateway, Origin::User, Timestamp::now());
        let traceparent = writer.traceparent.clone();
        let envelope = Envelope { traceparent, entered_by: Some(writer.caller.principal()), ..envelope };
        let event = OutgoingEvent::new(&AGENT_DEFINED, agent, envelope, definition.clone());
        match writer.gateway.bus.append(&event, expected).await {
            Ok(written) => Ok(Some(written.sequence)),
            Err(BusError::Conflict { .. }) if self.conflicts < MAX_CONFLICTS => {
                self.conflicts += 1;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The definition in a message of the log; none if it cannot be read. `longest` is the largest body that is read, in
/// bytes.
pub fn decode_definition(message: &RawMessage, longest: usize) -> Option<AgentDefined> {
    AgentDefined::try_from(message.read(longest).ok()?.body).ok()
}
