//! Checks human consent to calls: a call names the approval request, and the log holds its outcome.
//!
//! A decision alone is not trusted. The consent must have been asked for this tool, and with these arguments, unless the
//! human approved these in place of others. The verdict is read where router delivered it, from the user who was asked.
//! Router is not trusted either: the same verdict must stand where only gateways write what users say.

use std::sync::Arc;

use kairo_core::{
    bus::{Bus, BusError, epoch::EpochInForce},
    consent,
    ids::Name,
    record::{RawMessage, Record},
    subjects::{AGENT_APPROVAL, USER_APPROVAL},
};
use kairo_proto::{
    v1::{AgentApproval, AgentDecision, ApprovalRequested, UserApproval, decided_event::Event},
    words::Verdict,
};

use crate::{
    plan::{ActionRequest, ResolvedCall},
    published_catalogue::PublishedCatalogue,
    tool::{Executor, ToolSpec},
};

/// From this epoch on calls say where in the log was asked.
const SAYS_WHERE: u32 = 3;

pub struct ApprovalChecker {
    bus: Bus,
    catalogue: Arc<PublishedCatalogue>,
    epoch: EpochInForce,
}

impl ApprovalChecker {
    pub fn new(bus: &Bus, catalogue: Arc<PublishedCatalogue>, epoch: EpochInForce) -> Self {
        Self { bus: bus.clone(), catalogue, epoch }
    }

    /// Looks up the tool of a requested call, and whether a human must consent and has not.
    pub async fn resolve_call(&self, agent: &Name, asked: ActionRequest) -> Result<ResolvedCall, BusError> {
        let known = self.catalogue.find(&asked.tool).await?;
        let needs_consent = |tool: &ToolSpec| {
            tool.needs_approval || consent::is_needed_for_text(&tool.needs_approval_with, &asked.arguments)
        };
        let needs_consent = known.as_ref().is_some_and(needs_consent);
        let unconsented = match self.catalogue.withheld_reason(&asked.tool) {
            None if needs_consent => self.missing_approval(agent, &asked).await?,
            withheld => withheld,
        };
        Ok(ResolvedCall {
            idempotent: known.as_ref().is_some_and(|tool| tool.idempotent),
            missing_approval: unconsented,
            handed_over: known.is_some_and(|tool| tool.executor == Executor::ProcessSupervisor),
            request: asked,
        })
    }

    /// Returns the reason a call that needs a human's consent may not begin; none if it may.
    async fn missing_approval(&self, agent: &Name, asked: &ActionRequest) -> Result<Option<String>, BusError> {
        if asked.approval_id.is_empty() {
            return Ok(Some("this one carries no consent".to_owned()));
        }
        if asked.asked_at == 0 && self.epoch.current() < SAYS_WHERE {
            return Ok(None);
        }
        let unasked = || Some(format!("nobody was asked {:?} of this tool with these arguments", asked.approval_id));
        let Some(requested) = self.find_request(agent, asked).await? else { return Ok(unasked()) };
        Ok(match self.verdict(agent, asked, &requested.user).await? {
            Some(HumanVerdict { verdict: Verdict::Approved, arguments }) => {
                let approved = if arguments.is_empty() { &requested.arguments } else { &arguments };
                if *approved == asked.arguments { None } else { unasked() }
            }
            Some(HumanVerdict { verdict, .. }) => Some(format!("{} said {verdict}", requested.user)),
            None => Some(format!("{} has not answered", requested.user)),
        })
    }

    /// Returns the approval request, if it was for this call.
    async fn find_request(&self, agent: &Name, asked: &ActionRequest) -> Result<Option<ApprovalRequested>, BusError> {
        let record = match asked.asked_at {
            0 => return Ok(None),
            sequence => match self.bus.record_at(sequence).await {
                // It was trimmed, and nobody can tell any more what was asked.
                Err(_) if sequence < self.bus.log_start().await?.first => return Ok(None),
                asked => asked?,
            },
        };
        Ok(request_in(&record, agent, asked).cloned())
    }

    /// The first verdict on it, of the user who was asked. It stood in the log before the call did, so where one server
    /// does not have it, the leader does.
    async fn verdict(&self, agent: &Name, asked: &ActionRequest, user: &str) -> Result<Option<HumanVerdict>, BusError> {
        let subject = AGENT_APPROVAL.of_owner(agent);
        let most = self.bus.limits.max_body_bytes;
        let mut said = Vec::new();
        self.bus.read_all(&subject, asked.asked_at, |raw: RawMessage| said.push(raw)).await?;
        let first = |said: &[RawMessage]| said.iter().find_map(|raw| verdict_in(&raw.read(most).ok()?, asked, user));
        let mut verdict = first(&said);
        if verdict.is_none() {
            said.clear();
            self.bus.read_all_at_leader(&subject, asked.asked_at, |raw: RawMessage| said.push(raw)).await?;
            verdict = first(&said);
        }
        match verdict {
            Some(verdict) if self.has_gateway_verdict(user, asked, &verdict).await? => Ok(Some(verdict)),
            _ => Ok(None),
        }
    }

    /// Returns true if a gateway recorded this verdict of the user. Nobody can tell once the log is trimmed past the
    /// request.
    async fn has_gateway_verdict(
        &self,
        user: &str,
        asked: &ActionRequest,
        verdict: &HumanVerdict,
    ) -> Result<bool, BusError> {
        let Ok(user) = Name::parse(user) else { return Ok(false) };
        let subject = USER_APPROVAL.of_owner(&user);
        let mut said = Vec::new();
        self.bus.read_all(&subject, asked.asked_at, |raw: RawMessage| said.push(raw)).await?;
        if !self.contains_verdict(&said, asked, verdict) {
            said.clear();
            self.bus.read_all_at_leader(&subject, asked.asked_at, |raw: RawMessage| said.push(raw)).await?;
        }
        Ok(self.contains_verdict(&said, asked, verdict) || self.bus.log_start().await?.first > asked.asked_at)
    }

    fn contains_verdict(&self, said: &[RawMessage], asked: &ActionRequest, wanted: &HumanVerdict) -> bool {
        let records = said.iter().filter_map(|raw| raw.read(self.bus.limits.max_body_bytes).ok());
        records
            .filter_map(|record| UserApproval::of(&record.body).cloned())
            .filter(|approval| approval.action_id == asked.approval_id)
            .any(|approval| approval.verdict_word() == wanted.verdict && approval.arguments == wanted.arguments)
    }
}

/// A human's answer to a request for consent.
struct HumanVerdict {
    verdict: Verdict,
    /// The arguments approved in place of those that were asked for; empty if none were changed.
    arguments: String,
}

/// The request for consent that a call names, in a decision of its own agent, for the same tool.
fn request_in<'r>(record: &'r Record, agent: &Name, asked: &ActionRequest) -> Option<&'r ApprovalRequested> {
    let decision = AgentDecision::of(&record.body)?;
    let of_agent = record.subject.split('.').nth(2) == Some(agent.as_str());
    let event = decision.events.iter().find(|event| event.event_id == asked.approval_id)?;
    let Some(Event::ApprovalRequested(requested)) = &event.event else { return None };
    (of_agent && requested.tool == asked.tool).then_some(requested)
}

/// Returns the user's verdict if the record holds one on this request.
fn verdict_in(record: &Record, asked: &ActionRequest, user: &str) -> Option<HumanVerdict> {
    let approval = AgentApproval::of(&record.body)?;
    let is_of_it = approval.action_id == asked.approval_id && approval.user == user;
    is_of_it.then(|| HumanVerdict { verdict: approval.verdict_word(), arguments: approval.arguments.clone() })
}
