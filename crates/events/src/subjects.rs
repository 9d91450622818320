//! The table: every subject, its stream, its single emitter and its consumers.
//!
//! Provisioning, the bus and the documents read it. The third token of a subject is always the owner, so that all
//! that concerns one agent is one filter: [`agent_filter`].

mod consumer;
#[cfg(test)]
mod tests;

use kairo_proto::v1;
use uuid::Uuid;

pub use self::consumer::Consumer;
use crate::ids::Name;

/// A service, as it signs events and names its consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Gateway,
    Router,
    AgentRuntime,
    ToolRunner,
    ProcessSupervisor,
    Projector,
}

impl Service {
    pub const ALL: [Service; 6] = [
        Service::Gateway,
        Service::Router,
        Service::AgentRuntime,
        Service::ToolRunner,
        Service::ProcessSupervisor,
        Service::Projector,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Service::Gateway => "gateway",
            Service::Router => "router",
            Service::AgentRuntime => "agent-runtime",
            Service::ToolRunner => "tool-runner",
            Service::ProcessSupervisor => "process-supervisor",
            Service::Projector => "projector",
        }
    }
}

/// The stream that keeps messages of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// `KAIRO_EVENTS`: the log.
    Events,
    /// `KAIRO_DLQ`: what could not be dealt with.
    DeadLetters,
    /// Core NATS, never stored.
    Live,
}

/// The log.
pub const EVENTS_STREAM: &str = "KAIRO_EVENTS";
/// Dead letters and the server's advisories about messages given up on.
pub const DLQ_STREAM: &str = "KAIRO_DLQ";
/// Timers that are set, and those that went off, until the log has them.
pub const TIMERS_STREAM: &str = "KAIRO_TIMERS";
/// Tasks that wait for what happens outside. Made from the log, so not a fact in itself.
pub const HOOKS_BUCKET: &str = "KAIRO_HOOKS";
/// The stream behind that bucket.
pub const HOOKS_STREAM: &str = "KV_KAIRO_HOOKS";
/// Snapshots of agents, and the checkpoints of partitions that rest on them: deletable at any time, all together.
pub const SNAPSHOTS_BUCKET: &str = "KAIRO_SNAPSHOTS";
/// The replicas that are up, and the partitions they own: no facts, so not in the log, and in memory only.
pub const MEMBERS_BUCKET: &str = "KAIRO_MEMBERS";
pub const OWNERS_BUCKET: &str = "KAIRO_OWNERS";
/// Agents with more inputs waiting than they take on, as long as that is so: no facts, so not in the log.
pub const CONGESTION_BUCKET: &str = "KAIRO_CONGESTION";
/// API keys of the gateway, hashed: revocable at once and no facts of agents, so not in the log.
pub const KEYS_BUCKET: &str = "KAIRO_KEYS";
/// Data keys of users and agents, wrapped by the master key: what is sealed in the log goes when they go, so not in the log.
pub const DATA_KEYS_BUCKET: &str = "KAIRO_DATA_KEYS";
/// Short-lived tickets, hashed: each stands for an API key in one URL.
pub const TICKETS_BUCKET: &str = "KAIRO_TICKETS";
/// Grants of people to tool-runner at MCP servers, sealed under the master key: no facts of agents, so not in the log.
pub const SIGN_INS_BUCKET: &str = "KAIRO_SIGN_INS";
/// Images and audio of messages, by the digest of their bytes; events only name them.
pub const OBJECTS_BUCKET: &str = "KAIRO_OBJECTS";
/// Every stream there is, those behind buckets included.
pub const STREAMS: [&str; 13] = [
    EVENTS_STREAM,
    DLQ_STREAM,
    TIMERS_STREAM,
    HOOKS_STREAM,
    "KV_KAIRO_SNAPSHOTS",
    "KV_KAIRO_MEMBERS",
    "KV_KAIRO_OWNERS",
    "KV_KAIRO_CONGESTION",
    "KV_KAIRO_KEYS",
    "KV_KAIRO_DATA_KEYS",
    "KV_KAIRO_TICKETS",
    "KV_KAIRO_SIGN_INS",
    "OBJ_KAIRO_OBJECTS",
];
/// Subject on which every replica answers that it is there (core NATS request with many replies).
pub const STATUS_PING: &str = "kairo.live.status.ping";

/// Subjects of events in other systems, `kairo.system.<source>.<verb>`, beside Kairo's own announcements.
pub const OUTSIDE_EVENTS: &str = "kairo.system.>";

/// Subjects on which gateways take events of other systems, `kairo.entrance.<source>.<verb>`. Nobody stores them.
pub const ENTRANCE: &str = "kairo.entrance.*.*";

/// Returns the subject in the log of another system's event that came in on this one; none for any other subject.
pub fn from_entrance(subject: &str) -> Option<String> {
    Some(format!("kairo.system.{}", subject.strip_prefix("kairo.entrance.")?))
}

/// Returns true if this is a subject of Kairo's own announcements, such as catalogues, rather than of other systems.
pub fn is_announcement(subject: &str) -> bool {
    let tokens: Vec<&str> = subject.split('.').collect();
    let ["kairo", "system", _, verb] = tokens[..] else { return false };
    TABLE.iter().any(|route| route.noun == "system" && route.verb == verb)
}

/// Returns the subject of another system's event `<source>.<verb>`.
pub fn subject_of_trigger(trigger: &str) -> String {
    format!("kairo.system.{trigger}")
}

/// The `<source>.<verb>` of what another system says on this subject, both of them names; `None` for any other subject.
pub fn trigger_of(subject: &str) -> Option<String> {
    let (source, verb) = subject.strip_prefix("kairo.system.")?.split_once('.')?;
    let source = Name::parse(source).ok()?;
    let verb = Name::parse(verb).ok()?;
    (!is_announcement(subject)).then(|| format!("{source}.{verb}"))
}

/// Returns the subject that sets the timer of a task's occurrence.
pub fn timer_of(task: Uuid, occurrence: u64) -> String {
    format!("kairo.timer.set.{task}.{occurrence}")
}

/// The timers of a task that are set.
pub fn timers_of(task: Uuid) -> String {
    format!("kairo.timer.set.{task}.*")
}

/// Subject on which any supervisor is asked to stop a process (core NATS requests, one of them answers).
pub const SUPERVISORS_CONTROL: &str = "kairo.live.process-supervisor.control";

/// Returns the subject on which this replica of the supervisor answers about its processes (core NATS requests).
pub fn control_of(instance: &str) -> String {
    format!("kairo.live.{instance}.control")
}

/// Subject on which any tool-runner is asked to sign in at an MCP server (core NATS requests, one of them answers).
pub const MCP_SIGN_IN: &str = "kairo.live.tool-runner.sign-in";

/// Subject of requests to every tool-runner for the questions of MCP servers to users, and for the answers (core NATS).
pub const QUESTIONS: &str = "kairo.live.tool-runner.questions";

/// Subjects of requests for the live output of any agent; [`tail_of`] names one.
pub const TAILS: &str = "kairo.live.*.tail";

/// Returns the subject on which all supervisors are asked for the output of an agent's processes so far, and
/// agent-runtime for that of its models (core NATS request with many replies).
pub fn tail_of(agent: &Name) -> String {
    format!("kairo.live.{agent}.tail")
}

/// The publisher on a subject: never more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitter {
    Only(Service),
    /// The service that is the subject's third token.
    Owner,
    /// JetStream itself, from a schedule that agent-runtime set.
    Timer,
}

use Emitter::{Only, Owner, Timer};

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    pub noun: &'static str,
    pub verb: &'static str,
    pub store: Store,
    /// The only one that publishes here.
    pub emitter: Emitter,
    /// The types that may stand here.
    pub types: &'static [&'static str],
    pub consumers: &'static [Consumer],
    /// The meaning of a message here, for the documents.
    pub says: &'static str,
}

impl Route {
    /// The subject with the owner as its third token. Where it is stored, the bus adds the owner's partition.
    pub fn of_owner(&self, owner: &Name) -> String {
        format!("kairo.{}.{owner}.{}", self.noun, self.verb)
    }

    /// Returns true if this is the route of the subject, whoever the owner is.
    pub fn matches(&self, subject: &str) -> bool {
        let mut tokens = subject.split('.').skip(1);
        tokens.next() == Some(self.noun) && tokens.nth(1) == Some(self.verb)
    }

    /// Returns true if the gateway writes here for somebody, or the router delivers what it wrote.
    pub fn is_entered(&self) -> bool {
        matches!(self.emitter, Only(Service::Gateway | Service::Router))
    }

    /// The subject of every owner, as it is spoken on.
    pub fn filter(&self) -> String {
        format!("kairo.{}.*.{}", self.noun, self.verb)
    }

    /// The subject of every owner, as it is stored in the log.
    pub fn stored_filter(&self) -> String {
        format!("{}.*", self.filter())
    }
}

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident = $noun:literal . $verb:literal, $store:ident, $emitter:expr,
        [$($message:ident),*], [$($consumer:ident),*], $says:literal;)*) => {
        $(pub const $name: Route = Route {
            noun: $noun,
            verb: $verb,
            store: Store::$store,
            emitter: $emitter,
            types: &[$(v1::$message::TYPE),*],
            consumers: &[$(Consumer::$consumer),*],
            says: $says,
        };)*
        /// Every subject there is.
        pub const TABLE: &[Route] = &[$($name),*];
    };
}

table! {
    USER_MESSAGE = "user"."message", Events, Only(Service::Gateway),
        [UserMessage], [Router],
        "a user's words, as they entered";
    USER_UNDELIVERED = "user"."undelivered", Events, Only(Service::Router),
        [UserMessageUndelivered], [],
        "a message no agent can receive, and why";
    USER_SWITCHED = "user"."switched", Events, Only(Service::Router),
        [UserSwitched], [],
        "the agent a user speaks with from here on, where no message names another";
    USER_FORGET = "user"."forget", Events, Only(Service::Gateway),
        [UserForget], [],
        "a user is to be forgotten, at an administrator's word";
    USER_FORGOTTEN = "user"."forgotten", Events, Only(Service::Gateway),
        [UserForgotten], [],
        "a user is forgotten, and by whom";
    USER_CHOICE = "user"."choice", Events, Only(Service::Gateway),
        [UserChoice], [Router],
        "a user's answer to something an agent put to them";
    USER_APPROVAL = "user"."approval", Events, Only(Service::Gateway),
        [UserApproval], [Router],
        "a human's verdict on an action";
    USER_COMMAND = "user"."command", Events, Only(Service::Gateway),
        [UserCommand], [Router],
        "a direct order, such as to stop an action";
    AGENT_DEFINED = "agent"."defined", Events, Only(Service::Gateway),
        [AgentDefined], [],
        "an agent's profile, created or changed";
    AGENT_IMPORTED = "agent"."imported", Events, Only(Service::Gateway),
        [AgentImported], [],
        "a conversation that was had elsewhere, to be known from here on";
    AGENT_FORGOTTEN = "agent"."forgotten", Events, Only(Service::Gateway),
        [AgentForgotten], [AgentRuntime],
        "a user is forgotten: what the agent has of them is gone";
    AGENT_MESSAGE = "agent"."message", Events, Only(Service::Router),
        [AgentMessage], [AgentRuntime],
        "a user's words, delivered to the agent they are for";
    AGENT_CHOICE = "agent"."choice", Events, Only(Service::Router),
        [AgentChoice], [AgentRuntime],
        "a user's answer, delivered";
    AGENT_APPROVAL = "agent"."approval", Events, Only(Service::Router),
        [AgentApproval], [AgentRuntime],
        "a human's verdict, delivered";
    AGENT_COMMAND = "agent"."command", Events, Only(Service::Router),
        [AgentCommand], [AgentRuntime],
        "a direct order, delivered";
    AGENT_REQUEST = "agent"."request", Events, Only(Service::AgentRuntime),
        [AgentRequest], [AgentRuntime],
        "what another agent asks for";
    AGENT_ANSWER = "agent"."answer", Events, Only(Service::AgentRuntime),
        [AgentAnswer], [AgentRuntime],
        "what came of what was asked of another agent";
    AGENT_DECISION = "agent"."decision", Events, Only(Service::AgentRuntime),
        [AgentDecision], [ToolRunner, AgentRuntimeEffects],
        "what the agent decided on one input: thoughts, words, tool calls, failures";
    TASK_DUE = "task"."due", Events, Timer,
        [TaskDue], [AgentRuntime],
        "a task's time came";
    TASK_TRIGGERED = "task"."triggered", Events, Only(Service::Router),
        [TaskTriggered], [AgentRuntime],
        "something happened outside that a hook of the agent waits for";
    EMAIL_RECEIVED = "email"."received", Events, Only(Service::ToolRunner),
        [EmailReceived], [AgentRuntime],
        "a mail came into the agent's mailbox";
    TOOL_INVOKE = "tool"."invoke", Events, Only(Service::ToolRunner),
        [ToolInvoke], [ProcessSupervisor],
        "these actions have begun";
    TOOL_ORDER = "tool"."order", Events, Only(Service::ToolRunner),
        [ToolOrder], [],
        "a call or a process is to be stopped, or a process is sent a signal or a text";
    TOOL_PROGRESS = "tool"."progress", Events, Only(Service::ToolRunner),
        [ToolProgress], [],
        "how far an action is";
    TOOL_RESULT = "tool"."result", Events, Only(Service::ToolRunner),
        [ToolResult], [AgentRuntime],
        "how an action ended";
    PROCESS_SPAWNED = "process"."spawned", Events, Only(Service::ProcessSupervisor),
        [ProcessSpawned], [ToolRunnerProcesses],
        "a process exists and is about to run its program";
    PROCESS_PROGRESS = "process"."progress", Events, Only(Service::ProcessSupervisor),
        [ProcessProgress], [],
        "how far a process is";
    PROCESS_CANCELED = "process"."canceled", Events, Only(Service::ProcessSupervisor),
        [ProcessCanceled], [],
        "a process is to end, on request";
    PROCESS_REPLY = "process"."reply", Events, Only(Service::ProcessSupervisor),
        [ProcessReply], [],
        "what came of a signal or a text to a process";
    PROCESS_EXITED = "process"."exited", Events, Only(Service::ProcessSupervisor),
        [ProcessExited], [AgentRuntime, ToolRunnerProcesses],
        "how a process ended, with the end of its output";
    CATALOGUE = "system"."catalogue", Events, Only(Service::ToolRunner),
        [ToolCatalogue], [],
        "every tool that agents can be offered";
    CAPABILITIES = "system"."capabilities", Events, Only(Service::ProcessSupervisor),
        [ProcessCapabilities], [],
        "which programs the process supervisors run";
    BASIS = "system"."basis", Events, Only(Service::AgentRuntime),
        [DecisionBasis], [],
        "what decisions rest on beside the log and the catalogue";
    EPOCH = "system"."epoch", Events, Only(Service::Gateway),
        [Epoch], [],
        "the newest version of messages that is written from here on";
    DEAD_LETTER = "dlq"."letter", DeadLetters, Owner,
        [DeadLetter], [],
        "a message a consumer gave up on, and why (the owner is the service that did)";
    DEAD_LETTER_RETRY = "dlq"."retry", DeadLetters, Only(Service::Gateway),
        [DeadLetterRetry], [],
        "such a message is to be dealt with again, by the service that gave up on it";
    DEAD_LETTER_RETRIED = "dlq"."retried", DeadLetters, Owner,
        [DeadLetterRetried], [],
        "what came of that";
    LIVE_TOKEN = "live"."token", Live, Only(Service::AgentRuntime),
        [LiveToken], [],
        "a piece of an answer while the model writes it";
    LIVE_OUTPUT = "live"."output", Live, Only(Service::ProcessSupervisor),
        [LiveOutput], [],
        "a piece of a process's output";
}

/// The subjects `KAIRO_EVENTS` takes. Wider than the table, so that nothing said to `kairo.*` is lost unseen; but what is
/// due enters through [`TIMERS_SUBJECTS`], and two streams cannot take the same subject.
pub const EVENTS_SUBJECTS: [&str; 7] = [
    "kairo.user.>",
    "kairo.agent.>",
    "kairo.task.*.triggered.*",
    "kairo.email.>",
    "kairo.tool.>",
    "kairo.process.>",
    "kairo.system.>",
];

/// The subjects `KAIRO_TIMERS` takes: where timers are set, and where they say that a task is due.
pub const TIMERS_SUBJECTS: [&str; 2] = ["kairo.timer.>", "kairo.task.*.due.*"];

/// Subjects of other systems, which know of no partitions: the log adds theirs.
pub const WITHOUT_PARTITION: &str = "kairo.system.*.*";

/// All that concerns one agent, as it is stored.
pub fn agent_filter(agent: &Name) -> String {
    format!("kairo.*.{agent}.>")
}

/// The subjects of the log that an agent's mind is folded from: what is said to it, what it decided, and what became of
/// that.
pub fn agent_subjects(agent: &Name) -> Vec<String> {
    TABLE.iter().filter(|route| is_agent_route(route)).map(|route| route.of_owner(agent)).collect()
}

/// The subjects that an agent's decisions can be made again from: with the catalogues and bases that they name. This is an agent's
/// part of the log.
pub fn replay_subjects(agent: &Name) -> Vec<String> {
    let announced = [(CATALOGUE, Service::ToolRunner), (BASIS, Service::AgentRuntime)];
    let announced = announced.into_iter().filter_map(|(route, by)| Some(route.of_owner(&Name::parse(by.name()).ok()?)));
    agent_subjects(agent).into_iter().chain(announced).collect()
}

/// Returns true if it is one of [`agent_subjects`].
pub fn is_agent_route(route: &Route) -> bool {
    route.store == Store::Events && is_agent_noun(route.noun)
}

/// Returns true if subjects of the log with this noun are about agents.
pub fn is_agent_noun(noun: &str) -> bool {
    !matches!(noun, "user" | "system")
}

/// The row and the owner of a subject; `None` when it is not in the table.
pub fn find_route(subject: &str) -> Option<(&'static Route, Name)> {
    let mut tokens = subject.split('.');
    let (Some("kairo"), Some(noun), Some(owner), Some(verb), None) =
        (tokens.next(), tokens.next(), tokens.next(), tokens.next(), tokens.next())
    else {
        return None;
    };
    let owner = Name::parse(owner).ok()?;
    let row = TABLE.iter().find(|row| row.noun == noun && row.verb == verb)?;
    Some((row, owner))
}
