//! Agents that are not in a fork: they answer what the log says that they answered to the same, and nothing else.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Record,
    subjects::{self, AGENT_ANSWER, Service},
};
use kairo_in_memory::port::InMemory;
use kairo_proto::{
    v1::{AgentAnswer, AgentDecision, Ask, ToolError},
    words::{RequestKind, TaskStatus, ToolErrorKind},
};
use kairo_replay::cut::{RecordedResults, expects_answer};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{AnswerSource, ForkAnswer, store};

pub(crate) struct AbsentAgents {
    pub at: u64,
    pub agents: Vec<Name>,
    pub recorded: Arc<RecordedResults>,
    pub told: mpsc::UnboundedSender<ForkAnswer>,
    pub made: Mutex<BTreeMap<String, usize>>,
}

impl AbsentAgents {
    /// Answers whatever a decision behind the cut asks of agents that are not here.
    pub fn answer_requests(&self, server: &InMemory, record: &Record) {
        let (Some(decision), Some((_, agent))) =
            (AgentDecision::of(&record.body), subjects::find_route(&record.subject))
        else {
            return;
        };
        let asks = decision.events.iter().filter_map(|event| Some((&event.event_id, event.ask()?)));
        for (action, ask) in asks.filter(|(_, ask)| expects_answer(ask) && !self.is_in_fork(&ask.agent)) {
            let (answer, body) = self.answer(action, ask);
            let _ = self.told.send(ForkAnswer::Agent { action: action.clone(), agent: ask.agent.clone(), answer });
            let Ok(action) = Uuid::parse_str(action) else { continue };
            server.update_server(|server, now| {
                let id = ids::derive(action, "answer");
                let envelope = record.envelope.follow_up(id, Service::AgentRuntime, Origin::Internal, now);
                let envelope = Envelope { causation_id: Some(action), thread_id: None, ..envelope };
                store(server, &OutgoingEvent::new(&AGENT_ANSWER, &agent, envelope, body), now);
            });
        }
    }

    fn is_in_fork(&self, agent: &str) -> bool {
        self.agents.iter().any(|here| here.as_str() == agent)
    }

    fn answer(&self, action: &str, ask: &Ask) -> (AnswerSource, AgentAnswer) {
        let nth = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            let key = format!("{} {} {} {}", ask.agent, ask.kind, ask.title, ask.text);
            let times = made.entry(key).or_default();
            *times += 1;
            *times - 1
        };
        let request_id = action.to_owned();
        match self.recorded.find_answer(ask, self.at, nth) {
            Some(known) => {
                (AnswerSource::Recorded { at: known.at }, AgentAnswer { request_id, ..known.answer.clone() })
            }
            None => (AnswerSource::Locked, AgentAnswer { request_id, ..failed_answer(ask, "locked") }),
        }
    }
}

/// That nothing came of it.
pub(crate) fn failed_answer(ask: &Ask, why: &str) -> AgentAnswer {
    let agent = &ask.agent;
    let reason = format!("{why}: {agent} is not in this fork, and did not answer the same before");
    let is_call = ask.kind_word() == RequestKind::Call;
    let error =
        is_call.then(|| ToolError { kind: ToolErrorKind::Unavailable.as_str().to_owned(), message: reason.clone() });
    // Of work, the kind is left out.
    let kind = if ask.kind_word() == RequestKind::Work { String::new() } else { ask.kind.clone() };
    let status = TaskStatus::Failed.as_str().to_owned();
    AgentAnswer { from: agent.clone(), status, reason, error, kind, ..AgentAnswer::default() }
}
