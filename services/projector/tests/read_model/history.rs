//! Events as the services would publish them, without the services.

use jiff::{SignedDuration, Timestamp};
use kairo_core::{
    bus::append::OutgoingEvent,
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{self, Route, Service},
};
use kairo_proto::{
    Body,
    v1::{
        AgentAction, AgentApproval, AgentDecision, AgentDefined, AgentMessage, AgentProfile, DecidedEvent,
        ProcessCanceled, ProcessExited, ProcessProgress, ProcessSpawned, ProcessUsage, Say, ThreadCreated, ToolCall,
        ToolError, ToolInvocation, ToolInvoke, ToolResult, UserMessage, agent_action::Action, decided_event::Event,
    },
};
use uuid::Uuid;

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// An event that enters, its id made from its subject and `unique`.
pub fn entering(route: &Route, owner: &str, unique: &str, body: impl Into<Body>) -> OutgoingEvent {
    let owner = name(owner);
    let id = ids::from_parts("test", &[&route.of_owner(&owner), unique]);
    OutgoingEvent::new(
        route,
        &owner,
        Envelope::from_outside(id, Service::Gateway, Origin::User, Timestamp::now()),
        body,
    )
}

pub fn defined(agent: &str) -> OutgoingEvent {
    let profile = AgentProfile { agent: agent.into(), prompt: "Be brief.".into(), ..Default::default() };
    entering(&subjects::AGENT_DEFINED, agent, "1", AgentDefined { profile: Some(profile), ..Default::default() })
}

/// A message with a tool call, a process and a reply, from its entry to its end.
pub struct Turn {
    pub agent: String,
    pub message_id: String,
    pub message: OutgoingEvent,
    pub call: Uuid,
}

impl Turn {
    pub fn new(user: &str, agent: &str, number: usize) -> Self {
        let message_id = format!("m-{number}");
        let message = UserMessage {
            message_id: message_id.clone(),
            user: user.into(),
            agent: agent.into(),
            text: format!("question {number}"),
            ..Default::default()
        };
        let message = entering(&subjects::USER_MESSAGE, user, &message_id, message);
        let call = ids::derive(message.envelope.id, "call");
        Self { agent: agent.to_owned(), message_id, message, call }
    }

    /// All events, in the order of the log.
    pub fn events(&self) -> Vec<OutgoingEvent> {
        let mut events = self.until_invoked();
        events.extend(self.rest());
        events
    }

    pub fn until_invoked(&self) -> Vec<OutgoingEvent> {
        let asked = AgentDecision {
            events: vec![
                self.decided(
                    "thread",
                    Event::ThreadCreated(ThreadCreated {
                        thread_id: "t".into(),
                        kind: "topic".into(),
                        user: "ann".into(),
                        title: "questions".into(),
                    }),
                ),
                self.decided(
                    "call",
                    act(Action::ToolCall(ToolCall {
                        tool: "process.run".into(),
                        arguments: "{\"program\":\"echo\"}".into(),
                        ..Default::default()
                    })),
                ),
            ],
            ..Default::default()
        };
        let invocation = ToolInvocation {
            action_id: self.call.to_string(),
            tool: "process.run".into(),
            executor: "process-supervisor".into(),
            thread_id: "t".into(),
            ..Default::default()
        };
        vec![
            self.message.clone(),
            self.event(
                &subjects::AGENT_MESSAGE,
                "delivered",
                AgentMessage { message_id: self.message_id.clone(), user: "ann".into(), ..Default::default() },
            ),
            self.event(&subjects::AGENT_DECISION, "asked", asked),
            self.event(
                &subjects::TOOL_INVOKE,
                "invoked",
                ToolInvoke { runner: "runner-1".into(), actions: vec![invocation], ..Default::default() },
            ),
        ]
    }

    pub fn rest(&self) -> Vec<OutgoingEvent> {
        let mut events = self.until_canceled();
        let action_id = self.call.to_string();
        let said = act(Action::Say(Say {
            text: format!("answer to {}", self.message_id),
            user: "ann".into(),
            message_id: self.message_id.clone(),
            r#final: true,
            ..Default::default()
        }));
        events.extend([
            self.event(
                &subjects::PROCESS_EXITED,
                "exited",
                ProcessExited {
                    process_id: self.process().to_string(),
                    action_id: action_id.clone(),
                    outcome: "exited".into(),
                    code: Some(0),
                    usage: Some(ProcessUsage { wall_ms: 1_500, ..Default::default() }),
                    stdout_tail: "done\n".into(),
                    ..Default::default()
                },
            ),
            self.event(
                &subjects::TOOL_RESULT,
                "result",
                ToolResult { action_id, ok: true, result: "{\"stdout\":\"\"}".into(), ..Default::default() },
            ),
            self.event(
                &subjects::AGENT_DECISION,
                "said",
                AgentDecision { events: vec![self.decided("said", said)], ..Default::default() },
            ),
        ]);
        events
    }

    /// Returns the events of the process while it runs, until it is asked to end.
    pub fn until_canceled(&self) -> Vec<OutgoingEvent> {
        let process_id = self.process().to_string();
        let action_id = self.call.to_string();
        let progress = |what: &str, fraction, after: i64| {
            let body = ProcessProgress {
                process_id: process_id.clone(),
                action_id: action_id.clone(),
                fraction: Some(fraction),
                message: what.to_owned(),
                tail: "working\n".into(),
                ..Default::default()
            };
            let mut event = self.event(&subjects::PROCESS_PROGRESS, what, body);
            event.envelope.time += SignedDuration::from_secs(after);
            event
        };
        vec![
            self.event(
                &subjects::PROCESS_SPAWNED,
                "spawned",
                ProcessSpawned {
                    process_id: process_id.clone(),
                    action_id: action_id.clone(),
                    supervisor: "supervisor-1".into(),
                    pid: 7,
                    program: "echo".into(),
                    tool: "process.run".into(),
                    ..Default::default()
                },
            ),
            progress("a third", 0.3, 0),
            progress("two thirds", 0.6, 1),
            self.event(
                &subjects::PROCESS_CANCELED,
                "canceled",
                ProcessCanceled { process_id: process_id.clone(), action_id: action_id.clone(), ..Default::default() },
            ),
        ]
    }

    pub fn process(&self) -> Uuid {
        ids::derive(self.call, "process")
    }

    /// Returns the result of the call if its runner is gone: in doubt.
    pub fn in_doubt(&self) -> OutgoingEvent {
        let error = ToolError { kind: "in_doubt".into(), message: "it may have run".into() };
        let body = ToolResult { action_id: self.call.to_string(), error: Some(error), ..Default::default() };
        self.event(&subjects::TOOL_RESULT, "in doubt", body)
    }

    /// Returns the late result of the call.
    pub fn late_answer(&self) -> OutgoingEvent {
        let action_id = self.call.to_string();
        let result = "{\"paid\":7}".to_owned();
        let body = ToolResult { action_id, ok: true, result, late: true, ..Default::default() };
        self.event(&subjects::TOOL_RESULT, "late", body)
    }

    /// Returns the verdict of a human on the call.
    pub fn verdict(&self, verdict: &str, note: &str) -> OutgoingEvent {
        let body = AgentApproval {
            action_id: self.call.to_string(),
            user: "ann".into(),
            verdict: verdict.into(),
            note: note.into(),
            ..Default::default()
        };
        self.event(&subjects::AGENT_APPROVAL, note, body)
    }

    fn event(&self, route: &Route, what: &str, body: impl Into<Body>) -> OutgoingEvent {
        let cause = &self.message.envelope;
        let envelope =
            cause.follow_up(ids::derive(cause.id, what), Service::Gateway, Origin::Internal, Timestamp::now());
        OutgoingEvent::new(route, &name(&self.agent), envelope, body)
    }

    fn decided(&self, what: &str, event: Event) -> DecidedEvent {
        DecidedEvent {
            event_id: ids::derive(self.message.envelope.id, what).to_string(),
            thread_id: "t".into(),
            correlation_id: self.message.envelope.id.to_string(),
            event: Some(event),
            ..Default::default()
        }
    }
}

fn act(action: Action) -> Event {
    Event::Action(AgentAction { action: Some(action) })
}
