//! A message that is put into a thread and becomes a chain with a tool that needs consent, and a task that fires.

use jiff::Timestamp;
use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::Origin,
    ids,
    subjects::{self, Route, Service},
};
use kairo_proto::{
    Body,
    v1::{
        AgentAction, AgentApproval, AgentChoice, AgentDecision, AgentMessage, ApprovalRequested, ChainEnded,
        ChainStarted, ChainStep, ChainStepEnded, DecidedEvent, Say, Task, TaskChanged, TaskFired, TaskScheduled,
        ThreadArchived, ThreadCompacted, ThreadCreated, ThreadMatched, ThreadSuggested, ThreadSummarized, ToolCall,
        ToolError, ToolResult, UserMessage, agent_action::Action, decided_event::Event,
    },
};
use uuid::Uuid;

use crate::history::{entering, name};

pub struct Planned {
    number: usize,
    message: OutgoingEvent,
}

/// A part of the story, up to a certain event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Until a thread is suggested.
    Offered,
    /// Until a human is asked for consent.
    Asked,
    /// Until the chain is over, but for one tool.
    Ended,
    /// Until the task has fired and is over.
    Done,
}

impl Planned {
    pub fn new(number: usize) -> Self {
        let message_id = format!("p-{number}");
        let body = UserMessage {
            message_id: message_id.clone(),
            user: "ann".into(),
            agent: "bob".into(),
            text: format!("plan {number}"),
            ..Default::default()
        };
        Self { number, message: entering(&subjects::USER_MESSAGE, "ann", &message_id, body) }
    }

    pub fn id(&self, what: &str) -> Uuid {
        ids::derive(self.message.envelope.id, what)
    }

    pub fn thread(&self) -> String {
        format!("plan-{}", self.number)
    }

    pub fn events(&self) -> Vec<OutgoingEvent> {
        [Part::Offered, Part::Asked, Part::Ended, Part::Done].into_iter().flat_map(|part| self.part(part)).collect()
    }

    pub fn part(&self, part: Part) -> Vec<OutgoingEvent> {
        match part {
            Part::Offered => self.offered(),
            Part::Asked => self.request_events(),
            Part::Ended => self.ended(),
            Part::Done => self.outcome_events(),
        }
    }

    fn offered(&self) -> Vec<OutgoingEvent> {
        let message_id = format!("p-{}", self.number);
        let delivered = AgentMessage { message_id: message_id.clone(), user: "ann".into(), ..Default::default() };
        let suggested = ThreadSuggested {
            message_id,
            user: "ann".into(),
            action: "suggest_new".into(),
            thread_id: self.thread(),
            current_thread_id: "t".into(),
            reason: "it is about plans".into(),
            ..Default::default()
        };
        vec![
            self.message.clone(),
            self.event(&subjects::AGENT_MESSAGE, "delivered", delivered),
            self.decision("suggested", [("offer", Event::ThreadSuggested(suggested))]),
        ]
    }

    fn request_events(&self) -> Vec<OutgoingEvent> {
        let choice = AgentChoice {
            user: "ann".into(),
            offer_id: self.id("offer").to_string(),
            option: "accept".into(),
            ..Default::default()
        };
        let created =
            ThreadCreated { thread_id: self.thread(), kind: "topic".into(), user: "ann".into(), ..Default::default() };
        let matched =
            ThreadMatched { thread_id: self.thread(), action: "new".into(), by: "user".into(), ..Default::default() };
        let step = |(group, event): (u32, &str)| ChainStep {
            group,
            event: event.to_owned(),
            params: "{\"a\":1}".into(),
            ..Default::default()
        };
        let steps = [(0, "tools.now"), (1, "http.get"), (1, "email.send"), (2, "memory.search"), (3, "agent.think")];
        let started = ChainStarted {
            chain_id: self.id("chain").to_string(),
            plan: "1. look\n2. write".into(),
            steps: steps.map(step).to_vec(),
            origin: "plan".into(),
            ..Default::default()
        };
        let requested = ApprovalRequested {
            user: "ann".into(),
            tool: "email.send".into(),
            arguments: "{\"to\":\"john\"}".into(),
            chain_id: self.id("chain").to_string(),
            step: 2,
            outside: vec!["mail:sarah@example.org".into()],
            ..Default::default()
        };
        vec![
            self.event(&subjects::AGENT_CHOICE, "chosen", choice),
            self.decision(
                "planned",
                [
                    ("thread", Event::ThreadCreated(created)),
                    ("matched", Event::ThreadMatched(matched)),
                    ("started", Event::ChainStarted(started)),
                    ("now", self.call("tools.now", 0)),
                ],
            ),
            self.result("now", None),
            self.decision(
                "asked",
                [("get", self.call("http.get", 1)), ("consent", Event::ApprovalRequested(requested))],
            ),
        ]
    }

    fn ended(&self) -> Vec<OutgoingEvent> {
        let approval = AgentApproval {
            user: "ann".into(),
            action_id: self.id("consent").to_string(),
            verdict: "approved".into(),
            ..Default::default()
        };
        let summarized =
            ThreadSummarized { thread_id: self.thread(), title: "Plans".into(), summary: "All is planned.".into() };
        let said = Say {
            text: "done".into(),
            user: "ann".into(),
            message_id: format!("p-{}", self.number),
            r#final: true,
            ..Default::default()
        };
        let task = Task {
            task_id: self.id("task").to_string(),
            kind: "scheduled".into(),
            title: "look again".into(),
            r#type: "repeat".into(),
            interval: "1 day".into(),
            action: "[\"tools.now\"]".into(),
            thread_id: self.thread(),
            user: "ann".into(),
            source: "user".into(),
            next_at: "2026-11-22T09:00:00Z".into(),
            occurrence: 1,
            ..Default::default()
        };
        vec![
            self.event(&subjects::AGENT_APPROVAL, "approved", approval),
            self.decision("sent", [("send", self.call("email.send", 2))]),
            self.result("get", Some("timed_out")),
            self.decision(
                "over",
                [
                    ("skipped", self.step_ended(3, "skipped")),
                    ("broken", self.chain_ended("chain", "broken")),
                    ("summarized", Event::ThreadSummarized(summarized)),
                    ("scheduled", Event::TaskScheduled(TaskScheduled { task: Some(task) })),
                    ("said", Event::Action(AgentAction { action: Some(Action::Say(said)) })),
                ],
            ),
        ]
    }

    fn outcome_events(&self) -> Vec<OutgoingEvent> {
        let task_id = self.id("task").to_string();
        let fired = TaskFired {
            task_id: task_id.clone(),
            occurrence: 1,
            due_at: "2026-11-22T09:00:00Z".into(),
            late: true,
            next_at: "2026-11-23T09:00:00Z".into(),
            ..Default::default()
        };
        let chain = ChainStarted {
            chain_id: self.id("task chain").to_string(),
            steps: vec![ChainStep { event: "tools.now".into(), params: "{}".into(), ..Default::default() }],
            origin: "task".into(),
            task_id: task_id.clone(),
            ..Default::default()
        };
        let changed = TaskChanged { task_id, status: "canceled".into(), reason: "by ann".into(), ..Default::default() };
        let archived = ThreadArchived { thread_id: self.thread(), archived: true };
        vec![
            self.result("send", None),
            self.decision("fired", [("fired", Event::TaskFired(fired)), ("task started", Event::ChainStarted(chain))]),
            self.decision(
                "canceled",
                [
                    ("task ended", self.chain_ended("task chain", "canceled")),
                    ("changed", Event::TaskChanged(changed)),
                    ("archived", Event::ThreadArchived(archived)),
                ],
            ),
        ]
    }

    /// Returns the decision that summarizes the oldest part of the thread.
    pub fn compacted(&self, how: &str) -> OutgoingEvent {
        let summary = format!("It was {how} about plans.");
        let compacted = ThreadCompacted { thread_id: self.thread(), summary, ..Default::default() };
        self.decision(&format!("compacted {how}"), [(how, Event::ThreadCompacted(compacted))])
    }

    fn call(&self, tool: &str, step: u32) -> Event {
        let call = ToolCall {
            tool: tool.to_owned(),
            arguments: "{\"a\":2}".into(),
            chain_id: self.id("chain").to_string(),
            step,
            ..Default::default()
        };
        Event::Action(AgentAction { action: Some(Action::ToolCall(call)) })
    }

    fn step_ended(&self, step: u32, outcome: &str) -> Event {
        Event::ChainStepEnded(ChainStepEnded {
            chain_id: self.id("chain").to_string(),
            step,
            outcome: outcome.to_owned(),
            reason: "nothing to look for".into(),
            ..Default::default()
        })
    }

    fn chain_ended(&self, chain: &str, outcome: &str) -> Event {
        let chain_id = self.id(chain).to_string();
        Event::ChainEnded(ChainEnded { chain_id, outcome: outcome.to_owned(), ..Default::default() })
    }

    fn result(&self, call: &str, error: Option<&str>) -> OutgoingEvent {
        let error = error.map(|kind| ToolError { kind: kind.to_owned(), message: "too slow".into() });
        let body = ToolResult {
            action_id: self.id(call).to_string(),
            ok: error.is_none(),
            result: "{\"n\":1}".into(),
            error,
            ..Default::default()
        };
        self.event(&subjects::TOOL_RESULT, &format!("result of {call}"), body)
    }

    fn decision<const N: usize>(&self, what: &str, events: [(&str, Event); N]) -> OutgoingEvent {
        let decided = |(id, event): (&str, Event)| DecidedEvent {
            event_id: self.id(id).to_string(),
            thread_id: if what == "suggested" { "t".to_owned() } else { self.thread() },
            correlation_id: self.message.envelope.id.to_string(),
            event: Some(event),
            ..Default::default()
        };
        let body = AgentDecision { events: events.into_iter().map(decided).collect(), ..Default::default() };
        self.event(&subjects::AGENT_DECISION, what, body)
    }

    fn event(&self, route: &Route, what: &str, body: impl Into<Body>) -> OutgoingEvent {
        let cause = &self.message.envelope;
        let envelope = cause.follow_up(
            ids::derive(cause.id, &format!("event {what}")),
            Service::Gateway,
            Origin::Internal,
            Timestamp::now(),
        );
        OutgoingEvent::new(route, &name("bob"), envelope, body)
    }
}
