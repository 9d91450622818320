//! Writing what agents are made from, each under the guard of its subject.

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

use crate::{auth::Caller, http::Gateway, problem::Problem};

/// Definitions of the same agent that may come in between before a request is given back to its client.
const TRIES: usize = 8;

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

impl DefinitionWriter<'_> {
    /// Refuses what not everybody who is there would understand.
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

    /// The definition in force of this agent, if it is there and can be read.
    pub async fn current_profile(&self, agent: &Name) -> Result<Option<AgentProfile>, Problem> {
        let last = self.gateway.bus.last_message(&AGENT_DEFINED.of_owner(agent)).await?;
        Ok(last.and_then(|last| self.decode_profile(&last)))
    }

    /// Writes the definition, if it is not in force, and if what is in force may be replaced.
    pub async fn write(
        &self,
        agent: &Name,
        profile: &AgentProfile,
        replaces: impl Fn(&AgentProfile) -> Result<(), Problem>,
    ) -> Result<WrittenDefinition, Problem> {
        let subject = AGENT_DEFINED.of_owner(agent);
        let id = ids::generate();
        let mut tries = TRIES;
        loop {
            let last = self.gateway.bus.last_message(&subject).await?;
            let is_new = last.is_none();
            let expected = last.as_ref().map_or(0, |last| last.sequence);
            let before = last.and_then(|last| self.decode_profile(&last));
            before.as_ref().map_or(Ok(()), &replaces)?;
            if before.as_ref() == Some(profile) {
                return Ok(WrittenDefinition { sequence: expected, is_new });
            }
            let envelope = Envelope::from_outside(id, Service::Gateway, Origin::User, Timestamp::now());
            let traceparent = self.traceparent.clone();
            let entered_by = Some(self.caller.principal());
            let envelope = Envelope { traceparent, entered_by, ..envelope };
            let body = AgentDefined { profile: Some(profile.clone()) };
            match self.gateway.bus.append(&OutgoingEvent::new(&AGENT_DEFINED, agent, envelope, body), expected).await {
                Ok(written) => return Ok(WrittenDefinition { sequence: written.sequence, is_new }),
                Err(BusError::Conflict { .. }) if tries > 0 => tries -= 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The profile a message defines; none if it cannot be read, which a new definition puts right.
    fn decode_profile(&self, last: &RawMessage) -> Option<AgentProfile> {
        let body = last.read(self.gateway.bus.limits.max_body_bytes).ok()?.body;
        AgentDefined::try_from(body).ok()?.profile
    }
}
