//! A private nats-server, replicas of the service, and the decisions of agents.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig, append::OutgoingEvent},
    config::Secret,
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::{RawMessage, Record},
    subjects::{AGENT_APPROVAL, AGENT_DECISION, EVENTS_STREAM, Route, Service, TOOL_INVOKE, USER_APPROVAL},
};
use kairo_local::{Login, NatsServer, NatsUsers, Service as Program, Stack, Tools};
use kairo_proto::{
    Body,
    v1::{
        AgentAction, AgentApproval, AgentDecision, ApprovalRequested, DecidedEvent, ToolCall, ToolInvocation,
        ToolInvoke, ToolResult, UserApproval, agent_action::Action, decided_event::Event,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use uuid::Uuid;

/// Far beyond what anything here takes: a test that reaches it hangs.
const DEADLINE: Duration = Duration::from_secs(60);
const RUNNER: Program = Program::ToolRunner;

/// The tool worker that NATS lets in.
pub const WORKER: &str = "billing";

pub struct Kairo {
    pub bus: Bus,
    pub agent: Name,
    stack: Stack,
    /// A web server that never answers, for calls that last.
    site: TcpListener,
    nats: NatsServer,
    dir: TempDir,
}

/// A tool call to be decided on.
#[derive(Clone)]
pub struct Call {
    pub tool: &'static str,
    pub arguments: Value,
    pub target: Option<Uuid>,
}

/// A tool call that was decided on.
#[derive(Clone, Debug)]
pub struct Decided {
    pub action: Uuid,
    pub correlation_id: Uuid,
}

impl Kairo {
    /// With so many replicas, and this in their environment.
    pub async fn start(replicas: usize, env: &[(&str, String)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tools = Tools::of_this_checkout().expect("run ./scripts/test");
        let mut options = tools.nats_in(dir.path().join("nats")).unwrap();
        let mut users = NatsUsers::in_dir(dir.path().join("nats/users")).unwrap();
        users.add_worker(&Name::parse(WORKER).unwrap()).unwrap();
        options.users = Some(users);
        let nats = NatsServer::start(options).await.unwrap();
        let Login { url, user, password, .. } = nats.operator();
        let config = NatsConfig { url, user, password: Secret::new(password), ..NatsConfig::default() };
        let name = Name::parse("agent-runtime-test").unwrap();
        let bus = Bus::connect(Service::AgentRuntime, name, &config, &BusConfig::default()).await.unwrap();
        let site = TcpListener::bind("127.0.0.1:0").await.unwrap();

        let mut stack = Stack::of_this_build(dir.path()).unwrap();
        let hosts = json!([site.local_addr().unwrap().to_string()]).to_string();
        stack.use_nats(&nats.url(), nats.users());
        stack
            .common()
            .env("KAIRO_BUS__ACK_WAIT_MS", "1500")
            .env("KAIRO_BUS__DRAIN_MS", "1000")
            .env("KAIRO_TOOL_RUNNER__HTTP__ALLOW_HOSTS", hosts)
            .env("KAIRO_TOOL_RUNNER__HTTP__ALLOW_PRIVATE", "127.0.0.1")
            .env("KAIRO_TOOL_RUNNER__HTTP__TIMEOUT_MS", "600000");
        for (name, value) in env {
            stack.common().env(*name, value.clone());
        }
        stack.provision().await.unwrap();
        bus.find_log().await.unwrap();
        stack.start_all(&[(RUNNER, replicas)]).await.unwrap();
        Self { bus, agent: Name::parse("ann").unwrap(), stack, site, nats, dir }
    }

    /// Starts one more replica.
    pub async fn another(&mut self) {
        self.stack.start(RUNNER).await.unwrap();
    }

    pub async fn kill9(&self, replica: usize) {
        self.stack.kill9(RUNNER, replica).await.unwrap();
    }

    pub async fn stop(mut self) {
        self.stack.stop().await.unwrap();
    }

    /// Returns the login of the tool worker.
    pub fn worker_login(&self) -> Login {
        let (user, password) = self.nats.users().worker_login(&Name::parse(WORKER).unwrap()).unwrap();
        Login { user, password: password.to_owned(), ..self.nats.operator() }
    }

    /// A folder that goes with this.
    pub fn folder(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// Waits until the replicas have logged `text` and returns their logs.
    pub async fn logged(&self, text: &str) -> String {
        let said = async {
            loop {
                let files = std::fs::read_dir(self.dir.path()).unwrap().map(|file| file.unwrap().path());
                let logs = files.filter(|file| file.extension().is_some_and(|extension| extension == "log"));
                let log: String = logs.map(|log| std::fs::read_to_string(log).unwrap()).collect();
                if log.contains(text) {
                    return log;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, said).await.unwrap_or_else(|_| panic!("nobody logged {text:?}"))
    }

    /// An agent decides on a call.
    pub async fn decide(&self, call: Call) -> Decided {
        let action = ids::generate();
        let correlation_id = self.decide_together([(action, call)]).await.envelope.correlation_id;
        Decided { action, correlation_id }
    }

    /// An agent asks ann for her consent to a call, she says yes, and the agent decides on it; the request.
    pub async fn decide_with_consent(&self, call: Call) -> (Decided, String) {
        let (request, asked_at) = self.consent(&call).await;
        let decided = self.decide_by([call], &request, asked_at).await;
        (decided[0].clone(), request)
    }

    /// An agent asks ann for her consent to a call, and she says yes; the request, and where it stands.
    pub async fn consent(&self, call: &Call) -> (String, u64) {
        let request = ids::generate().to_string();
        let requested = ApprovalRequested {
            user: "ann".to_owned(),
            tool: call.tool.to_owned(),
            arguments: call.arguments.to_string(),
            ..Default::default()
        };
        let event = Some(Event::ApprovalRequested(requested));
        let event = DecidedEvent { event_id: request.clone(), event, ..Default::default() };
        let asked_at = self.say(&AGENT_DECISION, AgentDecision { events: vec![event], ..Default::default() }).await;
        let user = "ann".to_owned();
        let verdict = "approved".to_owned();
        // As a gateway writes it, and as router hands it on.
        let entered = UserApproval {
            user: user.clone(),
            verdict: verdict.clone(),
            action_id: request.clone(),
            ..Default::default()
        };
        let envelope = Envelope::from_outside(ids::generate(), Service::Gateway, Origin::User, Timestamp::now());
        let ann = Name::parse(&user).unwrap();
        self.bus.publish(&OutgoingEvent::new(&USER_APPROVAL, &ann, envelope, entered)).await.unwrap();
        let approval = AgentApproval { user, verdict, action_id: request.clone(), ..Default::default() };
        self.say(&AGENT_APPROVAL, approval).await;
        (request, asked_at)
    }

    /// An agent decides on calls at once that name a consent.
    pub async fn decide_by(
        &self,
        calls: impl IntoIterator<Item = Call>,
        approval_id: &str,
        asked_at: u64,
    ) -> Vec<Decided> {
        let calls: Vec<_> = calls.into_iter().map(|call| (ids::generate(), call)).collect();
        let actions: Vec<Uuid> = calls.iter().map(|(action, _)| *action).collect();
        let correlation_id = self.decide_on(calls, approval_id, asked_at).await.envelope.correlation_id;
        actions.into_iter().map(|action| Decided { action, correlation_id }).collect()
    }

    /// An agent decides on several calls at once; the decision.
    pub async fn decide_together(&self, calls: impl IntoIterator<Item = (Uuid, Call)>) -> OutgoingEvent {
        self.decide_on(calls, "", 0).await
    }

    async fn decide_on(
        &self,
        calls: impl IntoIterator<Item = (Uuid, Call)>,
        approval_id: &str,
        asked_at: u64,
    ) -> OutgoingEvent {
        let event = |(action, call): (Uuid, Call)| DecidedEvent {
            event_id: action.to_string(),
            thread_id: "t-1".to_owned(),
            event: Some(Event::Action(AgentAction {
                action: Some(Action::ToolCall(ToolCall {
                    tool: call.tool.to_owned(),
                    arguments: call.arguments.to_string(),
                    target_action_id: call.target.map(|target| target.to_string()).unwrap_or_default(),
                    target_after: 0,
                    approval_id: approval_id.to_owned(),
                    asked_at,
                    ..Default::default()
                })),
            })),
            ..Default::default()
        };
        let events = calls.into_iter().map(event).collect();
        let body = AgentDecision { events, ..Default::default() };
        let envelope =
            Envelope::from_outside(ids::generate(), Service::AgentRuntime, Origin::Internal, Timestamp::now());
        let decision = OutgoingEvent::new(&AGENT_DECISION, &self.agent, envelope.with_thread("t-1"), body);
        self.bus.publish(&decision).await.unwrap();
        decision
    }

    /// Enters in the ledger that nobody shall begin an action, as a runner that cancels it does.
    pub async fn withdraw(&self, action: Uuid, decision: &OutgoingEvent) {
        let invocation =
            ToolInvocation { action_id: action.to_string(), executor: "nobody".to_owned(), ..Default::default() };
        let body =
            ToolInvoke { runner: "tool-runner-elsewhere".to_owned(), actions: vec![invocation], ..Default::default() };
        let envelope =
            decision.envelope.follow_up(ids::generate(), Service::ToolRunner, Origin::Tool, Timestamp::now());
        self.bus.publish(&OutgoingEvent::new(&TOOL_INVOKE, &self.agent, envelope, body)).await.unwrap();
    }

    /// Calls a tool on another action, or on none of this agent's; returns the result.
    pub async fn call(&self, tool: &'static str, arguments: Value, target: Option<Uuid>) -> ToolResult {
        let decided = self.decide(Call { tool, arguments, target }).await;
        self.result(decided.action).await.0
    }

    pub async fn cancel(&self, target: Uuid) -> ToolResult {
        self.call("action.cancel", json!({ "action_id": target }), Some(target)).await
    }

    /// Writes a ledger entry that withdraws a call, which uses up the consent it names.
    pub async fn withdraw_on(&self, approval_id: &str) {
        let action_id = ids::generate().to_string();
        let executor = "nobody".to_owned();
        let withdrawn =
            ToolInvocation { action_id, executor, approval_id: approval_id.to_owned(), ..Default::default() };
        let runner = "tool-runner-elsewhere".to_owned();
        self.say(&TOOL_INVOKE, ToolInvoke { runner, actions: vec![withdrawn], ..Default::default() }).await;
    }

    /// Accepts the next connection to the site.
    pub async fn asked_at_site(&self) -> TcpStream {
        timeout(DEADLINE, self.site.accept()).await.expect("nobody asked").unwrap().0
    }

    /// A call that lasts until it is stopped, begun.
    pub async fn lasting(&self) -> (Decided, TcpStream) {
        let url = self.site();
        let decided = self.decide(Call { tool: "http.get", arguments: json!({ "url": url }), target: None }).await;
        let asked = self.asked_at_site().await;
        (decided, asked)
    }

    /// Waits for the result of an action and returns it with its record.
    pub async fn result(&self, action: Uuid) -> (ToolResult, Record) {
        self.wait("kairo.tool.*.result", |record| {
            let result = ToolResult::of(&record.body).filter(|result| result.action_id == action.to_string())?;
            Some((result.clone(), record.clone()))
        })
        .await
    }

    /// Waits for the late result of an action.
    pub async fn late(&self, action: Uuid) -> ToolResult {
        self.wait("kairo.tool.*.result", |record| {
            let is_it = |result: &&ToolResult| result.late && result.action_id == action.to_string();
            ToolResult::of(&record.body).filter(is_it).cloned()
        })
        .await
    }

    /// Returns true if a request to the site is waiting to be accepted.
    pub fn was_site_asked(&self) -> bool {
        self.site.accept().now_or_never().is_some()
    }

    /// The address of the site.
    pub fn site(&self) -> String {
        format!("http://{}/", self.site.local_addr().unwrap())
    }

    pub fn freeze(&self, replica: usize) {
        self.stack.freeze(RUNNER, replica).unwrap();
    }

    pub fn thaw(&self, replica: usize) {
        self.stack.thaw(RUNNER, replica).unwrap();
    }

    /// The entry of the ledger that an action stands in.
    pub async fn invoke(&self, action: Uuid) -> ToolInvoke {
        self.wait("kairo.tool.*.invoke", |record| {
            let begins = |invoke: &&ToolInvoke| invoke.actions.iter().any(|one| one.action_id == action.to_string());
            ToolInvoke::of(&record.body).filter(begins).cloned()
        })
        .await
    }

    /// Publishes a message as a supervisor, a router or the agent would, and returns its sequence.
    pub async fn say(&self, row: &Route, body: impl Into<Body>) -> u64 {
        let envelope =
            Envelope::from_outside(ids::generate(), Service::ProcessSupervisor, Origin::Tool, Timestamp::now());
        self.bus.publish(&OutgoingEvent::new(row, &self.agent, envelope, body)).await.unwrap().sequence
    }

    /// All records of the log so far.
    pub async fn log(&self) -> Vec<Record> {
        let mut log = Vec::new();
        self.bus.read_all("kairo.>", 0, |raw| log.push(raw.read(1 << 20).unwrap())).await.unwrap();
        log
    }

    pub async fn wait<T>(&self, filter: &str, pick: impl Fn(&Record) -> Option<T>) -> T {
        let found = async {
            let stream = self.bus.nats().unwrap().jetstream.get_stream_no_info(EVENTS_STREAM).await.unwrap();
            let config = OrderedConfig {
                filter_subject: format!("{filter}.*"),
                deliver_policy: DeliverPolicy::All,
                ..Default::default()
            };
            let mut messages = stream.create_consumer(config).await.unwrap().messages().await.unwrap();
            loop {
                let mut message = messages.next().await.unwrap().unwrap();
                let (raw, _) = RawMessage::from_delivery(&mut message).unwrap();
                if let Some(found) = pick(&raw.read(1 << 20).unwrap()) {
                    return found;
                }
            }
        };
        timeout(DEADLINE, found).await.expect("it never came")
    }
}

/// Returns the result of a call, which must have succeeded.
pub fn said(result: &ToolResult) -> Value {
    assert!(result.ok, "{result:?}");
    serde_json::from_str(&result.result).unwrap()
}

/// Returns the kind and message of the error of a call, which must have failed.
pub fn failed(result: &ToolResult) -> (&str, &str) {
    let error = result.error.as_ref().unwrap_or_else(|| panic!("{result:?}"));
    (&error.kind, &error.message)
}
