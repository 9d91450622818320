//! Checks human consent to calls: a call names the approval request, and the log holds its outcome.
//!
//! A decision alone is not trusted. The consent must have been asked for this tool with these arguments, and the
//! verdict is read where router delivered it, from the user who was asked. Router is not trusted either: the same
//! verdict must stand where only gateways write what users say.

use std::sync::Arc;

use kairo_core::{
    bus::{Bus, BusError, epoch::EpochInForce},
    consent,
    ids::Name,
    record::{Raw, Record},
    subjects::{AGENT_APPROVAL, USER_APPROVAL},
};
use kairo_proto::{
    v1::{AgentApproval, AgentDecision, ApprovalRequested, UserApproval, decided_event::Event},
    words::Verdict,
};

use crate::{
    plan::{Asked, Call},
    published_catalogue::PublishedCatalogue,
    tool::{Executor, ToolSpec},
};

/// From this epoch on calls say where in the log was asked.
const SAYS_WHERE: u32 = 3;

pub struct Consents {
    bus: Bus,
    catalogue: Arc<PublishedCatalogue>,
    epoch: EpochInForce,
}

impl Consents {
    pub fn new(bus: &Bus, catalogue: Arc<PublishedCatalogue>, epoch: EpochInForce) -> Self {
        Self { bus: bus.clone(), catalogue, epoch }
    }

    /// Looks up the tool of a requested call, and whether a human must consent and has not.
    pub async fn call(&self, agent: &Name, asked: Asked) -> Result<Call, BusError> {
        let known = self.catalogue.find(&asked.tool).await?;
        let needs_consent = |tool: &ToolSpec| {
            tool.needs_approval || consent::is_needed_for(&tool.needs_approval_with, &asked.arguments)
        };
        let needs_consent = known.as_ref().is_some_and(needs_consent);
        let unconsented = match self.catalogue.withheld(&asked.tool) {
            None if needs_consent => self.missing(agent, &asked).await?,
            withheld => withheld,
        };
        Ok(Call {
            idempotent: known.as_ref().is_some_and(|tool| tool.idempotent),
            unconsented,
            handed_over: known.is_some_and(|tool| tool.executor == Executor::ProcessSupervisor),
            asked,
        })
    }

    /// Returns the reason a call that needs a human's consent may not begin; none if it may.
    async fn missing(&self, agent: &Name, asked: &Asked) -> Result<Option<String>, BusError> {
        if asked.approval_id.is_empty() {
            return Ok(Some("this one carries no consent".to_owned()));
        }
        if asked.asked_at == 0 && self.epoch.current() < SAYS_WHERE {
            return Ok(None);
        }
        let Some(requested) = self.requested(agent, asked).await? else {
            let id = &asked.approval_id;
            return Ok(Some(format!("nobody was asked {id:?} of this tool with these arguments")));
        };
        Ok(match self.verdict(agent, asked, &requested.user).await? {
            Some(Verdict::Approved) => None,
            Some(verdict) => Some(format!("{} said {verdict}", requested.user)),
            None => Some(format!("{} has not answered", requested.user)),
        })
    }

    /// Returns the approval request, if it was for this call.
    async fn requested(&self, agent: &Name, asked: &Asked) -> Result<Option<ApprovalRequested>, BusError> {
        let record = match asked.asked_at {
            0 => return Ok(None),
            sequence => match self.bus.at(sequence).await {
                // It was trimmed, and nobody can tell any more what was asked.
                Err(_) if sequence < self.bus.beginning().await?.first => return Ok(None),
                asked => asked?,
            },
        };
        Ok(request_in(&record, agent, asked).cloned())
    }

    /// The first verdict on it, of the user who was asked. It stood in the log before the call did, so where one server
    /// does not have it, the leader does.
    async fn verdict(&self, agent: &Name, asked: &Asked, user: &str) -> Result<Option<Verdict>, BusError> {
        let subject = AGENT_APPROVAL.of(agent);
        let most = self.bus.limits.max_body_bytes;
        let mut said = Vec::new();
        self.bus.read_all(&subject, asked.asked_at, |raw: Raw| said.push(raw)).await?;
        let first = |said: &[Raw]| said.iter().find_map(|raw| verdict_in(&raw.read(most).ok()?, asked, user));
        let mut verdict = first(&said);
        if verdict.is_none() {
            said.clear();
            self.bus.read_all_at_leader(&subject, asked.asked_at, |raw: Raw| said.push(raw)).await?;
            verdict = first(&said);
        }
        match verdict {
            Some(verdict) if self.has_entered(user, asked, &verdict).await? => Ok(Some(verdict)),
            _ => Ok(None),
        }
    }

    /// Returns true if a gateway recorded this verdict of the user. Nobody can tell once the log is trimmed past the
    /// request.
    async fn has_entered(&self, user: &str, asked: &Asked, verdict: &Verdict) -> Result<bool, BusError> {
        let Ok(user) = Name::parse(user) else { return Ok(false) };
        let subject = USER_APPROVAL.of(&user);
        let mut said = Vec::new();
        self.bus.read_all(&subject, asked.asked_at, |raw: Raw| said.push(raw)).await?;
        if !self.is_in(&said, asked, verdict) {
            said.clear();
            self.bus.read_all_at_leader(&subject, asked.asked_at, |raw: Raw| said.push(raw)).await?;
        }
        Ok(self.is_in(&said, asked, verdict) || self.bus.beginning().await?.first > asked.asked_at)
    }

    fn is_in(&self, said: &[Raw], asked: &Asked, verdict: &Verdict) -> bool {
        let records = said.iter().filter_map(|raw| raw.read(self.bus.limits.max_body_bytes).ok());
        records
            .filter_map(|record| UserApproval::of(&record.body).cloned())
            .any(|approval| approval.action_id == asked.approval_id && approval.verdict_word() == *verdict)
    }
}

/// The request for consent that a call names, in a decision of its own agent, for the same tool and arguments.
fn request_in<'r>(record: &'r Record, agent: &Name, asked: &Asked) -> Option<&'r ApprovalRequested> {
    let decision = AgentDecision::of(&record.body)?;
    let of_agent = record.subject.split('.').nth(2) == Some(agent.as_str());
    let event = decision.events.iter().find(|event| event.event_id == asked.approval_id)?;
    let Some(Event::ApprovalRequested(requested)) = &event.event else { return None };
    let is_it = of_agent && requested.tool == asked.tool && requested.arguments == asked.arguments;
    is_it.then_some(requested)
}

/// Returns the user's verdict if the record holds one on this request.
fn verdict_in(record: &Record, asked: &Asked, user: &str) -> Option<Verdict> {
    let approval = AgentApproval::of(&record.body)?;
    let is_of_it = approval.action_id == asked.approval_id && approval.user == user;
    is_of_it.then(|| approval.verdict_word())
}
