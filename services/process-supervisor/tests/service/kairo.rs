//! A private nats-server, replicas of the service, and the messages of tool-runner.

use std::{collections::BTreeSet, time::Duration};

use async_nats::{Message, Request, Subscriber};
use futures::StreamExt;
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig, append::OutgoingEvent, subject_follower::NewestRecord},
    config::Secret,
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Record,
    subjects::{
        AGENT_DECISION, CAPABILITIES, EVENTS_STREAM, LIVE_OUTPUT, PROCESS_EXITED, PROCESS_REPLY, PROCESS_SPAWNED,
        Route, STATUS_PING, SUPERVISORS_CONTROL, Service, TOOL_INVOKE, TOOL_ORDER, control_of, tail_of,
    },
    vocabulary::READER,
};
use kairo_local::{Login, NatsServer, Service as Program, Stack, Tools};
use kairo_proto::{
    Body,
    v1::{
        AgentAction, AgentDecision, DecidedEvent, LiveOutput, ProcessAnswer, ProcessCapabilities, ProcessExited,
        ProcessReply, ProcessRequest, ProcessSpawned, ProcessStop, ReplicaRow, TailRequest, ToolCall, ToolInvocation,
        ToolInvoke, ToolOrder, agent_action::Action, decided_event::Event, process_request::Ask, tool_order::Order,
    },
};
use prost::Message as _;
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

const SUPERVISOR: Program = Program::ProcessSupervisor;

/// The longest wait for an answer: longer than a supervisor waits for another one that is gone.
const ANSWERED: Duration = Duration::from_secs(15);

/// The programs that may run: a shell, to have any program at hand, and one that does not exist.
pub const PROGRAMS: &str = r#"{"sh": "/bin/sh", "gone": "/no/such/program"}"#;

pub struct Kairo {
    pub dir: TempDir,
    pub nats: NatsServer,
    pub bus: Bus,
    pub agent: Name,
    stack: Stack,
    _following: DropGuard,
    following: CancellationToken,
}

impl Kairo {
    pub async fn start() -> Self {
        Self::start_in(READER).await
    }

    /// The same with a log of this epoch.
    pub async fn start_in(epoch: u32) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let tools = Tools::of_this_checkout().expect("scripts/setup was run");
        let nats = tools.nats_in(dir.path().join("nats")).expect("a nats-server");
        let nats = NatsServer::start(nats).await.expect("a server");
        let Login { url, user, password, .. } = nats.operator();
        let config = NatsConfig { url, user, password: Secret::new(password), ..NatsConfig::default() };
        let name = Name::parse("tool-runner-test").expect("a name");
        let bus = Bus::connect(Service::ToolRunner, name, &config, &BusConfig::default()).await.expect("a connection");

        let mut stack = Stack::of_this_build(dir.path()).expect("a build");
        let work = dir.path().join("work").display().to_string();
        stack.use_nats(&nats.url(), nats.users());
        stack
            .common()
            .env("KAIRO_NATS__EPOCH", epoch.to_string())
            // A quarter of what a request of ours may take.
            .env("KAIRO_NATS__REQUEST_TIMEOUT_MS", "500")
            .env("KAIRO_BUS__ACK_WAIT_MS", "3000")
            .env("KAIRO_BUS__DRAIN_MS", "2000")
            .env("KAIRO_PROCESS_SUPERVISOR__WORK_DIR", work)
            // Through files in here a test speaks to its programs.
            .env("KAIRO_PROCESS_SUPERVISOR__LANDLOCK__WRITE", dir.path().display().to_string())
            .env("KAIRO_PROCESS_SUPERVISOR__LIMITS__GRACE_MS", "100");
        stack.provision().await.expect("streams");
        bus.find_log().await.expect("a log");
        let following = CancellationToken::new();
        let agent = Name::parse("ann").expect("a name");
        let mut kairo = Self { dir, nats, bus, agent, stack, _following: following.clone().drop_guard(), following };
        kairo.programs(PROGRAMS);
        kairo
    }

    /// Sets the programs of replicas started from now on.
    pub fn programs(&mut self, programs: &str) {
        self.stack.common().env("KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs);
    }

    /// Sets a limit of replicas started from now on.
    pub fn limit(&mut self, name: &str, value: u64) {
        self.stack.common().env(format!("KAIRO_PROCESS_SUPERVISOR__LIMITS__{name}"), value.to_string());
    }

    /// Sets the wait before replicas started from now on hand on orders they have no room for, in milliseconds.
    pub fn patience_ms(&mut self, value: u64) {
        self.stack.common().env("KAIRO_BUS__RETRY_LONGEST_MS", value.to_string());
    }

    /// Starts one more replica.
    pub async fn replica(&mut self) -> usize {
        self.stack.start(SUPERVISOR).await.expect("a replica")
    }

    pub async fn kill9(&self, replica: usize) {
        self.stack.kill9(SUPERVISOR, replica).await.expect("killed");
    }

    /// Freezes a replica; its processes continue.
    pub fn freeze(&self, replica: usize) {
        self.stack.freeze(SUPERVISOR, replica).expect("frozen");
    }

    pub fn thaw(&self, replica: usize) {
        self.stack.thaw(SUPERVISOR, replica).expect("thawed");
    }

    /// Stops all replicas in an orderly way.
    pub async fn stop(&mut self) {
        self.stack.stop().await.expect("stopped");
    }

    /// Writes an invoke of these actions with these arguments; returns its sequence.
    pub async fn invoke(&self, actions: &[(Uuid, &str)]) -> u64 {
        self.call("process.run", actions).await
    }

    /// Asks for a spawned process; returns its action.
    pub async fn spawn(&self, arguments: &str) -> Uuid {
        let action = Uuid::now_v7();
        self.call("process.spawn", &[(action, arguments)]).await;
        action
    }

    /// Writes an invoke of a tool; returns its sequence.
    pub async fn call(&self, tool: &str, actions: &[(Uuid, &str)]) -> u64 {
        let invocation = |(action, arguments): &(Uuid, &str)| ToolInvocation {
            action_id: action.to_string(),
            tool: tool.to_owned(),
            arguments: (*arguments).to_owned(),
            executor: "process-supervisor".to_owned(),
            thread_id: "t-1".to_owned(),
            target_action_id: String::new(),
            target_after: 1,
            ..Default::default()
        };
        let body = ToolInvoke {
            runner: self.bus.instance.to_string(),
            decision_sequence: 1,
            actions: actions.iter().map(invocation).collect(),
        };
        let envelope = Envelope::from_outside(ids::generate(), Service::ToolRunner, Origin::Tool, Timestamp::now());
        let event = OutgoingEvent::new(&TOOL_INVOKE, &self.agent, envelope, body);
        self.bus.publish(&event).await.expect("written").sequence
    }

    /// Writes an order to `holder` about an action's process, on behalf of another action.
    pub async fn order(&self, holder: &str, action: Uuid, by: Uuid, order: Order) -> Envelope {
        let body = ToolOrder {
            action_id: action.to_string(),
            by_action_id: by.to_string(),
            holder: holder.to_owned(),
            user: None,
            target_after: 1,
            order: Some(order),
        };
        let envelope = Envelope::from_outside(ids::generate(), Service::ToolRunner, Origin::Tool, Timestamp::now());
        let event = OutgoingEvent::new(&TOOL_ORDER, &self.agent, envelope, body);
        self.bus.publish(&event).await.expect("written");
        event.envelope
    }

    /// Waits for the reply to the order of an action.
    pub async fn reply(&self, by: Uuid) -> ProcessReply {
        let to_it = |body: &Body| ProcessReply::of(body).filter(|reply| reply.by_action_id == by.to_string()).cloned();
        self.until(&PROCESS_REPLY, to_it).await
    }

    /// Writes a decision that asks for the end of an action, as an agent does.
    pub async fn decide_to_stop(&self, action: Uuid) {
        let call =
            ToolCall { tool: "process.cancel".to_owned(), target_action_id: action.to_string(), ..Default::default() };
        let event = Event::Action(AgentAction { action: Some(Action::ToolCall(call)) });
        let event = DecidedEvent { event_id: Uuid::now_v7().to_string(), event: Some(event), ..Default::default() };
        let envelope =
            Envelope::from_outside(ids::generate(), Service::AgentRuntime, Origin::Internal, Timestamp::now());
        let body = AgentDecision { events: vec![event], ..Default::default() };
        let event = OutgoingEvent::new(&AGENT_DECISION, &self.agent, envelope, body);
        self.bus.publish(&event).await.expect("written");
    }

    /// Asks a question about an action's process, on behalf of another action.
    pub async fn ask(&self, subject: &str, action: Uuid, by: Uuid, ask: Ask) -> ProcessAnswer {
        let request = ProcessRequest {
            agent: self.agent.to_string(),
            action_id: action.to_string(),
            after: 1,
            by_action_id: by.to_string(),
            ask: Some(ask),
        };
        self.ask_raw(subject, request.encode_to_vec()).await
    }

    /// Sends anything at all where questions are asked.
    pub async fn ask_raw(&self, subject: &str, payload: Vec<u8>) -> ProcessAnswer {
        // The deadline is the test's.
        let request = Request::new().payload(payload.into()).timeout(None);
        let answer = self
            .bus
            .nats()
            .expect("on nats")
            .client
            .send_request(subject.to_owned(), request)
            .await
            .expect("an answer");
        ProcessAnswer::decode(answer.payload).expect("readable")
    }

    /// Asks any supervisor to stop an action's process. The server may give the question to a supervisor that was
    /// just killed, and nobody answers: it is asked again, as tool-runner does.
    pub async fn stop_process(&self, action: Uuid, by: Uuid) -> ProcessAnswer {
        loop {
            let answer = self.ask(SUPERVISORS_CONTROL, action, by, Ask::Stop(ProcessStop { grace_ms: 0 }));
            if let Ok(answer) = timeout(ANSWERED, answer).await {
                return answer;
            }
        }
    }

    /// Waits for the process of an action; returns its supervisor's control subject.
    pub async fn control(&self, action: Uuid) -> String {
        control_of(&self.spawned(action).await.supervisor)
    }

    /// The names of all replicas, when there are `count`.
    pub async fn instances(&self, count: usize) -> BTreeSet<String> {
        let inbox = self.bus.nats().expect("on nats").client.new_inbox();
        let mut answers =
            self.bus.nats().expect("on nats").client.subscribe(inbox.clone()).await.expect("a subscription");
        self.bus
            .nats()
            .expect("on nats")
            .client
            .publish_with_reply(STATUS_PING, inbox, "".into())
            .await
            .expect("asked");
        let mut instances = BTreeSet::new();
        while instances.len() < count {
            let answer = answers.next().await.expect("an answer");
            instances.insert(ReplicaRow::decode(answer.payload).expect("readable").instance);
        }
        instances
    }

    /// Listens to the output of the agent's processes from now on.
    pub async fn listen(&self) -> Listener {
        Listener { live: self.live().await, pieces: Vec::new() }
    }

    /// The same, message by message.
    pub async fn live(&self) -> Subscriber {
        let client = &self.bus.nats().expect("on nats").client;
        let live = client.subscribe(LIVE_OUTPUT.of_owner(&self.agent)).await.expect("a subscription");
        client.flush().await.expect("subscribed");
        live
    }

    /// Asks for the output of the agent's processes so far, and waits until it ends with `end`.
    pub async fn tail(&self, end: &str) -> Listener {
        let inbox = self.bus.nats().expect("on nats").client.new_inbox();
        let live = self.bus.nats().expect("on nats").client.subscribe(inbox.clone()).await.expect("a subscription");
        let request = TailRequest { agent: self.agent.to_string() }.encode_to_vec();
        self.bus
            .nats()
            .expect("on nats")
            .client
            .publish_with_reply(tail_of(&self.agent), inbox, request.into())
            .await
            .expect("asked");
        let mut listener = Listener { live, pieces: Vec::new() };
        listener.until(end).await;
        listener
    }

    /// Waits for an event of a row; returns the last one.
    pub async fn last(&self, row: &Route) -> Record {
        let newest = NewestRecord::follow(&self.bus, row.of_owner(&self.agent), self.following.clone());
        let mut changes = newest.changes();
        let seen = changes.wait_for(Option::is_some).await.expect("somebody follows");
        seen.clone().expect("waited for")
    }

    /// Waits for the first event of a row that `found` accepts.
    pub async fn until<T>(&self, row: &Route, found: impl Fn(&Body) -> Option<T>) -> T {
        let newest = NewestRecord::follow(&self.bus, row.of_owner(&self.agent), self.following.clone());
        let mut changes = newest.changes();
        loop {
            changes.changed().await.expect("somebody follows");
            // It need not be the newest.
            if let Some(found) = self.all(row).await.iter().find_map(|record| found(&record.body)) {
                return found;
            }
        }
    }

    /// Waits for the event that the process of an action has begun.
    pub async fn spawned(&self, action: Uuid) -> ProcessSpawned {
        let of_action =
            |body: &Body| ProcessSpawned::of(body).filter(|spawned| spawned.action_id == action.to_string()).cloned();
        self.until(&PROCESS_SPAWNED, of_action).await
    }

    /// Waits for the event that the process of an action has ended.
    pub async fn exited(&self, action: Uuid) -> ProcessExited {
        let of_action =
            |body: &Body| ProcessExited::of(body).filter(|exited| exited.action_id == action.to_string()).cloned();
        self.until(&PROCESS_EXITED, of_action).await
    }

    /// All events of a row about the agent.
    pub async fn all(&self, row: &Route) -> Vec<Record> {
        self.read(&row.of_owner(&self.agent)).await
    }

    /// Returns the number of tools in each of the capabilities ever published.
    pub async fn offers(&self) -> Vec<usize> {
        let tools = |record: Record| Some(ProcessCapabilities::of(&record.body)?.tools.len());
        self.read(&CAPABILITIES.stored_filter()).await.into_iter().filter_map(tools).collect()
    }

    async fn read(&self, subject: &str) -> Vec<Record> {
        let mut records = Vec::new();
        let limit = self.bus.limits.max_body_bytes;
        let read = self.bus.read_all(subject, 0, |raw| records.push(raw.read(limit).expect("readable")));
        read.await.expect("read");
        records
    }

    /// Subscribes to the acknowledgements that replicas send to the server.
    pub async fn acks(&self) -> Subscriber {
        let subject = format!("$JS.ACK.{EVENTS_STREAM}.process-supervisor.>");
        let acks = self.bus.nats().expect("on nats").client.subscribe(subject).await.expect("a subscription");
        self.bus.nats().expect("on nats").client.flush().await.expect("subscribed");
        acks
    }

    /// Tells the server to redeliver a message that a replica still works on.
    pub async fn refuse(&self, sign_of_life: Message) {
        self.bus.nats().expect("on nats").client.publish(sign_of_life.subject, "-NAK".into()).await.expect("said");
    }
}

/// A listener to the live output of processes.
pub struct Listener {
    live: Subscriber,
    pub pieces: Vec<LiveOutput>,
}

impl Listener {
    /// Listens until all that was heard ends with `end`.
    pub async fn until(&mut self, end: &str) {
        while !self.text().ends_with(end) {
            let message = self.live.next().await.expect("a piece");
            let headers = message.headers.expect("an envelope");
            assert_eq!(headers.get("ce-type").map(|value| value.as_str()), Some(LiveOutput::TYPE));
            self.pieces.push(LiveOutput::decode(message.payload).expect("readable"));
        }
    }

    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    pub fn sequences(&self) -> Vec<u64> {
        self.pieces.iter().map(|piece| piece.sequence).collect()
    }
}

/// The sequence of the message that an ack is about, and which delivery of it.
pub fn delivery(ack: &Message) -> (u64, u64) {
    // $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<time>.<pending>
    let tokens: Vec<&str> = ack.subject.split('.').collect();
    let number = |index: usize| tokens.get(index).and_then(|token| token.parse().ok()).unwrap_or(0);
    (number(5), number(4))
}
