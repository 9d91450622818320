//! The table: every subject, its stream, its single emitter and its consumers.
//!
//! Provisioning, the bus and the documents read it. The third token of a subject is always the owner, so that all
//! that concerns one agent is one filter: [`everything_of`].

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

/// A durable consumer of `KAIRO_EVENTS`, shared by all replicas of its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Consumer {
    Router,
    AgentRuntime,
    ToolRunner,
    /// tool-runner again: what became of the processes it handed over.
    ToolRunnerProcesses,
    ProcessSupervisor,
}

impl Consumer {
    pub const ALL: [Consumer; 5] = [
        Consumer::Router,
        Consumer::AgentRuntime,
        Consumer::ToolRunner,
        Consumer::ToolRunnerProcesses,
        Consumer::ProcessSupervisor,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Consumer::Router => "router",
            Consumer::AgentRuntime => "agent-runtime",
            Consumer::ToolRunner => "tool-runner",
            Consumer::ToolRunnerProcesses => "tool-runner-processes",
            Consumer::ProcessSupervisor => "process-supervisor",
        }
    }

    /// The subjects it is delivered, from the table.
    pub fn filters(self) -> Vec<String> {
        let mine = TABLE.iter().filter(|route| route.consumers.contains(&self));
        mine.map(Route::filter).collect()
    }
}

/// Where messages of a subject are kept.
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
/// Snapshots of agents: an optimisation, deletable at any time.
pub const SNAPSHOTS_BUCKET: &str = "KAIRO_SNAPSHOTS";
/// Claims of replicas on agents: not facts, so not in the log.
pub const CLAIMS_BUCKET: &str = "KAIRO_CLAIMS";
/// Where every replica answers who is there (core NATS request with many replies).
pub const STATUS_PING: &str = "kairo.live.status.ping";

/// Where any supervisor may be asked to stop a process (core NATS requests, one of them answers).
pub const SUPERVISORS_CONTROL: &str = "kairo.live.process-supervisor.control";

/// Where the supervisor that is this replica answers about the processes it runs (core NATS requests).
pub fn control_of(instance: &str) -> String {
    format!("kairo.live.{instance}.control")
}

/// Where the replica that is deciding for an agent hears of messages that came meanwhile (core NATS).
pub fn doorbell_of(agent: &Name) -> String {
    format!("kairo.live.{agent}.doorbell")
}

/// Where all supervisors are asked for what an agent's processes wrote so far (core NATS request with many replies).
pub fn tail_of(agent: &Name) -> String {
    format!("kairo.live.{agent}.tail")
}

/// Who publishes on a subject: never more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitter {
    Only(Service),
    /// The service that is the subject's third token.
    Owner,
}

use Emitter::{Only, Owner};

/// One row of the table.
#[derive(Debug)]
pub struct Route {
    pub noun: &'static str,
    pub verb: &'static str,
    pub store: Store,
    /// The only one that publishes here.
    pub emitter: Emitter,
    /// The types that may stand here.
    pub types: &'static [&'static str],
    pub consumers: &'static [Consumer],
    /// What a message here says, for the documents.
    pub says: &'static str,
}

impl Route {
    /// The subject with the owner as its third token.
    pub fn of(&self, owner: &Name) -> String {
        format!("kairo.{}.{owner}.{}", self.noun, self.verb)
    }

    /// The subject of every owner.
    pub fn filter(&self) -> String {
        format!("kairo.{}.*.{}", self.noun, self.verb)
    }
}

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident = $noun:literal . $verb:literal, $store:ident, $emitter:expr,
        [$($type_name:literal),*], [$($consumer:ident),*], $says:literal;)*) => {
        $(pub const $name: Route = Route {
            noun: $noun,
            verb: $verb,
            store: Store::$store,
            emitter: $emitter,
            types: &[$($type_name),*],
            consumers: &[$(Consumer::$consumer),*],
            says: $says,
        };)*
        /// Every subject there is.
        pub const TABLE: &[Route] = &[$($name),*];
    };
}

table! {
    USER_MESSAGE = "user"."message", Events, Only(Service::Gateway),
        ["kairo.user.message.v1"], [Router],
        "a user's words, as they entered";
    USER_UNDELIVERED = "user"."undelivered", Events, Only(Service::Router),
        ["kairo.user.undelivered.v1"], [],
        "a message no agent can receive, and why";
    USER_CHOICE = "user"."choice", Events, Only(Service::Gateway),
        ["kairo.user.choice.v1"], [Router],
        "a user's answer to something an agent put to them";
    USER_APPROVAL = "user"."approval", Events, Only(Service::Gateway),
        ["kairo.user.approval.v1"], [Router],
        "a human's verdict on an action";
    USER_COMMAND = "user"."command", Events, Only(Service::Gateway),
        ["kairo.user.command.v1"], [Router],
        "a direct order, such as to stop an action";
    AGENT_DEFINED = "agent"."defined", Events, Only(Service::Gateway),
        ["kairo.agent.defined.v1"], [],
        "an agent's profile, created or changed";
    AGENT_MESSAGE = "agent"."message", Events, Only(Service::Router),
        ["kairo.agent.message.v1"], [AgentRuntime],
        "a user's words, delivered to the agent they are for";
    AGENT_CHOICE = "agent"."choice", Events, Only(Service::Router),
        ["kairo.agent.choice.v1"], [AgentRuntime],
        "a user's answer, delivered";
    AGENT_APPROVAL = "agent"."approval", Events, Only(Service::Router),
        ["kairo.agent.approval.v1"], [AgentRuntime],
        "a human's verdict, delivered";
    AGENT_COMMAND = "agent"."command", Events, Only(Service::Router),
        ["kairo.agent.command.v1"], [AgentRuntime],
        "a direct order, delivered";
    AGENT_DECISION = "agent"."decision", Events, Only(Service::AgentRuntime),
        ["kairo.agent.decision.v1"], [ToolRunner],
        "what the agent decided on one input: thoughts, words, tool calls, failures";
    TOOL_INVOKE = "tool"."invoke", Events, Only(Service::ToolRunner),
        ["kairo.tool.invoke.v1"], [ProcessSupervisor],
        "these actions have begun";
    TOOL_PROGRESS = "tool"."progress", Events, Only(Service::ToolRunner),
        ["kairo.tool.progress.v1"], [],
        "how far an action is";
    TOOL_RESULT = "tool"."result", Events, Only(Service::ToolRunner),
        ["kairo.tool.result.v1"], [AgentRuntime],
        "how an action ended";
    PROCESS_SPAWNED = "process"."spawned", Events, Only(Service::ProcessSupervisor),
        ["kairo.process.spawned.v1"], [ToolRunnerProcesses],
        "a process exists and is about to run its program";
    PROCESS_PROGRESS = "process"."progress", Events, Only(Service::ProcessSupervisor),
        ["kairo.process.progress.v1"], [],
        "how far a process is";
    PROCESS_CANCELED = "process"."canceled", Events, Only(Service::ProcessSupervisor),
        ["kairo.process.canceled.v1"], [],
        "a process is to end, on request";
    PROCESS_EXITED = "process"."exited", Events, Only(Service::ProcessSupervisor),
        ["kairo.process.exited.v1"], [AgentRuntime, ToolRunnerProcesses],
        "how a process ended, with the end of its output";
    CATALOGUE = "system"."catalogue", Events, Only(Service::ToolRunner),
        ["kairo.system.catalogue.v1"], [],
        "every tool that agents can be offered";
    CAPABILITIES = "system"."capabilities", Events, Only(Service::ProcessSupervisor),
        ["kairo.system.capabilities.v1"], [],
        "which programs the process supervisors run";
    DEAD_LETTER = "dlq"."letter", DeadLetters, Owner,
        ["kairo.dlq.letter.v1"], [],
        "a message a consumer gave up on, and why (the owner is the service that did)";
    LIVE_TOKEN = "live"."token", Live, Only(Service::AgentRuntime),
        ["kairo.live.token.v1"], [],
        "a piece of an answer while the model writes it";
    LIVE_OUTPUT = "live"."output", Live, Only(Service::ProcessSupervisor),
        ["kairo.live.output.v1"], [],
        "a piece of a process's output";
}

/// The subjects `KAIRO_EVENTS` holds. Wider than the table, so that nothing said to `kairo.*` is lost unseen.
pub const EVENTS_SUBJECTS: [&str; 5] =
    ["kairo.user.>", "kairo.agent.>", "kairo.tool.>", "kairo.process.>", "kairo.system.>"];

/// All that concerns one agent.
pub fn everything_of(agent: &Name) -> String {
    format!("kairo.*.{agent}.>")
}

/// The row and the owner of a subject; `None` when it is not in the table.
pub fn route(subject: &str) -> Option<(&'static Route, Name)> {
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use kairo_proto::Body;

    use super::*;

    #[test]
    fn every_subject_is_listed_once_so_it_has_a_single_emitter() {
        let subjects: HashSet<String> = TABLE.iter().map(Route::filter).collect();
        assert_eq!(subjects.len(), TABLE.len());
    }

    #[test]
    fn every_type_of_the_table_is_in_the_contract() {
        for type_name in TABLE.iter().flat_map(|route| route.types) {
            assert!(Body::TYPES.contains(type_name), "{type_name}");
        }
    }

    #[test]
    fn a_subject_names_its_row_and_owner() {
        let (row, owner) = route("kairo.tool.default.result").unwrap();
        assert_eq!((row.verb, row.emitter, owner.as_str()), ("result", Only(Service::ToolRunner), "default"));
        assert_eq!(TOOL_RESULT.of(&owner), "kairo.tool.default.result");
        for stranger in ["kairo.tool.result", "kairo.tool.A.result", "kairo.tool.a.b.result", "other.tool.a.result"] {
            assert!(route(stranger).is_none(), "{stranger}");
        }
    }

    #[test]
    fn consumers_are_fed_from_the_log_only() {
        for consumer in Consumer::ALL {
            assert!(!consumer.filters().is_empty());
        }
        for route in TABLE.iter().filter(|route| !route.consumers.is_empty()) {
            assert_eq!(route.store, Store::Events);
        }
    }
}
