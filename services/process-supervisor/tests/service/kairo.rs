//! A private nats-server, replicas of the service, and what tool-runner would say to them.

use std::path::Path;

use async_nats::{Message, Subscriber};
use jiff::Timestamp;
use kairo_cli::local::{self, NatsOptions, NatsServer, Stack, StackOptions, Tools};
use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig, append::Outgoing, follow::Newest},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Record,
    subjects::{CAPABILITIES, EVENTS_STREAM, PROCESS_EXITED, Route, Service, TOOL_INVOKE},
};
use kairo_proto::{
    Body,
    v1::{ProcessExited, ToolInvocation, ToolInvoke},
};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

const SUPERVISOR: local::Service = local::Service::ProcessSupervisor;

/// What may run: a shell, to have any program at hand, and one that is not there.
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
        let dir = tempfile::tempdir().expect("a directory");
        let tools = Tools::find(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("scripts/setup was run");
        let nats = NatsOptions::new(tools.nats_server().expect("a nats-server"), dir.path().join("nats"));
        let nats = NatsServer::start(nats).await.expect("a server");
        let config = NatsConfig { url: nats.url(), ..NatsConfig::default() };
        let name = Name::parse("tool-runner-test").expect("a name");
        let bus = Bus::connect(Service::ToolRunner, name, &config, &BusConfig::default()).await.expect("a connection");
        bus.provision().await.expect("streams");

        let bin = Path::new(env!("CARGO_BIN_EXE_kairo-process-supervisor")).parent().expect("a folder");
        let mut stack = Stack::new(StackOptions::new(bin, dir.path()));
        let work = dir.path().join("work").display().to_string();
        stack
            .common()
            .env("KAIRO_NATS__URL", nats.url())
            // A quarter of what a request of ours may take.
            .env("KAIRO_NATS__REQUEST_TIMEOUT_MS", "500")
            .env("KAIRO_BUS__ACK_WAIT_MS", "3000")
            .env("KAIRO_BUS__DRAIN_MS", "2000")
            .env("KAIRO_PROCESS_SUPERVISOR__WORK_DIR", work)
            .env("KAIRO_PROCESS_SUPERVISOR__LIMITS__GRACE_MS", "100");
        let following = CancellationToken::new();
        let agent = Name::parse("ann").expect("a name");
        let mut kairo = Self { dir, nats, bus, agent, stack, _following: following.clone().drop_guard(), following };
        kairo.programs(PROGRAMS);
        kairo
    }

    /// What may run by replicas started from now on.
    pub fn programs(&mut self, programs: &str) {
        self.stack.common().env("KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs);
    }

    /// Starts one more replica.
    pub async fn replica(&mut self) -> usize {
        self.stack.start(SUPERVISOR).await.expect("a replica")
    }

    pub async fn kill9(&self, replica: usize) {
        self.stack.kill9(SUPERVISOR, replica).await.expect("killed");
    }

    /// Stops all replicas in an orderly way.
    pub async fn stop(&mut self) {
        self.stack.stop().await.expect("stopped");
    }

    /// Writes an invoke of these actions with these arguments; its sequence.
    pub async fn invoke(&self, actions: &[(Uuid, &str)]) -> u64 {
        let invocation = |(action, arguments): &(Uuid, &str)| ToolInvocation {
            action_id: action.to_string(),
            tool: "process.run".to_owned(),
            arguments: (*arguments).to_owned(),
            executor: "process-supervisor".to_owned(),
            thread_id: "t-1".to_owned(),
        };
        let body = ToolInvoke {
            runner: self.bus.instance.to_string(),
            decision_sequence: 1,
            actions: actions.iter().map(invocation).collect(),
        };
        let envelope = Envelope::entering(ids::entering(), Service::ToolRunner, Origin::Tool, Timestamp::now());
        let event = Outgoing::new(&TOOL_INVOKE, &self.agent, envelope, body);
        self.bus.publish(&event).await.expect("written").sequence
    }

    /// The last event of a row, once there is one.
    pub async fn last(&self, row: &Route) -> Record {
        let newest = Newest::follow(&self.bus, row.of(&self.agent), self.following.clone());
        let mut changes = newest.changes();
        let seen = changes.wait_for(Option::is_some).await.expect("somebody follows");
        seen.clone().expect("waited for")
    }

    /// How the process of an action ended, once it has.
    pub async fn exited(&self, action: Uuid) -> ProcessExited {
        let newest = Newest::follow(&self.bus, PROCESS_EXITED.of(&self.agent), self.following.clone());
        let mut changes = newest.changes();
        loop {
            changes.changed().await.expect("somebody follows");
            // It need not be the newest.
            for record in self.all(&PROCESS_EXITED).await {
                match record.body {
                    Body::ProcessExited(exited) if exited.action_id == action.to_string() => return exited,
                    _ => {}
                }
            }
        }
    }

    /// All events of a row about the agent.
    pub async fn all(&self, row: &Route) -> Vec<Record> {
        self.read(&row.of(&self.agent)).await
    }

    /// How many tools each of the capabilities ever published has.
    pub async fn offers(&self) -> Vec<usize> {
        let tools = |record: Record| match record.body {
            Body::ProcessCapabilities(capabilities) => Some(capabilities.tools.len()),
            _ => None,
        };
        self.read(&CAPABILITIES.filter()).await.into_iter().filter_map(tools).collect()
    }

    async fn read(&self, subject: &str) -> Vec<Record> {
        let mut records = Vec::new();
        let limit = self.bus.limits.max_body_bytes;
        let read = self.bus.read_all(subject, 0, |raw| records.push(raw.read(limit).expect("readable")));
        read.await.expect("read");
        records
    }

    /// What replicas say to the server about deliveries.
    pub async fn acks(&self) -> Subscriber {
        let subject = format!("$JS.ACK.{EVENTS_STREAM}.process-supervisor.>");
        let acks = self.bus.client.subscribe(subject).await.expect("a subscription");
        self.bus.client.flush().await.expect("subscribed");
        acks
    }

    /// Tells the server to deliver again what somebody works on.
    pub async fn refuse(&self, sign_of_life: Message) {
        self.bus.client.publish(sign_of_life.subject, "-NAK".into()).await.expect("said");
    }
}

/// The sequence of the message that an ack is about, and which delivery of it.
pub fn delivery(ack: &Message) -> (u64, u64) {
    // $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<time>.<pending>
    let tokens: Vec<&str> = ack.subject.split('.').collect();
    let number = |index: usize| tokens.get(index).and_then(|token| token.parse().ok()).unwrap_or(0);
    (number(5), number(4))
}
