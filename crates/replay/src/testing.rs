//! Agents over a log in memory, whose model answers what the test says, for the tests of this crate and for benchmarks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on has failed"
)]

use kairo_events::{
    envelope::{Envelope, HELD, Origin},
    hash_chain::ChainRole,
    ids::{self, Name},
    log_message, media,
    record::Record,
    subjects::{AGENT_DECISION, AGENT_DEFINED, AGENT_MESSAGE, BASIS, CATALOGUE, Route, Service, TOOL_RESULT},
};
use kairo_mind::{
    build_pin,
    deliberation::{DecisionLimits, Deliberation, DeliberationStep, ModelQuestion, with_hash_link},
    log::{Log, NextInput},
    request::{Catalogue, ModelRequest, Tool, short_digest},
};
use kairo_proto::{
    Body,
    v1::{
        AgentDecision, AgentDefined, AgentMessage, AgentProfile, Completion, CompletionToolCall, LogMessage, Part,
        ToolCatalogue, ToolResult, ToolSpec,
    },
};

/// An agent, and its part of the log.
pub struct TestAgent {
    name: Name,
    log: Vec<Record>,
    /// The sequence of the next record.
    next: u64,
    mind: Log,
    limits: DecisionLimits,
}

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// An image with these bytes, as a part of a message.
pub fn image(bytes: &[u8]) -> Part {
    let media_type = "image/png".into();
    let digest = media::digest(bytes);
    Part { media_type, digest, size: bytes.len() as u64, ..Part::default() }
}

pub fn text_completion(text: &str) -> Completion {
    Completion { text: text.into(), ..Default::default() }
}

pub fn call_completion(tool: &str) -> Completion {
    let call = CompletionToolCall { tool: tool.into(), arguments: "{}".into(), ..Default::default() };
    Completion { tool_calls: vec![call], ..Default::default() }
}

pub fn tools() -> Vec<ToolSpec> {
    let schema = r#"{"type":"object"}"#;
    let tool = |name: &str| ToolSpec { name: name.into(), schema: schema.into(), ..Default::default() };
    ["tools.now", "http.get"].map(tool).into()
}

impl TestAgent {
    /// One that is told to be brief, with the tools and the basis that its decisions rest on.
    pub fn new(named: &str) -> Self {
        Self::starting_at(named, 1)
    }

    /// Builds such an agent, in a log in which `next` is the next sequence.
    pub fn starting_at(named: &str, next: u64) -> Self {
        let basis = build_pin::for_build(&DecisionLimits::default(), Vec::new(), "");
        let limits = build_pin::recorded_limits(&basis);
        let mut agent = Self { name: name(named), log: Vec::new(), next, mind: Log::default(), limits };
        let catalogue = ToolCatalogue { version: "c1".into(), tools: tools(), ..Default::default() };
        agent.write(&CATALOGUE, Service::ToolRunner.name(), None, catalogue);
        agent.write(&BASIS, Service::AgentRuntime.name(), None, basis);
        let profile = AgentProfile { agent: named.into(), prompt: "Be brief.".into(), ..Default::default() };
        agent.own(&AGENT_DEFINED, None, AgentDefined { profile: Some(profile), ..Default::default() });
        agent
    }

    fn own(&mut self, route: &Route, cause: Option<&Envelope>, body: impl Into<Body>) -> Record {
        let record = self.write(route, &self.name.to_string(), cause, body);
        let content = log_message::content_digest(&message(&record)).unwrap();
        self.mind.chain.apply_message(
            record.sequence,
            content,
            ChainRole::from_message(&record.subject, Some(&record.body)),
        );
        self.mind.push(record.clone()).unwrap();
        record
    }

    fn write(&mut self, route: &Route, owner: &str, cause: Option<&Envelope>, body: impl Into<Body>) -> Record {
        let body = body.into();
        let sequence = self.next;
        self.next += 1;
        let time = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(i64::try_from(sequence).unwrap());
        let id = ids::from_parts("test", &[&sequence.to_string()]);
        let envelope = match cause {
            Some(cause) => cause.follow_up(id, Service::Router, Origin::System, time),
            None => Envelope::from_outside(id, Service::Gateway, Origin::User, time),
        };
        let envelope = Envelope { type_name: body.type_name().to_owned(), ..envelope };
        let record = Record { sequence, subject: route.of_owner(&name(owner)), envelope, body };
        self.log.push(record.clone());
        record
    }

    /// A user says something; the sequence.
    pub fn hears(&mut self, thread: &str, text: &str) -> u64 {
        self.hears_parts(thread, text, Vec::new())
    }

    /// A user says something with images, audio and video; the sequence.
    pub fn hears_parts(&mut self, thread: &str, text: &str, parts: Vec<Part>) -> u64 {
        let message = AgentMessage {
            message_id: format!("m{}", self.next),
            user: "ann".into(),
            thread_id: thread.into(),
            text: text.into(),
            parts,
            ..Default::default()
        };
        self.own(&AGENT_MESSAGE, None, message).sequence
    }

    /// The first call of the decision at this place ends well; the sequence.
    pub fn learns(&mut self, decision: u64, result: &str) -> u64 {
        let at = self.log.iter().find(|record| record.sequence == decision).unwrap();
        let events = &AgentDecision::of(&at.body).unwrap().events;
        let call = events.iter().find(|event| event.tool_call().is_some()).unwrap().event_id.clone();
        let cause = Envelope { id: call.parse().unwrap(), ..at.envelope.clone() };
        let result = ToolResult { action_id: call, ok: true, result: result.into(), ..Default::default() };
        self.own(&TOOL_RESULT, Some(&cause), result).sequence
    }

    /// Sets the sequence of the next record.
    pub fn continue_at(&mut self, sequence: u64) {
        self.next = sequence;
    }

    /// Decides on what is next, the model answering in this order; the sequence.
    pub fn decide(&mut self, answers: &[Completion]) -> u64 {
        let mut answers = answers.iter();
        let decided = self.decide_with(|_| answers.next().expect("asked more often than answered").clone());
        assert!(answers.next().is_none(), "asked less often than answered");
        decided.expect("nothing to decide on")
    }

    /// Decides on what is next, the model answering as it likes; the sequence, or none where nothing is next.
    pub fn decide_with(&mut self, mut answer: impl FnMut(&ModelRequest) -> Completion) -> Option<u64> {
        let Some(NextInput::Input(input)) = self.mind.next_input() else { return None };
        let tools = tools().into_iter().map(Tool::from).collect();
        let catalogue = Catalogue { version: "c1".into(), tools };
        let (mut thought, mut next) = Deliberation::begin(&self.mind.state, &input, &catalogue, &self.limits).unwrap();
        let decision = loop {
            match next {
                DeliberationStep::Commit(decision) => break *decision,
                DeliberationStep::Ask(questions) => {
                    let as_asked = |question: &ModelQuestion| {
                        let tools = short_digest(&serde_json::to_vec(&question.request.tools).unwrap());
                        Completion {
                            tier: question.request.tier.into(),
                            request_digest: question.request.digest(),
                            digests: Some(question.request.part_digests(tools)),
                            ..answer(&question.request)
                        }
                    };
                    let completions = questions.iter().map(as_asked).collect();
                    (thought, next) = thought.resume(completions);
                }
            }
        };
        let cause = input.record.envelope.clone();
        drop(thought);
        let decision = with_hash_link(decision, self.mind.chain.next_link());
        Some(self.own(&AGENT_DECISION, Some(&cause), decision).sequence)
    }

    /// Returns true if the decision at this position calls a tool.
    pub fn calls_tool(&self, decision: u64) -> bool {
        let record = self.log.iter().find(|record| record.sequence == decision);
        let decision = record.and_then(|record| AgentDecision::of(&record.body));
        decision.is_some_and(|decision| decision.events.iter().any(|event| event.tool_call().is_some()))
    }

    /// All of it, as it is handed out.
    pub fn messages(&self) -> Vec<LogMessage> {
        self.log.iter().map(message).collect()
    }
}

fn message(record: &Record) -> LogMessage {
    let mut headers: std::collections::BTreeMap<String, String> =
        record.envelope.to_headers().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(decision) = AgentDecision::of(&record.body) {
        let held: Vec<&str> = decision.events.iter().map(|event| event.event_id.as_str()).collect();
        headers.insert(HELD.to_owned(), held.join(","));
    }
    LogMessage {
        sequence: record.sequence,
        subject: record.subject.clone(),
        stored: Some(kairo_proto::time::message(record.envelope.time)),
        headers,
        data: record.body.encode(),
    }
}

/// The messages with a decision changed.
pub fn with_changed_decision(messages: &[LogMessage], at: u64, change: impl Fn(&mut AgentDecision)) -> Vec<LogMessage> {
    let changed = |message: &LogMessage| {
        let mut message = message.clone();
        if message.sequence == at {
            let mut decision: AgentDecision = decode_decision(&message);
            change(&mut decision);
            message.data = Body::from(decision).encode();
        }
        message
    };
    messages.iter().map(changed).collect()
}

fn decode_decision(message: &LogMessage) -> AgentDecision {
    let body = Body::decode(AgentDecision::TYPE, kairo_proto::ContentType::Protobuf, &message.data).unwrap();
    let Body::AgentDecision(decision) = body else { panic!("{message:?}") };
    decision
}
