//! Agents that are not in a fork: they answer what the log says that they answered to the same, and nothing else.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kairo_core::{
    bus::append::Outgoing,
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
use kairo_replay::cut::{Recorded, is_answered};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{Answer, Told, store};

pub(crate) struct Others {
    pub at: u64,
    pub agents: Vec<Name>,
    pub recorded: Arc<Recorded>,
    pub told: mpsc::UnboundedSender<Told>,
    pub made: Mutex<BTreeMap<String, usize>>,
}

impl Others {
    /// Answers whatever a decision behind the cut asks of agents that are not here.
    pub fn hear(&self, server: &InMemory, record: &Record) {
        let (Some(decision), Some((_, agent))) = (AgentDecision::of(&record.body), subjects::route(&record.subject))
        else {
            return;
        };
        let asks = decision.events.iter().filter_map(|event| Some((&event.event_id, event.ask()?)));
        for (action, ask) in asks.filter(|(_, ask)| is_answered(ask) && !self.is_here(&ask.agent)) {
            let (answer, body) = self.answer(action, ask);
            let _ = self.told.send(Told::Agent { action: action.clone(), agent: ask.agent.clone(), answer });
            let Ok(action) = Uuid::parse_str(action) else { continue };
            server.with(|server, now| {
                let id = ids::derived(action, "answer");
                let envelope = record.envelope.follow(id, Service::AgentRuntime, Origin::Internal, now);
                let envelope = Envelope { causation_id: Some(action), thread_id: None, ..envelope };
                store(server, &Outgoing::new(&AGENT_ANSWER, &agent, envelope, body), now);
            });
        }
    }

    fn is_here(&self, agent: &str) -> bool {
        self.agents.iter().any(|here| here.as_str() == agent)
    }

    fn answer(&self, action: &str, ask: &Ask) -> (Answer, AgentAnswer) {
        let nth = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            let key = format!("{} {} {} {}", ask.agent, ask.kind, ask.title, ask.text);
            let times = made.entry(key).or_default();
            *times += 1;
            *times - 1
        };
        let request_id = action.to_owned();
        match self.recorded.answer(ask, self.at, nth) {
            Some(known) => (Answer::Recorded { at: known.at }, AgentAnswer { request_id, ..known.answer.clone() }),
            None => (Answer::Locked, AgentAnswer { request_id, ..failed(ask, "locked") }),
        }
    }
}

/// That nothing came of it.
pub(crate) fn failed(ask: &Ask, why: &str) -> AgentAnswer {
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
